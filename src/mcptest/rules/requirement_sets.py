"""What a server or a client has to pass to conform to a revision: sets that do not change."""

from __future__ import annotations

import functools
from importlib.resources import files

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.revision import Revision
from mcptest.model.verdict import Side
from mcptest.suite.yaml_file import read_yaml_bytes
from mcptest.suite.yaml_nodes import Listing, Mapping, Node, Scalar

REVISIONS = (Revision.V2025_11_25, Revision.V2026_07_28)


class RequirementSet(msgspec.Struct, frozen=True):
    """Scenarios by name, in the order in which they are run."""

    revision: Revision
    server: tuple[str, ...]
    client: tuple[str, ...]
    not_scored: dict[tuple[Side, str], str]
    """Run and shown, never counted, with the reason."""

    def scored(self, side: Side) -> tuple[str, ...]:
        return self.server if side is Side.SERVER else self.client

    def shown(self, side: Side) -> tuple[str, ...]:
        """All that is run: what counts first, then the rest."""
        rest = tuple(name for one, name in self.not_scored if one is side)
        return (*self.scored(side), *rest)


@functools.cache
def requirement_set(revision: Revision) -> RequirementSet:
    if revision not in REVISIONS:
        known = " and ".join(one.value for one in REVISIONS)
        raise UsageError(
            f"there is no requirement set for {revision}", hint=f"there are sets for {known}"
        )
    name = f"conformance/requirements/{revision.value}.yml"
    root, source = read_yaml_bytes(files("mcptest").joinpath(name).read_bytes(), name)
    assert isinstance(root, Mapping), source.finish()
    return RequirementSet(
        revision,
        _names(root.entries["server"][1]),
        _names(root.entries["client"][1]),
        dict(_reasons(root.entries["not_scored"][1])),
    )


def _names(node: Node) -> tuple[str, ...]:
    assert isinstance(node, Listing)
    return tuple(_text(one) for one in node.items)


def _reasons(node: Node) -> list[tuple[tuple[Side, str], str]]:
    assert isinstance(node, Listing)
    found = []
    for item in node.items:
        assert isinstance(item, Mapping)
        entry = {key: _text(value) for key, (_, value) in item.entries.items()}
        found.append(((Side(entry["side"]), entry["scenario"]), entry["reason"]))
    return found


def _text(node: Node) -> str:
    assert isinstance(node, Scalar)
    return node.text
