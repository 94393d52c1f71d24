"""How commands end: the reports that were asked for, what a person reads, and the exit code."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.commands.options import is_for_a_program
from mcptest.core.errors import ExitCode, McptestError
from mcptest.core.results import Demand, RunReport, Shard, Suggestion
from mcptest.core.safe_text import show
from mcptest.report.run_results import in_short, mcp_assert_json, render, render_suggestions
from mcptest.report.terminal import Style, columns, say, say_json
from mcptest.report.write import FORMS, append_to_step_summary, rendered, write_all

if TYPE_CHECKING:  # most runs of suites are not written to a file
    from mcptest.commands.suite_command import WantedRun
    from mcptest.report.baseline import Baseline
    from mcptest.report.head import AnyReport, Report
    from mcptest.report.starter_files import PlacedFile

# -- the page ------------------------------------------------------------------------------------


@contextlib.contextmanager
def captures_for_html(arguments: argparse.Namespace) -> Iterator[bool]:
    """A page shows the wire. Where captures are not kept, they live until it is written.

    Gives whether they are lent: then no other report names them.
    """
    wanted = arguments.html is not None or arguments.format == "html"
    if not wanted or arguments.save_capture is not None:
        yield False
        return
    from mcptest.transport.temporary import temporary_folder

    with temporary_folder() as folder:
        arguments.save_capture, arguments.captures_lent = folder, True
        yield True


def captures_since(started: str, *folders: Path | None) -> Sequence[str]:
    """The captures in some folders that were written since then; others may lie there too."""
    begun = datetime.fromisoformat(started).timestamp() if started else 0.0
    return [
        str(path)
        for folder in dict.fromkeys(folders)
        if folder is not None and folder.is_dir()
        for path in sorted(folder.rglob("*.jsonl"))
        if path.is_file() and path.stat().st_mtime >= begun
    ]


def in_shard(arguments: argparse.Namespace, run: RunReport) -> RunReport:
    """With the part of the tests that it is, so that one that gets lost is missed."""
    if not arguments.shard:
        return run
    from mcptest.probe.suites.settings import parse_shard

    return replace(run, shard=Shard(*parse_shard(arguments.shard)))


# -- Reports that can't be written ---------------------------------------------------------------


def tell_unwritten(arguments: argparse.Namespace, unwritten: Sequence[str]) -> None:
    """On stderr, and below the text that a person reads on stdout."""
    say_unwritten(unwritten)
    if not unwritten or is_for_a_program(arguments):
        return
    style = Style.of(sys.stdout, no_color=arguments.no_color)
    for sentence in unwritten:
        say(sys.stdout, f"{style.warning} {show(sentence, 500)}\n")


def say_unwritten(unwritten: Sequence[str]) -> None:
    """On stderr only: where stdout is somebody else's, or says it already."""
    sys.stderr.writelines(f"mcptest: {sentence}\n" for sentence in unwritten)


def code_with_reports(arguments: argparse.Namespace, code: int, unwritten: Sequence[str]) -> int:
    """The exit code, when it is known which reports are missing. What is worse stays."""
    if code == ExitCode.OK and unwritten and arguments.strict_reports:
        return ExitCode.FAILED
    return code


# -- Reports that were written --------------------------------------------------------------------


def tell_written(arguments: argparse.Namespace, stream: TextIO | None = None) -> None:
    """Name what was written, where a person reads."""
    if is_for_a_program(arguments) or getattr(arguments, "quiet", False):
        return
    names = [str(path) for path in getattr(arguments, "written", ())]
    kept = (
        None
        if getattr(arguments, "captures_lent", False)
        else getattr(arguments, "save_capture", None)
    )
    if isinstance(kept, Path) and kept.is_dir():
        names.append(f"captures in {kept}")
    if names:
        say(stream or sys.stdout, f"wrote {show(', '.join(names), 4_000)}\n")


# -- How a command ends ---------------------------------------------------------------------------


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


def conclude(
    arguments: argparse.Namespace,
    report: Report,
    *,
    repeat: Callable[[], str] = str,
    in_step_summary: bool = False,
    nothing: str = "",
    saved: Saved | None = None,
    page: Callable[[], bytes] | None = None,
    lost: Sequence[str] = (),
    **shown: bool,
) -> int:
    """Print the report and write the files; gives the exit code.

    `repeat` gives the command for a failure that names none; `in_step_summary` adds the markdown to
    the summary that GitHub Actions shows of a step; `nothing` is said where there was nothing to
    look at; `page` makes the page, where the command knows which captures are its own; `lost` says
    what else could not be written; `shown` are further words for the text, where options of the
    command change it.
    """
    from mcptest.report.head import stamped

    report = stamped(report)
    page = page or partial(_as_html, arguments, report)
    unwritten = [*lost, *write_files(arguments, report, page)]
    if in_step_summary:
        unwritten += append_to_step_summary(report.as_markdown())
    code = code_with_reports(arguments, report.code, unwritten)
    # After the files: the verdict knows what became of them.
    wanted = "json" if arguments.json else arguments.format
    if wanted == "text":
        _say_text(arguments, report, **shown)
    elif wanted == "html":
        say_json(sys.stdout, page())
    else:
        told = rendered(wanted, report, code=code, notes=unwritten, repeat=repeat)
        say_json(sys.stdout, told)
    tell_written(arguments)
    sys.stdout.flush()
    tell_unwritten(arguments, unwritten)
    if code == ExitCode.INTERRUPTED:
        sys.stderr.write("mcptest: interrupted\n")
    elif report.code is ExitCode.NOTHING_MATCHED and nothing:
        sys.stderr.write(f"mcptest: {nothing}\n")
    return code if saved is None else max(saved.tell(arguments), code)


def write_files(
    arguments: argparse.Namespace, report: AnyReport, page: Callable[[], bytes] | None = None
) -> list[str]:
    """Every file that was asked for; gives a sentence for each that could not be written.

    `arguments.written` has the others.
    """
    arguments.written = []
    paths = {name: getattr(arguments, name, None) for name in FORMS}
    if not any(paths.values()):
        return []
    from mcptest.report.head import stamped

    report = stamped(report)
    files = {name: partial(rendered, name, report) for name in FORMS}
    made = files | ({"html": page} if page is not None else {})
    return write_all(((path, made[name]) for name, path in paths.items()), arguments.written)


def _say_text(arguments: argparse.Namespace, report: Report, **shown: bool) -> None:
    """The text for a person, on stdout."""
    quiet = getattr(arguments, "quiet", False)
    if quiet and not report.failed:
        say(sys.stdout, report.in_words() + "\n")
        return
    words = {"verbose": arguments.verbose, "quiet": quiet, "width": columns(100)}
    style = Style.of(sys.stdout, no_color=arguments.no_color, **words)
    for line in report.lines(style, **shown):
        say(sys.stdout, line + "\n")


def page_of(report: AnyReport, captures: Iterable[str], **how: Any) -> bytes:
    """The page of a report. What draws reports of every kind is imported where one is wanted."""
    from mcptest.report.html.building import page_of

    return page_of(report, captures, **how)


def _as_html(arguments: argparse.Namespace, report: Report) -> bytes:
    folders = (getattr(arguments, "save_capture", None), getattr(arguments, "output", None))
    captures = captures_since(report.as_run().started, *folders)
    # What was sent on purpose is not to be held against a client.
    gentle = arguments.command_name not in ("fuzz", "property", "fleet", "doctor")
    name = f"mcptest {arguments.command_name}"
    return page_of(report, captures, name=name, by_rules=gentle)


def saved_into(
    folder: Path, write: Callable[[], Iterable[PlacedFile]], needs: Sequence[str] = ()
) -> Saved:
    """Write tests into a folder. That it can't be done costs nobody the report."""
    from mcptest.report.starter_files import placed_lines

    try:
        return Saved(tuple(placed_lines(write(), str(folder), needs)))
    except McptestError as error:
        return Saved(trouble=error.message)


# -- How a run of suites ends ---------------------------------------------------------------------

Renderer: TypeAlias = Callable[[RunReport, Style], str]
_REASONS = 3


class RunEnding(msgspec.Struct, frozen=True):
    """What a command does in its own way when a run ends."""

    demand: Demand | None = None
    """None: everything has to pass."""
    as_text: Renderer | None = None
    """None: the results as `mcptest run` shows them."""
    also_write: Callable[[RunReport], list[str]] = lambda _report: []
    """Writes further reports, and says what it could not write."""
    explain: Callable[[RunReport], None] = lambda _report: None
    """Says more, when the reports are written."""


def conclude_run(
    run: WantedRun,
    report: RunReport,
    baseline: Baseline | None,
    ending: RunEnding | None,
    *,
    has_problems: bool,
) -> int:
    """Write and print the reports; gives the exit code. `has_problems`: the suites, as written."""
    arguments, ending = run.arguments, ending or RunEnding()
    report = replace(report, demand=ending.demand)
    suggested: list[Suggestion] = []
    if arguments.fix and not report.interrupted:
        from mcptest.probe.suites.position_fix import find_positions

        suggested += find_positions(run.tests, report, run.settings, run.stop.is_set)
    chosen = arguments.pattern or arguments.tag or arguments.shard or arguments.last_failed
    partial = bool(chosen or arguments.fail_fast)  # what is missing is not stale
    report = in_shard(arguments, report)
    if baseline is not None:
        from mcptest.report.baseline import with_regressions

        report = with_regressions(report, baseline, partial=partial)
    unwritten = write_files(arguments, report)
    kept = arguments.save_baseline
    if kept is not None:
        from mcptest.report.baseline import saved_baseline

        amends = kept if partial or report.interrupted else None
        saved = [(kept, lambda: saved_baseline(report, baseline, amends))]
        unwritten += write_all(saved, arguments.written)
    unwritten += ending.also_write(report)
    say_unwritten(unwritten)
    report = replace(report, notes=(*report.notes, *unwritten))
    not_whole = has_problems or bool(unwritten and arguments.strict_reports)
    _say_run(arguments, report, ending, failed=report.falls_short or not_whole)
    if arguments.fix:
        # On stderr when stdout is for a program.
        stream = sys.stdout if arguments.format == "text" and not arguments.json else sys.stderr
        stream.write(render_suggestions(suggested))
    if report.results:
        tell_written(arguments)
    ending.explain(report)
    if run.stop.is_set():
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    if report.falls_short or (report.results and not_whole):
        return ExitCode.FAILED
    if report.passed or report.failed:
        return ExitCode.OK
    sys.stderr.write(f"mcptest: {_why_nothing_ran(report)}\n")
    return ExitCode.NOTHING_MATCHED


def _say_run(
    arguments: argparse.Namespace, report: RunReport, ending: RunEnding, *, failed: bool
) -> None:
    if arguments.json:
        sys.stdout.buffer.write(mcp_assert_json(report))
    elif arguments.format != "text":
        from mcptest.report.head import code_of

        seen = bool(report.passed or report.failed)
        code = code_of(seen, failed=failed, interrupted=report.interrupted)
        say_json(sys.stdout, rendered(arguments.format, report, code=code))
    elif report.results:
        how = {"verbose": arguments.verbose, "width": columns()}
        style = Style.of(sys.stdout, no_color=arguments.no_color, **how)
        if arguments.quiet:
            text = in_short(report, style)
        elif ending.as_text is not None:
            text = ending.as_text(report, style)
        else:
            text = render(report, style, all_failures=arguments.all_failures)
        sys.stdout.write(text)
    sys.stdout.flush()


def _why_nothing_ran(report: RunReport) -> str:
    if not report.results:
        return "no test was selected"
    details = (one.detail.removeprefix("skipped: ") for one in report.results)
    reasons = Counter(detail or "skip: true" for detail in details)
    shown = [f"{show(reason, 120)} ({count})" for reason, count in reasons.most_common(_REASONS)]
    more = ["…"] if len(reasons) > _REASONS else []
    why = ", ".join([*shown, *more])
    return f"nothing was run: all {report.skipped} tests were skipped: {why}"
