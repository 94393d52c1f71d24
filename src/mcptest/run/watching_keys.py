"""Single keys of a terminal, which is given back as it was however the program ends."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from types import FrameType
from typing import Any, TextIO

_READ_AT_ONCE = 64


class Keys:
    """Keys without Enter and without echo, from `take` to `give_back`. Ctrl-C stays a signal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: list[Any] | None = None
        self._at_continue: Any = None

    def fileno(self) -> int:
        return self._descriptor

    def take(self) -> None:
        self._before = termios.tcgetattr(self._descriptor)
        self._listen_to_single_keys()
        # A shell that stopped us (Ctrl-Z) has set the terminal to its own liking meanwhile.
        self._at_continue = signal.signal(signal.SIGCONT, self._again)

    def give_back(self) -> None:
        """May be called twice, and from a signal handler."""
        before, self._before = self._before, None
        if before is None:
            return
        # In the background it is not ours any more: the shell has set it to its own liking.
        if _is_ours(self._descriptor):
            with contextlib.suppress(termios.error):  # it was closed
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)
        with contextlib.suppress(ValueError):  # not in the main thread: nothing was set there
            signal.signal(signal.SIGCONT, self._at_continue)

    def read(self) -> str | None:
        """What was typed; None when the terminal is gone."""
        try:
            data = os.read(self._descriptor, _READ_AT_ONCE)
        except BlockingIOError:
            return ""
        except OSError:
            return None
        return data.decode("ascii", "replace") if data else None

    def _again(self, number: int, frame: FrameType | None) -> None:
        if self._before is not None and _is_ours(self._descriptor):
            self._listen_to_single_keys()

    def _listen_to_single_keys(self) -> None:
        mode = termios.tcgetattr(self._descriptor)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, mode)


def keys_of(stream: TextIO | None) -> Keys | None:
    """The keys of the terminal that a stream is; None when it is none, or not ours to change."""
    try:
        descriptor = stream.fileno() if stream is not None and stream.isatty() else None
    except (ValueError, OSError):  # closed
        return None
    return Keys(descriptor) if descriptor is not None and _is_ours(descriptor) else None


def _is_ours(descriptor: int) -> bool:
    """In the background, changing the terminal would stop us."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
