"""A runner for composite actions, as far as ours needs one: expressions, environment, bash, files.

It knows `inputs.X`, `steps.X.outputs.Y` and `github.action_path`, conditions made of `==`, `!=` and
`&&`, and what a step may write: outputs, paths, the step summary. Of other actions it plays
`setup-python`, which changes the PATH of the job unless it is told not to.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.driving import BOUND
from tests.packaging.installing import ROOT

EXPRESSION = re.compile(r"\$\{\{ *([a-z_.-]+) *\}\}")
CONDITION = re.compile(r"([a-z_.-]+) (==|!=) '([^']*)'")
BASH = ("--noprofile", "--norc", "-eo", "pipefail")
"""How a runner starts bash."""


def action() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "action.yml").read_text()))


@dataclass
class Runner:
    """One job with one step: the action."""

    workspace: Path
    temp: Path
    path: str
    """What the PATH of the job begins with."""
    set_up: Path | None = None
    """The program `python` that `actions/setup-python` finds for this action."""
    system: str = "Linux"
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    used: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Other actions that would have been used, with what they were given."""
    ran: list[str] = field(default_factory=list)
    log: str = ""
    code: int = 0

    def use(self, **given: str) -> dict[str, str]:
        """Run the action up to its end or the first step that fails; gives its outputs."""
        known = action()
        inputs = {name: one.get("default", "") for name, one in known["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        assert set(inputs) == set(known["inputs"])
        for step in known["runs"]["steps"]:
            if not self._wanted(step.get("if", ""), inputs):
                continue
            if "uses" in step:
                with_ = {
                    key: self._filled(str(value), inputs) for key, value in step["with"].items()
                }
                self.used.append((step["uses"], with_))
                if step["uses"].startswith("actions/setup-python@") and self.set_up:
                    self._set_up_python(step["id"], self.set_up, with_)
                continue
            self.code = self._run(step, inputs)
            if self.code:
                break
        return {name: self._filled(one["value"], inputs) for name, one in known["outputs"].items()}

    def _set_up_python(self, step: str, python: Path, given: Mapping[str, str]) -> None:
        self.outputs[step] = {"python-path": str(python)}
        if given.get("update-environment", "true").lower() != "false":
            self.path = os.pathsep.join([str(python.parent), self.path])

    def _value(self, name: str, inputs: Mapping[str, str]) -> str:
        head, *rest = name.split(".")
        if head == "inputs":
            return inputs[rest[0]]
        if head == "steps":
            return self.outputs.get(rest[0], {}).get(rest[2], "")
        assert name == "github.action_path", f"no expression that is known here: {name}"
        return str(ROOT)

    def _filled(self, text: str, inputs: Mapping[str, str]) -> str:
        return EXPRESSION.sub(lambda found: self._value(found[1], inputs), text)

    def _wanted(self, condition: str, inputs: Mapping[str, str]) -> bool:
        parts = [part.strip() for part in condition.split("&&")] if condition else []
        matches = [CONDITION.fullmatch(part) for part in parts]
        assert all(matches), condition
        return all(
            (self._value(found[1], inputs) == found[3]) == (found[2] == "==")
            for found in matches
            if found is not None
        )

    def _run(self, step: dict[str, Any], inputs: Mapping[str, str]) -> int:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
        script = self.temp / "step.sh"
        script.write_text(step["run"])
        files = {name: self.temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_PATH")}
        for file in files.values():
            file.write_text("")
        environment = {
            "PATH": f"{self.path}:/usr/bin:/bin",
            "HOME": str(self.temp),
            "LANG": "C.UTF-8",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_OS": self.system,
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
            **{name: str(file) for name, file in files.items()},
            **{name: self._filled(value, inputs) for name, value in step["env"].items()},
        }
        bash = shutil.which("bash")
        assert bash is not None
        done = subprocess.run(
            [bash, *BASH, str(script)],
            cwd=self.workspace / self._filled(step.get("working-directory", "."), inputs),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BOUND,
        )
        self.log += done.stdout.decode("utf-8", "backslashreplace")
        self.ran.append(step["name"])
        self._take(step.get("id", ""), files)
        return done.returncode

    def _take(self, step: str, files: Mapping[str, Path]) -> None:
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            name, equals, value = line.partition("=")
            assert equals, f"no output: {line!r}"
            self.outputs.setdefault(step, {})[name] = value
        added = files["GITHUB_PATH"].read_text().splitlines()
        self.path = os.pathsep.join([*added, self.path])
