"""The tool calls of a session that somebody else drives, noted as they go by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mcptest.model.capture import AnyRecord, Frame
from mcptest.suite.model import TraceEntry
from mcptest.transport.base import Sink

MOST_CALLS = 100_000
MOST_BYTES = 64 * 1024 * 1024
"""Of arguments, all calls together."""


class _Asked(msgspec.Struct):
    """What has to be known of a message to see whether it is a call; the rest is skipped."""

    method: Any = None
    params: msgspec.Raw = msgspec.Raw()


_decode_one = msgspec.json.Decoder(_Asked).decode
_decode_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Trace:
    """Watches sessions on their way to the capture, before anything in them is masked."""

    def __init__(self) -> None:
        self.calls: list[TraceEntry] = []
        self.left_out = 0
        """Calls that were not kept: a trace without them proves nothing."""
        self.messages = 0
        self._bytes = 0

    def watch(self, sink: Sink) -> Sink:
        def noting(record: AnyRecord) -> None:
            if type(record) is Frame:
                self.messages += 1
                if record.sender == "client":
                    self._note(record.raw)
            sink(record)

        return noting

    def _note(self, raw: bytes) -> None:
        for call, size in calls_in(raw):
            self._bytes += size
            if len(self.calls) < MOST_CALLS and self._bytes <= MOST_BYTES:
                self.calls.append(call)
            else:
                self.left_out += 1


def calls_in(raw: bytes) -> Iterator[tuple[TraceEntry, int]]:
    """The tool calls in a message or batch, each with the size of its arguments.

    A call without an id counts as well: whoever sent it meant to call the tool.
    """
    try:
        parts = _decode_batch(raw) if raw.lstrip()[:1] == b"[" else [raw]
    except (ValueError, RecursionError):
        return  # no JSON: nobody can have been called by it
    for part in parts:
        try:
            asked = _decode_one(part)
            if asked.method != "tools/call":
                continue
            params = msgspec.json.decode(asked.params)
        except (ValueError, RecursionError):
            continue
        if isinstance(params, dict) and isinstance(params.get("name"), str):
            arguments = params.get("arguments")
            entry = TraceEntry(params["name"], arguments if isinstance(arguments, dict) else {})
            yield entry, len(bytes(asked.params))
