"""What a file asks for besides its tests: its server judged, its sessions judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcptest.suite.model import Place, ServerSpec
from mcptest.suite.reading import Reading

if TYPE_CHECKING:
    from mcptest.suite.compliance_block import ComplianceBlock
    from mcptest.suite.invariants_block import InvariantsBlock
    from mcptest.suite.properties_block import PropertiesBlock


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one file. At least one of them is there."""

    file: str
    server: ServerSpec | None = None
    """None when --server must provide it, or nothing is sent to one."""
    compliance: ComplianceBlock | None = None
    invariants: InvariantsBlock | None = None
    properties: PropertiesBlock | None = None

    @property
    def places(self) -> list[tuple[str, Place]]:
        """What each lane is called, and where it stands."""
        blocks = (
            ("compliance", self.compliance),
            ("invariants", self.invariants),
            ("properties", self.properties),
        )
        return [(name, block.place) for name, block in blocks if block is not None]


def lanes_of(read: Reading, server: ServerSpec | None, *, has_server: bool) -> Lanes | None:
    """The lanes that were read with a file; None where there are none, or they are not sound."""
    before = read.source.errors
    compliance = invariants = properties = None
    if "compliance" in read:
        from mcptest.suite.compliance_block import compliance_of

        compliance = compliance_of(read.get("compliance"), read.source)
        if compliance is not None and compliance.needs_server and not has_server:
            hint = "name one under server, or pass --server"
            read.complain("there is no server to judge", "compliance", hint=hint)
    if "invariants" in read:
        from mcptest.suite.invariants_block import invariants_of

        invariants = invariants_of(read.get("invariants"), read.source)
    if "properties" in read:
        from mcptest.suite.properties_block import properties_of

        properties = properties_of(read.get("properties"), read.source)
        if properties is not None and not has_server:
            hint = "name one under server, or pass --server"
            read.complain("there is no server to try", "properties", hint=hint)
    found = (compliance, invariants, properties)
    if read.source.errors > before or not any(found):
        return None
    return Lanes(read.source.file, server, compliance, invariants, properties)
