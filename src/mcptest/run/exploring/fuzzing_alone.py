"""One call with nothing else under way: whatever becomes of the server is its doing."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mcptest.explore.fuzz.case import params_of
from mcptest.model.fuzz import Verdict
from mcptest.run.exploring.fuzzing_pace import Pace
from mcptest.run.exploring.fuzzing_verdict import Finding, judged_call
from mcptest.run.exploring.subject import Subject


class Alone:
    """Calls of one tool on one server, one at a time."""

    def __init__(self, subject: Subject, tool: str, timeout: float) -> None:
        self.subject = subject
        self._tool = tool
        self._timeout = timeout
        self.pace = Pace(timeout)
        self.calls = 0

    def call(self, arguments: Any) -> Finding:
        """The verdict with its proof. A server that dies after its answer crashed too."""
        params = params_of(self._tool, arguments)
        outcome = self.subject.ask("tools/call", params, timeout=self._timeout)
        self.calls += 1
        if outcome.reply is not None:
            self.pace.waited(outcome.duration_ms / 1000)
            self.subject.remark(outcome.reply, f"tools/call {self._tool}")
        mask = self.subject.given
        finding = judged_call(outcome.kind, outcome.detail, outcome.reply, arguments, mask)
        if finding.verdict is Verdict.PASSED:
            aftermath = self.subject.aftermath(self._timeout)
            if aftermath is not None:
                detail = f"it answered, and then: {aftermath.detail}"
                verdict = judged_call(aftermath.kind, detail, None, arguments, mask).verdict
                proof = replace(aftermath, sent=outcome.sent, received=outcome.received, reply=None)
                return Finding(verdict, detail, outcome=proof, afterwards=True)
        return replace(finding, outcome=outcome)
