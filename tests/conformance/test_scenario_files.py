"""The files of the scenarios and the code that acts and judges for them belong together."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from mcptest.probe.conformance.auth import auth_scenarios, authorization_checks
from mcptest.probe.conformance.client import client_scenarios
from mcptest.probe.conformance.scenario_file import ScenarioFile, read_scenarios
from mcptest.probe.conformance.server import server_scenarios

FILES = {
    client_scenarios: client_scenarios._SUBJECTS,
    server_scenarios: server_scenarios._SUBJECTS,
    auth_scenarios: (authorization_checks,),
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


@pytest.mark.parametrize("owner", FILES, ids=lambda one: one.__name__.rpartition(".")[2])
def test_every_script_and_judge_is_used_by_a_scenario(owner: ModuleType) -> None:
    file = Path(str(owner.__file__)).with_suffix(".yml")
    read = msgspec.yaml.decode(file.read_bytes(), type=ScenarioFile)
    written = [one for entry in read.scenarios for one in entry["checks"]]
    checks = [*read.checks, *(one for one in written if not isinstance(one, str))]
    judges = {name for subject in FILES[owner] for name in subject.JUDGES}
    assert judges == {one.get("judge") or one["id"] for one in checks}
    scripts = {name for subject in FILES[owner] for name in getattr(subject, "SCRIPTS", ())}
    assert scripts == {one["name"] for one in read.scenarios if "plan" not in one}


def test_no_judge_is_written_twice() -> None:
    for subjects in FILES.values():
        names = [name for subject in subjects for name in subject.JUDGES]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("unknown", ["  sutes: []", "  checks: [{id: first, titel: x}]"])
def test_a_member_that_there_is_not_is_refused(tmp_path: Path, unknown: str) -> None:
    file = tmp_path / "scenarios.yml"
    file.write_text(f"{SCENARIO}{unknown}\n")
    with pytest.raises(msgspec.ValidationError):
        read_scenarios(file, [{"first": lambda seen: None}], [{"one": lambda: None}])


def test_a_file_without_faults_is_read(tmp_path: Path) -> None:
    file = tmp_path / "scenarios.yml"
    file.write_text(SCENARIO)
    found = read_scenarios(file, [{"first": lambda seen: None}], [{"one": lambda: None}])
    assert [check.title for check in found["one"].checks] == ["First"]
