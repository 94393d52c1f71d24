"""The examples in docs/reports.md are what the reports really write.

After a change on purpose: `python -m tests.report.test_report_docs` writes them anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mcptest.core.results import RunReport
from mcptest.report import agent, annotations, baseline, junit, markdown, run_results, sarif, tap
from mcptest.report.head import RunView
from mcptest.report.terminal import Style
from mcptest.report.write import badge
from tests.support.sample_run import CRASH, READ, RUN, SKIPPED, TRIALS

PAGE = Path(__file__).parents[2] / "docs" / "reports.md"
EXAMPLE = re.compile(
    r"(<!-- example: (\w+) -->\n(`{3,})\w+\n)(.*?)(^\3\n)", re.DOTALL | re.MULTILINE
)

SHORT = msgspec.structs.replace(RUN, results=(READ, CRASH, SKIPPED), duration_ms=290)
TWINS = RunReport(results=(READ, CRASH, msgspec.structs.replace(READ, file="evals/remote.yaml")))

EXAMPLES: dict[str, Callable[[], str | bytes]] = {
    "text": lambda: run_results.render(RUN, Style()),
    "trials": lambda: run_results.render(TRIALS, Style()),
    "json": lambda: run_results.mcp_assert_json(SHORT),
    "run": lambda: run_results.as_json(SHORT),
    "junit": lambda: junit.render(SHORT),
    "sarif": lambda: sarif.render(RunView(SHORT).as_problems()),
    "code_quality": lambda: sarif.render_code_quality(RunView(SHORT).as_problems()),
    "tap": lambda: tap.render(SHORT),
    "agent": lambda: agent.render(RUN, 1),
    "markdown": lambda: markdown.render(SHORT),
    "badge": lambda: badge(SHORT),
    "annotations": lambda: "".join(f"{line}\n" for line in annotations.github(SHORT)),
    "baseline": lambda: baseline.write_baseline(baseline.baseline_of(TWINS)),
}


def generated(name: str) -> str:
    example = EXAMPLES[name]()
    return example.decode("utf-8") if isinstance(example, bytes) else example


def written() -> dict[str, str]:
    return {match[2]: match[4] for match in EXAMPLE.finditer(PAGE.read_text("utf-8"))}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_the_report_writes(name: str) -> None:
    assert written().get(name) == generated(name)


def test_every_example_of_the_page_is_checked() -> None:
    assert set(written()) == set(EXAMPLES)


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    PAGE.write_text(EXAMPLE.sub(lambda m: m[1] + generated(m[2]) + m[5], page), "utf-8")
