"""A tool that is a command of ours: started, told of while it runs, and made into a result."""

from __future__ import annotations

import json
import shlex
from collections.abc import Generator, Iterator
from typing import Any, TypeAlias

import msgspec

from mcptest.commands.mcp.command_process import (
    REPORT,
    CommandProcess,
    CommandProcesses,
    WorkFolder,
    environment_for,
    interpreter,
)
from mcptest.commands.mcp.roots import AllowedServer
from mcptest.core.errors import ExitCode, McptestError
from mcptest.core.redaction import redaction
from mcptest.core.results import RunReport
from mcptest.core.safe_text import show
from mcptest.report import agent
from mcptest.report.doctor import DoctorReport, DoctorVerdict
from mcptest.report.stored import read_stored
from mcptest.report.verdicts import SessionsReport
from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import ToolFailure, Until
from mcptest.servers.demo.tool_list import Call, failure

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


class ToolCommand(msgspec.Struct, frozen=True):
    """One command line of ours."""

    words: tuple[str, ...]
    """With the copies of the agent's files."""
    repeat: tuple[str, ...] = ()
    """The same for a person, with the names that the agent gave."""
    server: AllowedServer | None = None
    limit: int = DEFAULT_LIMIT
    keeps_report: bool = True
    lacks_agent_form: bool = False
    """Whether the command itself has no form for agents."""
    module: str = "mcptest"
    invalid_is_a_verdict: bool = False
    """Whether exit code 2 is what was to be found out."""


class CommandOutput(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str


def run_command(
    order: ToolCommand, call: Call, place: WorkFolder, children: CommandProcesses
) -> Running:
    """Run one command to its end and give its result."""
    output = yield from await_command(order, call, place, children)
    return result_of(order, output, place, call)


def await_command(
    order: ToolCommand, call: Call, place: WorkFolder, children: CommandProcesses
) -> Generator[Any, Any, CommandOutput]:
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
    return _output_of(child, order)


def _what(order: ToolCommand) -> str:
    """What is running, for whoever waits for it."""
    if order.module != "mcptest":
        return "the check of the suite"
    return " ".join(order.words[: 2 if order.words[0] == "compliance" else 1])


def _leave(child: CommandProcess, place: WorkFolder) -> None:
    """Where nobody wants the rest, it is ended; its folder goes when it is gone."""
    if not child.ended:
        place.in_use = True
        child.at_end = place.close
        child.stop()


def _output_of(child: CommandProcess, order: ToolCommand) -> CommandOutput:
    if child.overflowed:
        raise ToolFailure("it printed more than can be kept; name fewer things at once")
    if child.seconds > order.limit and child.code in {ExitCode.INTERRUPTED, -15, -9}:
        raise ToolFailure(
            f"it was not done after {order.limit} s and was ended; pass a larger limit "
            f"(up to {MAX_LIMIT}), or name less at once"
        )
    return CommandOutput(child.code, _text(child.out), _text(child.err))


def _text(raw: bytearray) -> str:
    return raw.decode("utf-8", "backslashreplace").strip("\n")


def result_of(order: ToolCommand, output: CommandOutput, place: WorkFolder, call: Call) -> Obj:
    code = output.code
    if code == ExitCode.USAGE and order.invalid_is_a_verdict:
        return outcome(call, order, "failed", code, _cut(output.err), b"")
    verdict = _VERDICTS.get(ExitCode(code)) if code in set(ExitCode) else None
    if verdict is None:
        said = _cut(output.err or output.out) or f"the command ended with {code}"
        advice = _WHAT_TO_DO.get(ExitCode(code), "") if code in set(ExitCode) else ""
        return failure(f"{said}\n{advice}".strip())
    report = place.report()
    said = _agent_text(report, order, code) or output.out or output.err
    return outcome(call, order, verdict, code, _cut(said), report)


def _agent_text(report: bytes, order: ToolCommand, code: int) -> str:
    if not order.lacks_agent_form:
        return ""
    return report_for_agents(report, code, _repeat(order))


def outcome(
    call: Call, order: ToolCommand, verdict: str, code: int, text: str, report: bytes
) -> Obj:
    """A verdict as text for a model, and as data. What is too long for a context is left out."""
    value: Obj = {"verdict": verdict, "exit_code": int(code), "repeat": _repeat(order)}
    if 0 < len(report) <= MAX_REPORT:
        value["report"] = json.loads(report)
    else:
        value["text"] = text
    return tool_result(call, text or verdict, value)


def tool_result(call: Call, text: str, value: Obj) -> Obj:
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


def _repeat(order: ToolCommand) -> str:
    return shlex.join(["mcptest", *order.repeat])


def _cut(text: str) -> str:
    """What people and models read: no control codes, and not more than they can take in."""
    lines = [show(line, 2_000) for line in text.splitlines()]
    whole = "\n".join(lines)
    if len(whole) <= MAX_TEXT:
        return whole
    return whole[:MAX_TEXT] + f"\n… and {len(whole) - MAX_TEXT} more characters"


# -- Reports of commands that know no `--format agent`, in that form -----------------------------

MAX_BYTES = 8 * 1024 * 1024
_SHOWN = 400


def report_for_agents(report: bytes, code: int, repeat: str) -> str:
    """The report for a program that reads text; nothing where it can't be told so."""
    if not 0 < len(report) <= MAX_BYTES:
        return ""
    try:
        stored = read_stored(report, "report").report
    except McptestError:
        return ""  # of another kind: the text of the command stands
    if isinstance(stored, DoctorReport):
        return "\n".join(_diagnoses(stored, repeat))
    if isinstance(stored, SessionsReport):
        run_command = stored.as_run(strict="--strict" in repeat)
    elif isinstance(stored, RunReport):
        run_command = _without_commands(stored)
    else:
        return ""
    return agent.render(run_command, code, repeat=repeat).decode().strip("\n")


def _without_commands(run_command: RunReport) -> RunReport:
    """Anybody may have written the file: no command in it is handed to whoever might run it."""
    results = tuple(
        msgspec.structs.replace(one, proof=msgspec.structs.replace(one.proof, repeat=""))
        if one.proof is not None
        else one
        for one in run_command.results
    )
    return msgspec.structs.replace(run_command, results=results)


def _diagnoses(report: DoctorReport, repeat: str) -> Iterator[str]:
    counts = ", ".join(
        f"{number} {word.replace('_', ' ')}"
        for word, number in msgspec.structs.asdict(report.summary).items()
        if number
    )
    verdict = "FAIL" if report.failed else "PASS"
    yield f"{verdict}: from {report.older.value} to {report.newer.value}: {counts}"
    for item in report.items:
        if item.verdict in {DoctorVerdict.BREAKS, DoctorVerdict.UNKNOWN}:
            said = f"{item.title}: {item.verdict.value}: {item.detail}"
            fix = f" / fix: {item.fix}" if item.fix else ""
            yield f"{repeat}  # {show(item.id, 60)}: {show(said + fix, _SHOWN)}"
