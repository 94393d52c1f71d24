"""What failed the last time, written while a run goes on: a kill loses little."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType

from mcptest.model.errors import UsageError
from mcptest.model.redaction import redaction
from mcptest.model.results import Status
from mcptest.peer.pending import encode
from mcptest.run.selection import identity
from mcptest.suite.model import Test
from mcptest.transport.files import replace_file
from mcptest.wire.jsontext import read_json

FOLDER = ".mcptest"
_FILE = f"{FOLDER}/last-run.jsonl"
_KEPT_OUT = f"{FOLDER}/.gitignore"
_RUN_BEGINS = {"run": "begins"}


class LastRun:
    """The state of the run that is going on. Where it can't be kept, the run goes on without.

    The file begins with what failed in earlier runs, so a run of a few tests does not make the
    others forgotten. After the line that marks a new run, each result is added as it comes.
    """

    def __init__(self) -> None:
        self._file: int | None = None

    def begin(self) -> None:
        """Mark the beginning of a run. This waits for the disk, so servers may start meanwhile."""
        try:
            os.makedirs(FOLDER, exist_ok=True)  # noqa: PTH103 - without importing pathlib
            if not os.path.exists(_KEPT_OUT):  # noqa: PTH110 - as above
                replace_file(_KEPT_OUT, b"*\n")
            earlier = sorted(_known_failures()) if os.path.exists(_FILE) else []  # noqa: PTH110 - as above
            replace_file(_FILE, _lines([*map(_failed, earlier), _RUN_BEGINS]))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(_FILE, flags)
        except (OSError, UsageError):
            self._file = None  # a read-only folder: --last-failed has nothing to go by, and says so

    def add(self, test: Test, status: Status) -> None:
        if self._file is None:
            return
        try:
            os.write(self._file, _lines([{"test": identity(test), "status": status.value}]))
        except OSError:  # the disk is full: the results are not affected
            self.close()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> LastRun:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def failed_last_time() -> set[str]:
    """The identities of the tests that failed when they were last run here."""
    try:
        return _known_failures()
    except OSError:
        raise UsageError("--last-failed: there is no earlier run in this folder") from None


def _known_failures() -> set[str]:
    """In a run, one trial that failed is enough; a later run that passes clears the test."""
    failed: set[str] = set()
    in_this_run: set[str] = set()
    with open(_FILE, "rb") as file:  # noqa: PTH123 - as above
        lines = file.read().splitlines()
    for line in lines:
        try:
            entry, _ = read_json(line)
            if entry == _RUN_BEGINS:
                in_this_run.clear()
                continue
            test, status = str(entry["test"]), entry["status"]
        except (KeyError, TypeError):
            continue  # the last line of a run that was killed
        if status == Status.FAIL.value:
            failed.add(test)
            in_this_run.add(test)
        elif status == Status.PASS.value and test not in in_this_run:
            failed.discard(test)
    return failed


def _failed(test: str) -> dict[str, str]:
    return {"test": test, "status": Status.FAIL.value}


def _lines(entries: Iterable[dict[str, str]]) -> bytes:
    return redaction.document(b"".join(encode(entry) + b"\n" for entry in entries))
