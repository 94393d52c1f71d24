"""Suites written by tests, `mcptest run` over them, and what has to be gone afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.driving import BOUND, Done, is_alive, mcptest, wait_until

REPLIER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("replier.py")))


def server(*arguments: str, **members: Any) -> dict[str, Any]:
    """The quick server of these tests, by what it should do."""
    return {"command": REPLIER[0], "args": [*REPLIER[1:], *arguments], **members}


def call(
    tool: str = "echo", expect: Mapping[str, Any] | None = None, **args: Any
) -> dict[str, Any]:
    return {"tool": tool, "args": args, "expect": expect or {"not_error": True}}


@dataclass
class Site:
    """A folder with suites, a temporary folder for mcptest, and a list of processes."""

    folder: Path
    temporary: Path
    pids: Path
    env: dict[str, str] = field(default_factory=dict)

    def suite(
        self, tests: Sequence[Mapping[str, Any]], name: str = "suite.yaml", **top: Any
    ) -> str:
        """Write a suite. JSON is YAML, and can't be misread."""
        (self.folder / name).write_text(json.dumps({**top, "tests": list(tests)}, indent=1))
        return name

    def files(self, tests: Sequence[Mapping[str, Any]], folder: str = "evals") -> str:
        """Write each test into a file of its own: the form of mcp-assert."""
        (self.folder / folder).mkdir()
        for number, test in enumerate(tests):
            (self.folder / folder / f"{number:03}.yaml").write_text(json.dumps(test, indent=1))
        return folder

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in _CI}
        return {**kept, "TMPDIR": str(self.temporary), **self.env, **more}

    def run(self, *argv: str, command: str = "run", bound: float = BOUND, **env: str) -> Done:
        environment = self.environment(**env)
        return mcptest(command, *argv, cwd=self.folder, env=environment, bound=bound)

    def start(self, *argv: str, **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "mcptest", "run", *argv],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def results(self, done: Done) -> dict[str, dict[str, Any]]:
        """By name, from `--json`."""
        return {each["name"]: each for each in json.loads(done.out)}

    def saved(self, name: str = "run.json") -> dict[str, Any]:
        run: dict[str, Any] = json.loads((self.folder / name).read_bytes())
        return run

    def started(self) -> list[int]:
        """Every process that a server of this test wrote down."""
        if not self.pids.exists():
            return []
        return [int(line) for line in self.pids.read_text().split()]

    def assert_nothing_is_left(self) -> None:
        alive = [pid for pid in self.started() if is_alive(pid)]
        assert not alive, f"still running: {alive}"
        assert list(self.temporary.iterdir()) == []

    def await_nothing_left(self) -> None:
        """For what nobody could wait for: a run that was killed."""
        wait_until(lambda: not any(map(is_alive, self.started())), "the end of the servers")


_CI = {"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "CI"}
