"""The public API is typed: a consumer of the installed wheel is checked strictly."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.e2e.driving import BOUND
from tests.packaging.installing import Installed, link_distributions

CONSUMER = '''
"""A test as somebody would write it who has mcptest from a package index."""

from pathlib import Path
from typing import assert_type

from hypothesis import given
from hypothesis.strategies import SearchStrategy

import mcptest
from mcptest.strategies import Crafted, requests, tool_arguments
from mcptest.testing import (
    AsyncClient,
    Client,
    McptestError,
    PeerError,
    Reply,
    Server,
    assert_conforms,
    capture_of,
    text_of,
)


def test_the_server_greets(tmp_path: Path) -> None:
    server = Server(("python", "server.py"), env={"A": "b"}).but(revision="2025-06-18")
    with server.connect(tmp_path / "session.jsonl") as client:
        assert_type(client, Client)
        reply = client.request("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
        assert_type(reply, Reply)
        assert_type(text_of(reply), str)
        assert_type(capture_of(client), Path)
        assert_conforms(client, strict=True)


async def greeting(client: AsyncClient) -> str:
    try:
        return text_of(await client.request("tools/call", {"name": "echo", "arguments": {}}))
    except PeerError as error:
        raise SystemExit(str(error)) from None
    except McptestError as error:
        return error.message


@given(message=requests("2025-11-25"))
def test_any_request_is_answered(message: Crafted) -> None:
    assert_type(mcptest.__version__, str)


ANYTHING: SearchStrategy[object] = tool_arguments({"type": "object"})
WRONG: int = text_of(Server("demo"))  # line of the mistakes
'''


def test_a_consumer_of_the_wheel_is_checked_strictly(place: Installed, tmp_path: Path) -> None:
    """Two mistakes in one line are found; everything else is as typed as it says."""
    python = with_hypothesis(place, tmp_path / "environment")
    consumer = tmp_path / "test_consumer.py"
    consumer.write_text(CONSUMER)
    words = ["--strict", "--no-incremental", "--cache-dir", os.devnull, "--hide-error-context"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, "--python-executable", python, consumer.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    *found, summary = done.stdout.splitlines()
    mistaken = CONSUMER.splitlines().index(next(x for x in CONSUMER.splitlines() if "WRONG" in x))
    assert summary == "Found 2 errors in 1 file (checked 1 source file)", done.stdout
    assert {line.split(":")[1] for line in found} == {str(mistaken + 1)}
    assert {line.rsplit("[", 1)[1] for line in found} == {"assignment]", "arg-type]"}


def with_hypothesis(place: Installed, folder: Path) -> Path:
    """An environment beside the installed one that has what the extra `property` brings."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (theirs,) = (place.folder / "lib").glob("python*/site-packages")
    (packages / "mcptest.pth").write_text(f"{theirs}\n")
    link_distributions(["hypothesis", "sortedcontainers"], packages)
    return folder / "bin" / "python"
