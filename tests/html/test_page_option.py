"""`--html` on the commands: one page, with the wire in it, and no capture left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import mcptest, mcptest_anew

RAW_CLIENT = Path(__file__).parents[1] / "conformance" / "raw_client.py"


def page_of(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    done = mcptest(*words, "--html", "page.html", "--quiet", cwd=folder)
    assert done.code == code, done.err
    content = (folder / "page.html").read_bytes()

    def block(name: str) -> Any:
        return json.loads(content.partition(f'id="{name}">'.encode())[2].partition(b"</script>")[0])

    return {**block("page"), "sessions": block("sessions")}


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("audit",), "audit"),
        (("lint",), "lint"),
        (
            ("compliance", "run", "--rule", "TOOLS-001", "--spec-version", "2025-11-25"),
            "compliance",
        ),
        (
            ("conformance", "server", "--scenario", "ping", "--spec-version", "2025-11-25"),
            "conformance of a server",
        ),
    ],
)
def test_the_page_shows_the_wire_though_no_capture_is_kept(
    tmp_path: Path, words: tuple[str, ...], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    page = page_of(tmp_path, *words, "--server", "demo", "--json-file", "r.json")
    assert [source["kind"] for source in page["sources"]] == [kind]
    assert sum(len(session["kinds"]) for session in page["sessions"]) > 2
    assert page["latencies"]
    assert list((tmp_path / "tmp").rglob("*.jsonl")) == []
    assert str(tmp_path / "tmp") not in (tmp_path / "r.json").read_text()


def test_a_client_under_test_has_its_page(tmp_path: Path) -> None:
    client = f"{sys.executable} {RAW_CLIENT}"
    words = ("conformance", "client", "--command", client, "--scenario", "tools_call")
    page = page_of(tmp_path, *words, "--json-file", "r.json")
    assert page["sources"][0]["kind"] == "conformance of a client"
    assert len(page["sessions"]) == 1
    assert '"capture"' not in (tmp_path / "r.json").read_text()


def test_kept_captures_are_shown_where_they_are(tmp_path: Path) -> None:
    fuzz = ("fuzz", "--server", "demo", "--tool", "add", "--runs", "3", "--seed", "1")
    page = page_of(tmp_path, *fuzz, "--save-capture", "kept")
    assert page["sources"][0]["kind"] == "fuzz"
    assert page["sessions"][0]["file"].startswith("kept/")
    again = mcptest(*fuzz, "--html", "none.html", "--quiet", cwd=tmp_path)
    assert again.code == 0
    assert b'id="sessions">[]<' in (tmp_path / "none.html").read_bytes()


def test_a_matrix_of_servers_is_a_matrix_on_the_page(tmp_path: Path) -> None:
    test = "  assert: {tool: add, args: {a: 1, b: 2}, expect: {json_path: {$.sum: 3}}}\n"
    (tmp_path / "s.yaml").write_text(f"tests:\n- name: sum\n{test}")
    page = page_of(tmp_path, "matrix", "s.yaml", "--languages", "old:demo,new:demo")
    servers = [column["server"] for column in page["sources"][0]["columns"]]
    assert servers == ["old", "new"]
    assert {entry["row"] for entry in page["entries"]} == {"sum"}
    assert len({entry["column"] for entry in page["entries"]}) == 2


def suite_in(folder: Path, *, names: tuple[str, ...] = ("adds",), wrong: bool = False) -> None:
    asks = {"tool": "add", "args": {"a": 1, "b": 2}}
    tests: list[Any] = [
        {"name": name, "assert": {**asks, "expect": {"contains": ["3"]}}} for name in names
    ]
    if wrong:
        tests.append({"name": "errs", "assert": {**asks, "expect": {"contains": ["4"]}}})
    server = {"command": sys.executable, "args": ["-m", "mcptest", "serve", "demo"]}
    suite = {"server": server, "isolation": "shared", "tests": tests}
    (folder / "s.yaml").write_text(json.dumps(suite))


@pytest.mark.parametrize(
    ("threshold", "code", "verdict"),
    [(50, 0, "Passed: 1 of 2, 1 failed (50% is enough)"), (60, 1, "Failed: 1 of 2")],
)
def test_the_page_of_ci_tells_the_verdict_of_the_command(
    tmp_path: Path, threshold: int, code: int, verdict: str
) -> None:
    suite_in(tmp_path, wrong=True)
    words = ("ci", "s.yaml", "--fail-under", str(threshold), "--json-file", "r.json")
    page = page_of(tmp_path, *words, code=code)
    assert (page["exit_code"], page["verdict"]) == (code, verdict)
    assert page["sources"][0]["summary"].endswith(f"; {threshold}% is enough")
    # And again from what was stored, also when it is one of several.
    assert page_of(tmp_path, "report", "r.json", code=code)["verdict"] == verdict
    assert mcptest("report", "r.json", "r.json", "--quiet", cwd=tmp_path).code == code


def test_a_regression_that_ci_allows_is_no_failure_of_the_page(tmp_path: Path) -> None:
    suite_in(tmp_path, names=("adds", "errs"))
    mcptest("ci", "s.yaml", "--save-baseline", "b.json", cwd=tmp_path)
    suite_in(tmp_path, wrong=True)
    words = ("ci", "s.yaml", "--fail-under", "50", "--baseline", "b.json")
    page = page_of(tmp_path, *words)
    assert page["exit_code"] == 0
    assert page["sources"][0]["changes"]
    assert page_of(tmp_path, *words, "--fail-on-regression", code=1)["exit_code"] == 1


def test_the_page_of_golden_answers_shows_what_has_changed(tmp_path: Path) -> None:
    suite_in(tmp_path)
    words = ("snapshot", "--suite", "s.yaml")
    page = page_of(tmp_path, *words, "--update")
    assert page["verdict"] == "Passed: 1 of 1"
    assert page["entries"][0]["name"] == "adds"
    (golden,) = tmp_path.rglob("adds.snap")
    golden.write_text(golden.read_text().replace("3", "5"))
    page = page_of(tmp_path, *words, code=1)
    assert page["verdict"] == "Failed: 1 of 1"
    (entry,) = page["entries"]
    assert entry["outcome"] == "fail"
    assert "Expected changed" not in (tmp_path / "page.html").read_text()
    assert '-{\\"sum\\": 5}\\n+{\\"sum\\": 3}' in (tmp_path / "page.html").read_text()


def test_the_page_of_a_doctor_shows_what_breaks_and_the_wire(tmp_path: Path) -> None:
    old = Path(__file__).parents[2] / "examples" / "migration-doctor" / "old_server.py"
    server = f"{sys.executable} {old}"
    words = ("doctor", "--to", "2026-07-28", "--server", server, "--junit", "d.xml")
    page = page_of(tmp_path, *words, code=1)
    assert page["verdict"].startswith("Failed: ")
    assert {"discover", "ping"} <= {
        one["id"] for one in page["entries"] if one["outcome"] == "fail"
    }
    assert sum(len(session["kinds"]) for session in page["sessions"]) > 2
    assert "<failure" in (tmp_path / "d.xml").read_text()
    assert not list(tmp_path.rglob("*.jsonl"))


def test_the_page_of_an_intercepted_session_shows_its_wire(tmp_path: Path) -> None:
    test = {"name": "adds", "trajectory": [{"type": "presence", "tools": ["add"]}]}
    (tmp_path / "t.yaml").write_text(json.dumps({"tests": [test]}))
    words = ("--trajectory", "t.yaml", "--save-capture", "c.jsonl", "--html", "page.html")
    command = [sys.executable, "-m", "mcptest", "intercept", *words, "--server", "demo"]
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run(command, input=ping, cwd=tmp_path, capture_output=True, timeout=240)
    assert done.returncode == 1, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "not found in trace" in page
    assert '"sessions">[{' in page


@pytest.mark.parametrize("command", ["run", "audit"])
def test_every_file_that_was_written_is_named_at_the_end(tmp_path: Path, command: str) -> None:
    suite_in(tmp_path)
    words = [command, "s.yaml"] if command == "run" else [command, "--server", "demo"]
    words += ["--json-file", "r.json", "--junit", "r.xml", "--html", "page.html"]
    assert mcptest(*words, cwd=tmp_path).out.endswith("\nwrote r.json, r.xml, page.html\n")
    assert "wrote" not in mcptest(*words, "--quiet", cwd=tmp_path).out
    assert json.loads(mcptest(*words, "--json", cwd=tmp_path).out)
    lost = mcptest(*words, "--sarif", "no.json/r.sarif", "--markdown", "r.xml/r.md", cwd=tmp_path)
    assert "wrote r.json, r.xml, page.html, no.json/r.sarif\n" in lost.out
    assert "report not written: can't write r.xml/r.md" in lost.err


def test_the_command_line_in_a_report_holds_no_secret(tmp_path: Path) -> None:
    suite_in(tmp_path)
    given = (
        "--env",
        "API_KEY=sk-abcdef1234567890",
        "--header",
        "Authorization=Bearer abc-secret-1",
    )
    files = ("--json-file", "r.json", "--html", "page.html")
    done = mcptest_anew("run", "s.yaml", *given, *files, cwd=tmp_path)
    assert done.code == 0, done.err
    command = json.loads((tmp_path / "r.json").read_text())["invocation"]["command"]
    assert command.startswith("mcptest run s.yaml --env ")
    written = command + (tmp_path / "page.html").read_text()
    assert "sk-abcdef1234567890" not in written
    assert "abc-secret-1" not in written
