"""Draws that hang on the seed alone, whatever else is loaded in this process.

Hypothesis collects the numbers and texts that stand in the code of local modules, and draws them
now and then. So the examples of a seed would change with each line of ours, and be others in
somebody's test run; and reading all that code takes a second. Its own notable values stay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hypothesis.internal.conjecture import providers

_CONSTANTS = "_get_local_constants"
_CACHE = "CONSTANTS_CACHE"


def _ours() -> dict[str, Any]:
    """In place of the parts of Hypothesis that are meant; empty where it has none of that name."""
    everything = getattr(providers, "GLOBAL_CONSTANTS", None)
    cache = getattr(providers, _CACHE, None)
    if everything is None or cache is None or not hasattr(providers, _CONSTANTS):
        return {}
    none = type(everything)()
    return {_CONSTANTS: lambda: none, _CACHE: type(cache)(cache.max_size)}


_OURS = _ours()


@contextlib.contextmanager
def steady_draws() -> Iterator[None]:
    """Local constants are left out until it ends: the tests of our users have theirs."""
    theirs = {name: getattr(providers, name) for name in _OURS}
    _put(_OURS)
    try:
        yield
    finally:
        _put(theirs)


def _put(parts: dict[str, Any]) -> None:
    for name, part in parts.items():
        setattr(providers, name, part)
