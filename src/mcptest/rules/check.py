"""What a rule may say while it watches, and how that becomes its verdict."""

from __future__ import annotations

import msgspec

from mcptest.model.capture import Frame
from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.show import show
from mcptest.model.verdict import Finding, Outcome, Verdict
from mcptest.rules.declare import Rule
from mcptest.rules.session import NO_MESSAGE, Session, Step
from mcptest.wire.jsontext import write_json


class Check:
    """One rule at work on one session."""

    __slots__ = (
        "_findings",
        "_kept",
        "_reason",
        "_unchecked",
        "observed",
        "of_server",
        "rule",
        "session",
        "violations",
    )

    def __init__(self, rule: Rule, session: Session, kept: int = DEFAULT_LIMITS.findings) -> None:
        self.rule = rule
        self.session = session
        self.observed = 0
        self.of_server = 0
        """How much of that the server sent."""
        self.violations = 0
        self._kept = kept
        self._findings: list[Finding] = []
        self._reason = ""
        self._unchecked = ""

    def saw(self, step: Step | None = None) -> None:
        """The capture exercised the rule here."""
        self.observed += 1
        if step is not None and step.sender == "server":
            self.of_server += 1

    def violated(
        self,
        step: Step | None,
        message: str,
        *,
        expected: str | None = None,
        actual: str | None = None,
        pointer: str | None = None,
    ) -> None:
        """It is broken here. Text of the peer may be passed in as it is: it is made safe here."""
        self.violations += 1
        if len(self._findings) >= self._kept:
            return
        self._findings.append(
            Finding(
                message=show(message, 400),
                record=step.place if step else None,
                sender=step.sender or None if step else None,
                expected=show(expected, 300) if expected is not None else None,
                actual=show(actual, 300) if actual is not None else None,
                excerpt=_excerpt(step) if step else None,
                pointer=show(pointer, 200) if pointer else None,
            )
        )

    def inconclusive(self, reason: str) -> None:
        """It can't be judged; counts only if nothing else was seen that can be."""
        self._reason = self._reason or reason

    def unchecked(self, reason: str) -> None:
        """Something that it is about costs too much to look at: it does not pass, whatever else
        was seen."""
        self._unchecked = self._unchecked or reason

    def verdict(self) -> Verdict:
        """A violation fails, something seen passes, and silence is neither."""
        if self.violations:
            return self._verdict(Outcome.FAIL)
        if self._unchecked:
            return self._verdict(Outcome.INCONCLUSIVE, self._unchecked, unchecked=True)
        if self.observed:
            return self._verdict(Outcome.PASS)
        if self._reason:
            return self._verdict(Outcome.INCONCLUSIVE, self._reason)
        return self._verdict(Outcome.NOT_OBSERVED, "nothing in the capture exercised it")

    def verdict_without_revision(self) -> Verdict:
        """The rule holds in some revisions only, and the capture does not say which it speaks."""
        if not self.violations:
            return self.verdict()  # what breaks nothing conforms in each of them
        reason = (
            f"holds in {self.rule.window}, and the capture does not say which revision it speaks: "
            "name it with --spec-version"
        )
        return Verdict(self.rule.id, Outcome.INCONCLUSIVE, reason, self.observed)

    def verdict_on_the_client(self) -> Verdict:
        """The server refused to speak the only revision that was tried, and is not held to it."""
        if all(finding.sender == "client" for finding in self._findings):
            return self.verdict()
        reason = f"holds in {self.rule.window}, and the server did not speak such a revision"
        return Verdict(self.rule.id, Outcome.INCONCLUSIVE, reason, self.observed)

    def _verdict(self, outcome: Outcome, reason: str = "", *, unchecked: bool = False) -> Verdict:
        return Verdict(
            rule=self.rule.id,
            outcome=outcome,
            reason=reason,
            observed=max(self.observed, self.violations),
            findings=tuple(self._findings),
            findings_total=self.violations,
            unchecked=unchecked,
        )


def _excerpt(step: Step) -> str | None:
    raw = step.message.raw
    if step.message is NO_MESSAGE:
        record = step.record
        line = record.raw if isinstance(record, Frame) else b""
        raw = line or msgspec.json.encode(record)  # an empty line shows as the record of it
    elif not raw:  # a message of a batch
        raw = write_json(step.message.value)
    return show(raw, 200)
