"""Streamable HTTP as rules: which headers a message carries, and what a response is meant to be.

Pure functions for both eras. They build what a conforming client sends and sort what a server
answered; whether the answer conforms is for the rules to say.
"""

from __future__ import annotations

import base64
import binascii
import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mcptest.core.message import json_type, parts_of
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show

# -- Arguments that travel as headers ------------------------------------------------------------

ANNOTATION: Final = "x-mcp-header"
PARAM_PREFIX: Final = "Mcp-Param-"

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_MIRRORED_TYPES = frozenset({"string", "integer", "boolean"})
# Keywords whose value is one schema, a list of schemas, or a table of schemas.
_ONE = (
    *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_TABLE = ("$defs", "definitions", "dependentSchemas", "patternProperties")


class Annotation(NamedTuple):
    """One `x-mcp-header`; `path` is None where no chain of `properties` leads to it."""

    path: tuple[str, ...] | None
    header: Any
    type: Any


def has_annotations(input_schema: Any) -> bool:
    """Whether there is any."""
    return any(isinstance(part, dict) and ANNOTATION in part for part in parts_of(input_schema))


def header_annotations(input_schema: Any) -> list[Annotation]:
    """Every annotation in a schema, the misplaced ones too."""
    return [
        Annotation(path, schema[ANNOTATION], schema.get("type"))
        for path, schema in _schemas(input_schema)
        if ANNOTATION in schema
    ]


def annotation_problems(input_schema: Any) -> tuple[str, ...]:
    """Why a client has to drop the tool with this schema; empty when it is fine."""
    problems: list[str] = []
    seen: set[str] = set()
    for path, header, kind in header_annotations(input_schema):
        where = show("/".join(path), 80) if path else "a place that properties do not reach"
        if not path:
            problems.append(f"{ANNOTATION} at {where}")
        if not isinstance(header, str):
            problems.append(f"{ANNOTATION} of {where} is {json_type(header)}, not a string")
            continue
        if not _TOKEN.fullmatch(header):
            problems.append(f"{ANNOTATION} of {where} is not a header name: {show(header, 40)!r}")
        if header.lower() in seen:
            problems.append(f"{ANNOTATION} {show(header, 40)!r} is used twice")
        seen.add(header.lower())
        if not isinstance(kind, str) or kind not in _MIRRORED_TYPES:
            problems.append(
                f"{ANNOTATION} of {where} is on a type other than string, integer, boolean"
            )
    return tuple(problems)


def param_headers(input_schema: Any, arguments: Any) -> dict[str, str]:
    """The headers that repeat arguments, values not yet encoded. Null and absent have none."""
    headers: dict[str, str] = {}
    for path, header, _ in header_annotations(input_schema):
        if path and isinstance(header, str) and _TOKEN.fullmatch(header):
            value = arguments
            for name in path:
                value = value.get(name) if isinstance(value, Mapping) else None
            if isinstance(value, bool):
                value = "true" if value else "false"
            elif isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, str | int | float):
                headers[PARAM_PREFIX + header] = str(value)
    return headers


def _schemas(root: Any) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Every subschema with its path; a stack instead of recursion, for schemas of any depth."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        yield path, schema
        for keyword, value in schema.items():
            if keyword in _ONE:
                waiting.append((None, value))
            elif keyword in _LIST and isinstance(value, list):
                waiting.extend((None, each) for each in value)
            elif keyword in _TABLE and isinstance(value, dict):
                waiting.extend((None, each) for each in value.values())
            elif keyword == "properties" and isinstance(value, dict):
                for name, each in value.items():
                    waiting.append((None if path is None else (*path, name), each))


# -- Streamable HTTP as rules --------------------------------------------------------------------

JSON_TYPE: Final = "application/json"
SSE_TYPE: Final = "text/event-stream"
POST_ACCEPT: Final = f"{JSON_TYPE}, {SSE_TYPE}"

VERSION_HEADER: Final = "MCP-Protocol-Version"
SESSION_HEADER: Final = "Mcp-Session-Id"
METHOD_HEADER: Final = "Mcp-Method"
NAME_HEADER: Final = "Mcp-Name"

VERSION_META: Final = "io.modelcontextprotocol/protocolVersion"

NAMED_BY: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that `Mcp-Name` repeats; the last three are of the tasks extension."""

_SENTINEL = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_PLAIN = re.compile(r"[\x20-\x7e]*")
_VISIBLE = re.compile(r"[\x21-\x7e]+")


def handshake_headers(revision: Revision | None, session_id: str | None) -> dict[str, str]:
    """What every request of a session carries; `revision` is None until it is agreed on."""
    headers: dict[str, str] = {}
    if revision is not None and revision >= Revision.V2025_06_18:
        headers[VERSION_HEADER] = revision.wire_version
    if session_id is not None:
        headers[SESSION_HEADER] = session_id
    return headers


def stateless_headers(
    revision: Revision, message: Mapping[str, Any], input_schema: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """What one message carries when nothing is remembered: its version, method and name.

    `input_schema` is the called tool's; its annotated arguments are repeated as `Mcp-Param-*`.
    """
    params = message.get("params")
    params = params if isinstance(params, Mapping) else {}
    # The header repeats the body's own version, also when a probe named one that isn't ours.
    meta = params.get("_meta")
    version = meta.get(VERSION_META) if isinstance(meta, Mapping) else None
    headers = {VERSION_HEADER: (version if isinstance(version, str) else revision.wire_version)}
    method = message.get("method")
    if not isinstance(method, str):
        return headers
    headers[METHOD_HEADER] = encode_header_value(method)
    name = params.get(NAMED_BY.get(method, ""))
    if isinstance(name, str):
        headers[NAME_HEADER] = encode_header_value(name)
    if method == "tools/call" and input_schema is not None:
        for header, text in param_headers(input_schema, params.get("arguments")).items():
            headers[header] = encode_header_value(text)
    return headers


def encode_header_value(value: str) -> str:
    """The value itself where HTTP keeps it intact, otherwise in base64 between the sentinels."""
    plain = _PLAIN.fullmatch(value) and value == value.strip(" ")
    if plain and not _SENTINEL.fullmatch(value):
        return value
    coded = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")
    return f"=?base64?{coded}?="


def decode_header_value(value: str) -> str:
    """Undo `encode_header_value`. ValueError when the text between the sentinels is no base64."""
    match = _SENTINEL.fullmatch(value)
    if match is None:
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeError) as error:
        raise ValueError(f"not base64 of UTF-8 between the sentinels: {error}") from None


def is_legal_session_id(value: str) -> bool:
    """Visible ASCII only, and at least one character of it."""
    return _VISIBLE.fullmatch(value) is not None


class Body(enum.Enum):
    """How the body of a response is to be read."""

    JSON = "json"
    EVENTS = "events"
    NOTHING = "nothing"
    """Nothing is due: an accepted notification, a deleted session, a method not allowed."""
    ERROR_TEXT = "error-text"
    """An error status with a body that is no JSON."""
    WRONG_TYPE = "wrong-type"
    """A success whose content type a client can't use."""


def media_type(content_type: str | None) -> str:
    """`application/json` from `Application/JSON; charset=utf-8`; empty when there is none."""
    return (content_type or "").partition(";")[0].strip().lower()


def is_event_stream(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a response with these headers is a stream of events, each of them a message."""
    return any(
        name.lower() == "content-type" and media_type(value) == SSE_TYPE for name, value in headers
    )


def may_say_anything(method: str, status: int, headers: Iterable[tuple[str, str]]) -> bool:
    """Whether the body of such a response need not be a message.

    That of a refusal need not, nor what stands below an acceptance or answers a GET or DELETE.
    """
    if is_event_stream(headers):
        return False
    return method != "POST" or status >= 400 or status in {202, 204}


def refusal_in_words(status: int, headers: Iterable[tuple[str, str]], reason: str = "") -> str:
    """An HTTP status that refuses a request, and what it wants instead, without the body."""
    words = f"HTTP {status}"
    if reason:
        words += f" {show(reason, 80)}"
    if status > 599:
        words += ", which is not an HTTP status"
    wanted = next((v for k, v in headers if k.lower() == "www-authenticate"), None)
    if wanted is not None:
        words += f"; the server requires authorization: {show(wanted, 200)}"
    return words


def hint_for_status(status: int | None) -> str:
    """What a person can do about a request that is refused with this status."""
    if status not in {401, 403}:
        return ""
    return "pass a token with --token-env NAME, or another header with --header K=V"


def classify_response(method: str, status: int, content_type: str | None) -> Body:
    """What the body should be taken for, by the request's HTTP method, the status and the type."""
    kind = media_type(content_type)
    success = 200 <= status < 300
    if kind == JSON_TYPE:
        return Body.JSON
    if kind == SSE_TYPE and method == "POST" and status >= 400:
        return Body.EVENTS  # the .NET SDK sends every answer as an event, errors with their status
    if not success:
        refused = status == 405 and method != "POST"
        return Body.NOTHING if refused else Body.ERROR_TEXT
    if kind == SSE_TYPE:
        return Body.EVENTS
    if status in {202, 204} or method == "DELETE":
        return Body.NOTHING
    return Body.WRONG_TYPE
