"""Expectations on the text under test, with mcp-assert's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcptest.model.message import ABSENT, json_type
from mcptest.suite import matching
from mcptest.suite.failure import Failure, Outcome
from mcptest.suite.go_format import first_runes, quote, quote_all, trim_space, value_text
from mcptest.suite.json_equality import is_number, loosely_equal
from mcptest.suite.model import Expect
from mcptest.suite.regex import as_bytes, found_in, pattern_problem
from mcptest.suite.targets import Subject
from mcptest.suite.text_as_json import whole_text

# Where an object that wraps a list keeps it. The first five are mcp-assert's.
_WRAPPERS = ("locations", "items", "results", "references", "symbols")
_LIST_RESULTS = ("prompts", "resources", "resourceTemplates", "tools")

_LONGEST_SIDE = 2000


def _cut(text: str) -> str:
    return first_runes(text, _LONGEST_SIDE)


def not_empty(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    if not expect.not_empty:
        return
    text = subject.observed.text
    trimmed = trim_space(text)
    yield (
        Failure("not_empty", f"expected non-empty result, got: {quote(trimmed)}", True, text)
        if matching.is_empty(text) or subject.observed.lists_nothing
        else None
    )


def equals(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    wanted, text = expect.equals, subject.observed.text
    if wanted is None:
        return
    sides = f"  want: {_cut(wanted)}\n  got:  {_cut(text)}"
    message = f"expected exact match:\n{sides}"
    same = matching.equals_trimmed(text, wanted) is None
    yield None if same else Failure("equals", message, wanted, text)


def contains(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    text = subject.observed.text
    for wanted in expect.contains:
        message = f"expected result to contain {quote(wanted)}, got: {first_runes(text)}"
        found = matching.holds(text, wanted)
        yield None if found else Failure("contains", message, wanted, text)


def contains_any(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    if not expect.contains_any:
        return
    text = subject.observed.text
    listed = quote_all(expect.contains_any)
    message = f"expected result to contain at least one of {listed}, got: {first_runes(text)}"
    found = matching.contains_any(text, expect.contains_any) is None
    yield None if found else Failure("contains_any", message, list(expect.contains_any), text)


def not_contains(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    text = subject.observed.text
    for unwanted in expect.not_contains:
        message = f"expected result NOT to contain {quote(unwanted)}"
        found = matching.holds(text, unwanted)
        yield Failure("not_contains", message, unwanted, text) if found else None


def matches_regex(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    text = subject.observed.text
    encoded = as_bytes(text) if expect.matches_regex else b""
    for pattern in expect.matches_regex:
        problem = pattern_problem(pattern)
        if problem is not None:
            message = f"matches_regex: invalid pattern {quote(pattern)}: {problem}"
            yield Failure("matches_regex", message, pattern, text)
            continue
        message = f"expected result to match regex {quote(pattern)}, got: {first_runes(text)}"
        found = found_in(pattern, encoded)
        yield None if found else Failure("matches_regex", message, pattern, text)


def in_order(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    if not expect.in_order:
        return
    text = subject.observed.text
    lost = matching.first_out_of_order(text, expect.in_order)
    if lost is None:
        yield None
        return
    missing, position = lost
    place = len(as_bytes(text[:position]))
    message = f"in_order: {quote(missing)} not found after position {place} in result"
    yield Failure("in_order", message, list(expect.in_order), text)


# -- the text as JSON --------------------------------------------------------------------------


def json_path(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    if not expect.json_path:
        return
    document, reason = subject.document
    if document is ABSENT:
        message = f"json_path: result is not valid JSON: {reason}"
        yield Failure("json_path", message, dict(expect.json_path), subject.observed.text)
        return
    for path in sorted(expect.json_path):
        yield _at_path(document, path, expect.json_path[path])


def _at_path(document: Any, path: str, wanted: Any) -> Outcome:
    from mcptest.suite.jsonpath import PathError, compile_path, lookup, query

    try:
        compiled = compile_path(path)
        actual = (lookup if compiled.singular else query)(document, compiled)
    except PathError as error:
        return Failure("json_path", f"json_path {quote(path)}: {error}", wanted, None, path)
    if loosely_equal(wanted, actual):
        return None
    difference = f"want {_cut(value_text(wanted))}, got {_cut(value_text(actual))}"
    return Failure("json_path", f"json_path {quote(path)}: {difference}", wanted, actual, path)


def min_results(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    least = expect.min_results
    if least is None:
        return
    count, failure = _count("min_results", subject)
    message = f"expected at least {least} results, got {count}"
    yield failure or (None if count >= least else Failure("min_results", message, least, count))


def max_results(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    most = expect.max_results
    if most is None:
        return
    count, failure = _count("max_results", subject)
    message = f"expected at most {most} results, got {count}"
    yield failure or (None if count <= most else Failure("max_results", message, most, count))


def _count(name: str, subject: Subject) -> tuple[int, Failure | None]:
    document, reason = subject.document
    results = _results_of(document)
    if results is not None:
        return len(results), None
    if document is not ABSENT:
        kind = {"boolean": "bool"}.get(json_type(document), json_type(document))
        reason = f"json: cannot unmarshal {kind} into Go value of type []interface {{}}"
    message = f"min/max_results: result is not an array or object with array field: {reason}"
    return 0, Failure(name, message, None, subject.observed.text)


def _results_of(document: Any) -> list[Any] | None:
    if isinstance(document, list):
        return document
    if document is None:
        return []
    if not isinstance(document, dict):
        return None
    completion = document.get("completion")
    lists = [document.get(name) for name in (*_WRAPPERS, *_LIST_RESULTS)]
    lists.append(completion.get("values") if isinstance(completion, dict) else None)
    return next((found for found in lists if isinstance(found, list)), None)


def net_delta(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    if expect.net_delta is not None:
        yield _net_delta(expect.net_delta, subject.observed.text)


def _net_delta(wanted: int, text: str) -> Outcome:
    document, reason = whole_text(text)
    if document is not ABSENT and not isinstance(document, dict):
        reason = f"expected an object, got {json_type(document)}"
    if reason:
        return Failure("net_delta", f"net_delta: result is not valid JSON: {reason}", wanted, text)
    actual = document.get("net_delta")
    if not is_number(actual):
        message = "net_delta: field not found or not a number in result"
        return Failure("net_delta", message, wanted, actual)
    if actual == wanted:
        return None
    message = f"expected net_delta={wanted}, got {value_text(actual)}"
    return Failure("net_delta", message, wanted, actual)
