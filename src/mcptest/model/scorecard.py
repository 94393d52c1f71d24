"""What is kept of a judged server to hold later runs against it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mcptest.model.compliance import Grade, Judgement, Profile, SectionScore
from mcptest.model.revision import Revision
from mcptest.model.verdict import Outcome

SCORECARD_FORMAT = "mcptest.scorecard/1"
HISTORY_FORMAT = "mcptest.flaky-history/1"


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """The grade of one run, by what it was given, and what became of each rule."""

    format: str = SCORECARD_FORMAT
    server: str
    """How people call the server: a label, with secrets masked."""
    profile: Profile
    transport: str = ""
    grade: str
    """Empty where too little was observed for a letter."""
    score: float
    sections: tuple[SectionScore, ...] = ()
    rules: Mapping[str, Outcome] = msgspec.field(default_factory=dict)


def scorecard_of(judgement: Judgement, grade: Grade, server_label: str) -> Scorecard:
    """The scorecard of a judgement. Nothing in it depends on when or where it was made."""
    return Scorecard(
        server=server_label,
        profile=judgement.profile,
        transport=judgement.transport,
        grade=grade.letter,
        score=grade.score,
        sections=grade.sections,
        rules={one.id: one.outcome for one in sorted(judgement.results, key=lambda one: one.id)},
    )


class PastRun(msgspec.Struct, frozen=True):
    """What became of the flaky rules in one earlier run."""

    revision: Revision
    outcomes: Mapping[str, Outcome]
