"""A JSON-RPC message as it was seen: also when it is malformed. Seeing is not judging."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from mcptest.core.revision import Revision


class Kind(enum.Enum):
    """What a message is by its shape, whatever else is wrong with it."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    ERROR = "error"
    BATCH = "batch"
    INVALID = "invalid"


class Flaw(enum.Enum):
    """One way in which bytes fail to be a JSON-RPC 2.0 message."""

    # the text
    NOT_JSON = "not-json"
    INVALID_UTF8 = "invalid-utf8"
    BYTE_ORDER_MARK = "byte-order-mark"
    NOT_FINITE = "not-finite"
    HUGE_NUMBER = "huge-number"
    DUPLICATE_KEY = "duplicate-key"
    LONE_SURROGATE = "lone-surrogate"
    TOO_DEEP = "too-deep"
    TOO_MANY_VALUES = "too-many-values"
    # the envelope
    NOT_AN_OBJECT = "not-an-object"
    EMPTY_BATCH = "empty-batch"
    JSONRPC_MISSING = "jsonrpc-missing"
    JSONRPC_WRONG = "jsonrpc-wrong"
    NO_MEMBER = "no-method-result-or-error"
    RESULT_AND_ERROR = "result-and-error"
    METHOD_AND_ANSWER = "method-and-answer"
    METHOD_NOT_STRING = "method-not-string"
    ID_TYPE = "id-type"
    ID_NULL = "id-null"
    ID_MISSING = "id-missing"
    PARAMS_TYPE = "params-type"
    ERROR_TYPE = "error-type"
    ERROR_CODE = "error-code"
    ERROR_MESSAGE = "error-message"
    RESULT_TYPE = "result-type"
    CONTENT_TYPE = "content-type"
    # the way in which it came
    IN_BATCH = "in-batch"


class Problem(msgspec.Struct, frozen=True):
    """A flaw with its reason in words; `pointer` is a JSON pointer into the message."""

    flaw: Flaw
    reason: str
    pointer: str = ""


class _Absent(enum.Enum):
    """The value of a member that is not there; distinct from a JSON null."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent.ABSENT


class Message(msgspec.Struct, frozen=True):
    """One decoded message. `value` is what the JSON said, or ABSENT when it could not be read."""

    raw: bytes
    kind: Kind
    value: Any
    problems: tuple[Problem, ...] = ()
    """What was wrong with the text. Envelope rules are asked separately, see wire.envelope.

    A message of a batch has the problems of the whole text, and that it came in a batch.
    """
    items: tuple[Message, ...] = ()
    """The messages of a batch."""

    def member(self, name: str) -> Any:
        """A member of the envelope, or ABSENT."""
        return self.value.get(name, ABSENT) if isinstance(self.value, dict) else ABSENT

    @property
    def id(self) -> Any:
        return self.member("id")

    @property
    def method(self) -> str | None:
        """The method, when it is a string."""
        method = self.member("method")
        return method if isinstance(method, str) else None

    @property
    def params(self) -> dict[str, Any]:
        """The params, or an empty object when there are none or they are not an object."""
        params = self.member("params")
        return params if isinstance(params, dict) else {}

    @property
    def result(self) -> Any:
        return self.member("result")

    @property
    def error(self) -> Any:
        return self.member("error")

    @property
    def is_answer(self) -> bool:
        return self.kind is Kind.RESULT or self.kind is Kind.ERROR


def id_key(value: Any) -> Any:
    """A hashable key that keeps JSON types apart: 1, "1", true and null are four ids.

    JSON has one type of number, and 1.0 is the number 1.
    """
    if type(value) is int or type(value) is str:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    return (type(value).__name__, repr(value))


_JSON_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    _Absent: "absent",
}


def json_type(value: Any) -> str:
    """The JSON name of a value's type, for messages to people."""
    return _JSON_NAMES.get(type(value), type(value).__name__)


def a_json_type(value: Any) -> str:
    """The same with its article: `an array`, `a string`, `null`."""
    name = json_type(value)
    if name in {"null", "absent"}:
        return name
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


# -- What is kept of a large value ---------------------------------------------------------------

_NAMES: Final = frozenset({"name", "uri", "uriTemplate", "cursor", "nextCursor"})
"""What is sent back to a server is never cut."""


def with_short_texts(value: Any, longest: int) -> Any:
    """The value with its long texts cut off, but for names; the value itself where none is long."""
    texts = (part for part in parts_of(value) if type(part) is str)
    return _shortened(value, longest) if any(len(one) > longest for one in texts) else value


def _shortened(value: Any, longest: int) -> Any:
    if type(value) is str:
        return value[:longest]
    if type(value) is list:
        items = list(value)
        for place, one in enumerate(items):  # a comprehension is one more call for each level
            items[place] = _shortened(one, longest)
        return items
    if type(value) is not dict:
        return value
    kept = dict(value)
    for name, one in value.items():
        if name not in _NAMES:
            kept[name] = _shortened(one, longest)
    return kept


def parts_of(value: Any) -> Iterator[Any]:
    """A value and everything within it, keys aside. Nothing is copied: it may have megabytes."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        kind = type(part)
        if kind is dict:
            waiting += part.values()
        elif kind is list or kind is tuple:
            waiting += part


# -- The types of content blocks -----------------------------------------------------------------

_KNOWN_SINCE: Final = {
    "text": Revision.V2024_11_05,
    "image": Revision.V2024_11_05,
    "resource": Revision.V2024_11_05,
    "audio": Revision.V2025_03_26,
    "resource_link": Revision.V2025_06_18,
}


@functools.cache
def content_types(revision: Revision | None) -> frozenset[str]:
    """The content types of a revision; an unknown one may have them all."""
    return frozenset(
        kind for kind, since in _KNOWN_SINCE.items() if revision is None or revision >= since
    )


def unknown_content(
    method: str, result: Mapping[str, Any], revision: Revision | None
) -> tuple[str, str] | None:
    """The first content block of a type that the revision does not have: its pointer, its type."""
    known = content_types(revision)
    member = {"tools/call": "content", "prompts/get": "messages"}.get(method, "")
    items = result.get(member)
    for place, item in enumerate(items if type(items) is list else ()):
        pointer, block = f"/result/{member}/{place}", item
        if member == "messages":
            pointer, block = (
                f"{pointer}/content",
                item.get("content") if type(item) is dict else None,
            )
        if type(block) is dict:
            kind = block.get("type")
            if type(kind) is not str or kind not in known:
                return pointer, kind if type(kind) is str else json_type(kind)
    return None
