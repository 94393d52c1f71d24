"""The scripted server on standard input and output, for clients that launch their server."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from mcptest.core.errors import ErrorKind
from mcptest.core.revision import Revision
from mcptest.servers.demo.jsonrpc import (
    INVALID_REQUEST,
    Refusal,
    encode,
    error_message,
    kind_of,
    read_text,
    readable_id,
    too_large,
)
from mcptest.servers.demo.stdio_server import StdioPipes
from mcptest.servers.scripted.script import (
    MCP,
    Obj,
    Performance,
    ScriptStage,
)


class ScriptedPipes(ScriptStage):
    """The one client at the other end of the pipes."""

    transport = "stdio"

    def __init__(
        self,
        performance: Performance,
        offered: Collection[Revision],
        saved: Callable[[], None],
    ) -> None:
        """`saved` is called whenever all that came was dealt with: the moment to write it down."""
        super().__init__(performance, offered)
        self._saved = saved
        self._pipes = StdioPipes(performance.loop, self._take_line, saved)
        performance.play(self._script.begin, self)

    def url(self, origin: str = MCP) -> str:
        raise LookupError("there are no addresses on stdio")

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        def act() -> None:
            action()
            self._saved()

        super().after(seconds, act)

    def send(self, message: Obj | bytes) -> bool:
        raw = message if isinstance(message, bytes) else encode(message)
        self._tape.frame("server", raw)
        self._pipes.write(raw + b"\n")
        return True

    def run(self) -> None:
        """Until the client closes our input, the script ends it, or a signal comes."""
        self._pipes.run()
        self._performance.end()
        self._pipes.finish()
        self._saved()

    def _take_line(self, line: bytes | None) -> None:
        value: Any = None
        try:
            if line is None:
                detail = "the client sent a line that is too long"
                self._tape.trouble(ErrorKind.LINE_TOO_LONG, detail)
                raise too_large()
            if not line.strip():
                return
            self._tape.frame("client", line)
            if self._pipes.ended:
                self._tape.broken_off()
            value = read_text(line)
            if isinstance(value, list) and self.revision is not Revision.V2025_03_26:
                raise Refusal(INVALID_REQUEST, "Invalid request: there are no batches")
            for one in value if isinstance(value, list) else [value]:
                self.tell(one, kind_of(one))
        except Refusal as refusal:
            if not self._performance.play(self._script.broken, line or b""):
                self.send(error_message(readable_id(value), refusal))
