"""Failures as annotations of GitHub Actions: they show up beside the line of the suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice

from mcptest.model.results import Regression, RunReport, Status, TestResult
from mcptest.model.show import show
from mcptest.report.evidence import BRIEF, detail_lines
from mcptest.report.reliability import Identity, identity_of, titles_of
from mcptest.report.results_text import summary
from mcptest.report.terminal import Style

ERRORS_SHOWN = 10
"""GitHub drops further ones of a step without a word."""


def github(report: RunReport) -> list[str]:
    """Workflow commands, one per line: at most ten errors, then what the run came to."""
    failed: dict[Identity, TestResult] = {}
    for result in report.results:
        if result.status is Status.FAIL:
            failed.setdefault(identity_of(result), result)
    # A failing test has its own annotation; a regression may also be a test that is skipped now.
    others = [r for r in report.regressions if r.now != Status.FAIL.value]
    errors = chain(_failures(report, failed), map(_regression, others))
    left_out = max(0, len(failed) + len(others) - ERRORS_SHOWN)
    return [*islice(errors, ERRORS_SHOWN), _conclusion(report, left_out)]


def _conclusion(report: RunReport, left_out: int) -> str:
    told = summary(report, Style(unicode=False))
    if left_out:
        told += f"; {left_out} more to see in the log"
    if report.interrupted:
        return _command("warning", f"interrupted: {told}", title="mcptest")
    return _command("notice", told, title="mcptest")


def _failures(report: RunReport, failed: Mapping[Identity, TestResult]) -> Iterator[str]:
    titles = titles_of(map(identity_of, report.results))
    for test, result in failed.items():
        yield _command("error", _message(result), **_place(result), title=titles[test])


def _regression(regression: Regression) -> str:
    language = f" [{regression.language}]" if regression.language else ""
    message = f"regression: was {show(regression.was)}, now {show(regression.now)}"
    return _command("error", message, title=regression.name + language)


def _message(result: TestResult) -> str:
    lines = detail_lines(result, BRIEF)
    if result.proof is not None and result.proof.repeat:
        lines.append(f"repeat: {show(result.proof.repeat, 1_000)}")
    return "\n".join(lines)


def _place(result: TestResult) -> dict[str, str]:
    if not result.file:
        return {}
    place = {"file": result.file}
    return {**place, "line": str(result.line)} if result.line > 0 else place


def _command(kind: str, message: str, **properties: str) -> str:
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{kind} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(show(text, 300)).replace(":", "%3A").replace(",", "%2C")
