"""Which servers of a client configuration are judged, and what is said of one that can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcptest.commands.app import parser_of
from mcptest.commands.fleet.run import orders_of, servers_of
from mcptest.commands.fleet.worker_pool import FleetServerOrder
from mcptest.core.errors import UsageError
from tests.fleet.configured import DEMO, GONE, write_config


def test_servers_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"z": DEMO, "a": {"url": "http://127.0.0.1:1/mcp"}, "m": GONE})
    assert list(servers_of(config)) == ["z", "a", "m"]


def test_a_disabled_entry_has_no_target_unless_it_is_named(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, {"on": DEMO, "off": {**DEMO, "disabled": True}, "out": {**DEMO, "enabled": False}}
    )
    assert [target is None for target in servers_of(config).values()] == [False, True, True]
    assert servers_of(config, ["off"])["off"] is not None


def test_a_disabled_entry_need_not_be_sound(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"off": {"disabled": True, "command": 7}})
    assert servers_of(config)["off"] is None


def test_a_server_called_demo_is_the_one_of_the_file(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"demo": GONE})
    target = servers_of(config)["demo"]
    assert target is not None
    assert target.command == ("/nonexistent/server",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"mcpServers": {\n  "a": }}', "mcp.json:2:8: not JSON"),
        ("[]", "has no mcpServers map"),
        ('{"mcpServers": []}', "has no mcpServers map"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "the member 'a' appears twice"),
        ('{"mcpServers": {"a": 1}}', "mcpServers.a is not an object"),
        ('{"mcpServers": {"a": {}}}', "mcpServers.a has neither command nor url"),
        ('{"mcpServers": {"a": {"command": "x", "args": 1}}}', "mcpServers.a.args is not an array"),
        ('{"mcpServers": {"a": {"command": "\\ud800"}}}', "a lone surrogate"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(text)
    with pytest.raises(UsageError, match=r"mcp\.json") as caught:
        servers_of(config)
    assert said in caught.value.message


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"a": 1, "b": DEMO, "c": {"env": {}}})
    with pytest.raises(UsageError) as caught:
        servers_of(config)
    assert "mcpServers.a is not" in caught.value.message
    assert "mcpServers.c has neither" in caught.value.message
    assert list(servers_of(config, ["b"])) == ["b"]


def test_the_form_of_another_client_is_recognised(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"servers": {"a": {}}}')
    with pytest.raises(UsageError) as caught:
        servers_of(config)
    assert "the form of another client" in caught.value.hint


def test_a_name_that_is_not_there_gets_the_nearest(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"filesystem": DEMO})
    with pytest.raises(UsageError) as caught:
        servers_of(config, ["filesytem"])
    assert "did you mean filesystem?" in caught.value.hint


def test_an_unset_variable_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOT_SET_ANYWHERE", raising=False)
    config = write_config(tmp_path, {"a": {**DEMO, "env": {"T": "${NOT_SET_ANYWHERE}"}}})
    with pytest.raises(UsageError, match="NOT_SET_ANYWHERE"):
        servers_of(config)


def orders(config: Path, *options: str) -> list[FleetServerOrder]:
    arguments = parser_of("fleet").parse_args([str(config), *options])
    return list(orders_of(arguments, config, servers_of(config)))


def test_no_secret_is_in_the_commands_that_repeat(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"a b": {**DEMO, "env": {"API_KEY": "hush-hush-1"}}})
    (order,) = orders(config, "--timeout", "5s")
    assert order.repeat_audit == f"mcptest audit --mcp-config {config} --server 'a b' --timeout 5s"
    assert order.repeat_compliance.startswith("mcptest compliance run --mcp-config ")
    assert order.target.env["API_KEY"] == "hush-hush-1"
    assert "hush" not in repr(order)


def test_captures_of_each_server_have_a_folder_of_their_own(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"../x": DEMO, "x": DEMO, "X": DEMO})
    found = orders(config, "--save-capture", str(tmp_path / "kept"))
    folders = {Path(order.captures) for order in found}
    assert {folder.parent for folder in folders} == {tmp_path / "kept"}
    assert len({folder.name.lower() for folder in folders}) == 3
