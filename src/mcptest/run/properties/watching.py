"""The session rules over a session that goes on: which of them were broken since the last look.

`rules.judge` judges a session that is over. This finds out for a fraction of that whether there is
anything to judge: the same rules, kept going from one example to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcptest.model.capture import AnyRecord
from mcptest.model.revision import Revision
from mcptest.model.verdict import Finding, Side
from mcptest.rules.declare import Rule
from mcptest.rules.ongoing import OngoingJudge, RuleTable
from mcptest.run.compliance.sessions import POINTING_AT_THE_QUESTION
from mcptest.run.properties.reel import Reel

_KEPT = 50


class Watching:
    """One session and the rules that watch it."""

    def __init__(self, reel: Reel, rules: RuleTable, revision: Revision) -> None:
        self.reel = reel
        source = reel.source([], revision.wire_version)
        self._judge = OngoingJudge(source, rules, revision, kept=_KEPT, read=reel.read)
        self._place = 0
        self.broken_at_first = self.look(reel.beginning)
        """What the server broke before the first example."""

    def look(self, records: Sequence[AnyRecord]) -> list[tuple[Rule, Finding]]:
        """Take in more records; what the server broke with them."""
        self._judge.feed(enumerate(records, self._place))
        self._place += len(records)
        return [
            (rule, one)
            for rule, found in self._judge.broken_since()
            for one in of_the_server(rule, (found,))
        ]


def of_the_server(rule: Rule, findings: Iterable[Finding]) -> list[Finding]:
    """Of a rule that judges both sides: without what it has to say about us."""
    if rule.side is not Side.BOTH:
        return list(findings)
    ours = "server" if rule.id in POINTING_AT_THE_QUESTION else "client"
    return [one for one in findings if one.sender != ours]
