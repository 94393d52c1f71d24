"""One way from a report to JSON, one way back, and the JSON Schema of what is written.

Text stands in JSON as it came. What could steer the terminal or the CI system that the file is
printed on is written as an escape, which every reader turns back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from mcptest.core.errors import UsageError
from mcptest.core.safe_text import show

# Go escapes the first five. C1 and bidirectional controls are legal in JSON, but not harmless.
_ESCAPED = re.compile(
    "[<>&\u2028\u2029\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]|(?<=#)#"
)
_BYTE = re.compile(r" \(byte (\d+)\)$")


def as_json(value: Any) -> bytes:
    """Indented JSON in UTF-8 that is safe to print."""
    text = msgspec.json.format(plain_json(value), indent=2).decode("utf-8")
    return _ESCAPED.sub(as_escape, text).encode("utf-8") + b"\n"


def plain_json(value: Any) -> bytes:
    """In one line, as it came."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 can't hold
        return msgspec.json.encode(_visible(msgspec.to_builtins(value)))


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_visible(key): _visible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_visible(item) for item in value]
    return value


def as_escape(match: re.Match[str]) -> str:
    """The characters as JSON can also write them."""
    units = match.group().encode("utf-16-be")
    pairs = (units[i : i + 2] for i in range(0, len(units), 2))
    return "".join(f"\\u{int.from_bytes(pair):04x}" for pair in pairs)


def decode(data: bytes, shape: Any, source: str) -> Any:
    """JSON of a known shape, or an error that says where in the file it is wrong."""
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        raise UsageError(f"{source}: {show(str(error), 300)}") from None
    except RecursionError:
        raise UsageError(f"{source}: JSON is nested too deeply") from None
    except ValueError as error:
        raise UsageError(_malformed(str(error), data, source)) from None


def _malformed(message: str, data: bytes, source: str) -> str:
    if not data.strip():
        return f"{source}: the file is empty"
    place = _BYTE.search(message)
    if place is None:
        return f"{source}: {show(message, 300)}"
    before = data[: int(place[1])]
    line = before.count(b"\n") + 1
    column = len(before) - (before.rfind(b"\n") + 1) + 1
    return f"{source}:{line}:{column}: {show(message[: place.start()], 300)}"


# -- JSON Schema ---------------------------------------------------------------------------------


def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of what `as_json` writes for a value of this type.

    msgspec requires what a reader needs. A writer does more: it leaves out only what is UNSET, and
    the defaults of a type that omits them.
    """
    schema = msgspec.json.schema(kind)
    for struct in _structs(inspect.type_info(kind), set()):
        whole = schema["$defs"][struct.cls.__name__]
        written = (one.encode_name for one in struct.fields if _is_written(one, struct))
        whole["required"] = list(dict.fromkeys((*whole.get("required", ()), *written)))
    return schema


def _is_written(field: inspect.Field, struct: inspect.StructType) -> bool:
    """Whether a member is always there. A default that a function of ours gives is."""
    if field.required or field.default_factory not in (msgspec.NODEFAULT, list, dict, set):
        return True
    may_be_unset = field.default is field.default_factory is msgspec.NODEFAULT
    return not may_be_unset and not struct.cls.__struct_config__.omit_defaults


def _structs(info: Any, seen: set[type]) -> Iterator[inspect.StructType]:
    """Every struct that a type consists of."""
    if isinstance(info, inspect.StructType):
        if info.cls in seen:
            return
        seen.add(info.cls)
        yield info
    parts = [getattr(info, name) for name in getattr(info, "__struct_fields__", ())]
    for part in parts:
        for one in part if isinstance(part, tuple) else (part,):
            if isinstance(one, inspect.Type | inspect.Field):
                yield from _structs(one, seen)
