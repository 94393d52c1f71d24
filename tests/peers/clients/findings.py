"""What was found in client libraries, and what the specification says about each finding.

`verdicts.json` holds what failed or was warned of, `findings.yml` why: the sentence of the text,
what the library does, and whether the verdict is true by the text or arguable. A verdict that is
false has no place there: it is a defect to be mended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from tests.peers.clients.libraries import HERE
from tests.peers.clients.record import TRANSPORTS, VERDICTS

FINDINGS = HERE / "findings.yml"


@dataclass(frozen=True)
class Verdict:
    """One check that a library did not pass."""

    library: str
    transport: str
    scenario: str
    revision: str
    check: str
    message: str
    warning: bool


@dataclass(frozen=True)
class Finding:
    title: str
    libraries: tuple[str, ...]
    checks: tuple[str, ...]
    scenarios: tuple[str, ...]
    """Only in these; none: wherever the check fails."""
    judgement: str
    text: str
    page: str
    why: str

    def explains(self, verdict: Verdict) -> bool:
        return (
            verdict.library in self.libraries
            and verdict.check in self.checks
            and (not self.scenarios or verdict.scenario in self.scenarios)
        )


def findings() -> tuple[Finding, ...]:
    return tuple(
        Finding(
            title=one["title"],
            libraries=tuple(map(str, one["libraries"])),
            checks=tuple(one["checks"]),
            scenarios=tuple(one.get("scenarios", ())),
            judgement=one["judgement"],
            text=" ".join(one.get("text", "").split()),
            page=one.get("page", ""),
            why=" ".join(one["why"].split()),
        )
        for one in yaml.safe_load(FINDINGS.read_text()) or ()
    )


def verdicts() -> Iterator[Verdict]:
    for library, found in json.loads(VERDICTS.read_text()).items():
        for transport in TRANSPORTS:
            for scenario, row in found[transport].items():
                for kind in ("failed", "warned"):
                    for check, message in row.get(kind, {}).items():
                        yield Verdict(
                            library=library,
                            transport=transport,
                            scenario=scenario,
                            revision=row["revision"],
                            check=check,
                            message=message,
                            warning=kind == "warned",
                        )
