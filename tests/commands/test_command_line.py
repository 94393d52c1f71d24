"""The line that repeats something can be pasted, and holds no secret."""

from __future__ import annotations

import argparse
import os
import subprocess
from typing import Any

import pytest

from mcptest.commands.command_line import as_one_word, repeat_line, server_options

SECRETS = {"API_KEY": "k-1'\"$x y", "MCP_AUTHORIZATION": "Bearer t-123 456"}


def given(**more: Any) -> argparse.Namespace:
    none: dict[str, Any] = {
        "server": None,
        "server_command": [],
        "transport": None,
        "cwd": None,
        "mcp_config": None,
        "header": [],
        "headers": "",
        "env": [],
    }
    return argparse.Namespace(**{**none, **more})


def line_of(arguments: argparse.Namespace) -> str:
    return repeat_line(server_options(arguments), arguments)


def pasted(line: str, **variables: str) -> list[str]:
    """The words that a program gets of it."""
    told = subprocess.run(
        ["sh", "-c", f"printf '%s\\0' {line}"],
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        check=True,
        timeout=240,
    )
    return told.stdout.decode().split("\0")[:-1]


def test_a_secret_is_written_as_a_variable_and_everything_else_as_it_is() -> None:
    arguments = given(server="npx s", env=["API_KEY=k-123456", "BASE_URL=https://example.com/v2"])
    assert line_of(arguments) == (
        "--server 'npx s' --env API_KEY=\"$API_KEY\" --env BASE_URL=https://example.com/v2"
    )


def test_a_pasted_line_gives_the_same_words() -> None:
    arguments = given(
        server="http://localhost/mcp",
        env=[f"API_KEY={SECRETS['API_KEY']}", "NAME=it's"],
        header=[f"Authorization: {SECRETS['MCP_AUTHORIZATION']}", "X-Tenant=a b"],
    )
    line = line_of(arguments)
    assert not any(secret in line for secret in SECRETS.values())
    assert pasted(line, **SECRETS) == list(server_options(arguments))


def test_a_variable_that_holds_the_secret_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_OWN", "ghp-123456")
    arguments = given(server="http://localhost/mcp", headers="Authorization=Bearer ghp-123456")
    line = line_of(arguments)
    assert line.endswith("""--header 'Authorization=Bearer '"$MY_OWN\"""")
    assert pasted(line, MY_OWN="ghp-123456") == list(server_options(arguments))


def test_a_secret_within_the_command_of_the_server_is_a_variable_too() -> None:
    arguments = given(server_command=["serve", "--api-key", "k-123456", "/data"])
    line = line_of(arguments)
    assert line == """--server 'serve --api-key '"$API_KEY"' /data'"""
    assert pasted(line, API_KEY="k-123456") == list(server_options(arguments))


def test_a_command_of_one_word_is_not_taken_for_a_name() -> None:
    assert as_one_word(["serve"]) == "'serve'"
    assert as_one_word(["serve", "it"]) == "serve it"
