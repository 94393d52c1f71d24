"""The server that a stdio client launches itself: its command, and the captures that it leaves.

A client may launch it several times. Each launch writes a capture of its own, and all are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from types import TracebackType

from mcptest.model.capture import AnyRecord, Closed, Note
from mcptest.run.conformance.scenario_serving import DEFECT
from mcptest.run.temporary import new_folder, remove_folder
from mcptest.transport.capture_file import open_capture
from mcptest.transport.files import replace_file
from mcptest.transport.recorder import PARTIAL

_FIRST = "session.jsonl"
_MOST_RECORDS = 50_000
"""Many times what the longest scenario takes."""


class LaunchedServer:
    """A command for the client, and the folder where the launched servers leave their captures."""

    def __init__(self, scenario: str, revision: str, capabilities: str) -> None:
        """`revision` is the one that was asked for, or `auto`."""
        self._folder = Path(new_folder("mcptest-client-"))
        self.command: tuple[str, ...] = (
            sys.executable,
            "-P",  # the client's folder may hold modules with the names of ours
            "-m",
            "mcptest",
            "serve",
            "--scenario",
            scenario,
            "--transport",
            "stdio",
            "--spec-version",
            revision,
            "--capabilities",
            capabilities,
            "--capture",
            str(self._folder / _FIRST),
        )

    def __enter__(self) -> LaunchedServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        remove_folder(self._folder)

    @property
    def was_launched(self) -> bool:
        return any(self._folder.iterdir())

    def records(self) -> list[AnyRecord]:
        """Of all launches, one after the other; of a client that floods, how it began.

        What is left out is counted as dropped, so that no check passes on what was not judged.
        """
        everything = (
            record
            for file in self._captures()
            for session in open_capture(str(file))
            for _, record in session.records
        )
        kept = list(islice(everything, _MOST_RECORDS))
        dropped = sum(1 for _ in everything)
        if dropped:
            kept.append(Closed(t=kept[-1].t, records=len(kept), dropped=dropped))
        return kept

    def keep(self, place: Path) -> None:
        """Put the captures of all launches in one file."""
        captures = self._captures()
        if captures:
            replace_file(place, b"".join(file.read_bytes() for file in captures))

    def _captures(self) -> list[Path]:
        """In the order of the launches; one that was killed has left what it had by then."""
        names = {file.name.removesuffix(PARTIAL) for file in self._folder.iterdir()}
        places = [self._folder / name for name in sorted(names, key=lambda name: (len(name), name))]
        found = [_whole_or_partial(place) for place in places]
        return [file for file in found if file.exists() and file.stat().st_size]


def defect_in(records: Iterable[AnyRecord]) -> str:
    """What went wrong in the script, in whichever process; empty when nothing did."""
    for record in records:
        if isinstance(record, Note) and record.text.startswith(DEFECT):
            return record.text.removeprefix(DEFECT)
    return ""


def _whole_or_partial(place: Path) -> Path:
    if place.exists() and place.stat().st_size:
        return place
    return place.with_name(place.name + PARTIAL)
