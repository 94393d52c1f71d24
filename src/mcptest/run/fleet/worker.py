"""The process that judges one server: `python -m mcptest.run.fleet.worker`.

Its order comes on stdin, which then stays open: at its end whoever started us is gone, and so are
we, with everything that we started. What is found goes to stdout, one line for each thing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import msgspec

from mcptest.model.errors import ExitCode
from mcptest.model.fleet import Found, Kept
from mcptest.model.show import show
from mcptest.run.fleet.frames import Finished, Progress, encoded
from mcptest.run.fleet.judging import judge_one
from mcptest.run.fleet.order import ServerOrder
from mcptest.run.interrupt import end_everything

_BETWEEN_NEWS = 0.2


def main() -> int:
    out = _keep_stdout_for_us()
    line, rest = _read_line(0)
    if not line:
        return ExitCode.INTERRUPTED  # whoever started us changed their mind
    order = msgspec.json.decode(line, type=ServerOrder)
    signal.signal(signal.SIGTERM, _leave_on_signal)
    threading.Thread(target=_leave_when_alone, args=(rest,), daemon=True).start()
    found = _found(order, _telling(out))
    _write(out, encoded(Finished(found)))
    return ExitCode.OK


def _found(order: ServerOrder, tell: Callable[[str], None]) -> Found:
    try:
        return judge_one(order, tell)
    except Exception as error:  # noqa: BLE001 - a defect of ours costs one server, and is said
        said = f"a defect of mcptest: {type(error).__name__}: {show(str(error), 300)}"
        from mcptest.model.redaction import redaction

        mask = redaction.masker.cut_text
        return Found(order.name, kept=Kept.LOST, reason=mask(said))


def _keep_stdout_for_us() -> int:
    """Whatever else writes to stdout writes to stderr."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return ours


def _read_line(descriptor: int) -> tuple[bytes, bytes]:
    parts = []
    while chunk := os.read(descriptor, 65536):
        line, newline, rest = chunk.partition(b"\n")
        parts.append(line)
        if newline:
            return b"".join(parts), rest
    return b"", b""


def _telling(out: int) -> Callable[[str], None]:
    """News, but not more of it than anyone reads. Several lanes of judging may tell at once."""
    turn = threading.Lock()
    next_at = 0.0

    def tell(text: str) -> None:
        nonlocal next_at
        with turn:
            now = time.monotonic()
            if now < next_at:
                return
            next_at = now + _BETWEEN_NEWS
            _write(out, encoded(Progress(text)))

    return tell


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(out, view) :]
    except BrokenPipeError:  # nobody wants to know any more
        _leave()


def _leave_when_alone(rest: bytes) -> None:
    while os.read(0, 4096):
        pass  # nothing is said after the order
    _leave()


def _leave_on_signal(number: int, frame: FrameType | None) -> None:
    _leave()


def _leave() -> None:
    end_everything()
    os._exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
