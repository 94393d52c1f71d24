"""Faults in the messages themselves: JSON-RPC, its errors, cancellation, progress and paging."""

from __future__ import annotations

from tests.mutants.mutant import mutant
from tests.mutants.seams import (
    NOTHING,
    Raw,
    Several,
    accept,
    asks,
    beside,
    calls,
    notice,
    on_answer,
    on_error,
    on_result,
    once,
    params_of,
    patch,
    question_of,
    rewrite,
    trip,
    trip_on_line,
)

TYPE_CHECKING = False  # a mutant starts as often as the demo does
if TYPE_CHECKING:
    from typing import Any

    from tests.mutants.seams import Obj

LOG = notice("notifications/message", level="error", data="a mutant")
PING: Obj = {"jsonrpc": "2.0", "id": 7001, "method": "ping"}
BAD_URI = asks("resources/read", uri="::: this is no URI :::")
TRAVERSAL = asks("resources/read", uri="file:///../../../../../../etc/passwd")
PROGRESSING = calls("test_tool_with_progress")


def is_notification(value: Any, method: str, **params: Any) -> bool:
    if not isinstance(value, dict) or value.get("method") != method:
        return False
    return all(params_of(value).get(name) == wanted for name, wanted in params.items())


def _without(*names: str) -> Any:
    def change(result: Obj) -> None:
        for name in names:
            result.pop(name, None)

    return change


def _with(**members: Any) -> Any:
    return lambda result: {**result, **members}


# -- requests that can't be served -------------------------------------------------------------

mutant(
    "JSONRPC-001",
    "an unknown method is refused with -32603",
    on_error("mcptest/no_such_method", code=-32603, message="That went wrong."),
    also="every method that is not found has that code, says another rule",
)
mutant(
    "JSONRPC-002",
    "text that is no JSON is refused with -32603",
    rewrite(
        lambda message: message.get("error", {}).get("code") == -32700,
        lambda message: message["error"].update(code=-32603),
    ),
)
mutant(
    "JSONRPC-003",
    "a message without a method is refused with -32603",
    rewrite(
        lambda message: message.get("id") == "mcptest-no-method",
        lambda message: message["error"].update(code=-32603),
    ),
)
mutant(
    "JSONRPC-004",
    "an id comes back in capitals",
    rewrite(
        lambda message: message.get("id") == "mcptest-a",
        lambda message: message.update(id="MCPTEST-A"),
    ),
    also="an answer under another id belongs to no request",
)
mutant(
    "JSONRPC-005",
    "an unknown notification makes the next request fail",
    trip(lambda value: is_notification(value, "notifications/mcptest_unknown")),
)


def _second_fails(items: Any) -> Any:
    if not isinstance(items, list) or len(items) < 2:
        return items
    error = {"code": -32603, "message": "This is a mutant."}
    return [items[0], {"jsonrpc": "2.0", "id": items[1].get("id"), "error": error}]


def _fail_second_of_batch() -> None:
    from tests.mutants.seams import speak

    speak(_second_fails)


mutant("JSONRPC-006", "the second request of a batch fails", _fail_second_of_batch)
mutant(
    "JSONRPC-007",
    "an array makes the next request fail",
    trip(lambda value: isinstance(value, list)),
)

# -- what every message must be ----------------------------------------------------------------

mutant(
    "MSG-001",
    "a notification is of JSON-RPC 1.0",
    beside("prompts/list", {**LOG, "jsonrpc": "1.0"}),
)


def _broken_event(send: Any) -> Any:
    def sending(self: Any, message: Any) -> None:
        if isinstance(message, dict) and question_of(message).get("method") == "prompts/list":
            self._connection.stream(b'event: message\ndata: {"jsonrpc": "2.0", "method": \n\n')
        send(self, message)

    return sending


mutant(
    "MSG-002",
    "a message is cut off",
    patch("demo.http_server:SseClient.send", _broken_event),
    over="sse",
    also="something unusable came",
)
mutant(
    "MSG-003",
    "a notification has a key twice",
    beside(
        "prompts/list",
        Raw(
            '{"jsonrpc":"2.0","jsonrpc":"2.0","method":"notifications/message",'
            '"params":{"level":"error","data":1}}'
        ),
    ),
)
mutant(
    "MSG-004",
    "a request of the server has null as id",
    beside("prompts/list", {**PING, "id": None}),
)
mutant(
    "MSG-005", "two requests of the server have one id", once(beside, "prompts/list", PING, PING)
)
mutant(
    "MSG-006",
    "an answer to a request that never was",
    once(beside, "prompts/list", {"jsonrpc": "2.0", "id": "nobody-asked", "result": {}}),
)
mutant(
    "MSG-007",
    "a request is answered twice",
    once(on_answer, asks("prompts/list"), lambda message, request: Several(message, message)),
)


def _answer_initialized() -> None:
    from tests.mutants.seams import hear, speak

    state = {"due": False}

    def listen(value: Any) -> Any:
        if is_notification(value, "notifications/initialized"):
            state["due"] = True
        return value

    def change(message: Any) -> Any:
        is_dict = isinstance(message, dict)
        if not state["due"] or not is_dict or question_of(message).get("method") != "prompts/list":
            return message
        state["due"] = False
        return Several({"jsonrpc": "2.0", "id": None, "result": {}}, message)

    hear(listen)
    speak(change)


mutant("MSG-008", "notifications/initialized is answered", _answer_initialized)
mutant(
    "MSG-009",
    "logging/setLevel is not answered",
    on_answer(asks("logging/setLevel", level="info"), lambda message, request: NOTHING),
    also="the rule about the answer to that request sees none",
)
mutant(
    "MSG-010",
    "an error for unreadable text has null as id",
    rewrite(
        lambda message: message.get("error", {}).get("code") == -32700,
        lambda message: message.update(id=None),
    ),
)
mutant("MSG-011", "two notifications come in an array", once(beside, "prompts/list", [LOG, LOG]))
mutant(
    "MSG-012",
    "the result of resources/unsubscribe is a text",
    on_result("resources/unsubscribe", lambda result: "done"),
    also="the rule about that result wants an empty object",
)
mutant(
    "MSG-013", "an error code is of the range that is kept free", on_error(TRAVERSAL, code=-32050)
)
mutant("MSG-014", "an error has an old code of no meaning", on_error(TRAVERSAL, code=-32001))


def _without_data(message: Obj, request: Obj) -> Obj:
    if message.get("error", {}).get("code") == -32021:
        message["error"].pop("data", None)
    return message


mutant(
    "MSG-015",
    "-32021 does not say which capability is needed",
    on_answer(calls("roots_tool"), _without_data),
)
mutant("MSG-016", "a key of _meta has a space", on_result("ping", _with(_meta={"not a key": 1})))
mutant(
    "MSG-017",
    "a notification has an id",
    once(beside, "prompts/list", {**LOG, "id": 7002}),
    also="with an id it is a request by its shape",
)
mutant(
    "INV-006",
    "the code of an error is a text",
    on_error(BAD_URI, code="-32602"),
    also="the shape of errors says the same",
)
mutant(
    "INV-007",
    "a method that is not found has the code of invalid params",
    on_error("mcptest/no_such_method", code=-32602),
    also="the rule about unknown methods wants the same code",
)

# -- stdio -------------------------------------------------------------------------------------


def _banner(message: Obj, request: Obj) -> Any:
    return Several(Raw("The server is ready."), message)


mutant(
    "STDIO-001",
    "a banner on stdout",
    on_answer(lambda request: request.get("method") == "initialize", _banner),
    also="a banner is no JSON text, and something unusable came",
)


def _last_words() -> None:
    def make(run: Any) -> Any:
        def running(self: Any) -> None:
            import os

            run(self)
            os.write(1, b'{"jsonrpc":"2.0","method":"notifications/message",')
            os.write(1, b'"params":{"level":"error","data":"bye"}}')

        return running

    patch("demo.stdio_server:StdioConnection.run", make)()


mutant("STDIO-003", "the last message has no newline", _last_words)


def _stay(stop: Any) -> Any:
    """The end of input does not stop the loop; a signal does."""

    def stopping(self: Any) -> None:
        import sys

        caller = sys._getframe(1).f_code.co_name
        if caller != "_readable":
            stop(self)
        else:
            self.ignore(0)

    return stopping


mutant(
    "STDIO-101",
    "the end of input does not end the server",
    patch("transport.loop:Loop.stop", _stay),
)
mutant(
    "STDIO-102",
    "a line that is no JSON makes the next request fail",
    trip_on_line(lambda line: line.strip() == b"this is not json"),
)
mutant(
    "STDIO-103",
    "an empty line makes the next request fail",
    trip_on_line(lambda line: not line.strip()),
)

# -- cancellation ------------------------------------------------------------------------------

CANCELLED = "notifications/cancelled"


def _ignoring(cancel_request: Any) -> Any:
    return lambda in_flight, params: None


mutant(
    "CANCEL-101",
    "the cancellation of an unknown request makes the next one fail",
    trip(lambda value: is_notification(value, CANCELLED, requestId="never-sent")),
)
mutant(
    "CANCEL-102",
    "a malformed cancellation makes the next request fail",
    trip(lambda value: is_notification(value, CANCELLED, requestId={"not": "an id"})),
)
mutant(
    "CANCEL-103",
    "a late cancellation makes the next request fail",
    trip(lambda value: is_notification(value, CANCELLED, requestId="answered")),
)
mutant(
    "CANCEL-001",
    "the server cancels a request that it never sent",
    once(beside, "prompts/list", notice(CANCELLED, requestId="nobody-asked")),
)


mutant(
    "CANCEL-002",
    "a cancelled call is answered",
    patch("demo.handshake_era:cancel_request", _ignoring),
    since="2026-07-28",
    also="on stdio there is a rule of its own for that",
)
mutant(
    "STDIO-105",
    "a cancelled call is answered",
    patch("demo.handshake_era:cancel_request", _ignoring),
    also="a cancelled request that is answered is seen on every transport",
)
mutant(
    "CANCEL-003",
    "the server cancels a call of the client",
    once(
        on_answer,
        "server/discover",
        lambda message, request: Several(notice(CANCELLED, requestId=request["id"]), message),
    ),
    also="a server has no requests of its own that it could cancel",
)

# -- progress ----------------------------------------------------------------------------------


def progress(token: Any, *steps: float) -> list[Obj]:
    return [
        notice("notifications/progress", progressToken=token, progress=step, total=100)
        for step in steps
    ]


def _token(request: Obj) -> Any:
    meta = params_of(request).get("_meta")
    return meta.get("progressToken") if isinstance(meta, dict) else None


def _falls_back(message: Obj, request: Obj) -> Any:
    token = _token(request)
    return message if token is None else Several(*progress(token, 200, 150), message)


def _comes_late(message: Obj, request: Obj) -> Any:
    token = _token(request)
    return message if token is None else Several(message, *progress(token, 200))


mutant("PROG-001", "progress falls back", on_answer(PROGRESSING, _falls_back))
mutant("PROG-002", "progress for nobody", once(beside, "prompts/list", *progress("nobody", 1)))
mutant("PROG-003", "progress after the answer", on_answer(PROGRESSING, _comes_late))
mutant(
    "PROG-004",
    "a request of the server has a progress token that is a fraction",
    once(beside, "prompts/list", {**PING, "params": {"_meta": {"progressToken": 1.5}}}),
    also="the shape of requests says the same",
)

# -- pages -------------------------------------------------------------------------------------


def _invalid_cursor(method: str) -> Any:
    def when(request: Obj) -> bool:
        from mcptest.servers.demo.jsonrpc import Refusal
        from mcptest.servers.demo.offers import _read_cursor

        cursor = params_of(request).get("cursor")
        if request.get("method") != method or cursor is None:
            return False
        try:
            _read_cursor(cursor, method.partition("/")[0], 1000)
        except Refusal:
            return True
        return False

    return when


mutant(
    "PAGE-101",
    "a made-up cursor of tools/list is taken",
    accept(_invalid_cursor("tools/list"), {"tools": []}),
)
mutant(
    "PAGE-102",
    "a made-up cursor of resources/list is taken",
    accept(_invalid_cursor("resources/list"), {"resources": []}),
)
mutant(
    "PAGE-103",
    "a made-up cursor of prompts/list is taken",
    accept(_invalid_cursor("prompts/list"), {"prompts": []}),
)


def _ever_less() -> Any:
    seen: dict[str, int] = {}

    def change(message: Obj, request: Obj) -> Obj:
        cursor = params_of(request).get("cursor")
        if isinstance(cursor, str) and "result" in message:
            seen[cursor] = seen.get(cursor, 0) + 1
            message["result"]["tools"] = message["result"]["tools"][seen[cursor] - 1 :]
        return message

    return change


mutant(
    "PAGE-104",
    "a cursor gives less the second time",
    on_answer(lambda request: request.get("method") == "tools/list", _ever_less()),
)


def _number_as_cursor(result: Obj) -> None:
    if "nextCursor" in result:
        result["nextCursor"] = 10


mutant(
    "PAGE-002",
    "nextCursor is a number",
    on_result("resources/list", _number_as_cursor),
    also="the shape of the list says the same",
)


def _for_ever(message: Obj, request: Obj) -> Obj:
    if params_of(request).get("cursor") in {None, "again"}:
        return {
            "jsonrpc": "2.0",
            "id": message["id"],
            "result": {"prompts": [], "nextCursor": "again"},
        }
    return message


mutant(
    "PAGE-003",
    "the pages of prompts/list never end",
    on_answer(lambda request: request.get("method") == "prompts/list", _for_ever),
)


def _other_scope(message: Obj, request: Obj) -> Obj:
    if "cursor" in params_of(request) and "result" in message:
        message["result"]["cacheScope"] = "private"
    return message


mutant(
    "PAGE-004",
    "the second page has another cacheScope",
    on_answer(lambda request: request.get("method") == "tools/list", _other_scope),
)
