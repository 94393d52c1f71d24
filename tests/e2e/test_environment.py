"""Servers inherit the caller's environment unless told otherwise; no secret of it is written."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from mcptest.commands.app import COMMANDS, parser_of
from tests.e2e.driving import mcptest
from tests.e2e.suite_runs import REPLIER, Site, call, server

SECRET = "tk-5f0c9d7e1b2a"
WORD = "a word of the caller"
NAMES = {"MY_API_TOKEN": SECRET, "OF_THE_CALLER": WORD}


def suite_that_asks(site: Site, **members: object) -> str:
    tests = [
        {"name": name, "assert": call("env", {"equals": "(unset)"}, name=name)} for name in NAMES
    ]
    return site.suite(tests, server=server(**members))


def test_a_server_sees_what_the_caller_has(site: Site) -> None:
    done = site.run(suite_that_asks(site), "--json", **NAMES)
    results = site.results(done)
    assert [each["status"] for each in results.values()] == ["FAIL", "FAIL"]
    assert f"got:  {WORD}" in results["OF_THE_CALLER"]["detail"]


@pytest.mark.parametrize("way", ["option", "suite"])
def test_a_clean_environment_has_nothing_of_that(site: Site, way: str) -> None:
    suite = suite_that_asks(site, **({"clean_env": True} if way == "suite" else {}))
    options = ("--clean-env",) if way == "option" else ()
    assert site.run(suite, *options, **NAMES).code == 0


def test_a_clean_environment_still_has_what_is_named(site: Site) -> None:
    test = {"name": "t", "assert": call("env", {"equals": WORD}, name="NAMED")}
    suite = site.suite([test], server=server(env={"NAMED": "${OF_THE_CALLER}"}))
    assert site.run(suite, "--clean-env", **NAMES).code == 0
    bare = site.suite([test], "bare.yaml", server=server())
    assert site.run(bare, "--clean-env", "--env", f"NAMED={WORD}", **NAMES).code == 0


def test_a_failure_is_repeated_in_the_same_environment(site: Site) -> None:
    done = site.run(suite_that_asks(site), "--clean-env", "--env", "MY_API_TOKEN=x1y2z3w4", **NAMES)
    assert done.code == 1
    assert '--env MY_API_TOKEN="$MY_API_TOKEN" --clean-env' in done.out


# fmt: off
FILES = ("--json-file", "--junit", "--markdown", "--html", "--sarif", "--code-quality", "--tap",
         "--save-baseline")
# fmt: on


def test_an_inherited_secret_is_in_nothing_that_is_written(site: Site) -> None:
    suite = suite_that_asks(site)
    options = [word for option in FILES for word in (option, option.strip("-"))]
    done = site.run(suite, *options, "--save-capture", "captures", "--verbose", **NAMES)
    assert done.code == 1
    said = done.said.encode()
    for path in [*site.folder.rglob("*"), *(site.folder / "captures").rglob("*")]:
        said += path.read_bytes() if path.is_file() else b""
    assert WORD.encode() in said, "what has no name of a secret is shown"
    assert b"***" in said
    assert SECRET.encode() not in said


@pytest.mark.parametrize(
    "command",
    [
        ("record", "--call", 'env={"name": "MY_API_TOKEN"}', "--out", "session.jsonl"),
        ("audit", "--allow-writes", "--verbose"),
        ("lint",),
        ("compliance", "run", "--verbose"),
    ],
)
def test_other_commands_inherit_and_hide_too(
    tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", SECRET)
    done = mcptest(*command, "--", *REPLIER, cwd=tmp_path)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET not in done.said
    assert SECRET.encode() not in written
    if command[0] == "record":
        assert b"***" in written


def parsers() -> list[argparse.ArgumentParser]:
    found = [parser_of(name) for name in COMMANDS]
    for parser in found:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                found.extend(action.choices.values())
    return found


def test_whatever_takes_variables_for_a_process_can_start_it_without_ours() -> None:
    options = {parser.prog: set(parser._option_string_actions) for parser in parsers()}
    taking = {prog for prog, known in options.items() if "--env" in known}
    assert {prog for prog, known in options.items() if "--clean-env" in known} == taking | {
        "mcptest fleet"
    }
    assert len(taking) > 15
