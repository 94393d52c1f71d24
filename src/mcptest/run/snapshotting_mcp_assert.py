"""Golden answers that mcp-assert wrote: `.snapshots.json` in the folder of a suite. Only read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.show import show
from mcptest.run.disk import open_file
from mcptest.suite.observed import Observed
from mcptest.suite.snapshots_masks import FIXTURE, Masks

FILE = ".snapshots.json"
_COPY = r"[^\s\"'<>]*/mcp-assert-fixture-\d+/"


class SavedAnswer(msgspec.Struct, frozen=True):
    name: str
    text: str = ""
    is_error: bool = False


class _File(msgspec.Struct, frozen=True):
    snapshots: list[SavedAnswer] | None = None


class SavedAnswers(msgspec.Struct, frozen=True):
    """What one such file holds, by the name of the test."""

    path: str
    answers: Mapping[str, SavedAnswer] = {}


def saved_answers(paths: Sequence[str]) -> dict[str, SavedAnswers]:
    """By folder, for the folders that were named and those of the files that were."""
    found: dict[str, SavedAnswers] = {}
    for path in paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)  # noqa: PTH112, PTH120 - texts, as they were given
        file = os.path.join(folder, FILE)  # noqa: PTH118 - as above
        if os.path.lexists(file):
            found[os.path.abspath(folder)] = SavedAnswers(file, _read(file))  # noqa: PTH100 - as above
    return found


def nearest(file: str, saved: Mapping[str, SavedAnswers]) -> SavedAnswers | None:
    """What was saved for a suite file: in its folder, or in one above it that was named."""
    folder = os.path.dirname(os.path.abspath(file)) if saved else ""  # noqa: PTH100, PTH120 - as above
    while folder:
        if folder in saved:
            return saved[folder]
        above = os.path.dirname(folder)  # noqa: PTH120 - as above
        folder = "" if above == folder else above
    return None


def texts_of(saved: SavedAnswer, observed: Observed, masks: Masks) -> tuple[str, str]:
    """What was saved and what came, in one form: all that mcp-assert keeps of an answer."""
    return (
        _as_text(_without_copies(saved.text, masks.paths), saved.is_error, masks),
        _as_text(observed.text, observed.is_error, masks),
    )


def _as_text(text: str, is_error: bool, masks: Masks) -> str:
    # Half a surrogate pair is U+FFFD for mcp-assert, which is written in Go.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return f"{'=== isError' + chr(10) if is_error else ''}{masks.apply(text)}\n"


def _without_copies(text: str, paths: Sequence[str]) -> str:
    """Its copies of the fixture lie elsewhere each time, under the fixture's own name."""
    for base in {os.path.basename(path) for path in paths if path}:  # noqa: PTH119 - as above
        text = re.sub(_COPY + re.escape(base), f"<{FIXTURE}>", text)
    return text


def _read(file: str) -> dict[str, SavedAnswer]:
    try:
        with open_file(file) as opened:
            found: Any = msgspec.json.decode(opened.read(), type=_File)
    except OSError as error:
        raise UsageError(f"can't read {show(file, 500)}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{show(file, 500)} is not what mcp-assert writes: {show(str(error), 300)}",
            hint="take it away, and let mcptest snapshot --update write new golden files",
        ) from None
    return {answer.name: answer for answer in found.snapshots or ()}
