"""Which rules can be asked of this server, what each then sends, and asking them.

A rule is gated on what the server declares, on the transport and on what is there to be used; one
that can't be asked says why, and what would unlock it. Rows are asked together where nothing
disturbs, and alone where something might; identical checks are asked once. A server that dies or
falls silent is started again, and the checks that were under way are asked one at a time until
the one is found that did it.
"""

from __future__ import annotations

import contextlib
import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import msgspec

from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.judgement import Evidence, RootCause, RuleResult
from mcptest.core.masking import Masker
from mcptest.core.revision import Era, Revision
from mcptest.core.safe_text import show, show_lines
from mcptest.core.verdict import Outcome, Side
from mcptest.probe.compliance.conversation import Asked, Conversation, is_odd, may_change_era
from mcptest.probe.compliance.course import Purpose, set_going, shared
from mcptest.probe.compliance.site import Site
from mcptest.rules.corpus.probes import Placeholder, fill, fill_check, placeholders, well_known
from mcptest.rules.corpus.reader import VersionCorpus
from mcptest.rules.corpus.registry import BESIDE, Condition, CorpusRule, Expected, Needs, Row
from mcptest.rules.protocol import object_at
from mcptest.session.pages import is_declared
from mcptest.suite.model import Expectation
from mcptest.suite.sent_message import SentCheck
from mcptest.wire.mcp_headers import hint_for_status

_FILLED = ("exact", "not_exact", "one_of", "contains", "not_contains")
"""Matchers whose argument may hold a placeholder; a pattern has braces of its own."""


class Unasked(msgspec.Struct, frozen=True):
    """A rule that can't be asked of this server."""

    outcome: Outcome
    reason: str
    unlocked_by: str = ""
    missing: str = ""
    """The placeholder that has no value here."""
    cause: str = ""
    """The root cause that kept it from being asked."""


def kept_from(cause: str) -> Unasked:
    """Something else went wrong before it could be judged."""
    return Unasked(Outcome.INCONCLUSIVE, f"not judged: see {cause}", cause=cause)


def rules_to_judge(corpus: VersionCorpus, wanted: Sequence[str]) -> tuple[CorpusRule, ...]:
    """The rules about servers, or those of them that are wanted; UsageError for an unknown one."""
    about_servers = {
        name: rule
        for name, rule in corpus.rules.items()
        if Side.CLIENT not in (rule.said.side, rule.session and rule.session.side)
    }
    for name in wanted:
        if name not in about_servers:
            message = f"the corpus {corpus.version} has no rule {show(name, 40)} about servers"
            raise UsageError(message, hint="list the rules with mcptest compliance rules")
    rules = [about_servers[name] for name in dict.fromkeys(wanted or about_servers)]
    return tuple(sorted(rules, key=lambda rule: (rule.section, rule.id)))


def question_of(rule: CorpusRule, site: Site) -> Row | Unasked:
    """The row of a rule with all placeholders filled in, or why it is not asked of this server."""
    row = rule.row
    assert row is not None  # a rule without one is judged over sessions
    refused = gate(rule, site)
    if refused is not None:
        return refused
    of_both = row.expect_of_both_eras if site.speaks_handshake else ()
    try:
        check = fill_check(row.check, site.known)
        expect = filled_expectations(of_both or row.expect, site.known)
        when = filled_conditions(row.when, site.known)
    except KeyError as missing:
        return missing_value(str(missing.args[0]))
    # A rule about the listing of one tool looks at the page on which that tool stands.
    cursor = site.page_of_tool.get(str(site.known.get(row.needs.fixture)))
    if check.method == "tools/list" and check.params is None and cursor is not None:
        check = msgspec.structs.replace(check, params={"cursor": cursor})
    beside: dict[str, Any] = dict.fromkeys(BESIDE)
    for name, asked in row.beside.items():
        with contextlib.suppress(KeyError):  # the server may have nothing to ask it of
            beside[name] = fill_check(asked, site.known)
    return replace(row, check=check, expect=expect, when=when, **beside)


def gate(rule: CorpusRule, site: Site) -> Unasked | None:
    """Why the rule does not apply here, or can't be seen here; None when it can."""
    needs = rule.row.needs if rule.row is not None else Needs()
    for reason in _not_applicable(needs, rule.said.transports, site):
        return Unasked(Outcome.NOT_APPLICABLE, reason)
    is_fixture = needs.fixture in placeholders() or needs.fixture in well_known()
    if is_fixture and needs.fixture not in site.known:
        reason = f"the server has no fixture {needs.fixture}"
        return Unasked(Outcome.NOT_OBSERVED, reason, f"the fixture {needs.fixture}", needs.fixture)
    return None


def is_about_another_transport(rule: CorpusRule, site: Site) -> Unasked | None:
    """Why it can't be seen over the transport of this server; None when it can."""
    needs = rule.row.needs.transport if rule.row is not None else ()
    session = sorted(rule.session.transports) if rule.session is not None else ()
    for reason in _elsewhere((needs, rule.said.transports, session), site):
        return Unasked(Outcome.NOT_APPLICABLE, reason)
    return None


def _elsewhere(transports: Sequence[Sequence[str]], site: Site) -> Iterator[str]:
    for names in transports:
        if names and site.transport not in names:
            yield f"applies to {' or '.join(names)} only, and the server uses {site.transport}"


def _not_applicable(needs: Needs, transports: Sequence[str], site: Site) -> Iterator[str]:
    yield from _elsewhere((transports, needs.transport), site)
    for name in needs.capability:
        if not is_declared(name, site.capabilities):
            yield f"the server does not declare {name}"
    declared = [name for name in needs.any_capability if is_declared(name, site.capabilities)]
    if needs.any_capability and not declared:
        yield f"the server declares none of {', '.join(needs.any_capability)}"
    for name in needs.undeclared:
        if is_declared(name, site.capabilities):
            yield f"the server declares {name}"
    if needs.session and not site.session_id:
        yield "the server issues no session ids"
    if needs.authorization and not site.asks_for_token:
        yield "the server does not require a token"
    if needs.single_era and site.speaks_handshake:
        yield "the server also supports older revisions, where this does not apply"
    if needs.extension and needs.extension not in object_at(site.capabilities, "extensions"):
        yield f"the server does not declare the extension {needs.extension}"


def missing_value(name: str) -> Unasked:
    unlocked_by = placeholders().get(name, Placeholder(name)).unlocked_by
    return Unasked(Outcome.NOT_OBSERVED, f"it needs {unlocked_by or name}", unlocked_by, name)


def filled_conditions(when: Sequence[Condition], known: Mapping[str, Any]) -> tuple[Condition, ...]:
    filled = filled_expectations([one.expectation for one in when], known)
    return tuple(Condition(new, one.otherwise) for new, one in zip(filled, when, strict=True))


def filled_expectations(expect: Sequence[Expectation], known: Mapping[str, Any]) -> Expected:
    def filled(matcher: Mapping[str, Any]) -> dict[str, Any]:
        pairs = matcher.items()
        return {name: fill(one, known) if name in _FILLED else one for name, one in pairs}

    return tuple(Expectation(one.target, filled(one.matcher)) for one in expect)


SHOWN = 2_000
_CAUSE_SHOWN = 600
UNAUTHORIZED = frozenset({401, 403})
_UNCHECKED = "unchecked"
_HINTS = {
    "exited": "catch errors per request, so that no message can end the process",
    "silence": "answer every request, with an error if it cannot be served",
    "banner": "write only messages to stdout, and logs to stderr",
    "unauthorized": hint_for_status(401),
    _UNCHECKED: "offer schemas without multiplying references, and lists that end",
    "unreachable": "keep the server running for several parallel connections",
}

_ENDS_BY_ITSELF = (
    "it exits whatever it receives: provide what it needs, such as a backend or a variable (--env)"
)


class Causes:
    """The causes of one run, each told once."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._found: dict[str, RootCause] = {}

    def note(self, name: str, message: str, evidence: tuple[Evidence, ...] = ()) -> str:
        """Tell of a cause; the first of its kind is the one that is kept. Returns its id."""
        if name not in self._found:
            self._found[name] = RootCause(name, self._safe(message), _HINTS.get(name, ""), evidence)
        return name

    def _safe(self, message: str) -> str:
        """What is too long loses the first lines of stderr: the last one says what went wrong."""
        first, *quoted = self._masker.text(message).split("\n")
        room, at = _CAUSE_SHOWN - len(first), len(quoted)
        while at and (room := room - len(quoted[at - 1]) - 1) > 0:
            at -= 1
        kept = quoted[at:] or quoted
        return show_lines("\n".join((first, *kept)), _CAUSE_SHOWN)

    def note_unchecked(self, message: str) -> str:
        """Tell of something that costs too much to look at. Returns the id of the cause."""
        names = [name for name in self._found if name.startswith(_UNCHECKED)]
        safe = self._safe(message)
        known = next((name for name in names if self._found[name].message == safe), None)
        if known is not None:
            return known
        name = f"{_UNCHECKED}-{len(names) + 1}" if names else _UNCHECKED
        self._found[name] = RootCause(name, safe, _HINTS[_UNCHECKED])
        return name

    def note_error(self, error: PeerError, evidence: tuple[Evidence, ...] = ()) -> str:
        names = {ErrorKind.EXITED: "exited", ErrorKind.TIMEOUT: "silence"}
        return self.note(names.get(error.kind, "unreachable"), error.message, evidence)

    def note_ending(self, error: PeerError) -> str:
        """The server ends while nothing is asked of it: whatever else ended it is put down to that.

        Returns the id of the cause.
        """
        self._found.pop("exited", None)
        name = self.note("exited", f"after a plain request, {error.message}")
        self._found[name] = msgspec.structs.replace(self._found[name], hint=_ENDS_BY_ITSELF)
        return name

    def counted(self, results: Iterable[RuleResult]) -> tuple[RootCause, ...]:
        """All causes with how many rules each kept from being judged."""
        held = Counter(result.cause for result in results)
        found = self._found.values()
        return tuple(msgspec.structs.replace(one, kept_from_judging=held[one.id]) for one in found)


def evidence_of(sent: bytes, received: bytes, shown: int = SHOWN) -> Evidence:
    """The bytes, which hold no secret any more, as they may be shown."""
    return Evidence(show(sent, shown), show(received, shown))


IN_FLIGHT = 16
_MOST_DEATHS = 8
"""So often a server is started again before the rest is given up."""
_MOST_SILENCES = 2
"""Silence has to be waited out, so it is looked into less often."""
_SINGLED_OUT = ("asked", "notifications")
"""Targets that can't be told apart when several requests are under way."""

Opener: TypeAlias = Callable[[], Conversation]


class CheckLane(enum.Enum):
    """Where a check is asked."""

    PLAIN = "plain"
    """Ordinary requests, many at once on one connection."""
    ALONE = "alone"
    """One at a time: what the server does meanwhile is looked at."""
    ODD = "odd"
    """Requests with other headers or another `_meta` than usual."""
    SPOILING = "spoiling"
    """Requests that a server of both eras may read as of the other one: the last that it gets."""
    RUDE = "rude"
    """Bytes and HTTP requests that no client would send."""
    FIRST = "first"
    """`initialize`, each on a connection of its own."""
    LAST = "last"
    """How the connection fared after everything."""


class RowJob(msgspec.Struct, eq=False):
    """One check that is asked, for every rule that needs it."""

    check: SentCheck
    lane: CheckLane
    asked: Asked | None = None
    killed: PeerError | None = None
    """The server did not survive it, or said nothing any more."""
    cause: str = ""
    """Why it could not be asked."""
    conversation: Conversation | None = None
    """Where it was asked."""
    beside: dict[str, RowJob] = {}


def lane_of(question: Row, revision: Revision) -> CheckLane:
    check = question.check
    conditions = (one.expectation for one in question.when)
    targets = [one.target for one in (*question.expect, *conditions)]
    if check.is_raw or check.http is not None:
        return CheckLane.RUDE
    if check.method == "initialize":
        return CheckLane.FIRST
    if may_change_era(check, revision):
        return CheckLane.SPOILING
    if is_odd(check):
        return CheckLane.ODD
    if any(one.startswith("transport_observation") for one in targets):
        return CheckLane.LAST
    if check.declare or any(one.startswith(_SINGLED_OUT) for one in targets):
        return CheckLane.ALONE
    return CheckLane.PLAIN


def jobs_of(questions: Iterable[Row], revision: Revision) -> dict[str, RowJob]:
    """The job of each rule; rules with the same check on the same lane share one."""
    shared: dict[tuple[CheckLane, bytes], RowJob] = {}
    found: dict[str, RowJob] = {}

    def job_for(question: Row, check: SentCheck) -> RowJob:
        lane = lane_of(replace(question, check=check), revision)
        return shared.setdefault((lane, msgspec.json.encode(check)), RowJob(check, lane))

    for question in questions:
        job = found[question.rule_id] = job_for(question, question.check)
        for name, check in question.beside.items():
            job.beside[name] = job_for(question, check)
    return found


def with_those_beside(jobs: Iterable[RowJob]) -> list[RowJob]:
    """All that is to be asked, each once."""
    every = (each for job in jobs for each in (job, *map(job.beside.get, BESIDE)))
    return list(dict.fromkeys(one for one in every if one is not None))


class Asking:
    def __init__(self, site: Site, causes: Causes) -> None:
        self._site = site
        self._causes = causes
        self._deaths = 0
        self._silences = 0
        self.given_up = ""
        """The cause for which nothing more is asked."""

    def set_going(self, jobs: Sequence[RowJob]) -> None:
        """Servers that start while others are talked to."""
        lanes, raw = {job.lane for job in jobs}, any(job.check.is_raw for job in jobs)
        try:
            if lanes & {CheckLane.PLAIN, CheckLane.ALONE}:
                set_going(self._site, ["polite"])
            if raw or lanes & {CheckLane.ODD, CheckLane.SPOILING}:
                set_going(self._site, ["rude"])
        except PeerError as error:
            self.give_up(error)

    def ask_politely(self, jobs: Sequence[RowJob]) -> None:
        """What any client may ask."""
        self._together(_on(CheckLane.PLAIN, jobs), partial(shared, self._site, "polite"), IN_FLIGHT)
        # Where every request says what the client can do, one connection is enough for all.
        stateless = self._site.revision.era is Era.STATELESS
        by_declare: dict[tuple[str, ...], list[RowJob]] = {}
        for job in _on(CheckLane.ALONE, jobs):
            by_declare.setdefault(() if stateless else job.check.declare, []).append(job)
        for declare, alone in by_declare.items():
            self._together(alone, partial(shared, self._site, "polite", declare), 1)

    def ask_rudely(self, jobs: Sequence[RowJob]) -> None:
        """What no client should send, one at a time; over pipes to a process of its own."""
        raw = [job for job in _on(CheckLane.RUDE, jobs) if job.check.http is None]
        bare = [job for job in _on(CheckLane.RUDE, jobs) if job.check.http is not None]
        self._together([*raw, *_on(CheckLane.ODD, jobs)], partial(shared, self._site, "rude"), 1)
        # A server may allow one GET stream at a time: none of ours may be open already.
        self._together(bare, partial(shared, self._site, "quiet"), 1)

    def ask_first(self, jobs: Sequence[RowJob]) -> None:
        """`initialize`, each on a connection of its own; what was asked already is not again."""
        greeting = self._site.greeting
        for job in _on(CheckLane.FIRST, jobs):
            if greeting is not None and job.check == greeting[0]:
                job.asked = greeting[1]
        self.ask_unbegun([job for job in _on(CheckLane.FIRST, jobs) if job.asked is None])

    def ask_last(self, jobs: Sequence[RowJob], lane: CheckLane, purpose: Purpose) -> None:
        """What comes after everything else, one at a time on a connection for that purpose."""
        self._together(_on(lane, jobs), partial(shared, self._site, purpose), 1)

    def ask_unbegun(self, jobs: Sequence[RowJob]) -> None:
        """Of a server that does not let us in: each request by itself, with no session."""
        launched: list[tuple[RowJob, Conversation]] = []
        for job in jobs:
            conversation = self._conversation(lambda: self._site.launch(begin=False))
            if conversation is None:
                job.cause = self.given_up
            else:
                conversation.polite = False
                launched.append((job, conversation))
        started = [(job, one, one.start(job.check)) for job, one in launched]
        for job, one, under_way in started:
            job.asked = _without_messages(one.finish(under_way))
            if not one.usable:
                job.killed = one.gone
                slow = slow_machine(self._site, one)
                job.cause = "" if slow is None else self._causes.note_error(slow)
            # The site ends all of them side by side: some servers leave slowly.

    # -- asking ----------------------------------------------------------------------------

    def _together(self, jobs: Sequence[RowJob], opener: Opener, in_flight: int) -> None:
        for start in range(0, len(jobs), in_flight):
            batch = jobs[start : start + in_flight]
            conversation = self._conversation(opener)
            if conversation is None:
                for job in batch:
                    job.cause = self.given_up
                continue
            started = [(job, conversation.start(job.check)) for job in batch]
            for job, under_way in started:
                asked = conversation.finish(under_way)
                if job.asked is not None and _is_unanswered(job):  # it was waited for once already
                    cut_short = asked.cut_short and job.asked.cut_short
                    asked = msgspec.structs.replace(asked, cut_short=cut_short)
                job.asked = _without_messages(asked)
                job.conversation = conversation
            if not conversation.usable:
                self._find_the_one(conversation, batch, opener)

    def _conversation(self, opener: Opener) -> Conversation | None:
        if self.given_up:
            return None
        try:
            return opener()
        except PeerError as error:
            self.give_up(error)
            return None

    def _find_the_one(
        self, conversation: Conversation, batch: Sequence[RowJob], opener: Opener
    ) -> None:
        """After this batch the server was dead or silent: which of them did it?"""
        self._deaths += conversation.gone is not None
        self._silences += conversation.gone is None
        enough = self._deaths > _MOST_DEATHS or self._silences > _MOST_SILENCES
        error = conversation.gone or silence(conversation, self._site.order.timeout)
        suspects = [job for job in batch if _is_unanswered(job)]
        if len(batch) == 1 and (slow := slow_machine(self._site, conversation)) is not None:
            batch[0].cause = self._causes.note_error(slow)
        elif len(batch) == 1:
            batch[0].killed = error
            sent = batch[0].asked.sent if batch[0].asked is not None else b""
            told = PeerError(error.kind, f"after {batch[0].check.said}: {error.message}")
            self._causes.note_error(told, (evidence_of(sent, b""),))
        elif enough:
            self.give_up(error)
            for job in suspects:
                job.cause = self.given_up
        else:
            self._together(suspects, opener, 1)
        if enough:
            self.give_up(error)

    def give_up(self, error: PeerError) -> None:
        """Whatever was not asked by now is not asked any more, for this reason."""
        self.given_up = self.given_up or self._causes.note_error(error)


def _without_messages(asked: Asked) -> Asked:
    """Rules look at the exchange; the messages would stay in memory until all was asked."""
    return msgspec.structs.replace(asked, answers=())


def _on(lane: CheckLane, jobs: Sequence[RowJob]) -> list[RowJob]:
    return [job for job in jobs if job.lane is lane]


def _is_unanswered(job: RowJob) -> bool:
    seen = job.asked.exchange if job.asked is not None else None
    return seen is None or (seen.answer == "none" and seen.http is None)


def silence(conversation: Conversation, limit: float) -> PeerError:
    """It answers nothing, whatever else it says."""
    came = conversation.client.connection.what_came_instead()
    message = f"the server did not answer for {limit:g}s; {came}"
    return PeerError(ErrorKind.TIMEOUT, message)


_HEAD = 200
"""Bytes of a message in which its method stands, if it has one."""


def slow_machine(
    site: Site, conversation: Conversation, *, again: bool = False
) -> PeerError | None:
    """Why the silence of a process says nothing about the server, where that is so.

    A process that was started after it settles this without a clock: only once that one has
    answered has the first one had as long as an answer takes here. Over HTTP all connections lead
    to the same process, so there is none to compare with: what is asked `again` there has the
    whole timeout, however little was left of it at first.
    """
    has_twin = conversation.transport == "stdio"
    if not conversation.mute or not (has_twin or again):
        return None
    last = conversation.tape.last_answer

    def has_answered() -> bool:
        """Notifications are none, however many there are."""
        latest = conversation.tape.last_answer
        return latest is not last and b'"method":' not in latest[:_HEAD]

    if has_twin:
        try:
            site.leave(site.open())
        except PeerError as error:
            return error
    if not conversation.pump(site.order.patience if has_twin else site.order.timeout, has_answered):
        return None
    return PeerError(ErrorKind.TIMEOUT, "the server answered after the timeout")


def side_by_side(acts: Sequence[Callable[[], None]]) -> None:
    """Each in a thread of its own; when all have ended, the first error of them is raised."""
    with ThreadPoolExecutor(len(acts), "mcptest-lane") as pool:
        ended = [pool.submit(act) for act in acts]
    for one in ended:
        one.result()
