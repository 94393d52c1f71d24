"""One request on its way through the server: where its messages go and what still runs for it."""

from __future__ import annotations

from mcptest.peer.demo.protocol import (
    INTERNAL_ERROR,
    Refusal,
    error_message,
    result_message,
)

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, Protocol, TypeAlias

    from mcptest.peer.demo.call import Call
    from mcptest.peer.demo.features import Handler
    from mcptest.peer.demo.loop import Loop, Timer
    from mcptest.peer.demo.protocol import Obj

    class Running(Protocol):
        def cancel(self) -> None: ...

    class Channel(Protocol):
        def send(self, message: Obj) -> None: ...

    class Client(Protocol):
        def send(self, message: Obj | list[Obj]) -> None: ...

    Body: TypeAlias = Generator["float | Ask | Together | Until", Any, Obj]
    InFlight: TypeAlias = dict[Any, "Exchange"]


class ToolFailure(Exception):  # noqa: N818  an outcome of a tool, not a defect
    """A tool could not do its work; the model is told so in an `isError` result."""


class Ask:
    """Something that only the client can answer: sampling, elicitation or roots.

    A tool yields it and gets the client's result back. In the handshake era it travels as a
    request of the server; in the stateless era the call ends with `input_required` and the body
    runs again from its start when the answer comes, so a body must not act before it asks.
    """

    __slots__ = ("answer_schema", "key", "loose", "method", "needs", "params")

    def __init__(
        self,
        key: str,
        method: str,
        params: Obj,
        needs: dict[str, Obj],
        answer_schema: Obj,
        loose: bool = False,
    ) -> None:
        self.key = key
        self.method = method
        self.params = params
        self.needs = needs
        self.answer_schema = answer_schema
        self.loose = loose
        """Whether an answer counts also without the state that was given with the question."""


class Together:
    """Several questions at once, in the stateless era; the answers come back by their keys."""

    __slots__ = ("asks",)

    def __init__(self, *asks: Ask) -> None:
        self.asks = asks


class Until:
    """Something to wait for: `begin` is told whom to call, and gives what undoes that."""

    __slots__ = ("begin",)

    def __init__(self, begin: Callable[[Callable[[], None]], Callable[[], None]]) -> None:
        self.begin = begin


class Exchange:
    """A transport's side of one request. It ends with `answer` or with `cancel`, once."""

    __slots__ = ("_in_flight", "identifier", "running")
    can_notify = True
    """Whether anything but the answer can travel."""

    def __init__(self, identifier: Any, in_flight: InFlight) -> None:
        self.identifier = identifier
        self.running: Running | None = None
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


class SharedStream(Exchange):
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


class Job:
    """A tool body in progress: it sleeps, it asks, and in the end it returns a result."""

    __slots__ = ("_ask", "_body", "_exchange", "_finish", "_loop", "_timer", "on_cancel")

    def __init__(
        self,
        loop: Loop,
        body: Body,
        exchange: Exchange,
        ask: Callable[[Job, Ask | Together], None],
        finish: Callable[[Obj], Obj],
    ) -> None:
        self._loop = loop
        self._body = body
        self._exchange = exchange
        self._ask = ask
        self._finish = finish
        self._timer: Timer | None = None
        self.on_cancel: Callable[[], None] | None = None
        exchange.running = self

    def resume(self, value: Any = None) -> None:
        self._advance(self._body.send, value)

    def fail(self, problem: Exception) -> None:
        self._advance(self._body.throw, problem)

    def end_with(self, result: Obj) -> None:
        """Give up the body and answer with this instead."""
        self._body.close()
        self._exchange.succeed(result)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.on_cancel is not None:
            self.on_cancel()
        self._body.close()

    def _advance(self, move: Callable[[Any], float | Ask | Together | Until], value: Any) -> None:
        self.on_cancel = None
        try:
            wait = move(value)
        except StopIteration as end:
            self._exchange.succeed(self._finish(end.value))
        except Refusal as refusal:
            self._exchange.refuse(refusal)
        except Exception as problem:  # noqa: BLE001  reported, and answered as our defect
            self._exchange.refuse(internal_error(problem))
        else:
            if isinstance(wait, Ask | Together):
                self._ask(self, wait)
            elif isinstance(wait, Until):
                self.on_cancel = wait.begin(self.resume)
            else:
                self._timer = self._loop.after(wait, self.resume)


def perform(
    handler: Handler,
    call: Call,
    exchange: Exchange,
    ask: Callable[[Job, Ask | Together], None],
    finish: Callable[[Obj], Obj],
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
            Job(call.world.loop, outcome, exchange, ask, finish).resume()


def internal_error(problem: Exception) -> Refusal:
    """What the client learns of a defect of ours: only that there is one."""
    import sys
    import traceback

    traceback.print_exception(problem, file=sys.stderr)
    return Refusal(INTERNAL_ERROR, "Internal error")
