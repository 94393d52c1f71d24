"""The forms of a report that commands share: a page, for code scanning, harnesses and agents."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TextIO

import msgspec

from mcptest.commands.options import is_for_a_program
from mcptest.core.errors import ExitCode, McptestError
from mcptest.core.results import RunReport, Shard
from mcptest.core.safe_text import show
from mcptest.report.head import AnyReport, Report, stamped
from mcptest.report.starter_files import PlacedFile, placed_lines
from mcptest.report.terminal import Style, columns, say, say_json
from mcptest.report.write import FORMS, append_to_step_summary, rendered, write_all

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

    return msgspec.structs.replace(run, shard=Shard(*parse_shard(arguments.shard)))


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
    since: str = "",
    nothing: str = "",
    saved: Saved | None = None,
    page: Callable[[], bytes] | None = None,
    lost: Sequence[str] = (),
    **shown: bool,
) -> int:
    """Print the report and write the files; gives the exit code.

    `repeat` gives the command for a failure that names none; `in_step_summary` adds the markdown to
    the summary that GitHub Actions shows of a step; `since` is when the command began, for a report
    that does not say; `nothing` is said where there was nothing to look at; `page` makes the page,
    where the command knows which captures are its own; `lost` says what else could not be written;
    `shown` are further words for the text, where options of the command change it.
    """
    report = stamped(report)
    page = page or partial(_as_html, arguments, report, since)
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
    report = stamped(report)
    files = {name: partial(rendered, name, report) for name in FORMS}
    made = files | ({"html": page} if page is not None else {})
    arguments.written = []
    wanted = ((getattr(arguments, name, None), made[name]) for name in FORMS)
    return write_all(wanted, arguments.written)


def _say_text(arguments: argparse.Namespace, report: Report, **shown: bool) -> None:
    """The text for a person, on stdout."""
    quiet = getattr(arguments, "quiet", False)  # which the rules over captures do not have
    if quiet and not report.failed:
        say(sys.stdout, report.in_words() + "\n")
        return
    words = {"verbose": arguments.verbose, "quiet": quiet, "width": columns(100)}
    style = Style.of(sys.stdout, no_color=arguments.no_color, **words)
    for line in report.lines(style, **shown):
        say(sys.stdout, line + "\n")


def _as_html(arguments: argparse.Namespace, report: Report, since: str) -> bytes:
    from mcptest.report.html.building import page_of

    folders = (getattr(arguments, "save_capture", None), getattr(arguments, "output", None))
    captures = captures_since(since or report.as_run().started, *folders)
    # What was sent on purpose is not to be held against a client.
    gentle = arguments.command_name not in ("fuzz", "property", "fleet", "doctor")
    name = f"mcptest {arguments.command_name}"
    return page_of(report, captures, name=name, by_rules=gentle)


def saved_into(
    folder: Path, write: Callable[[], Iterable[PlacedFile]], needs: Sequence[str] = ()
) -> Saved:
    """Write tests into a folder. That it can't be done costs nobody the report."""
    try:
        return Saved(tuple(placed_lines(write(), str(folder), needs)))
    except McptestError as error:
        return Saved(trouble=error.message)
