"""Both tools say the same of every shape of answer: the verdict, and why, in the same words."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.differential.both_tools import REFUSED, Case, Said, said_by_both
from tests.differential.differences import NO_PATTERN
from tests.differential.stub_cases import INVALID_PATTERNS, stub_cases

PAGE = Path(__file__).parents[2] / "docs" / "mcp-assert-differences.md"
GO_TYPES = {"float64": "number", "[]interface {}": "array"}
OUR_OWN_WORDS = {
    'json_path "$.n[0]": expected array at "n"': ", got number",
    "net_delta: result is not valid JSON: ": "expected an object, got array",
}
"""Beginnings of messages that both have, each with the end that only ours has."""


@pytest.mark.peer
def test_both_tools_say_the_same_of_every_shape_of_answer(tmp_path: Path) -> None:
    cases = stub_cases()
    theirs, ours = said_by_both(cases, tmp_path)
    refused = {name for name, said in ours.items() if said.status == REFUSED}

    assert {name: in_our_words(theirs[name]) for name in ours if name not in refused} == {
        name: without_code(said) for name, said in ours.items() if name not in refused
    }
    assert len(refused) == len(INVALID_PATTERNS)
    assert all(theirs[name].status == "FAIL" for name in refused)
    assert f"\n| {NO_PATTERN} |" in PAGE.read_text(encoding="utf-8")
    # a stub that no tool can talk to would make everything the same
    assert Counter(said.status for said in ours.values())["PASS"] > len(cases) / 3


SHUFFLED = {
    "z": 1,
    "b": {"y": [{"d": 1, "c": 2}], "x": None},
    "a": "t",
    "B": 1.0,
    "\u00e9": 1,
    "_": 2,
}
STRINGS = {"z": "1", "a": "2", "m": "3"}


@pytest.mark.peer
def test_both_tools_send_arguments_in_the_same_order(tmp_path: Path) -> None:
    """As Go writes them: sorted by name, at any depth. The server tells what it got."""
    server = {"command": "python", "args": ["-S", "-E", "stub.py", '"mirror"']}
    blocks: dict[str, dict[str, Any]] = {
        "assert": {"tool": "t", "args": SHUFFLED},
        "assert_sampling": {"tool": "t", "args": SHUFFLED},
        "assert_prompts": {"get": {"name": "p", "arguments": STRINGS}},
    }
    cases = [
        Case(
            kind,
            "FAIL",
            {"name": kind, "server": server, kind: {**block, "expect": {"equals": ""}}},
        )
        for kind, block in blocks.items()
    ]
    captured = {"tool": "t", "args": {"z": 1, "a": 2}, "capture": {"sent": "$"}}
    call = {"tool": "t", "args": {"text": "{{sent}}"}, "expect": {"equals": ""}}
    cases.append(
        Case(
            "setup",
            "FAIL",
            {"name": "setup", "server": server, "setup": [captured], "assert": call},
        )
    )
    theirs, ours = said_by_both(cases, tmp_path)
    assert ours == theirs
    assert list(json.loads(ours["assert"].detail.partition("got:  ")[2])) == sorted(SHUFFLED)


def in_our_words(said: Said) -> Said:
    """Types by their names in JSON, and reasons that are only ours."""
    detail = re.sub(
        r"(?<=, got )(float64|\[\]interface \{\})$", lambda m: GO_TYPES[m[0]], said.detail
    )
    for beginning, end in OUR_OWN_WORDS.items():
        if detail == beginning or detail.startswith(f"{beginning}json: cannot unmarshal array"):
            detail = beginning + end
    return Said(said.status, detail)


def without_code(said: Said) -> Said:
    """mcp-assert tells neither the code of a protocol error nor the bytes of a malformed answer."""
    detail = said.detail.partition(" (JSON-RPC error")[0]
    ours = r"the response is malformed: (unsupported content type: \w+) \(.*"
    detail = re.sub(ours, r"\1", detail)
    # ours says which item it is, and what it is instead
    ours = r"the response is malformed: result\.(content)(?:\[\d+\])? is .*, not (an \w+):.*"
    return Said(said.status, re.sub(ours, r"\1 is not \2", detail))
