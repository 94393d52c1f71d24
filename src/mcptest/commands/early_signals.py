"""How a command begins and ends: what a signal does when nothing is running that it could stop.

While servers run, `transport/interrupt.py` says what a signal does. It imports too much to be there
from the first moment, and a signal may come while we still import it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

_ASKING_US_TO_GO = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130
_AGAIN = 0.001

_handlers: set[object] = {signal.SIG_DFL, signal.default_int_handler}
"""Ours and those of the interpreter. What is ignored, as SIGHUP under nohup, stays ignored."""


def leave_on_signals(code: int = _INTERRUPTED) -> None:
    """End at once on a signal: nothing has been started yet, or everything has ended.

    An exception would not do. One that is raised while a module is imported may get lost there.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        if code == _INTERRUPTED:
            _say_interrupted()
        os._exit(code)

    _install(leave)


def interrupt_on_signals() -> None:
    """Whatever asks us to go: children are ended, what was seen is kept."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
        """The interrupt was raised where nobody can catch it, as in a callback of the import."""
        if unraisable.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            sys.__unraisablehook__(unraisable)

    if _install(interrupt) and sys.unraisablehook is sys.__unraisablehook__:
        signal.signal(signal.SIGALRM, interrupt)
        sys.unraisablehook = interrupt_again


def _install(handler: Callable[[int, FrameType | None], None]) -> bool:
    """Whether we may: only in the main thread, and nobody else has a handler."""
    _handlers.add(handler)
    try:
        for number in _ASKING_US_TO_GO:
            if signal.getsignal(number) in _handlers:
                signal.signal(number, handler)
    except ValueError:  # another thread
        return False
    return True


def _say_interrupted() -> None:
    try:
        os.write(2, b"mcptest: interrupted\n")
    except OSError:  # it is closed
        return
