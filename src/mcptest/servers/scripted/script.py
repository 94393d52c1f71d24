"""What a scripted server does, apart from the bytes: a script is told what came and acts on it.

A script never judges. Everything is called from the one thread of the loop, in the order in which
it came, and nothing may block: what takes time is put on the stage's clock.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from mcptest.core.capture import Sse
from mcptest.core.revision import Era, Revision
from mcptest.servers.demo.jsonrpc import (
    INVALID_REQUEST,
    NOTIFICATION,
    REQUEST,
    Refusal,
    error_message,
    kind_of,
    read_text,
    readable_id,
)
from mcptest.servers.scripted.recording import SiteTape, spoken_note
from mcptest.transport.loop import Loop

if TYPE_CHECKING:
    from mcptest.servers.scripted.sites import Visit

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
