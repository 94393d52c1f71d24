"""A terminal says what is waited for while a server starts, and nothing of it is left."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from mcptest.commands.app import _starting, parser_of
from mcptest.commands.output import Meanwhile
from tests.terminal.on_a_terminal import on_terminal

LATE = "open({fifo!r}).close(); import runpy; runpy.run_path({server!r})"
"""A server that begins when somebody opens the FIFO."""
SERVER = Path(__file__).with_name("patient_server.py")


def late_server(folder: Path) -> str:
    os.mkfifo(folder / "go")
    code = LATE.format(fifo=str(folder / "go"), server=str(SERVER))
    return shlex.join([sys.executable, "-I", "-c", code])


def let_it_start(folder: Path) -> None:
    os.close(os.open(folder / "go", os.O_WRONLY))


@pytest.mark.parametrize(
    "words", [("lint",), ("generate", "--output", "made"), ("record", "--out", "c.jsonl")]
)
def test_a_start_that_takes_long_is_shown_until_the_command_writes(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    with on_terminal(*words, late_server(tmp_path), cwd=tmp_path) as run:
        assert run.wait_for(r"^starting python\S* … [12]s$")
        run.wait_for(r"^starting python\S* … 3s$")
        let_it_start(tmp_path)
        assert run.end() in {0, 1}
        assert not any("starting" in row for row in run.rows)


def test_an_interrupt_takes_the_line_away(tmp_path: Path) -> None:
    with on_terminal("lint", late_server(tmp_path), cwd=tmp_path) as run:
        run.wait_for(r"^starting ")
        run.process.terminate()
        assert run.end() == 130
        assert run.rows == ["mcptest: interrupted", ""]


@pytest.mark.parametrize(
    ("options", "environment"),
    [(("--quiet",), {}), (("--no-color",), {}), ((), {"CI": "true"}), ((), {"NO_COLOR": "1"})],
)
def test_who_wants_plain_output_sees_no_line(
    options: tuple[str, ...], environment: dict[str, str], tmp_path: Path
) -> None:
    words = ("lint", *options, "--startup-timeout", "2s")
    with on_terminal(*words, late_server(tmp_path), cwd=tmp_path, **environment) as run:
        assert run.end() == 3
        assert "starting" not in run.text
        assert "\x1b" not in run.text


@pytest.mark.parametrize(
    ("words", "command", "shown"),
    [
        (["npx -y my-server"], [], "starting npx"),
        (["/usr/bin/node server.js"], [], "starting node"),
        (["demo"], [], "starting demo"),
        ([], ["/opt/a/server", "x"], "starting server"),
        (["http://127.0.0.1:1/mcp?key=k"], [], "connecting to http://127.0.0.1:1/mcp"),
        ([], [], ""),
    ],
)
def test_the_line_names_the_program_or_the_address(
    words: list[str], command: list[str], shown: str
) -> None:
    arguments = parser_of("lint").parse_args(words)
    arguments.server_command = command
    assert _starting(arguments) == shown


def test_what_is_shown_meanwhile_ends_once_and_draws_no_more() -> None:
    done: list[str] = []
    meanwhile = Meanwhile(lambda _: None)
    meanwhile.draw(lambda: done.append("drawn"), lambda: done.append("cleared"))
    assert not done.count("cleared")
    Meanwhile.end()
    Meanwhile.end()
    meanwhile.draw(lambda: done.append("drawn"), lambda: done.append("cleared"))
    assert done == ["drawn", "cleared"]
    assert not meanwhile.lasts(30)
