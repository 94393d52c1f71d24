"""A command at a real terminal: keys go in, and what a person would see comes out."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.driving import BOUND

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BECOME = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "mcptest", *sys.argv[1:]])
"""


def shown_by(text: str) -> list[str]:
    """The lines that a terminal shows after this: it knows CR, LF, erase-to-end and colours.

    Whatever is drawn over stands on its last line, so the end of the screen is that of the line.
    """
    lines = [""]
    at = 0
    for piece in re.split(r"(\r|\n|\x1b\[[JK])", _COLOUR.sub("", text)):
        if piece == "\r":
            at = 0
        elif piece == "\n":
            lines.append("")
            at = 0
        elif piece in ("\x1b[J", "\x1b[K"):
            lines[-1] = lines[-1][:at]
        else:
            lines[-1] = lines[-1][:at] + piece + lines[-1][at + len(piece) :]
            at += len(piece)
    return lines[:-1] if lines[-1] == "" else lines


def _last_complete(data: bytes) -> int:
    tail = re.search(rb"(\x1b(\[[0-9;]*)?|\r|[\xc0-\xff][\x80-\xbf]{0,2})\Z", data)
    if tail is None:
        return len(data)
    letter = tail.group()
    with contextlib.suppress(UnicodeDecodeError):
        if letter[0] >= 0xC0 and letter.decode():
            return len(data)
    return tail.start()


class Terminal:
    """The other side of the terminal that a command runs in."""

    def __init__(self, master: int, slave: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self._slave = slave
        self.process = process
        self.text = ""
        self._read_to = 0
        self._cut_off = b""

    def until(self, words: str) -> str:
        """Wait until these words appear after those that were waited for before."""
        limit = time.monotonic() + BOUND
        while (at := self.text.find(words, self._read_to)) < 0:
            left = limit - time.monotonic()
            assert left > 0, f"never shown: {words!r} in\n{self.text[self._read_to :]}"
            assert self._read(left), f"ended without {words!r}:\n{self.text}"
        self._read_to = at + len(words)
        return self.text

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def end(self) -> int:
        """Wait for its end; gives the exit code."""
        limit = time.monotonic() + BOUND
        while self.process.poll() is None and time.monotonic() < limit:
            self._read(0.05)
        code = self.process.wait(1)
        while self._read(0):
            pass
        self.text += self._cut_off.decode()
        return code

    @property
    def lines(self) -> list[str]:
        return shown_by(self.text)

    @property
    def is_cooked(self) -> bool:
        """Whether it echoes and waits for Enter, as a shell expects it."""
        mode = termios.tcgetattr(self._slave)[3]
        return bool(mode & termios.ICANON) and bool(mode & termios.ECHO)

    def _read(self, patience: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], patience)
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the last one at the other side is gone
            return False
        whole = self._cut_off + data
        # An escape sequence or a letter may come in two pieces.
        complete = whole if len(whole) > 65536 else whole[: _last_complete(whole)]
        self._cut_off = whole[len(complete) :]
        self.text += _COLOUR.sub("", complete.decode().replace("\r\n", "\n"))
        return bool(data)


@contextlib.contextmanager
def at_a_terminal(
    *argv: str, cwd: Path, env: Mapping[str, str], **options: Any
) -> Iterator[Terminal]:
    """Run `mcptest` with a terminal of its own, 100 columns wide."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _BECOME, *argv],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=cwd,
        env={**_without_colour_words(env), "TERM": "xterm", "COLUMNS": "100"},
        start_new_session=True,
        **options,
    )
    try:
        yield Terminal(master, slave, process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(BOUND)
        os.close(master)
        os.close(slave)


def _without_colour_words(env: Mapping[str, str]) -> dict[str, str]:
    unwanted: Sequence[str] = ("NO_COLOR", "FORCE_COLOR")
    return {key: value for key, value in env.items() if key not in unwanted}
