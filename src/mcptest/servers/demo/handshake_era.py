"""The handshake era, 2024-11-05 to 2025-11-25: one session, whatever carries it.

Where the specification leaves a choice, this is ours: before `initialize` only `ping` is answered
and all else is refused with -32600; once `initialize` was answered requests are served, also when
`notifications/initialized` is still on its way, but the server asks nothing before that came.
"""

from __future__ import annotations

from itertools import count

from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import (
    LEVELS,
    Call,
    ClientQuestion,
    ServerExchange,
    ToolFailure,
    missing_capability,
    perform,
)
from mcptest.servers.demo.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOTIFICATION,
    REQUEST,
    SCHEMAS,
    Refusal,
    error_message,
    is_id,
    kind_of,
    notification,
    problem_with,
    readable_id,
)
from mcptest.servers.demo.offers import find_handler, wanted_uri

TYPE_CHECKING = False  # see jsonrpc
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcptest.servers.demo.exchange import Client, Handler, InFlight, Questions, ToolJob
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.tasks import Task
    from mcptest.servers.demo.world import World
    from mcptest.transport.loop import Timer

ASK_SECONDS = 60
MAX_BATCH = 1_000
MAX_IN_FLIGHT = 10_000
DEFAULT_LEVEL = "info"


class HandshakeSession:
    """One client after its handshake, and what it subscribed to."""

    def __init__(self, world: World, channel: Client) -> None:
        self.world = world
        self.version: str | None = None
        self.extra: set[str] = set()
        """The lists, `tools` and `prompts`, that have one more item for now."""
        self.tasks: dict[str, Task] = {}
        self._channel = channel
        """Carries what belongs to no request."""
        self.in_flight: InFlight = {}
        self._initialized = False
        self.capabilities: Obj = {}
        """What the client declared."""
        self.level = DEFAULT_LEVEL
        self._subscribed: set[str] = set()
        self._asks: dict[int, tuple[ToolJob, ClientQuestion, Timer]] = {}
        self._numbers = count(1)
        self._own_methods: dict[str, Handler] = {
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }

    def take(self, value: Any, way_back: Callable[[Any, InFlight], ServerExchange]) -> bool:
        """Take whatever came; whether there is something to answer in it.

        `way_back` makes that of a request, or of the answers of a batch.
        """
        if not isinstance(value, list):
            return self.take_one(value, way_back)
        if self.version != versions.V2025_03_26:
            raise Refusal(INVALID_REQUEST, "Invalid request: batches exist in 2025-03-26 only")
        if not 0 < len(value) <= MAX_BATCH:
            raise Refusal(INVALID_REQUEST, f"A batch has 1 to {MAX_BATCH} messages")
        if any(map(_wants_answer, value)):
            Batch(self, way_back(None, {})).run(value)
            return True
        for item in value:
            self.take_one(item, way_back)
        return False

    def take_one(self, value: Any, way_back: Callable[[Any, InFlight], ServerExchange]) -> bool:
        kind = kind_of(value)
        if kind == REQUEST:
            check_new_request(value, self.in_flight)
            self.request(value, way_back(value["id"], self.in_flight))
        elif kind == NOTIFICATION:
            self.notified(value)
        else:
            self.answered(value)
        return kind == REQUEST

    def request(self, message: Obj, exchange: ServerExchange) -> None:
        """Serve one request; the answer goes through the exchange, now or later."""
        method, params = message["method"], message.get("params", {})
        if method == "ping":
            exchange.succeed({})
        elif method == "initialize":
            self._initialize(params, exchange)
        elif self.version is None:
            exchange.refuse(Refusal(INVALID_REQUEST, "Not initialized: send initialize first"))
        else:
            self._serve(method, params, exchange, self.version)

    def _serve(self, method: str, params: Obj, exchange: ServerExchange, version: str) -> None:
        try:
            handler = find_handler(method, version, self.world, self._own_methods)
            call = Call(self.world, version, params, exchange, self.level, self.capabilities, self)
        except Refusal as refusal:
            exchange.refuse(refusal)
        else:
            perform(handler, call, exchange, self._ask)

    def notified(self, message: Obj) -> None:
        """Take a notification of the client. None is ever answered, known or not."""
        method, params = message["method"], message.get("params", {})
        if method == "notifications/initialized":
            self._initialized = self.version is not None
        elif method == "notifications/cancelled":
            cancel_request(self.in_flight, params)

    def answered(self, message: Obj) -> None:
        """Take the client's response to something that we asked; others are ignored."""
        identifier = message.get("id")
        pending = self._asks.pop(identifier, None) if type(identifier) is int else None
        if pending is None:
            return
        job, ask, timer = pending
        timer.cancel()
        if "error" in message:
            job.fail(ToolFailure(f"The client answered {ask.method} with an error."))
            return
        problem = problem_with(message["result"], ask.answer_schema, "result")
        if problem is not None:
            job.fail(ToolFailure(f"The client's answer to {ask.method} is unusable: {problem}"))
        else:
            job.resume(message["result"])

    def toggle_extra(self, what: str) -> bool:
        self.extra ^= {what}
        self.announce(what)
        return what in self.extra

    def announce(self, what: str) -> None:
        """Tell that a list changed, if that was declared."""
        if "list-changed" not in self.world.options.hide:
            self._channel.send(notification(f"notifications/{what}/list_changed"))

    # -- the methods that only a session has -----------------------------------------------

    def _set_level(self, call: Call) -> Obj:
        level = call.params.get("level")
        if level not in LEVELS:
            known = ", ".join(LEVELS)
            raise Refusal(INVALID_PARAMS, f"Invalid params: level must be one of {known}")
        self.level = level
        return {}

    def _subscribe(self, call: Call) -> Obj:
        self._subscribed.add(wanted_uri(call))
        self.world.watchers[self] = self._updated
        return {}

    def _unsubscribe(self, call: Call) -> Obj:
        self._subscribed.discard(wanted_uri(call))
        return {}

    # -- ending ----------------------------------------------------------------------------

    def close(self) -> None:
        """The client is gone: nothing of its work goes on."""
        self.world.watchers.pop(self, None)
        for exchange in tuple(self.in_flight.values()):
            exchange.cancel()
        for task in tuple(self.tasks.values()):
            task.forget()

    @property
    def null_id(self) -> bool:
        """Whether an error without a readable id says `"id": null` in this revision."""
        return self.version is not None and not versions.since(self.version, versions.V2025_11_25)

    def _initialize(self, params: Obj, exchange: ServerExchange) -> None:
        problem = problem_with(params, SCHEMAS["initialize"], "params")
        if self.version is not None:
            exchange.refuse(Refusal(INVALID_REQUEST, "This session is already initialized"))
        elif problem is not None:
            exchange.refuse(Refusal(INVALID_PARAMS, f"Invalid params: {problem}"))
        else:
            world, wanted = self.world, params["protocolVersion"]
            self.version = wanted if wanted in world.handshake else world.handshake[-1]
            self.capabilities = params["capabilities"]
            welcome = {
                "protocolVersion": self.version,
                "capabilities": world.declared(self.version),
                "serverInfo": world.content.server_info(self.version),
                "instructions": world.content.instructions,
            }
            exchange.succeed(welcome)

    def _updated(self, uri: str) -> None:
        if uri in self._subscribed:
            self._channel.send(notification("notifications/resources/updated", {"uri": uri}))

    def _ask(self, job: ToolJob, ask: Questions) -> None:
        assert isinstance(ask, ClientQuestion), "offered in the stateless era only"
        reason = self._why_not_ask(ask, job.exchange)
        if reason is not None:
            job.fail(ToolFailure(reason))
            return
        number = next(self._numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": ask.method}
        if ask.params:
            message["params"] = ask.params

        def withdraw() -> None:
            pending = self._asks.pop(number, None)
            if pending is not None:
                pending[2].cancel()
                cancelled = {"requestId": number, "reason": "The answer is no longer needed"}
                job.exchange.send(notification("notifications/cancelled", cancelled))

        def give_up() -> None:
            withdraw()
            job.fail(ToolFailure(f"The client did not answer {ask.method} in {ASK_SECONDS}s."))

        self._asks[number] = (job, ask, self.world.loop.after(ASK_SECONDS, give_up))
        job.on_cancel = withdraw
        job.exchange.send(message)

    def _why_not_ask(self, ask: ClientQuestion, exchange: ServerExchange) -> str | None:
        if missing_capability(ask, self.capabilities):
            names = ", ".join(ask.needs)
            return f"This tool needs a client that declares the capability {names}."
        if not self._initialized:
            return "The client has not sent notifications/initialized yet."
        if not exchange.can_notify:
            return "The client can't be asked while the server answers in plain JSON."
        return None


class _Member(ServerExchange):
    """One request of a batch; its answer waits for the others."""

    __slots__ = ("_batch",)

    def __init__(self, identifier: Any, in_flight: InFlight, batch: Batch) -> None:
        super().__init__(identifier, in_flight)
        self._batch = batch

    @property
    def can_notify(self) -> bool:  # type: ignore[override]  # the batch's way out decides
        return self._batch.parent.can_notify

    def send(self, message: Obj) -> None:
        self._batch.parent.send(message)

    def deliver(self, message: Obj | list[Obj]) -> None:
        assert isinstance(message, dict), "batches do not nest"
        self._batch.close_one(message)

    def drop(self) -> None:
        self._batch.close_one(None)


class Batch:
    """An array of messages, as 2025-03-26 has them: the answers travel together."""

    def __init__(self, session: HandshakeSession, parent: ServerExchange) -> None:
        self.parent = parent
        self._session = session
        self._answers: list[Obj] = []
        self._open = 1  # held until every message was looked at

    def run(self, items: list[Any]) -> None:
        for item in items:
            try:
                if kind_of(item) == REQUEST and item["method"] == "initialize":
                    raise Refusal(INVALID_REQUEST, "initialize must not be part of a batch")
                self._session.take_one(item, self._member)
            except Refusal as refusal:
                self._answers.append(error_message(readable_id(item), refusal, null_id=True))
        self.close_one(None)

    def close_one(self, answer: Obj | None) -> None:
        if answer is not None:
            self._answers.append(answer)
        self._open -= 1
        if self._open == 0:
            if self._answers:
                self.parent.deliver(self._answers)
            else:
                self.parent.drop()

    def _member(self, identifier: Any, in_flight: InFlight) -> ServerExchange:
        self._open += 1
        return _Member(identifier, in_flight, self)


def _wants_answer(item: Any) -> bool:
    try:
        return kind_of(item) == REQUEST
    except Refusal:
        return True


def check_new_request(message: Obj, in_flight: InFlight) -> None:
    if message["id"] in in_flight:
        raise Refusal(INVALID_REQUEST, "The id is that of a request still in progress")
    if len(in_flight) >= MAX_IN_FLIGHT:
        raise Refusal(INVALID_REQUEST, f"More than {MAX_IN_FLIGHT} requests are in progress")


def cancel_request(in_flight: InFlight, params: Any) -> None:
    """Cancel the request that a `notifications/cancelled` names; unknown ones are ignored."""
    identifier = params.get("requestId") if isinstance(params, dict) else None
    exchange = in_flight.get(identifier) if is_id(identifier) else None
    if exchange is not None:
        exchange.cancel()
