"""Answers of every shape, each with an expectation, for a server that says what it is told.

Nothing here says which verdict is right: what counts is that both tools come to the same one, with
the same message. A case that only fails is worth as much as one that passes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.differential.both_tools import Case

DOCUMENT = {
    "a": {"b": [1, {"c": "x"}]},
    "big": 1234567,
    "empty": "",
    "flag": True,
    "foo-bar": 7,
    "half": 1.5,
    "list": [1, "a"],
    "n": 42,
    "nothing": None,
    "object": {"b": 1, "a": [2]},
    "text": "42",
    "tiny": 1e-7,
}
TEXTS = ("", " ", " null ", "[]", "{}", "[ ]", '""', "\u00a0", "\u001c", "\ufeff", "x", "a\n")
PATTERNS = (
    ("abc\n", "abc$"),
    ("abc\n", "(?m)abc$"),
    ("a\nb", "a.b"),
    ("a\nb", "(?s)a.b"),
    ("ABC", "(?i)abc"),
    ("é", r"\w"),
    ("é", r"\pL"),
    ("a", "(?P<n>a)"),
    ("a", "(?<n>a)"),
    ("a", r"a\z"),
    ("a.b", r"\Qa.b\E"),
    ("x", "[[:alpha:]]"),
    ("ab", "^b"),
)
INVALID_PATTERNS = ("(", r"(a)\1", "a{1001}", r"a\Z")
PATHS: tuple[tuple[str, Any], ...] = (
    ("$.a.b[0]", 1),
    ("a.b[1].c", "x"),
    ("$.a.b[1].c", "y"),
    ("$.a.b[7]", 1),
    ("$.n", 42),
    ("$.n", "42"),
    ("$.n", 42.0),
    ("$.n", 43),
    ("$.n.x", 1),
    ("$.n[0]", 1),
    ("$.text", 42),
    ("$.flag", True),
    ("$.flag", "true"),
    ("$.flag", 1),
    ("$.nothing", None),
    ("$.nothing", "<nil>"),
    ("$.absent", None),
    ("$.empty", ""),
    ("$.half", 1.5),
    ("$.tiny", 1e-7),
    ("$.list", [1, "a"]),
    ("$.list", "[1 a]"),
    ("$.list", ["1", "a"]),
    ("$.list", [1]),
    ("$.object", {"a": [2], "b": 1}),
    ("$.object", "map[a:[2] b:1]"),
    ("$.foo-bar", 7),
)
OTHER_TEXTS = ('noise\n{"n": 42}\nmore', "hello", "", "[1, 2, 3]", '{"n":\n 42}\ntrail', "42")
COUNTED = (
    *("[1,2]", "null", '{"items":[1]}', '{"results":[1,2,3]}', '{"entities":[1]}', '"s"', ""),
    *("x", "x\n[1,2]", '{"items":1,"symbols":[1]}', "42", "{}"),
)
BAD_RESULTS: tuple[Any, ...] = (
    {},
    {"content": 1},
    {"content": [1]},
    {"content": [{"type": "zz"}]},
    {"content": [{"type": "image"}]},
    {"content": [{"type": "audio", "data": "x"}]},
    {"content": [{"type": "resource_link", "uri": "x:y"}]},
    {"content": [{"type": "resource"}]},
    {"content": [{"type": "resource", "resource": {}}]},
    {"content": []},
    {
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "eA==", "mimeType": "image/png"},
            {"type": "text", "text": "b"},
        ]
    },
)
PROMPT = {
    "description": "d",
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "hi"}},
        {"role": "user", "content": {"type": "image", "data": "eA==", "mimeType": "image/png"}},
    ],
}
PROMPT_TEXT = 'd\nhi\n{"type":"image","data":"eA==","mimeType":"image/png"}'
PROMPTS = {
    "prompts": [
        {"name": "p1", "description": "d", "arguments": [{"name": "a", "required": True}]},
        {"name": "p2"},
    ]
}
CONTENTS = {
    "contents": [
        {"uri": "x:y", "text": "t1"},
        {"uri": "x:y", "blob": "AAECAwQ=", "mimeType": "application/octet-stream"},
    ]
}
CONTENTS_TEXT = 't1\n<blob mimeType="application/octet-stream" len=8>'
COMPLETION = {"completion": {"values": ["a", "b"], "total": 2}}
GET = ("assert_prompts", {"get": {"name": "p"}})
LIST = ("assert_prompts", {"list": {}})
READ = ("assert_resources", {"read": "x:y"})
COMPLETE = (
    "assert_completion",
    {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
)
CALL: tuple[str, dict[str, Any]] = ("assert", {"tool": "t", "args": {}})

_Row = tuple[Any, dict[str, Any], tuple[str, dict[str, Any]]]


def says(text: str, **members: Any) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": text}], **members}}


def refuses(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _about_texts() -> Iterator[tuple[Any, dict[str, Any]]]:
    for text in TEXTS:
        yield says(text), {"not_empty": True}
        yield says(text), {"equals": "a"}
    for text, parts in (
        ("hello", ["he", "lo"]),
        ("hello", ["He"]),
        ("x" * 300, ['é\u200b\u00a0"\\']),
        ("<b>&", ["<b>&"]),
        ("\U0001f600" * 300, ["z"]),
    ):
        for name in ("contains", "contains_any", "not_contains", "in_order"):
            yield says(text), {name: parts}
    for parts in (["a", "b", "c", "a"], ["b", "a", "a"], ["é"]):
        yield says("abcabc"), {"in_order": parts}
    for text, pattern in PATTERNS:
        yield says(text), {"matches_regex": [pattern]}
    for pattern in INVALID_PATTERNS:
        yield says("a"), {"matches_regex": [pattern]}
    yield says("boom", isError=True), {"contains": ["zz"]}


def _about_json() -> Iterator[tuple[Any, dict[str, Any]]]:
    for path, value in PATHS:
        yield says(json.dumps(DOCUMENT)), {"json_path": {path: value}}
    for text in OTHER_TEXTS:
        yield says(text), {"json_path": {"$.n": 42}}
    for text in COUNTED:
        yield says(text), {"min_results": 2}
        yield says(text), {"max_results": 1}
    for text in ('{"net_delta":0}', '{"net_delta":2}', '{"net_delta":"0"}', "{}", "[]", "x", ""):
        yield says(text), {"net_delta": 0}


def _about_errors() -> Iterator[tuple[Any, dict[str, Any]]]:
    for name in ("not_error", "is_error"):
        for answer in (
            says("a"),
            says("boom", isError=True),
            refuses(-32603, "kaput"),
            refuses(-32099, "odd"),
        ):
            yield answer, {name: True}
    for result in BAD_RESULTS:
        yield {"result": result}, {"equals": "a\nb"}


def _about_blocks() -> Iterator[_Row]:
    yield {"result": PROMPT}, {"equals": PROMPT_TEXT}, GET
    yield refuses(-32602, "no"), {"contains": ["x"]}, GET
    yield {"result": PROMPTS}, {"equals": json.dumps(PROMPTS, separators=(",", ":"))}, LIST
    yield {"result": CONTENTS}, {"equals": CONTENTS_TEXT}, READ
    yield refuses(-32002, "no"), {"contains": ["x"]}, READ
    yield (
        {"result": COMPLETION},
        {"equals": json.dumps(COMPLETION, separators=(",", ":"))},
        COMPLETE,
    )
    yield {"result": COMPLETION}, {"contains": ["zz"]}, COMPLETE
    yield refuses(-32602, "no"), {"contains": ["x"]}, COMPLETE


def stub_cases() -> list[Case]:
    """All of them, named by number and by what they expect."""
    plain = (*_about_texts(), *_about_json(), *_about_errors())
    rows = [*((answer, expect, CALL) for answer, expect in plain), *_about_blocks()]
    return [_case(number, *row) for number, row in enumerate(rows)]


def _case(number: int, answer: Any, expect: dict[str, Any], block: tuple[str, Any]) -> Case:
    kind, request = block
    name = f"{number:03} {kind} {json.dumps(expect)[:60]}"
    server = {"command": "python", "args": ["-S", "-E", "stub.py", json.dumps(answer)]}
    document = {"name": name, "server": server, kind: {**request, "expect": expect}}
    return Case(name, "", document)
