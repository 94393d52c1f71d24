"""Bugs that show in conversations and in what a server claims of itself."""

from __future__ import annotations

from tests.mutants.seams import (
    Raw,
    Several,
    asks,
    beside,
    calls,
    hear,
    on_answer,
    on_error,
    on_result,
    params_of,
)
from tests.properties.fault_seams import (
    after,
    arguments_of,
    at_every,
    bug,
    empty_result,
    has_token,
    lost,
    other_id,
    twice,
)

TYPE_CHECKING = False  # a faulty server starts as often as the demo does
if TYPE_CHECKING:
    from typing import Any

    from tests.mutants.seams import Obj

VALID = "messages-valid"
# -- conversations -----------------------------------------------------------------------------

TALK = "conversations"
bug(
    "third-list-lost",
    "every third list of prompts is lost",
    TALK,
    ("MSG-009",),
    at_every(3, asks("prompts/list"), lost),
    least=3,
)
bug(
    "fourth-read-empty",
    "every fourth resource is empty",
    TALK,
    ("SHAPE-001", "RES-001"),
    at_every(4, asks("resources/read"), empty_result),
    least=4,
)
bug(
    "fifth-call-twice",
    "every fifth call is answered twice",
    TALK,
    ("MSG-007",),
    at_every(5, asks("tools/call"), twice),
    least=5,
)
bug(
    "tour-breaks-ids",
    "resources, prompts and templates listed in that order give the next list a wrong id",
    TALK,
    ("MSG-006", "MSG-009"),
    after(
        asks("resources/list"),
        asks("prompts/list"),
        asks("resources/templates/list"),
        asks("resources/list"),
        change=other_id,
    ),
    least=4,
)
bug(
    "level-forgotten",
    "after a level is set twice, it is forgotten",
    TALK,
    ("LOG-003",),
    at_every(
        2,
        asks("logging/setLevel"),
        lambda message, request: Several(
            message,
            {
                "jsonrpc": "2.0",
                "method": "notifications/message",
                "params": {"level": "debug", "data": "?"},
            },
        ),
    ),
    least=2,
)
bug(
    "late-cancel-breaks",
    "after a late cancellation lists are empty objects",
    TALK,
    ("SHAPE-001", "TOOL-003", "RES-002", "PROMPT-002"),
    after(
        asks("notifications/cancelled"),
        lambda message: str(message.get("method")).endswith("/list"),
        change=empty_result,
    ),
    least=3,
)
bug(
    "stale-progress",
    "progress goes on after the answer",
    TALK,
    ("PROG-003", "PROG-002"),
    on_answer(
        lambda request: calls("countdown")(request) and has_token(request),
        lambda message, request: Several(
            message,
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {
                    "progressToken": params_of(request)["_meta"]["progressToken"],
                    "progress": 99,
                },
            },
        ),
    ),
)
bug(
    "unsubscribe-answers-twice",
    "unsubscribing is answered twice",
    TALK,
    ("MSG-007",),
    on_answer(asks("resources/unsubscribe"), twice),
)
bug(
    "stray-request",
    "prompts/get makes it ask for something that nobody declared",
    TALK,
    ("SHAPE-003", "CAP-002", "MSG-004"),
    beside("prompts/get", {"jsonrpc": "2.0", "id": None, "method": "roots/list"}),
)

# -- relations ---------------------------------------------------------------------------------


def _reading_counts() -> None:
    """The counter goes up whenever something is echoed."""
    state = {"extra": 0}

    def listen(value: Any) -> Any:
        if isinstance(value, dict) and calls("echo")(value):
            state["extra"] += 1
        return value

    def change(message: Obj, request: Obj) -> Obj:
        for one in message.get("result", {}).get("contents", ()):
            one["text"] = f"{one.get('text', '')} {state['extra']}"
        return message

    hear(listen)
    on_answer(asks("resources/read", uri="demo://counter"), change)()


def _turned(message: Obj, request: Obj) -> Obj:
    if next(iter(arguments_of(request)), "a") == "b":
        return {**message, "result": {**message["result"], "structuredContent": {"sum": 0}}}
    return message


def _counting_twice_is_once(result: Obj) -> None:
    for tool in result["tools"]:
        if tool["name"] == "bump":
            tool["annotations"] = {**tool["annotations"], "idempotentHint": True}


def _by_process(result: Obj) -> None:
    import os

    result["tools"][0]["description"] = f"The tool of process {os.getpid()}."


bug("reading-writes", "echo changes the counter", "read-only", ("relation",), _reading_counts)
bug(
    "counting-is-idempotent",
    "bump says that calling it twice is as calling it once",
    "idempotent",
    ("relation",),
    on_result("tools/list", _counting_twice_is_once),
    allow=("bump",),
)
bug(
    "order-matters",
    "add gives 0 when b comes first",
    "argument-order",
    ("relation",),
    on_answer(calls("add"), _turned),
)
bug(
    "lists-differ",
    "each process lists other tools",
    "same-lists",
    ("relation",),
    on_result("tools/list", _by_process),
)
bug(
    "unknown-error-code",
    "a prompt that does not exist is an error with a text as code",
    VALID,
    ("INV-006", "SHAPE-004"),
    on_error("prompts/get", code="-32602"),
)
bug(
    "raw-banner",
    "the list of prompts comes with a greeting",
    VALID,
    ("STDIO-001", "MSG-002"),
    on_answer(asks("prompts/list"), lambda message, request: Several(Raw("Hello!"), message)),
)
