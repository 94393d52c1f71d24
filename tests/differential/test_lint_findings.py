"""`mcptest lint` against `mcp-assert lint` on the same servers: the same findings but for a list.

Every difference is explained in docs/mcp-assert-differences.md.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.differential.both_tools import MCP_ASSERT
from tests.differential.lint_nasty import NASTY, ONLY_OURS_IS_RIGHT
from tests.e2e.driving import BOUND, NPM, PEERS, mcptest
from tests.peers.warm_peers import warm_peer

LISTER = Path(__file__).with_name("lister.py")
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.skipif(not MCP_ASSERT.exists(), reason="mcp-assert is not installed")

Key = tuple[str, str, str]
"""Code, tool and field."""


def theirs(*command: str) -> list[dict[str, Any]]:
    argv = [str(MCP_ASSERT), "lint", "--json", "--server", shlex.join(command)]
    done = subprocess.run(argv, capture_output=True, timeout=BOUND, stdin=subprocess.DEVNULL)
    return list(json.loads(done.stdout)["findings"])


def ours(*command: str) -> list[dict[str, Any]]:
    return list(
        json.loads(mcptest("lint", "--json", "--profile", "mcp-assert", "--", *command).out)[
            "findings"
        ]
    )


def severities(findings: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["code"], one["severity"]) for one in findings}


def keys(findings: Sequence[dict[str, Any]]) -> set[Key]:
    return {
        (one["code"], one["tool"], one.get("field", ""))
        for one in findings
        if one["code"] != "E107"
    }


def in_circles(findings: Sequence[dict[str, Any]], marks: tuple[str, str]) -> set[str]:
    """Every tool that is named in a circle: which circles there are is random over there."""
    begin, end = marks
    return {
        name.strip()
        for one in findings
        if one["code"] == "E107"
        for name in one["message"].partition(begin)[2].partition(end)[0].split(",")
    }


def compare(*command: str) -> tuple[set[Key], set[Key]]:
    """What only they find, and what only we find by their codes; circles have to be the same."""
    here, there = ours(*command), theirs(*command)
    assert in_circles(here, ("parameters: ", "\0")) == in_circles(there, ("between ", ". "))
    known = {one for one in keys(here) if not one[0].startswith("L")}
    assert here or there, "nothing was compared"
    codes = {one["code"] for one in here}
    assert severities(here) == {one for one in severities(there) if one[0] in codes}
    return keys(there) - known, known - keys(there)


def listing(tools: Sequence[Any], folder: Path) -> tuple[str, ...]:
    file = folder / "tools.json"
    file.write_text(json.dumps(tools), encoding="utf-8")
    return (sys.executable, "-I", str(LISTER), str(file))


def test_the_same_is_found_in_tools_that_break_every_code(tmp_path: Path) -> None:
    only_theirs, only_ours = compare(*listing(NASTY, tmp_path))
    assert only_ours == set()
    assert only_theirs == {
        # a description of blanks is none: one finding, E101, is enough
        ("W101", "blank", "description"),
        ("W116", "blank", "description"),
        # over there W103 has two meanings; the second one is L201 here
        ("W103", "many_verbs", "description"),
    }


def test_the_nasty_tools_break_every_code_that_needs_no_calls(tmp_path: Path) -> None:
    broken = {one["code"] for one in theirs(*listing(NASTY, tmp_path))}
    without_calls = {"E101", "E102", "E103", "E105", "E107", "E112", "E113"}
    without_calls |= {f"W{number}" for number in range(101, 117)}
    # W106 has its own test, W107 needs calls, and there is no W113
    assert broken >= without_calls - {"W106", "W107", "W113"}


def test_a_list_that_costs_too_much_is_found_by_both(tmp_path: Path) -> None:
    command = listing(
        [{**NASTY[0], "name": f"t{n}", "description": "x " * 240} for n in range(80)], tmp_path
    )
    assert ("W106", "(all tools)", "schema_size") in keys(theirs(*command)) & keys(ours(*command))


def test_what_only_looks_wrong_is_not_complained_about(tmp_path: Path) -> None:
    only_theirs, only_ours = compare(*listing(ONLY_OURS_IS_RIGHT, tmp_path))
    assert only_ours == set()
    assert only_theirs == {
        ("E102", "enumerated", "args.colour.type"),
        ("W108", "get_dataset", "description"),
        ("W116", "structured", "description"),
    }


REAL = {
    "time": (str(BIN / "mcp-server-time"),),
    "python sdk": (sys.executable, str(PEERS / "python_sdk_server.py")),
}
NODE = {
    "filesystem": ("node", str(NPM / "server-filesystem/dist/index.js"), "."),
    "memory": ("node", str(NPM / "server-memory/dist/index.js")),
    "everything": ("node", str(NPM / "server-everything/dist/index.js")),
}


def differs_as_documented(*command: str) -> None:
    only_theirs, only_ours = compare(*command)
    assert {code for code, _, _ in only_theirs} <= {"W108", "W116"}
    # The everything server offers three more tools to a client that is equipped for them.
    more = {"trigger-sampling-request", "get-roots-list", "trigger-elicitation-request"}
    assert {tool for _, tool, _ in only_ours} <= more


@pytest.mark.parametrize("name", sorted(REAL))
def test_real_servers_get_the_same_findings(name: str) -> None:
    differs_as_documented(*warm_peer(*REAL[name]))


@pytest.mark.npm
@pytest.mark.parametrize("name", sorted(NODE))
def test_npm_servers_get_the_same_findings(name: str) -> None:
    differs_as_documented(*NODE[name])
