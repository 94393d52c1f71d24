"""What `mcptest lint` does: read the lists of a server or a file, call what it may, report."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.commands.command_line import options_again
from mcptest.commands.lint.cli import THRESHOLDS
from mcptest.commands.live_display import live_progress
from mcptest.commands.reporting import captures_for_html, conclude
from mcptest.commands.server_options import Explored, exploring, repeat_command
from mcptest.core.capture import Frame
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.message import ABSENT, Kind
from mcptest.core.redaction import redaction
from mcptest.core.results import made_since
from mcptest.core.safe_text import show
from mcptest.probe.live_server import RequestOutcome, Subject, head_of
from mcptest.report.lint import LintReport, rule_lines
from mcptest.report.progress import Progress
from mcptest.report.terminal import Style, say
from mcptest.rules.lint.finding import OWN_PROFILE, LintFinding, LintLimits, LintRule
from mcptest.rules.lint.linter import TRIALS, Called, chosen_rules, lint, lint_called, unknown_codes
from mcptest.rules.lint.surface import Surface, surface_of
from mcptest.schema.tool_inputs import input_for
from mcptest.session.connection import Stopped
from mcptest.session.pages import Offer, check_tool_names, named_items
from mcptest.session.tool_safety import is_safe
from mcptest.transport.files import LARGEST_INPUT, read_input, unreadable
from mcptest.wire.envelope import decode
from mcptest.wire.json_text import read_json


def run_lint(arguments: argparse.Namespace) -> int:
    rules = _rules(arguments)
    limits = _limits(arguments)
    if arguments.list:
        for line in rule_lines(rules, Style.of(sys.stdout, no_color=arguments.no_color)):
            say(sys.stdout, line + "\n")
        return ExitCode.OK
    look = _from_file if arguments.tools else _from_server
    with captures_for_html(arguments):
        report = replace(
            look(arguments, rules, limits),
            strict=arguments.strict,
            profile=arguments.profile,
            threshold=arguments.max_findings or None,  # 0 is mcp-assert's way to say: none
        )
        again = partial(_repeat, arguments)
        shown = {"fix": arguments.fix, "notes": arguments.verbose or bool(arguments.select)}
        nothing = "nothing to lint: no tools, prompts or resources"
        return conclude(arguments, report, repeat=again, nothing=nothing, **shown)


def _rules(arguments: argparse.Namespace) -> list[LintRule]:
    def codes(words: Sequence[str]) -> list[str]:
        return [code.strip().upper() for word in words for code in word.split(",") if code.strip()]

    select, ignore = codes(arguments.select), codes(arguments.ignore)
    for code in unknown_codes([*select, *ignore]):
        raise UsageError(
            f"unknown lint code {show(code, 40)}", hint="`mcptest lint --list` lists them"
        )
    rules = chosen_rules(select, ignore, arguments.profile)
    if not rules:
        raise UsageError("--select and --ignore leave no code to check")
    return rules


def _limits(arguments: argparse.Namespace) -> LintLimits:
    given = {name: getattr(arguments, name) for name in (*THRESHOLDS, "similarity")}
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, value in chosen.items():
        if value < 0:
            raise UsageError(f"--{name.replace('_', '-')} must not be negative: {value}")
    if arguments.similarity is not None and not 0 < arguments.similarity <= 1:
        raise UsageError("--similarity must be between 0 and 1")
    if arguments.max_findings is not None and arguments.max_findings < 0:
        raise UsageError("--max-findings must not be negative")
    return LintLimits(**chosen)


def _from_file(
    arguments: argparse.Namespace, rules: Sequence[LintRule], limits: LintLimits
) -> LintReport:
    if arguments.server or arguments.server_command:
        raise UsageError("--tools and a server are both given", hint="give one of them")
    if arguments.call_tools or arguments.detect_nondeterminism:
        raise UsageError("--call-tools and --detect-nondeterminism need a server, not --tools")
    begun = time.monotonic()
    listed = listed_in(arguments.tools)
    tools, prompts, resources, templates = (tuple(listed.lists.get(name, ())) for name in LISTS)
    offer = Offer(tools, prompts, resources, templates)
    surface = surface_of(*_narrowed(arguments.tool, offer).lists.values())
    findings = tuple(lint(surface, rules, limits))
    return LintReport(
        server=str(arguments.tools),
        server_name=listed.server,
        server_version=listed.version,
        **made_since(begun),
        **_counts(surface),
        findings=findings,
        notes=listed.notes,
    )


def _from_server(
    arguments: argparse.Namespace, rules: Sequence[LintRule], limits: LintLimits
) -> LintReport:
    begun = time.monotonic()
    with exploring(arguments) as explored:
        subject = explored.subject
        offer = _narrowed(arguments.tool, subject.offer())
        info, met = subject.client.server.info, subject.client.met
        called, notes = _findings_of_calls(arguments, explored, offer, rules, limits)
        subject.close()  # only now it is known whether its capture is whole
        mask = subject.masker.text
    surface = surface_of(*offer.lists.values())
    return LintReport(
        **head_of(explored.target, info, met, begun),
        **_counts(surface),
        findings=(*lint(surface, rules, limits), *called),
        problems={method: mask(reason) for method, reason in offer.problems.items()},
        notes=(*notes, *subject.notes),
        interrupted=explored.stop.is_set(),
    )


def _narrowed(wanted: Sequence[str], offer: Offer) -> Offer:
    """With `--tool` these tools alone. UsageError for one that is not listed."""
    if not wanted:
        return offer
    if "tools/list" not in offer.problems:
        check_tool_names(wanted, offer.tools)
    tools = tuple(one for one in named_items(offer.tools) if one["name"] in wanted)
    return Offer(tools, capabilities=offer.capabilities, problems=offer.problems)


def _findings_of_calls(
    arguments: argparse.Namespace,
    explored: Explored,
    offer: Offer,
    rules: Sequence[LintRule],
    limits: LintLimits,
) -> tuple[list[LintFinding], list[str]]:
    """Findings of the codes that need answers; tools that may write are never called."""
    needed = {"E301": arguments.call_tools, "W107": arguments.detect_nondeterminism}
    chosen = [rule for rule in rules if needed.get(rule.code)]
    if not chosen:
        return [], []
    skipped = sum(isinstance(tool, dict) and not is_safe(tool) for tool in offer.tools)
    often = any(rule.code == "W107" for rule in chosen)
    with live_progress(arguments, len(offer.tools) - skipped) as progress:
        answers = called_tools(explored.subject, offer, often=often, progress=progress)
        found = list(lint_called(answers, chosen, limits))
    note = f"{skipped} tools were not called: they are not marked readOnlyHint"
    return found, [note] if skipped else []


def _counts(surface: Surface) -> dict[str, Any]:
    kinds = ("tools", "prompts", "resources", "templates")
    counts = {kind: len(getattr(surface, kind)) for kind in kinds}
    return {**counts, "tokens": surface.size // 4}


def _repeat(arguments: argparse.Namespace) -> str:
    names = ["strict", "tool", *(["profile"] if arguments.profile != OWN_PROFILE else [])]
    if arguments.tools:
        return shlex.join(["mcptest", "lint", *options_again(arguments, "tools", *names)])
    return redaction.text(repeat_command(arguments, *names))


def called_tools(
    subject: Subject, offer: Offer, *, often: bool, progress: Progress
) -> Iterator[Called]:
    """Call every tool that says that it only reads, once or several times, with the same input."""
    for tool in offer.tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not is_safe(tool):
            continue
        progress.begin(name, name)
        arguments = input_for(tool).arguments
        answers = []
        for _ in range(TRIALS if often else 1):
            try:
                outcome = subject.call(name, arguments)
            except Stopped:
                return  # what was seen so far is still worth a report
            if outcome.reply is None:
                break  # what it breaks is for `audit` to say
            answers.append(_text_of(outcome))
        progress.finish(name, name)
        yield Called(name, answers)


def _text_of(outcome: RequestOutcome) -> str:
    reply = outcome.reply
    content: Any = reply.result.get("content") if reply is not None and reply.ok else None
    if not isinstance(content, list):
        return str(outcome.detail)
    texts = (block.get("text") for block in content if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


# -- What was listed once, from a file -----------------------------------------------------------

LISTS = ("tools", "prompts", "resources", "resourceTemplates")
_HINT = (
    "--tools takes a tools/list result, an array of tools, or a capture "
    "(mcptest record SERVER --out FILE)"
)


class ListsInFile(msgspec.Struct):
    """What a file holds, list by list."""

    server: str = ""
    version: str = ""
    lists: dict[str, list[Any]] = {}
    notes: tuple[str, ...] = ()

    def add(self, fields: Mapping[str, Any], *, anew: bool = True) -> None:
        """Take the lists of one answer: from the first page on, or one more page."""
        for name in LISTS:
            items = fields.get(name)
            if isinstance(items, list):
                self.lists[name] = [*([] if anew else self.lists.get(name, [])), *items]
        info = fields.get("serverInfo")
        if isinstance(info, dict):
            self.server = str(info.get("name") or self.server)
            self.version = str(info.get("version") or self.version)


def listed_in(path: Path) -> ListsInFile:
    """Raises UsageError when the file can't be read, or nothing is listed in it."""
    listed = ListsInFile(server=path.name)
    try:
        is_small = path.stat().st_size <= LARGEST_INPUT
    except OSError as error:
        raise unreadable(path, "", error) from None
    # One JSON value; what is something else, such as lines of a capture, is streamed.
    value = read_json(read_input(path).removeprefix(b"\xef\xbb\xbf"))[0] if is_small else ABSENT
    if isinstance(value, list) and not any(_is_session(one) for one in value):
        listed.add({"tools": value})
    elif isinstance(value, dict) and not _is_session(value):
        inner = value.get("result")
        listed.add(inner if isinstance(inner, dict) else value)
    if not listed.lists:
        _add_capture(path, listed)
    if not listed.lists:
        raise UsageError(f"{show(str(path))}: no list of tools, prompts or resources", hint=_HINT)
    return listed


def _is_session(value: Any) -> bool:
    return isinstance(value, dict) and ("exchanges" in value or "kind" in value)


def _add_capture(path: Path, listed: ListsInFile) -> None:
    """The first session that lists something; what the others list is said to be left out."""
    from mcptest.transport.capture_file import open_capture

    left_out = 0
    try:
        for source in open_capture(str(path)):
            if listed.lists:
                left_out += 1
            else:
                listed.server = source.label or listed.server
                pages: dict[str, bool] = {}
                for _, record in source.records:
                    if type(record) is Frame:
                        message = decode(record.raw)
                        if message.kind is Kind.REQUEST and record.sender == "client":
                            pages[repr(message.id)] = "cursor" in message.params
                        elif record.sender == "server" and isinstance(message.result, dict):
                            anew = not pages.get(repr(message.id), False)
                            listed.add(message.result, anew=anew)
    except UsageError as error:
        raise UsageError(error.message, hint=_HINT) from None
    if left_out:
        listed.notes = (f"{left_out} more sessions of the capture were not linted",)
