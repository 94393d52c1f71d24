"""`mcptest intercept`: the session passes untouched, then its calls and both sides are judged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.capture import AnyRecord, Exited, Stderr
from mcptest.core.limits import Deadline
from mcptest.core.revision import Revision
from mcptest.session.client import Client
from mcptest.transport.stdio import Stdio
from tests.e2e.driving import BOUND, PYTHON_SDK, is_alive, messages_of, records_of

DEMO = (sys.executable, "-m", "mcptest.servers.demo")
CALLS: list[tuple[str, dict[str, Any]]] = [("add", {"a": 1, "b": 2}), ("weather", {"city": "Bern"})]
GOOD = """
tests:
  - name: adds before it asks for the weather
    trajectory:
      - { type: order, tools: [add, weather] }
      - { type: args_contain, tool: add, args: { a: 1 } }
  - name: resets nothing
    trajectory:
      - { type: absence, tools: [reset] }
"""
BAD = """
tests:
  - name: asks for the weather first
    trajectory:
      - { type: order, tools: [weather, add] }
      - { type: presence, tools: [reset] }
"""
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":%b}}\n'


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A file with trajectories that a good session meets."""
    return written(tmp_path, GOOD)


def written(folder: Path, text: str) -> Path:
    path = folder / "calls.yaml"
    path.write_text(text)
    return path


def intercept_command(trajectory: Path, *options: str) -> list[str]:
    words = [sys.executable, "-m", "mcptest", "intercept", "--trajectory", str(trajectory)]
    return [*words, *options, "--"]


def agent_session(
    trajectory: Path,
    *options: str,
    revision: Revision = Revision.V2025_06_18,
    calls: Sequence[tuple[str, dict[str, Any]]] = CALLS,
    cwd: Path | None = None,
    server: Sequence[str] = DEMO,
) -> tuple[int | None, str]:
    """An agent that makes the calls on a server: how the command ended, and what it reported."""
    records: list[AnyRecord] = []
    command = [*intercept_command(trajectory, *options), *server]
    transport = Stdio(command, sink=records.append, cwd=str(cwd) if cwd else None)
    with Client(transport, revision=revision) as client:
        for name, arguments in calls:
            assert client.call_tool(name, arguments).ok
        client.close(Deadline.after(BOUND))
    code = next(each.code for each in records if isinstance(each, Exited))
    return code, "\n".join(each.text for each in records if isinstance(each, Stderr))


def piped(
    trajectory: Path, *options: str, server: str, sent: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """A server of Python code, and an agent that says everything at once and leaves."""
    words = [*intercept_command(trajectory, *options), sys.executable, "-u", "-c", server]
    return subprocess.run(words, input=sent, capture_output=True, timeout=BOUND)


ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line)\n"


# -- what is checked -----------------------------------------------------------------------


@pytest.mark.parametrize("revision", [Revision.V2025_06_18, Revision.V2026_07_28])
def test_a_good_session_passes_with_its_invariants(calls: Path, revision: Revision) -> None:
    code, told = agent_session(calls, revision=revision)
    assert code == 0, told
    assert "[1] add" in told
    assert "[2] weather" in told
    assert "adds before it asks for the weather" in told
    assert "session invariants hold" in told
    assert "2 tests, 2 passed" in told


def test_a_trajectory_that_is_not_met_fails_in_every_report(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("run.json", "run.xml", "run.md", "seen.jsonl")}
    options = ["--json-file", "--junit", "--markdown", "--save-capture"]
    words = [word for pair in zip(options, map(str, files.values()), strict=True) for word in pair]
    code, told = agent_session(written(tmp_path, BAD), *words)
    assert code == 1
    for report in (told, files["run.md"].read_text(), files["run.xml"].read_text()):
        assert "asks for the weather first" in report
        assert "did not follow" in report
    run = json.loads(files["run.json"].read_bytes())
    assert run["summary"]["failed"] == 1
    failed = next(each for each in run["results"] if each["status"] == "FAIL")
    assert [each["check"] for each in failed["failures"]] == ["order", "presence"]
    assert failed["line"] == 3
    assert "the server exited with code 0" in run["notes"]
    assert any(each["name"] == "invariants INV-001" for each in run["results"])
    assert ET.parse(files["run.xml"]).getroot().get("failures") == "1"
    assert records_of(files["seen.jsonl"])[-1]["kind"] == "end"


def test_an_agent_that_breaks_the_protocol_fails_though_its_calls_are_right(calls: Path) -> None:
    sent = CALL % b'{"a":1}' + CALL.replace(b"add", b"weather") % b"{}"
    done = piped(calls, server=ECHO, sent=sent)
    assert done.returncode == 1
    assert b"invariants INV-" in done.stderr
    assert done.stdout == sent
    alone = piped(calls, "--no-invariants", server=ECHO, sent=sent)
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout == sent


def test_all_forms_of_a_call_are_seen(calls: Path) -> None:
    escaped = CALL.replace(b"tools/call", b"tools\\/call") % b'{"a":1}'
    batch = b'[{"method":"ping"},7,' + escaped.strip() + b"]\n"
    no_id = b'{"method":"tools/call","params":{"name":"weather"}}\n'
    nonsense = b'{"method":"tools/call"}\n{"method":"tools/call","params":{"name":3}}\n\xff\n{{\n'
    done = piped(calls, "--no-invariants", server=ECHO, sent=nonsense + batch + no_id)
    assert done.returncode == 0, done.stderr
    assert b"2 tool calls" in done.stderr


def test_a_secret_is_seen_by_the_check_and_by_nobody_else(tmp_path: Path) -> None:
    text = """
tests:
  - name: right
    trajectory: [{ type: args_contain, tool: add, args: { key: very-secret-value } }]
  - name: wrong
    trajectory: [{ type: args_contain, tool: add, args: { key: other } }]
"""
    report = tmp_path / "run.json"
    done = piped(
        written(tmp_path, text),
        *("--no-invariants", "--env", "TOKEN=very-secret-value", "--json-file", str(report)),
        server=ECHO,
        sent=CALL % b'{"key":"very-secret-value"}',
    )
    assert done.returncode == 1
    results = {each["name"]: each["status"] for each in json.loads(report.read_bytes())["results"]}
    assert results == {"right": "PASS", "wrong": "FAIL"}
    assert b"very-secret-value" not in done.stderr + report.read_bytes()
    assert b"***" in done.stderr


def test_the_sample_in_the_docs_is_what_is_reported(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands" / "intercept.md").read_text("utf-8")
    sample = (
        page.partition("```console\n$ python agent.py")[2].partition("```")[0].split("\n", 1)[1]
    )
    suite = page.partition("```yaml\n")[2].partition("```")[0]
    written(tmp_path, suite)
    calls = [CALLS[0], ("weather", {"city": "Zürich"})]
    options = ("--save-capture", "seen.jsonl", "--no-color")
    code, told = agent_session(Path("calls.yaml"), *options, calls=calls, cwd=tmp_path)
    assert code == 1
    until = "note: "  # the rest counts what depends on the client
    assert told.partition(until)[0].replace("\n\n", "\n") == sample.partition(until)[0].replace(
        "\n\n", "\n"
    )


# -- how it ends ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "trajectory", "code"),
    [
        ("sys.exit(0)", GOOD, 0),
        ("sys.exit(7)", GOOD, 7),
        ("sys.exit(7)", BAD, 1),
        ("os.kill(os.getpid(), 9)", GOOD, 128 + signal.SIGKILL),
        ("os.kill(os.getpid(), 9)", BAD, 1),
    ],
)
def test_a_failed_check_decides_and_otherwise_the_server(
    tmp_path: Path, end: str, trajectory: str, code: int
) -> None:
    server = f"import os, sys\nsys.stdin.read()\n{end}\n"
    sent = CALL % b'{"a":1}' + CALL.replace(b"add", b"weather") % b"{}"
    done = piped(written(tmp_path, trajectory), "--no-invariants", server=server, sent=sent)
    assert done.returncode == code, done.stderr


def test_a_session_in_which_nothing_was_said_is_never_green(calls: Path, tmp_path: Path) -> None:
    only_absence = written(tmp_path, "name: x\ntrajectory: [{ type: absence, tools: [reset] }]\n")
    done = piped(only_absence, server="import sys; sys.stdin.read()")
    assert done.returncode == 4
    assert b"the session had no messages" in done.stderr


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("sys.exit(0)", "the server exited with code 0 before it sent a message"),
        ("sys.exit(3)", "the server exited with code 3 before it sent a message"),
        ("os.kill(os.getpid(), 11)", "the server was killed by SIGSEGV before it sent a message"),
    ],
)
@pytest.mark.parametrize("sent", [b"", CALL % b"{}"], ids=["silent client", "client that asks"])
def test_a_server_that_ends_before_it_says_anything_fails_the_session(
    tmp_path: Path, end: str, told: str, sent: bytes
) -> None:
    """Whether a message of the client was read before that depends on the machine's load."""
    only_absence = written(tmp_path, "name: x\ntrajectory: [{ type: absence, tools: [reset] }]\n")
    words = [sys.executable, "-c", f"import os, sys\n{end}"]
    command = [*intercept_command(only_absence, "--no-invariants"), *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(sent)
        process.stdin.flush()
        said = process.stderr.read().decode()  # until it is gone, though our side stays open
        assert process.wait(BOUND) == 1, said
    assert told in said


def test_a_message_that_is_too_large_to_be_looked_at_is_never_green(tmp_path: Path) -> None:
    only_absence = written(tmp_path, "name: x\ntrajectory: [{ type: absence, tools: [reset] }]\n")
    large = "import sys; print('x' * 17_000_000); sys.stdin.read()"
    done = piped(only_absence, "--no-invariants", server=large, sent=CALL % b"{}")
    assert done.returncode == 1
    assert b"not all of it was judged: a line of over 16" in done.stderr
    assert len(done.stdout) == 17_000_001


def test_a_message_of_more_values_than_are_read_is_never_green(calls: Path) -> None:
    line = b'{"jsonrpc":"2.0","method":"m","params":{"a":[' + b"{}," * 200_000 + b"{}]}}\n"
    done = subprocess.run(
        [*intercept_command(calls, "--no-invariants"), "cat"],
        input=line,
        capture_output=True,
        timeout=BOUND,
    )
    assert done.returncode == 1
    assert b"not all of it was judged: a message from the client: it has too many" in done.stderr
    assert done.stdout == line


def test_a_session_that_lasts_too_long_is_ended_and_fails(calls: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    server = (
        f"import os, signal\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
        "while True: signal.pause()\n"
    )
    command = [*intercept_command(calls, "--max-time", "500ms"), sys.executable, "-c", server]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.wait(BOUND) == 1  # though our end of its stdin is still open
        assert process.stderr is not None
        assert b"timed out: the session was not over after 0.5s" in process.stderr.read()
        assert not is_alive(int(pid_file.read_text()))
    finally:
        process.kill()
        process.communicate()


BUSY = 60.0
"""Seconds more, on a busy machine. What is pending would take this client many minutes."""
FLOODS = (
    "import os\n"
    'line = b\'{"jsonrpc":"2.0","method":"notifications/message"}\\n\' * 1000\n'
    "while True: os.write(1, line)\n"
)


def test_a_client_that_takes_little_at_a_time_does_not_make_a_session_longer(calls: Path) -> None:
    """Nor do judging and the page: there is one limit for all of it."""
    page = calls.with_name("page.html")
    command = intercept_command(calls, "--max-time", "3s", "--html", str(page))
    begun = time.monotonic()
    with subprocess.Popen(
        [*command, sys.executable, "-I", "-S", "-c", FLOODS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        while process.poll() is None and time.monotonic() - begun < BOUND:
            os.read(process.stdout.fileno(), 2_000)
            time.sleep(0.05)  # it is this client's pace, nobody waits for it
        taken = time.monotonic() - begun
        process.kill()
        assert process.returncode == 1
    assert taken < 3 + 5 + BUSY
    assert page.exists()


def test_a_signal_reaches_the_server_and_the_report_is_still_written(
    calls: Path, tmp_path: Path
) -> None:
    report = tmp_path / "run.json"
    server = (
        "import signal, sys\n"
        "signal.signal(15, lambda n, f: sys.exit(5))\nprint('ready')\nsignal.pause()\n"
    )
    command = intercept_command(calls, "--no-invariants", "--json-file", str(report))
    process = subprocess.Popen(
        [*command, sys.executable, "-u", "-c", server],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 1  # the calls that were due never came
        told = "the server exited with code 5 after SIGTERM, which was passed on"
        assert told in json.loads(report.read_bytes())["notes"]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_capture_that_can_not_be_written_is_no_success(calls: Path) -> None:
    sent = CALL % b'{"a":1}' + CALL.replace(b"add", b"weather") % b"{}"
    done = piped(calls, "--capture", "/dev/full", "--no-invariants", server=ECHO, sent=sent)
    assert done.stdout == sent
    assert done.returncode == 1
    assert b"the capture is not complete: No space left on device" in done.stderr


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict-reports",), 1)])
def test_a_report_that_can_not_be_written_is_said_and_fails_when_strict(
    calls: Path, strict: tuple[str, ...], code: int
) -> None:
    sent = CALL % b'{"a":1}' + CALL.replace(b"add", b"weather") % b"{}"
    options = ("--junit", "/dev/null/x", "--no-invariants", *strict)
    done = piped(calls, *options, server=ECHO, sent=sent)
    assert done.returncode == code
    assert done.stdout == sent  # it is the agent's
    assert done.stderr.count(b"report not written") == 1


# -- over HTTP -----------------------------------------------------------------------------


@pytest.fixture
def http_demo(tmp_path: Path) -> Iterator[str]:
    port_file = tmp_path / "demo.port"
    command = [*DEMO, "--transport", "http", "--port-file", str(port_file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"listening" in process.stderr.readline()
        yield f"http://127.0.0.1:{port_file.read_text().strip()}/mcp"
        process.terminate()


@pytest.mark.parametrize(("trajectory", "code"), [(GOOD, 0), (BAD, 1)])
def test_over_http_it_judges_when_it_is_stopped(
    tmp_path: Path, http_demo: str, trajectory: str, code: int
) -> None:
    from mcptest.transport.base import discard
    from mcptest.transport.http.transports import StreamableHttp

    capture = tmp_path / "seen.jsonl"
    words = ["--server", http_demo, "--save-capture", str(capture), "--listen", "127.0.0.1:0"]
    command = intercept_command(written(tmp_path, trajectory), *words)[:-1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        url = process.stderr.readline().decode().split()[-1]
        transport = StreamableHttp(url, sink=discard)
        with Client(transport, revision=Revision.V2025_11_25) as client:
            for name, arguments in CALLS:
                assert client.call_tool(name, arguments).ok
        os.kill(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=BOUND)
    assert (process.returncode, stdout) == (code, b""), stderr
    assert b"[2] weather" in stderr
    called = [each for each in messages_of(capture, "client") if each["method"] == "tools/call"]
    assert [each["params"]["name"] for each in called] == ["add", "weather"]


@pytest.mark.parametrize(("tool", "code"), [("add", 0), ("fail", 1)])
def test_an_agent_on_a_real_server_is_held_to_its_trajectory(
    tmp_path: Path, tool: str, code: int
) -> None:
    text = "trajectory:\n  - { type: presence, tools: [" + tool + "] }\n"
    trajectory = written(tmp_path, "name: uses what it should\n" + text)
    calls = [("add", {"a": 1, "b": 2})]
    ended, told = agent_session(trajectory, calls=calls, server=PYTHON_SDK)
    assert ended == code, told
    assert "uses what it should" in told
