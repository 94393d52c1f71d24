"""Which rules can be asked of this server, and what each then sends.

A rule is gated on what the server declares, on the transport and on what is there to be used; one
that can't be asked says why, and what would unlock it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.show import show
from mcptest.model.verdict import Outcome, Side
from mcptest.rules.corpus.placeholders import PLACEHOLDERS, WELL_KNOWN, fill
from mcptest.rules.corpus.rows import Condition, CorpusRule, Needs
from mcptest.rules.corpus.version_corpus import VersionCorpus
from mcptest.run.compliance.probe_seen import is_declared
from mcptest.run.compliance.site import Site
from mcptest.suite.check_forms import Check
from mcptest.suite.exchange_targets import Expectation

_FILLED = ("exact", "not_exact", "one_of", "contains", "not_contains")
"""Matchers whose argument may hold a placeholder; a pattern has braces of its own."""


class Question(msgspec.Struct, frozen=True):
    """A rule that can be asked: its check with all placeholders filled in."""

    id: str
    check: Check
    expect: tuple[Expectation, ...]
    when: tuple[Condition, ...] = ()
    control: Check | None = None
    unlike: Check | None = None
    absent: Check | None = None


class Unasked(msgspec.Struct, frozen=True):
    """A rule that can't be asked of this server."""

    outcome: Outcome
    reason: str
    unlocked_by: str = ""
    missing: str = ""
    """The placeholder that has no value here."""


def rules_to_judge(corpus: VersionCorpus, wanted: Sequence[str]) -> tuple[CorpusRule, ...]:
    """The rules about servers, or those of them that are wanted; UsageError for an unknown one."""
    about_servers = {name: rule for name, rule in corpus.rules.items() if _judges_server(rule)}
    for name in wanted:
        if name not in about_servers:
            raise UsageError(
                f"the corpus {corpus.version} has no rule {show(name, 40)} about servers",
                hint="mcptest compliance rules lists them",
            )
    chosen = [about_servers[name] for name in dict.fromkeys(wanted)] if wanted else None
    rules = chosen if chosen is not None else list(about_servers.values())
    return tuple(sorted(rules, key=lambda rule: (rule.section, rule.id)))


def _judges_server(rule: CorpusRule) -> bool:
    if rule.entry is not None and rule.entry.side is Side.CLIENT:
        return False
    return rule.session is None or rule.session.side is not Side.CLIENT


def question_of(rule: CorpusRule, site: Site) -> Question | Unasked:
    """What a rule with a row asks of this server, or why it does not."""
    row = rule.row
    assert row is not None  # a rule without one is judged over sessions
    refused = gate(rule, site)
    if refused is not None:
        return refused
    try:
        check = filled_check(row.check, site.known)
        of_both = row.expect_of_both_eras if site.speaks_handshake else ()
        expect = filled_expectations(of_both or row.expect, site.known)
        when = filled_conditions(row.when, site.known)
    except KeyError as missing:
        return missing_value(str(missing.args[0]))
    return Question(
        rule.id,
        _on_its_page(check, row.needs.fixture, site),
        expect,
        when,
        _filled_beside(row.control, site),
        _filled_beside(row.unlike, site),
        _filled_beside(row.absent, site),
    )


def _filled_beside(check: Check | None, site: Site) -> Check | None:
    """What is asked beside the question; None where the server has nothing to ask it of."""
    try:
        return None if check is None else filled_check(check, site.known)
    except KeyError:
        return None


def _on_its_page(check: Check, fixture: str, site: Site) -> Check:
    """A rule about the listing of one tool looks at the page on which that tool stands."""
    cursor = site.page_of_tool.get(str(site.known.get(fixture)))
    if check.method != "tools/list" or check.params is not None or cursor is None:
        return check
    return msgspec.structs.replace(check, params={"cursor": cursor})


def gate(rule: CorpusRule, site: Site) -> Unasked | None:
    """Why the rule does not apply here, or can't be seen here; None when it can."""
    needs = rule.row.needs if rule.row is not None else Needs()
    transports = rule.entry.transports if rule.entry is not None else ()
    for reason in _not_applicable(needs, transports, site):
        return Unasked(Outcome.NOT_APPLICABLE, reason)
    if needs.fixture and not _has_fixture(needs.fixture, site):
        return Unasked(
            Outcome.NOT_OBSERVED,
            f"the server has nothing that is known as {needs.fixture}",
            f"the fixture {needs.fixture}",
            needs.fixture,
        )
    return None


def is_about_another_transport(rule: CorpusRule, site: Site) -> Unasked | None:
    """Why it can't be seen over the transport of this server; None when it can."""
    needs = rule.row.needs.transport if rule.row is not None else ()
    entry = rule.entry.transports if rule.entry is not None else ()
    session = tuple(sorted(rule.session.transports)) if rule.session is not None else ()
    for reason in _elsewhere((needs, entry, session), site):
        return Unasked(Outcome.NOT_APPLICABLE, reason)
    return None


def _elsewhere(transports: Sequence[Sequence[str]], site: Site) -> Iterator[str]:
    for names in transports:
        if names and site.transport not in names:
            yield f"is about {' or '.join(names)}; the server was reached over {site.transport}"


def _not_applicable(needs: Needs, transports: Sequence[str], site: Site) -> Iterator[str]:
    yield from _elsewhere((transports, needs.transport), site)
    for name in needs.capability:
        if not is_declared(name, site.capabilities):
            yield f"the server does not declare {name}"
    if needs.any_capability and not any(
        is_declared(name, site.capabilities) for name in needs.any_capability
    ):
        yield f"the server declares none of {', '.join(needs.any_capability)}"
    for name in needs.undeclared:
        if is_declared(name, site.capabilities):
            yield f"the server declares {name}"
    if needs.session and not site.session_id:
        yield "the server gives out no session id"
    if needs.authorization and not site.asks_for_token:
        yield "the server does not ask for a token"
    if needs.single_era and site.speaks_handshake:
        yield "the server speaks older revisions too, to which this does not apply"
    extensions = site.capabilities.get("extensions")
    if needs.extension and not (isinstance(extensions, dict) and needs.extension in extensions):
        yield f"the server does not declare the extension {needs.extension}"


def _has_fixture(name: str, site: Site) -> bool:
    return name in site.known or (name not in PLACEHOLDERS and name not in WELL_KNOWN)


def missing_value(name: str) -> Unasked:
    """A placeholder has no value here."""
    known = PLACEHOLDERS.get(name)
    unlocked_by = known.unlocked_by if known is not None else ""
    return Unasked(Outcome.NOT_OBSERVED, f"it takes {unlocked_by or name}", unlocked_by, name)


def filled_check(check: Check, known: Mapping[str, Any]) -> Check:
    """The check with its placeholders replaced; KeyError names the first that has no value."""
    http = check.http
    if http is not None:
        headers = fill(http.headers, known)
        http = msgspec.structs.replace(http, headers=headers)
    return msgspec.structs.replace(
        check,
        method=fill(check.method, known),
        params=None if check.params is None else fill(check.params, known),
        meta=fill(check.meta, known),
        headers=fill(check.headers, known),
        http=http,
    )


def filled_conditions(when: Sequence[Condition], known: Mapping[str, Any]) -> tuple[Condition, ...]:
    filled = filled_expectations([one.expectation for one in when], known)
    return tuple(Condition(new, one.otherwise) for new, one in zip(filled, when, strict=True))


def filled_expectations(
    expect: Sequence[Expectation], known: Mapping[str, Any]
) -> tuple[Expectation, ...]:
    return tuple(
        Expectation(
            one.target,
            {
                name: fill(value, known) if name in _FILLED else value
                for name, value in one.matcher.items()
            },
        )
        for one in expect
    )
