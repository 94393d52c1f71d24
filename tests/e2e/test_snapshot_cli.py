"""`mcptest snapshot`: each outcome has its word and its exit code, and nothing good is lost."""

from __future__ import annotations

import json
import os
import shlex
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import listening, mcptest
from tests.e2e.snapshots_here import Desk, desk_in
from tests.e2e.suite_runs import call, server

DEMO = (sys.executable, "-m", "mcptest.servers.demo")


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Desk]:
    yield from desk_in(tmp_path, capsys, monkeypatch)


# -- the life of a golden file -------------------------------------------------------------------


def test_an_answer_is_new_then_kept_then_changed_then_accepted(desk: Desk) -> None:
    desk.suite("echo", "one\ntwo")
    new = desk.snapshot()
    assert new.code == 1
    assert "NEW        echo is read" in new.out
    assert "           +one\n           +two" in new.out
    assert desk.files() == {}

    created = desk.snapshot("--update")
    assert created.code == 0
    assert "1 snapshot: 1 created in" in created.out
    assert desk.files() == {"echo.snap": "one\ntwo\n"}
    assert desk.snapshot().code == 0

    desk.answer("echo", "one\n2")
    changed = desk.snapshot()
    assert changed.code == 1
    assert (
        "           @@ -1,2 +1,2 @@\n            one\n           -two\n           +2\n"
        in changed.out
    )
    assert "to accept changed snapshots, run this again with --update" in changed.out
    assert desk.files() == {"echo.snap": "one\ntwo\n"}

    assert desk.outcomes("--update") == {"echo is read": "updated"}
    assert desk.outcomes("--update") == {"echo is read": "unchanged"}
    assert desk.files() == {"echo.snap": "one\n2\n"}


def test_a_flag_that_changed_is_a_change(desk: Desk) -> None:
    desk.suite("echo", "one")
    desk.snapshot("--update")
    (desk.folder / "echo.txt").unlink()
    done = desk.snapshot()
    assert done.code == 1
    assert "+=== isError" in done.out


def test_a_file_that_no_test_is_left_for_is_missing_one(desk: Desk) -> None:
    gone = desk.suite("gone", "x")
    desk.suite("here", "y")
    desk.snapshot("--update")
    gone.unlink()
    done = desk.snapshot()
    assert done.code == 1
    assert f"MISSING    {desk.golden}/gone.snap" in done.out
    assert desk.snapshot("-k", "here").code == 0, "a part of the suite says nothing about the rest"
    updated = desk.snapshot("--update")
    assert updated.code == 0
    assert "1 missing" in updated.out
    assert "gone.snap" in desk.files(), "an update never deletes what did not run"


def test_what_did_not_run_is_not_touched(desk: Desk) -> None:
    desk.suite("one", "1")
    desk.suite("two", "2")
    desk.snapshot("--update")
    desk.answer("one", "changed")
    desk.answer("two", "changed")
    assert desk.outcomes("--update", "-k", "two") == {"two is read": "updated"}
    assert desk.files() == {"one.snap": "1\n", "two.snap": "changed\n"}


def test_tests_of_one_file_have_files_of_their_own_whatever_they_are_called(desk: Desk) -> None:
    names = ["../../escaped", "a/b", "a_b", "A_B", "..", "x" * 3000, "same", "same"]
    tests = [{"name": name, "assert": call(text=f"{n}")} for n, name in enumerate(names)]
    desk.evals.mkdir()
    (desk.evals / "many.yaml").write_text(json.dumps({"server": server(), "tests": tests}))
    before = {path for path in desk.folder.rglob("*") if path.is_file()}
    done = desk.snapshot("--update", "--isolation", "shared", "--in-flight", "4")
    assert done.code == 0, done.said
    new = {path for path in desk.folder.rglob("*") if path.is_file()} - before
    inside = {path for path in new if path.parent == desk.golden / "many.snaps"}
    assert len(inside) == len(names)
    assert all(".mcptest" in path.parts for path in new - inside)
    assert desk.snapshot("--isolation", "shared").code == 0


# -- servers that give no answer -----------------------------------------------------------------

DEAD: dict[str, dict[str, Any]] = {
    "it dies when it is called": {"assert": call("exit")},
    "it can not be started": {"server": {"command": "/nowhere/at/all"}},
    "it ends at once": {"server": {"command": "false"}},
    "it says nothing": {"assert": call("hang"), "timeout": "300ms"},
    "it answers with an error": {
        "assert_prompts": {"get": {"name": "x"}, "expect": {"not_error": True}}
    },
}


@pytest.mark.parametrize("how", DEAD)
def test_a_dead_server_is_red_and_changes_nothing(how: str, desk: Desk) -> None:
    desk.golden.mkdir(parents=True)
    (desk.golden / "echo.snap").write_text("good\n")
    suite = desk.suite("echo", **DEAD[how])
    if "assert_prompts" in DEAD[how]:
        document = json.loads(suite.read_text())
        del document["assert"]
        suite.write_text(json.dumps(document))
    done = desk.snapshot("--update")
    assert done.code == 1
    assert "FAILED     echo is read" in done.out
    assert "1 failed" in done.out
    assert desk.files() == {"echo.snap": "good\n"}


def test_an_error_that_the_test_asks_for_is_an_answer(desk: Desk) -> None:
    asked = {"get": {"name": "x"}, "expect": {"error_code": -32601}}
    document = {"name": "error", "server": server(), "assert_prompts": asked}
    desk.evals.mkdir()
    (desk.evals / "error.yaml").write_text(json.dumps(document))
    assert desk.snapshot("--update").code == 0
    kept = "=== mcptest snapshot 1\n=== error -32601\nMethod not found\n"
    assert desk.files() == {"error.snap": kept}
    assert desk.snapshot().code == 0


def test_an_update_of_nothing_but_dead_servers_leaves_no_folder(desk: Desk) -> None:
    desk.suite("echo", **DEAD["it dies when it is called"])
    assert desk.snapshot("--update").code == 1
    assert not desk.golden.exists()


# -- masks ---------------------------------------------------------------------------------------


def test_what_differs_in_every_run_is_visible_as_a_placeholder(desk: Desk) -> None:
    desk.suite("clock", "now 2026-11-16T04:05:14Z, id 3f2b8c1e-0d4a-4b6c-9e8f-001122334455")
    desk.snapshot("--update")
    assert desk.files() == {"clock.snap": "now <timestamp>, id <uuid>\n"}
    desk.answer("clock", "now 2027-01-01T00:00:00Z, id 00000000-0d4a-4b6c-9e8f-001122334455")
    assert desk.snapshot().code == 0
    desk.answer("clock", "now whenever, id 00000000-0d4a-4b6c-9e8f-001122334455")
    done = desk.snapshot()
    assert done.code == 1
    assert "-now <timestamp>, id <uuid>" in done.out
    assert "+now whenever, id <uuid>" in done.out


def test_a_golden_file_alone_says_what_is_hidden(desk: Desk) -> None:
    desk.suite("clock", "now 2026-11-16T04:05:14Z")
    desk.snapshot("--update", "--no-mask", "timestamp")
    assert desk.files() == {"clock.snap": "now 2026-11-16T04:05:14Z\n"}
    desk.answer("clock", "now 2027-01-01T00:00:00Z")
    assert desk.snapshot().code == 1
    (desk.golden / "clock.snap").write_text("now <timestamp>")
    assert desk.snapshot().code == 0, "written by hand, without a line end"


def test_an_update_hides_no_more_than_the_file_did(desk: Desk) -> None:
    desk.suite("clock", "a\nnow 2026-11-16T04:05:14Z")
    desk.snapshot("--update", "--no-mask", "all")
    desk.answer("clock", "b\nnow 2027-01-01T00:00:00Z")
    desk.snapshot("--update")
    assert desk.files() == {"clock.snap": "b\nnow 2027-01-01T00:00:00Z\n"}
    (desk.golden / "clock.snap").write_text("b\n<volatile>\n")
    desk.answer("clock", "c\nnow or never")
    desk.snapshot("--update")
    assert desk.files() == {"clock.snap": "c\n<volatile>\n"}


def test_a_folder_that_is_named_in_two_ways_is_one_folder(desk: Desk) -> None:
    one, two = desk.suite("one", "1"), desk.suite("two", "2")
    done = desk.snapshot("--update", str(one), f"{desk.evals}/./{two.name}")
    assert done.code == 0
    assert desk.files() == {"one.snap": "1\n", "two.snap": "2\n"}
    one.unlink()
    assert desk.outcomes() == {"two is read": "matched", "one.snap": "missing"}


def test_a_mask_of_the_user_is_remembered(desk: Desk) -> None:
    desk.suite("build", "build 7ab of today")
    desk.snapshot("--update")
    desk.answer("build", "build 12f of today")
    assert desk.snapshot().code == 1
    mask = ("--mask", "build (?P<build>[0-9a-f]+)")
    assert desk.snapshot(*mask).code == 0
    assert desk.outcomes("--update", *mask) == {"build is read": "updated"}
    assert desk.files()["build.snap"] == "build <build> of today\n"
    desk.answer("build", "build 999 of today")
    assert desk.snapshot().code == 0
    assert desk.outcomes("--update") == {"build is read": "unchanged"}


@pytest.mark.parametrize("pattern", ["(", "(?=x)", ""])
def test_a_mask_that_is_no_pattern_is_refused(pattern: str, desk: Desk) -> None:
    desk.suite("echo", "x")
    assert desk.snapshot(f"--mask={pattern}").code == 2


def test_the_place_of_the_fixture_is_hidden(desk: Desk) -> None:
    (desk.folder / "data").mkdir()
    desk.suite("where", server=server("{{fixture}}/x"), **{"assert": call("argv")})
    assert desk.snapshot("--update", "--fixture", "data").code == 0
    assert desk.files() == {"where.snap": "<fixture>/x\n"}
    assert desk.snapshot("--fixture", "data").code == 0


def test_a_secret_is_not_written_down(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cr3t-value-of-mine")
    env = {"TOKEN": "${THE_TOKEN}"}
    desk.suite("env", server=server(env=env), **{"assert": call("env", name="TOKEN")})
    assert desk.snapshot("--update").code == 0
    assert desk.files() == {"env.snap": "***\n"}
    assert desk.snapshot().code == 0


def test_volatile_lines_are_not_compared(desk: Desk) -> None:
    desk.suite("echo", "a\nb\nc")
    desk.golden.mkdir()
    (desk.golden / "echo.snap").write_text("a\n<volatile>\nc\n")
    assert desk.snapshot().code == 0
    (desk.golden / "echo.snap").write_text("<volatile>\n")
    done = desk.snapshot()
    assert done.code == 4, "nothing was compared, so nothing passed"
    assert "marks the whole response volatile" in done.out


# -- what is said --------------------------------------------------------------------------------


def test_what_has_no_answer_is_skipped_and_says_so(desk: Desk) -> None:
    desk.suite("echo", "x", skip=True)
    trace = {"trajectory": [{"type": "presence", "tools": ["a"]}], "trace": [{"tool": "a"}]}
    (desk.evals / "trace.yaml").write_text(json.dumps({"name": "trace", **trace}))
    done = desk.snapshot()
    assert done.code == 4
    assert "a test of trajectory has no response to keep" in done.out
    assert "no response was compared" in done.err


def test_an_expectation_that_fails_is_only_noted(desk: Desk) -> None:
    block = {**call("echo", {"contains": ["never"]}, text="x")}
    desk.suite("echo", **{"assert": block})
    done = desk.snapshot("--update")
    assert done.code == 0
    assert "note: its own expectation fails: expected result to contain" in done.out


def test_every_report_has_the_outcomes(desk: Desk) -> None:
    desk.suite("a", "1")
    desk.suite("b", "1")
    desk.snapshot("--update", "-k", "b")
    desk.answer("b", "2")
    reports = (
        "--junit",
        "j.xml",
        "--markdown",
        "m.md",
        "--json-file",
        "r.json",
        "--save-capture",
        "w",
    )
    done = desk.snapshot("--json", *reports)
    assert done.code == 1
    first, second = json.loads(done.out)
    assert (first["outcome"], second["outcome"]) == ("new", "changed")
    assert second["golden"].endswith("evals/.snapshots/b.snap")
    failures = [one.attrib["type"] for one in ET.parse("j.xml").iter("failure")]
    assert failures == ["new", "changed"]
    assert "-1" in Path("m.md").read_text()
    assert [one["kind"] for one in json.loads(Path("r.json").read_text())["results"]] == [
        "new",
        "changed",
    ]
    assert len(list(Path("w").iterdir())) == 2


def test_a_hostile_answer_can_not_steer_the_terminal_or_ci(desk: Desk) -> None:
    evil = "::error::x\n\x1b[31mred\x1b]0;title\x07\n\u202e##[group]\n##vso[task]"
    desk.suite("evil", "good")
    desk.snapshot("--update")
    desk.answer("evil", evil)
    for done in (desk.snapshot(), desk.snapshot("--verbose"), desk.snapshot("--json")):
        assert done.code == 1
        assert not any(bad in done.out for bad in ("\x1b", "\x07", "\u202e"))
        assert not any(line.lstrip().startswith(("::", "##")) for line in done.out.splitlines())
    desk.snapshot("--update")
    assert "\x1b" not in desk.files()["evil.snap"]
    assert desk.snapshot().code == 0


def test_a_golden_file_that_is_no_file_is_said_and_left_alone(desk: Desk) -> None:
    desk.suite("echo", "x")
    desk.golden.mkdir()
    (desk.folder / "mine.txt").write_text("mine")
    (desk.golden / "echo.snap").symlink_to("../../mine.txt")
    for option in ("--update", "--quiet"):
        done = desk.snapshot(option)
        assert done.code == 1
        assert "a link is not followed" in done.out
    assert (desk.folder / "mine.txt").read_text() == "mine"


def test_a_disk_that_is_full_is_red_and_loses_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.suite("echo", "good")
    desk.snapshot("--update")
    desk.answer("echo", "other")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("mcptest.probe.snapshots.put_file", full)
        done = desk.snapshot("--update")
    assert done.code == 1
    assert "echo.snap: No space left on device" in done.out
    assert desk.files() == {"echo.snap": "good\n"}


def test_an_update_of_several_trials_is_refused(desk: Desk) -> None:
    desk.suite("echo", "x")
    assert desk.snapshot("--update", "--trials", "2").code == 2


def test_the_files_are_the_same_over_every_transport_and_in_every_era(
    desk: Desk, tmp_path: Path
) -> None:
    desk.evals.mkdir()
    fine = {"not_error": True}
    asked: dict[str, dict[str, Any]] = {
        "add": {"assert": {"tool": "add", "args": {"a": 1, "b": 2}, "expect": fine}},
        "image": {"assert": {"tool": "image", "args": {}, "expect": fine}},
        "fails": {"assert": {"tool": "fail", "args": {}, "expect": {"is_error": True}}},
        "prompt": {"assert_prompts": {"get": {"name": "with_image"}, "expect": fine}},
        "read": {"assert_resources": {"read": "demo://greeting", "expect": fine}},
    }
    for name, block in asked.items():
        (desk.evals / f"{name}.yaml").write_text(json.dumps({"name": name, **block}))
    stdio = ("--server", shlex.join(DEMO), "--isolation", "shared")
    assert desk.snapshot("--update", *stdio, "--spec-version", "2025-06-18").code == 0
    assert desk.files().keys() == {f"{name}.snap" for name in asked}
    assert desk.snapshot(*stdio, "--spec-version", "2026-07-28").code == 0
    port = tmp_path / "port"
    with listening((*DEMO, "--transport", "http", "--port-file", str(port)), "http"):
        url = f"http://127.0.0.1:{int(port.read_text())}/mcp"
        for revision in ("2025-11-25", "2026-07-28"):
            done = desk.snapshot("--server", url, "--spec-version", revision)
            assert done.code == 0, done.said


def test_the_command_takes_a_server_and_colours_its_diff(tmp_path: Path) -> None:
    block = {"tool": "echo", "args": {"text": "hi"}, "expect": {"not_error": True}}
    (tmp_path / "echo.yaml").write_text(json.dumps({"name": "echo", "assert": block}))
    options = ("snapshot", "--suite", "echo.yaml", "--server", "demo")
    assert mcptest(*options, "--update", cwd=tmp_path).code == 0
    golden = tmp_path / ".snapshots/echo.snap"
    assert golden.read_text() == "hi\n"
    golden.write_text("ho\n")
    env = {**os.environ, "FORCE_COLOR": "1"}
    env.pop("NO_COLOR", None)
    done = mcptest(*options, cwd=tmp_path, env=env)
    assert done.code == 1
    assert "\x1b[31m-ho\x1b[0m" in done.out
    assert "\x1b[32m+hi\x1b[0m" in done.out
