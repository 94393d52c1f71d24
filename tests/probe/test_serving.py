"""From what a suite and a command line say to the server that is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.masking import Masker
from mcptest.core.redaction import redaction
from mcptest.probe.suites.server_start import is_remote, target_for
from mcptest.probe.suites.settings import ServerChoice
from mcptest.suite.model import ServerSpec

SPEC = ServerSpec(command="server", args=("a",), env={"A": "suite"}, cwd="/")


def test_the_command_line_replaces_the_command_and_keeps_the_rest() -> None:
    target = target_for(SPEC, ServerChoice("other 'one word' {{fixture}}"), "/data")
    assert target.command == ("other", "one word", "/data")
    assert (target.env, target.cwd) == ({"A": "suite"}, "/")
    words = ServerChoice(command=("demo", "{{fixture}}"))
    assert target_for(SPEC, words, "/data").command == ("demo", "/data")


def test_a_url_of_the_suite_is_not_replaced_by_a_command() -> None:
    spec = ServerSpec(transport="http", url="http://127.0.0.1:1/mcp")
    assert target_for(spec, ServerChoice("other"), "").url == "http://127.0.0.1:1/mcp"
    assert is_remote(spec, ServerChoice("other"))


def test_a_configured_server_keeps_its_own_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY_OF_TEST", "very-secret-value")
    entry = {"command": "configured", "env": {"KEY": "${KEY_OF_TEST}", "A": "config"}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"mine": entry}}))
    target = target_for(SPEC, ServerChoice("mine"), "")
    assert target.env == {"KEY": "very-secret-value", "A": "suite"}
    assert redaction.masker.text("is very-secret-value") == "is ***"


@pytest.mark.parametrize("kept", range(5, 20))
@pytest.mark.parametrize("end", ["", "…", '"', "...", '…"}'])
def test_what_a_cut_left_of_a_secret_is_hidden(kept: int, end: str) -> None:
    secret = "sk-live-0123456789ab"
    masker = Masker([secret])
    line = f"got: {secret[:kept]}{end}"
    assert masker.cut_text(f"{line}\nmore") == f"got: ***{end}\nmore"
    assert masker.cut_text("nothing of the kind…") == "nothing of the kind…"


def test_a_server_without_a_command_is_said() -> None:
    with pytest.raises(UsageError, match="no command"):
        target_for(ServerSpec(), ServerChoice(), "")
