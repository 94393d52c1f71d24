"""`mcptest conformance` as a person calls it."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.docs.scenario_docs import stale_pages
from tests.e2e.driving import BOUND, Done, free_port, is_alive, mcptest

ROOT = Path(__file__).parent.parent
RAW = shlex.join([sys.executable, "-S", str(ROOT / "conformance" / "raw_client.py")])
DEMO = shlex.join([sys.executable, "-m", "mcptest", "serve", "demo", "--offer", "fixtures,tasks"])

OLDEST = "2024-11-05"


def client(*options: str, breaks: str = "") -> Done:
    command = f"{RAW} --break {breaks}" if breaks else RAW
    return mcptest("conformance", "client", "--command", command, *options)


def test_a_sound_client_passes_and_one_line_says_so() -> None:
    done = client("--scenario", "tools_call", "--scenario", "initialize")
    assert done.code == 0, done.said
    assert "2 passed of 2 scenarios" in done.out.splitlines()[-1]


def test_a_failure_shows_what_was_seen_where_it_is_written_and_how_to_repeat_it(
    tmp_path: Path,
) -> None:
    done = client("--scenario", "tools_call", "--cwd", str(tmp_path), breaks="sends-text")
    assert done.code == 1
    assert "argument a is" in done.out
    assert "record" in done.out
    assert "https://modelcontextprotocol.io/specification/" in done.out
    (repeat,) = (line.split(None, 1)[1] for line in done.out.splitlines() if "repeat" in line)
    assert f"--cwd {tmp_path}" in repeat
    again = mcptest(*shlex.split(repeat)[1:])
    assert again.code == 1
    assert "argument a is" in again.out


def test_reports_are_written_in_every_form(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("r.json", "r.xml", "r.md")]
    done = client(
        *("--scenario", "tools_call", "--json-file", str(files[0]), "--junit", str(files[1])),
        *("--markdown", str(files[2]), "-o", str(tmp_path / "results")),
        breaks="sends-text",
    )
    assert done.code == 1
    report = json.loads(files[0].read_text())
    assert (report["format"], report["verdict"]) == ("mcptest.conformance/1", "fail")
    (case,) = ET.parse(files[1]).getroot().iter("testcase")
    assert "tool-add-numbers" in ET.tostring(case, encoding="unicode")
    assert "tool-add-numbers" in files[2].read_text()
    (folder,) = (tmp_path / "results").iterdir()
    assert folder.name.startswith("tools_call-")
    rows = json.loads((folder / "checks.json").read_text())
    assert {row["status"] for row in rows if row["id"] == "tool-add-numbers"} == {"FAILURE"}
    again = mcptest(
        *("conformance", "judge", "--scenario", "tools_call"),
        *("--capture", str(folder / "capture.jsonl")),
    )
    assert again.code == 1
    assert "argument a is" in again.out


def test_json_goes_to_stdout_alone() -> None:
    done = client("--scenario", "tools_call", "--json")
    assert json.loads(done.out)["verdict"] == "pass"
    assert done.err == ""


def test_expected_failures_make_it_green_and_their_end_makes_it_red(tmp_path: Path) -> None:
    known = tmp_path / "known.yml"
    known.write_text("client:\n  - tools_call:tool-add-numbers\n")
    options = ("--scenario", "tools_call", "--expected-failures", str(known))
    assert client(*options, breaks="sends-text").code == 0
    stale = client(*options)
    assert stale.code == 1
    assert "known.yml:2" in stale.out
    known.write_text("client:\n  - tools_call:tool-ad-numbers\n")
    wrong = client(*options)
    assert wrong.code == 2
    assert "did you mean tool-add-numbers?" in wrong.err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--scenario", "tool_call"), 2, "did you mean tools_call?"),
        (("--scenario", "auth/dpop"), 2, "not supported yet"),
        (("--suite", "cor"), 2, "did you mean core?"),
        (
            ("--scenario", "sse-retry", "--spec-version", "2026-07-28"),
            2,
            "does not support 2026-07-28",
        ),
        (("--scenario", "sse-retry", "--transport", "stdio"), 2, "does not run over stdio"),
        (("--claims", "root"), 2, "not one of roots"),
        (("--jobs", "0"), 2, "--jobs"),
        (("--requirements", "2025-06-18"), 2, "choose one of"),
        (("--requirements", "2025-11-25", "--suite", "core"), 2, "give one"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(
    options: tuple[str, ...], code: int, said: str
) -> None:
    done = client(*options)
    assert done.code == code
    assert said in done.err


def test_a_client_that_can_not_be_started_is_said_once() -> None:
    done = mcptest("conformance", "client", "--command", "no-such-client-here")
    assert done.code == 3
    assert done.err.count("no-such-client-here") == 1


def test_what_is_claimed_and_not_declared_fails() -> None:
    options = ("--scenario", "client-capabilities", "--claims", "sampling")
    assert client(*options, breaks="hides-sampling").code == 1
    assert client(*options[:2], breaks="hides-sampling").code == 0


@pytest.mark.parametrize(("mode", "code"), [("permissive", 0), ("strict", 1), ("probe", 0)])
def test_the_three_ways_to_see_an_undeclared_capability(mode: str, code: int) -> None:
    done = client(
        *("--scenario", "client-capabilities", "--capabilities", mode), breaks="hides-roots"
    )
    assert done.code == code, done.said


def test_the_liar_is_caught_by_probing_alone() -> None:
    options = ("--scenario", "client-capabilities", "--capabilities")
    assert client(*options, "permissive", breaks="lies-about-roots").code == 0
    assert client(*options, "probe", breaks="lies-about-roots").code == 1


def test_interrupting_keeps_what_was_done_and_leaves_no_client(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = tmp_path / "client.py"
    script.write_text(
        f"import os, threading, pathlib\n"
        f"pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))\n"
        f"print('up', flush=True)\nthreading.Event().wait()\n"
    )
    command = shlex.join([sys.executable, "-S", str(script)])
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "mcptest", "conformance", "client", "--command", command),
            *("--scenario", "tools_call"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not pid_file.exists() or not pid_file.read_text():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=BOUND)
    assert process.returncode == 130
    assert not is_alive(int(pid_file.read_text()))


# -- servers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_the_demo_passes_every_scenario_over_stdio(revision: str) -> None:
    done = mcptest(
        *("conformance", "server", "--server", DEMO, "--suite", "all", "--json"),
        *("--spec-version", revision, "--strict-fixtures"),
    )
    assert done.code == 0, done.said
    rows = [check for one in json.loads(done.out)["results"] for check in one["checks"]]
    assert {row["status"] for row in rows} == {"SUCCESS"}


@pytest.mark.parametrize(
    ("wish", "why"),
    [((), "the server rejected server/discover"), (("--spec-version", OLDEST), "requested with")],
)
def test_a_server_of_a_revision_without_scenarios_is_told_what_judges_it(
    wish: tuple[str, ...], why: str
) -> None:
    server = f"{DEMO} --spec-version {OLDEST}"
    done = mcptest("conformance", "server", *wish, "--server", server)
    assert done.code == 4, done.said
    assert f"no scenario for {OLDEST} over stdio\n  {OLDEST}: {why}" in done.said
    assert "`mcptest compliance run` judges every revision" in done.said


def test_a_server_that_is_not_there_is_said_once_and_passes_nothing() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    done = mcptest("conformance", "server", "--url", url)
    assert done.code == 3
    assert "passed" not in done.out


def test_missing_fixtures_are_untestable_unless_they_are_asked_for() -> None:
    options = ("conformance", "server", "--server", "demo", "--scenario", "tools-call-audio")
    done = mcptest(*options)
    assert done.code == 4
    assert "--map test_audio_content=NAME" in " ".join(done.out.split())
    assert mcptest(*options, "--strict-fixtures").code == 1


def test_a_requirement_set_says_what_counts() -> None:
    done = mcptest("conformance", "server", "--server", DEMO, "--requirements", "2026-07-28")
    assert done.code == 0, done.said
    assert "37 of them count" in done.out
    assert "not offered: tasks-lifecycle" in done.out


def test_the_list_has_both_sides_and_says_what_is_missing() -> None:
    found = json.loads(mcptest("conformance", "list", "--json").out)
    assert {"tools_call", "client-capabilities"} <= {
        row["name"] for row in found["client"]["scenarios"]
    }
    assert "tasks-lifecycle" in found["server"]["not_offered"]


def test_every_scenario_has_its_page() -> None:
    assert stale_pages(ROOT.parent / "docs" / "conformance") == []


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict-reports",), 1)])
def test_what_can_not_be_written_is_said_and_fails_when_strict(
    tmp_path: Path, strict: tuple[str, ...], code: int
) -> None:
    (tmp_path / "file").write_text("no folder")
    files = ("--json-file", "/dev/full", "--output", str(tmp_path / "file" / "results"))
    done = client("--scenario", "tools_call", *files, *strict)
    assert done.code == code, done.said
    assert done.err.count("report not written") == 1
    assert done.err.count("results not written") == 1
