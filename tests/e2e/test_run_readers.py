"""Calls of tools that only read may be under way together on a shared server, unasked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.suite_runs import Site, call

READERS = [sys.executable, "-I", "-S", str(Path(__file__).with_name("readers_server.py"))]
TEACH = {"name": "teach", "assert": call("teach")}


def suite_of(site: Site, *tests: dict[str, Any]) -> str:
    server = {"command": READERS[0], "args": READERS[1:]}
    return site.suite(list(tests), server=server, isolation="shared")


def calling(tool: str, answer: str, count: int) -> list[dict[str, Any]]:
    return [{"name": f"{tool} {n}", "assert": call(tool, {"equals": answer})} for n in range(count)]


def notes(site: Site) -> list[str]:
    return [each.get("note", "") for each in site.saved()["results"]]


def test_calls_of_tools_that_only_read_are_under_way_together(site: Site) -> None:
    suite = suite_of(site, TEACH, *calling("pair", "paired", 4))
    done = site.run(suite, "--json-file", "run.json")
    assert done.code == 0, done.out
    assert notes(site) == [""] * 5


def test_as_long_as_nothing_is_known_of_a_tool_its_calls_are_made_one_by_one(site: Site) -> None:
    suite = suite_of(site, *calling("shy", "alone", 2))
    assert site.run(suite).code == 0


def test_other_calls_are_made_one_by_one(site: Site) -> None:
    suite = suite_of(site, TEACH, *calling("plain", "alone", 3))
    assert site.run(suite).code == 0


def moody(count: int, answer: str = "good") -> list[dict[str, Any]]:
    return [
        {"name": f"moody {n}", "assert": call("moody", {"equals": answer}, key=f"k{n}")}
        for n in range(count)
    ]


def test_one_that_fails_beside_others_is_judged_by_what_it_does_alone(site: Site) -> None:
    done = site.run(suite_of(site, TEACH, *moody(3)), "--json-file", "run.json")
    assert done.code == 0, done.out
    passed = "failed beside other calls of tools that only read, and passed alone"
    assert notes(site) == ["", passed, passed, passed]


def test_one_that_fails_alone_as_well_has_failed(site: Site) -> None:
    done = site.run(suite_of(site, TEACH, *moody(3, "fine")), "--json", "--json-file", "run.json")
    results = list(site.results(done).values())
    assert [each["status"] for each in results] == ["PASS", "FAIL", "FAIL", "FAIL"]
    assert all("good" in each["detail"] for each in results[1:]), "the second answer is told"
    assert notes(site) == [""] * 4


def test_one_that_was_never_beside_others_has_one_chance(site: Site) -> None:
    done = site.run(suite_of(site, TEACH, *moody(1)))
    assert done.code == 1


@pytest.mark.parametrize("options", [("-x",), ("--in-flight", "1"), ("--in-flight", "3")])
def test_whoever_says_how_it_is_to_be_done_is_taken_at_his_word(
    site: Site, options: tuple[str, ...]
) -> None:
    done = site.run(suite_of(site, TEACH, *moody(3)), *options)
    assert done.code == 1
    assert "passed alone" not in done.out
