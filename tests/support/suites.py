"""Suites for tests: texts in, tests or rendered problems out."""

from __future__ import annotations

import re

from mcptest.suite.load import Given, load_text
from mcptest.suite.model import Test
from mcptest.suite.reading import render

_GIVEN = re.compile(rb"\A# given: (.*)")


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
