"""The `properties:` block of a suite: its server is tried with generated examples, or kept ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcptest.suite.fields import Declaration, Duration, Field, Flag, Texts, Whole
from mcptest.suite.model import Place
from mcptest.suite.problems import Source
from mcptest.suite.reading import describe, read_object
from mcptest.suite.scalars import is_nothing
from mcptest.suite.yaml_nodes import Mapping, Node, Scalar

BLOCK = Declaration(
    "properties",
    "Try the server with generated messages, arguments and conversations, as `mcptest property`.",
    (
        Field("names", Texts(), "Only these properties; all of them by default.", ours=True),
        Field("examples", Whole(minimum=1), "For each property; 100 by default.", ours=True),
        Field("seed", Whole(), "The same seed gives the same examples; 0 by default.", ours=True),
        Field("max_time", Duration(), "For all of it together; 2m by default.", ours=True),
        Field("allow_tools", Texts(), "Tools that may be called, too; `*` is all.", ours=True),
        Field("strict", Flag(), "A broken SHOULD fails as well.", ours=True),
        Field(
            "replay",
            Texts(),
            "Files with counterexamples, beside the suite: only these are tried.",
            ours=True,
        ),
    ),
)
_EXAMPLES = 100
_MAX_TIME = 120.0


@dataclass(frozen=True, slots=True)
class PropertiesBlock:
    names: tuple[str, ...] = ()
    """Empty: all of them."""
    examples: int = _EXAMPLES
    seed: int = 0
    max_time: float = _MAX_TIME
    allow_tools: tuple[str, ...] = ()
    strict: bool = False
    replay: tuple[str, ...] = ()
    """Files relative to the suite."""
    place: Place = field(default_factory=lambda: Place(""), compare=False)


def properties_of(node: Node, source: Source) -> PropertiesBlock | None:
    """The block that stands there; whatever is wrong is reported to the source."""
    place = source.place(node.line, node.column)
    if isinstance(node, Scalar) and is_nothing(node):
        return PropertiesBlock(place=place)
    if not isinstance(node, Mapping):
        message = f"properties must be a mapping, not {describe(node)}"
        source.report(message, node.line, node.column)
        return None
    read = read_object(BLOCK, node, source)
    if not read.sound:
        return None
    given: dict[str, Any] = {
        one.name: read.get(one.name) for one in BLOCK.fields if one.name in read
    }
    return PropertiesBlock(**given, place=place)
