"""Failures as annotations of GitHub Actions: they show up beside the line of the suite."""

from __future__ import annotations

from mcptest.core.results import Regression, RunReport
from mcptest.core.safe_text import show
from mcptest.report.evidence import BRIEF, detail_lines
from mcptest.report.reliability import FailedTest, failed_tests, hidden_regressions
from mcptest.report.run_results import summary
from mcptest.report.terminal import Style

ERRORS_SHOWN = 10
"""GitHub drops further ones of a step without a word."""


def github(report: RunReport) -> list[str]:
    """Workflow commands, one per line: at most ten errors, then what the run came to."""
    errors = [*map(_failure, failed_tests(report)), *map(_regression, hidden_regressions(report))]
    left_out = max(0, len(errors) - ERRORS_SHOWN)
    told = summary(report, Style(unicode=False))
    told += f"; {left_out} more in the log" if left_out else ""
    kind, early = ("warning", "interrupted: ") if report.interrupted else ("notice", "")
    return [*errors[:ERRORS_SHOWN], _command(kind, early + told, title="mcptest")]


def _failure(test: FailedTest) -> str:
    result = test.first
    lines = detail_lines(result, BRIEF)
    if result.proof is not None and result.proof.repeat:
        lines.append(f"repeat: {show(result.proof.repeat, 1_000)}")
    place = {"file": result.file} if result.file else {}
    if result.file and result.line > 0:
        place["line"] = str(result.line)
    return _command("error", "\n".join(lines), **place, title=test.title)


def _regression(regression: Regression) -> str:
    language = f" [{regression.language}]" if regression.language else ""
    message = f"regression: was {show(regression.was)}, now {show(regression.now)}"
    return _command("error", message, title=regression.name + language)


def _command(kind: str, message: str, **properties: str) -> str:
    shown = {key: _data(show(value, 300)) for key, value in properties.items()}
    written = ",".join(
        f"{key}={value.replace(':', '%3A').replace(',', '%2C')}" for key, value in shown.items()
    )
    return f"::{kind} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
