"""A scripted server: a script is told what came and acts on it. Its stage is where it is met: over
HTTP, or on standard input and output by clients that launch their server.

A script never judges. Everything is called from the one thread of the loop, in the order in which
it came, and nothing may block: what takes time is put on the clock of the stage.

Over HTTP it listens on loopback only, on ports that the system chooses. Whoever comes with a
foreign Host or Origin is recorded and sent away. Whatever a client sends costs bounded time and
memory.
"""

from __future__ import annotations

import errno
import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial
from socket import socket
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote

from mcptest.core.capture import Sse
from mcptest.core.errors import ErrorKind
from mcptest.core.limits import MEBIBYTE
from mcptest.core.revision import Era, Revision
from mcptest.servers.demo.jsonrpc import (
    INVALID_REQUEST,
    NOTIFICATION,
    REQUEST,
    RESPONSE,
    Refusal,
    encode,
    error_message,
    kind_of,
    read_text,
    readable_id,
    too_large,
)
from mcptest.servers.demo.stdio_server import StdioPipes
from mcptest.servers.http_connection import HttpConnection, Rejected, Request, check_sender
from mcptest.servers.scripted.recording import SiteTape, spoken_note
from mcptest.transport.listener import Listener
from mcptest.transport.loop import Loop
from mcptest.wire.http1 import RequestHead, WireError

if TYPE_CHECKING:
    from mcptest.transport.listener import Forget


Obj: TypeAlias = dict[str, Any]
MCP = "mcp"
"""The origin that the client is given. A script may have others: an authorization server."""

MAX_BATCH = 1_000
DEFECT = "a defect of mcptest: "
"""How a note begins that tells of one, for whoever reads the capture."""

P = ParamSpec("P")
T = TypeVar("T")


class ScriptStage(ABC):
    """Where one script plays for one client: which revision and transport, at which addresses, with
    which clock, and on which tape."""

    revision: Revision
    """What is spoken now: the newest of those on offer, until the client has chosen."""
    offered: tuple[Revision, ...]
    """What the server speaks, the oldest first."""
    asks_for_capabilities = True
    """Whether a script may ask for what the client declares, to see that it is there. May be set
    before anything has come."""
    transport: str
    """`http` or `stdio`."""
    agreed: Revision | None = None
    over = False
    """The scenario has ended: nothing is told to the script any more."""
    defect = ""
    """What went wrong in the script itself; empty when nothing did."""
    on_settled: Callable[[], None] | None = None
    """Called once, when the script has seen all that it waits for."""

    def __init__(
        self, script: Script, tape: SiteTape, loop: Loop, offered: Collection[Revision]
    ) -> None:
        self.offered = tuple(sorted(offered))
        self.revision = self.offered[-1]
        self.script = script
        self.tape = tape
        self.loop = loop

    @property
    def stateless(self) -> bool:
        return self.revision.era is Era.STATELESS

    def offers(self, era: Era) -> Revision | None:
        """The newest revision of this era that the server speaks."""
        return max((one for one in self.offered if one.era is era), default=None)

    def agree(self, revision: Revision) -> None:
        """The client has chosen. It is written down for whoever judges the capture."""
        self.revision = revision
        if revision is not self.agreed:
            self.agreed = revision
            self.note(spoken_note(revision))

    def play(self, action: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | None:
        """Let the script act. None, too, when it is over or has failed."""
        if self.over:
            return None
        try:
            outcome = action(*arguments, **named)
            tell = self.on_settled
            if tell is not None and self.script.settled():
                self.on_settled = None
                tell()
        except Exception as error:  # noqa: BLE001 - said as a defect of ours, and ends the scenario
            place = traceback.extract_tb(error.__traceback__)[-1]
            self.defect = (
                f"{type(self.script).__name__} failed: {type(error).__name__}: {error} "
                f"({place.name}, line {place.lineno})"
            )
            self.note(f"{DEFECT}{self.defect}")
            self.over = True
            self.stop()
            return None
        return outcome

    def take(self, raw: bytes, visit: Visit | None = None) -> None:
        """A line or a body has come: the script hears of the messages in it."""
        value: Any = None
        try:
            value = read_text(raw)
            if isinstance(value, list) and self.revision is not Revision.V2025_03_26:
                raise Refusal(INVALID_REQUEST, "Invalid request: there are no batches")
            if isinstance(value, list) and not 0 < len(value) <= MAX_BATCH:
                raise Refusal(INVALID_REQUEST, f"A batch has 1 to {MAX_BATCH} messages")
            messages = value if isinstance(value, list) else [value]
            kinds = [kind_of(one) for one in messages]
            if visit is not None:
                visit.accept(kinds, batched=isinstance(value, list))
        except Refusal as refusal:
            self.refuse(raw, error_message(readable_id(value), refusal), visit)
            return
        for one, kind in zip(messages, kinds, strict=True):
            if kind == REQUEST:
                self.play(self.script.request, ScriptedCall(self, one, visit))
            else:
                tell = self.script.notified if kind == NOTIFICATION else self.script.answered
                self.play(tell, one)

    def refuse(self, raw: bytes, answer: Obj, visit: Visit | None = None) -> None:
        """What came is no message. The script may deal with it; else this is the answer."""
        is_dealt_with = self.play(self.script.broken, raw)
        if visit is None and not is_dealt_with:
            self.send(answer)
        elif visit is not None and not is_dealt_with:
            visit.respond(400, answer)
        elif visit is not None and visit.is_waiting:
            visit.respond(202)

    @abstractmethod
    def url(self, origin: str = MCP) -> str:
        """`http://localhost:PORT` of one of the script's origins, without a path."""

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do it later; never, when the scenario has ended before."""
        self.loop.after(seconds, lambda: self.play(action))

    def note(self, text: str) -> None:
        """Put a remark in the capture: what the script does on purpose."""
        self.tape.note(text)

    def stop(self) -> None:
        """End the server."""
        self.loop.stop()

    def run(self) -> None:
        """Until the script ends it, or a signal comes."""
        self.loop.run()

    def close(self) -> None:
        """Nothing is told to the script from here on."""
        self.over = True
        self.on_settled = None

    @abstractmethod
    def send(self, message: Obj | bytes) -> bool:
        """Something that answers no request: on stdio a line, over HTTP on the client's open GET
        stream. False when there is no way to send it now."""


class ScriptedCall:
    """One JSON-RPC request of the client, on either transport.

    Whether it is answered once, late, twice or never is the script's business.
    """

    def __init__(self, stage: ScriptStage, message: Obj, visit: Visit | None = None) -> None:
        self.id, self.method = message["id"], message["method"]
        self.params: Obj = message.get("params", {})
        """Empty where there are none or they are no object."""
        self.message = message
        self.visit = visit
        """The HTTP request that carried it; None on stdio."""
        self.answer_headers: Obj = {}
        """More headers for the HTTP answer, to be put in before it is begun."""
        self._stage = stage
        self._has_stream = visit is not None and visit.is_streaming
        self._stays_open = False

    @property
    def meta(self) -> Obj:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    def result(self, result: Obj) -> None:
        """Answer it. `Script.finish` adds what every result of the era has."""
        whole = self._stage.script.finish(self, result)
        self.reply({"jsonrpc": "2.0", "id": self.id, "result": whole})

    def error(self, code: int, message: str, data: Any = None, *, status: int = 200) -> None:
        self.reply(error_message(self.id, Refusal(code, message, data)), status=status)

    def reply(self, message: Obj | bytes, *, status: int = 200) -> None:
        """The answer as it is; over HTTP as JSON, or as the last event where a stream was begun.

        A second time: on stdio one more line; over HTTP only on a stream that was kept open.
        """
        visit = self.visit
        if visit is None:
            self._stage.send(message)
        elif not self._has_stream:
            visit.respond(status, message, headers=self.answer_headers)
        else:
            visit.message(message)
            visit.unanswered -= 1
            if visit.unanswered == 0 and not self._stays_open:
                visit.end()

    def send(self, message: Obj | bytes) -> None:
        """A notification or a request of the server that belongs to this request; over HTTP it
        begins a stream."""
        visit = self.begin_stream()
        if visit is None:
            self._stage.send(message)
        else:
            visit.message(message)

    def begin_stream(self, priming: Sse | None = None) -> Visit | None:
        """Over HTTP answer with an event stream, begun with a priming event if there is one. None
        on stdio."""
        visit = self.visit
        if visit is not None and not self._has_stream:
            self._has_stream = True
            visit.stream(self.answer_headers)
        if visit is not None and priming is not None:
            visit.event(priming)
        return visit

    def keep_open(self) -> None:
        """Do not end the stream with the answer; on stdio there is one only, and it stays."""
        self._stays_open = True

    def cut(self) -> None:
        """Over HTTP close the connection without an answer; on stdio end the server."""
        if self.visit is not None:
            self.visit.cut()
        else:
            self._stage.note("the server ends on purpose")
            self._stage.stop()

    def notify(self, method: str, params: Obj) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, identifier: str, method: str, params: Obj) -> None:
        """A request of the server. The answer comes to `answered`."""
        self.send({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})


class Script:
    """What the server does with one client."""

    origins: tuple[str, ...] = (MCP,)
    endpoint: str = "/mcp"
    context: Mapping[str, Any] = {}
    """Given to the client in `MCP_CONFORMANCE_CONTEXT` besides the scenario's own; may be set in
    `begin`, when the addresses are known."""
    issued: Collection[str] = frozenset()
    """Tokens and secrets that the script itself made up and gave out. They are nobody's secrets, so
    a capture keeps them, and can be judged again."""
    stage: ScriptStage

    def begin(self, stage: ScriptStage) -> None:
        """Called once, before anything can come."""
        self.stage = stage

    def visit(self, visit: Visit) -> bool:
        """An HTTP request has come, to any origin and path. True: it is dealt with. Otherwise a
        POST to the endpoint becomes `request`, `notified` or `answered`, a GET to it an open
        stream in the handshake era, and everything else 404 or 405."""
        return False

    def request(self, call: ScriptedCall) -> None:
        raise NotImplementedError

    def finish(self, call: ScriptedCall, result: Obj) -> Obj:
        """What `call.result` sends for this result."""
        return result

    def notified(self, message: Obj) -> None:
        """A notification has come; over HTTP it was accepted with 202."""

    def answered(self, message: Obj) -> None:
        """The client's answer to a request of ours; over HTTP it was accepted with 202."""

    def broken(self, raw: bytes) -> bool:
        """Bytes that are no message. True: dealt with; else they are answered with -32700."""
        return False

    def hung_up(self, visit: Visit) -> None:
        """HTTP: the client closed the connection before it had its whole answer. In the stateless
        era that is how it cancels."""

    def settled(self) -> bool:
        """All has happened that the script waits for, so that a client that stays can be ended."""
        return False


WAITING = "waiting"
STREAMING = "streaming"
DONE = "done"
_UNSAFE = re.compile(r"[^\t -~]+")


class Visit:
    """One HTTP request, whatever it is for. It is answered once: whole, with a stream, or cut."""

    def __init__(
        self,
        stage: ScriptStage,
        connection: HttpConnection,
        request: Request,
        origin: str,
        url: str,
    ) -> None:
        self.origin = origin
        self.method = request.method
        self.path = request.path
        self.query = dict(parse_qsl(request.query, keep_blank_values=True))
        """The last value of each name."""
        self.headers = request.headers
        """By name in lower case; repeated ones are joined with a comma."""
        self.body = request.body
        self.state = WAITING
        self.unanswered = 1
        """Requests in its body: a batch, as 2025-03-26 has it, may have several."""
        self._stage = stage
        self.tape = stage.tape
        self.stream_number = self.tape.new_stream()
        self._connection = connection
        connection.on_head = partial(self.tape.response, self.stream_number)
        connection.on_gone = self._client_hung_up
        self.tape.request(self.stream_number, request.method, url, request.head.headers)
        if self.body:
            self.tape.frame("client", self.body, self.stream_number)

    def respond(
        self,
        status: int,
        body: bytes | Obj = b"",
        *,
        headers: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> None:
        if self.state != WAITING:
            self.remark("answered already; a second answer was not sent")
            return
        data = body if isinstance(body, bytes) else encode(body)
        connection = self.leave()
        connection.respond(status, data, kind, _safe(headers))
        if data:
            self.tape.frame("server", data, self.stream_number)
        self.tape.end(self.stream_number, complete=connection.open)

    @property
    def is_waiting(self) -> bool:
        return self.state == WAITING

    @property
    def is_streaming(self) -> bool:
        return self.state == STREAMING

    def accept(self, kinds: list[str], *, batched: bool) -> None:
        """What is due before a script hears of its messages. Raises Refusal."""
        if self._stage.stateless and RESPONSE in kinds:
            raise Refusal(INVALID_REQUEST, "Invalid request: a client sends no responses")
        self.unanswered = kinds.count(REQUEST)
        if not self.unanswered:
            self.respond(202)
        elif batched:
            self.stream()  # on which they are answered one by one

    def stream(self, headers: Mapping[str, str] | None = None) -> Visit:
        """Answer with an event stream, on which messages and events are sent until its end."""
        if self.state == WAITING:
            self.state = STREAMING
            self._connection.start_stream(_safe(headers))
        else:
            self.remark("answered already; no stream was begun")
        return self

    def message(self, message: Obj | bytes, *, event_id: str | None = None) -> None:
        """A JSON-RPC message as an event, with an event id if one is given."""
        raw = message if isinstance(message, bytes) else encode(message)
        sse = Sse(event="message", id=event_id)
        if self._write(written(sse, raw), "a message"):
            self.tape.frame("server", raw, self.stream_number, sse)

    def event(self, sse: Sse, data: str = "", comment: str | None = None) -> None:
        """Any event, also one without a message: a priming event, a comment."""
        # Without a data line an event is never dispatched: a priming event has an empty one.
        raw = data.encode() if data or sse.event is not None or sse.id is not None else None
        if self._write(written(sse, raw, comment), "an event"):
            self.tape.event(self.stream_number, sse, data, comment)

    def end(self) -> None:
        """The stream is complete."""
        if self.state == STREAMING:
            connection = self.leave()
            connection.end_stream()
            self.tape.end(self.stream_number, complete=connection.open)

    def cut(self) -> None:
        """Close the connection without an answer."""
        if self.state == DONE:
            return
        connection = self.leave()
        self.remark("the connection is closed on purpose")
        self.tape.end(self.stream_number, complete=False)
        connection.close()

    def _write(self, event: bytes, what: str) -> bool:
        """False when there is nobody to write to any more."""
        if self.state != STREAMING or not self._connection.open:
            self.remark(f"{what} could not be sent: the stream has ended")
            return False
        self._connection.stream(event)
        return True

    def remark(self, text: str) -> None:
        self.tape.note(f"stream {self.stream_number}: {text}")

    def leave(self) -> HttpConnection:
        """The answer is complete: what happens on the connection from here on is not ours."""
        self.state = DONE
        self._connection.on_gone = None
        return self._connection

    def _client_hung_up(self) -> None:
        if self.state == DONE or self._stage.over:
            return
        self.state = DONE
        self.remark("the client hung up before its answer was complete")
        self.tape.end(self.stream_number, complete=False)
        self._stage.play(self._stage.script.hung_up, self)


def _safe(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Scripts give back what clients sent, as in a redirect: it must not end the header."""

    def escaped(unsafe: re.Match[str]) -> str:
        return quote(unsafe.group().encode("utf-8", "backslashreplace"))

    return {name: _UNSAFE.sub(escaped, value) for name, value in (headers or {}).items()}


def written(sse: Sse, data: bytes | None, comment: str | None = None) -> bytes:
    """One server-sent event, as bytes."""
    lines: list[bytes] = []
    if comment is not None:
        lines.append(b": " + comment.encode())
    if sse.id is not None:
        lines.append(b"id: " + sse.id.encode())
    if sse.event is not None:
        lines.append(b"event: " + sse.event.encode())
    if sse.retry is not None:
        lines.append(b"retry: %d" % sse.retry)
    if data is not None:
        lines += [b"data: " + line for line in data.splitlines() or [b""]]
    return b"\n".join(lines) + b"\n\n"


# -- The scripted server over HTTP ---------------------------------------------------------------

NAME = "localhost"
IPV4, IPV6 = "127.0.0.1", "::1"
HELD_BYTES = 32 * MEBIBYTE
"""What all connections may have in their buffers together."""
LARGE = 256 * 1024
_TRIES = 8


class ScriptedSite(ScriptStage):
    """All origins of one script, for one client."""

    transport = "http"

    def __init__(
        self,
        script: Script,
        tape: SiteTape,
        loop: Loop,
        offered: Collection[Revision],
        port: int = 0,
    ) -> None:
        """Listens at once, and lets the script begin. `port` is that of the first origin."""
        super().__init__(script, tape, loop, offered)
        self._general: list[Visit] = []
        """Open GET streams, the latest last."""
        self._listeners: list[Listener] = []
        self._ports: dict[str, int] = {}
        try:
            for origin in script.origins:
                self._ports[origin] = self._listen(origin, port)
                port = 0
        except OSError:
            self.close()
            raise
        tape.origins(self.urls)
        self.play(script.begin, self)

    def url(self, origin: str = MCP) -> str:
        return f"http://{NAME}:{self._ports[origin]}"

    def send(self, message: Obj | bytes) -> bool:
        self._general = [one for one in self._general if one.is_streaming]
        if not self._general:
            return False
        self._general[-1].message(message)
        return True

    @property
    def urls(self) -> dict[str, str]:
        return {origin: self.url(origin) for origin in self._ports}

    def close(self) -> None:
        super().close()
        for listener in self._listeners:
            listener.close()

    def _listen(self, origin: str, port: int) -> int:
        """On both loopback addresses: `localhost` is the one or the other, as the client likes."""
        loop, connect = self.loop, partial(self._connect, origin)
        for _ in range(_TRIES):
            first = Listener(loop, (IPV4, port), connect, makes_room=True)
            try:
                second = Listener(loop, (IPV6, first.port), connect, makes_room=True)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:  # there is no IPv6 here
                    self._listeners.append(first)
                    return first.port
                first.close()
                if port:
                    raise
                continue
            self._listeners += [first, second]
            return first.port
        raise OSError(errno.EADDRINUSE, "no port is free on both loopback addresses")

    def _connect(self, origin: str, sock: socket, forget: Forget) -> HttpConnection:
        handle = partial(self._handle, origin)
        connection = HttpConnection(self.loop, sock, handle, forget)
        connection.on_refused = partial(self._refused, origin, connection)
        connection.on_fed = self._fed
        return connection

    def _refused(
        self, origin: str, connection: HttpConnection, fault: WireError, head: RequestHead | None
    ) -> None:
        """Bytes that are no request of HTTP: they are recorded, and answered by the connection."""
        stream = connection.on_head = None
        if head is not None:
            stream = self.tape.new_stream()
            url = self.url(origin) + head.target
            self.tape.request(stream, head.method, url, head.headers)
            connection.on_head = partial(self.tape.response, stream)
        self.tape.trouble(fault.kind, fault.detail, fault.excerpt, stream)

    def _fed(self, connection: HttpConnection) -> None:
        if connection.held < LARGE:
            return
        held = sum(one.held for listener in self._listeners for one in listener.connections)
        if held > HELD_BYTES:
            detail = f"all connections together hold more than {HELD_BYTES} bytes"
            self.tape.trouble(ErrorKind.BODY_TOO_LARGE, detail)
            connection.close()

    def _handle(self, origin: str, request: Request, connection: HttpConnection) -> None:
        url = self.url(origin) + request.head.target
        visit = Visit(self, connection, request, origin, url)
        try:
            check_sender(request, IPV4)
        except Rejected as rejected:
            visit.remark(f"refused: {rejected.refusal.message}")
            visit.respond(rejected.status, error_message(None, rejected.refusal))
            return
        if not self.play(self.script.visit, visit) and visit.is_waiting:
            self._route(visit)

    def _route(self, visit: Visit) -> None:
        if self.over:
            visit.cut()
        elif visit.origin != MCP or visit.path != (self.script.endpoint or "/"):
            visit.respond(404, error_message(None, Refusal(INVALID_REQUEST, "Not found")))
        elif visit.method == "POST":
            self.take(visit.body, visit)
        elif visit.method == "GET" and not self.stateless:
            self._general.append(visit.stream())
        else:
            allowed = "POST" if self.stateless else "GET, POST"
            refusal = Refusal(INVALID_REQUEST, f"{visit.method} is not allowed here")
            visit.respond(405, error_message(None, refusal), headers={"Allow": allowed})


# -- The scripted server on standard input and output --------------------------------------------


class ScriptedPipes(ScriptStage):
    """The one client at the other end of the pipes."""

    transport = "stdio"

    def __init__(
        self, script: Script, tape: SiteTape, loop: Loop, offered: Collection[Revision]
    ) -> None:
        super().__init__(script, tape, loop, offered)
        self._pipes = StdioPipes(loop, self._take_line, tape.save)
        self.play(script.begin, self)

    def url(self, origin: str = MCP) -> str:
        raise LookupError("there are no addresses on stdio")

    def send(self, message: Obj | bytes) -> bool:
        raw = message if isinstance(message, bytes) else encode(message)
        self.tape.frame("server", raw)
        self._pipes.write(raw + b"\n")
        return True

    def run(self) -> None:
        """Until the client closes our input, the script ends it, or a signal comes."""
        self._pipes.run()
        self.close()
        self._pipes.finish()

    def _take_line(self, line: bytes | None) -> None:
        if line is None:
            detail = "the client sent a line that is too long"
            self.tape.trouble(ErrorKind.LINE_TOO_LONG, detail)
            self.refuse(b"", error_message(None, too_large()))
        elif line.strip():
            self.tape.frame("client", line)
            if self._pipes.ended:
                self.tape.broken_off()
            self.take(line)
