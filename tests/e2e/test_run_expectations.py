"""Every expectation in every block can hold and can fail, or the suite that has it is refused.

One that always passes in some block is the worst that a test can have, and one that always fails
is of no use: the file expectations once did not see the disk outside of `assert`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcptest.suite.fields import DECLARED
from mcptest.suite.model import BLOCKS, EXPECT, LoggingExpect, NotificationExpect
from mcptest.suite.observed import TARGETS
from tests.e2e.suite_runs import Site

PEER = Path(__file__).with_name("every_block.py")


def _reference(manner: str) -> dict[str, Any]:
    return {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": f"a/{manner}", "value": ""},
    }


REQUESTS: Mapping[str, Any] = {
    "assert": lambda manner: ("assert", {"tool": f"t/{manner}"}),
    "assert_sampling": lambda manner: ("assert_sampling", {"tool": f"t/{manner}"}),
    "prompts get": lambda manner: ("assert_prompts", {"get": {"name": f"p/{manner}"}}),
    "prompts list": lambda manner: ("assert_prompts", {"list": {"cursor": manner}}),
    "resources read": lambda manner: ("assert_resources", {"read": f"x://y/{manner}"}),
    "resources list": lambda manner: ("assert_resources", {"list": {"cursor": manner}}),
    "resources templates": lambda manner: ("assert_resources", {"templates": {"cursor": manner}}),
    "assert_completion": lambda manner: ("assert_completion", _reference(manner)),
}
"""Every block that has `expect` in its full form, with every request that it can make."""
FULL = '{"net_delta": 1, "items": ["x", "y"], "word": "hello"}'
_ITEMS = '[{"name":"x","uri":"x://x"},{"name":"y","uri":"x://y"}],"net_delta":1,"word":"hello"}'
WHOLE_TEXTS: Mapping[str, str] = {
    **dict.fromkeys(("assert", "assert_sampling", "prompts get", "resources read"), FULL),
    "prompts list": '{"prompts":' + _ITEMS,
    "resources list": '{"resources":' + _ITEMS,
    "resources templates": '{"resourceTemplates":' + _ITEMS,
    "assert_completion": '{"completion":{"values":["x","y"]},"net_delta":1,"word":"hello"}',
}
OTHER_BLOCKS = {"trajectory", "assert_logging", "assert_notifications"}
"""Those have expectations of their own."""

KEPT, WRITTEN, ABSENT = (f"{{{{fixture}}}}/{name}.txt" for name in ("kept", "written", "absent"))
ASKED: Mapping[str, tuple[tuple[str, Any], tuple[str, Any]]] = {
    "contains": (("full", ["hello"]), ("full", ["absent"])),
    "contains_any": (("full", ["absent", "hello"]), ("full", ["absent"])),
    "not_contains": (("full", ["absent"]), ("full", ["hello"])),
    "json_path": (("full", {"$.word": "hello"}), ("full", {"$.word": "other"})),
    "min_results": (("full", 2), ("full", 3)),
    "max_results": (("full", 2), ("full", 1)),
    "not_empty": (("full", True), ("empty", True)),
    "not_error": (("full", True), ("failed", True)),
    "is_error": (("failed", True), ("full", True)),
    "matches_regex": (("full", ["hel+o"]), ("full", ["^hel+o$"])),
    "file_contains": (("full", {KEPT: "as it was"}), ("full", {KEPT: "other"})),
    "file_not_contains": (("full", {KEPT: "other"}), ("full", {KEPT: "as it was"})),
    "file_not_exists": (("full", [ABSENT]), ("full", [KEPT])),
    "file_unchanged": (("full", [WRITTEN]), ("writes", [WRITTEN])),
    "net_delta": (("full", 1), ("full", 2)),
    "in_order": (("full", ["h", "o"]), ("full", ["hello", "net_delta", "items", "hello"])),
    "min_progress": (("tells", 1), ("tells", 2)),
    "schema": (("full", {"required": ["word"]}), ("full", {"required": ["absent"]})),
    "max_duration": (("full", "30s"), ("full", "1ns")),
    "error_code": (("refused", -32601), ("refused", -32602)),
    "checks": (
        ("full", [{"target": "$.word", "matcher": {"exact": "hello"}}]),
        ("full", [{"target": "$.word", "matcher": {"exact": "other"}}]),
    ),
}
"""Every field of `expect` but `equals`: where it holds, and where it does not."""
LOOKED_AT: Mapping[str, tuple[tuple[str, Any], tuple[str, Any]]] = {
    "text": (("full", {"contains": "hello"}), ("full", {"contains": "absent"})),
    "$.word": (("full", {"exact": "hello"}), ("full", {"exact": "other"})),
    "result": (("full", {"type": "object"}), ("full", {"type": "array"})),
    "structured": (("full", {"exists": True}), ("empty", {"exists": True})),
    "is_error": (("failed", {"exact": True}), ("full", {"exact": True})),
    "error.code": (("refused", {"exact": -32601}), ("refused", {"exact": 1})),
    "duration": (("full", {"maximum": 30}), ("full", {"maximum": 0})),
    "progress": (("tells", {"exact": 1}), ("tells", {"exact": 2})),
    "notifications": (("full", {"max_length": 0}), ("tells", {"max_length": 0})),
}
ONLY_OF_TOOLS = {"structured"}
COUNTED_ONLY_IN_ASSERT = {"min_progress", "progress"}


def expectations() -> Iterator[tuple[str, str, bool, dict[str, Any], Any]]:
    """Block, what is asked for, whether it holds, the block's request, and the `expect`."""
    for where, request in REQUESTS.items():
        for name, cases in ASKED.items():
            for holds, (manner, value) in zip((True, False), cases, strict=True):
                yield where, name, holds, request(manner), {name: value}
        for target, cases in LOOKED_AT.items():
            if target in ONLY_OF_TOOLS and where not in {"assert", "assert_sampling"}:
                continue
            for holds, (manner, matcher) in zip((True, False), cases, strict=True):
                row = {"target": target, "matcher": matcher}
                yield where, f"target {target}", holds, request(manner), [row]
        yield where, "equals", True, request("full"), {"equals": WHOLE_TEXTS[where]}
        yield where, "equals", False, request("full"), {"equals": "other"}


def test_the_tables_have_every_expectation_target_and_block() -> None:
    assert {*ASKED, "equals"} == set(EXPECT.by_name)
    assert {target.partition(".")[0] for target in LOOKED_AT} == set(TARGETS)
    asked = {request("full")[0] for request in REQUESTS.values()}
    assert asked | OTHER_BLOCKS == set(BLOCKS)


@pytest.fixture
def peer(site: Site) -> dict[str, Any]:
    fixture = site.folder / "fixture"
    fixture.mkdir()
    for name in ("kept", "written"):
        (fixture / f"{name}.txt").write_text("as it was\n")
    return {"command": sys.executable, "args": ["-I", "-S", str(PEER), "{{fixture}}"]}


def test_every_expectation_holds_and_fails_in_every_block_or_is_refused(
    site: Site, peer: dict[str, Any]
) -> None:
    wanted: dict[str, str] = {}
    tests = []
    for where, asked, holds, (block, request), expect in expectations():
        if asked.removeprefix("target ") in COUNTED_ONLY_IN_ASSERT and where != "assert":
            continue  # the test below
        name = f"{where}: {asked} {'holds' if holds else 'fails'}"
        wanted[name] = "PASS" if holds else "FAIL"
        tests.append({"name": name, block: {**request, "expect": expect}})
    suite = site.suite(tests, server=peer, isolation="shared")
    done = site.run(suite, "--fixture", "fixture", "--json")
    results = site.results(done)
    assert {name: each["status"] for name, each in results.items()} == wanted, done.err
    assert not [name for name, each in results.items() if "nothing was checked" in str(each)]


@pytest.mark.parametrize("where", [name for name in REQUESTS if name != "assert"])
@pytest.mark.parametrize("expect", [{"min_progress": 1}, "progress"])
def test_what_is_counted_only_in_assert_is_refused_elsewhere(
    site: Site, peer: dict[str, Any], where: str, expect: Any
) -> None:
    row = [{"target": "progress", "matcher": {"exists": False}}]
    block, request = REQUESTS[where]("tells")
    test = {"name": "t", block: {**request, "expect": row if expect == "progress" else expect}}
    done = site.run(site.suite([test], server=peer), "--fixture", "fixture")
    assert done.code == 2
    assert "works only in assert" in done.err


def test_expectations_on_log_messages_and_notifications_hold_and_fail(
    site: Site, peer: dict[str, Any]
) -> None:
    asked: dict[str, dict[str, tuple[Any, Any]]] = {
        "assert_logging": {
            "min_messages": (1, 2),
            "contains_level": (["error"], ["debug"]),
            "contains_data": (["told"], ["absent"]),
        },
        "assert_notifications": {
            "min_count": (2, 3),
            "max_count": (2, 1),
            "methods": (["notifications/message"], ["notifications/absent"]),
            "not_methods": (["notifications/absent"], ["notifications/message"]),
            "contains_data": (["told"], ["absent"]),
            "not_contains_data": (["absent"], ["told"]),
        },
    }
    assert tuple(asked["assert_logging"]) == tuple(DECLARED[LoggingExpect].by_name)
    assert tuple(asked["assert_notifications"]) == tuple(DECLARED[NotificationExpect].by_name)
    tests, wanted = [], {}
    for block, fields in asked.items():
        level = {"set_level": "debug"} if block == "assert_logging" else {}
        for name, values in fields.items():
            for verdict, value in zip(("PASS", "FAIL"), values, strict=True):
                label = f"{block} {name} {verdict}"
                wanted[label] = verdict
                request = {**level, "tool": "t/tells", "expect": {name: value}}
                tests.append({"name": label, block: request})
    done = site.run(
        site.suite(tests, server=peer, isolation="shared"), "--fixture", "fixture", "--json"
    )
    assert {name: each["status"] for name, each in site.results(done).items()} == wanted, done.err


def test_a_log_level_that_is_set_without_a_tool_calls_none(site: Site) -> None:
    test = {
        "name": "level",
        "assert_logging": {"set_level": "debug", "expect": {"min_messages": 0}},
    }
    done = site.run(site.suite([test]), "--server", "demo", "--save-capture", "wire")
    assert done.code == 0, done.said
    (capture,) = (site.folder / "wire").glob("*.jsonl")
    assert "tools/call" not in capture.read_text()


@pytest.mark.parametrize("log", ["", "\n", '{"event": "start"}\n'])
@pytest.mark.parametrize("command", ["run", "ci"])
def test_no_audit_log_without_a_call_proves_an_absence(command: str, log: str, site: Site) -> None:
    (site.folder / "log.jsonl").write_text(log)
    checks = [{"type": "absence", "tools": ["reset"]}]
    test = {"name": "t", "audit_log": str(site.folder / "log.jsonl"), "trajectory": checks}
    done = site.run(site.suite([test]), command=command)
    assert done.code == 1, done.said
    assert "so nothing was observed" in done.said
