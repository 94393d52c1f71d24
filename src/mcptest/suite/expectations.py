"""Does an answer meet an `expect` block? Pure: no clock, no disk, no server.

The order is that of mcp-assert, ours come after; its messages are kept where it has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcptest.suite import answer_checks, file_checks, text_checks
from mcptest.suite.failure import Evaluation, Failure, Outcome, evaluation_of
from mcptest.suite.go_format import first_runes
from mcptest.suite.model import Expect
from mcptest.suite.observed import Observed
from mcptest.suite.rpc_errors import error_text
from mcptest.suite.targets import Subject, split_target

__all__ = ["CHECKS", "Evaluation", "Failure", "check", "evaluate"]

_RESPONSE_SHOWN = 2000

CHECKS: tuple[tuple[str, Callable[[Expect, Subject], Iterator[Outcome]]], ...] = (
    ("not_error", answer_checks.not_error),
    ("is_error", answer_checks.is_error),
    ("not_empty", text_checks.not_empty),
    ("equals", text_checks.equals),
    ("contains", text_checks.contains),
    ("contains_any", text_checks.contains_any),
    ("not_contains", text_checks.not_contains),
    ("matches_regex", text_checks.matches_regex),
    ("json_path", text_checks.json_path),
    ("min_results", text_checks.min_results),
    ("max_results", text_checks.max_results),
    ("net_delta", text_checks.net_delta),
    ("file_contains", file_checks.file_contains),
    ("file_not_contains", file_checks.file_not_contains),
    ("file_not_exists", file_checks.file_not_exists),
    ("in_order", text_checks.in_order),
    ("file_unchanged", file_checks.file_unchanged),
    ("min_progress", answer_checks.min_progress),
    ("error_code", answer_checks.error_code),
    ("schema", answer_checks.schema),
    ("max_duration", answer_checks.max_duration),
    ("checks", answer_checks.target_checks),
)
"""Every expectation by name, in the order of evaluation."""


def check(expect: Expect, observed: Observed, *, all_failures: bool = False) -> list[Failure]:
    """The first failure, or all of them; empty when everything that was asked for holds."""
    return list(evaluate(expect, observed, all_failures=all_failures).failures)


def evaluate(expect: Expect, observed: Observed, *, all_failures: bool = False) -> Evaluation:
    """As `check`, and how many checks were made. Nothing checked is a failure."""
    unusable = _unusable(expect, observed)
    if unusable is not None:
        return Evaluation((unusable,), 1)
    subject = Subject(observed)
    outcomes = (outcome for _, made in CHECKS for outcome in made(expect, subject))
    found = evaluation_of(
        outcomes, all_failures=all_failures, unasked=answer_checks.output_schema(subject)
    )
    return _with_the_response(found, observed)


def _unusable(expect: Expect, observed: Observed) -> Failure | None:
    """An answer that fails every test: an error nobody asked for, or a result that is none."""
    if observed.problem:
        message = f"{observed.failing}: {observed.problem}"
        return Failure("result", message, None, observed.result)
    if observed.error is None or _asks_for_an_error(expect):
        return None
    message = f"{observed.failing}: {error_text(observed.error)}"
    if expect.is_error:
        message += "; is_error means a result with isError=true, use error_code for this"
    return Failure("error", message, None, observed.error)


def _asks_for_an_error(expect: Expect) -> bool:
    return expect.error_code is not None or any(
        split_target(row.target)[0] == "error" for row in expect.checks
    )


def _with_the_response(found: Evaluation, observed: Observed) -> Evaluation:
    """What a tool says about its own error usually explains the failure."""
    if not found.failures or not observed.is_error or not observed.text:
        return found
    first, *others = found.failures
    response = first_runes(observed.text, _RESPONSE_SHOWN)
    message = f"{first.message}\n      server response: {response}"
    told = Failure(first.check, message, first.expected, first.actual, first.pointer)
    return Evaluation((told, *others), found.checked)
