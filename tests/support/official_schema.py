"""The official schema.json as an oracle: what judges a message, and messages made from it."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs as rs

from mcptest.core.message import Kind
from mcptest.core.revision import Revision

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "mcp-schema"
DATED = tuple(revision for revision in Revision if revision is not Revision.DRAFT)
Definitions = dict[str, Any]

RESULT_NAMES = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "sampling/createMessage": "CreateMessageResult",
    "elicitation/create": "ElicitResult",
    "roots/list": "ListRootsResult",
    "tasks/get": "GetTaskResult",
    "tasks/result": "GetTaskPayloadResult",
    "tasks/cancel": "CancelTaskResult",
    "tasks/list": "ListTasksResult",
}
"""Results are not named by their method in the schema; others are an empty `Result`."""
ERROR_NAMES = {
    -32042: "URLElicitationRequiredError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}
MAY_BE_A_TASK = ("tools/call", "sampling/createMessage", "elicitation/create")


@dataclass(frozen=True)
class Sort:
    """One sort of message: what it is, who sends it, for which method or error code."""

    kind: Kind
    sender: str
    method: str
    code: int = 0

    def __str__(self) -> str:
        return f"{self.sender} {self.kind.value} {self.method or self.code}"


@cache
def document(revision: Revision) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / revision.value / "schema.json").read_text())
    return loaded


def definitions(revision: Revision) -> Definitions:
    """A copy that may be changed."""
    whole = document(revision)
    return copy.deepcopy(whole.get("$defs") or whole["definitions"])


def methods_of(union: str, revision: Revision) -> dict[str, str]:
    """Method to definition, of a union like ClientRequest; empty when the revision has none."""
    known = definitions(revision)
    if union not in known:
        return {}
    parts = known[union].get("anyOf") or [known[union]]
    names = [part["$ref"].split("/")[-1] for part in parts if "$ref" in part]
    if not names:  # a union of one is written out
        method = parts[0]["properties"]["method"]["const"]
        names = [name for name in known if _method(known[name]) == method]
    return {_method(known[name]): name for name in names if _method(known[name])}


def _method(definition: Any) -> str:
    method = definition.get("properties", {}).get("method", {})
    return str(method.get("const", ""))


def sorts_of(revision: Revision) -> list[Sort]:
    """Every sort of message that the official schema defines."""
    found = []
    for side, other in (("client", "server"), ("server", "client")):
        name = side.capitalize()
        requests = methods_of(f"{name}Request", revision)
        found += [Sort(Kind.REQUEST, side, method) for method in requests]
        found += [Sort(Kind.RESULT, other, method) for method in requests]
        notices = methods_of(f"{name}Notification", revision)
        found += [Sort(Kind.NOTIFICATION, side, method) for method in notices]
    known = definitions(revision)
    codes = [code for code, name in ERROR_NAMES.items() if name in known]
    return found + [Sort(Kind.ERROR, "server", "", code) for code in (*codes, -32603)]


def judging(sort: Sort, revision: Revision) -> dict[str, Any]:
    """The schema, out of the definitions, that judges a whole message of this sort."""
    known = definitions(revision)

    def ref(name: str) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{name}"}

    if sort.kind is Kind.ERROR:
        plain = "JSONRPCError" if "JSONRPCError" in known else "JSONRPCErrorResponse"
        return {"allOf": [ref(plain), *_by_code(known, ref)]}
    if sort.kind is Kind.RESULT:
        return _judging_result(sort, known, ref)
    side = sort.sender.capitalize()
    union, envelope = (
        f"{side}{sort.kind.value.capitalize()}",
        f"JSONRPC{sort.kind.value.capitalize()}",
    )
    return {"allOf": [ref(envelope), ref(methods_of(union, revision)[sort.method])]}


def _by_code(known: Definitions, ref: Callable[[str], dict[str, Any]]) -> list[dict[str, Any]]:
    """A code with data of its own is judged by its own definition."""
    judges = []
    for code, name in ERROR_NAMES.items():
        if name in known:
            has_code = {"properties": {"code": {"const": code}}, "required": ["code"]}
            judges.append({"if": {"properties": {"error": has_code}}, "then": ref(name)})
    return judges


def _judging_result(
    sort: Sort, known: Definitions, ref: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    name = RESULT_NAMES.get(sort.method, "Result")
    if f"{name}Response" in known:
        return ref(f"{name}Response")
    envelope = "JSONRPCResultResponse" if "JSONRPCResultResponse" in known else "JSONRPCResponse"
    result = ref(name)
    if "CreateTaskResult" in known and sort.method in MAY_BE_A_TASK:
        result = {"anyOf": [ref(name), ref("CreateTaskResult")]}
    return {"allOf": [ref(envelope), {"properties": {"result": result}}]}


def in_2020_dialect(schema: Any) -> Any:
    """References of the older files lead to `definitions`; ours are all under `$defs`."""
    return json.loads(json.dumps(schema).replace("#/definitions/", "#/$defs/"))


def validator(schema: dict[str, Any], known: Definitions, formats: bool = False) -> Any:
    whole = in_2020_dialect({**schema, "$defs": known})
    return rs.Draft202012Validator(whole, validate_formats=formats)


# -- messages from the schema --------------------------------------------------------------


class FromSchema:
    """Random values that fit the official definitions of a revision."""

    def __init__(self, known: Definitions, chance: random.Random) -> None:
        self.known = known
        self.chance = chance

    def value(self, node: Any, depth: int = 0) -> Any:
        chance = self.chance
        if node is True or not node:
            return chance.choice((None, 1, "a", {}, []))
        if "$ref" in node:
            return self.value(self.known[node["$ref"].split("/")[-1]], depth + 1)
        if "anyOf" in node:
            return self.value(chance.choice(node["anyOf"]), depth + 1)
        if "allOf" in node:
            return _merged([self.value(part, depth) for part in node["allOf"]])
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return chance.choice(node["enum"])
        return self._typed(node, depth)

    def _typed(self, node: dict[str, Any], depth: int) -> Any:
        chance, kind = self.chance, node.get("type", "object")
        kind = chance.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            return self._object(node, depth)
        if kind == "array":
            size = chance.randint(0, 0 if depth > 12 else 2)
            return [self.value(node.get("items", True), depth + 1) for _ in range(size)]
        least, most = node.get("minimum", -3), node.get("maximum", 9)
        if kind == "number" and chance.random() < 0.5:
            return chance.uniform(least, most)
        plain = {"null": None, "boolean": chance.random() < 0.5, "string": chance.choice("abc")}
        return plain[kind] if kind in plain else chance.randint(least, most)

    def _object(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        chance, made = self.chance, {}
        required = node.get("required", [])
        for name, member in node.get("properties", {}).items():
            if name in required or chance.random() < (0.1 if depth > 12 else 0.4):
                made[name] = self.value(member, depth + 1)
        more = node.get("additionalProperties")
        if more is not None and depth < 12:
            for key in chance.sample(["k", "l", "m"], chance.randint(0, 2)):
                made.setdefault(key, self.value(more, depth + 1))
        return made


def _merged(parts: list[Any]) -> Any:
    whole: dict[str, Any] = {}
    for part in parts:
        for name, member in part.items():
            both = isinstance(member, dict) and isinstance(whole.get(name), dict)
            whole[name] = _merged([whole[name], member]) if both else member
    return whole
