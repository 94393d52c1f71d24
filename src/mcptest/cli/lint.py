"""`mcptest lint`: can a model use what this server offers?"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcptest import __version__
from mcptest.cli.concluded import Views, add_report_options, conclude
from mcptest.cli.explored import exploring
from mcptest.cli.options import add_common_options, add_server_options
from mcptest.cli.report_forms import captures_for_html
from mcptest.explore.lint.finding import OWN_PROFILE, PROFILES
from mcptest.model.errors import ExitCode, McptestError, UsageError

if TYPE_CHECKING:
    from mcptest.cli.explored import Explored
    from mcptest.explore.lint.finding import Finding, Limits, LintReport, LintRule
    from mcptest.explore.lint.surface import Surface
    from mcptest.report.problems import Problems
    from mcptest.run.exploring.subject import Offer

_THRESHOLDS = {
    "max_tools": "tools of a server (20)",
    "max_tokens": "tokens of all tools together (8000)",
    "max_tool_tokens": "tokens of one tool (1000)",
    "max_depth": "levels of an input schema (3)",
    "max_parameters": "parameters of a tool (12)",
    "min_description": "characters of a description, at least (20)",
    "max_description": "characters of a description (500)",
    "max_response_kb": "size of an answer, with --call-tools (100)",
}


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tools", type=Path, metavar="FILE", help="a tools/list answer or a capture, no server")
    add("--strict", action="store_true", help="fail on warnings, too")
    add(
        "--profile",
        choices=PROFILES,
        default=OWN_PROFILE,
        help="mcp-assert: its codes with its severities; notes become errors and warnings",
    )
    add("--fix", action="store_true", help="show a concrete change for each finding")
    add("--select", action="append", default=[], metavar="CODES", help="only these codes")
    add("--ignore", action="append", default=[], metavar="CODES", help="not these codes")
    add("--skip-rules", dest="ignore", action="append", help=argparse.SUPPRESS)
    add("--threshold", type=int, metavar="N", help="fail on more than N errors and warnings")
    add("--call-tools", action="store_true", help="also call tools that only read: E301")
    add(
        "--detect-nondeterminism",
        action="store_true",
        help="also call tools that only read three times: W107",
    )
    add("--list", action="store_true", help="explain the codes, and lint nothing")
    _add_limits(parser)
    add_report_options(parser)
    add_server_options(parser)
    add_common_options(parser)
    parser.set_defaults(timeout="15s", command_name="lint", fixture=None)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("thresholds")
    for name, words in _THRESHOLDS.items():
        group.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=words)
    group.add_argument(
        "--similarity", type=float, metavar="X", help="likeness of two descriptions (0.8)"
    )


def run(arguments: argparse.Namespace) -> int:
    rules = _rules(arguments)
    limits = _limits(arguments)
    if arguments.list:
        return _list(rules, arguments)
    with captures_for_html(arguments):
        return _lint_and_tell(arguments, rules, limits)


def _lint_and_tell(arguments: argparse.Namespace, rules: Sequence[LintRule], limits: Limits) -> int:
    begun = time.monotonic()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    report = _from_file(arguments, rules, limits) if arguments.tools else None
    report = report or _from_server(arguments, rules, limits)
    report = replace(
        report,
        strict=arguments.strict,
        profile=arguments.profile,
        threshold=arguments.threshold or None,  # 0 is mcp-assert's way to say: none
        tool=f"mcptest {__version__}",
        started=started,
        duration_ms=round((time.monotonic() - begun) * 1000),
    )
    return max(conclude(arguments, _views(report, arguments)), _code(report))


def _rules(arguments: argparse.Namespace) -> list[LintRule]:
    from mcptest.explore.lint.linting import chosen_rules, unknown_codes

    select, ignore = _codes(arguments.select), _codes(arguments.ignore)
    for code in unknown_codes([*select, *ignore]):
        raise UsageError(f"no lint code is or begins with {code!r}", hint="see mcptest lint --list")
    rules = chosen_rules(select, ignore, arguments.profile)
    if not rules:
        raise UsageError("--select and --ignore leave no code to lint by")
    return rules


def _codes(words: Sequence[str]) -> list[str]:
    return [code.strip().upper() for word in words for code in word.split(",") if code.strip()]


def _limits(arguments: argparse.Namespace) -> Limits:
    from mcptest.explore.lint.finding import Limits

    given = {name: getattr(arguments, name) for name in (*_THRESHOLDS, "similarity")}
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, value in chosen.items():
        if value < 0:
            raise UsageError(f"--{name.replace('_', '-')} is not negative: {value}")
    if arguments.similarity is not None and not 0 < arguments.similarity <= 1:
        raise UsageError("--similarity is a share between 0 and 1")
    if arguments.threshold is not None and arguments.threshold < 0:
        raise UsageError("--threshold is not negative")
    return Limits(**chosen)


def _list(rules: Sequence[LintRule], arguments: argparse.Namespace) -> int:
    from mcptest.report.lint_text import rule_lines
    from mcptest.report.terminal import Style, say

    for line in rule_lines(list(rules), Style.of(sys.stdout, no_color=arguments.no_color)):
        say(sys.stdout, line + "\n")
    return ExitCode.OK


def _from_file(
    arguments: argparse.Namespace, rules: Sequence[LintRule], limits: Limits
) -> LintReport:
    from mcptest.explore.lint.finding import LintReport
    from mcptest.explore.lint.linting import lint
    from mcptest.explore.lint.surface import surface_of
    from mcptest.run.exploring.lint_file import LISTS, listed_in

    if arguments.server or arguments.server_command:
        raise UsageError("--tools reads a file: give it or a server, not both")
    if arguments.call_tools or arguments.detect_nondeterminism:
        raise UsageError("a file can't be called: --call-tools needs --server")
    listed = listed_in(arguments.tools)
    surface = surface_of(*(listed.lists.get(name, ()) for name in LISTS))
    return LintReport(
        server=listed.server,
        server_version=listed.version,
        counts=_counts(surface),
        findings=tuple(lint(surface, rules, limits)),
        notes=listed.notes,
        tokens=surface.size // 4,
    )


def _from_server(
    arguments: argparse.Namespace, rules: Sequence[LintRule], limits: Limits
) -> LintReport:
    from mcptest.explore.lint.finding import LintReport
    from mcptest.explore.lint.linting import lint
    from mcptest.peer.connection import Stopped
    from mcptest.run.exploring.linting import surface_of_offer
    from mcptest.run.interrupt import stopping_on_signals

    with stopping_on_signals() as stop, exploring(arguments, stop) as explored:
        subject = explored.subject
        try:
            offer = subject.offer()
            info = subject.client.server.info
            called, notes = _called(arguments, explored, offer, rules, limits)
        except Stopped:
            raise KeyboardInterrupt from None  # nothing was seen yet that could be reported
        except McptestError as error:
            raise error.masked(subject.masker.cut_text) from None
        subject.close()  # only now it is known whether its capture is whole
        mask = subject.masker.text
        peer = mask(explored.target.label)
        troubles = subject.notes
    surface = surface_of_offer(offer)
    return LintReport(
        server=str(info.get("name", "")) or peer,
        server_version=str(info.get("version", "")),
        peer=peer,
        counts=_counts(surface),
        findings=(*lint(surface, rules, limits), *called),
        problems={method: mask(reason) for method, reason in offer.problems.items()},
        notes=(*notes, *troubles),
        tokens=surface.size // 4,
        interrupted=stop.is_set(),
    )


def _called(
    arguments: argparse.Namespace,
    explored: Explored,
    offer: Offer,
    rules: Sequence[LintRule],
    limits: Limits,
) -> tuple[list[Finding], list[str]]:
    """Findings of the codes that need answers; tools that may write are never called."""
    from mcptest.explore.lint.linting import lint_called
    from mcptest.report.progress import StatusLine
    from mcptest.report.terminal import Style
    from mcptest.run.exploring.linting import called_tools, skipped_tools

    needed = {"E301": arguments.call_tools, "W107": arguments.detect_nondeterminism}
    chosen = [rule for rule in rules if needed.get(rule.code)]
    if not chosen:
        return [], []
    line = StatusLine(sys.stderr, Style.of(sys.stderr, no_color=arguments.no_color))

    def on_call(name: str) -> None:
        if not arguments.quiet:
            line.draw("calling", name)

    often = any(rule.code == "W107" for rule in chosen)
    try:
        answers = called_tools(explored.subject, offer, often=often, on_call=on_call)
        found = list(lint_called(answers, chosen, limits))
    finally:
        line.clear()
    skipped = skipped_tools(offer)
    note = f"{len(skipped)} tools were not called: they do not say that they only read"
    return found, [note] if skipped else []


def _counts(surface: Surface) -> dict[str, int]:
    return {
        "tools": len(surface.tools),
        "prompts": len(surface.prompts),
        "resources": len(surface.resources),
        "templates": len(surface.templates),
    }


def _views(report: LintReport, arguments: argparse.Namespace) -> Views:
    from mcptest.report.lint_json import lint_as_json
    from mcptest.report.lint_markdown import lint_as_markdown
    from mcptest.report.lint_run import lint_as_run
    from mcptest.report.lint_text import heading, lint_lines, summary_in_words

    words = {
        "fix": arguments.fix,
        "verbose": arguments.verbose,
        "notes": arguments.verbose or bool(arguments.select),
    }

    def problems() -> Problems:
        from mcptest.report.problems_lint import problems_of_lint

        return problems_of_lint(report, str(arguments.tools or ""))

    return Views(
        failed=report.failed,
        json=lambda: lint_as_json(report),
        run=lambda: lint_as_run(report),
        markdown=lambda: lint_as_markdown(report),
        lines=lambda style: lint_lines(report, style, **words),
        summary=lambda: f"{heading(report)}: {summary_in_words(report)}",
        problems=problems,
        repeat=lambda: _repeat(arguments),
        nothing=_is_empty(report),
        report=report,
    )


def _repeat(arguments: argparse.Namespace) -> str:
    import shlex

    from mcptest.cli.explored import repeat_command
    from mcptest.model.redaction import redaction

    strict = ["--strict"] if arguments.strict else []
    strict += ["--profile", arguments.profile] if arguments.profile != OWN_PROFILE else []
    if arguments.tools:
        return shlex.join(["mcptest", "lint", "--tools", str(arguments.tools), *strict])
    return redaction.text(repeat_command(arguments, *strict))


def _is_empty(report: LintReport) -> bool:
    return not any(report.counts.values()) and not report.problems


def _code(report: LintReport) -> int:
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if _is_empty(report):
        sys.stderr.write("mcptest: nothing to lint: no tools, prompts or resources\n")
        return ExitCode.NOTHING_MATCHED
    return ExitCode.FAILED if report.failed else ExitCode.OK
