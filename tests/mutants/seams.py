"""Where a fault is put into the demo: its outgoing messages, its incoming ones, or one function.

Everything the demo says passes `jsonrpc._encode` and everything it hears passes
`jsonrpc._decode`, whatever the transport: two seams are enough for most faults.
"""

from __future__ import annotations

import importlib
import json

from mcptest.servers.demo import jsonrpc

TYPE_CHECKING = False  # a mutant starts as often as the demo does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Obj: TypeAlias = dict[str, Any]
    Fault: TypeAlias = Callable[[], None]
    When: TypeAlias = Callable[[Obj], bool]


class Several:
    """Several messages in place of one, each on a line of its own: for stdio only."""

    def __init__(self, *messages: Any) -> None:
        self.messages = messages


class Raw(str):
    """Text in place of a message."""

    __slots__ = ()


NOTHING = Raw("")
"""An empty line: what is said in place of a message that is left out, on stdio."""

asked: dict[tuple[str, Any], Obj] = {}
"""The requests that came in, by the type and value of their ids."""


def copied(message: Any) -> Any:
    """The demo's messages share parts with its tables, which a fault must not touch."""
    return json.loads(json.dumps(message))


def question_of(message: Obj) -> Obj:
    """The request that this message answers; empty when it answers none."""
    identifier = message.get("id")
    if "method" in message or isinstance(identifier, dict | list):
        return {}
    return asked.get((type(identifier).__name__, identifier), {})


def hear(listen: Callable[[Any], Any]) -> None:
    """Let every incoming message through `listen`."""
    decode = jsonrpc._decode

    def heard(text: str) -> Any:
        return listen(decode(text))

    jsonrpc._decode = heard  # type: ignore[assignment]  # the demo passes the text alone


def speak(change: Callable[[Any], Any]) -> None:
    """Let every outgoing message through `change`, which may give Several or Raw."""
    encode = jsonrpc._encode

    def written(message: Any) -> str:
        changed = change(message)
        parts = changed.messages if isinstance(changed, Several) else (changed,)
        return "\n".join(one if isinstance(one, Raw) else encode(one) for one in parts)

    jsonrpc._encode = written  # type: ignore[assignment]  # its argument has another name


def remember_requests() -> None:
    def listen(value: Any) -> Any:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict) and "method" in one:
                identifier = one.get("id")
                if isinstance(identifier, str | int):
                    asked[type(identifier).__name__, identifier] = one
        return value

    hear(listen)


# -- faults ------------------------------------------------------------------------------------


def on_answer(when: When, change: Callable[[Obj, Obj], Any]) -> Fault:
    """Change the answers to some requests: `change(message, request)` gives the new message."""

    def install() -> None:
        def changed(message: Any) -> Any:
            if not isinstance(message, dict):
                return message
            request = question_of(message)
            return change(copied(message), request) if request and when(request) else message

        speak(changed)

    return install


def on_result(which: str | When, change: Callable[[Any], Any]) -> Fault:
    """Change the results of a method; `change` alters the result, or gives another."""

    def with_result(message: Obj, request: Obj) -> Obj:
        if "result" in message:
            other = change(message["result"])
            message["result"] = message["result"] if other is None else other
        return message

    return on_answer(_when(which), with_result)


def on_error(which: str | When, **members: Any) -> Fault:
    """Give the errors of a method another code, message or data."""

    def with_error(message: Obj, request: Obj) -> Obj:
        if "error" in message:
            message["error"] |= members
        return message

    return on_answer(_when(which), with_error)


def refuse(which: str | When, code: int = -32603, **members: Any) -> Fault:
    """Answer some requests with an error, whatever the answer was."""

    def refused(message: Obj, request: Obj) -> Obj:
        error = {"code": code, "message": "This is a mutant.", **members}
        return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}

    return on_answer(_when(which), refused)


def accept(which: str | When, result: Any) -> Fault:
    """Answer some requests with this result, whatever the answer was."""

    def accepted(message: Obj, request: Obj) -> Obj:
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}

    return on_answer(_when(which), accepted)


def on_message(method: str, change: Callable[[Obj], Any]) -> Fault:
    """Change the requests or notifications of the server that have this method."""

    def install() -> None:
        def changed(message: Any) -> Any:
            if not isinstance(message, dict) or message.get("method") != method:
                return message
            message = copied(message)
            other = change(message.setdefault("params", {}))
            return message if other is None else other

        speak(changed)

    return install


def rewrite(when: When, change: Callable[[Obj], Any]) -> Fault:
    """Change those of all outgoing messages that are such."""

    def install() -> None:
        def changed(message: Any) -> Any:
            if not isinstance(message, dict) or not when(message):
                return message
            message = copied(message)
            other = change(message)
            return message if other is None else other

        speak(changed)

    return install


def beside(which: str | When, *messages: Any, after: bool = False) -> Fault:
    """Say more than the answer: before it, or after it. For stdio."""

    def more(message: Obj, request: Obj) -> Any:
        return Several(message, *messages) if after else Several(*messages, message)

    return on_answer(_when(which), more)


def once(fault: Callable[..., Fault], which: str | When, *rest: Any, **more: Any) -> Fault:
    """Only at the first such request of each process."""
    chosen: list[Any] = []
    when = _when(which)

    def first(request: Obj) -> bool:
        if not when(request) or (chosen and chosen[0] != request.get("id")):
            return False
        chosen[:] = [request.get("id")]
        return True

    return fault(first, *rest, **more)


class Tripwire:
    """Once it is touched, the next request is refused."""

    def __init__(self) -> None:
        self.touched = False
        self._refused: list[Any] = []

    def install(self) -> None:
        hear(self._listen)
        on_answer(lambda request: request.get("id") in self._refused, _refused)()

    def _listen(self, value: Any) -> Any:
        if self.touched and isinstance(value, dict) and "method" in value and "id" in value:
            self.touched = False
            self._refused.append(value["id"])
        return value


def trip(when: Callable[[Any], bool]) -> Fault:
    """After such a message came in, the next request is refused."""

    def install() -> None:
        wire = Tripwire()
        wire.install()

        def listen(value: Any) -> Any:
            if when(value):
                wire.touched = True
            return value

        hear(listen)

    return install


def trip_on_line(when: Callable[[bytes], bool]) -> Fault:
    """After such a line came in, whatever it is, the next request is refused."""

    def install() -> None:
        wire = Tripwire()
        wire.install()

        def make(take_line: Callable[[Any, bytes | None], None]) -> Any:
            def taken(self: Any, line: bytes | None) -> None:
                take_line(self, line)
                if line is not None and when(line):
                    wire.touched = True

            return taken

        patch("demo.stdio_server:StdioConnection._take_line", make)()
        patch("demo.stdio_server:LineReader", _giving_blank_lines)()

    return install


def _giving_blank_lines(reader: Any) -> Any:
    """A reader of lines passes over those that are empty: here each has a blank in it."""

    class BlankLines(reader):  # type: ignore[misc]  # whatever reads lines
        def feed(self, chunk: bytes) -> Any:
            if not self.held and chunk.startswith(b"\n"):
                chunk = b" " + chunk
            while b"\n\n" in chunk:
                chunk = chunk.replace(b"\n\n", b"\n \n")
            return super().feed(chunk)

    return BlankLines


def _refused(message: Obj, request: Obj) -> Obj:
    error = {"code": -32603, "message": "This is a mutant."}
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}


def patch(place: str, make: Callable[[Any], Any]) -> Fault:
    """Replace `module:name` or `module:Class.name` by `make(original)`.

    Modules are those of our servers, and of `transport`, on which they stand.
    """

    def install() -> None:
        module_name, _, path = place.partition(":")
        room = "" if module_name.startswith("transport.") else "servers."
        owner: Any = importlib.import_module(f"mcptest.{room}{module_name}")
        *classes, name = path.split(".")
        for one in classes:
            owner = getattr(owner, one)
        setattr(owner, name, make(getattr(owner, name)))

    return install


def both(*faults: Fault) -> Fault:
    def install() -> None:
        for fault in faults:
            fault()

    return install


def _when(which: str | When) -> When:
    if callable(which):
        return which
    return lambda request: request.get("method") == which


# -- which request -----------------------------------------------------------------------------


def calls(tool: str) -> When:
    return lambda request: (
        request.get("method") == "tools/call" and params_of(request).get("name") == tool
    )


def params_of(request: Obj) -> Obj:
    params = request.get("params")
    return params if isinstance(params, dict) else {}


def asks(method: str, **params: Any) -> When:
    """The method, with at least these params."""
    return lambda request: (
        request.get("method") == method
        and all(params_of(request).get(name) == value for name, value in params.items())
    )


def notice(method: str, **params: Any) -> Obj:
    return {"jsonrpc": "2.0", "method": method, "params": params}
