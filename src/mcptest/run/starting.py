"""What the server of a test needs before it is started: a copy of the fixture, and its command.

On the way to the first server, so it imports little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mcptest.model.show import show
from mcptest.run.choosing import ServerChoice, resolved_server, target_for
from mcptest.suite.model import ServerSpec
from mcptest.suite.templates import fill_server, variables_of

if TYPE_CHECKING:
    from pathlib import Path

    from mcptest.run.fixture import FixtureCopy
    from mcptest.transport.target import Target


class Ground(msgspec.Struct, frozen=True):
    """The fixture of one server."""

    path: str = ""
    copy: FixtureCopy | None = None
    """What has to be removed again."""
    note: str = ""
    """What is not in the copy, for the result."""


class Understood(msgspec.Struct, frozen=True):
    """A server whose environment and templates are filled in, and how to reach it."""

    server: ServerSpec
    target: Target
    secrets: frozenset[str]


def prepare_ground(source: str | Path | None, choice: ServerChoice) -> Ground:
    """A copy of the fixture, if there is one. May raise FixtureError."""
    if source is None:
        return Ground()
    if choice.docker:  # a container of its own is isolation enough
        return Ground(str(source))
    from mcptest.run.fixture import isolate_fixture

    return ground_on(isolate_fixture(source))


def ground_on(copy: FixtureCopy) -> Ground:
    """A copy, with what has to be said about it."""
    left_out = copy.left_out
    more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
    names = ", ".join(left_out[:5])
    note = f"left out of the fixture copy: {show(names, 200)}{more}" if left_out else ""
    return Ground(copy.folder, copy, note)


def understand(spec: ServerSpec, choice: ServerChoice, fixture: str) -> Understood:
    """Fill in the environment, then the templates. May raise UsageError."""
    resolved = resolved_server(spec, choice)
    filled = fill_server(resolved.server, variables_of(fixture, {}))
    target = target_for(filled, choice, fixture)
    return Understood(filled, target, resolved.secrets)
