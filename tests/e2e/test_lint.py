"""`mcptest lint` as a person runs it: live servers, files, captures, reports, exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.e2e.driving import NPM, PYTHON_SDK, free_port, listening, mcptest, record

EXPLORED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("explored.py")))
GOOD = {
    "name": "look_up",
    "description": "Looks up one invoice by its number and returns it as text.",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {
            "invoice": {"type": "string", "description": "Its number.", "pattern": "^I-[0-9]+$"}
        },
        "required": ["invoice"],
    },
}
SILENT = {"name": "silent", "inputSchema": {"type": "object"}}

TELLTALE = """
import json, os, sys
tool = {"name": "tell", "description": "Knows the word " + os.environ["PASSWORD"] + " by heart",
        "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        told = {"protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif asked["method"] == "tools/list" and "cursor" not in asked.get("params", {}):
        told = {"tools": [tool]}
        if "BREAK" in os.environ:
            told["nextCursor"] = "2"
    else:
        told = None
    answer = {"error": {"code": -32601, "message": "no"}} if told is None else {"result": told}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def listed(folder: Path, *tools: Any) -> str:
    file = folder / "tools.json"
    file.write_text(json.dumps({"tools": tools}), encoding="utf-8")
    return str(file)


def test_a_good_tool_has_no_findings(tmp_path: Path) -> None:
    done = mcptest("lint", "--strict", "--tools", listed(tmp_path, GOOD))
    assert done.code == 0, done.said
    assert "no findings" in done.out


def test_an_error_is_exit_code_one_and_a_warning_only_when_strict(tmp_path: Path) -> None:
    assert mcptest("lint", "--tools", listed(tmp_path, SILENT)).code == 1
    warned = listed(tmp_path, {**GOOD, "description": "Returns it, whole."})
    assert mcptest("lint", "--tools", warned).code == 0
    assert mcptest("lint", "--tools", warned, "--strict").code == 1
    assert mcptest("lint", "--tools", warned, "--max-findings", "1").code == 0
    assert mcptest("lint", "--tools", warned, "--strict", "--ignore", "W111").code == 0


def test_a_note_is_counted_listed_when_asked_for_and_never_a_failure(tmp_path: Path) -> None:
    noted = listed(tmp_path, {**GOOD, "description": "Looks up one invoice by its number."})
    done = mcptest("lint", "--tools", noted, "--strict", "--max-findings", "0")
    assert done.code == 0, done.said
    assert "no errors, no warnings, 1 note" in done.out
    assert "does not say what it returns" not in done.out
    for option in ("--verbose", "--select=W116"):
        assert (
            "W116  the description does not say what the tool returns"
            in mcptest("lint", "--tools", noted, option).out
        )
    told = json.loads(mcptest("lint", "--tools", noted, "--json").out)
    assert [one["severity"] for one in told["findings"]] == ["note"]
    assert (told["errors"], told["warnings"], told["noted"]) == (0, 0, 1)


def test_the_profile_of_mcp_assert_has_its_severities(tmp_path: Path) -> None:
    noted = listed(tmp_path, {**GOOD, "description": "Looks up one invoice by its number."})
    done = mcptest("lint", "--tools", noted, "--profile", "mcp-assert", "--strict")
    assert done.code == 1
    assert "0 errors, 1 warning (1 W116)" in done.out


def test_more_findings_than_the_threshold_allows_fail(tmp_path: Path) -> None:
    tools = [{**GOOD, "name": name, "description": f"{name} an invoice, whole"} for name in "ab"]
    done = mcptest(
        "lint", "--tools", listed(tmp_path, *tools), "--max-findings", "1", "--ignore", "E"
    )
    assert done.code == 1
    assert "more than the 1 allowed" in done.out


@pytest.mark.parametrize(
    ("argv", "phrase"),
    [
        (["--select", "X1"], "unknown lint code X1"),
        (["--select", "E", "--ignore", "E"], "leave no code"),
        (["--max-tools", "-1"], "must not be negative"),
        (["--similarity", "3"], "between 0 and 1"),
        (["--call-tools"], "need a server"),
        (["--server", "demo"], "both given"),
    ],
)
def test_bad_options_are_exit_code_two(tmp_path: Path, argv: list[str], phrase: str) -> None:
    done = mcptest("lint", "--tools", listed(tmp_path, GOOD), *argv)
    assert done.code == 2
    assert phrase in done.err


@pytest.mark.parametrize("text", ["", "{}", "[1", "not json", '{"tools": 3}'])
def test_a_file_without_a_list_is_exit_code_two(tmp_path: Path, text: str) -> None:
    file = tmp_path / "f.json"
    file.write_text(text)
    done = mcptest("lint", "--tools", str(file))
    assert done.code == 2, done.said
    assert "tools/list" in done.err
    assert mcptest("lint", "--tools", str(tmp_path / "none.json")).code == 2


def test_a_list_of_nothing_is_exit_code_four(tmp_path: Path) -> None:
    done = mcptest("lint", "--tools", listed(tmp_path))
    assert done.code == 4
    assert "nothing to lint" in done.err


def test_a_capture_is_linted_as_its_server_is(tmp_path: Path) -> None:
    capture = tmp_path / "s.jsonl"
    assert record(capture, "--server", "demo").code == 0
    live = json.loads(mcptest("lint", "--server", "demo", "--json").out)
    stored = json.loads(mcptest("lint", "--tools", str(capture), "--json").out)
    assert stored["findings"] == live["findings"]
    assert stored["tools"] == live["tools"] > 0


def test_every_report_holds_what_was_found(tmp_path: Path) -> None:
    hostile = {**SILENT, "name": "a|b\x1b[31m<x>&`"}
    files = [tmp_path / name for name in ("r.json", "r.xml", "r.md")]
    options = zip(("--json-file", "--junit", "--markdown"), map(str, files), strict=True)
    argv = [word for pair in options for word in pair]
    done = mcptest("lint", "--tools", listed(tmp_path, hostile), *argv)
    assert done.code == 1
    assert "\x1b" not in done.out
    told = json.loads(files[0].read_bytes())
    assert told["errors"] == sum(one["severity"] == "error" for one in told["findings"])
    assert "E101" in {one["code"] for one in told["findings"]}
    root = ET.fromstring(files[1].read_bytes())
    assert int(root.get("failures", "0")) > 0
    markdown = files[2].read_text()
    assert "\x1b" not in markdown
    assert "<x>" not in markdown


def test_fix_shows_where_to_set_what(tmp_path: Path) -> None:
    done = mcptest("lint", "--tools", listed(tmp_path, SILENT), "--fix")
    assert done.code == 1
    assert "Set /description to" in done.out


def test_the_codes_are_explained() -> None:
    done = mcptest("lint", "--list", "--select", "E101")
    assert done.code == 0
    assert "tool without description" in done.out


def test_a_server_that_can_not_be_started_is_exit_code_three() -> None:
    assert mcptest("lint", "--", "/no/such/server").code == 3


def test_only_tools_that_read_are_called(tmp_path: Path) -> None:
    file = tmp_path / "written"
    done = mcptest(
        "lint", "--call-tools", "--detect-nondeterminism", "--json", "--timeout", "5s",
        *("--select", "E301,W107", "--", *EXPLORED, "only=echo,clock,append", f"file={file}"),
    )  # fmt: skip
    told = json.loads(done.out)
    assert "not called" in " ".join(told["notes"]), done.said
    assert [(one["code"], one["tool"]) for one in told["findings"]] == [("W107", "clock")]
    assert not file.exists()


def test_a_secret_that_a_server_repeats_is_not_told(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(TELLTALE)
    secret = ["--env", "PASSWORD=hush-hush-77"]
    done = mcptest("lint", "--fix", "--verbose", *secret, "--", sys.executable, "-I", str(server))
    assert "W116" in done.out, done.said
    assert "hush-hush-77" not in done.said
    assert "***" in done.out


def test_a_list_that_ends_in_an_error_is_never_clean(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(TELLTALE)
    done = mcptest(
        "lint", "--env", "BREAK=1", "--env", "PASSWORD=x", "--", sys.executable, "-I", str(server)
    )
    assert done.code == 1
    assert "tools/list could not be read" in done.out


def test_a_python_server_is_linted() -> None:
    told = json.loads(mcptest("lint", "--json", "--", *PYTHON_SDK).out)
    assert told["tools"] > 0
    assert told["server"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_server_over_http_is_linted_as_over_stdio(revision: str) -> None:
    wanted = ("lint", "--json", "--spec-version", revision, "--server")
    port = str(free_port())
    serve = (sys.executable, "-m", "mcptest", "serve", "demo", "--transport", "http")
    with listening((*serve, "--port", port), "listening"):
        over_http = json.loads(mcptest(*wanted, f"http://127.0.0.1:{port}/mcp").out)
    over_stdio = json.loads(mcptest(*wanted, "demo").out)
    assert over_http["findings"] == over_stdio["findings"]
    assert over_http["findings"]


@pytest.mark.npm
def test_an_npm_server_is_linted(tmp_path: Path) -> None:
    command = ("node", str(NPM / "server-filesystem/dist/index.js"), str(tmp_path))
    told = json.loads(mcptest("lint", "--json", "--", *command).out)
    assert told["tools"] == 14
    assert told["errors"] == 0
    assert told["noted"] > 20
    told = json.loads(mcptest("lint", "--json", "--profile", "mcp-assert", "--", *command).out)
    assert told["errors"] == 16
