"""Arrows between packages point down only, and each package keeps out of what is not its job."""

from __future__ import annotations

import sys

import pytest

from tests.meta.source_tree import Module, imports_of, modules

FLOORS = [
    {"model"},
    {"wire", "schema"},
    {"transport"},
    {"peer"},
    {"suite", "explore"},
    {"rules"},
    {"clients"},
    {"run", "report", "explain"},
    {"testing", "agents"},
    {"cli"},
    {"pytest_plugin"},
]
FLOOR_OF = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}

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
    "model": NETWORK | PROCESSES | FILES | {"pydantic", "h11", "jsonschema_rs", "sys", "random"},
    "wire": NETWORK | PROCESSES | FILES | {"pydantic", "time", "sys", "random"},
    "schema": NETWORK | PROCESSES | FILES | {"pydantic", "time"},
    "rules": NETWORK | PROCESSES | FILES | {"pydantic", "time", "random"},
    "explore": NETWORK | PROCESSES | FILES | {"pydantic", "time"},
    "suite": NETWORK | (PROCESSES - {"threading"}),
    "peer": NETWORK | (PROCESSES - {"threading"}) | FILES | {"pydantic", "sys", "random"},
    "report": NETWORK | (PROCESSES - {"threading"}),
}
"""What a package must not import. The demo server, a program of its own, is judged apart."""

DEMO = "mcptest.peer.demo"
SCRIPTED = "mcptest.peer.scripted"
AGENTS = "mcptest.agents"
STRATEGIES = "mcptest.strategies"
DEMO_MAY_SHARE = {"mcptest.__version__", "mcptest.model.revision"}


def is_demo(module: Module) -> bool:
    return module.name == DEMO or module.name.startswith(DEMO + ".")


def within(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def test_every_package_has_its_floor() -> None:
    packages = {module.layer for module in modules() if module.layer}
    data_only = {"compliance"}
    assert packages - data_only <= set(FLOOR_OF)


@pytest.mark.parametrize("package", sorted(FLOOR_OF))
def test_arrows_point_down_only(package: str) -> None:
    wrong = []
    for module in modules():
        if module.layer != package:
            continue
        for line, name in imports_of(module):
            parts = name.split(".")
            if parts[0] != "mcptest" or len(parts) < 2 or parts[1] not in FLOOR_OF:
                continue
            target = parts[1]
            if target != package and FLOOR_OF[target] >= FLOOR_OF[package]:
                wrong.append(f"{module.place}:{line} imports {name}")
    assert wrong == []


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
        "mcptest.cli.app.run",
        "mcptest.cli.beginning.leave_on_signals",
        "mcptest.cli.beginning.run_suites",
    }


def test_the_strategies_stand_on_explore_and_are_imported_by_nobody() -> None:
    """They are a face for the tests of others: what they show lives in `explore`."""
    (module,) = (module for module in modules() if module.name == STRATEGIES)
    ours = [name for _, name in imports_of(module) if name.startswith("mcptest.")]
    assert ours
    assert all(within(name, {"mcptest.explore.property", "mcptest.model"}) for name in ours)
    users = {each.name for each in modules() for _, name in imports_of(each) if name == STRATEGIES}
    assert users == set()


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_a_package_keeps_out_of_what_is_not_its_job(package: str) -> None:
    wrong = [
        f"{module.place}:{line} imports {name}"
        for module in modules()
        if module.layer == package and not is_demo(module)
        for line, name in imports_of(module)
        if within(name, FORBIDDEN[package])
    ]
    assert wrong == []


def test_the_demo_needs_nothing_but_the_standard_library() -> None:
    wrong = [
        f"{module.place}:{line} imports {name}"
        for module in modules()
        if is_demo(module)
        for line, name in imports_of(module)
        if not within(name, {DEMO} | DEMO_MAY_SHARE)
        and name.split(".")[0] not in sys.stdlib_module_names
    ]
    assert wrong == []


def test_the_demo_is_imported_by_the_command_line_only_as_a_program() -> None:
    """Nobody reaches into it: whoever tests against it starts it and talks to it. The scripted
    server, which is another program, stands on the same loop and the same HTTP, and the server for
    agents and mocks on all of the machinery, with content of their own."""
    users = {
        module.name
        for module in modules()
        if not is_demo(module) and not within(module.name, {SCRIPTED, AGENTS})
        for _, name in imports_of(module)
        if within(name, {DEMO})
    }
    served = {"mcptest.run.mocking", "mcptest.run.replaying"}
    assert users <= {"mcptest.cli.serve", "mcptest.cli.mcp"} | served


def test_the_walk_sees_imports_wherever_they_stand() -> None:
    """A walk that saw nothing would pass everything."""
    seen = {(module.name, name) for module in modules() for _, name in imports_of(module)}
    assert ("mcptest.__main__", "mcptest.cli.app.run") in seen
    assert ("mcptest.transport.target", "mcptest.transport.stdio.Stdio") in seen
    assert ("mcptest.peer.client", "mcptest.peer.connection.Connection") in seen
