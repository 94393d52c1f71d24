"""One request on its way through the server: where its messages go and what still runs for it."""

from __future__ import annotations

import sys

from mcptest.servers.demo import versions
from mcptest.servers.demo.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    SCHEMAS,
    Declared,
    Refusal,
    error_message,
    is_id,
    notification,
    result_message,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, Protocol, TypeAlias

    from mcptest.servers.demo.handshake_era import HandshakeSession
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.world import World
    from mcptest.transport.loop import Loop, Timer

    Handler: TypeAlias = Callable[["Call"], "Obj | Body"]

    class RunningRequest(Protocol):
        def cancel(self) -> None: ...

    class Client(Protocol):
        def send(self, message: Obj | list[Obj]) -> None: ...

    Asking: TypeAlias = Generator["ClientQuestion", Any, Obj]
    Questions: TypeAlias = "ClientQuestion | tuple[ClientQuestion, ...]"
    """Several at once only in the stateless era: their answers come back by their keys."""
    Body: TypeAlias = Generator[float | Questions | "Until", Any, Obj]
    InFlight: TypeAlias = dict[Any, "ServerExchange"]


class ToolFailure(Exception):  # noqa: N818  an outcome of a tool, not a defect
    """A tool could not do its work; the model is told so in an `isError` result."""


class ClientQuestion(Declared):
    """Something that only the client can answer: sampling, elicitation or roots.

    A tool yields it and gets the client's result back. In the handshake era it travels as a
    request of the server; in the stateless era the call ends with `input_required` and the body
    runs again from its start when the answer comes, so a body must not act before it asks.
    """

    key: str
    method: str
    params: Obj
    needs: dict[str, Obj]
    answer_schema: Obj
    loose: bool = False
    """Whether an answer counts also without the state that was given with the question."""


class Until(Declared):
    """Something to wait for: `begin` is told whom to call, and gives what undoes that."""

    begin: Callable[[Callable[[], None]], Callable[[], None]]


class ServerExchange:
    """A transport's side of one request. It ends with `answer` or with `cancel`, once."""

    __slots__ = ("_in_flight", "identifier", "running")
    can_notify = True
    """Whether anything but the answer can travel."""

    def __init__(self, identifier: Any, in_flight: InFlight) -> None:
        self.identifier = identifier
        self.running: RunningRequest | None = None
        self._in_flight = in_flight
        in_flight[identifier] = self

    def send(self, message: Obj) -> None:
        """A notification, or a request of the server, that belongs to this request."""
        raise NotImplementedError

    def deliver(self, message: Obj | list[Obj]) -> None:
        """Carry the one response to the client."""
        raise NotImplementedError

    def drop(self) -> None:
        """There will be no response, because the request was cancelled."""
        raise NotImplementedError

    def pause(self) -> None:
        """Close the connection before the answer; only a stream that can be resumed does."""

    def succeed(self, result: Obj) -> None:
        self.answer(result_message(self.identifier, result))

    def refuse(self, refusal: Refusal) -> None:
        self.answer(error_message(self.identifier, refusal))

    def answer(self, message: Obj) -> None:
        self.running = None
        self._in_flight.pop(self.identifier, None)
        self.deliver(message)

    def cancel(self) -> None:
        self._in_flight.pop(self.identifier, None)
        running, self.running = self.running, None
        if running is not None:
            running.cancel()
        self.drop()


class SharedStream(ServerExchange):
    """A request whose every message leaves on the one stream that its client has."""

    __slots__ = ("_client",)

    def __init__(self, identifier: Any, in_flight: InFlight, client: Client) -> None:
        super().__init__(identifier, in_flight)
        self._client = client

    def send(self, message: Obj) -> None:
        self._client.send(message)

    def deliver(self, message: Obj | list[Obj]) -> None:
        self._client.send(message)

    def drop(self) -> None:
        pass  # a cancelled request leaves no trace on the stream


class ToolJob(Declared):
    """A tool body in progress: it sleeps, it asks, and in the end it returns a result."""

    loop: Loop
    body: Body
    exchange: ServerExchange
    ask: Callable[[ToolJob, Questions], None]
    finish: Callable[[Obj], Obj]
    timer: Timer | None = None
    on_cancel: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.exchange.running = self

    def resume(self, value: Any = None) -> None:
        self._advance(self.body.send, value)

    def fail(self, problem: Exception) -> None:
        self._advance(self.body.throw, problem)

    def end_with(self, result: Obj) -> None:
        """Give up the body and answer with this instead."""
        self.body.close()
        self.exchange.succeed(result)

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.on_cancel is not None:
            self.on_cancel()
        self.body.close()

    def _advance(self, move: Callable[[Any], float | Questions | Until], value: Any) -> None:
        self.on_cancel = None
        try:
            wait = move(value)
        except StopIteration as end:
            self.exchange.succeed(self.finish(end.value))
        except Refusal as refusal:
            self.exchange.refuse(refusal)
        except Exception as problem:  # noqa: BLE001  reported, and answered as our defect
            self.exchange.refuse(internal_error(problem))
        else:
            if isinstance(wait, ClientQuestion | tuple):
                self.ask(self, wait)
            elif isinstance(wait, Until):
                self.on_cancel = wait.begin(self.resume)
            else:
                self.timer = self.loop.after(wait, self.resume)


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Call(Declared):
    """One request as its handler sees it, whatever the era and the transport."""

    world: World
    version: str
    params: Obj
    exchange: ServerExchange
    level: str | None
    """From which on the client wants to hear log messages."""
    declared: Obj
    """What the client can do."""
    session: HandshakeSession | None = None

    def __post_init__(self) -> None:
        if "logging" in self.world.options.hide:
            self.level = None
        self._token = progress_token(self.params)

    def knows(self, first: str) -> bool:
        """Does the revision of this call know what came with the revision `first`?"""
        return versions.since(self.version, first)

    def has_extra(self, what: str) -> bool:
        """Whether this list has one more item for now."""
        return self.session is not None and what in self.session.extra

    def progress(self, done: int, total: int, message: str) -> None:
        """Tell how far the work is, if the client asked to hear it."""
        if self._token is not None:
            params = {"progressToken": self._token, "progress": done, "total": total}
            if self.knows(versions.V2025_03_26):
                params["message"] = message
            self.notify("notifications/progress", params)

    def notify(self, method: str, params: Obj) -> None:
        """Tell something that belongs to this request."""
        if self.exchange.can_notify:
            self.exchange.send(notification(method, params))

    def log(self, level: str, data: Any) -> None:
        """Tell something, if the client wants to hear this level."""
        if self.level is not None and LEVELS.index(level) >= LEVELS.index(self.level):
            params = {"level": level, "logger": self.world.content.logger, "data": data}
            self.notify("notifications/message", params)


def progress_token(params: Obj) -> Any:
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        raise Refusal(INVALID_PARAMS, "Invalid params: _meta must be an object")
    if "progressToken" not in meta:
        return None
    token = meta["progressToken"]
    if not is_id(token):
        raise Refusal(
            INVALID_PARAMS, "Invalid params: progressToken must be a string or an integer"
        )
    return token


def perform(
    handler: Handler,
    call: Call,
    exchange: ServerExchange,
    ask: Callable[[ToolJob, Questions], None],
    finish: Callable[[Obj], Obj] = lambda result: result,
) -> None:
    """Run the handler of one request and see to its answer, now or later."""
    try:
        outcome = handler(call)
    except Refusal as refusal:
        exchange.refuse(refusal)
    except Exception as problem:  # noqa: BLE001  reported, and answered as our defect
        exchange.refuse(internal_error(problem))
    else:
        if isinstance(outcome, dict):
            exchange.succeed(finish(outcome))
        else:
            ToolJob(call.world.loop, outcome, exchange, ask, finish).resume()


def internal_error(problem: Exception) -> Refusal:
    """What the client learns of a defect of ours: only that there is one."""
    import traceback  # a server that works never needs it

    traceback.print_exception(problem, file=sys.stderr)
    return Refusal(INTERNAL_ERROR, "Internal error")


def text(words: str) -> Obj:
    """A tool result of one text."""
    return {"content": [{"type": "text", "text": words}]}


_SAMPLED, _ACTION = SCHEMAS["sampled"], SCHEMAS["action"]
MAX_TURNS = 3
"""How often a model may use tools before it has to say something."""


def sample_from_model(question: str, tools: tuple[Obj, ...] = (), key: str = "model") -> Asking:
    """What the client's model said, as a result. The tools that it may use give a fixed text."""
    messages: list[Obj] = [{"role": "user", "content": {"type": "text", "text": question}}]
    params: Obj = {"messages": messages, "maxTokens": 100}
    if tools:
        params |= {"tools": list(tools), "toolChoice": {"mode": "auto"}}
    needs: dict[str, Obj] = {"sampling": {"tools": {}} if tools else {}}
    blocks: list[Any] = []
    for turn in range(MAX_TURNS):
        name = f"{key}-{turn + 1}" if turn else key
        answer = yield ClientQuestion(name, "sampling/createMessage", params, needs, _SAMPLED)
        content = answer["content"]
        blocks = content if isinstance(content, list) else [content]
        uses = [one for one in blocks if isinstance(one, dict) and one.get("type") == "tool_use"]
        if not tools or not uses:
            break
        messages = [*messages, {"role": "assistant", "content": content}, _used(uses)]
        params = {**params, "messages": messages}
    words = [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    if not words:
        raise ToolFailure("The model answered without any text.")
    return text("The model answered: " + "\n".join(words))


def _used(uses: list[Obj]) -> Obj:
    """The message with what the tools gave: results for all uses, and nothing else."""
    answer = [{"type": "text", "text": "It is noon."}]
    results = [
        {"type": "tool_result", "toolUseId": str(one.get("id", "")), "content": answer}
        for one in uses
    ]
    return {"role": "user", "content": results}


def confirm_with_user(question: str, with_mode: bool) -> Asking:
    """What the user did with the form, as a result. `mode` is known from 2025-11-25 on."""
    params: Obj = {"mode": "form"} if with_mode else {}
    params |= {"message": question, "requestedSchema": SCHEMAS["form"]}
    needs: dict[str, Obj] = {"elicitation": {"form": {}} if with_mode else {}}
    answer = yield ClientQuestion("user", "elicitation/create", params, needs, SCHEMAS["elicited"])
    if answer["action"] == "decline":
        return text("The user declined to answer.")
    if answer["action"] == "cancel":
        return text("The user closed the question without answering.")
    content = answer.get("content", {})
    if "answer" not in content:
        raise ToolFailure("The user accepted without giving an answer.")
    certainty = "is sure" if content.get("sure", True) else "is not sure"
    return text(f"The user answered: {content['answer']} (and {certainty})")


def send_user_to(url: str, identifier: str | None) -> Generator[ClientQuestion, Any, str]:
    """What the user did with the question to open a page, in words."""
    params: Obj = {"mode": "url", "message": "Please confirm this on our page.", "url": url}
    if identifier is not None:
        params["elicitationId"] = identifier
    needs: dict[str, Obj] = {"elicitation": {"url": {}}}
    answer = yield ClientQuestion("page", "elicitation/create", params, needs, _ACTION)
    return f"The user said {answer['action']}."


def ask_form(key: str, question: str, fields: Obj, loose: bool = False) -> Asking:
    """What the user filled in; nothing where the form was not accepted."""
    form = {"type": "object", "properties": fields}
    params: Obj = {"mode": "form", "message": question, "requestedSchema": form}
    needs: dict[str, Obj] = {"elicitation": {"form": {}}}
    kinds = {name: {"type": field["type"]} for name, field in fields.items()}
    content = {"type": "object", "properties": kinds}
    schema = {**_ACTION, "properties": {**_ACTION["properties"], "content": content}}
    answer = yield ClientQuestion(key, "elicitation/create", params, needs, schema, loose)
    return dict(answer.get("content", {}))


def ask_roots(key: str) -> ClientQuestion:
    return ClientQuestion(key, "roots/list", {}, {"roots": {}}, SCHEMAS["roots"])


def missing_capability(ask: ClientQuestion, declared: Obj) -> dict[str, Obj] | None:
    """What the client would have to declare for this question, or None when it did."""
    for name, modes in ask.needs.items():
        offered = declared.get(name)
        if not isinstance(offered, dict):
            return ask.needs
        # An empty elicitation capability means forms; one that names only other modes does not.
        if not offered and "form" in modes:
            continue
        if modes and not any(mode in offered for mode in modes):
            return ask.needs
    return None
