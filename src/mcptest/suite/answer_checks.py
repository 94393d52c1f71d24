"""Expectations on the answer as a whole: its flags, its error, its shape, its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcptest.model.message import ABSENT
from mcptest.suite import matching
from mcptest.suite.failure import Failure, Outcome
from mcptest.suite.model import Expect
from mcptest.suite.rpc_errors import error_code as code_of
from mcptest.suite.rpc_errors import error_text
from mcptest.suite.targets import Subject, resolve


def not_error(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    if not expect.not_error:
        return
    observed = subject.observed
    if observed.error is not None:
        message = f"expected no error but got {error_text(observed.error)}"
        yield Failure("not_error", message, None, observed.error)
        return
    message = "expected no error but tool returned isError=true"
    yield Failure("not_error", message, False, True) if observed.is_error else None


def is_error(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    if not expect.is_error:
        return
    observed = subject.observed
    if observed.error is not None:
        message = f"expected isError=true but got {error_text(observed.error)}"
        yield Failure("is_error", message, True, observed.error)
        return
    message = "expected error but tool returned isError=false"
    yield None if observed.is_error else Failure("is_error", message, True, False)


def min_progress(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    least, count = expect.min_progress, subject.observed.progress
    if least is None:
        return
    if count is None:
        message = "min_progress: progress was not captured, set capture_progress: true"
        yield Failure("min_progress", message, least, None)
        return
    message = f"expected at least {least} progress notification(s), got {count}"
    yield None if count >= least else Failure("min_progress", message, least, count)


def error_code(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    wanted, error = expect.error_code, subject.observed.error
    if wanted is None:
        return
    actual = code_of(error)
    if error is None:
        message = f"expected JSON-RPC error {wanted}, but the call was answered with a result"
    else:
        message = f"expected JSON-RPC error {wanted}, got {error_text(error)}"
    yield None if actual == wanted else Failure("error_code", message, wanted, actual)


def schema(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    if expect.schema is None:
        return
    value: Any = subject.observed.structured
    looked_at = "structuredContent"
    if value is ABSENT:
        value, reason = subject.document
        looked_at = "the text"
        if value is ABSENT:
            message = f"schema: there is no structuredContent, and the text is not JSON: {reason}"
            yield Failure("schema", message, expect.schema, subject.observed.text)
            return
    yield _misfit("schema", f"schema: {looked_at}", value, expect.schema)


def output_schema(subject: Subject) -> Iterator[Outcome]:
    """Structured content has to fit the tool's own schema, whether a test asks for it or not.

    A result that reports an error is exempt, as in the SDKs: it has nothing to fit.
    """
    observed = subject.observed
    if observed.structured is ABSENT or observed.output_schema is None or observed.is_error:
        return
    of_tool = f" of {observed.subject}" if observed.subject else ""
    yield _misfit(
        "output_schema",
        f"output_schema: structuredContent{of_tool}",
        observed.structured,
        observed.output_schema,
    )


def _misfit(check: str, beginning: str, value: Any, wanted: Any) -> Outcome:
    mismatch = matching.schema(value, wanted)
    if mismatch is None:
        return None
    message = f"{beginning} {mismatch.reason}"
    return Failure(check, message, mismatch.expected, mismatch.actual, mismatch.pointer)


def max_duration(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    most, actual = expect.max_duration, subject.observed.duration
    if most is None:
        return
    message = f"max_duration: expected an answer within {most:g} s, it took {actual:.3f} s"
    yield None if actual <= most else Failure("max_duration", message, most, actual)


def target_checks(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    if not expect.checks:
        return
    from mcptest.suite.matchers import match

    for row in expect.checks:
        value, missing = resolve(row.target, subject)
        mismatch = match(row.matcher, value, missing)
        if mismatch is None:
            yield None
            continue
        message = f"{row.target}: {mismatch.reason}"
        pointer = row.target + mismatch.pointer
        yield Failure("checks", message, mismatch.expected, mismatch.actual, pointer)
