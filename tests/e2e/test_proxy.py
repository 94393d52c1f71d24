"""`mcptest record --proxy`: bytes first, both ways, and every end is passed on."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.limits import Deadline
from mcptest.core.revision import Revision
from mcptest.session.client import Client
from mcptest.transport.base import discard
from mcptest.transport.stdio import Stdio
from tests.e2e.driving import (
    BOUND,
    PYTHON_SDK,
    awkward,
    is_alive,
    mcptest,
    messages_of,
    records_of,
    wait_until,
)

ECHO = """
import os
while chunk := os.read(0, 65536):
    while chunk:
        chunk = chunk[os.write(1, chunk):]
"""

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "seen.jsonl"


@pytest.fixture
def proxied(out: Path) -> Iterator[Start]:
    """Starts a server of Python code behind the proxy; whatever is left is killed at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str, *arguments: str, options: tuple[str, ...] = (), **more: Any) -> Any:
        process = subprocess.Popen(
            [*proxy_command(out, *options), sys.executable, "-u", "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def proxy_command(out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "mcptest", "record", "--proxy", "--out", str(out), *options, "--"]


def ends(process: subprocess.Popen[bytes], sent: bytes = b"") -> tuple[int, bytes, bytes]:
    """Send, close our side, and take everything that comes."""
    stdout, stderr = process.communicate(sent, timeout=BOUND)
    return process.returncode, stdout, stderr


def said(out: Path, sender: str) -> bytes:
    """The lines of one side, as the capture keeps them."""
    lines = []
    for record in records_of(out):
        if record["kind"] != "message" or record["sender"] != sender:
            continue
        assert "message" in record or "text" in record, record
        lines.append(record.get("text") or json.dumps(record["message"]))
    return "".join(f"{line}\n" for line in lines).encode()


# -- the same bytes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        b'{"a": 1 }\r\n\n\n  {"b":2}\n',
        b"no newline at the end",
        b"\x00\xff\xfe\x1b[2J\n\xef\xbb\xbf{}\n" * 10,
        random.Random(7).randbytes(1_000_000),
        b"\n" * 100_000,
    ],
    ids=["nothing", "a message", "white space", "no newline", "garbage", "noise", "blank lines"],
)
def test_bytes_come_through_unchanged_both_ways(proxied: Start, sent: bytes) -> None:
    code, stdout, stderr = ends(proxied(ECHO), sent)
    assert stdout == sent
    assert (code, stderr) == (0, b"")


def test_fifty_megabytes_come_through_both_ways(proxied: Start, out: Path) -> None:
    sent = b'{"x":"' + b"y" * 49_999_990 + b'"}\n{"after":1}\n'
    code, stdout, stderr = ends(proxied(ECHO), sent)
    assert len(stdout) == len(sent)
    assert stdout == sent
    assert (code, stderr) == (0, b"")
    troubles = [each for each in records_of(out) if each["kind"] == "trouble"]
    assert {each["error"] for each in troubles} == {"line-too-long"}
    assert messages_of(out) == [{"after": 1}, {"after": 1}]


def test_messages_are_seen_as_they_come_and_not_at_the_end(proxied: Start, out: Path) -> None:
    process = proxied(ECHO)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"n":1}\n')
    process.stdin.flush()
    assert process.stdout.readline() == b'{"n":1}\n'
    partial = out.with_name(out.name + ".partial")
    wait_until(lambda: partial.read_bytes().count(b'{"n":1}') == 2, "both sides in the capture")
    ends(process)


def test_the_capture_holds_both_sides_in_order(proxied: Start, out: Path) -> None:
    ends(proxied(ECHO), b'{"n":1}\n{"n":2}\n')
    records = records_of(out)
    assert [each["kind"] for each in records[:1]] == ["capture"]
    assert messages_of(out, "client") == messages_of(out, "server") == [{"n": 1}, {"n": 2}]
    assert [each["kind"] for each in records[-2:]] == ["exit", "end"]
    assert records[0]["transport"] == "stdio"


def test_no_answer_is_seen_before_what_it_answers(proxied: Start, out: Path) -> None:
    process = proxied(ECHO)
    assert process.stdin is not None
    assert process.stdout is not None
    for n in range(500):
        process.stdin.write(b'{"n":%d}\n' % n)
        process.stdin.flush()
        assert process.stdout.readline() == b'{"n":%d}\n' % n
    ends(process)
    records = [each for each in records_of(out) if each["kind"] == "message"]
    expected = [(side, n) for n in range(500) for side in ("client", "server")]
    assert [(each["sender"], each["message"]["n"]) for each in records] == expected
    times = [each["t"] for each in records]
    assert times == sorted(times)


def test_a_last_line_without_a_newline_is_kept_and_told(proxied: Start, out: Path) -> None:
    ends(proxied(ECHO), b'{"n":1}\n{"n":')
    told = [each["detail"] for each in records_of(out) if each["kind"] == "trouble"]
    assert told == ["the last line has no newline, from the client"]
    cut_off = [each["text"] for each in records_of(out) if each["kind"] == "leftover"]
    assert cut_off == ['{"n":']  # the client had left: the server may have had more to say
    assert said(out, "client") == b'{"n": 1}\n{"n":\n'


# -- every end is passed on ----------------------------------------------------------------


def test_the_end_of_input_reaches_the_server_which_may_still_speak(proxied: Start) -> None:
    code = "import sys; sent = sys.stdin.read(); print('bye', len(sent)); sys.exit(3)"
    assert ends(proxied(code), b"12345") == (3, b"bye 5\n", b"")


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_the_exit_code_of_the_server_is_ours(proxied: Start, out: Path, code: int) -> None:
    assert ends(proxied(f"raise SystemExit({code})"))[0] == code
    assert not out.exists() or records_of(out)[-2] == {**records_of(out)[-2], "code": code}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_that_ended_the_server_is_told_as_shells_do(
    proxied: Start, out: Path, number: signal.Signals
) -> None:
    code = f"import os; print('hi'); os.kill(os.getpid(), {int(number)})"
    assert ends(proxied(code)) == (128 + number, b"hi\n", b"")
    assert records_of(out)[-2]["signal"] == number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_us_is_a_signal_to_the_server(proxied: Start, number: signal.Signals) -> None:
    code = (
        "import signal, sys\n"
        f"signal.signal({int(number)}, lambda n, f: (print('signal', n), sys.exit(9)))\n"
        "print('ready')\n"
        "while True: signal.pause()\n"
    )
    process = proxied(code)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert ends(process) == (9, f"signal {int(number)}\n".encode(), b"")


def test_stderr_comes_through_and_is_recorded(proxied: Start, out: Path) -> None:
    code = "import sys; sys.stderr.write('one\\n\\x1b[1mtwo\\x1b[0m\\nno newline')"
    exit_code, stdout, stderr = ends(proxied(code))
    assert (exit_code, stdout) == (0, b"")
    assert stderr == b"one\n\x1b[1mtwo\x1b[0m\nno newline"
    texts = [each["text"] for each in records_of(out) if each["kind"] == "stderr"]
    assert texts == ["one", "\x1b[1mtwo\x1b[0m", "no newline"]


def test_a_server_that_dies_first_ends_us_although_the_client_goes_on(proxied: Start) -> None:
    process = proxied("print('last words'); raise SystemExit(6)")
    assert process.wait(BOUND) == 6  # with our stdin still open
    assert process.stdout is not None
    assert process.stdout.read() == b"last words\n"


def test_a_server_that_does_not_read_does_not_keep_us_when_it_dies(proxied: Start) -> None:
    """The bytes that it never took are stuck in its pipe, and so is our writer."""
    process = proxied("import signal\nprint('ready')\nwhile True: signal.pause()")
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    stdin, under_way = process.stdin, threading.Event()

    def flood() -> None:
        with contextlib.suppress(OSError):  # as it should be in the end
            for _ in range(64):
                stdin.write(b"z" * 65536)
                under_way.set()

    writer = threading.Thread(target=flood)
    writer.start()
    assert under_way.wait(BOUND)
    process.send_signal(signal.SIGTERM)
    assert process.wait(BOUND) == 128 + signal.SIGTERM
    writer.join(BOUND)
    assert not writer.is_alive()


def test_a_slow_client_still_gets_the_last_words_of_a_dead_server(proxied: Start) -> None:
    size = 150_000  # more than one pipe holds, less than the two between the server and us
    code = "import os, sys; sys.stderr.write(f'{os.getpid()}\\n'); sys.stdout.write('w' * %d)"
    process = proxied(f"{code % size}; sys.exit(2)")
    assert process.stdout is not None
    assert process.stderr is not None
    server = int(process.stderr.readline())
    wait_until(lambda: not is_alive(server), "the end of the server")
    assert len(process.stdout.read()) == size
    assert process.wait(BOUND) == 2


def test_a_server_that_closes_its_output_and_goes_on_is_told_to_the_client(proxied: Start) -> None:
    code = (
        "import os, sys\n"
        "os.write(1, b'last')\nos.dup2(os.open('/dev/null', 1), 1)\n"
        "sys.exit(len(sys.stdin.read()))\n"
    )
    process = proxied(code)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.read() == b"last"
    assert process.poll() is None
    process.stdin.write(b"12345")
    process.stdin.close()
    process.stdin = None
    assert process.wait(BOUND) == 5


def test_a_server_that_closes_its_input_and_goes_on_is_told_to_the_client(proxied: Start) -> None:
    process = proxied("import os, signal; os.close(0); os.open('/dev/null', 0); signal.pause()")
    assert process.stdin is not None
    with pytest.raises(BrokenPipeError):
        process.stdin.write(b"x" * 100_000_000)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.stdin = None
    process.terminate()
    assert process.wait(BOUND) == 128 + signal.SIGTERM


def test_a_signal_ends_the_wait_for_a_client_that_never_reads(proxied: Start, out: Path) -> None:
    """The server is gone, so the signal is for us; what was recorded is complete all the same."""
    size = (
        1_500_000  # more than the client's pipe holds, less than the two between the server and us
    )
    code = "import os, sys; sys.stderr.write(f'{os.getpid()}\\n'); sys.stdout.write('w' * %d)"
    process = proxied(code % size)
    assert process.stderr is not None
    server = int(process.stderr.readline())
    wait_until(lambda: not is_alive(server), "the end of the server")
    process.send_signal(signal.SIGTERM)
    assert process.wait(BOUND) == 128 + signal.SIGTERM
    assert records_of(out)[-1]["kind"] == "end"


def test_a_client_that_stops_reading_is_told_to_the_server(proxied: Start) -> None:
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "while True: os.write(1, b'x' * 65536)\n"
    )
    process = proxied(code)
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(BOUND) == 128 + signal.SIGPIPE


def test_a_grandchild_that_holds_the_pipe_does_not_keep_us(proxied: Start, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))\n"
        "print('parent is done')\n"
    )
    began = time.monotonic()
    assert ends(proxied(code))[:2] == (0, b"parent is done\n")
    assert time.monotonic() - began < BOUND
    assert not is_alive(int(pid_file.read_text()))


@pytest.mark.parametrize("peculiarity", ["silent", "deaf"])
def test_a_client_that_dies_takes_us_and_the_server_with_it(
    out: Path, tmp_path: Path, peculiarity: str
) -> None:
    pid_file, noted = tmp_path / "pid", tmp_path / "noted"
    code = (
        "import signal, os, sys\n"
        + ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if peculiarity == "deaf" else "")
        + f"open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
        f"os.rename({str(pid_file)!r}, {str(noted)!r})\n"
        "while True: signal.pause()\n"
    )
    command = [*proxy_command(out), sys.executable, "-c", code]
    client = (
        "import subprocess, sys, os\n"
        f"proxy = subprocess.Popen({command!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"while not os.path.exists({str(noted)!r}): os.sched_yield()\n"
        "print(proxy.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", client], capture_output=True, timeout=BOUND)
    proxy = int(done.stdout)
    server = int(noted.read_text())
    wait_until(lambda: not is_alive(server), "the end of the server")
    wait_until(lambda: not is_alive(proxy), "the end of the proxy")
    assert records_of(out)[-1]["kind"] == "end"


# -- through the front door ----------------------------------------------------------------


@pytest.mark.parametrize("revision", [Revision.V2025_06_18, Revision.V2026_07_28])
def test_a_whole_session_goes_through_and_can_be_judged(out: Path, revision: Revision) -> None:
    command = [*proxy_command(out), sys.executable, "-m", "mcptest.servers.demo"]
    with Client(Stdio(command, sink=discard), revision=revision) as client:
        assert len(client.list_all("tools/list")) > 1
        assert client.call_tool("add", {"a": 1, "b": 2}).ok
    assert records_of(out)[-1]["kind"] == "end"
    done = mcptest("compliance", "invariants", "--capture", str(out))
    assert done.code == 0, done.said


def test_the_public_form_is_written_at_the_end(out: Path) -> None:
    command = [*proxy_command(out, "--form", "exchanges"), *awkward("ordinary")]
    transport = Stdio(command, sink=discard)
    with Client(transport, revision=Revision.V2025_11_25) as client:
        client.request("ping")
        client.close(Deadline.after(BOUND))
    session = json.loads(out.read_bytes())
    assert [each["request"]["method"] for each in session["exchanges"]] == [
        "initialize",
        "notifications/initialized",
        "ping",
    ]
    assert list(out.parent.iterdir()) == [out]


def test_the_server_gets_the_environment_that_the_client_gave_us(proxied: Start) -> None:
    code = "import os; print(os.environ['FROM_CLIENT'], os.environ['NAMED'])"
    process = proxied(
        code, options=("--env", "NAMED=here-too"), env={**os.environ, "FROM_CLIENT": "passed-on"}
    )
    assert ends(process) == (0, b"passed-on here-too\n", b"")


def test_a_secret_goes_through_and_is_not_written(proxied: Start, out: Path) -> None:
    code = "import os, json; print(json.dumps({'a': os.environ['TOKEN']}))"
    process = proxied(code, options=("--env", "TOKEN=very-secret-value"))
    assert ends(process) == (0, b'{"a": "very-secret-value"}\n', b"")
    assert b"very-secret-value" not in out.read_bytes()
    assert messages_of(out) == [{"a": "***"}]


def test_a_server_that_can_not_be_started_is_told_on_stderr_only(out: Path) -> None:
    done = mcptest("record", "--proxy", "--out", str(out), "--", "no-such-command-anywhere")
    assert (done.code, done.out) == (3, "")
    assert "command not found" in done.err
    assert not out.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_capture_that_can_not_be_written_does_not_touch_the_stream() -> None:
    command = [*proxy_command(Path("/dev/full")), sys.executable, "-u", "-c", ECHO]
    done = subprocess.run(command, input=b'{"n":1}\n', capture_output=True, timeout=BOUND)
    assert done.stdout == b'{"n":1}\n'
    assert done.returncode == 1
    assert b"/dev/full is not complete: No space left on device" in done.stderr


# -- others' clients and servers -----------------------------------------------------------


@pytest.mark.peer
def test_the_sdk_client_uses_a_real_server_through_the_proxy(out: Path) -> None:
    anyio = pytest.importorskip("anyio", reason="the SDK client is one of the pinned peers")
    from mcp import Client as SdkClient
    from mcp import StdioServerParameters

    command, *arguments = [*proxy_command(out), *PYTHON_SDK, "stdio"]
    server = StdioServerParameters(command=command, args=arguments)

    async def session() -> None:
        with anyio.fail_after(BOUND):
            async with SdkClient(server) as client:
                assert "add" in [tool.name for tool in (await client.list_tools()).tools]
                assert not (await client.call_tool("add", {"a": 1, "b": 2})).is_error
                assert (await client.call_tool("fail", {"reason": "why not"})).is_error

    anyio.run(session)
    wait_until(out.exists, "the capture")
    called = [each for each in messages_of(out, "client") if each.get("method") == "tools/call"]
    assert [each["params"]["name"] for each in called] == ["add", "fail"]


@pytest.mark.peer
def test_mcp_assert_runs_a_suite_through_the_proxy(out: Path, tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    suite = {
        "name": "the time",
        "server": {
            "command": sys.executable,
            "args": [*proxy_command(out)[1:], str(folder / "mcp-server-time")],
        },
        "assert": {
            "tool": "get_current_time",
            "args": {"timezone": "UTC"},
            "expect": {"not_error": True, "contains": ["UTC"]},
        },
    }
    (tmp_path / "suite.yaml").write_text(json.dumps(suite))
    words = [str(folder / "mcp-assert"), "run", "--suite", str(tmp_path / "suite.yaml")]
    done = subprocess.run(words, capture_output=True, timeout=BOUND)
    assert done.returncode == 0, done.stdout
    wait_until(out.exists, "the capture")
    assert messages_of(out, "client")[-1]["params"]["name"] == "get_current_time"
