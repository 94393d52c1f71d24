"""Suites for tests: texts in, tests or rendered problems out."""

from __future__ import annotations

import re

from mcptest.suite.expectations import evaluate
from mcptest.suite.load import Given, load_content
from mcptest.suite.matching import Failure
from mcptest.suite.model import Expect, Test
from mcptest.suite.observed import Observed
from mcptest.suite.reading import SuiteSource, render

_GIVEN = re.compile(rb"\A# given: (.*)")


def load_text(data: bytes, file: str, given: Given | None = None) -> tuple[list[Test], SuiteSource]:
    """The tests of one file's bytes, and the source with its problems."""
    content, source = load_content(data, file, given or Given())
    return list(content.tests), source


def check(expect: Expect, observed: Observed, *, all_failures: bool = False) -> list[Failure]:
    """The first failure, or all of them; empty when everything that was asked for holds."""
    return list(evaluate(expect, observed, all_failures=all_failures).failures)


def understood(text: str, given: Given | None = None) -> list[Test]:
    """The tests of a suite that has no problem."""
    tests, source = load_text(text.encode(), "suite.yaml", given)
    assert not source.problems, "\n".join(map(render, source.problems))
    return tests


def problems_in(data: bytes | str, file: str = "suite.yaml") -> str:
    """Everything that is wrong, as people see it. The first line may say what is given."""
    raw = data.encode() if isinstance(data, str) else data
    said = _GIVEN.match(raw)
    words = said.group(1).decode().split() if said else []
    given = Given(**dict.fromkeys(words, True))
    tests, source = load_text(raw, file, given)
    assert not (tests and source.errors and b"tests:" not in raw)
    return "\n\n".join(map(render, source.finish()))
