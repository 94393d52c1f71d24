"""From what a command line says about a server to how it is reached."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.masking import Masker
from mcptest.session.server_spec import ServerWords, target_of
from mcptest.transport.target import DEMO, Target


def named(server: str | None = None, **words: Any) -> Target:
    return target_of(ServerWords(server=server, **words))


def refused(server: str | None = None, **words: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        named(server, **words)
    return caught.value


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a client configuration into the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(servers: Any, name: str = ".mcp.json") -> Path:
        path = tmp_path / name
        path.write_text(
            servers if isinstance(servers, str) else json.dumps({"mcpServers": servers})
        )
        return path

    return write


# -- one string ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "command"),
    [
        ("npx -y my-server /data", ("npx", "-y", "my-server", "/data")),
        ("'my server' \"a b\" c\\ d", ("my server", "a b", "c d")),
        ("server '$HOME' '|' rm", ("server", "$HOME", "|", "rm")),
        ("  server  ", ("server",)),
    ],
)
def test_a_command_line_is_split_by_quotes_and_never_run_through_a_shell(
    server: str, command: tuple[str, ...]
) -> None:
    target = named(server)
    assert (target.way, target.command) == ("stdio", command)


@pytest.mark.parametrize(
    ("url", "way"),
    [
        ("http://127.0.0.1:3001/mcp", "http"),
        ("https://example.com", "http"),
        ("http://127.0.0.1:3001/sse", "sse"),
        ("http://127.0.0.1:3001/sse/", "sse"),
        ("http://127.0.0.1:3001/sse?x=1", "sse"),
        ("http://127.0.0.1:3001/assess", "http"),
    ],
)
def test_a_url_names_its_transport_by_its_path(url: str, way: str) -> None:
    target = named(url, headers={"X": "y"})
    assert (target.way, target.url, target.headers) == (way, url, {"X": "y"})


def test_the_transport_can_be_chosen_against_the_guess() -> None:
    assert named("http://127.0.0.1/sse", way="http").way == "http"
    assert named("http://127.0.0.1/mcp", way="sse").way == "sse"


def test_the_demo_is_started_by_our_own_interpreter() -> None:
    target = named("demo", env={"A": "1"})
    assert target.command == (sys.executable, "-P", "-m", "mcptest.servers.demo")
    assert (target.label, target.env) == ("demo", {"A": "1"})


def test_the_words_after_the_dashes_are_the_command_as_they_are() -> None:
    target = named(command=["demo", "a b", "http://x/"])
    assert target.command == ("demo", "a b", "http://x/")


def test_a_label_is_short_and_safe_to_show() -> None:
    assert (
        named("/usr/bin/python3 /opt/servers/weather.py --fast").label
        == "python3 weather.py --fast"
    )
    assert "\x1b" not in named(command=["server", "\x1b[31m"]).label


@pytest.mark.parametrize(
    ("server", "words", "message"),
    [
        (None, {}, "no server is named"),
        ("", {}, "no server is named"),
        ("  ", {}, "no server is named"),
        ("demo", {"command": ["x"]}, "given twice"),
        ("server 'open", {}, "invalid server command"),
        ("demo", {"way": "http"}, "over stdio"),
        ("demo", {"headers": {"A": "b"}}, "need a server with a URL"),
        ("server", {"way": "sse"}, "needs a URL"),
        ("server", {"headers": {"A": "b"}}, "need a server with a URL"),
        ("http://h/mcp", {"way": "stdio"}, "needs a command"),
        ("http://h/mcp", {"env": {"A": "b"}}, "--env needs a server command"),
        ("http://h/mcp", {"cwd": "/"}, "--cwd needs a server command"),
        ("server", {"cwd": "/no/such/folder"}, "--cwd is not a folder"),
        ("http://", {}, "it names no host"),
        ("http://h:99999/mcp", {}, "Port out of range"),
        ("http://[::1", {}, "invalid URL 'http://[::1'"),
        ("https://h/\x1b[2J", {}, "a space or control character"),
        ("http://h/mcp", {"headers": {"A b": "c"}}, "invalid header name"),
        ("http://h/mcp", {"headers": {"": "c"}}, "invalid header name"),
        ("http://h/mcp", {"headers": {"A": "b\r\nC: d"}}, "the header A has characters"),
        ("http://h/mcp", {"headers": {"A": "\x00"}}, "the header A has characters"),
    ],
)
def test_words_that_do_not_go_together_are_refused(
    server: str | None, words: dict[str, Any], message: str
) -> None:
    assert message in refused(server, **words).message


# -- configurations ------------------------------------------------------------------------


def test_a_name_from_the_configuration_in_this_folder_is_found(config: Callable[..., Path]) -> None:
    config({"files": {"command": "npx", "args": ["fs", "/data"], "env": {"A": "1"}}})
    target = named("files", env={"B": "2"})
    assert target.label == "files"
    assert target.command == ("npx", "fs", "/data")
    assert target.env == {"A": "1", "B": "2"}


def test_a_word_that_the_configuration_does_not_know_is_a_command(
    config: Callable[..., Path],
) -> None:
    config({"files": {"command": "npx"}})
    assert named("other").command == ("other",)
    assert named("files --verbose").command == ("files", "--verbose")


def test_a_named_configuration_has_the_first_word_about_demo(config: Callable[..., Path]) -> None:
    path = config({"demo": {"command": "npx"}}, "other.json")
    assert named("demo", config=path).command == ("npx",)
    assert named("demo").command == DEMO.command


def test_a_named_configuration_must_know_the_name(config: Callable[..., Path]) -> None:
    path = config({"filesystem": {"command": "npx"}}, "other.json")
    error = refused("filesytem", config=path)
    assert "'filesytem'" in error.message
    assert error.hint == "did you mean filesystem? it has: filesystem"


@pytest.mark.parametrize(
    ("entry", "way"),
    [
        ({"url": "http://h/mcp"}, "http"),
        ({"url": "http://h/mcp", "type": "http"}, "http"),
        ({"url": "http://h/events", "type": "sse"}, "sse"),
        ({"url": "http://h/sse"}, "sse"),
    ],
)
def test_a_configured_url_names_its_transport(
    config: Callable[..., Path], entry: dict[str, Any], way: str
) -> None:
    config({"remote": {**entry, "headers": {"A": "1", "B": "2"}}})
    target = named("remote", headers={"B": "3"})
    assert (target.way, target.label) == (way, "remote")
    assert target.headers == {"A": "1", "B": "3"}


def test_variables_are_filled_in_and_their_values_are_secrets(
    config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret-from-env")
    config({"s": {"command": "run", "args": ["--token=${MY_TOKEN}", "${UNSET_ONE:-plain}"]}})
    target = named("s")
    assert target.command == ("run", "--token=secret-from-env", "plain")
    assert Masker(target.secrets).text(target.peer) == "run --token=*** plain"


def test_names_decide_which_values_of_env_headers_and_options_are_secrets() -> None:
    env = {
        "API_TOKEN": "value-1",
        "SETTING": "a-long-opaque-value",
        "LOG_LEVEL": "info",
        "BASE_URL": "https://api.example.com/v2",
        "DATA_FOLDER": "/srv/data/of/somebody",
    }
    assert Target(way="stdio", label="s", env=env, clean_env=True).secrets == ("value-1",)
    headers = {"Authorization": "Bearer token-1", "X-Tenant": "a-tenant-of-ours"}
    found = Target(way="http", label="s", headers=headers).secrets
    assert set(found) == {"Bearer token-1", "token-1"}
    command = ("serve", "--api-key", "key-1", "--auth-token=token-2", "--token-file", "/etc/token")
    assert Target(way="stdio", label="s", command=command, clean_env=True).secrets == (
        "key-1",
        "token-2",
    )


def test_an_empty_variable_of_a_configuration_is_its_default_or_empty(
    config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY_ONE", "")
    config({"s": {"command": "run", "args": ["${EMPTY_ONE:-plain}", "<${EMPTY_ONE}>"]}})
    assert named("s").command == ("run", "plain", "<>")


def test_a_variable_that_a_configuration_names_is_secret_by_its_name(
    config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret-from-env")
    monkeypatch.setenv("MY_FOLDER", "/srv/my-folder")
    config({"s": {"command": "run", "args": ["${MY_TOKEN}", "${MY_FOLDER}"]}})
    assert named("s", clean_env=True).secrets == ("secret-from-env",)


def test_what_a_server_inherits_is_secret_by_its_name_unless_it_inherits_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret-from-env")
    monkeypatch.setenv("PROXY", "http://me:hunter22@proxy:1")
    monkeypatch.setenv("MY_FOLDER", "/srv/my-folder")
    inherited = {"secret-from-env", "http://me:hunter22@proxy:1", "hunter22"}
    assert inherited <= set(Target(way="stdio", label="s").secrets)
    assert "/srv/my-folder" not in Target(way="stdio", label="s").secrets
    assert inherited.isdisjoint(Target(way="stdio", label="s", clean_env=True).secrets)
    assert inherited.isdisjoint(Target(way="http", label="s", url="http://h").secrets)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", ":1:2: not JSON"),
        ("[" * 100_000, ": not JSON"),
        ("[]", "has no mcpServers map"),
        ('{"mcpServers": []}', "has no mcpServers map"),
        ('{"mcpServers": {"s": {}, "s": {}}}', "the member 's' appears twice"),
        ({"s": {"command": "\ud800"}}, "a lone surrogate"),
        ({"s": 5}, "mcpServers.s is not an object"),
        ({"s": {}}, "has neither command nor url"),
        ({"s": {"command": 5}}, ".command is not a string"),
        ({"s": {"command": "x", "args": "a b"}}, ".args is not an array"),
        ({"s": {"command": "x", "args": [1]}}, ".args is not a string"),
        ({"s": {"command": "x", "env": {"A": 1}}}, ".env.A is not a string"),
        ({"s": {"command": "x", "env": []}}, ".env is not an object"),
        ({"s": {"command": "x", "cwd": 5}}, ".cwd is not a string"),
        ({"s": {"command": "x", "cwd": "/no/such"}}, ".cwd is not a folder"),
        ({"s": {"url": 5}}, ".url is not a string"),
        (
            {"s": {"command": "${NO_SUCH_VARIABLE_HERE}"}},
            "needs the variable NO_SUCH_VARIABLE_HERE",
        ),
    ],
)
def test_a_configuration_that_can_not_be_used_says_where(
    config: Callable[..., Path], content: Any, message: str
) -> None:
    path = config(content)
    error = refused("s", config=path)
    assert message in error.message
    assert str(path) in error.message


def test_a_configuration_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    assert (
        refused("s", config=path).message
        == f"can't read the configuration {path}: No such file or directory"
    )


@pytest.mark.parametrize(
    ("entry", "words", "message"),
    [
        ({"command": "x"}, {"headers": {"A": "b"}}, "--header"),
        ({"command": "x"}, {"way": "http"}, "needs a URL"),
        ({"url": "http://h/"}, {"env": {"A": "b"}}, "--env"),
        ({"url": "http://h/"}, {"way": "stdio"}, "needs a command"),
    ],
)
def test_options_that_do_not_fit_a_configured_server_are_refused(
    config: Callable[..., Path], entry: Any, words: Any, message: str
) -> None:
    config({"s": entry})
    assert message in refused("s", **words).message
