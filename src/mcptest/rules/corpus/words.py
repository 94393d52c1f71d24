"""An expectation as a sentence, `error.code is -32602`, and what came instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mcptest.model.show import show
from mcptest.rules.corpus.rows import CorpusRule
from mcptest.suite.exchange_targets import Exchange, Expectation
from mcptest.suite.text_under_test import compact_json

_VERBS: Final = {
    "exact": "is",
    "not_exact": "is not",
    "one_of": "is one of",
    "equals_trimmed": "is",
    "contains": "contains",
    "contains_any": "contains one of",
    "not_contains": "does not contain",
    "icontains": "contains, in any case,",
    "in_order": "has in this order",
    "regex": "matches",
    "not_regex": "does not match",
    "schema": "fits the schema",
    "type": "is of type",
    "minimum": "is at least",
    "maximum": "is at most",
    "min_length": "has a length of at least",
    "max_length": "has a length of at most",
}


def in_words(one: Expectation) -> str:
    """One expectation as a clause."""
    return " and ".join(_clause(one.target, name, value) for name, value in one.matcher.items())


def _clause(target: str, name: str, argument: Any) -> str:
    if name == "exists":
        return f"{target} is there" if argument else f"{target} is not there"
    if name == "not_empty":
        return f"{target} is not empty"
    if name == "max_length" and argument == 0:
        return f"{target} is empty"
    shown = argument if isinstance(argument, str) and name == "type" else compact_json(argument)
    return f"{target} {_VERBS.get(name, name)} {show(shown, 400)}"


def expectations_in_words(rule: CorpusRule | None) -> Iterator[str]:
    """What a rule asks for, clause by clause; a rule over sessions says it by its title."""
    if rule is None:
        return
    if rule.row is None:
        yield "judged over the whole session"
        return
    if rule.row.says:
        yield rule.row.says
        return
    for one in rule.row.expect:
        yield in_words(one)


def answer_in_words(seen: Exchange) -> str:
    """What came back, whatever was expected."""
    status = seen.http.get("status") if seen.http else None
    with_status = f", with status {status}" if status is not None else ""
    if seen.answer == "none":
        return f"nothing came back{with_status}"
    if seen.answer == "result":
        return f"a result came back{with_status}"
    code = seen.error.get("code") if isinstance(seen.error, dict) else None
    return f"error {show(str(code), 40)} came back{with_status}"
