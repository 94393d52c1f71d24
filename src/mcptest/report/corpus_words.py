"""A row of a corpus in words: what is sent, what is expected, what it takes to be asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mcptest.model.show import show
from mcptest.rules.corpus.placeholders import PLACEHOLDERS, WELL_KNOWN, placeholders_in
from mcptest.rules.corpus.probes import PROBES
from mcptest.rules.corpus.rows import Condition, Needs, Row
from mcptest.rules.corpus.words import in_words
from mcptest.suite.check_forms import Check
from mcptest.suite.text_under_test import compact_json

LIMIT = 1_000


def sent_in_words(check: Check) -> list[str]:
    """What is sent, line by line. Names in braces are explained at the end."""
    if check.probe:
        lines = list(_probe(check.probe))
    elif check.http is not None:
        lines = [_text(f"HTTP {check.http.method}", *_headers(check.http.headers))]
        lines += [f"with the body {show(check.http.body, LIMIT)}"] if check.http.body else []
    elif check.raw:
        lines = [f"as it stands: {show(check.raw, LIMIT)}"]
    else:
        lines = list(_request(check))
    return [*lines, *(_placeholder(name) for name in _names_in(check))]


def _request(check: Check) -> Iterator[str]:
    params = f" {compact_json(check.params)}" if check.params is not None else ""
    yield show(f"{check.method}{params}", LIMIT)
    for part in check.omit:
        yield f"without {part}"
    yield from (f"with {line}" for line in _members("in _meta", check.meta))
    yield from (f"with {line}" for line in _headers(check.headers))
    if check.declare:
        yield f"by a client that declares {', '.join(check.declare)}"


def _members(where: str, members: Any) -> Iterator[str]:
    for name, value in members.items():
        shown = "nothing" if value is None else compact_json(value)
        yield show(f"{shown} for {name} {where}", LIMIT)


def _headers(headers: Any) -> list[str]:
    return list(_members("in the headers", headers))


def _text(*parts: str) -> str:
    return ", with ".join(parts)


def _probe(name: str) -> Iterator[str]:
    probe = PROBES[name]
    yield probe.about
    for step in probe.steps:
        sent = step.send
        said = sent.raw or (sent.said if sent.method or sent.http is not None else "")
        yield show(f"step {step.name}: {step.action.replace('_', ' ')} {said}".rstrip(), LIMIT)


def _names_in(check: Check) -> list[str]:
    checks = [check]
    if check.probe:
        checks += [step.send for step in PROBES[check.probe].steps]
    used: list[Any] = []
    for one in checks:
        used += [one.method, one.params, one.meta, one.headers]
        used += [one.http.headers, one.http.body] if one.http is not None else []
    # They are found from the last to the first.
    found = reversed(dict.fromkeys(placeholders_in(used)))
    return [name for name in found if name in PLACEHOLDERS]


def _placeholder(name: str) -> str:
    return f"{{{name}}}: {PLACEHOLDERS[name].about}"


def expected_in_words(row: Row) -> list[str]:
    """What must hold, clause by clause; the words of the row come first where it has some."""
    return [row.says] if row.says else [in_words(one) for one in row.expect]


def needs_in_words(needs: Needs) -> list[str]:
    """What must be so for the rule to be asked; empty when it always is."""
    found = [f"the server declares {', '.join(needs.capability)}"] if needs.capability else []
    if needs.any_capability:
        found.append(f"the server declares one of {', '.join(needs.any_capability)}")
    if needs.undeclared:
        found.append(f"the server does not declare {', '.join(needs.undeclared)}")
    if needs.transport:
        found.append(f"the transport is {' or '.join(needs.transport)}")
    if needs.session:
        found.append("the server gave out a session id")
    if needs.authorization:
        found.append("the server asks for a token")
    if needs.extension:
        found.append(f"the server declares the extension {needs.extension}")
    if needs.fixture:
        known = WELL_KNOWN.get(needs.fixture, ())
        named = f", or it has {' or '.join(known)}" if known else ""
        found.append(f"the server has the fixture {needs.fixture}{named}")
    return found


def conditions_in_words(when: Sequence[Condition]) -> list[str]:
    """What must hold of an exchange before anything is expected of it, and what it is called
    where it does not: then the rule was not observed."""
    return [
        f"{in_words(one.expectation)} (otherwise not observed: {one.otherwise})" for one in when
    ]


def asked_in_words(row: Row) -> list[tuple[str, list[str]]]:
    """The whole row, as headings with their lines."""
    parts = [
        ("What is sent", sent_in_words(row.check)),
        ("What is expected", expected_in_words(row)),
        ("Asked when", needs_in_words(row.needs)),
        ("Judged only when", conditions_in_words(row.when)),
        ("Why it does no harm", [row.safe] if row.safe else []),
    ]
    return [(heading, lines) for heading, lines in parts if lines]
