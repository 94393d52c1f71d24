"""A mutation: one named way in which a message is wrong, and which rules speak about it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.property.crafted import Crafted, Intent, encode, request
from mcptest.model.message import ABSENT
from mcptest.model.revision import TIMELINE, Era, Revision
from mcptest.schema.shapes_basic import KEY

EVERYWHERE: Final = frozenset(TIMELINE)
ALIVE: Final = "PROTO-008"
"""Whatever a server is sent, it is still there afterwards."""

Change: TypeAlias = Callable[[DrawFn, dict[str, Any], Revision], Any]
"""From a harmless request, which it may change, to a value or bytes."""


class Mutation(msgspec.Struct, frozen=True):
    """`rules`: what a server must, should or may do with it; a rule that does not hold in the
    revision or over the transport says nothing there."""

    name: str
    about: str
    change: Change
    rules: tuple[str, ...] = ()
    kind: Intent = "request"
    revisions: frozenset[Revision] = EVERYWHERE
    transports: frozenset[str] = frozenset()
    """Where it is one; everywhere when empty."""

    def applies(self, revision: Revision, transport: str) -> bool:
        return revision in self.revisions and (not self.transports or transport in self.transports)

    def strategy(self, revision: Revision) -> SearchStrategy[Crafted]:
        return _crafted(self, revision)


def harmless_method(revision: Revision) -> str:
    """Every server has it, and it changes nothing, should it be answered in spite of what is
    wrong."""
    return "ping" if revision.era is Era.HANDSHAKE else "server/discover"


def needed_params(revision: Revision) -> dict[str, Any]:
    """What the params of every request hold."""
    if revision.era is Era.HANDSHAKE:
        return {}
    return {
        "_meta": {
            KEY + "protocolVersion": revision.wire_version,
            KEY + "clientCapabilities": {},
        }
    }


_IDS: Final = st.sampled_from((1, "a", 0, 2**53 - 1)) | st.integers(1, 10_000)


@functools.lru_cache(maxsize=1_000)
def _crafted(mutation: Mutation, revision: Revision) -> SearchStrategy[Crafted]:
    return _changed(mutation, revision)


@st.composite
def _changed(draw: DrawFn, mutation: Mutation, revision: Revision) -> Crafted:
    value = request(harmless_method(revision), needed_params(revision), draw(_IDS))
    made = mutation.change(draw, dict(value), revision)
    raw = made if isinstance(made, bytes) else encode(made)
    name = made.get("method") if isinstance(made, dict) else None
    return Crafted(
        raw=raw,
        valid=False,
        kind=mutation.kind,
        mutation=mutation.name,
        method=name if isinstance(name, str) else "",
        identifier=_identifier(made, value["id"]),
        about=mutation.about,
        rules=mutation.rules,
    )


def _identifier(made: Any, original: int | str) -> Any:
    """What a reader that forgives more than it has to would answer."""
    if isinstance(made, bytes):
        return original if b'"id":' + encode(original) in made else ABSENT
    if isinstance(made, list):
        found = [one.get("id") for one in made if isinstance(one, dict)]
        return tuple(one for one in found if type(one) in (int, str))
    identifier = made.get("id", ABSENT) if isinstance(made, dict) else ABSENT
    return identifier if type(identifier) in (int, str) else ABSENT
