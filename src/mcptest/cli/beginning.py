"""How a command begins: who may interrupt it, and the early start of a run.

Imports next to nothing: a run that is the same as the last one starts its first server from here.
"""

from __future__ import annotations

from mcptest.transport.bare_signals import (
    ASKING_US_TO_GO,
    interrupt_on_signals,
    leave_on_signals,
    signal,
)

__all__ = ["leave_on_signals", "run_suites"]

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Sequence


def run_suites(words: Sequence[str]) -> int:
    """`mcptest run`. Before all else its first server is started, if it is known which."""
    from mcptest.run.same_run import this_run

    try:
        if this_run.is_known(words):
            interrupt_on_signals()
            # whoever asks us to go is heard when it is known what there is to take down
            before = signal.pthread_sigmask(signal.SIG_BLOCK, ASKING_US_TO_GO)
            try:
                this_run.start_early()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        from mcptest.cli.app import run

        return run(words)
    finally:
        this_run.end_unused()
