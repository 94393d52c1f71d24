"""docs/compliance: the figures of the grading and baseline pages are those in use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcptest.rules.corpus.known_failures import load_known_failures
from mcptest.rules.grading import CUT_OFFS, DIGITS, basic_rules
from mcptest.suite.lane_blocks import GRADE_TARGETS, load_compliance_block
from tests.docs import compliance_docs
from tests.docs.compliance_docs import GRADING_PARTS, refreshed

DOCS = Path(__file__).parents[2] / "docs" / "compliance"


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def example(page: str) -> str:
    [found] = re.findall(r"```yaml\n(.*?)```", text_of(page), re.DOTALL)
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("page", GRADING_PARTS)
def test_the_tables_are_fresh(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compliance_docs.PARTS, page, GRADING_PARTS[page])
    hint = "run: python -m tests.docs.compliance_docs docs/compliance"
    assert refreshed(page, text_of(page)) == text_of(page), hint


def test_every_letter_and_every_basic_rule_is_on_the_page() -> None:
    page = text_of("grading.md")
    assert all(f"| {letter} | {least} |" in page for letter, least in CUT_OFFS.items())
    assert all(f"**{rule}**" in page for rule in basic_rules())


def test_every_target_of_the_gate_is_on_the_page() -> None:
    page = text_of("grading.md")
    assert all(f"| `{target}` |" in page for target in GRADE_TARGETS)


def test_the_profile_of_the_page_has_the_right_form() -> None:
    assert re.search(rf"`\d+\.\d+\.\d+/v2025-11-25/[0-9a-f]{{{DIGITS}}}`", text_of("grading.md"))


def test_the_example_of_a_gate_loads(tmp_path: Path) -> None:
    path = tmp_path / "suite.yml"
    path.write_text(example("grading.md"))
    block = load_compliance_block(path)
    assert block is not None
    assert block.grade_delta is not None
    assert block.grade_delta.against == "scorecard.json"


def test_the_example_of_a_baseline_loads(tmp_path: Path) -> None:
    path = tmp_path / "known.yml"
    path.write_text(example("baseline.md"))
    found = load_known_failures(path)
    assert [one.rule_id for one in found.entries] == ["RES-102", "TOOLS-007", "PROTO-021"]
    assert found.flaky_rules == {"TOOLS-007"}
