"""Arrows between rooms point down only, and each room keeps out of what is not its job."""

from __future__ import annotations

import sys

import pytest

from tests.meta.source_tree import Module, imports_of, modules

FLOORS = (
    "core",
    "wire",
    "schema",
    "transport",
    "suite",
    "session",
    "servers",
    "rules",
    "report",
    "probe",
    "testing",
    "commands",
    "pytest_plugin",
)
"""From the ground up: a room imports only from those before it (docs/decisions/0028-rooms.md)."""
FLOOR_OF = {room: floor for floor, room in enumerate(FLOORS)}

NETWORK = {
    "asyncio",
    "http",
    "selectors",
    "select",
    "socket",
    "socketserver",
    "ssl",
    "urllib.request",
}
PROCESSES = {"subprocess", "multiprocessing", "signal", "threading", "concurrent"}
FILES = {"os", "shutil", "tempfile", "mmap", "glob"}
FORBIDDEN = {
    # a lock around what is loaded once starts nothing
    "core": NETWORK
    | (PROCESSES - {"threading"})
    | FILES
    | {"pydantic", "h11", "jsonschema_rs", "sys", "random"},
    "wire": NETWORK | PROCESSES | FILES | {"pydantic", "time", "sys", "random"},
    "schema": NETWORK | PROCESSES | FILES | {"pydantic", "time"},
    "rules": NETWORK | PROCESSES | FILES | {"pydantic", "time", "random"},
    "suite": NETWORK | (PROCESSES - {"threading"}),
    "report": NETWORK | (PROCESSES - {"threading"}),
}
"""What a room must not import."""

DEMO = "mcptest.servers.demo"
DEMO_STANDS_ON = {
    "mcptest.servers.http_connection",
    "mcptest.transport.listener",
    "mcptest.transport.loop",
    "mcptest.wire.lines",
}
DEMO_MAY_SHARE = {"mcptest.__version__", "mcptest.wire.http1"}
STRATEGIES = "mcptest.strategies"
COMMANDS = "mcptest.commands"


def is_demo(module: Module) -> bool:
    return within(module.name, {DEMO} | DEMO_STANDS_ON)


def within(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def test_every_package_has_its_floor() -> None:
    packages = {module.layer for module in modules() if module.layer}
    assert packages == set(FLOORS)


@pytest.mark.parametrize("room", FLOORS)
def test_arrows_point_down_only(room: str) -> None:
    wrong = []
    for module in modules():
        if module.layer != room:
            continue
        for line, name in imports_of(module):
            parts = name.split(".")
            if parts[0] != "mcptest" or len(parts) < 2 or parts[1] not in FLOOR_OF:
                continue
            if parts[1] != room and FLOOR_OF[parts[1]] >= FLOOR_OF[room]:
                wrong.append(f"{module.place}:{line} imports {name}")
    assert wrong == []


def test_commands_do_not_import_each_other() -> None:
    folders = {
        module.name.split(".")[2]
        for module in modules()
        if module.layer == "commands" and module.path.parent.name != "commands"
    }
    found = set()
    for module in modules():
        parts = module.name.split(".")
        own = parts[2] if within(module.name, {COMMANDS}) and len(parts) > 2 else ""
        if own not in folders:
            continue
        for _, name in imports_of(module):
            other = name.split(".")[2] if within(name, {COMMANDS}) and name.count(".") > 1 else ""
            if other in folders - {own}:
                found.add((module.name, other))
    assert found == set()


def test_the_root_imports_nothing_but_the_command_line() -> None:
    names = {
        name
        for module in modules()
        if not module.layer and module.name != STRATEGIES
        for _, name in imports_of(module)
        if name.startswith("mcptest.")
    }
    assert names == {
        "mcptest.__version__",
        "mcptest.commands.app.run",
        "mcptest.commands.early_signals.leave_on_signals",
        "mcptest.commands.completion.cli.answer",
    }


def test_the_strategies_stand_on_the_properties_and_are_imported_by_nobody() -> None:
    """They are a face for the tests of others: what they show lives in `probe.properties`.

    But for what a server offers, which every command reads in the same form.
    """
    (module,) = (module for module in modules() if module.name == STRATEGIES)
    ours = [name for _, name in imports_of(module) if name.startswith("mcptest.")]
    assert ours
    below = {"mcptest.probe.properties", "mcptest.schema", "mcptest.core"}
    below.add("mcptest.session.pages")
    assert all(within(name, below) for name in ours)
    users = {each.name for each in modules() for _, name in imports_of(each) if name == STRATEGIES}
    assert users == set()


@pytest.mark.parametrize("room", sorted(FORBIDDEN))
def test_a_room_keeps_out_of_what_is_not_its_job(room: str) -> None:
    wrong = [
        f"{module.place}:{line} imports {name}"
        for module in modules()
        if module.layer == room
        for line, name in imports_of(module)
        if within(name, FORBIDDEN[room])
    ]
    assert wrong == []


def test_the_demo_needs_nothing_but_the_standard_library() -> None:
    wrong = [
        f"{module.place}:{line} imports {name}"
        for module in modules()
        if is_demo(module)
        for line, name in imports_of(module)
        if not within(name, {DEMO} | DEMO_STANDS_ON | DEMO_MAY_SHARE)
        and name.split(".")[0] not in sys.stdlib_module_names
    ]
    assert wrong == []


def test_nobody_reaches_into_the_demo_but_other_servers() -> None:
    """Whoever tests against it starts it and talks to it. Mocks, replays and the server for agents
    stand on its machinery, with content of their own."""
    users = {
        module.name
        for module in modules()
        if not within(module.name, {"mcptest.servers", "mcptest.commands.mcp"})
        for _, name in imports_of(module)
        if within(name, {DEMO})
    }
    assert users <= {"mcptest.commands.serve.cli"}


def test_the_walk_sees_imports_wherever_they_stand() -> None:
    """A walk that saw nothing would pass everything."""
    seen = {(module.name, name) for module in modules() for _, name in imports_of(module)}
    assert ("mcptest.__main__", "mcptest.commands.app.run") in seen
    assert ("mcptest.transport.target", "mcptest.transport.stdio.Stdio") in seen
    assert ("mcptest.session.client", "mcptest.session.connection.Connection") in seen
