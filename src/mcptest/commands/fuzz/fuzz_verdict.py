"""What became of one input: the verdict, why, and the proof of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from mcptest.core.masking import Masker
from mcptest.core.message import ABSENT
from mcptest.core.safe_text import show
from mcptest.probe.live_server import OutcomeKind, RequestOutcome
from mcptest.report.fuzz import FuzzVerdict
from mcptest.schema.tool_inputs import SHELL_RAN
from mcptest.session.client import Reply
from mcptest.suite.sent_message import texts_in

# -- What an answer to a bad input must not hold -------------------------------------------------

_LONGEST: Final = 200_000
"""More of an answer is not searched."""

_Rules: TypeAlias = tuple[tuple[str, str], ...]

TRACES: Final[_Rules] = (
    ("a Python traceback", r"Traceback \(most recent call last\)"),
    ("a Python stack frame", r'File "[^"\n]{1,300}", line \d+, in '),
    ("a JavaScript stack trace", r"\n\s{2,}at (?:async )?[^\n]{0,200}[(/][^\n]{1,300}:\d+:\d+\)?"),
    ("a Go stack trace", r"goroutine \d+ \[[a-z ]+\]:"),
    ("a Go panic", r"\bpanic: (?:runtime error|[a-z]+:)"),
    ("a Rust panic", r"thread '[^'\n]{0,80}' panicked at "),
    ("a Java stack trace", r"\n\s+at [\w.$<>]+\([\w$]+\.(?:java|kt|scala):\d+\)"),
    ("a .NET stack trace", r"\n\s+at [^\n]{1,300} in [^\n]{1,300}:line \d+"),
    ("a PHP error", r"PHP (?:Fatal|Parse) error: |Stack trace:\n#0 "),
    ("a Ruby stack trace", r"\.rb:\d+:in [`']"),
)
INSIDES: Final[_Rules] = (
    (
        "the path of a library on the server",
        r"[^\s\"']{0,100}(?:site-packages|node_modules)/[^\s\"']{1,300}",
    ),
    ("a crash inside", r"(?i)segmentation fault|nullpointerexception"),
    ("an attribute error", r"'NoneType' object (?:has no attribute|is not)"),
    ("a type error", r"Cannot read propert(?:y|ies) (?:of|'\w+' of) (?:undefined|null)"),
)
PHRASES: Final[_Rules] = (
    ("a crash inside", r"(?i)\binternal (?:server )?error\b|\bstack trace\b|\bpanic: "),
)
"""Of a tool that reports its own failure. A JSON-RPC error may well be called internal error."""
STOLEN: Final[_Rules] = (
    ("the accounts of the machine: a path led out of its folder", r"root:[^:\n]*:0:0:"),
    ("the output of a shell: the input was run as a command", re.escape(SHELL_RAN)),
    ("a private key", r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"),
    ("an access key", r"\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}\b"),
    ("an API key", r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{24,}\b"),
)


def _searches(*patterns: bytes) -> tuple[Callable[[bytes], object], ...]:
    return tuple(re.compile(pattern).search for pattern in patterns)


_STOLEN_HINTS: Final = _searches(
    *(rb":0:0:", SHELL_RAN.encode(), rb"PRIVATE KEY", rb"AKIA", rb"sk-", rb"gh[pousr]_")
)
_FAILURE_HINTS: Final = _searches(
    *(rb"traceback \(", rb", line ", rb"goroutine ", rb"panic", rb"php ", rb"stack trace"),
    *(rb"\.rb:", rb"site-packages", rb"node_modules", rb"segmentation fault", rb"nonetype"),
    *(rb"nullpointerexception", rb"cannot read propert", rb"internal (?:server )?error"),
    *(rb"at (?<=\\[nrt]at )", rb" at (?:(?<=  at )|(?<=\\[nrt] at ))"),
)
"""What is in the bytes of every answer that a rule finds something in, here in small letters.

Nearly no answer has to be read. Patterns that begin with a plain letter are the fastest search
that Python has, many times faster than `in`, and than all of them in one.
"""
_ESCAPED: Final = re.compile(rb"\\u00(?:[2-7]|0[9aAdD])")
"""Letters and line ends that need no such escape may hide a word."""
_SECRET: Final = "a secret of the server's environment"


def may_leak(raw: bytes, *, failed: bool) -> bool:
    """Whether an answer has to be looked at more closely. `failed`: it reports a failure."""
    for found_in in _STOLEN_HINTS:
        if found_in(raw):
            return True
    if b"\\u00" in raw and _ESCAPED.search(raw):
        return True
    return failed and _may_tell_of_a_crash(raw.lower())


def _may_tell_of_a_crash(small: bytes) -> bool:
    return any(found_in(small) for found_in in _FAILURE_HINTS)


def leak_in(answer: Mapping[str, Any], sent: Any, mask: Callable[[str], str]) -> FuzzFinding | None:
    """The first leak in an answer. `answer`: what a message holds beside its id.

    What was sent comes back from many tools, which tells nothing. Traces and insides count where
    a failure is reported; what a tool reads to order may hold anything.
    """
    result = answer.get("result")
    reported = isinstance(result, Mapping) and result.get("isError") is True
    rules = STOLEN
    if reported or "error" in answer:
        rules = (*TRACES, *INSIDES, *(PHRASES if reported else ()), *STOLEN)
    text = "\n".join(texts_in(answer))[:_LONGEST]
    given = "\n".join(texts_in(sent))
    for what, pattern in rules:
        for found in re.finditer(pattern, text):
            if found.group() not in given:
                words = f"the answer holds {what}: {show(found.group().strip(), 160)}"
                return FuzzFinding(FuzzVerdict.LEAK, words, pattern)
    if mask(text) != text and mask(given) == given:
        return FuzzFinding(FuzzVerdict.LEAK, f"the answer holds {_SECRET}: ***")
    return None


# -- What became of one input --------------------------------------------------------------------

_VERDICTS = {
    OutcomeKind.CRASHED: FuzzVerdict.CRASH,
    OutcomeKind.HUNG: FuzzVerdict.HANG,
    OutcomeKind.PROTOCOL: FuzzVerdict.PROTOCOL,
}
_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|/[^\s:]+|[0-9]+|0x[0-9a-f]+")
_TELLING = 90


class FuzzFinding(msgspec.Struct, frozen=True):
    """One input and its end."""

    verdict: FuzzVerdict
    detail: str = ""
    pattern: str = ""
    """Of a leak: the regular expression that found it; empty when it is a secret, which is not
    written down."""
    outcome: RequestOutcome | None = None
    """None: it was one of many under way."""
    afterwards: bool = False
    """Whether there was an answer first."""
    wrong_code: bool = False
    """A malformed request was refused, with the code for internal errors."""

    @property
    def was_waited_for(self) -> bool:
        """Whether it took the whole time-out to find out."""
        silent = self.outcome is not None and self.outcome.reply is None
        return self.verdict is FuzzVerdict.HANG or (self.verdict is FuzzVerdict.PROTOCOL and silent)

    @property
    def signature(self) -> tuple[FuzzVerdict, bool, str]:
        """What failures of the same cause have in common."""
        answered = self.outcome is None or self.outcome.reply is not None
        words = _VARIABLE.sub("_", self.detail if answered else self.detail.split("\n", 1)[0])
        return self.verdict, answered, words[:_TELLING]


def judged_call(
    kind: OutcomeKind, detail: str, reply: Reply | None, arguments: Any, masker: Masker
) -> FuzzFinding:
    """The verdict on a call. A failure that the tool reports, and a refusal, are as it should be.

    A request whose `arguments` are no object never reaches the tool: to refuse it with the wrong
    code is no crash.
    """
    verdict = _VERDICTS.get(kind, FuzzVerdict.PASSED)
    malformed = arguments is not ABSENT and not isinstance(arguments, dict)
    wrong_code = verdict is FuzzVerdict.CRASH and reply is not None and malformed
    if verdict is not FuzzVerdict.PASSED and not wrong_code:
        return FuzzFinding(verdict, detail)
    failed = kind is not OutcomeKind.HEALTHY
    if reply is not None and (not masker.idle or may_leak(reply.message.raw, failed=failed)):
        message = reply.message
        parts = {"result": message.result, "error": message.error}
        answer = {name: part for name, part in parts.items() if part is not ABSENT}
        leak = leak_in(answer, arguments, masker.text)
        if leak is not None:
            return leak
    return FuzzFinding(FuzzVerdict.PASSED, detail, wrong_code=wrong_code)
