"""`mcptest snapshot` within the process of a test, on suites whose answers are files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcptest.commands.app import Parser
from mcptest.commands.snapshot import cli
from mcptest.commands.snapshot.run import run_snapshot
from mcptest.core.errors import McptestError
from tests.e2e.driving import Done
from tests.e2e.suite_runs import server


@dataclass
class Desk:
    """A folder `evals` with suites, and the texts that its server answers with."""

    folder: Path
    said: pytest.CaptureFixture[str]

    @property
    def evals(self) -> Path:
        return self.folder / "evals"

    @property
    def golden(self) -> Path:
        return self.evals / ".snapshots"

    def answer(self, name: str, text: str) -> None:
        """What the test of this name is answered with from now on."""
        (self.folder / f"{name}.txt").write_text(text, newline="")

    def test(self, name: str, text: str | None = None, **more: Any) -> dict[str, Any]:
        """A test that is answered with what is in its file."""
        if text is not None:
            self.answer(name, text)
        block = {
            "tool": "read",
            "args": {"path": str(self.folder / f"{name}.txt")},
            "expect": {"not_error": True},
        }
        return {"name": f"{name} is read", "server": server(), "assert": block, **more}

    def suite(self, name: str, text: str | None = None, **more: Any) -> Path:
        """A file with one test, as mcp-assert has them. JSON is YAML."""
        path = self.evals / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.test(name, text, **more)))
        return path

    def snapshot(self, *argv: str) -> Done:
        parser = Parser(prog="mcptest snapshot")
        cli.configure(parser)
        self.said.readouterr()
        try:
            arguments = parser.parse_args([*argv, "--suite", str(self.evals)])
            arguments.server_command = []
            code = run_snapshot(arguments)
        except McptestError as error:
            return Done(error.exit_code, "", f"{error.message} {error.hint}")
        out, err = self.said.readouterr()
        return Done(code, out, err)

    def outcomes(self, *argv: str) -> dict[str, str]:
        """By the name of the test, or by the golden file that is missing one."""
        done = self.snapshot("--json", *argv)
        return {Path(one["name"]).name: one["outcome"] for one in json.loads(done.out)}

    def files(self) -> dict[str, str]:
        """All golden files with their texts."""
        if not self.golden.exists():
            return {}
        found = (path for path in sorted(self.golden.rglob("*")) if path.is_file())
        return {str(path.relative_to(self.golden)): path.read_text() for path in found}


def desk_in(
    folder: Path, said: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
) -> Iterator[Desk]:
    patch.chdir(folder)
    patch.setenv("NO_COLOR", "1")
    yield Desk(folder, said)
    assert not list(folder.rglob(".writing-*"))
