"""JSON-RPC for the demo: reading text strictly, sorting messages, building answers."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, ClassVar, TypeAlias, dataclass_transform

    Obj: TypeAlias = dict[str, Any]
else:

    def dataclass_transform() -> Any:
        return lambda declared: declared


MAX_MESSAGE_BYTES = 4 * 1024 * 1024

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

REQUEST = "request"
NOTIFICATION = "notification"
RESPONSE = "response"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


@dataclass_transform()
class Declared:
    """What has the members that its class annotates. `dataclasses` would double the start-up time.

    A default stands in the class, so it can't be a function.
    """

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._names += tuple(cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        self.__dict__.update(zip(self._names, values, strict=False), **named)
        self.__post_init__()

    def __post_init__(self) -> None:
        """For what follows from the members."""


class Refusal(Exception):  # noqa: N818  an answer, not a defect
    """A request is answered with this error."""

    def __init__(self, code: int, message: str, data: Obj | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def encode(message: Any) -> bytes:
    """One message as compact UTF-8, without a newline."""
    return _encode(message).encode()


def read_text(raw: bytes) -> Any:
    """The JSON value of one message. Raises Refusal when there is none that could be sent back."""
    if len(raw) > MAX_MESSAGE_BYTES:
        raise too_large()
    try:
        text = raw.decode()
        value = _decode(text)
        if "\\ud" in text or "\\uD" in text:
            encode(value)  # a lone surrogate can be read, but never written again
    except UnicodeError:
        raise Refusal(PARSE_ERROR, "Parse error: the message is not valid UTF-8") from None
    except RecursionError:
        raise Refusal(PARSE_ERROR, "Parse error: nested too deeply") from None
    except ValueError as error:
        # Also an integer of more digits than Python reads; its message quotes no input.
        raise Refusal(PARSE_ERROR, f"Parse error: {error}") from None
    return value


def too_large() -> Refusal:
    return Refusal(INVALID_REQUEST, f"Message is larger than {MAX_MESSAGE_BYTES} bytes")


def kind_of(value: Any) -> str:
    """Request, notification or response. Raises Refusal for anything that is none of them.

    What has a method and no id counts as a notification whatever else is wrong with it, and what
    has a result or an error as a response: neither is ever answered.
    """
    if not isinstance(value, dict):
        raise Refusal(INVALID_REQUEST, "Invalid request: a message is an object")
    method = value.get("method")
    if method is None and ("result" in value or "error" in value):
        return RESPONSE
    if not isinstance(method, str):
        raise Refusal(INVALID_REQUEST, "Invalid request: method must be a string")
    if "id" not in value:
        return NOTIFICATION
    if not is_id(value["id"]):
        raise Refusal(INVALID_REQUEST, "Invalid request: id must be a string or an integer")
    if value.get("jsonrpc") != "2.0":
        raise Refusal(INVALID_REQUEST, 'Invalid request: jsonrpc must be "2.0"')
    if "result" in value or "error" in value:
        raise Refusal(INVALID_REQUEST, "Invalid request: a request has no result and no error")
    params = value.get("params", {})
    if isinstance(params, list):
        raise Refusal(INVALID_PARAMS, "Invalid params: params must be an object, not an array")
    if not isinstance(params, dict):
        raise Refusal(INVALID_REQUEST, "Invalid request: params must be an object")
    return REQUEST


def is_id(value: Any) -> bool:
    """A string or an integer; also what a progress token may be."""
    return type(value) is int or type(value) is str


def readable_id(value: Any) -> Any:
    """The id of a message that was refused, or None when it has none that can be given back."""
    identifier = value.get("id") if isinstance(value, dict) else None
    return identifier if is_id(identifier) else None


def result_message(identifier: Any, result: Obj) -> Obj:
    return {"jsonrpc": "2.0", "id": identifier, "result": result}


def error_message(identifier: Any, refusal: Refusal, null_id: bool = False) -> Obj:
    """The answer of a refused request.

    Where the id could not be read, 2025-11-25 and later leave it out; before that their schemas
    allow neither, and plain JSON-RPC asks for null.
    """
    error: Obj = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        error["data"] = refusal.data
    message: Obj = {"jsonrpc": "2.0"}
    if identifier is not None or null_id:
        message["id"] = identifier
    message["error"] = error
    return message


def notification(method: str, params: Obj | None = None) -> Obj:
    message: Obj = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def read_data(file: str, **words: str) -> Obj:
    """One of the JSON files beside this one. `$NAME` in it stands for the word of that name."""
    folder = os.path.dirname(__file__)  # noqa: PTH120  pathlib costs start-up time
    with open(f"{folder}/{file}", encoding="utf-8") as stream:  # noqa: PTH123  as above
        text = stream.read()
    for name, word in words.items():
        text = text.replace(f"${name}", word)
    data: Obj = json.loads(text)
    return data


SCHEMAS = read_data("schemas.json")
"""What clients send: params of requests by their methods, and answers to what they are asked."""

NOT_BLANK = r"\S"
"""The one pattern that is known: without `re` the demo starts faster."""


def require_fit(value: Any, schema: Obj, where: str = "params") -> None:
    """Raises Refusal for params that do not fit."""
    problem = problem_with(value, schema, where)
    if problem is not None:
        raise Refusal(INVALID_PARAMS, f"Invalid params: {problem}")


def problem_with(value: Any, schema: Obj, where: str) -> str | None:
    """The first thing that is wrong with `value`, in words, or None."""
    expected = schema.get("type")
    if expected is not None and not _is_a(value, expected):
        article = "an" if expected[0] in "aio" else "a"
        return f"{where} must be {article} {expected}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} must be one of {', '.join(schema['enum'])}"
    if isinstance(value, str):
        if schema.get("pattern") == NOT_BLANK and value and not value.strip():
            return f"{where} must hold more than blanks"
        return _problem_with_length(len(value), schema, where, "characters", "Length")
    if isinstance(value, list):
        return _problem_with_items(value, schema, where)
    if isinstance(value, dict):
        return _problem_with_members(value, schema, where)
    if "minimum" in schema and value < schema["minimum"]:
        return f"{where} must be at least {schema['minimum']}"
    if "maximum" in schema and not value <= schema["maximum"]:
        return f"{where} must be at most {schema['maximum']}"
    return None


def _is_a(value: Any, expected: str) -> bool:
    if expected == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if expected == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    return type(value) is _TYPES[expected]


_TYPES: dict[str, type] = {"string": str, "object": dict, "array": list, "boolean": bool}


def _problem_with_length(
    length: int, schema: Obj, where: str, things: str, keyword: str
) -> str | None:
    if length < schema.get(f"min{keyword}", 0):
        return f"{where} must have at least {schema[f'min{keyword}']} {things}"
    if length > schema.get(f"max{keyword}", length):
        return f"{where} must have at most {schema[f'max{keyword}']} {things}"
    return None


def _problem_with_items(value: list[Any], schema: Obj, where: str) -> str | None:
    problem = _problem_with_length(len(value), schema, where, "items", "Items")
    if problem is None and "items" in schema:
        for place, item in enumerate(value):
            problem = problem_with(item, schema["items"], f"{where}[{place}]")
            if problem is not None:
                break
    return problem


def _problem_with_members(value: Obj, schema: Obj, where: str) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where}.{name} is required"
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, member in value.items():
        rule = properties.get(name, others)
        if rule is False:
            return f"{where} has an unknown member: {name[:80]!r}"
        problem = None if rule is True else problem_with(member, rule, f"{where}.{name}")
        if problem is not None:
            return problem
    return None
