"""The examples in docs/compliance/reports.md are what the reports really write.

After a change on purpose: `python -m tests.report.test_report_compliance_docs` writes them anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mcptest.report.codec import as_json
from mcptest.report.compliance.text import compliance_lines
from mcptest.report.terminal import Style
from tests.report.test_report_docs import EXAMPLE
from tests.support.sample_compliance import ONE_RULE, SAMPLE, several_revisions

PAGE = Path(__file__).parents[2] / "docs" / "compliance" / "reports.md"


def text() -> str:
    return "".join(f"{line}\n" for line in compliance_lines(SAMPLE, Style()))


def matrix() -> str:
    lines = "".join(f"{line}\n" for line in compliance_lines(several_revisions(), Style()))
    return lines.partition("\nRoot cause")[0]


EXAMPLES: dict[str, Callable[[], str]] = {
    "text": text,
    "matrix": matrix,
    "json": lambda: as_json(ONE_RULE).decode(),
    "markdown": SAMPLE.as_markdown,
}


def written() -> dict[str, str]:
    return {match[2]: match[4] for match in EXAMPLE.finditer(PAGE.read_text("utf-8"))}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_the_report_writes(name: str) -> None:
    assert written().get(name) == EXAMPLES[name]()


def test_every_example_of_the_page_is_checked() -> None:
    assert set(written()) == set(EXAMPLES)


def refreshed(found: re.Match[str]) -> str:
    return found[1] + EXAMPLES[found[2]]() + found[5]


if __name__ == "__main__":
    PAGE.write_text(EXAMPLE.sub(refreshed, PAGE.read_text("utf-8")), "utf-8")
