"""What a file asks for besides its tests: its server judged, its sessions judged."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from mcptest.suite.fields import DECLARED, Reading, Whole, declared, read_object, value_of
from mcptest.suite.model import LANES, OURS, ServerSpec, Strings
from mcptest.suite.reading import MappingNode, Place

if TYPE_CHECKING:
    from mcptest.suite.compliance_block import ComplianceBlock

Names: TypeAlias = Annotated[Strings, OURS]
Strict: TypeAlias = Annotated[bool, "Fail for broken SHOULD rules too.", OURS]
_NO_SERVER = "name one under server, or pass --server"
_Block = TypeVar("_Block", "InvariantsBlock", "PropertiesBlock")


@declared("invariants")
@dataclass(frozen=True, slots=True)
class InvariantsBlock:
    """Judge what the tests of the file record by the rules that hold for a whole session."""

    rules: Annotated[Names, "Only these rules, by id (default: all)."] = ()
    strict: Strict = False
    place: Place = field(default_factory=lambda: Place(""), compare=False)


@declared("properties")
@dataclass(frozen=True, slots=True)
class PropertiesBlock:
    """Try the server with generated messages, arguments and conversations,
    as `mcptest property`."""

    names: Annotated[Names, "Only these properties (default: all)."] = ()
    examples: Annotated[
        int, Whole(minimum=1), "Examples for each property (default: 100).", OURS
    ] = 100
    seed: Annotated[int, "Seed for reproducible examples (default: 0).", OURS] = 0
    max_time: Annotated[float, "Time limit for all properties (default: 2m).", OURS] = 120.0
    allow_tools: Annotated[Names, "More tools that may be called; `*` means all."] = ()
    strict: Strict = False
    replay: Annotated[Names, "Files with counterexamples, beside the suite; runs only these."] = ()
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
            read.complain("no server to judge", "compliance", hint=_NO_SERVER)
    invariants = _block(read, InvariantsBlock)
    properties = _block(read, PropertiesBlock)
    if properties is not None and not has_server:
        read.complain("no server to test", "properties", hint=_NO_SERVER)
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
