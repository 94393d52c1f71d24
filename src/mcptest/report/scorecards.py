"""Scorecards on disk. A file that is something else is never overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.judgement import (
    HISTORY_FORMAT,
    SCORECARD_FORMAT,
    Judgement,
    PastRun,
    Scorecard,
    scorecard_of,
)
from mcptest.core.limits import MEBIBYTE
from mcptest.core.safe_text import show
from mcptest.report.codec import as_json, decode
from mcptest.rules.corpus.known_failures import KnownFailures
from mcptest.transport.files import is_special, read_bounded, replace_file, unreadable

LARGEST_SCORECARD = 16 * MEBIBYTE
_T = TypeVar("_T")


def save_scorecard(path: Path, judgement: Judgement, server_label: str) -> None:
    """Keep the grade for later runs. UsageError where that would destroy something else."""
    if judgement.grade is None:
        raise UsageError(
            "no grade to save: only some rules were selected",
            hint="save the scorecard of a run over the whole corpus",
        )
    if not is_special(path):
        refuse_other_file(path, SCORECARD_FORMAT, "a scorecard")
    card = scorecard_of(judgement, judgement.grade, server_label)
    replace_file(path, as_json(card))


def read_scorecard(path: Path) -> Scorecard | None:
    """A saved scorecard; None when there is none yet, which makes this the first run."""
    hint = "save it again with --save-scorecard, or correct the path"
    return read_document(path, Scorecard, SCORECARD_FORMAT, "a scorecard", hint)


def earlier_scorecard(against: str) -> Scorecard | None:
    """What `grade_delta` compares with; None on the first run. Relative to where we are started."""
    return read_scorecard(Path(against)) if against else None


def read_document(path: Path, shape: type[_T], named: str, what: str, hint: str) -> _T | None:
    """A JSON file of ours that names its format; None when there is no such file."""
    data = _bytes_of(path, hint)
    if data is None:
        return None
    source = show(str(path), 400)
    try:
        found = _format_in(decode(data, Any, source))
        if found != named:
            said = (
                f"its format is {show(found, 60)}, not {named}" if found else "it names no format"
            )
            raise UsageError(f"{source} is not {what} that can be read: {said}")
        document: _T = decode(data, shape, source)
    except UsageError as error:
        error.hint = error.hint or hint
        raise
    return document


def refuse_other_file(path: Path, named: str, what: str) -> None:
    """UsageError when a file stands there that is not one of ours; an empty one may go."""
    hint = "name another file, or remove this one"
    data = _bytes_of(path, hint)
    if not data:
        return
    source = show(str(path), 400)
    try:
        found = _format_in(decode(data, Any, source))
    except UsageError:
        found = ""
    if found.partition("/")[0] != named.partition("/")[0]:
        raise UsageError(f"{source} is not {what} and is not overwritten", hint=hint)


def _bytes_of(path: Path, hint: str) -> bytes | None:
    try:
        data = read_bounded(path, LARGEST_SCORECARD, pipes=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        refused = unreadable(path, "", error)
        refused.hint = hint
        raise refused from None
    return data.removeprefix(b"\xef\xbb\xbf")


def _format_in(document: Any) -> str:
    found = document.get("format", "") if isinstance(document, dict) else ""
    return found if isinstance(found, str) else ""


# -- How often flaky rules failed ----------------------------------------------------------------

RUNS_KEPT: Final = 50
"""Of each revision."""


class History(msgspec.Struct, frozen=True, tag_field="format", tag=HISTORY_FORMAT):
    runs: tuple[PastRun, ...] = ()


def history_beside(baseline: Path) -> Path:
    """`known.yml` has its history in `known.yml.history.json`."""
    return baseline.with_name(f"{baseline.name}.history.json")


def read_history(path: Path) -> tuple[PastRun, ...]:
    """The runs that are remembered, oldest first; none when there is no file yet."""
    hint = "remove it to start over: rates of flaky rules are then not checked for the next runs"
    found = read_document(path, History, HISTORY_FORMAT, "a history of flaky rules", hint)
    return found.runs if found is not None else ()


def save_history(
    path: Path, known: KnownFailures, judgement: Judgement, history: Sequence[PastRun] = ()
) -> tuple[PastRun, ...]:
    """Remember this run after the earlier ones; without flaky rules nothing is written."""
    flaky = known.flaky_rules
    outcomes = {one.id: one.outcome for one in judgement.results if one.id in flaky}
    if not outcomes:
        return tuple(history)
    latest: list[PastRun] = []
    for run in (PastRun(judgement.revision, outcomes), *reversed(history)):
        if sum(one.revision is run.revision for one in latest) < RUNS_KEPT:
            latest.append(run)
    runs = tuple(reversed(latest))
    refuse_other_file(path, HISTORY_FORMAT, "a history of flaky rules")
    replace_file(path, as_json(History(runs)))
    return runs
