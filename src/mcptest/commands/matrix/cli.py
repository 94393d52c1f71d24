"""`mcptest matrix`: one suite over several servers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeAlias

from mcptest.commands.options import (
    OptionGroup,
    add_common_options,
    add_run_options,
    add_servers_of_suites,
    add_suite_options,
    add_suite_reports,
)
from mcptest.commands.reporting import RunEnding
from mcptest.commands.suite_command import Languages, choice_of, run_suites
from mcptest.core import safe_text
from mcptest.core.errors import UsageError
from mcptest.core.results import RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.probe.suites.server_start import chosen_target
from mcptest.probe.suites.settings import ServerChoice
from mcptest.report import terminal
from mcptest.report.evidence import BRIEF, FULL, detail_lines, proof_lines
from mcptest.report.reliability import Identity, failed_tests, identity_of, overall, titles_of
from mcptest.report.run_results import note_lines, regression_lines, summary
from mcptest.report.terminal import Style

_SPECIFICATION = re.compile(r"\s*([^:\s\"']+)\s*:\s*(.*?)\s*", re.DOTALL)
_WHOLLY_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'", re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    add_suite_options(parser)
    add_servers_of_suites(parser, is_option=False)
    add = OptionGroup(parser, "server")
    add("--languages NAME:SERVER,…", "servers to compare, one column each (repeatable)")
    add_run_options(parser)
    add_suite_reports(parser)
    add_common_options(parser)
    parser.set_defaults(server=None, transport=None, mcp_config=None, fix=False)


def run(arguments: argparse.Namespace) -> int:
    if arguments.server_command:
        raise UsageError("mcptest matrix takes several servers", hint="name them with --languages")
    languages = servers_of(arguments)
    names = [name for name, _ in languages]

    ending = RunEnding(as_text=partial(render, languages=names))
    return run_suites(arguments, languages=languages, ending=ending)


def servers_of(arguments: argparse.Namespace) -> Languages:
    """The columns, in the order in which they were named. UsageError says what is wrong."""
    found: dict[str, ServerChoice] = {}
    for text in arguments.languages:
        for name, server in parse_languages(text):
            if name in found:
                raise UsageError(f"--languages names {show(name, 60)} twice")
            choice = choice_of(arguments, server)
            chosen_target(choice)
            found[name] = choice
    if not found:
        raise UsageError("no server is given", hint="add --languages node:CMD,python:CMD")
    return tuple(found.items())


def parse_languages(text: str) -> Iterator[tuple[str, str]]:
    """`a:cmd,b:cmd` as pairs."""
    for entry in _split_at_commas(text):
        match = _SPECIFICATION.fullmatch(entry)
        if match is None or not match[2]:
            raise UsageError(
                f"invalid language spec {show(entry, 80)!r} (expected NAME:SERVER)",
                hint="quote a command that contains a comma",
            )
        quoted = _WHOLLY_QUOTED.fullmatch(match[2])
        yield match[1], (quoted[1] or quoted[2] or "") if quoted else match[2]


def _split_at_commas(text: str) -> Iterator[str]:
    """At those outside of quotes, as a shell would see them."""
    entry, quote = "", ""
    letters = iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            entry += letter + next(letters, "")
            continue
        if letter == "," and not quote:
            yield entry
            entry = ""
            continue
        if letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        entry += letter
    if quote:
        raise UsageError(f"--languages: unclosed quote in {show(text, 120)!r}")
    yield entry


# -- The table: a row for each test, a column for each server; below it why a cell failed ---------

_NAME = 60
_FAILURES_SHOWN = 100
_SYMBOLS = {Status.PASS: "✓", Status.FAIL: "✗", Status.SKIP: "○"}
_WORDS = {Status.PASS: "ok", Status.FAIL: "FAIL", Status.SKIP: "skip"}
_COLOURS = {Status.PASS: "green", Status.FAIL: "red", Status.SKIP: "yellow"}
_Rows: TypeAlias = dict[Identity, dict[str, list[TestResult]]]
"""By test, then by server: the trials."""


def render(report: RunReport, style: Style, *, languages: Sequence[str]) -> str:
    lines = [
        *_table_lines(_rows(report), languages, style),
        "",
        *_failures(report, style),
        *regression_lines(report, style),
        *note_lines(report, style),
        summary(report, style),
    ]
    return "".join(f"{line}\n" for line in lines)


def _rows(report: RunReport) -> _Rows:
    rows: _Rows = {}
    for result in report.results:
        test = identity_of(result)._replace(language="")
        rows.setdefault(test, {}).setdefault(result.language, []).append(result)
    return rows


def _table_lines(rows: _Rows, languages: Sequence[str], style: Style) -> Iterator[str]:
    titles = titles_of(rows).values()
    widths = [max(safe_text.cells(show(name, 20)), 5) for name in languages]
    room = max(12, max(style.width, 40) - sum(widths) - 2 * len(widths))
    longest = max((safe_text.cells(show(title, _NAME)) for title in titles), default=0)
    room = min(room, max(longest, 6))
    header = [_centred(show(name, 20), w) for name, w in zip(languages, widths, strict=True)]
    yield style.paint("  ".join([terminal.pad("", room), *header]).rstrip(), "bold")
    for title, cells in zip(titles, rows.values(), strict=True):
        name = terminal.pad(terminal.cut(show(title, _NAME), room), room)
        shown = []
        for language, across in zip(languages, widths, strict=True):
            trials = cells.get(language)
            if trials:
                status = overall(trials)
                text = (_SYMBOLS if style.unicode else _WORDS)[status]
                shown.append(_centred(text, across, style, _COLOURS[status]))
            else:  # it was interrupted before it came to this one
                shown.append(" " * across)
        yield "  ".join([name, *shown]).rstrip()
    totals = [_centred(_total(rows, one), w) for one, w in zip(languages, widths, strict=True)]
    yield style.paint("  ".join([terminal.pad("passed", room), *totals]).rstrip(), "dim")


def _total(rows: _Rows, language: str) -> str:
    found = [overall(row[language]) for row in rows.values() if language in row]
    ran = [status for status in found if status is not Status.SKIP]
    return f"{ran.count(Status.PASS)}/{len(ran)}"


def _centred(text: str, width: int, style: Style | None = None, colour: str = "") -> str:
    left = (width - safe_text.cells(text)) // 2
    right = width - safe_text.cells(text) - left
    painted = style.paint(text, colour) if style is not None and text else text
    return " " * left + painted + " " * max(0, right)


def _failures(report: RunReport, style: Style) -> Iterator[str]:
    bounds = FULL if style.verbose else BRIEF
    failed = failed_tests(report)
    for test in failed[:_FAILURES_SHOWN]:
        yield f"{style.cross} {style.paint(show(test.title, 300), 'bold')}"
        for line in detail_lines(test.first, bounds):
            yield f"    {style.paint(line, 'red')}"
        for label, text in proof_lines(test.first, bounds):
            yield f"    {style.paint(f'{label}:'.ljust(10), 'dim')}{text}"
        yield ""
    if len(failed) > _FAILURES_SHOWN:
        yield f"and {len(failed) - _FAILURES_SHOWN} more"
        yield ""
