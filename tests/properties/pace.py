"""How many examples a property gets: few in the usual run, many in a search."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def few(examples: int) -> settings:
    """So many, but for `--hypothesis-profile=search`, which has its own number and fresh ones."""
    default = settings.default
    if default is not None and not default.derandomize:
        return settings(suppress_health_check=list(HealthCheck))
    return settings(max_examples=examples, suppress_health_check=list(HealthCheck))
