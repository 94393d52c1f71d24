"""Writing the capture of a scenario while it is played: to a limit, and without holding it back."""

from __future__ import annotations

from mcptest.model.capture import AnyRecord
from mcptest.model.limits import MEBIBYTE, Limits
from mcptest.peer.scripted.loop import Loop
from mcptest.transport.base import Sink
from mcptest.transport.recorder import Recorder

CAPTURE_LIMITS = Limits(capture_bytes=128 * MEBIBYTE)


def flushed_soon(recorder: Recorder, loop: Loop) -> Sink:
    """Write down what came once it has been dealt with: it costs no memory, and a kill loses
    nothing."""
    waits = False

    def flush() -> None:
        nonlocal waits
        waits = False
        recorder.flush()

    def tell(record: AnyRecord) -> None:
        nonlocal waits
        recorder(record)
        if not waits:
            waits = True
            loop.after(0, flush)

    return tell
