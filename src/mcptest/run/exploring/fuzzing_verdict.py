"""What became of one input: the verdict, why, and the proof of it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mcptest.explore.fuzz.leaks import leak_in, may_leak
from mcptest.model.fuzz import Verdict
from mcptest.model.masking import Masker
from mcptest.model.message import ABSENT
from mcptest.peer.client import Reply
from mcptest.run.exploring.outcome import Kind, Outcome

_VERDICTS = {
    Kind.CRASHED: Verdict.CRASH,
    Kind.HUNG: Verdict.HANG,
    Kind.PROTOCOL: Verdict.PROTOCOL,
}
_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|/[^\s:]+|[0-9]+|0x[0-9a-f]+")
_TELLING = 90


class Finding(msgspec.Struct, frozen=True):
    """One input and its end."""

    verdict: Verdict
    detail: str = ""
    pattern: str = ""
    outcome: Outcome | None = None
    """None: it was one of many under way."""
    afterwards: bool = False
    """Whether there was an answer first."""
    wrong_code: bool = False
    """A malformed request was refused, with the code for internal errors."""

    @property
    def was_waited_for(self) -> bool:
        """Whether it took the whole time-out to find out."""
        silent = self.outcome is not None and self.outcome.reply is None
        return self.verdict is Verdict.HANG or (self.verdict is Verdict.PROTOCOL and silent)

    @property
    def signature(self) -> tuple[Verdict, bool, str]:
        """What failures of the same cause have in common."""
        answered = self.outcome is None or self.outcome.reply is not None
        words = _VARIABLE.sub("_", self.detail if answered else self.detail.split("\n", 1)[0])
        return self.verdict, answered, words[:_TELLING]


def judged_call(
    kind: Kind,
    detail: str,
    reply: Reply | None,
    arguments: Any,
    masker: Masker,
) -> Finding:
    """The verdict on a call. A failure that the tool reports, and a refusal, are as it should be.

    A request whose `arguments` are no object never reaches the tool: to refuse it with the wrong
    code is no crash.
    """
    verdict = _VERDICTS.get(kind, Verdict.PASSED)
    malformed = arguments is not ABSENT and not isinstance(arguments, dict)
    wrong_code = verdict is Verdict.CRASH and reply is not None and malformed
    if verdict is not Verdict.PASSED and not wrong_code:
        return Finding(verdict, detail)
    failed = kind is not Kind.HEALTHY
    if reply is not None and (not masker.idle or may_leak(reply.message.raw, failed=failed)):
        message = reply.message
        parts = {"result": message.result, "error": message.error}
        answer = {name: part for name, part in parts.items() if part is not ABSENT}
        leak = leak_in(answer, arguments, masker.text)
        if leak is not None:
            words = f"the answer holds {leak.what}: {leak.excerpt}"
            return Finding(Verdict.LEAK, words, leak.pattern)
    return Finding(Verdict.PASSED, detail, wrong_code=wrong_code)
