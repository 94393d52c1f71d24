"""The files of the scenarios and the code that acts and judges for them belong together."""

from __future__ import annotations

import importlib
from typing import Any

import msgspec
import pytest

from mcptest.probe.conformance import scenario_catalogue
from mcptest.probe.conformance.scenario import Scenario
from mcptest.probe.conformance.scenario_catalogue import (
    ScenarioFile,
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
  checks: [{id: first, description: something}]
"""


def read(text: str) -> dict[str, Scenario[Any]]:
    file = msgspec.yaml.decode(text, type=ScenarioFile)
    judges, scripts = [{"first": lambda seen: None}], [{"one": lambda: None}]
    return put_together(file, judges, scripts, lambda entry: entry)


@pytest.mark.parametrize("file", SUBJECTS)
def test_every_script_and_judge_is_used_by_a_scenario(file: str) -> None:
    read = scenario_file(file)
    written = [one for entry in read.scenarios for one in entry["checks"]]
    checks = [*read.checks, *(one for one in written if not isinstance(one, str))]
    judges = {name for subject in SUBJECTS[file] for name in subject.JUDGES}
    assert judges == {one.get("judge") or one["id"] for one in checks}
    scripts = {name for subject in SUBJECTS[file] for name in getattr(subject, "SCRIPTS", ())}
    assert scripts == {one["name"] for one in read.scenarios if not {"plan", "asks"} & {*one}}


def test_no_judge_is_written_twice() -> None:
    for subjects in SUBJECTS.values():
        names = [name for subject in subjects for name in subject.JUDGES]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("unknown", ["  sutes: []", "  checks: [{id: first, titel: x}]"])
def test_a_member_that_there_is_not_is_refused(unknown: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(f"{SCENARIO}{unknown}\n")


def test_a_file_without_faults_is_read() -> None:
    found = read(SCENARIO)
    assert [check.title for check in found["one"].checks] == ["First"]
