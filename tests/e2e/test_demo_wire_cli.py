"""`mcptest serve demo`: the same server behind our own command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.e2e.demo_peer import BOUND, C, initialize_params


def serve(*arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "mcptest", "serve", *arguments]
    return subprocess.run(command, input=data, capture_output=True, timeout=BOUND)


def test_the_demo_is_served_on_stdio_until_the_input_ends() -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params("x")}
    done = serve("demo", "--spec-version", C, data=json.dumps(hello).encode() + b"\n")
    assert done.returncode == 0
    assert json.loads(done.stdout)["result"]["protocolVersion"] == C
    assert done.stderr == b""


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--era", "ancient"],
        ["demo", "--root", "/no/such/folder"],
        ["demo", "--spec-version", C, "--era", "stateless"],
        ["demo", "--nope"],
        ["something"],
        [],
    ],
)
def test_bad_options_are_told_before_anything_starts(arguments: list[str]) -> None:
    done = serve(*arguments)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr


def test_the_module_alone_tells_of_bad_options_too() -> None:
    command = [sys.executable, "-m", "mcptest.servers.demo", "--nope"]
    done = subprocess.run(command, capture_output=True, timeout=BOUND)
    assert done.returncode == 2
    assert b"unknown option '--nope'" in done.stderr
