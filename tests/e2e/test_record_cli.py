"""`mcptest record`, the real command, against servers of every kind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.revision import HANDSHAKE_REVISIONS
from tests.e2e.driving import (
    BOUND,
    NPM,
    PYTHON_SDK,
    Done,
    awkward,
    free_port,
    is_alive,
    listening,
    mcptest,
    messages_of,
    record,
    records_of,
    wait_until,
)

SECRET = "s3cr3t/Välue+of=mine"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "capture.jsonl"


def methods_in(path: Path) -> list[str]:
    return [each["method"] for each in messages_of(path, "client") if "method" in each]


def succeeded(done: Done, out: Path) -> list[dict[str, Any]]:
    """A recording that went well in every step; gives its records."""
    assert done.code == 0, done.said
    assert "✗" not in done.err
    assert f"to {out}\n" in done.out
    records = records_of(out)
    assert records[0]["kind"] == "capture"
    assert records[-1]["kind"] == "end"
    assert records[-1]["records"] == len(records) - 1
    return records


# -- the demo ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "revision", ["auto", *map(str, HANDSHAKE_REVISIONS), "2026-07-28", "draft"]
)
def test_the_demo_is_recorded_in_every_revision(out: Path, revision: str) -> None:
    done = record(out, "--server", "demo", "--spec-version", revision)
    records = succeeded(done, out)
    assert records[0]["transport"] == "stdio"
    assert records[0]["spec_version"] == revision
    assert any(each["kind"] == "exit" and each.get("code") == 0 for each in records)
    assert {"tools/list", "resources/list", "resources/read", "prompts/list"} <= set(
        methods_in(out)
    )
    old = revision in map(str, HANDSHAKE_REVISIONS)
    assert ("initialize" in methods_in(out)) is old
    assert ("server/discover" in methods_in(out)) is not old


def test_times_never_go_back(out: Path) -> None:
    records = succeeded(record(out, "--server", "demo"), out)
    times = [each.get("t", 0.0) for each in records]
    assert times == sorted(times)


def test_named_tools_and_resources_are_asked_for(out: Path) -> None:
    done = record(
        out, "--server", "demo", "--call", 'add={"a": 2, "b": 3}', "--read", "demo://logo"
    )
    succeeded(done, out)
    calls = [each for each in messages_of(out, "client") if each.get("method") == "tools/call"]
    reads = [each for each in messages_of(out, "client") if each.get("method") == "resources/read"]
    assert [each["params"]["arguments"] for each in calls] == [{"a": 2, "b": 3}]
    assert [each["params"]["uri"] for each in reads] == ["demo://logo"]


def test_the_public_form_holds_requests_with_their_responses(out: Path) -> None:
    done = record(out, "--server", "demo", "--form", "exchanges")
    assert done.code == 0, done.said
    session = json.loads(out.read_bytes())
    assert set(session) == {"server_label", "server_capabilities", "exchanges"}
    assert session["server_label"] == "demo"
    assert "tools" in session["server_capabilities"]
    first = session["exchanges"][0]
    assert first["request"]["method"] == "server/discover"
    assert first["response"]["id"] == first["request"]["id"]
    assert list(out.parent.iterdir()) == [out]


def test_both_forms_tell_the_same_story(tmp_path: Path) -> None:
    full, public = tmp_path / "full.jsonl", tmp_path / "public.json"
    record(full, "--server", "demo", "--spec-version", "2025-06-18")
    record(public, "--server", "demo", "--spec-version", "2025-06-18", "--form", "exchanges")
    exchanges = json.loads(public.read_bytes())["exchanges"]
    assert [each["request"]["method"] for each in exchanges] == methods_in(full)


@pytest.mark.parametrize("form", ["full", "exchanges"])
def test_a_recording_can_be_judged(out: Path, form: str) -> None:
    assert record(out, "--server", "demo", "--format", form).code == 0
    done = mcptest("compliance", "invariants", "--capture", str(out))
    assert done.code == 0, done.said


def test_quiet_says_nothing_when_all_is_well(out: Path) -> None:
    done = record(out, "--server", "demo", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_capture_is_for_its_owner_only(out: Path) -> None:
    record(out, "--server", "demo")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


# -- real servers --------------------------------------------------------------------------


@pytest.mark.peer
@pytest.mark.parametrize("revision", ["auto", "2025-06-18"])
def test_a_server_of_the_python_sdk_is_recorded_over_stdio(out: Path, revision: str) -> None:
    done = record(out, "--spec-version", revision, command=(*PYTHON_SDK, "stdio"))
    succeeded(done, out)
    assert "tools/call add" in done.err
    assert "prompts/get greet" in done.err
    assert f"MCP {'2026-07-28' if revision == 'auto' else revision}" in done.err


@pytest.mark.peer
def test_a_server_of_the_python_sdk_is_recorded_over_http(tmp_path: Path) -> None:
    port = free_port()
    command = (*PYTHON_SDK, "streamable-http", str(port))
    with listening(command, "Uvicorn running"):
        for revision in ("auto", "2025-11-25", "2025-03-26"):
            out = tmp_path / f"{revision}.jsonl"
            url = f"http://127.0.0.1:{port}/mcp"
            records = succeeded(record(out, "--server", url, "--spec-version", revision), out)
            assert records[0]["transport"] == "http"
            requests = [each for each in records if each["kind"] == "http-request"]
            assert (requests[-1]["method"] == "DELETE") is (revision != "auto")


@pytest.mark.peer
@pytest.mark.parametrize("revision", ["auto", "2024-11-05"])
def test_the_time_server_is_recorded(out: Path, revision: str) -> None:
    server = str(Path(sys.executable).with_name("mcp-server-time"))
    done = record(out, "--spec-version", revision, command=[server])
    succeeded(done, out)
    assert "tools/call get_current_time" in done.err


EVERYTHING = ("node", str(NPM / "server-everything" / "dist" / "index.js"))


@pytest.mark.npm
@pytest.mark.parametrize("revision", ["auto", "2025-06-18"])
def test_server_everything_is_recorded_over_stdio(out: Path, revision: str) -> None:
    done = record(out, "--spec-version", revision, command=(*EVERYTHING, "stdio"))
    succeeded(done, out)
    assert "tools/call echo" in done.err


@pytest.mark.npm
@pytest.mark.parametrize(
    ("mode", "ready", "path", "transport"),
    [
        ("streamableHttp", "listening on port", "/mcp", "http"),
        ("sse", "is running on port", "/sse", "sse"),
    ],
)
def test_server_everything_is_recorded_over_the_network(
    out: Path, mode: str, ready: str, path: str, transport: str
) -> None:
    port = free_port()
    with listening((*EVERYTHING, mode), ready, {"PORT": str(port)}):
        done = record(out, "--server", f"http://127.0.0.1:{port}{path}")
    records = succeeded(done, out)
    assert records[0]["transport"] == transport
    assert "tools/call echo" in done.err


@pytest.mark.npm
def test_a_server_of_the_old_transport_is_found_behind_any_guess(out: Path) -> None:
    port = free_port()
    with listening((*EVERYTHING, "sse"), "is running on port", {"PORT": str(port)}):
        url = f"http://127.0.0.1:{port}/sse"
        done = record(out, "--server", url, "--transport", "http")
    assert done.code == 0, done.said
    opened = [each["transport"] for each in records_of(out) if each["kind"] == "capture"]
    assert opened == ["sse"]


@pytest.mark.npm
@pytest.mark.parametrize("server", ["server-filesystem", "server-memory"])
def test_other_npm_servers_are_recorded(out: Path, tmp_path: Path, server: str) -> None:
    (tmp_path / "data").mkdir()
    arguments = [str(tmp_path / "data")] if server == "server-filesystem" else []
    command = ["node", str(NPM / server / "dist" / "index.js"), *arguments]
    env = ("--env", f"MEMORY_FILE_PATH={tmp_path / 'data' / 'memory.jsonl'}")
    done = record(out, *(env if server == "server-memory" else ()), command=command)
    succeeded(done, out)


# -- servers that misbehave ----------------------------------------------------------------


def test_a_banner_is_kept_and_does_not_end_the_session(out: Path) -> None:
    done = record(out, command=awkward("banner"))
    assert done.code == 0, done.said
    texts = [
        each["text"] for each in records_of(out) if "text" in each and each["kind"] == "message"
    ]
    assert texts == ["Welcome to the \x1b[1mawkward\x1b[0m server!"]
    assert "\x1b[1mawkward" not in done.said


def test_a_server_that_only_greets_is_told_with_its_greeting(out: Path) -> None:
    done = record(out, "--timeout", "2s", command=awkward("only-banner"))
    assert done.code == 3
    assert "gave no usable answer to server/discover or initialize within 2s" in done.err
    assert "Welcome! Listening on port 3000" in done.err
    assert not any(line.lstrip().startswith("::") for line in done.said.splitlines())


def test_a_server_that_never_answers_is_told_in_time(out: Path) -> None:
    began = time.monotonic()
    done = record(out, "--timeout", "500ms", command=awkward("silent"))
    assert time.monotonic() - began < BOUND / 2
    assert done.code == 3
    assert "within 0.5s; it sent nothing" in done.err


def test_a_server_that_exits_at_once_is_told_with_its_code_and_last_words(out: Path) -> None:
    done = record(out, command=awkward("exits"))
    assert done.code == 3
    assert "the server exited with code 7" in done.err
    assert "stderr: cannot find the database" in done.err
    exits = [each["code"] for each in records_of(out) if each["kind"] == "exit"]
    assert set(exits) == {7}


def test_a_server_that_dies_in_the_middle_is_a_failure_and_its_capture_is_kept(out: Path) -> None:
    done = record(out, command=awkward("dies-later"))
    assert done.code == 1
    assert "was killed by SIGKILL" in done.err
    assert "stderr: out of memory" in done.err
    records = records_of(out)
    assert [each["signal"] for each in records if each["kind"] == "exit"] == [signal.SIGKILL]
    assert records[-1]["kind"] == "end"
    assert "interrupted" not in records[-1]


@pytest.mark.parametrize("form", ["full", "exchanges"])
def test_a_server_that_dies_of_the_probe_is_met_again(out: Path, form: str) -> None:
    done = record(out, "--format", form, command=awkward("dies-of-discover"))
    assert done.code == 0, done.said
    if form == "exchanges":
        session = json.loads(out.read_bytes())
        assert session["exchanges"][0]["request"]["method"] == "initialize"
        return
    opened = [each for each in records_of(out) if each["kind"] == "capture"]
    assert [each["revision_reason"] for each in opened] == ["the server exited at server/discover"]
    assert methods_in(out)[0] == "initialize"


def test_a_deaf_server_is_ended_all_the_same(out: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    began = time.monotonic()
    done = record(out, "--timeout", "1s", command=awkward("deaf", str(pid_file)))
    assert time.monotonic() - began < BOUND / 2
    assert done.code == 3
    assert not is_alive(int(pid_file.read_text()))


@pytest.mark.parametrize(
    ("number", "server"),
    [(signal.SIGINT, "stuck-call"), (signal.SIGTERM, "slow-call"), (signal.SIGHUP, "slow-call")],
)
def test_an_interrupted_recording_keeps_what_it_has_and_leaves_nobody_behind(
    out: Path, tmp_path: Path, number: signal.Signals, server: str
) -> None:
    pid_file = tmp_path / "pid"
    command = [sys.executable, "-m", "mcptest", "record", "--out", str(out), "--"]
    with (
        subprocess.Popen(
            [*command, *awkward(server, str(pid_file))],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process,
        _killed_at_last(process),
    ):
        pid = int(wait_until(lambda: pid_file.exists() and pid_file.read_text(), "the call"))
        process.send_signal(number)
        _, err = process.communicate(timeout=BOUND)
    assert process.returncode == 130
    assert b"mcptest: interrupted" in err
    assert not is_alive(pid)
    assert records_of(out)[-1]["interrupted"] is True
    assert methods_in(out)[-1] == "tools/call"


@contextlib.contextmanager
def _killed_at_last(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        process.kill()
        raise


# -- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["--server", "no-such-command-anywhere"], 3, "command not found"),
        (["--server", "/"], 3, "is a directory, not a program"),
        (["--server", "http://127.0.0.1:1/mcp"], 3, "can't connect"),
        ([], 2, "no server is named"),
        (["--server", "demo", "--spec-version", "2025-06-17"], 2, "unknown spec version"),
        (["--server", "demo", "--timeout", "soon"], 2, "--timeout: invalid duration"),
        (["--server", "demo", "--call", "add={"], 2, "add: the arguments are not valid JSON"),
        (["--server", "demo", "--call", "add=[1]"], 2, "the arguments are not an object"),
        (["--server", "demo", "--call", "a=" + "[" * 99_999], 2, "are not valid JSON"),
        (["--server", "demo", "--", "server"], 2, "given twice"),
        (["--server", "demo", "--header", "X"], 2, "--header takes K=V"),
        (["--server", "ftp://example.com/"], 2, "only http and https"),
        (["--server", "http://user:pw@example.com/"], 2, "user name or password"),
        (["--server", "http://127.0.0.1:1/", "--header", "X=a\nb"], 2, "header"),
        (["--server", "http://127.0.0.1:1/", "--header", "X y=1"], 2, "header"),
        (["--server", "demo", "--form", "yaml"], 2, "yaml is not one of full, exchanges"),
        (["--server", "demo", "--proxy", "--call", "x"], 2, "do not work with --proxy"),
        (["--server", "demo", "--proxy", "--listen", "127.0.0.1:0"], 2, "need a server with a URL"),
    ],
)
def test_bad_input_is_one_clear_message_and_no_file(
    out: Path, argv: list[str], code: int, words: str
) -> None:
    done = record(out, *argv)
    assert done.code == code, done.said
    assert words in done.err
    assert "Traceback" not in done.err
    assert "internal error" not in done.err
    assert "pw" not in done.said
    assert list(out.parent.iterdir()) == []


def test_out_is_asked_for() -> None:
    done = mcptest("record", "--server", "demo")
    assert done.code == 2
    assert "--out" in done.err


@pytest.mark.parametrize("form", ["full", "exchanges"])
@pytest.mark.parametrize("place", ["folder", "file/below"])
def test_a_place_that_can_not_be_written_is_told_before_anything_starts(
    tmp_path: Path, form: str, place: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    started = tmp_path / "started"
    done = record(tmp_path / place, "--format", form, command=awkward("deaf", str(started)))
    assert done.code == 2, done.said
    assert "can't write" in done.err
    assert not started.exists()


@pytest.mark.parametrize("form", ["full", "exchanges"])
@pytest.mark.parametrize("command", [("no-such-command",), awkward("exits")])
def test_an_older_capture_is_kept_when_the_session_never_begins(
    out: Path, form: str, command: tuple[str, ...]
) -> None:
    out.write_text("older")
    done = record(out, "--format", form, command=command)
    assert done.code == 3
    assert out.read_text() == "older"
    assert "is unchanged" in done.err
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("form", ["full", "exchanges"])
def test_a_full_device_is_told_and_is_no_success(form: str, tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = record(Path("/dev/full"), "--server", "demo", "--format", form, env=env)
    assert done.code == 1
    kept = list(tmp_path.iterdir())
    assert len(kept) == (form == "exchanges")
    assert all(f"the recording is in {each}" in done.err for each in kept)
    assert "No space left on device" in done.err
    assert [*Path("/dev").glob(".full*"), *Path("/dev").glob("full.*")] == []


def test_two_recordings_of_one_name_do_not_mix(out: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    command = [sys.executable, "-m", "mcptest", "record", "--out", str(out), "--"]
    with (
        subprocess.Popen(
            [*command, *awkward("slow-call", str(pid_file))],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        ) as process,
        _killed_at_last(process),
    ):
        wait_until(lambda: pid_file.exists() and pid_file.read_text(), "the call")
        done = record(out, "--server", "demo")
        process.send_signal(signal.SIGINT)
        process.wait(BOUND)
    assert done.code == 2
    assert "another mcptest is writing" in done.err
    assert methods_in(out)[-1] == "tools/call"


# -- secrets -------------------------------------------------------------------------------


def spellings_in(data: bytes, secret: str) -> list[str]:
    """What a reader could make of the bytes: the secret itself, or JSON that decodes to it."""
    return [text for text in (data.decode(), *_strings_in(data)) if secret in text]


def _strings_in(data: bytes) -> Iterator[str]:
    for line in data.splitlines():
        with contextlib.suppress(ValueError):
            stack = [json.loads(line)]
            while stack:
                value = stack.pop()
                if isinstance(value, str):
                    yield value
                elif isinstance(value, dict):
                    stack += [*value, *value.values()]
                elif isinstance(value, list):
                    stack += value


@pytest.mark.parametrize("form", ["full", "exchanges"])
def test_a_secret_that_the_server_repeats_is_nowhere(out: Path, form: str) -> None:
    done = record(
        out, "--format", form, "--env", f"AWKWARD_SECRET={SECRET}", command=awkward("tells-all")
    )
    assert done.code == 0, done.said
    assert "***" in done.err
    assert SECRET not in done.said
    assert "***" in out.read_text()
    assert spellings_in(out.read_bytes(), SECRET) == []


def test_a_secret_in_the_last_words_of_a_server_is_not_shown(out: Path) -> None:
    done = record(out, "--env", f"AWKWARD_SECRET={SECRET}", command=awkward("tells-all-and-exits"))
    assert done.code == 3
    assert "bad credentials: ***" in done.err
    assert SECRET not in done.said
    assert spellings_in(out.read_bytes(), SECRET) == []


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_a_secret_of_a_configuration_is_nowhere(out: Path, debug: tuple[str, ...]) -> None:
    config = out.with_name("config.json")
    entry = {
        "command": sys.executable,
        "args": ["-c", "import sys; sys.exit(sys.argv[1])", "${MY_TOKEN}"],
    }
    config.write_text(json.dumps({"mcpServers": {"mine": entry}}))
    done = record(
        out,
        *("--server", "mine", "--mcp-config", str(config), *debug),
        env={**os.environ, "MY_TOKEN": SECRET},
    )
    assert done.code == 3
    assert "***" in done.err
    assert SECRET not in done.said
    assert SECRET not in out.read_text()


@pytest.mark.peer
def test_a_header_is_sent_and_masked(out: Path) -> None:
    port = free_port()
    with listening((*PYTHON_SDK, "streamable-http", str(port)), "Uvicorn running"):
        done = record(
            out,
            *("--server", f"http://127.0.0.1:{port}/mcp"),
            *("--header", "Authorization=Bearer abcdef123456", "--header", "X-Key: k3y-value"),
        )
    assert done.code == 0, done.said
    requests = [each for each in records_of(out) if each["kind"] == "http-request"]
    for each in requests:
        headers = {name.lower(): value for name, value in each["headers"]}
        assert headers["authorization"] == "Bearer ***"
        assert headers["x-key"] == "***"
    assert requests
    assert b"abcdef123456" not in out.read_bytes()
    assert b"k3y-value" not in out.read_bytes()
