"""The files of the scenarios and the code that acts and judges for them belong together."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from mcptest.probe.conformance import scenario_catalogue
from mcptest.probe.conformance.scenario import Scenario
from mcptest.probe.conformance.scenario_catalogue import (
    ScenarioFile,
    judge_of,
    put_together,
    scenario_file,
)

PACKAGE = scenario_catalogue.__name__.rpartition(".")[0]
SUBJECTS = {
    file: [
        importlib.import_module(f"{PACKAGE}.{file.partition('/')[0]}.{subject}")
        for subject in subjects
    ]
    for files in scenario_catalogue.FILES.values()
    for file, subjects in files.items()
}
SCENARIO = """
scenarios:
- name: one
  title: One
  description: One.
  revisions: ['2025-11-25']
  suites: []
  script: act
  checks: [{id: first, description: something}]
"""


def read(text: str) -> dict[str, Scenario[Any]]:
    subject = ModuleType("subject")
    subject.__dict__.update(first=lambda seen: None, act=lambda: None)
    return put_together(msgspec.yaml.decode(text, type=ScenarioFile), [subject])


def names_in(file: str) -> set[str]:
    """Whatever acts or judges for the scenarios of a file."""
    read = scenario_file(file)
    written = [one for entry in read.scenarios for one in entry["checks"]]
    checks = [*read.checks, *(one for one in written if not isinstance(one, str))]
    named = [one.get("judge") or judge_of(one["id"]) for one in checks]
    named += [one["script"] for one in read.scenarios if "script" in one]
    named += ["asks" for one in read.scenarios if "asks" in one]
    return {one if isinstance(one, str) else next(iter(one)) for one in named}


def defined_in(subject: ModuleType) -> list[str]:
    """The public functions of a module, and what one of its functions has made."""
    assert subject.__file__ is not None
    body = ast.parse(Path(subject.__file__).read_text()).body
    made = [
        target.id
        for one in body
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        for target in one.targets
        if isinstance(target, ast.Name) and target.id.islower()
    ]
    names = [*(one.name for one in body if isinstance(one, ast.FunctionDef)), *made]
    return [one for one in names if not one.startswith("_")]


@pytest.mark.parametrize("file", SUBJECTS)
def test_every_script_and_judge_is_used_by_a_scenario(file: str) -> None:
    here = {name for subject in SUBJECTS[file] for name in defined_in(subject)}
    trees = [ast.parse(Path(str(one.__file__)).read_text()) for one in SUBJECTS[file]]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)]
    called = {one.id for one in nodes if isinstance(one.ctx, ast.Load)}
    assert here - names_in(file) - called <= {"completed"}


def test_no_judge_is_written_twice() -> None:
    for subjects in SUBJECTS.values():
        names = [name for subject in subjects for name in defined_in(subject)]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("unknown", ["  sutes: []", "  checks: [{id: first, titel: x}]"])
def test_a_member_that_there_is_not_is_refused(unknown: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(f"{SCENARIO}{unknown}\n")


def test_a_file_without_faults_is_read() -> None:
    found = read(SCENARIO)
    assert [check.title for check in found["one"].checks] == ["First"]
