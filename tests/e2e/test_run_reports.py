"""What a run leaves behind on purpose: reports, baselines, captures; and what it hides."""

from __future__ import annotations

import base64
import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.e2e.suite_runs import Site, call, server

REPORTS = {
    "--json-file": "run.json",
    "--junit": "junit.xml",
    "--markdown": "run.md",
    "--badge": "badge.json",
    "--save-baseline": "baseline.json",
}


def all_reports() -> list[str]:
    return [word for pair in REPORTS.items() for word in pair]


def mixed(site: Site) -> str:
    tests = [
        {"name": "good", "assert": call()},
        {"name": "bad", "assert": call("none")},
        {"name": "left out", "skip": True, "assert": call()},
    ]
    return site.suite(tests, server=server())


# -- files and streams -------------------------------------------------------------------------


def test_all_reports_come_from_one_run(site: Site) -> None:
    done = site.run(mixed(site), *all_reports())
    assert done.code == 1
    assert site.saved()["summary"] == {"total": 3, "passed": 1, "failed": 1, "skipped": 1}
    assert len(list(ET.fromstring((site.folder / "junit.xml").read_bytes()).iter("testcase"))) == 3
    assert "1 passed, 1 failed" in (site.folder / "run.md").read_text()
    assert site.saved("badge.json")["message"] == "1/3"
    assert [each["status"] for each in site.saved("baseline.json")["entries"]] == [
        "FAIL",
        "PASS",
        "SKIP",
    ]


def test_json_is_alone_on_stdout_whatever_else_is_asked_for(site: Site) -> None:
    for options in ([], ["--verbose"], ["--quiet"], ["--trials", "2"], ["--fix"], ["-x"]):
        done = site.run(mixed(site), "--json", *options, FORCE_COLOR="1")
        json.loads(done.out)
        assert done.code == 1
    done = site.run(mixed(site), "--json", "-k", "good", "--junit", "/dev/full")
    assert [each["name"] for each in json.loads(done.out)] == ["good"]


@pytest.mark.parametrize("option", REPORTS)
@pytest.mark.parametrize("place", ["/dev/full", "file/inside", "folder"])
def test_a_report_that_can_not_be_written_is_said_and_fails_only_if_strict(
    site: Site, option: str, place: str
) -> None:
    (site.folder / "file").write_text("")
    (site.folder / "folder").mkdir()
    suite = site.suite([{"name": "t", "assert": call()}], server=server())
    done = site.run(suite, option, place)
    assert done.code == 0
    assert "report not written" in done.err
    assert "report not written" in done.out
    if place != "folder":
        assert site.run(suite, option, place, "--strict-reports").code == 1


def test_one_bad_path_does_not_cost_the_other_reports(site: Site) -> None:
    done = site.run(mixed(site), "--junit", "/dev/full", "--json-file", "run.json", "--json")
    assert site.saved()["summary"]["total"] == 3
    json.loads(done.out)


def test_an_output_that_is_full_is_no_success(site: Site) -> None:
    suite = site.suite([{"name": "t", "assert": call()}], server=server())
    with Path("/dev/full").open("wb") as full:
        import subprocess
        import sys

        done = subprocess.run(
            [sys.executable, "-m", "mcptest", "run", suite],
            cwd=site.folder,
            env=site.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=240,
        )
    assert done.returncode == 1
    assert b"cannot write the output" in done.stderr


def test_keep_going_runs_the_valid_rest_and_still_fails(site: Site) -> None:
    site.suite([{"name": "good", "assert": call()}], name="a.yaml", server=server())
    (site.folder / "b.yaml").write_text("nmae: typo\n")
    assert site.run("a.yaml", "b.yaml").code == 2
    done = site.run("a.yaml", "b.yaml", "--keep-going", "--json")
    assert done.code == 1
    assert site.results(done)["good"]["status"] == "PASS"
    assert "b.yaml:1" in done.err


def test_a_run_where_no_state_can_be_kept_goes_on(site: Site) -> None:
    (site.folder / ".mcptest").write_text("a file where the folder should be")
    suite = site.suite([{"name": "t", "assert": call()}], server=server())
    assert site.run(suite).code == 0


# -- baselines ---------------------------------------------------------------------------------


def test_a_baseline_finds_what_passed_before_and_does_not_now(site: Site) -> None:
    suite = site.suite(
        [{"name": "t", "assert": call()}, {"name": "u", "assert": call()}], server=server()
    )
    assert site.run(suite, "--save-baseline", "base.json").code == 0
    assert site.run(suite, "--baseline", "base.json").code == 0
    site.suite([{"name": "t", "assert": call("none")}], server=server())
    done = site.run(suite, "--baseline", "base.json")
    assert done.code == 1
    assert "Regressions detected (1):" in done.out
    assert "no test named 'u'" in done.out


def test_a_failure_that_is_in_the_baseline_is_a_failure_but_no_regression(site: Site) -> None:
    suite = mixed(site)
    site.run(suite, "--save-baseline", "base.json")
    done = site.run(suite, "--baseline", "base.json")
    assert done.code == 1
    assert "Regressions" not in done.out


def test_saving_the_baseline_of_a_few_tests_keeps_the_others(site: Site) -> None:
    suite = mixed(site)
    site.run(suite, "--save-baseline", "base.json")
    site.run(suite, "-k", "good", "--save-baseline", "base.json")
    names = [each["name"] for each in site.saved("base.json")["entries"]]
    assert names == ["bad", "good", "left out"]


@pytest.mark.parametrize("content", ["", "[]", '{"entries": 1}', "{"])
def test_a_baseline_that_is_none_is_refused_before_anything_runs(site: Site, content: str) -> None:
    (site.folder / "base.json").write_text(content)
    done = site.run(mixed(site), "--baseline", "base.json")
    assert (done.code, done.out) == (2, "")


# -- captures ----------------------------------------------------------------------------------


def test_captures_have_a_file_for_each_test_whatever_its_name(site: Site) -> None:
    names = ["same", "same", "../../escape", "/etc/passwd", "ü" * 200, "a\nb", "."]
    tests = [{"name": name, "assert": call()} for name in names]
    suite = site.suite(tests, server=server())
    done = site.run(suite, "--save-capture", "captures", "--trials", "2")
    assert done.code == 0, done.said
    files = list((site.folder / "captures").rglob("*"))
    assert len(files) == 14
    assert all(path.parent == site.folder / "captures" for path in files)
    assert all(path.name.isascii() and path.suffix == ".jsonl" for path in files)
    assert oct(files[0].stat().st_mode & 0o777) == "0o600"


def test_a_capture_of_each_shared_server_is_kept_also_of_one_that_crashed(site: Site) -> None:
    tests = [{"name": "crash", "assert": call("exit")}, {"name": "after", "assert": call()}]
    suite = site.suite(tests, server=server(), isolation="shared")
    site.run(suite, "--save-capture", "captures", "--json-file", "run.json")
    assert len(list((site.folder / "captures").iterdir())) == 2
    proof = site.saved()["results"][0]["proof"]
    assert (site.folder / proof["capture"]).is_file()


# -- environment and secrets -------------------------------------------------------------------

SECRET = 'sk-"live"/0123456789abcdef'


def spellings() -> list[str]:
    raw = SECRET.encode()
    return [SECRET, json.dumps(SECRET)[1:-1], base64.b64encode(raw).decode(), "0123456789abc"]


def assert_hidden(text: str, where: object) -> None:
    for spelling in spellings():
        assert spelling not in text, where


def test_variables_are_filled_in_with_defaults(site: Site) -> None:
    env = {"A": "${GIVEN}", "B": "${ABSENT:-fallback}", "C": "[${ABSENT:-}]"}
    tests = [
        {"name": "a", "assert": call("env", {"equals": "value"}, name="A")},
        {"name": "b", "assert": call("env", {"equals": "fallback"}, name="B")},
        {"name": "c", "assert": call("env", {"equals": "[]"}, name="C")},
    ]
    done = site.run(site.suite(tests, server=server(env=env)), GIVEN="value")
    assert done.code == 0, done.said


@pytest.mark.parametrize("written", ["${ABSENT}", "a $ABSENT b"])
def test_a_variable_that_is_not_set_stops_the_run_before_it_begins(
    site: Site, written: str
) -> None:
    tests = [{"name": "a", "assert": call("env", {"equals": ""}, name="A")}]
    suite = site.suite(tests, server=server(env={"A": written}))
    done = site.run(suite)
    assert done.code == 2, done.said
    assert "server.env.A needs the variable ABSENT, which is not set" in done.err
    assert f"{suite}:" in done.err
    assert "${ABSENT:-}" in done.err
    assert site.run(suite, ABSENT="").code in (0, 1), "set, though to nothing"
    assert site.run(suite, "--env", "A=").code == 0, "the command line says it"


def test_a_variable_of_a_test_that_is_skipped_need_not_be_set(site: Site) -> None:
    needs = {"env": {"A": "${ABSENT}"}}
    tests = [
        {"name": "a", "assert": call("env", {"equals": "x"}, name="A")}
        | {"server": server(**needs), "skip_unless_env": "ABSENT"},
        {"name": "b", "assert": call("env", {"equals": "x"}, name="A")}
        | {"server": server(**needs), "skip": True},
        {"name": "c", "assert": call("env", {"equals": "(unset)"}, name="B"), "server": server()},
    ]
    done = site.run(site.suite(tests))
    assert done.code == 0, done.said


def test_a_secret_is_hidden_in_everything_that_is_written(site: Site) -> None:
    padding = 2000
    tests = [
        {"name": "says it", "assert": call("env", {"equals": "x"}, name="TOKEN")},
        {"name": "contains", "assert": call("env", {"contains": ["x"]}, name="TOKEN")},
        {"name": "dies of it", "assert": call("exit")},
    ]
    tests += [  # cut at any place: what is left of the secret must not be shown either
        {
            "name": f"cut {n}",
            "assert": call("argv", {"contains": ["none"]}),
            "server": server("x" * n + SECRET + "y" * padding, env={"TOKEN": "${SECRET_TOKEN}"}),
        }
        for n in range(160, 210, 7)
    ]
    suite = site.suite(tests, server=server(env={"TOKEN": "${SECRET_TOKEN}"}))
    for options in ([], ["--verbose", "--all-failures"], ["--json"]):
        done = site.run(
            suite, *all_reports(), "--save-capture", "captures", *options, SECRET_TOKEN=SECRET
        )
        assert done.code == 1
        assert "***" in done.out
        assert_hidden(done.said, options)
    for path in site.folder.rglob("*"):
        if path.is_file() and path.name != "suite.yaml":
            assert_hidden(path.read_bytes().decode(), path)


def test_a_secret_in_a_header_and_a_url_is_hidden_too(site: Site) -> None:
    spec = {
        "transport": "http",
        "url": "http://127.0.0.1:1/mcp?key=${SECRET_TOKEN}",
        "headers": {"Authorization": "Bearer ${SECRET_TOKEN}"},
    }
    suite = site.suite([{"name": "t", "assert": call()}], server=spec)
    done = site.run(
        suite,
        *all_reports(),
        "--verbose",
        "--save-capture",
        "captures",
        SECRET_TOKEN="tok-abcdef123456",
    )
    assert done.code == 1
    everything = done.said + "".join(
        path.read_text() for path in site.folder.rglob("*") if path.is_file()
    )
    assert "tok-abcdef" not in everything


def test_what_a_server_says_can_not_steer_a_terminal_or_a_ci_system(site: Site) -> None:
    evil = "\x1b[2J\r\n::error::injected\n##[error]x\n\u202etxt"
    tests = [
        {"name": "::warning::" + "\x1b[31m", "assert": call("echo", {"equals": "x"}, text=evil)}
    ]
    done = site.run(site.suite(tests, server=server()), "--markdown", "run.md", "--junit", "j.xml")
    for text in (
        done.out,
        (site.folder / "run.md").read_text(),
        (site.folder / "j.xml").read_text(),
    ):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert not any(line.lstrip().startswith(("::", "##[")) for line in text.splitlines())
    ET.fromstring((site.folder / "j.xml").read_bytes())
    assert os.listdir(site.temporary) == []  # noqa: PTH208 - names
