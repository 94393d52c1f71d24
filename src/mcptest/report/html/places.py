"""Where in the wire view something is: by the capture's file and record, or by the bytes.

A stored run names its captures as paths. They are compared with the files that the user gave and
never opened: a report must not read what a stored file tells it to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from mcptest.report.html.facts import Fact
from mcptest.report.html.wire_rows import WireSession


class Places:
    def __init__(self, sessions: Sequence[WireSession] = ()) -> None:
        self._sessions = sessions
        self._by_file: dict[str, list[int]] = {}
        self._by_name: dict[str, set[str]] = {}
        for number, session in enumerate(sessions):
            self._by_file.setdefault(session.file, []).append(number)
            self._by_name.setdefault(PurePath(session.file).name, set()).add(session.file)

    def sessions_in(self, file: str) -> list[int]:
        """By the path, else by the file's name where it names one file only: artifacts move."""
        if file in self._by_file:
            return self._by_file[file]
        files = self._by_name.get(PurePath(file).name, set()) if file else set()
        return self._by_file[next(iter(files))] if len(files) == 1 else []

    def of_exchange(self, sent: str, received: str) -> Iterator[Fact]:
        """Where the captures show it, whichever of them does: for reports that name none."""
        for excerpt in filter(None, (received, sent)):
            found = self.showing(list(self._by_file), excerpt)
            if found is not None:
                yield Fact("On the wire", "wire", session=found[0], row=found[1])
                return

    def of_capture(
        self, file: str, record: int | None = None, excerpt: str = "", said: str = ""
    ) -> Iterator[Fact]:
        """The capture that holds everything: a link into it if it is at hand, else its name.

        The message is found by the record's place, or by its beginning; `said` is what it shows.
        """
        found = self.sessions_in(file)
        if not found:
            yield from (Fact("Capture", "code", name) for name in (file,) if name)
            return
        number, row = found[0], 0
        if record is not None and len(found) == 1:
            row = self._sessions[number].row_of(record)
        elif excerpt:
            number, row = self.showing([file], excerpt) or (number, row)
        yield Fact("On the wire", "wire", said, session=number, row=row)

    def showing(self, files: Sequence[str], excerpt: str) -> tuple[int, int] | None:
        """Session and row of the first message that begins with these bytes, among some files."""
        for file in files:
            for number in self.sessions_in(file):
                row = self._sessions[number].row_showing(excerpt)
                if row is not None:
                    return number, row
        return None
