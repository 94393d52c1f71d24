"""Judging one server of ours: the healthy demo, or a mutant of it."""

from __future__ import annotations

import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mcptest.core.errors import PeerError
from mcptest.core.judgement import Judgement
from mcptest.core.revision import TIMELINE, Revision
from mcptest.core.verdict import Outcome
from mcptest.probe.compliance.judging import judge_server
from mcptest.probe.compliance.site import Order
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.registry import CorpusRule
from mcptest.transport.target import Target, Way
from tests.mutants.mutant import OFFERED, TOKEN, Mutant, every_mutant

ROOT = Path(__file__).parents[2]
ALLOWED = ("add", "fail")
"""The oldest revision has no hint by which tools say that they only read."""
STARTING_SECONDS = 30.0
_WAYS: tuple[Way, ...] = ("stdio", "http", "sse")


class Case(msgspec.Struct, frozen=True):
    """One server in one revision over one transport."""

    revision: Revision
    way: Way
    rule: str = ""
    """Of the mutant; empty: the demo is healthy."""
    options: tuple[str, ...] = ()


class Seen(msgspec.Struct, frozen=True):
    """What a judgement came to, small enough to travel between processes."""

    case: Case
    failed: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    not_observed: tuple[str, ...] = ()
    outcome: str = ""
    """Of the mutant's own rule."""
    told_by: str = ""
    """The rule to which it yielded, as one that tells of the same fault."""
    trouble: str = ""
    """Why there was no judgement."""

    @property
    def is_caught(self) -> bool:
        return self.case.rule in self.failed or self.told_by in self.failed


# -- which servers -----------------------------------------------------------------------------


def first_place_of(rule: str, mutant: Mutant) -> Case:
    """The first revision and transport in which the rule can be seen."""
    for revision in TIMELINE:
        corpus = corpus_of(revision)
        found = corpus.rules.get(rule) if corpus is not None else None
        if found is not None and (not mutant.since or revision.value == mutant.since):
            return Case(revision, _way(found, revision, mutant), rule, mutant.options)
    raise LookupError(f"no corpus has {rule}")


def _way(rule: CorpusRule, revision: Revision, mutant: Mutant) -> Way:
    wanted: set[str] = set(_WAYS)
    if rule.session is not None and rule.session.transports:
        wanted = set(rule.session.transports)
    elif rule.row is not None and rule.row.needs.transport:
        wanted = set(rule.row.needs.transport)
    if mutant.over:
        wanted &= {mutant.over}
    if revision is Revision.V2024_11_05 and len(wanted) > 1:
        wanted.discard("http")  # it came with the revision after
    return next(way for way in _WAYS if way in wanted)


def mutant_cases() -> list[Case]:
    return [first_place_of(rule, one) for rule, one in sorted(every_mutant().items())]


def healthy_cases() -> list[Case]:
    """The demo in every revision and transport, and in forms that show what else there is."""
    cases = []
    for revision in TIMELINE:
        old = revision < Revision.V2026_07_28
        ways: tuple[Way, ...] = ("stdio", "http", "sse") if old else ("stdio", "http")
        cases += [Case(revision, way) for way in ways]
        cases.append(Case(revision, "http", options=("--response", "sse")))
        cases.append(Case(revision, "http", options=("--token", TOKEN)))
        for part in ("tools", "resources", "prompts", "completions", "logging", "subscribe"):
            cases.append(Case(revision, "stdio", options=("--hide", part)))
        cases.append(Case(revision, "stdio", options=("--offer", "fixtures")))
        if not old:
            cases += [Case(revision, way, options=("--era", "stateless")) for way in ways]
    return cases


# -- judging -----------------------------------------------------------------------------------


def look_at(case: Case, rules: tuple[str, ...] = ()) -> Seen:
    """Start the server, judge it by the whole corpus or by some rules of it, and end it."""
    try:
        with _served(case) as target:
            judgement = judge_server(_order(case, target, rules), lambda event: None)
    except PeerError as error:
        return Seen(case, trouble=error.message)
    return _seen(case, judgement)


def _order(case: Case, target: Target, rules: tuple[str, ...]) -> Order:
    return Order(
        target=target,
        revision=case.revision,
        rules=rules,
        allow_tools=ALLOWED,
        timeout=5.0,
        startup=STARTING_SECONDS,
        patience=1.0,
    )


def _seen(case: Case, judgement: Judgement) -> Seen:
    results = judgement.results
    own = next((one for one in results if one.id == case.rule), None)
    yielded = re.fullmatch(r"same fault as (\S+)", own.reason if own else "")
    return Seen(
        case,
        failed=tuple(one.id for one in results if one.failed),
        passed=tuple(one.id for one in results if one.outcome is Outcome.PASS),
        not_observed=tuple(one.id for one in results if one.outcome is Outcome.NOT_OBSERVED),
        outcome=own.outcome.value if own is not None else "",
        told_by=yielded.group(1) if yielded is not None else "",
    )


def command_of(case: Case) -> tuple[str, ...]:
    if case.rule:
        return (sys.executable, "-m", "tests.mutants", case.rule)
    return (sys.executable, "-m", "mcptest.servers.demo", *OFFERED, *case.options)


@contextmanager
def _served(case: Case) -> Iterator[Target]:
    """A way to the server; over HTTP it runs for as long as it is looked at."""
    command = command_of(case)
    label = case.rule or "demo"
    if case.way == "stdio":
        yield Target(way="stdio", label=label, command=command, cwd=str(ROOT))
        return
    process = subprocess.Popen(
        [*command, "--transport", "http"], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        ready, _, _ = select.select([process.stderr], [], [], STARTING_SECONDS)
        line = process.stderr.readline() if ready else ""
        url = line.removeprefix("listening on ").strip()
        if not url.startswith("http://"):
            raise RuntimeError(f"{label} does not listen: {line}")
        url = url.replace("/mcp", "/sse") if case.way == "sse" else url
        guarded = "--token" in case.options
        headers = {"Authorization": f"Bearer {TOKEN}"} if guarded else {}
        yield Target(way=case.way, label=label, url=url, headers=headers)
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
