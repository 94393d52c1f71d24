"""One capture of a proxy: the sessions in it, also those that go on side by side.

A capture holds one session after the other. So the first is written to it as it happens; others
are kept in files of their own beside it, and moved into it at the end.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from mcptest.model.capture import Closed, Frame
from mcptest.model.errors import UsageError
from mcptest.run.recording import masker_for
from mcptest.transport.base import Sink, discard
from mcptest.transport.files import is_special
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target
from mcptest.wire.capture_codec import decode_records

MOST_AT_ONCE = 64
"""Further sessions share the last file."""
_GATHERED = 1024 * 1024
"""Bytes between two writes: the recorder itself counts records, which may be large."""


class SessionFiles:
    """Gives each session its place. Close it before the recorder that it was made with."""

    def __init__(self, recorder: Recorder, target: Target, watch: Callable[[Sink], Sink]) -> None:
        """`watch` is put between each session and its file."""
        self._main = recorder
        self._target = target
        self._watch = watch
        self._others: list[Recorder] = []
        self._begun = 0
        self._problem: OSError | None = None

    def begin(self) -> Sink:
        self._begun += 1
        try:
            recorder = self._main if self._begun == 1 else self._another()
        except UsageError as error:  # no room for a file: the sessions themselves go on
            self._problem = OSError(errno.EIO, error.message)
            return self._watch(discard)
        target = self._target
        recorder.begin(label=target.label, transport=target.way, peer=target.peer)
        return self._watch(recorder)

    def flush(self) -> None:
        self._main.flush()
        for other in self._others:
            other.flush()

    def settle(self, *, interrupted: bool = False) -> None:
        """Move the others in, and remove their files. What can't be moved stays where it is."""
        for other in self._others:
            other.close(interrupted=interrupted)
            if not other.kept:
                continue
            place = other.written_to
            self._move_in(place)
            self._main.dropped += other.dropped
            self._main.error = self._main.error or other.error
            if self._main.error is None:
                place.unlink()
        self._main.error = self._main.error or self._problem

    def _move_in(self, place: Path) -> None:
        gathered = 0
        with place.open("rb") as lines:
            for record in decode_records(lines, str(place)):
                if type(record) is Closed:
                    continue
                self._main(record)
                gathered += len(record.raw) if type(record) is Frame else 0
                if gathered >= _GATHERED:
                    self._main.flush()
                    gathered = 0
        self._main.flush()

    def _another(self) -> Recorder:
        if len(self._others) < MOST_AT_ONCE:
            self._others.append(Recorder(self._beside(), masker=masker_for(self._target)))
        return self._others[-1]

    def _beside(self) -> Path:
        path, number = self._main.path, len(self._others) + 2
        if is_special(path):
            return Path(tempfile.gettempdir(), f"mcptest-{os.urandom(8).hex()}.session-{number}")
        return path.with_name(f".{path.name}.session-{number}")
