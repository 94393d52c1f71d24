"""Faults of the handshake era's lifecycle, of what is declared, and of the shapes of messages."""

from __future__ import annotations

from tests.mutants.mutant import mutant
from tests.mutants.seams import (
    Several,
    accept,
    asks,
    beside,
    calls,
    notice,
    on_answer,
    on_message,
    on_result,
    once,
    params_of,
    patch,
    refuse,
    rewrite,
)

TYPE_CHECKING = False  # a mutant starts as often as the demo does
if TYPE_CHECKING:
    from typing import Any

    from tests.mutants.seams import Obj

SINCE_MARCH = "2025-03-26"
UNKNOWN_VERSION = asks("initialize", protocolVersion="1999-01-01")


def _capability(name: str, value: Any) -> Any:
    def change(result: Obj) -> None:
        result["capabilities"][name] = value

    return change


mutant(
    "PROTO-001",
    "the server does not tell its version",
    on_result("initialize", lambda result: result["serverInfo"].pop("version") and None),
)
mutant(
    "PROTO-002",
    "a capability is true where an object belongs",
    on_result("initialize", _capability("experimental", True)),
    also="the shape of the result says the same",
)


def _another_version() -> Any:
    """Only to a client without a name that anybody would choose: others it agrees with."""
    seen = {"count": 0}

    def change(message: Obj, request: Obj) -> Obj:
        seen["count"] += 1
        if "result" in message and params_of(request).get("capabilities") == {}:
            message["result"]["protocolVersion"] = "2025-03-26"
        return message

    return change


mutant(
    "PROTO-003",
    "a supported version is answered with another",
    on_answer(lambda request: request.get("method") == "initialize", _another_version()),
)
mutant(
    "PROTO-004",
    "a version that does not exist is agreed to",
    on_result(UNKNOWN_VERSION, lambda result: result.update(protocolVersion="1999-01-01")),
    also="what is agreed to is neither a revision nor the newest one",
)
mutant(
    "PROTO-005",
    "the counter-offer is the oldest version",
    on_result(UNKNOWN_VERSION, lambda result: result.update(protocolVersion="2024-11-05")),
)
mutant(
    "LIFE-005",
    "a client that can sample is answered with a version that does not exist",
    on_result(
        asks("initialize", capabilities={"sampling": {}}),
        lambda result: result.update(protocolVersion="1999-01-01"),
    ),
)


def _noise(send: Any) -> Any:
    def sending(self: Any, message: Any) -> None:
        self._connection.stream(b"event: message\ndata: Have a nice day.\n\n")
        send(self, message)

    return sending


mutant(
    "PROTO-008",
    "noise comes with every answer",
    patch("demo.http_server:SseClient.send", _noise),
    over="sse",
    also="noise is no JSON text",
)


def _asks_too_early(message: Obj, request: Obj) -> Any:
    capabilities = params_of(request).get("capabilities")
    if "result" not in message or not isinstance(capabilities, dict) or "roots" not in capabilities:
        return message
    return Several(message, {"jsonrpc": "2.0", "id": 7101, "method": "roots/list"})


mutant(
    "LIFE-002",
    "the server asks before notifications/initialized",
    on_answer(lambda request: request.get("method") == "initialize", _asks_too_early),
)
mutant("LIFE-008", "a ping is answered with a text", on_result("ping", lambda _: {"pong": True}))

# -- what is declared --------------------------------------------------------------------------

ROOTS: Obj = {"jsonrpc": "2.0", "id": 7102, "method": "roots/list"}
mutant(
    "CAP-002",
    "the roots are asked for, whatever the client declared",
    once(beside, calls("test_error_handling"), ROOTS),
)
mutant(
    "CAP-003",
    "changes of resources are announced without a word before",
    once(
        beside, "prompts/list", {"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}
    ),
)
mutant(
    "INV-003",
    "prompts are listed that were never declared",
    patch("demo.world:hidden_methods", lambda original: lambda parts: frozenset()),
    since="2026-07-28",
    options=("--hide", "prompts"),
    also="there is a rule of its own for methods that were not declared",
)
mutant(
    "INV-004",
    "logging is declared, and never works",
    refuse("logging/setLevel"),
    also="the rules about that method want other answers",
)
mutant(
    "LOG-001",
    "the server logs without having declared it",
    once(beside, "prompts/list", notice("notifications/message", level="error", data="a mutant")),
    options=("--hide", "logging"),
)
mutant(
    "LOG-002",
    "a log message has a level of its own",
    once(beside, "prompts/list", notice("notifications/message", level="loud", data="a mutant")),
    also="the shape of notifications says the same",
)
mutant(
    "LOG-003",
    "below the level that was set it is logged",
    beside(
        asks("logging/setLevel", level="info"),
        notice("notifications/message", level="debug", data="a mutant"),
        after=True,
    ),
)
mutant(
    "LOG-101",
    "logging/setLevel says more than nothing",
    on_result("logging/setLevel", lambda _: {"level": "info"}),
)
mutant(
    "LOG-102",
    "an unknown log level is taken",
    accept(asks("logging/setLevel", level="mcptest-loud"), {}),
)

# -- the shapes of messages --------------------------------------------------------------------


def _numbers_as_words(result: Obj) -> None:
    for tool in result["tools"]:
        tool["description"] = 7


mutant("SHAPE-001", "descriptions of tools are numbers", on_result("tools/list", _numbers_as_words))
mutant(
    "SHAPE-002",
    "the logger of a log message is a number",
    once(beside, "prompts/list", notice("notifications/message", level="error", logger=7, data=1)),
)
mutant(
    "SHAPE-003",
    "the temperature of a sampling request is a text",
    on_message("sampling/createMessage", lambda params: params.update(temperature="hot")),
)
mutant(
    "SHAPE-004",
    "the supported versions in an error are numbers",
    rewrite(
        lambda message: message.get("error", {}).get("code") == -32022,
        lambda message: message["error"]["data"].update(supported=[20260728]),
    ),
    since="2026-07-28",
)
