"""Where our shapes differ from the official schema on purpose, each with its reason.

A difference is a change to the official definitions that makes them say what we say, and a message
that shows it: judged in one way by the official schema, in the other by the changed one and by us.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcptest.core.message import Kind
from mcptest.core.revision import Revision
from tests.support.official_schema import MAY_BE_A_TASK, RESULT_NAMES, Definitions, Sort

C, D, E = Revision.V2025_06_18, Revision.V2025_11_25, Revision.V2026_07_28


@dataclass(frozen=True)
class Witness:
    """A message of the sort, as its content below the envelope."""

    revision: Revision
    sort: Sort
    content: dict[str, Any]
    we_accept: bool


@dataclass(frozen=True)
class Difference:
    name: str
    reason: str
    revisions: tuple[Revision, ...]
    change: Callable[[Definitions], None]
    witnesses: tuple[Witness, ...]


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _has(*members: str) -> dict[str, Any]:
    return {"type": "object", "required": list(members)}


# -- numbers -------------------------------------------------------------------------------


def _any_json_value(known: Definitions) -> None:
    if "JSONValue" in known:
        known["JSONValue"] = {}


def _elicited_numbers(known: Definitions) -> None:
    content = known["ElicitResult"]["properties"]["content"]["additionalProperties"]
    for part in (content, *content.get("anyOf", ())):
        if isinstance(part.get("type"), list):
            part["type"] = ["string", "number", "boolean"]


_META = {
    "io.modelcontextprotocol/protocolVersion": E.value,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_EXPERIMENT = {"experimental": {"x": {"share": 0.5, "none": None}}}
_DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [E.value],
    "capabilities": _EXPERIMENT,
    "ttlMs": 0,
    "cacheScope": "public",
}
_ELICITED = Sort(Kind.RESULT, "client", "elicitation/create")
_HALF = {"result": {"action": "accept", "content": {"share": 0.5}}}

# -- results -------------------------------------------------------------------------------


def _result_by_its_type(known: Definitions) -> None:
    """`resultType` decides, for every method; an extension's type has a base shape only."""
    asks = {"properties": {"resultType": {"const": "input_required"}}, **_has("resultType")}
    foreign = {
        "properties": {
            "resultType": {"type": "string", "not": {"enum": ["complete", "input_required"]}}
        },
        **_has("resultType"),
    }
    for name in {*RESULT_NAMES.values(), "Result"}:
        if f"{name}Response" in known:
            known[f"{name}Response"]["properties"]["result"] = {
                "if": asks,
                "then": _ref("InputRequiredResult"),
                "else": {"if": foreign, "then": _ref("Result"), "else": _ref(name)},
            }


def _result_or_task(known: Definitions) -> None:
    """A task stands for the result where the result's own member is missing."""
    for method in MAY_BE_A_TASK:
        name = RESULT_NAMES[method]
        own = "action" if name == "ElicitResult" else "content"
        known[f"Whole{name}"] = known[name]
        known[name] = {
            "if": {"allOf": [_has("task"), {"not": _has(own)}]},
            "then": _ref("CreateTaskResult"),
            "else": {"allOf": [_ref(f"Whole{name}")]},
        }


_CALLED = Sort(Kind.RESULT, "server", "tools/call")
_LISTED = Sort(Kind.RESULT, "server", "tools/list")
_TASK = {
    "taskId": "t",
    "status": "working",
    "createdAt": "2025-11-25T10:00:00Z",
    "lastUpdatedAt": "2025-11-25T10:00:00Z",
    "ttl": None,
}

# -- elicitation ---------------------------------------------------------------------------


def _property_by_its_members(known: Definitions) -> None:
    """`enum`, `oneOf` and `items.anyOf` say what a property is; a bad one is no plain string."""
    string = {"properties": {"type": {"const": "string"}}, **_has("type")}
    if "LegacyTitledEnumSchema" not in known:
        named, plain = _ref("EnumSchema"), _ref("StringSchema")
        text = {"if": _has("enum"), "then": named, "else": plain}
        rest = [_ref("NumberSchema"), _ref("BooleanSchema")]
    else:
        titled = {
            "if": _has("oneOf"),
            "then": _ref("TitledSingleSelectEnumSchema"),
            "else": _ref("StringSchema"),
        }
        text = {"if": _has("enum"), "then": _ref("LegacyTitledEnumSchema"), "else": titled}
        many = {
            "if": {"properties": {"items": _has("anyOf")}, **_has("items")},
            "then": _ref("TitledMultiSelectEnumSchema"),
            "else": _ref("UntitledMultiSelectEnumSchema"),
        }
        rest = [_ref("NumberSchema"), _ref("BooleanSchema"), many]
    known["PrimitiveSchemaDefinition"] = {"if": string, "then": text, "else": {"anyOf": rest}}


def _asking(*properties: dict[str, Any]) -> dict[str, Any]:
    named = {f"p{place}": one for place, one in enumerate(properties)}
    return {"params": {"message": "m", "requestedSchema": {"type": "object", "properties": named}}}


_ELICIT = Sort(Kind.REQUEST, "server", "elicitation/create")

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "free-form JSON",
        "schema.json narrows a JSON value to strings, integers and booleans; schema.ts, from which "
        "it is made, has any number and null too.",
        (E,),
        _any_json_value,
        (
            Witness(
                E,
                Sort(Kind.RESULT, "server", "server/discover"),
                {"result": _DISCOVERED},
                we_accept=True,
            ),
        ),
    ),
    Difference(
        "elicited numbers",
        "schema.json allows only integers in the content of an elicitation; schema.ts says number, "
        "and a form may ask for one.",
        (C, D, E),
        _elicited_numbers,
        (
            Witness(C, _ELICITED, _HALF, we_accept=True),
            Witness(D, _ELICITED, _HALF, we_accept=True),
            Witness(
                E,
                Sort(Kind.REQUEST, "client", "tools/call"),
                {"params": {"_meta": _META, "name": "t", "inputResponses": {"q": _HALF["result"]}}},
                we_accept=True,
            ),
        ),
    ),
    Difference(
        "result by its type",
        "a result of three methods may be an InputRequiredResult, which needs nothing but a "
        "resultType: every broken result passes as one. We go by resultType. Asking for input "
        "where it is not allowed is for rule MRTR-001, another type for the extension it is of.",
        (E,),
        _result_by_its_type,
        (
            Witness(E, _CALLED, {"result": {"resultType": "complete"}}, we_accept=False),
            Witness(E, _LISTED, {"result": {"resultType": "input_required"}}, we_accept=True),
            Witness(E, _LISTED, {"result": {"resultType": "task"}}, we_accept=True),
        ),
    ),
    Difference(
        "result or task",
        "the schema names no one definition for the result of a call that may become a task. A "
        "result with its own member is judged as such, also when it has a task beside it.",
        (D,),
        _result_or_task,
        (Witness(D, _CALLED, {"result": {"task": _TASK, "content": 5}}, we_accept=False),),
    ),
    Difference(
        "properties by their members",
        "a string schema is open, so an enum property with a broken enum passes as a plain string. "
        "We take the member that makes it an enum at its word.",
        (C, D, E),
        _property_by_its_members,
        (
            Witness(C, _ELICIT, _asking({"type": "string", "enum": [1]}), we_accept=False),
            Witness(D, _ELICIT, _asking({"type": "string", "oneOf": [{}]}), we_accept=False),
            Witness(
                D,
                _ELICIT,
                _asking(
                    {"type": "array", "items": {"type": "string", "enum": ["a"], "anyOf": [{}]}}
                ),
                we_accept=False,
            ),
        ),
    ),
)


@dataclass(frozen=True)
class OutsideShapes:
    """A message on which the official schema has a word and our shapes leave it to others."""

    name: str
    judged_by: str
    revision: Revision
    sort: Sort
    message: dict[str, Any]
    official_accepts: bool
    formats: bool = False


_FAILURE = {"code": -32700, "message": "no"}
_FAILED = Sort(Kind.ERROR, "server", "", -32603)
_PING = Sort(Kind.REQUEST, "client", "ping")
_READ = Sort(Kind.REQUEST, "client", "resources/read")
_PINGED = Sort(Kind.RESULT, "server", "ping")

ELSEWHERE: tuple[OutsideShapes, ...] = (
    OutsideShapes(
        "an error with id null",
        "MSG-010, as a warning: JSON-RPC 2.0 asks for null where the id could not be read",
        D,
        _FAILED,
        {"jsonrpc": "2.0", "id": None, "error": _FAILURE},
        official_accepts=False,
    ),
    OutsideShapes(
        "an error without id before 2025-11-25",
        "nobody: with no id to be read there is no right answer in those revisions",
        C,
        _FAILED,
        {"jsonrpc": "2.0", "error": _FAILURE},
        official_accepts=False,
    ),
    OutsideShapes(
        "an id of 1.0",
        "MSG-004: JSON Schema takes it for an integer",
        D,
        _PING,
        {"jsonrpc": "2.0", "id": 1.0, "method": "ping"},
        official_accepts=True,
    ),
    OutsideShapes(
        "a request without jsonrpc",
        "MSG-001",
        D,
        _PING,
        {"id": 1, "method": "ping"},
        official_accepts=False,
    ),
    OutsideShapes(
        "a result beside an error",
        "MSG-001: every object of the schema is open",
        D,
        _PINGED,
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": _FAILURE},
        official_accepts=True,
    ),
    OutsideShapes(
        "a URI that is none",
        "the rules on resources: a format is a remark that validators ignore unless told not to",
        D,
        _READ,
        {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "not a uri"}},
        official_accepts=False,
        formats=True,
    ),
    OutsideShapes(
        "a method that the sender does not have",
        "the rules on capabilities and on the stateless era",
        D,
        Sort(Kind.REQUEST, "client", "ping"),
        {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": 5},
        official_accepts=False,
    ),
)
