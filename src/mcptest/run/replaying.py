"""A recorded server on standard input and output: it answers as it did when it was recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mcptest.model.capture import AnyRecord, Frame, Trouble
from mcptest.model.deadline import Deadline
from mcptest.model.errors import UsageError
from mcptest.model.message import ABSENT, Message
from mcptest.peer.demo.loop import Loop
from mcptest.peer.demo.protocol import INTERNAL_ERROR, Refusal, encode, error_message
from mcptest.peer.demo.stdio import PATIENCE_SECONDS, SIGNAL_PATIENCE_SECONDS, Input, Output
from mcptest.transport.capture_file import open_capture
from mcptest.transport.replay import Replay
from mcptest.wire.envelope import decode

_AT_ONCE = 1.0
"""A recording answers from memory; nothing is waited for."""


class ReplayedServer:
    """One client, and the first session of a capture."""

    def __init__(self, records: Iterator[AnyRecord], loop: Loop) -> None:
        self._loop = loop
        self._replay = Replay(records, sink=_nobody, keeps_answers=True)
        self._in = Input(loop, self._take_line, self._flush)
        self._out = Output(loop, self._in.accept)

    def run(self) -> None:
        self._replay.open(Deadline.after(_AT_ONCE))
        self._say(ABSENT)
        self._in.accept(True)
        self._loop.run()
        self._out.finish(PATIENCE_SECONDS if self._in.ended else SIGNAL_PATIENCE_SECONDS)

    def _flush(self) -> None:
        self._out.flush()

    def _take_line(self, line: bytes | None) -> None:
        if line is None or not line.strip():
            return
        message = decode(line)
        self._replay.send(line, Deadline.after(_AT_ONCE))
        self._say(_id_of(message))

    def _say(self, asked: object) -> None:
        for record in self._replay.receive(Deadline.after(_AT_ONCE)):
            if isinstance(record, Frame):
                self._out.write(on_one_line(record.raw) + b"\n")
            elif isinstance(record, Trouble) and asked is not ABSENT:
                refusal = Refusal(INTERNAL_ERROR, record.detail)
                self._out.write(encode(error_message(asked, refusal)) + b"\n")


def _nobody(record: AnyRecord) -> None:
    """What is replayed is recorded already."""


def _id_of(message: Message) -> object:
    asks = message.method is not None and isinstance(message.id, str | int)
    return message.id if asks else ABSENT


def on_one_line(raw: bytes) -> bytes:
    """Over HTTP a message may have been written on several lines; a pipe takes them for several."""
    if b"\n" not in raw and b"\r" not in raw:
        return raw
    try:
        return json.dumps(json.loads(raw), ensure_ascii=False).encode()
    except ValueError:
        return raw.replace(b"\n", b" ").replace(b"\r", b" ")


def serve_recording(path: str) -> None:
    """Be the server of a capture until standard input ends. UsageError when it is no capture."""
    for session in open_capture(path):
        records = [record for _, record in session.records]
        if any(isinstance(record, Frame) for record in records):
            loop = Loop()
            loop.stop_on_signals()
            ReplayedServer(iter(records), loop).run()
            return
    raise UsageError(f"{path}: there is no message in it to be played")
