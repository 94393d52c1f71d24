"""A folder with suites and tests, and pytest over it in this very process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.pytester import SysModulesSnapshot

from tests.e2e.suite_runs import REPLIER

PLUGIN = ("-p", "mcptest.pytest_plugin", "-p", "no:cacheprovider", "-W", "default")


def quick_server(*words: str) -> dict[str, Any]:
    return {"command": REPLIER[0], "args": [*REPLIER[1:], *words]}


def check(
    name: str, tool: str = "echo", expect: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A test that passes, unless it expects something else."""
    args = more.pop("args", {"text": "hello"})
    block = {"tool": tool, "args": args, "expect": expect or {"not_error": True}}
    return {"name": name, "assert": block, **more}


@dataclass
class Folder:
    pytester: pytest.Pytester

    @property
    def path(self) -> Path:
        return self.pytester.path

    @property
    def log(self) -> Path:
        """Where servers note that they start and end."""
        return self.path / "servers.log"

    def suite(self, *tests: Mapping[str, Any], name: str = "evals/suite.yaml", **top: Any) -> Path:
        """Write a suite, one line for each test. JSON is YAML, and can't be misread."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        top = {"server": quick_server(f"log={self.log}"), **top}
        head = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in top.items() if value]
        rows = [f"  - {json.dumps(test)}" for test in tests]
        path.write_text("\n".join([*head, *(["tests:", *rows] if rows else [])]) + "\n")
        return path

    def configure(self, **settings: str) -> None:
        lines = [f"{name} = {value}" for name, value in settings.items()]
        (self.path / "pytest.ini").write_text("\n".join(["[pytest]", *lines]) + "\n")

    def run(self, *argv: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess(*PLUGIN, *argv)

    def items(self, *argv: str) -> Sequence[pytest.Item]:
        items, _ = self.pytester.inline_genitems(*PLUGIN, *argv)
        return items

    def pids(self) -> list[int]:
        """Of all servers that noted anything."""
        return list({int(line.split()[1]): None for line in self.log.read_text().splitlines()})

    def noted(self, word: str) -> int:
        """How often the servers noted it."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return sum(line.split(" ", 2)[2].startswith(word) for line in lines)


def lenient_snapshot() -> SysModulesSnapshot:
    return SysModulesSnapshot(preserve=lambda name: not name.startswith(("test_", "conftest")))


def folder_for(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """No plugin but ours, whatever else is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    # Pytester forgets every module that an inner run imported. Half of mcptest twice in one process
    # is no mcptest that anyone has: only the modules of the folder are forgotten.
    take = "_Pytester__take_sys_modules_snapshot"
    monkeypatch.setattr(pytest.Pytester, take, lambda self: lenient_snapshot())
    pytester._sys_modules_snapshot = lenient_snapshot()
    return Folder(pytester)
