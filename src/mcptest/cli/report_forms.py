"""The forms of a report that commands share: a page, for code scanning, harnesses and agents."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from mcptest.cli.options import FORMS, as_path
from mcptest.model.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from mcptest.model.results import RunReport
    from mcptest.report.problems import Problems


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a command found, for the forms. Each part is made when it is wanted."""

    run: Callable[[], RunReport]
    problems: Callable[[], Problems]
    excused: Mapping[str, str] = {}
    """Results that are expected to fail, by their name, with the reason."""
    headline: str = ""
    repeat: Callable[[], str] = str
    """The command to repeat a failure that names none."""


def form(name: str, told: Told, code: int = ExitCode.OK) -> bytes:
    """One form of a report. `code` is the exit code, for the verdict."""
    if name == "tap":
        from mcptest.report import tap

        return tap.render(told.run(), told.excused)
    if name == "agent":
        from mcptest.report import agent

        return agent.render(
            told.run(), code, excused=told.excused, headline=told.headline, repeat=told.repeat()
        )
    if name == "sarif":
        from mcptest.report import sarif

        return sarif.render(told.problems())
    from mcptest.report import code_quality

    return code_quality.render(told.problems())


def wanted_forms(
    arguments: argparse.Namespace, told: Told
) -> list[tuple[Path, Callable[[], bytes]]]:
    """The files that were asked for, with what writes them."""
    return [
        (path, partial(form, name, told))
        for name in FORMS
        if (path := getattr(arguments, name, None)) is not None
    ]


def with_notes(told: Told, notes: Sequence[str]) -> Told:
    """With what has come to be known since, such as the files that could not be written."""

    def run() -> RunReport:
        found = told.run()
        return msgspec.structs.replace(found, notes=(*found.notes, *notes))

    return msgspec.structs.replace(told, run=run) if notes else told


def code_of(run: RunReport, *, failed: bool) -> int:
    """What the results alone come to."""
    if run.interrupted:
        return ExitCode.INTERRUPTED
    if failed:
        return ExitCode.FAILED
    return ExitCode.OK if run.passed or run.failed else ExitCode.NOTHING_MATCHED


def say_form(
    arguments: argparse.Namespace, told: Told, *, failed: bool, code: int | None = None
) -> None:
    """The form that `--format` names, on stdout. Without a `code` the results say what it is."""
    if code is None:
        code = code_of(told.run(), failed=failed)
    sys.stdout.flush()
    sys.stdout.buffer.write(form(arguments.format, told, code))
    sys.stdout.flush()


def say_run(arguments: argparse.Namespace, run: RunReport, failed: bool) -> None:
    say_form(arguments, told_of_run(lambda: run), failed=failed)


def told_of_run(run: Callable[[], RunReport], command: str = "run") -> Told:
    def problems() -> Problems:
        from mcptest.report.problems import problems_of_run

        return problems_of_run(run(), command)

    return Told(run=run, problems=problems)


# -- the page ------------------------------------------------------------------------------------


def add_html_option(add: Callable[..., Any]) -> None:
    add("--html", type=as_path, metavar="FILE", help="one page with everything, also from the wire")


@contextlib.contextmanager
def captures_for_html(
    arguments: argparse.Namespace, *, wanted: bool | None = None
) -> Iterator[bool]:
    """A page shows the wire. Where captures are not kept, they live until it is written.

    Gives whether they are lent: then no other report names them.
    """
    wanted = arguments.html is not None if wanted is None else wanted
    if not wanted or arguments.capture is not None:
        yield False
        return
    from mcptest.run.temporary import temporary_folder

    with temporary_folder() as folder:
        arguments.capture = folder
        yield True


def captures_since(started: str, *folders: Path | None) -> Sequence[str]:
    """The captures in some folders that were written since then; others may lie there too."""
    from datetime import datetime

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
    from mcptest.model.results import Shard
    from mcptest.run.selection import parse_shard

    return msgspec.structs.replace(run, shard=Shard(*parse_shard(arguments.shard)))
