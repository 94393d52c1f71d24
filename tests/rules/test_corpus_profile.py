"""The profile: it moves with everything that can move a verdict, and with nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcptest import __version__
from mcptest.core.errors import UsageError
from mcptest.core.revision import TIMELINE, Revision
from mcptest.core.verdict import Severity
from mcptest.rules import grading
from mcptest.rules.corpus.reader import SHIPPED
from mcptest.rules.grading import DIGITS, profile_of

REVISION = Revision.V2024_11_05
ROW = """\
- rule_id: OWN-001
  check: {check}
  expect:
    - {{target: answer, matcher: {{exact: result}}}}
    - {{target: result, matcher: {{schema: {schema}}}}}
  needs: {{capability: [tools]}}
"""
REGISTRY = """\
rules:
- id: OWN-001
  title: {title}
  section: own
  severity: {severity}
  spec: basic
  requirement: {requirement}
  fix: A word about how to repair it.
"""


def hash_of(
    folder: Path,
    *,
    check: str = "{method: ping, params: {a: 1, b: [1, 2]}}",
    schema: str = "{type: object, required: [a]}",
    severity: str = "MUST",
    title: str = "a title",
    requirement: str = "Something must hold.",
    row: str = ROW,
) -> str:
    own = folder / REVISION.label
    own.mkdir(parents=True, exist_ok=True)
    (own / "rows.yml").write_text(row.format(check=check, schema=schema))
    (folder / "registry.yml").write_text(
        REGISTRY.format(severity=severity, title=title, requirement=requirement)
    )
    return profile_of(REVISION, folder).corpus


def test_the_profile_names_tool_revision_and_corpus() -> None:
    found = profile_of(REVISION)
    assert found.id == f"{__version__}/v2024-11-05/{found.corpus}"
    assert len(found.corpus) == DIGITS


def test_every_revision_has_a_profile_of_its_own() -> None:
    assert len({profile_of(revision).corpus for revision in TIMELINE}) == len(TIMELINE)


def test_a_copy_of_the_corpora_has_the_same_profile(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path / "copy")
    assert profile_of(REVISION, tmp_path / "copy") == profile_of(REVISION)


def test_the_hash_is_the_same_in_every_process() -> None:
    program = (
        "from mcptest.core.revision import Revision;"
        "from mcptest.rules.grading import profile_of;"
        "print(profile_of(Revision.V2026_07_28).corpus)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=240,
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {f"{profile_of(Revision.V2026_07_28).corpus}\n"}


def test_neither_the_order_of_keys_nor_that_of_expectations_counts(tmp_path: Path) -> None:
    turned = """\
- needs: {{capability: [tools]}}
  expect:
    - {{matcher: {{schema: {schema}}}, target: result}}
    - {{matcher: {{exact: result}}, target: answer}}
  check: {check}
  rule_id: OWN-001
"""
    schema = "{required: [a], type: object}"
    check = "{params: {b: [1, 2], a: 1}, method: ping}"
    other = hash_of(tmp_path / "b", row=turned, schema=schema, check=check)
    assert other == hash_of(tmp_path / "a")


def test_words_that_only_explain_do_not_count(tmp_path: Path) -> None:
    other = hash_of(tmp_path / "b", title="another title", requirement="Other words.")
    assert other == hash_of(tmp_path / "a")


@pytest.mark.parametrize(
    "change",
    [
        {"severity": "SHOULD"},
        {"check": "{method: ping, params: {a: 1, b: [2, 1]}}"},
        {"check": "{method: ping, params: {a: 1.5, b: [1, 2]}}"},
        {"check": "{method: ping, params: {a: '1', b: [1, 2]}}"},
        {"check": "{probe: unknown_notification}"},
        {"schema": "{type: object, required: [b]}"},
        {"row": ROW.replace("[tools]", "[prompts]")},
        {"row": ROW.replace("exact: result", "exact: error")},
    ],
)
def test_what_can_move_a_verdict_does(tmp_path: Path, change: dict[str, str]) -> None:
    assert hash_of(tmp_path / "b", **change) != hash_of(tmp_path / "a")


def test_another_weight_is_another_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = hash_of(tmp_path)
    monkeypatch.setattr(grading, "WEIGHTS", {**grading.WEIGHTS, Severity.MAY: 2})
    assert hash_of(tmp_path) != before


def test_a_revision_without_a_corpus_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no corpus for draft"):
        profile_of(Revision.DRAFT, tmp_path)
