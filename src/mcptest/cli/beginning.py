"""How a command begins: who may interrupt it, and the early start of a run.

Imports next to nothing: a run that is the same as the last one starts its first server from here.
"""

from __future__ import annotations

from mcptest.transport.bare_signals import signal

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

_ASKING_US_TO_GO = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_suites(words: Sequence[str]) -> int:
    """`mcptest run`. Before all else its first server is started, if it is known which."""
    from mcptest.run.same_run import this_run

    try:
        if this_run.is_known(words):
            be_interrupted_by_signals()
            # whoever asks us to go is heard when it is known what there is to take down
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _ASKING_US_TO_GO)
            try:
                this_run.start_early()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
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
            if signal.getsignal(number) == signal.SIG_DFL:  # else it is ignored, as under nohup
                signal.signal(number, interrupt)
        except ValueError:  # only the main thread may, and nobody else is one
            return
