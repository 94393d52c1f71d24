"""`mcptest fuzz` on a server that breaks on certain inputs only, and on real ones."""

from __future__ import annotations

import json
import shlex
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import NPM, START, Done, mcptest

FUZZED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("fuzzed.py")))
EXPLORED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("explored.py")))


def fuzz(*options: str, server: tuple[str, ...] = FUZZED, **more: Any) -> Done:
    return mcptest(
        "fuzz", "--timeout", "1s", *START, "--seed", "8", *options, "--", *server, **more
    )


def report_of(*options: str, server: tuple[str, ...] = FUZZED) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(fuzz("--json", *options, server=server).out)
    return report


def failures_of(report: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {one["tool"]: one["failures"] for one in report["tools"]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("fuzz") / "saved"
    return report_of("--output", str(folder)), folder


def test_each_failure_is_classed_and_costs_only_its_own_verdict(
    whole: tuple[dict[str, Any], Path],
) -> None:
    report, _ = whole
    found = {tool: [f["status"] for f in each] for tool, each in failures_of(report).items()}
    assert found == {
        "sound": [],
        "dies": ["crash"],
        "internal": ["crash"],
        "hangs": ["hang"],
        "leaks": ["leak"],
        "reads": ["leak"],
    }
    assert report["failed"] is True
    assert report["summary"]["total_runs"] == 300
    assert report["skipped"] == [{"tool": "writes", "reason": "it is marked readOnlyHint: false"}]


def test_an_input_that_fails_is_made_small_and_stays_valid(
    whole: tuple[dict[str, Any], Path],
) -> None:
    (failure,) = failures_of(whole[0])["dies"]
    assert failure["minimal"] == {"text": "", "limit": -1}
    assert failure["valid"] is True
    assert "code 9" in failure["detail"]
    assert failure["stderr"] == ["negative limit"]


def test_the_command_of_a_failure_shows_it_again(whole: tuple[dict[str, Any], Path]) -> None:
    (failure,) = failures_of(whole[0])["internal"]
    words = shlex.split(failure["repeat"])
    assert words[0] == "mcptest"
    done = mcptest(*words[1:])
    assert done.code == 1
    assert "0/1 passed" in done.out


def test_saved_failures_load_and_fail_on_that_server(whole: tuple[dict[str, Any], Path]) -> None:
    files = sorted(whole[1].glob("*.yaml"))
    assert len(files) == 5
    done = mcptest("run", str(whole[1]), "--timeout", "1s", "--json")
    results = json.loads(done.out)
    assert done.code == 1
    assert [one["status"] for one in results] == ["FAIL"] * 5


def test_saved_failures_pass_on_a_server_that_is_mended(
    whole: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    mended = tmp_path / "mended.py"
    source = Path(FUZZED[-1]).read_text()
    mended.write_text(
        source.replace("given = arguments if", "return said('no', True)\n    given = arguments if")
    )
    for file in whole[1].glob("*.yaml"):
        file.with_suffix(".yml").write_text(file.read_text().replace(FUZZED[-1], str(mended)))
    files = sorted(map(str, whole[1].glob("*.yml")))
    done = mcptest("run", *files, "--timeout", "5s")
    for written in files:
        Path(written).unlink()
    assert done.code == 0, done.out


def test_the_number_of_jobs_changes_nothing(whole: tuple[dict[str, Any], Path]) -> None:
    def essence(report: dict[str, Any]) -> Any:
        return [
            (
                *(one[name] for name in ("tool", "runs", "passed", "categories")),
                *((f["label"], f["status"], f["minimal"], f["also"]) for f in one["failures"]),
            )
            for one in report["tools"]
        ]

    assert essence(report_of("--jobs", "3")) == essence(whole[0])


def test_a_server_that_dies_after_its_answer_is_found_out(tmp_path: Path) -> None:
    report = report_of(
        "--runs", "6", "--output", str(tmp_path), server=(*EXPLORED, "only=leave_later,echo")
    )
    first = failures_of(report)["leave_later"][0]
    assert first["status"] == "crash"
    assert "it answered, and then" in first["detail"]
    assert first["count"] == 6
    (saved,) = tmp_path.glob("fuzz-crash-leave_later*.yaml")
    assert mcptest("run", str(saved), "--timeout", "5s").code == 1


def test_what_takes_the_whole_time_is_not_repeated_for_ever() -> None:
    report = report_of(
        "--runs",
        "40",
        "--timeout",
        "300ms",
        "--startup-timeout",
        "30s",
        server=(*EXPLORED, "only=hang"),
    )
    (tool,) = report["tools"]
    assert tool["runs"] == 3
    assert any("37 more were not sent" in note for note in tool["notes"])


def test_nothing_to_fuzz_is_not_green() -> None:
    done = fuzz("--tool", "writes")
    assert done.code == 4
    assert "--allow-writes" in done.err
    assert fuzz("--tool", "writes", "--allow-writes").code == 0


def test_the_seed_is_printed_also_when_it_was_chance() -> None:
    done = mcptest("fuzz", "--tool", "sound", "--", *FUZZED)
    assert done.code == 0
    assert any(line.startswith("seed ") for line in done.out.splitlines())


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        (("--runs", "0"), "--runs"),
        (("--tool", "sond"), "did you mean sound?"),
        (("--input", "{}"), "--tool"),
        (("--tool", "sound", "--input", "{"), "is not valid JSON"),
        (("--jobs", "many"), "--jobs"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: tuple[str, ...], phrase: str) -> None:
    done = fuzz(*options)
    assert done.code == 2
    assert phrase in done.err


def test_a_server_that_does_not_start_is_unreachable() -> None:
    assert mcptest("fuzz", "--", sys.executable, "-c", "raise SystemExit(1)").code == 3


def test_every_report_is_written_and_can_be_read(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("f.json", "f.xml", "f.md")}
    captures = tmp_path / "captures"
    done = fuzz(
        *("--tool", "internal", "--json-file", str(files["f.json"])),
        *("--junit", str(files["f.xml"]), "--markdown", str(files["f.md"])),
        *("--save-capture", str(captures)),
    )
    assert done.code == 1
    assert json.loads(files["f.json"].read_bytes())["seed"] == 8
    cases = ET.parse(files["f.xml"]).getroot().iter("testcase")
    assert [case.get("name") for case in cases] == ["fuzz internal: text: empty string"]
    assert "| <code>CRASH</code> |" in files["f.md"].read_text()
    assert list(captures.glob("session-*.jsonl"))


def test_the_summary_of_a_ci_step_is_appended_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("of an earlier step\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    markdown = tmp_path / "report.md"
    fuzz("--tool", "sound", "--runs", "3", "--markdown", str(markdown))
    assert summary.read_text() == "of an earlier step\n" + markdown.read_text() + "\n"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "summary.md"))
    done = fuzz("--tool", "sound", "--runs", "3")
    assert (done.code, "the step summary" in done.err) == (0, True)
    assert fuzz("--tool", "sound", "--runs", "3", "--strict-reports").code == 1


def test_a_secret_that_gets_out_is_found_and_not_shown(tmp_path: Path) -> None:
    server = tmp_path / "tells.py"
    source = Path(FUZZED[-1]).read_text()
    server.write_text(
        source.replace("return said(json.dumps(arguments))", "return said(os.environ['API_KEY'])")
    )
    done = mcptest(
        *("fuzz", "--env", "API_KEY=hunter2-hunter2", "--tool", "sound", "--runs", "5"),
        *("--", sys.executable, "-I", "-S", str(server)),
    )
    assert done.code == 1
    assert "LEAK" in done.out
    assert "hunter2" not in done.out + done.err
    assert """--env API_KEY="$API_KEY\"""" in done.out  # a line that can be pasted


def test_a_url_that_a_server_was_given_is_no_secret(tmp_path: Path) -> None:
    server = tmp_path / "tells.py"
    source = Path(FUZZED[-1]).read_text()
    server.write_text(
        source.replace("return said(json.dumps(arguments))", "return said(os.environ['BASE_URL'])")
    )
    done = mcptest(
        *("fuzz", "--env", "BASE_URL=https://api.example.com/v2", "--tool", "sound"),
        *("--runs", "5", "--", sys.executable, "-I", "-S", str(server)),
    )
    assert done.code == 0, done.out


@pytest.mark.skipif(not NPM.is_dir(), reason="the npm servers are not installed")
def test_a_real_server_refuses_malformed_requests_without_being_called_crashed(
    tmp_path: Path,
) -> None:
    index = NPM / "server-filesystem/dist/index.js"
    (tmp_path / "hello.txt").write_text("hello")
    done = mcptest(
        *("fuzz", "--seed", "1", "--json", "--runs", "40", "--fixture", str(tmp_path)),
        *("--server", f"node {index} {{{{fixture}}}}"),
    )
    report = json.loads(done.out)
    assert done.code == 0
    assert len(report["tools"]) == 10
    assert len(report["skipped"]) == 4
    assert any("-32603" in note for note in report["notes"])
