"""What a file asks for besides its tests: its server judged, its sessions judged."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from mcptest.suite.fields import DECLARED, Reading, Whole, declared, read_object, value_of
from mcptest.suite.model import LANES, OURS, ServerSpec, Strings
from mcptest.suite.reading import MappingNode, Place

if TYPE_CHECKING:
    from mcptest.suite.compliance_block import ComplianceBlock

Names: TypeAlias = Annotated[Strings, OURS]
Strict: TypeAlias = Annotated[bool, "A broken SHOULD fails as well.", OURS]
_NO_SERVER = "name one under server, or pass --server"
_Block = TypeVar("_Block", "InvariantsBlock", "PropertiesBlock")


@declared("invariants")
@dataclass(frozen=True, slots=True)
class InvariantsBlock:
    """Judge what the tests of the file record by the rules that hold for a whole session."""

    rules: Annotated[Names, "Only these rules, by id; all of them by default."] = ()
    strict: Strict = False
    place: Place = field(default_factory=lambda: Place(""), compare=False)


@declared("properties")
@dataclass(frozen=True, slots=True)
class PropertiesBlock:
    """Try the server with generated messages, arguments and conversations,
    as `mcptest property`."""

    names: Annotated[Names, "Only these properties; all of them by default."] = ()
    examples: Annotated[int, Whole(minimum=1), "For each property; 100 by default.", OURS] = 100
    seed: Annotated[int, "The same seed gives the same examples; 0 by default.", OURS] = 0
    max_time: Annotated[float, "For all of it together; 2m by default.", OURS] = 120.0
    allow_tools: Annotated[Names, "Tools that may be called, too; `*` is all."] = ()
    strict: Strict = False
    replay: Annotated[
        Names, "Files with counterexamples, beside the suite: only these are tried."
    ] = ()
    place: Place = field(default_factory=lambda: Place(""), compare=False)


INVARIANTS, PROPERTIES = DECLARED[InvariantsBlock], DECLARED[PropertiesBlock]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one file. At least one of them is there."""

    file: str
    server: ServerSpec | None = None
    """None when --server must provide it, or nothing is sent to one."""
    compliance: "ComplianceBlock | None" = None
    invariants: InvariantsBlock | None = None
    properties: PropertiesBlock | None = None

    @property
    def places(self) -> list[tuple[str, Place]]:
        """What each lane is called, and where it stands."""
        blocks = [(name, getattr(self, name)) for name in LANES]
        return [(name, block.place) for name, block in blocks if block is not None]


def lanes_of(read: Reading, server: ServerSpec | None, *, has_server: bool) -> Lanes | None:
    """The lanes that were read with a file; None where there are none, or they are not sound."""
    before = read.source.errors
    compliance = None
    if "compliance" in read:
        from mcptest.suite.compliance_block import compliance_of

        compliance = compliance_of(read.get("compliance"), read.source)
        if compliance is not None and compliance.needs_server and not has_server:
            read.complain("there is no server to judge", "compliance", hint=_NO_SERVER)
    invariants = _block(read, InvariantsBlock)
    properties = _block(read, PropertiesBlock)
    if properties is not None and not has_server:
        read.complain("there is no server to try", "properties", hint=_NO_SERVER)
    found = (compliance, invariants, properties)
    if read.source.errors > before or not any(found):
        return None
    return Lanes(read.source.file, server, compliance, invariants, properties)


def _block(read: Reading, block: type[_Block]) -> _Block | None:
    """The block that stands there; whatever is wrong is reported to the source."""
    declaration = DECLARED[block]
    if declaration.name not in read:
        return None
    node = read.get(declaration.name)
    if node.is_nothing:
        node = MappingNode({}, node.line, node.column)
    if not isinstance(node, MappingNode):
        message = f"{declaration.name} must be a mapping, not {node.described}"
        read.source.report(message, node.line, node.column)
        return None
    inner = read_object(declaration, node, read.source)
    return value_of(block, inner) if inner.sound else None
