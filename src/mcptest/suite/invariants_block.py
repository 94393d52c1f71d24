"""The `invariants:` block of a suite: the sessions of its tests are judged as well."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcptest.suite.fields import Declaration, Field, Flag, Texts
from mcptest.suite.model import Place
from mcptest.suite.problems import Source
from mcptest.suite.reading import describe, read_object
from mcptest.suite.scalars import is_nothing
from mcptest.suite.yaml_nodes import Mapping, Node, Scalar

BLOCK = Declaration(
    "invariants",
    "Judge what the tests of the file record by the rules that hold for a whole session.",
    (
        Field("rules", Texts(), "Only these rules, by id; all of them by default.", ours=True),
        Field("strict", Flag(), "A broken SHOULD fails as well.", ours=True),
    ),
)


@dataclass(frozen=True, slots=True)
class InvariantsBlock:
    rules: tuple[str, ...] = ()
    """Empty: all of them."""
    strict: bool = False
    place: Place = field(default_factory=lambda: Place(""), compare=False)


def invariants_of(node: Node, source: Source) -> InvariantsBlock | None:
    """The block that stands there; whatever is wrong is reported to the source."""
    place = source.place(node.line, node.column)
    if isinstance(node, Scalar) and is_nothing(node):
        return InvariantsBlock(place=place)
    if not isinstance(node, Mapping):
        message = f"invariants must be a mapping, not {describe(node)}"
        source.report(message, node.line, node.column)
        return None
    read = read_object(BLOCK, node, source)
    if not read.sound:
        return None
    return InvariantsBlock(read.get("rules", ()), read.get("strict", False), place)
