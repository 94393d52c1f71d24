"""One input for a tool: what is sent, what is wrong with it, and whether its schema accepts it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from mcptest.model.message import ABSENT


class Category(enum.Enum):
    """Where an input comes from."""

    STRUCTURAL = "structural"
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OBJECT = "object"
    CROSS_PROPERTY = "cross-property"
    MUTATION = "mutation"
    GIVEN = "given"
    """Written by whoever started the run."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One input. `valid` is what validation said, not what was meant.

    None: there is no schema, or nobody has asked yet; `near_valid.judged_again` does.
    """

    category: Category
    label: str
    arguments: Any
    """ABSENT: the member is left out. Anything but an object makes the request malformed."""
    valid: bool | None = None
    misfit: str = ""
    """Why the schema does not accept it, and where."""
    member: str = ""
    """The one member in which it differs from a valid input; empty when it is not just one."""

    @property
    def is_malformed(self) -> bool:
        """Whether already the request is none that the protocol knows, whatever the tool wants."""
        return self.arguments is not ABSENT and not isinstance(self.arguments, Mapping)


def params_of(tool: str, arguments: Any) -> dict[str, Any]:
    """The params of the call."""
    params: dict[str, Any] = {"name": tool}
    if arguments is not ABSENT:
        params["arguments"] = arguments
    return params


def can_be_sent(arguments: Mapping[str, Any]) -> bool:
    """Whether a message can hold it: a schema's own bounds may lead to numbers that none can."""
    try:
        text = msgspec.json.encode(arguments)
    except UnicodeEncodeError:
        return True  # half a surrogate pair is sent escaped
    except (OverflowError, TypeError, RecursionError):
        return False
    # Infinity would be sent as null, which is not what a label says.
    return b":null" not in text or bool(msgspec.json.decode(text) == arguments)
