"""The values that slip past a schema or trip a handler, by the type that they stand in for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Named: TypeAlias = tuple[str, Any]

TRAVERSAL: Final = "../../../../../../../../etc/passwd"
TRAVERSAL_FOR_WRITERS: Final = "../../../../../../../../mcptest-no-such-folder/escape"
"""Leads out as well, to where nothing can be destroyed."""
SHELL: Final = "; echo mcptest-$((6*7)) #"
SHELL_RAN: Final = "mcptest-42"
"""What the answer holds when a shell has read it. It does no harm."""
SQL: Final = "' OR '1'='1' --"
LONG: Final = "A" * 10_240
NULL: Final[Named] = ("null value", None)

STRINGS: Final[tuple[Named, ...]] = (
    ("empty string", ""),
    ("whitespace only", " \t  "),
    ("very long string (10KB)", LONG),
    ("null bytes", "before\0after"),
    ("unicode edge case", "\u202e\ufeff\u200be\u0301\ufb00\U0010ffff"),
    ("emoji", "\U0001f469\u200d\U0001f4bb \U0001f1e9\U0001f1f0 \U0001f44d\U0001f3fd"),
    ("newlines", "one\r\ntwo\n\nthree\u2028four\r"),
    ("path traversal", TRAVERSAL),
    ("shell injection", SHELL),
    ("SQL injection", SQL),
    NULL,
)
NUMBERS: Final[tuple[Named, ...]] = (
    ("zero", 0),
    ("negative", -1),
    ("MAX_INT", 2**63 - 1),
    ("MIN_INT", -(2**63)),
    ("float precision", 0.1 + 0.2),
    ("negative zero", -0.0),
    ("beyond 2^53", 2**53 + 1),
    ("largest double", 1.7976931348623157e308),
    ("smallest double", 5e-324),
    NULL,
)
BOOLEANS: Final[tuple[Named, ...]] = (
    NULL,
    ("0", 0),
    ("1", 1),
    ('"true"', "true"),
    ('"false"', "false"),
)
EXAMPLES: Final[Mapping[str, Any]] = {
    "string": "12345",
    "integer": 12345,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
"""A plain value of each type, to be sent where another is wanted."""


def arrays(item: Any) -> tuple[Named, ...]:
    """`item` is a valid one."""
    return (
        ("empty array", []),
        NULL,
        ("1000 elements", [item] * 1_000),
        ("mixed types", [1, "two", True, None, {}, []]),
        ("nested arrays", [[[[[[]]]]]]),
    )


def objects() -> tuple[Named, ...]:
    deep: Any = {}
    for _ in range(19):
        deep = {"level": deep}
    return (
        ("empty object", {}),
        NULL,
        ("20 levels deep", deep),
        ("100 keys", {f"key{number}": number for number in range(100)}),
    )
