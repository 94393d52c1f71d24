"""How a command begins: who may interrupt it, and the early start of a run.

Imports next to nothing: a run that is the same as the last one starts its first server from here.
"""

from __future__ import annotations

import contextlib
import signal

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

_ASKING_US_TO_GO = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_suites(words: Sequence[str]) -> int:
    """`mcptest run`. Before all else its first server is started, if it is known which."""
    from mcptest.run.same_run import this_run

    try:
        if this_run.is_known(words):
            be_interrupted_by_signals()
            with _interrupts_held_back():  # until it is known what there is to take down
                this_run.start_early()
        from mcptest.cli.app import run

        return run(words)
    finally:
        this_run.end_unused()


def be_interrupted_by_signals() -> None:
    """Whatever asks us to go: children are ended, what was seen is kept."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        try:
            if signal.getsignal(number) is signal.SIG_DFL:  # else it is ignored, as under nohup
                signal.signal(number, interrupt)
        except ValueError:  # only the main thread may, and nobody else is one
            return


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Whoever asks us to go is heard at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ASKING_US_TO_GO)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
