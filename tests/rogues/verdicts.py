"""What becomes of every answer of `malformed`: the verdict, the cause in words, and the rule.

The verdicts are those of docs/answers.md.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

REFUSED: Literal["refused"] = "refused"
"""It belongs to its request, and no client should take it."""
NONE: Literal["none"] = "none"
"""Nothing that came can be used as an answer; the message says what came."""
WARNED: Literal["warned"] = "warned"
"""It is taken, and what is doubtful about it is said."""
TWICE: Literal["twice"] = "twice"
"""The first of two is taken, and that there was a second one is said."""
FINE: Literal["fine"] = "fine"
"""It is taken without a word."""


class Expected(NamedTuple):
    verdict: Literal["refused", "none", "warned", "twice", "fine"]
    words: str = ""
    rule: str = ""
    """The rule that a session with this answer breaks."""


NOT_JSON, NOT_A_MESSAGE, NO_REQUEST, NOISE = "MSG-002", "MSG-001", "MSG-006", "STDIO-001"
BAD_ERROR, BAD_CONTENT, BAD_RESULT = "INV-006", "CONTENT-001", "MSG-012"
OF_ANY: dict[str, Expected] = {
    "none": Expected(FINE),
    "invalid-utf8": Expected(REFUSED, "byte 0xff at offset", NOT_JSON),
    "invalid-utf8-key": Expected(REFUSED, "byte 0xff at offset", NOT_JSON),
    "overlong-utf8": Expected(REFUSED, "byte 0xc0 at offset", NOT_JSON),
    "surrogate-utf8": Expected(REFUSED, "byte 0xed at offset", NOT_JSON),
    "latin-1": Expected(REFUSED, "byte 0xe9 at offset", NOT_JSON),
    "nan": Expected(REFUSED, "NaN is not JSON", NOT_JSON),
    "infinity": Expected(REFUSED, "Infinity is not JSON", NOT_JSON),
    "minus-infinity": Expected(REFUSED, "-Infinity is not JSON", NOT_JSON),
    "bom": Expected(REFUSED, "starts with a byte order mark", NOT_JSON),
    "too-deep": Expected(NONE, "nested deeper than 512 levels", NOT_JSON),
    "trailing-comma": Expected(NONE, "there is a comma after the last member", NOT_JSON),
    "single-quotes": Expected(NONE, "it is the text form of a Python object", NOISE),
    "python": Expected(NONE, "it is the text form of a Python object", NOISE),
    "truncated": Expected(NONE, "it ends before the message is complete", NOT_JSON),
    "nul-byte": Expected(NONE, "there is a NUL byte in it", NOT_JSON),
    "nul-behind": Expected(NONE, "there is a NUL byte in it", NOT_JSON),
    "prefix": Expected(NONE, "there is other text before a message", NOT_JSON),
    "suffix": Expected(NONE, "there is other text after a message", NOT_JSON),
    "utf-16-le": Expected(NONE, "it is UTF-16", NOT_JSON),
    "utf-16-be": Expected(NONE, "it is UTF-16", NOT_JSON),
    "utf-16-bom": Expected(NONE, "it is UTF-16", NOT_JSON),
    "utf-16-be-bom": Expected(NONE, "it is UTF-16", NOT_JSON),
    "gzip": Expected(NONE, "it is compressed with gzip", NOISE),
    "html": Expected(NONE, "it is a web page", NOISE),
    "two-on-a-line": Expected(NONE, "there are several messages on one line", NOT_JSON),
    "server-sent-event": Expected(NONE, "it is a server-sent event", NOT_JSON),
    "batch": Expected(REFUSED, "it stands in an array of messages", "MSG-011"),
    "empty-batch": Expected(NONE, "a batch holds at least one message", NOT_A_MESSAGE),
    "version-1": Expected(REFUSED, "jsonrpc is '1.0'", NOT_A_MESSAGE),
    "version-number": Expected(REFUSED, "jsonrpc is 2.0", NOT_A_MESSAGE),
    "no-version": Expected(REFUSED, 'jsonrpc: "2.0" is missing', NOT_A_MESSAGE),
    "string-id": Expected(NONE, "a string; the request has", NO_REQUEST),
    "fraction-id": Expected(NONE, ".5: {", NO_REQUEST),
    "other-id": Expected(NONE, "a response with the unknown id 99999: {", NO_REQUEST),
    "no-id": Expected(NONE, "a response without an id: {", NOT_A_MESSAGE),
    "null-id": Expected(NONE, "a response with the unknown id null: {", NO_REQUEST),
    "error-null": Expected(REFUSED, "error is null beside the result", NOT_A_MESSAGE),
    "result-and-error": Expected(REFUSED, "both result and error are present", NOT_A_MESSAGE),
    "neither": Expected(REFUSED, "none of method, result and error is present", NOT_A_MESSAGE),
    "error-text": Expected(REFUSED, "error is a string, not an object", BAD_ERROR),
    "error-without-code": Expected(REFUSED, "error.code is absent, not an integer", BAD_ERROR),
    "error-code-text": Expected(REFUSED, "error.code is 'E_NO', not an integer", BAD_ERROR),
    "error-code-fraction": Expected(REFUSED, "error.code is 1.5, not an integer", BAD_ERROR),
    "error-without-message": Expected(REFUSED, "error.message is absent", BAD_ERROR),
    "unknown-content": Expected(REFUSED, "unsupported content type: video", BAD_CONTENT),
    "untyped-content": Expected(REFUSED, "unsupported content type: null", BAD_CONTENT),
    "result-null": Expected(REFUSED, "result is null, not an object", BAD_RESULT),
    "result-text": Expected(REFUSED, "result is a string, not an object", BAD_RESULT),
    "duplicate-key": Expected(WARNED, "the key 'extra' occurs twice", "MSG-003"),
    "duplicate-in-envelope": Expected(WARNED, "the key 'jsonrpc' occurs twice", "MSG-003"),
    "duplicate-id": Expected(WARNED, "the key 'id' occurs twice", "MSG-003"),
    "duplicate-in-structured": Expected(WARNED, "the key 'a' occurs twice", "MSG-003"),
    "lone-surrogate": Expected(WARNED, "an escaped surrogate without its partner", NOT_JSON),
    "huge-number": Expected(WARNED, "1e400 is too large for a double", NOT_JSON),
    "long-integer": Expected(WARNED, "an integer of 5000 digits", NOT_JSON),
    "float-id": Expected(FINE),
    "extra-member": Expected(FINE),
    "carriage-return": Expected(FINE),
}
ON_STDIO: dict[str, Expected] = {
    **OF_ANY,
    "two-lines": Expected(NONE, "it is JSON over several lines", NOISE),
    "content-length": Expected(NONE, "it is framed by headers, as LSP messages are", NOISE),
    "no-newline": Expected(NONE, "it is a message without a newline at its end"),
    "carriage-return-only": Expected(NONE, "its lines end with a carriage return alone"),
    "event-stream": Expected(NONE, "it is a server-sent event", NOISE),
    "twice": Expected(TWICE, '"text":"hello"', "MSG-007"),
    "twice-differently": Expected(TWICE, '"text":"goodbye"', "MSG-007"),
    "late": Expected(TWICE, '"text":"hello"', "MSG-007"),
}
OVER_HTTP: dict[str, Expected] = {
    **OF_ANY,
    # The stream says whose answer it is, so that its form can be named.
    "no-id": Expected(REFUSED, "a result without the id of its request", NOT_A_MESSAGE),
    "null-id": Expected(REFUSED, "id is null", NO_REQUEST),
    "text-plain": Expected(NONE, "HTTP 200 with text/plain"),
    "no-content-type": Expected(NONE, "HTTP 200 with no content type"),
    "charset-latin-1": Expected(FINE),
    "charset-utf-16": Expected(NONE, "it is UTF-16"),
    "length-too-long": Expected(NONE, "10 bytes before the end that Content-Length announced"),
    "length-too-short": Expected(NONE, "sent 10 bytes after the end of the response"),
    "empty-body": Expected(
        NONE, "(HTTP 200) to tools/call ended without a message; it sent nothing"
    ),
    "accepted-only": Expected(NONE, "(HTTP 202) to tools/call ended without a message"),
    "no-content": Expected(NONE, "(HTTP 204) to tools/call ended without a message"),
    "array-body": Expected(REFUSED, "it stands in an array of messages"),
    "events-as-json": Expected(NONE, "it is a server-sent event"),
    "json-as-events": Expected(NONE, "the stream ended inside an event"),
    "event-not-json": Expected(NONE, "is not a message: 'hello'"),
    "event-unfinished": Expected(NONE, "the stream ended inside an event"),
    "event-other-name": Expected(NONE, "an event of the type 'ready', not message: {"),
    "event-twice": Expected(TWICE, '"text":"hello"'),
    "event-bom": Expected(FINE),
    "no-event": Expected(NONE, "ended without a message; it sent nothing"),
}
SAID_AT_ONCE = {"string-id"}
"""What is given up before the time is over, although nothing came that could be used."""
CALLED_OTHERWISE = {
    "length-too-long": "call",
    "empty-body": "call",
    "accepted-only": "call",
    "no-content": "call",
    "no-event": "call",
}
"""The kind of failure in `run` where nothing malformed came: no answer, or half of one."""
