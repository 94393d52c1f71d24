"""How a command that explores ends: what it prints, the files it writes, its exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from mcptest.cli.options import add_file_options, add_format_option, is_for_a_program
from mcptest.cli.report_forms import add_html_option, captures_since
from mcptest.cli.unwritten import add_strict_option, code_with_reports, tell_unwritten
from mcptest.model.errors import ExitCode, McptestError

if TYPE_CHECKING:
    from mcptest.cli.report_forms import Told
    from mcptest.model.results import RunReport
    from mcptest.report.placed import PlacedFile
    from mcptest.report.problems import Problems
    from mcptest.report.stored import AnyReport
    from mcptest.report.terminal import Style


class Views(msgspec.Struct, frozen=True, kw_only=True):
    """One report in every form. Each is made when it is wanted."""

    failed: bool
    json: Callable[[], bytes]
    run: Callable[[], RunReport]
    """As the run of a suite, of which JUnit is made."""
    markdown: Callable[[], str]
    lines: Callable[[Style], Iterable[str]]
    summary: Callable[[], str]
    """One line, for `--quiet`."""
    problems: Callable[[], Problems] | None = None
    """What is wrong; None: the failures of the run."""
    repeat: Callable[[], str] = str
    """The command to repeat a failure that names none, for `--format agent`."""
    nothing: bool = False
    """There was nothing to look at."""
    report: AnyReport | None = None
    """What the page shows; None: the run."""


def add_report_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--json", action="store_true", help="the report as JSON, and nothing else, on stdout")
    add("--json-file", type=Path, metavar="FILE", help="the JSON report as well")
    add("--junit", type=Path, metavar="FILE", help="a JUnit report as well")
    add("--markdown", type=Path, metavar="FILE", help="a markdown report as well")
    add_html_option(add)
    add_file_options(add)
    add_format_option(add)
    add_strict_option(add)
    add("--capture", type=Path, metavar="DIR", help="keep everything that went over the wire")


def conclude(
    arguments: argparse.Namespace,
    views: Views,
    *,
    page: Callable[[], bytes] | None = None,
    in_step_summary: bool = False,
) -> int:
    """Print the report and write the files; gives what became of the files, as an exit code.

    `page` makes what `--html` asks for where it is more than one report. `in_step_summary` adds
    the markdown to the summary that GitHub Actions shows of a step.
    """
    from mcptest.cli.report_forms import say_form, wanted_forms, with_notes
    from mcptest.report.write import append_to_step_summary, write_all

    told = _told(arguments, views)
    is_a_form = is_for_a_program(arguments) and not arguments.json
    if not is_a_form:
        _print(arguments, views)
    wanted: list[tuple[Path | None, Callable[[], bytes]]] = [
        (arguments.json_file, views.json),
        (getattr(arguments, "coverage_json", None), views.json),
        (arguments.junit, lambda: _as_junit(views)),
        (arguments.markdown, lambda: views.markdown().encode()),
        (arguments.html, page or (lambda: _as_html(arguments, views))),
        *wanted_forms(arguments, told),
    ]
    unwritten = write_all(wanted)
    if in_step_summary:
        unwritten += append_to_step_summary(views.markdown())
    tell_unwritten(arguments, unwritten)
    written = code_with_reports(arguments, ExitCode.OK, unwritten)
    if is_a_form:  # after the files: the verdict knows what became of them
        code = ExitCode.NOTHING_MATCHED if views.nothing else None
        noted = with_notes(told, unwritten)
        say_form(arguments, noted, failed=views.failed or bool(written), code=code)
    return written


def _told(arguments: argparse.Namespace, views: Views) -> Told:
    from mcptest.cli.report_forms import told_of_run

    run = told_of_run(views.run, arguments.command_name)
    return msgspec.structs.replace(
        run, problems=views.problems or run.problems, repeat=views.repeat
    )


def _print(arguments: argparse.Namespace, views: Views) -> None:
    from mcptest.report.terminal import Style, say, say_json

    if arguments.json:
        say_json(sys.stdout, views.json())
    elif arguments.quiet and not views.failed:
        say(sys.stdout, views.summary() + "\n")
    else:
        for line in views.lines(Style.of(sys.stdout, no_color=arguments.no_color)):
            say(sys.stdout, line + "\n")


def _as_junit(views: Views) -> bytes:
    from mcptest.report import junit

    return junit.render(views.run())


def _as_html(arguments: argparse.Namespace, views: Views) -> bytes:
    from mcptest.report.html.making import page_of

    run = views.run()
    folders = (getattr(arguments, "capture", None), getattr(arguments, "output", None))
    captures = captures_since(run.started, *folders)
    # What was sent on purpose is not to be held against a client.
    gentle = arguments.command_name not in ("fuzz", "property")
    name = f"mcptest {arguments.command_name}"
    return page_of(views.report or run, captures, name=name, by_rules=gentle)


class Tried(Protocol):
    """A report on what was tried out."""

    @property
    def interrupted(self) -> bool: ...
    @property
    def failed(self) -> bool: ...


def code_of_tries(report: Tried, nothing: str) -> int:
    """The exit code. `nothing` says why nothing was tried, and is empty where something was."""
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.failed:
        return ExitCode.FAILED
    if nothing:
        sys.stderr.write(f"mcptest: {nothing}\n")
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK


class Saved(msgspec.Struct, frozen=True):
    """What became of the tests that a command writes beside its report."""

    lines: tuple[str, ...] = ()
    trouble: str = ""

    def tell(self, arguments: argparse.Namespace) -> int:
        """Say it, after the report."""
        if not is_for_a_program(arguments):
            sys.stdout.writelines(f"{line}\n" for line in self.lines)
        if not self.trouble:
            return ExitCode.OK
        sys.stderr.write(f"mcptest: tests not written: {self.trouble}\n")
        return ExitCode.FAILED


def saved_into(
    folder: Path, write: Callable[[], Iterable[PlacedFile]], needs: Sequence[str] = ()
) -> Saved:
    """Write tests into a folder. That it can't be done costs nobody the report."""
    from mcptest.report.placed import placed_lines

    try:
        return Saved(tuple(placed_lines(write(), str(folder), needs)))
    except McptestError as error:
        return Saved(trouble=error.message)
