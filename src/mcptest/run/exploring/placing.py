"""Putting starter suites into a folder: whole files, nothing outside, nothing lost unsaid."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.redaction import redaction
from mcptest.model.show import show
from mcptest.suite.written import (
    SCHEMA_FILE,
    Starter,
    UnwritableError,
    WrittenServer,
    starter_yaml,
)
from mcptest.suite.written_names import FileNames

_PREFIXES = {"tool": "", "prompt": "prompt-", "resource": "resource-"}
_READABLE = 0o644


class Placed(msgspec.Struct, frozen=True):
    """What became of one starter."""

    subject: str
    file: str
    how: Literal["created", "replaced", "kept", "left out"]
    reason: str = ""
    skipped: bool = False
    """Whether the test in it is marked to be skipped."""
    expects_error: bool = False
    """Whether it passes when the call fails, as it did."""


def place_starters(
    folder: Path,
    starters: Iterable[Starter],
    server: WrittenServer,
    *,
    overwrite: bool = False,
    tell: Callable[[Placed], None] = lambda _: None,
) -> list[Placed]:
    """Write each starter to a file of its own. A file that exists is kept unless `overwrite`."""
    _make(folder)
    names, titles, placed = FileNames(), _Titles(), []
    for starter in starters:
        file = names.name_for(redaction.text(starter.subject), _PREFIXES[starter.kind])
        one = _place(folder, file, starter, server, titles.title_of(starter), overwrite)
        placed.append(one)
        tell(one)
    if any(one.how in ("created", "replaced") for one in placed):
        place_schema(folder)
    return placed


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't write into {folder}: {error.strerror}") from None


def _place(
    folder: Path, file: str, starter: Starter, server: WrittenServer, title: str, overwrite: bool
) -> Placed:
    subject = show(redaction.text(starter.subject), 120)
    if redaction.text(starter.subject) != starter.subject:
        return Placed(subject, file, "left out", "a secret is in its name")
    try:
        text = starter_yaml(starter, server, title)
    except UnwritableError as error:
        return Placed(subject, file, "left out", str(error))
    skipped = "\nskip: true" in text
    erring = not skipped and starter.expect.get("is_error") is True
    existed = os.path.lexists(folder / file)
    if existed and not overwrite:
        return Placed(subject, file, "kept", "it exists already", skipped, erring)
    if not put(folder / file, text.encode(), overwrite=overwrite):
        return Placed(subject, file, "kept", "it exists already", skipped, erring)
    how: Literal["replaced", "created"] = "replaced" if existed else "created"
    return Placed(subject, file, how, skipped=skipped, expects_error=erring)


def put(path: Path, content: bytes, *, overwrite: bool) -> bool:
    """Write a whole file, never through a link; False when one is there and stays."""
    content = redaction.document(content)
    try:
        descriptor, name = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), _READABLE)
            if overwrite:
                Path(name).replace(path)
                return True
            path.hardlink_to(name)
        finally:
            with contextlib.suppress(FileNotFoundError):  # it took its place
                Path(name).unlink()
    except FileExistsError:
        return False
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from None
    return True


def place_schema(folder: Path) -> None:
    """The schema that the first line of each file names, so that editors need no network."""
    import json

    from mcptest.suite.json_schema_of_suite import suite_json_schema

    text = json.dumps(suite_json_schema(), indent=1) + "\n"
    put(folder / SCHEMA_FILE, text.encode(), overwrite=True)


class _Titles:
    """Names of tests: each only once, whatever the server calls its things."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def title_of(self, starter: Starter) -> str:
        words = {"tool": "{} answers", "prompt": "prompt {} is given", "resource": "{} can be read"}
        title = free = words[starter.kind].format(show(starter.subject, 100))
        number = self._taken.get(title, 1)
        while free in self._taken:
            number += 1
            free = f"{title} ({number})"
        self._taken[title] = self._taken[free] = number
        return free
