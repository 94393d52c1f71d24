"""A tool that is a command of ours: started, told of while it runs, and made into a result."""

from __future__ import annotations

import json
import shlex
from collections.abc import Generator
from typing import Any, TypeAlias

import msgspec

from mcptest.agents.allowed import AllowedServer
from mcptest.agents.child import Child, Children
from mcptest.agents.workplace import REPORT, Workplace, environment_for, interpreter
from mcptest.model.errors import ExitCode
from mcptest.model.redaction import redaction
from mcptest.model.show import show
from mcptest.peer.demo import versions
from mcptest.peer.demo.call import Call, failure
from mcptest.peer.demo.exchange import ToolFailure, Until

Obj: TypeAlias = dict[str, Any]
Running: TypeAlias = Generator[Any, Any, Obj]

MAX_TEXT = 20_000
MAX_REPORT = 20_000
DEFAULT_LIMIT = 120
MAX_LIMIT = 600
_VERDICTS = {
    ExitCode.OK: "passed",
    ExitCode.FAILED: "failed",
    ExitCode.NOTHING_MATCHED: "nothing ran",
}
_WHAT_TO_DO = {
    ExitCode.USAGE: "Correct what is said above and call again.",
    ExitCode.UNREACHABLE: "The server could not be started or reached; nothing was judged.",
    ExitCode.INTERRUPTED: "It was interrupted before its end.",
}


class Order(msgspec.Struct, frozen=True):
    """One command line of ours."""

    words: tuple[str, ...]
    """With the copies of the agent's files."""
    repeat: tuple[str, ...] = ()
    """The same for a person, with the names that the agent gave."""
    server: AllowedServer | None = None
    limit: int = DEFAULT_LIMIT
    keeps_report: bool = True
    is_retold: bool = False
    """Whether the command itself has no form for agents."""
    module: str = "mcptest"
    invalid_is_a_verdict: bool = False
    """Whether exit code 2 is what was to be found out."""


class Finished(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str


def run(order: Order, call: Call, place: Workplace, children: Children) -> Running:
    """Run one command to its end and give its result."""
    finished = yield from attend(order, call, place, children)
    return result_of(order, finished, place, call)


def attend(
    order: Order, call: Call, place: Workplace, children: Children
) -> Generator[Any, Any, Finished]:
    """Run one command to its end. Whoever closes this generator ends the command."""
    report = [f"--json-file={REPORT}"] if order.keeps_report else []
    words = [*interpreter(), "-m", order.module, *order.words, *report]
    environment = environment_for(order.server, place)
    child = children.start(call.world.loop, words, place.folder, environment)
    what = _what(order)
    try:
        last = 0
        while not child.ended:
            yield Until(child.wait)
            if child.seconds > order.limit:
                child.stop()
            elif int(child.seconds) > last:
                last = int(child.seconds)
                call.progress(last, order.limit, f"{what} has been running for {last} s")
    finally:
        _leave(child, place)
    return _finished(child, order)


def _what(order: Order) -> str:
    """What is running, for whoever waits for it."""
    if order.module != "mcptest":
        return "the check of the suite"
    return " ".join(order.words[: 2 if order.words[0] == "compliance" else 1])


def _leave(child: Child, place: Workplace) -> None:
    """Where nobody wants the rest, it is ended; its folder goes when it is gone."""
    if not child.ended:
        place.in_use = True
        child.at_end = place.close
        child.stop()


def _finished(child: Child, order: Order) -> Finished:
    if child.overflowed:
        raise ToolFailure("it printed more than can be kept; name fewer things at once")
    if child.seconds > order.limit and child.code in {ExitCode.INTERRUPTED, -15, -9}:
        raise ToolFailure(
            f"it was not done after {order.limit} s and was ended; pass a larger limit "
            f"(up to {MAX_LIMIT}), or name less at once"
        )
    return Finished(child.code, _text(child.out), _text(child.err))


def _text(raw: bytearray) -> str:
    return raw.decode("utf-8", "backslashreplace").strip("\n")


def result_of(order: Order, finished: Finished, place: Workplace, call: Call) -> Obj:
    code = finished.code
    if code == ExitCode.USAGE and order.invalid_is_a_verdict:
        return outcome(call, order, "failed", code, _cut(finished.err), b"")
    verdict = _VERDICTS.get(ExitCode(code)) if code in set(ExitCode) else None
    if verdict is None:
        said = _cut(finished.err or finished.out) or f"the command ended with {code}"
        advice = _WHAT_TO_DO.get(ExitCode(code), "") if code in set(ExitCode) else ""
        return failure(f"{said}\n{advice}".strip())
    report = place.report()
    said = _retold(report, order, code) or finished.out or finished.err
    return outcome(call, order, verdict, code, _cut(said), report)


def _retold(report: bytes, order: Order, code: int) -> str:
    if not order.is_retold:
        return ""
    from mcptest.agents.retold import retold  # half of the start-up time

    return retold(report, code, _repeat(order))


def outcome(call: Call, order: Order, verdict: str, code: int, text: str, report: bytes) -> Obj:
    """A verdict as text for a model, and as data. What is too long for a context is left out."""
    value: Obj = {"verdict": verdict, "exit_code": int(code), "repeat": _repeat(order)}
    if 0 < len(report) <= MAX_REPORT:
        value["report"] = json.loads(report)
    else:
        value["text"] = text
    return told(call, text or verdict, value)


def told(call: Call, text: str, value: Obj) -> Obj:
    """A result in both forms; data only where the revision knows it.

    The data is there once more as text, for clients that don't know it, as the specification asks.
    """
    value = redaction.value(value)
    result: Obj = {"content": [{"type": "text", "text": redaction.text(text)}]}
    if call.knows(versions.V2025_06_18):
        again = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        result["content"].append({"type": "text", "text": again})
        result["structuredContent"] = value
    return result


def _repeat(order: Order) -> str:
    return shlex.join(["mcptest", *order.repeat])


def _cut(text: str) -> str:
    """What people and models read: no control codes, and not more than they can take in."""
    lines = [show(line, 2_000) for line in text.splitlines()]
    whole = "\n".join(lines)
    if len(whole) <= MAX_TEXT:
        return whole
    return whole[:MAX_TEXT] + f"\n… and {len(whole) - MAX_TEXT} more characters"
