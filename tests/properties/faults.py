"""Bugs of the demo, each with the property that finds it and the size of its smallest example."""

from __future__ import annotations

from tests.mutants.seams import NOTHING, asks, calls, on_answer, on_result, patch, refuse, rewrite
from tests.properties.fault_seams import (
    BUGS,
    arguments_of,
    both,
    bug,
    chatty,
    die,
    dying,
    has_token,
    lost,
    on_line,
    silent,
    when_heard,
    without,
)

TYPE_CHECKING = False  # a faulty server starts as often as the demo does
if TYPE_CHECKING:
    from tests.mutants.seams import Obj

__all__ = ["BUGS"]

# -- invalid messages --------------------------------------------------------------------------

INVALID = "messages-invalid"
bug(
    "array-kills",
    "an array ends the process",
    INVALID,
    ("crash",),
    when_heard(lambda value: isinstance(value, list), die),
)
bug(
    "truncated-hangs",
    "a line that breaks off makes it wait for ever",
    INVALID,
    ("hang",),
    on_line(lambda line: line[:1] == b"{" and not line.rstrip().endswith(b"}"), silent),
)
bug(
    "deep-kills",
    "an array in an array in an array … ends the process",
    INVALID,
    ("crash",),
    on_line(lambda line: b"[" * 500 in line, dying),
)
bug(
    "surrogate-kills",
    "half a surrogate pair ends the process",
    INVALID,
    ("crash",),
    on_line(lambda line: b"\\ud8" in line or b"\\udf" in line or b"\\udc" in line, dying),
)
bug(
    "parse-error-silent",
    "text that is no JSON gets no answer",
    INVALID,
    ("JSONRPC-002",),
    rewrite(
        lambda message: message.get("error", {}).get("code") == -32700, lambda message: NOTHING
    ),
)
bug(
    "parse-error-code",
    "text that is no JSON is an internal error",
    INVALID,
    ("JSONRPC-002",),
    rewrite(
        lambda message: message.get("error", {}).get("code") == -32700,
        lambda message: message["error"].update(code=-32603),
    ),
)
bug(
    "invalid-request-code",
    "what is no message is refused with -32602",
    INVALID,
    ("JSONRPC-003",),
    rewrite(
        lambda message: message.get("error", {}).get("code") == -32600,
        lambda message: message["error"].update(code=-32602),
    ),
)
bug(
    "unknown-method-served",
    "an unknown method gets a result",
    INVALID,
    ("JSONRPC-001",),
    on_answer(
        lambda request: str(request.get("method")).startswith("mcptest/"),
        lambda message, request: {"jsonrpc": "2.0", "id": message.get("id"), "result": {}},
    ),
)
bug(
    "unknown-notification-answered",
    "an unknown notification is answered",
    INVALID,
    ("JSONRPC-005",),
    on_line(
        lambda line: b'"notifications/mcptest' in line or b'"notifications/"' in line,
        lambda self: (
            self.send({"jsonrpc": "2.0", "error": {"code": -32601, "message": "?"}}) or True
        ),
    ),
)
bug(
    "bad-utf8-chatter",
    "bytes that are not UTF-8 make it print on stdout",
    INVALID,
    ("STDIO-001", "PROTO-008", "MSG-002"),
    on_line(lambda line: b"\xff" in line or b"\x80" in line or b"\xc0" in line, chatty),
)
bug(
    "refusal-without-version",
    "a refusal lacks jsonrpc",
    INVALID,
    ("MSG-001",),
    rewrite(lambda message: message.get("error", {}).get("code") == -32600, without("jsonrpc")),
)

# -- valid messages ----------------------------------------------------------------------------

VALID = "messages-valid"
bug(
    "id-zero-lost",
    "a request with the id 0 is not answered",
    VALID,
    ("MSG-009",),
    on_answer(lambda request: request.get("id") == 0 and type(request["id"]) is int, lost),
)
bug(
    "id-empty-lost",
    "a request with an empty id is not answered",
    VALID,
    ("MSG-009",),
    on_answer(lambda request: request.get("id") == "", lost),
)
bug(
    "id-as-text",
    "an id that is a negative number comes back as a text",
    VALID,
    ("MSG-006", "MSG-009"),
    rewrite(
        lambda message: (
            "method" not in message and type(message.get("id")) is int and message["id"] < 0
        ),
        lambda message: message.update(id=str(message["id"])),
    ),
)
bug(
    "result-and-error",
    "the result of resources/list comes with an error",
    VALID,
    ("MSG-001", "SHAPE-001"),
    on_answer(asks("resources/list"), both),
)
bug(
    "prompts-without-names",
    "prompts are listed without their names",
    VALID,
    ("PROMPT-002", "SHAPE-001"),
    on_result(
        "prompts/list", lambda result: [without("name")(one) for one in result["prompts"]] and None
    ),
)
bug(
    "meta-refused",
    "a request with a progress token is no message to it",
    VALID,
    ("a valid message is accepted and processed",),
    on_answer(
        has_token,
        lambda message, request: {
            "jsonrpc": "2.0",
            "id": message.get("id"),
            "error": {"code": -32600, "message": "?"},
        },
    ),
)
bug(
    "cancellation-answered",
    "notifications/cancelled is answered",
    VALID,
    ("MSG-008", "MSG-006"),
    on_line(
        lambda line: b'"notifications/cancelled"' in line,
        lambda self: self.send({"jsonrpc": "2.0", "id": None, "result": {}}) or True,
    ),
)
bug(
    "batch-lost",
    "the second answer of a batch is left out",
    VALID,
    ("MSG-009",),
    patch(
        "demo.jsonrpc:_encode",
        lambda encode: (
            lambda message: encode(message[:1] if isinstance(message, list) else message)
        ),
    ),
    revision="2025-03-26",
)
bug(
    "stateless-no-type",
    "a list of resources has no resultType",
    VALID,
    ("META-003", "SHAPE-001"),
    on_result("resources/list", without("resultType")),
    revision="2026-07-28",
)

# -- arguments ---------------------------------------------------------------------------------

ARGUMENTS = "arguments"


def _sum_as_text(message: Obj, request: Obj) -> Obj:
    structured = message.get("result", {}).get("structuredContent")
    if isinstance(structured, dict) and structured.get("sum", 0) < 0:
        structured["sum"] = str(structured["sum"])
    return message


bug(
    "sum-as-text",
    "a sum below zero is a text",
    ARGUMENTS,
    ("TOOL-001",),
    on_answer(calls("add"), _sum_as_text),
)
bug(
    "echo-kills",
    "echo of more than three letters ends the process",
    ARGUMENTS,
    ("crash",),
    when_heard(
        lambda value: (
            isinstance(value, dict)
            and calls("echo")(value)
            and len(str(arguments_of(value).get("text"))) > 3
        ),
        die,
    ),
)
bug(
    "add-fails",
    "adding a number to itself is an internal error",
    ARGUMENTS,
    ("crash",),
    refuse(
        lambda request: (
            calls("add")(request)
            and arguments_of(request).get("a") == arguments_of(request).get("b")
        )
    ),
)
bug(
    "content-without-type",
    "a text beyond ASCII is a block without a type",
    ARGUMENTS,
    ("CONTENT-001", "SHAPE-001"),
    on_answer(
        lambda request: (
            calls("echo")(request) and not str(arguments_of(request).get("text")).isascii()
        ),
        lambda message, request: {**message, "result": {"content": [{"text": "?"}]}},
    ),
)
bug(
    "wrong-type-kills",
    "a number in place of a text ends the process",
    "arguments-almost-valid",
    ("crash",),
    when_heard(
        lambda value: (
            isinstance(value, dict)
            and calls("echo")(value)
            and type(arguments_of(value).get("text")) in (int, float)
        ),
        die,
    ),
)
bug(
    "missing-argument-silent",
    "a missing argument is never answered",
    "arguments-almost-valid",
    ("crash",),
    refuse(lambda request: calls("add")(request) and "b" not in arguments_of(request)),
)
