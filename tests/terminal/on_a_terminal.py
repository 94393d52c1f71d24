"""A command whose stderr is a real terminal, and what a person would see on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import selectors
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.driving import BOUND

_PIECES = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+")


def rows_on_screen(text: str) -> list[str]:
    """The rows that stand there after all of it was written; understands just what we write."""
    rows, row, column = [""], 0, 0
    for piece in _PIECES.findall(text):
        if piece == "\r":
            column = 0
        elif piece == "\n":
            row, column = row + 1, 0
            rows += [""] * (row + 1 - len(rows))
        elif piece == "\x1b[J":
            rows[row:] = [rows[row][:column]]
        elif piece == "\x1b[K":
            rows[row] = rows[row][:column]
        elif re.fullmatch(r"\x1b\[\d+A", piece):
            row -= int(piece[2:-1])
        elif not piece.startswith("\x1b"):
            rows[row] = rows[row][:column] + piece + rows[row][column + len(piece) :]
            column += len(piece)
        elif not piece.endswith("m"):
            raise AssertionError(f"unknown to this terminal: {piece!r}")
    return rows


class OnTerminal:
    """The command while it runs. stdout goes to a file, so that the two can't be mixed up."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int, out: Path) -> None:
        self.process = process
        self._terminal = terminal
        self._out = out
        self._text = b""

    @property
    def text(self) -> str:
        return self._text.decode(errors="replace")

    @property
    def rows(self) -> list[str]:
        return rows_on_screen(self.text)

    @property
    def out(self) -> str:
        return self._out.read_text()

    def resize(self, columns: int, rows: int) -> None:
        set_size(self._terminal, columns, rows)

    def wait_for(self, pattern: str) -> str:
        """Until a row of the screen looks so."""
        limit = time.monotonic() + BOUND
        while True:
            for row in self.rows:
                if re.search(pattern, row):
                    return row
            if not self._read(limit):
                raise AssertionError(f"never came: {pattern}\n{self.text}")

    def end(self) -> int:
        """Everything that is still said, and the exit code."""
        limit = time.monotonic() + BOUND
        while self._read(limit):
            pass
        return self.process.wait(BOUND)

    def _read(self, limit: float) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self._terminal, selectors.EVENT_READ)
            if not selector.select(max(0.0, limit - time.monotonic())):
                return False
        try:
            piece = os.read(self._terminal, 65_536)
        except OSError:  # nobody has the other end any more
            return False
        self._text += piece
        return bool(piece)


def set_size(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextlib.contextmanager
def on_terminal(
    *argv: str, cwd: Path, columns: int = 100, rows: int = 30, **environment: str
) -> Iterator[OnTerminal]:
    ours, theirs = os.openpty()
    set_size(ours, columns, rows)
    out = cwd / "stdout.txt"
    env = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **environment}
    for name in {"CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS"} - set(environment):
        env.pop(name, None)
    with out.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "mcptest", *argv],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=theirs,
        )
    os.close(theirs)
    try:
        yield OnTerminal(process, ours, out)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
