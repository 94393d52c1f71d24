"""Signals as numbers, for what runs before the first server is started.

The module `signal` gives each number a name of a class of its own. That takes as long as a third of
the interpreter's start, and the first server would wait for it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    import signal
else:
    try:
        import _signal as signal
    except ImportError:  # an interpreter that has it elsewhere
        import signal

__all__ = ["signal"]
