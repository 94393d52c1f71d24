"""docs/expectations.md says what the code does, name by name."""

from __future__ import annotations

from pathlib import Path

from mcptest.suite.expectations import CHECKS
from mcptest.suite.matching import MATCHERS
from mcptest.suite.observed import TARGETS

PAGE = (Path(__file__).parents[2] / "docs" / "expectations.md").read_text(encoding="utf-8")


def test_every_expectation_has_its_row_in_the_order_of_evaluation() -> None:
    places = [PAGE.index(f"\n| `{name}: ") for name in CHECKS]
    assert places == sorted(places)


def test_every_matcher_and_target_is_described_as_in_the_code() -> None:
    rows = [f"| `{matcher.name}` | {matcher.about} |" for matcher in MATCHERS.values()]
    rows += [f"| `{name}` | {target.about} |" for name, target in TARGETS.items()]
    assert [row for row in rows if f"\n{row}\n" not in PAGE] == []
