"""What a server writes to stdout beside its messages: one finding, however many rules see it."""

from __future__ import annotations

from typing import Final

from mcptest.model.compliance import RuleResult
from mcptest.model.show import show

NOISE_RULE: Final = "STDIO-001"
STUMBLING_RULES: Final = ("MSG-001", "MSG-002", "PROTO-008")
"""Rules that look at the same lines."""


def noise_message(noise: RuleResult) -> str:
    line = next((one.received for one in noise.evidence), "")
    shown = f": {show(line, 120)}" if line else ""
    return f"stdout carries lines that are no messages{shown}"


def stumbled_over_noise(result: RuleResult, noise: RuleResult) -> bool:
    """Whether a rule failed for nothing but lines that the rule about noise has told of."""
    if not result.failed:
        return False
    if result.id == "PROTO-008":
        return all('"alive":true' in (one.actual or "") for one in result.findings)
    told = {one.received for one in noise.evidence}
    return bool(result.evidence) and {one.received for one in result.evidence} <= told
