"""Judging a live server: meet it, learn what it has, ask the corpus, judge what came."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.judgement import (
    CUT_SHORT,
    Event,
    Judgement,
    JudgingBegan,
    JudgingWaits,
    RuleJudged,
    RuleResult,
)
from mcptest.core.revision import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE, Era, Revision
from mcptest.core.safe_text import in_one_line, show
from mcptest.core.verdict import Outcome, Severity
from mcptest.probe.compliance.confirmation import Confirmation, Doubt, Second, unconfirmed
from mcptest.probe.compliance.conversation import Conversation, Started, http_facts
from mcptest.probe.compliance.learning import learn, learn_about_eras
from mcptest.probe.compliance.probing import (
    Probed,
    Unobserved,
    is_taken_aside,
    prepare_probes,
    run_probe,
)
from mcptest.probe.compliance.questions import (
    UNAUTHORIZED,
    Asking,
    Causes,
    CheckLane,
    RowJob,
    Unasked,
    evidence_of,
    is_about_another_transport,
    jobs_of,
    kept_from,
    question_of,
    rules_to_judge,
    side_by_side,
    with_those_beside,
)
from mcptest.probe.compliance.rule_results import (
    Deciding,
    Results,
    answers_of,
    for_a_cause,
    judge_session,
    judge_sessions,
    without_findings,
)
from mcptest.probe.compliance.site import Order, Site
from mcptest.rules.corpus.probes import Probe, all_probes
from mcptest.rules.corpus.reader import VersionCorpus, corpus_of
from mcptest.rules.corpus.registry import CorpusRule, RegistryEntry, Row
from mcptest.rules.declaration import RULES
from mcptest.rules.grading import grade, profile_of
from mcptest.rules.known_sdks import with_known_behaviour
from mcptest.rules.yielding import passes_in_doubt, proof_of_result, reason_for, yielding_to
from mcptest.session.answers import EVERYTHING
from mcptest.session.connection import Stopped
from mcptest.session.meeting import Met
from mcptest.suite.lane_blocks import ComplianceTest
from mcptest.suite.sent_message import SentCheck

_TALKATIVE = ("progress_tool", "logging_tool")
_NAMED = 5
_MOST_SILENCES = 4
"""Each of them has to be waited out."""
_WITHOUT_TOKEN = {"Authorization": None}
_BANNER = "banner"
"""The cause of what fails where lines on stdout are no messages."""
_FOREIGN = frozenset({403, 421})
"""What a server answers that does not want to be reached under this name."""
_REACHED_OTHERWISE = (
    "use a host name that the server allows, such as localhost, or allow this address in its "
    "settings (servers check Host and Origin against DNS rebinding); if it needs a token, pass it "
    "with --header 'Authorization=Bearer …'"
)
_LONGER = 1.0
"""Seconds more than another one lived, for a process that is left alone."""
_NOT_ASKED_AGAIN = "it failed once, and the run was interrupted before it could be repeated"
_INTERRUPTED = Unasked(Outcome.INCONCLUSIVE, "interrupted")
Tell: TypeAlias = Callable[[Event], None]
Choose: TypeAlias = Callable[[VersionCorpus], tuple[CorpusRule, ...]]
"""Which rules are told about, once the revision and so the corpus is known."""


def _weightiest_first(rule: CorpusRule) -> tuple[int, str]:
    weight = {Severity.MUST: 0, Severity.SHOULD: 1}.get(rule.severity or Severity.MUST, 2)
    return weight, rule.id


def _stays_on_its_lane(probe: Probe) -> bool:
    """Whether it needs no other connection than the one that its lane has."""
    another = any(step.options.connection == "new" for step in probe.steps)
    return not another and not is_taken_aside(probe)


def _row_result(make: Results, rule: CorpusRule, question: Row, job: RowJob) -> RuleResult:
    if job.cause:
        return make.unasked(rule, kept_from(job.cause))
    if job.killed is not None:
        return make.killed(rule, job.killed, job.asked)
    assert job.asked is not None  # it was asked, or there is a cause
    result = make.exchanged(rule, question, job.asked.exchange, (job.asked,))
    beside = {name: job.beside[name].asked for name in question.beside}
    return make.beside(rule, result, job.asked, beside)


def _probe_result(
    make: Results, rule: CorpusRule, question: Row, found: Probed | Unasked
) -> RuleResult:
    if isinstance(found, Unasked):
        return make.unasked(rule, found)
    nothing = found.why_unobserved(question.expect)
    if nothing is not None:
        return make.unasked(rule, _unobserved(nothing))
    return make.exchanged(rule, question, found.exchange, found.evidence)


def _unobserved(nothing: Unobserved) -> Unasked:
    return Unasked(Outcome.NOT_OBSERVED, nothing.reason, nothing.unlocked_by)


class Judging:
    """One run over one server."""

    def __init__(self, site: Site, tell: Tell, choose: Choose) -> None:
        self.site = site
        self.tell = tell
        self._choose = choose
        self.causes = Causes(site.masker)
        self.make = Results(site)
        self._make_again = Results(site, is_second=True)
        self.rules: tuple[CorpusRule, ...] = ()
        """Those that are told about."""
        self.asked: tuple[CorpusRule, ...] = ()
        """Those that are asked: a rule over sessions needs what the others make happen."""
        self.planned: dict[str, Row] = {}
        self.jobs: dict[str, RowJob] = {}
        self.probed: dict[str, Probed | Unasked] = {}
        self._doubts: list[Doubt] = []
        """What failed, and has to be seen again."""
        self._asking = Asking(site, self.causes)
        self.confirmation: Confirmation | None = None
        self.interrupted = False
        self._wanted: frozenset[str] = frozenset()
        self._told = 0
        self._settling = threading.Lock()
        self.done: dict[str, RuleResult] = {}
        self.lost: PeerError | None = None
        """It can't be asked anything any more."""
        self.refused = False
        """The server wants a token that we do not have."""

    # -- meeting ---------------------------------------------------------------------------

    def meet(self) -> None:
        site = self.site
        if site.order.revision is not None:
            self._choose_rules(site.order.revision)  # a bad name is told before anything starts
        try:
            conversation = site.meet(warm=not site.order.rules)
        except PeerError as error:
            if not self._is_asked_for_a_token():
                raise self._with_what_was_refused(error) from None
            # What is about authorization can be judged all the same; all else has this one cause.
            site.revision = site.order.revision or NEWEST_HANDSHAKE
            site.asks_for_token = self.refused = True
            if site.revision.era is Era.HANDSHAKE:
                # Without a session all else may be refused for that, token or none.
                site.alive_method = "initialize"
            self.causes.note("unauthorized", error.message)
        else:
            site.tour = conversation
        self._choose_rules(site.revision)
        name = site.server_info.get("name")
        server = show(site.masker.text(str(name)), 60) if name else "a server without a name"
        self.tell(JudgingBegan(site.revision, site.transport, server, len(self.rules)))

    def _choose_rules(self, revision: Revision) -> None:
        corpus = corpus_of(revision, self.site.order.corpora)
        if corpus is None:
            message = f"there is no corpus for {revision.label}"
            raise UsageError(message, hint="choose another revision with --spec-version")
        self.rules = self.asked = self._choose(corpus)
        self._wanted = frozenset(rule.id for rule in self.rules)
        if any(rule.session is not None for rule in self.rules):
            others = [one for one in rules_to_judge(corpus, ()) if one.id not in self._wanted]
            self.asked = (*self.rules, *others)

    def _is_asked_for_a_token(self) -> bool:
        """Who wants a token says so, with 401 or a challenge; 403 alone may mean anything."""
        return any(
            response.status == 401 or response.header("www-authenticate") is not None
            for one in self.site.conversations[-1:]
            for response in one.tape.responses.values()
        )

    def _with_what_was_refused(self, error: PeerError) -> PeerError:
        """The same error; where the server lets nobody in under this address, it says so."""
        for one in self.site.conversations[-1:]:
            for stream, response in one.tape.responses.items():
                if response.status in _FOREIGN:
                    body = str(http_facts(one.tape, stream)["body"])
                    said = in_one_line(self.site.masker.text(body), 300) or "without a body"
                    message = (
                        f"the server rejects the connection with HTTP {response.status} and "
                        f"does not ask for a token: {said}"
                    )
                    return PeerError(error.kind, message, hint=_REACHED_OTHERWISE)
        return error

    # -- asking ----------------------------------------------------------------------------

    def results(self) -> tuple[RuleResult, ...]:
        """Ask everything; then judge the sessions that came of it.

        Where we are told to stop meanwhile, what was judged by then stands.
        """
        try:
            self._ask_everything()
        except Stopped:
            self.interrupted = True
        try:
            self._confirm()
            self._doubt_what_ends_by_itself()
        except Stopped:
            self.interrupted = True
        self.site.close()
        if self.interrupted:
            self._leave_the_rest_open()
        else:
            self._tell_each_fault_once()
        return tuple(self.done[rule.id] for rule in self.rules)

    def _doubt_what_ends_by_itself(self) -> None:
        """No question is to blame for the end of a server that ends when nothing is asked."""
        failed = [one for one in self.done.values() if one.failed]
        unanswered = [one for one in failed if not all(each.received for each in one.evidence)]
        ended = self._end_when_left_alone() if unanswered else None
        if ended is None:
            return
        cause = self.causes.note_ending(ended)
        for result in unanswered:
            self._tell(for_a_cause(result, cause))

    def _end_when_left_alone(self) -> PeerError | None:
        """How a process ended that was left alone for as long as one that did not survive."""
        lived = [
            one.tape.records[-1].t
            for one in self.site.conversations
            if one.gone is not None and one.gone.kind is ErrorKind.EXITED and one.tape.records
        ]
        if not lived or self.site.transport != "stdio":
            return None
        with contextlib.closing(self.site.twin()) as site:
            try:
                alone = site.open()
                alone.ask(site.alive_check)
                patience = min(site.order.timeout, max(lived) + _LONGER)
                alone.pump(patience, lambda: not alone.usable)
                return alone.gone
            except PeerError as error:
                return error

    def _confirm(self) -> None:
        """What failed is asked again while the sessions of the first time end and are judged."""
        confirmation = self.confirmation
        if confirmation is None:
            return  # nothing was asked
        try:
            if not self.interrupted:
                confirmation.take_over(self.site.spare_connection())
                confirmation.begin(self._take_doubts())
                if failed := len(confirmation.under_way):
                    failures = f"{failed} failure{'s' if failed > 1 else ''}"
                    self.tell(JudgingWaits(f"repeating {failures} on another server process"))
                self._take_probes(self._asking, lambda one: one.ends_connection)
                self.site.close()
                self._judge_sessions()
                confirmation.begin(self._take_doubts())
        finally:
            again = confirmation.results()
        for result in again:
            self._tell(result)

    def _take_doubts(self) -> list[Doubt]:
        doubts, self._doubts = self._doubts, []
        return doubts

    def _ask_everything(self) -> None:
        self._learn()
        self.planned = self._plan()
        self.confirmation = Confirmation(self.site.twin(), begins=not self.refused)
        under_way = self._start_fixtures()
        rows = (one for one in self.planned.values() if not one.check.probe)
        self.jobs = jobs_of(rows, self.site.revision)
        asking = self._asking
        jobs = with_those_beside(self.jobs.values())
        if self.lost is not None:
            asking.give_up(self.lost)
        else:
            tour = self.site.tour
            is_idle = tour is not None and tour.usable and not under_way
            # Where each request declares what the client can do, it serves as any other.
            stateless = self.site.revision.era is Era.STATELESS
            if tour is not None and is_idle and stateless and self.site.transport == "stdio":
                tour.declare_nothing()
                self.site.shared["polite", ()] = tour
            self._set_probes_going(tour if is_idle else None)
        if self.refused:
            asking.ask_unbegun(jobs)
        else:
            self._ask_in_lanes(asking, jobs)
        self._take_probes(asking, lambda one: not (one.may_change_era or one.ends_connection))
        asking.ask_last(jobs, CheckLane.LAST, "polite")
        asking.ask_last(jobs, CheckLane.SPOILING, "last")
        self._take_probes(asking, lambda one: not one.ends_connection)
        self._judge_rows(self.jobs)
        for started in under_way:
            started.conversation.finish(started)

    def _ask_in_lanes(self, asking: Asking, jobs: Sequence[RowJob]) -> None:
        """Each lane is a process of its own, unless all of them talk to the same one."""

        def politely() -> None:
            asking.ask_politely(jobs)
            if self.site.transport == "stdio" and self.confirmation is not None:
                # A connection is a process: what failed is asked again while others are asked.
                polite = {CheckLane.PLAIN, CheckLane.ALONE}
                self._judge_rows(
                    {name: one for name, one in self.jobs.items() if one.lane in polite}
                )
                if ("another", ()) in self.site.shared:
                    self.confirmation.await_connection()
                self.confirmation.begin(self._take_doubts())
            self._take_probes(asking, lambda one: _stays_on_its_lane(one) and not one.is_rude)

        def rudely() -> None:
            asking.ask_rudely(jobs)
            self._take_probes(
                asking,
                lambda one: _stays_on_its_lane(one) and one.is_rude and not one.may_change_era,
            )

        asking.set_going(jobs)
        shared = self.site.shared.values() if self.site.transport == "stdio" else ()
        if started := sum(one.beginning and not one.client.has_begun for one in shared):
            processes = f"{started} more server process{'es' if started > 1 else ''}"
            self.tell(JudgingWaits(f"waiting for {processes} to start"))
        lanes = (lambda: asking.ask_first(jobs), politely, rudely)
        if not self.site.takes_one_at_a_time:
            side_by_side(lanes)
            return
        for lane in lanes[1:]:  # who ends the server must be found, and so comes alone
            lane()
        lanes[0]()

    def _leave_the_rest_open(self) -> None:
        asked = {name: job for name, job in self.jobs.items() if job.asked is not None}
        self._judge_rows(asked)
        for rule in self.asked:
            known = self.done.get(rule.id)
            if known is None:
                self._tell(self.make.unasked(rule, _INTERRUPTED))
            elif known.failed:
                self._tell(unconfirmed(known, _NOT_ASKED_AGAIN))

    def _learn(self) -> None:
        site = self.site
        tour = site.tour
        greeted = self._open_for_greeting() if tour is not None else None
        error = learn(site, tour)
        if tour is None:
            return
        if greeted is not None:
            learn_about_eras(site, greeted)
        if error is not None:
            self.causes.note_error(error, (evidence_of(tour.last_sent, b""),))
        try:
            if tour.mute:  # does it at least answer, when it is started again?
                conversation = site.open()
                conversation.ask(site.alive_check)
                if not conversation.usable:
                    self.lost = error
                site.leave(conversation)
            self._learn_about_token()
        except PeerError as worse:
            self.lost = worse

    def _open_for_greeting(self) -> Conversation | None:
        """A connection for `initialize`, where rules depend on whether the server knows it."""
        site = self.site
        if site.revision.era is Era.HANDSHAKE:
            return None
        site.speaks_handshake = any(
            one.wire_version in site.versions for one in HANDSHAKE_REVISIONS
        )
        rows = [rule.row for rule in self.asked if rule.row is not None]
        if site.speaks_handshake or not any(
            one.needs.single_era or one.expect_of_both_eras for one in rows
        ):
            return None
        try:
            return site.launch(begin=False)
        except PeerError as error:
            self.causes.note_error(error)
            return None

    def _learn_about_token(self) -> None:
        """Only who came in with a token can learn whether it takes one."""
        site = self.site
        given = {name.lower() for name in site.order.target.headers}
        needed = any(rule.row is not None and rule.row.needs.authorization for rule in self.asked)
        if site.transport != "http" or "authorization" not in given or not needed:
            return
        bare = msgspec.structs.replace(site.alive_check, headers=_WITHOUT_TOKEN)
        conversation = site.open()
        conversation.polite = False
        http = conversation.ask(bare).exchange.http
        site.asks_for_token = http is not None and http["status"] in UNAUTHORIZED
        site.leave(conversation)

    def _start_fixtures(self) -> list[Started]:
        """Tools that report progress and log: what they send meanwhile is for the session rules."""
        tour = self.site.tour
        if tour is None or not any(rule.session is not None for rule in self.asked):
            return []
        started = []
        for tool in (self.site.known[name] for name in _TALKATIVE if name in self.site.known):
            params = {"name": tool, "arguments": {}, "_meta": {"progressToken": f"mcptest-{tool}"}}
            if tour.usable:
                started.append(tour.start(SentCheck(method="tools/call", params=params)))
        return started

    def _plan(self) -> dict[str, Row]:
        planned: dict[str, Row] = {}
        for rule in self.asked:
            if rule.row is None:
                continue
            if self.refused and not rule.row.needs.authorization:
                self._settle(self._behind_the_refusal(rule))
                continue
            question = question_of(rule, self.site)
            if isinstance(question, Unasked):
                if question.missing in self.site.hung_values:
                    hung = self.site.hung_tools
                    names = ", ".join(show(name, 60) for name in sorted(hung)[:_NAMED])
                    why = next((f"; {why}" for why in hung.values() if why), "")
                    message = f"the server did not answer tools/call: {names}{why}"
                    question = kept_from(self.causes.note("silence", message))
                self._settle(self.make.unasked(rule, question))
            else:
                planned[rule.id] = question
        return planned

    def _behind_the_refusal(self, rule: CorpusRule) -> RuleResult:
        """Who is not let in does not know what is declared either."""
        elsewhere = is_about_another_transport(rule, self.site)
        return self.make.unasked(rule, elsewhere or kept_from("unauthorized"))

    def _set_probes_going(self, idle: Conversation | None) -> None:
        """The servers for the probes start while the rows are asked."""
        names = [one.check.probe for one in self.planned.values() if one.check.probe]
        if "slow_tool" in self.site.known:
            names += [one.session.probe for one in self.asked if one.session and one.session.probe]
        try:
            prepare_probes([all_probes()[name] for name in dict.fromkeys(names)], self.site, idle)
        except PeerError as error:
            self.causes.note_error(error)  # whoever needs one of them will meet it again

    def _take_probes(self, asking: Asking, wanted: Callable[[Probe], bool]) -> None:
        """Take every probe that a planned rule needs, once, and settle the rules that need it."""
        for rule in self.asked:
            question = self.planned.get(rule.id)
            if question is None or rule.id in self.done or not question.check.probe:
                continue
            name = question.check.probe
            if not wanted(all_probes()[name]):
                continue
            if name not in self.probed:
                given_up = asking.given_up
                self.probed[name] = kept_from(given_up) if given_up else self._run_probe(name)
            result = _probe_result(self.make, rule, question, self.probed[name])
            self._settle(result, name, partial(_probe_result, self._make_again, rule, question))

    def _run_probe(self, name: str) -> Probed | Unasked:
        """What it found; or why it could not be run."""
        if sum(one.mute for one in [*self.site.conversations]) > _MOST_SILENCES:
            why = "the server stopped answering repeatedly"
            return kept_from(self.causes.note("silence", why))
        try:
            return run_probe(all_probes()[name], self.site)
        except Unobserved as nothing:
            return _unobserved(nothing)
        except PeerError as error:
            return kept_from(self.causes.note_error(error))

    # -- judging ---------------------------------------------------------------------------

    def _settle(
        self,
        result: RuleResult,
        asked: RowJob | str | Conversation | None = None,
        judge: Second | None = None,
    ) -> None:
        """A result is final, unless it is a failure: then what was asked is asked again."""
        if result.failed and asked is not None and judge is not None:
            with self._settling:
                self.done[result.id] = result
                self._doubts.append(Doubt(result, judge, asked))
            return
        self._tell(result)

    def _tell(self, result: RuleResult) -> None:
        with self._settling:
            self.done[result.id] = result
            if result.id in self._wanted:
                self._told += 1
                broken = result.failed and result.severity is Severity.MUST
                at, of = self._told, len(self.rules)
                self.tell(RuleJudged(at, of, result.id, result.outcome, result.title, broken))

    def _judge_rows(self, jobs: Mapping[str, RowJob]) -> None:
        told: set[int] = set()
        for rule in sorted(self.asked, key=_weightiest_first):
            job = jobs.get(rule.id)
            if job is None or rule.id in self.done:
                continue
            if job.killed is not None and id(job) in told:
                # One death is one finding; what else the same question asks stays open.
                why = kept_from(self.causes.note_error(job.killed))
                self._settle(self.make.unasked(rule, why))
                continue
            told.add(id(job))
            question = self.planned[rule.id]
            again = partial(_row_result, self._make_again, rule, question)
            self._settle(_row_result(self.make, rule, question, job), job, again)

    def _judge_sessions(self) -> None:
        by_function = {rule.session.id: rule for rule in self.asked if rule.session is not None}
        functions = [rule.session for rule in by_function.values() if rule.session is not None]
        for name, deciding in judge_sessions(self.site, functions).items():
            rule = by_function[name]
            if self.refused:
                self._settle(self._behind_the_refusal(rule))
            else:
                again = partial(self._session_again, rule)
                seen_on = deciding[0][1] if deciding else None
                self._settle(self._over_sessions(rule, deciding), seen_on, again)

    def _over_sessions(self, rule: CorpusRule, deciding: Deciding) -> RuleResult:
        result = self.make.over_sessions(rule, deciding)
        if not deciding or not deciding[0][0].unchecked:
            return result
        return msgspec.structs.replace(result, cause=self.causes.note_unchecked(result.reason))

    def _session_again(self, rule: CorpusRule, again: Conversation) -> RuleResult:
        assert rule.session is not None  # as it is for those that are judged by one
        return self._over_sessions(rule, judge_session(rule.session, again))

    def _tell_each_fault_once(self) -> None:
        """What several rules saw is held against one of them; the others say which."""
        noisy = {rule.id for rule in RULES.values() if rule.root_cause == _BANNER}
        for noise in (one for name, one in self.done.items() if name in noisy and one.failed):
            line = next((one.received for one in noise.evidence), "")
            shown = f": {show(line, 120)}" if line else ""
            message = f"the server writes lines to stdout that are not messages{shown}"
            self.causes.note(_BANNER, message, noise.evidence[:1])
        failed = {name: proof_of_result(one) for name, one in self.done.items() if one.failed}
        for name, root in yielding_to(failed, {one.id: one for one in self.asked}).items():
            if root in noisy:
                self.done[name] = for_a_cause(self.done[name], _BANNER)
            elif root in self._wanted:
                self.done[name] = without_findings(self.done[name], reason_for(root))
        passed = [name for name, one in self.done.items() if one.outcome is Outcome.PASS]
        for name, root in passes_in_doubt(passed, failed).items():
            self.done[name] = without_findings(self.done[name], reason_for(root))

    def judgement(self, results: tuple[RuleResult, ...], begun: float) -> Judgement:
        site = self.site
        whole = not site.order.rules and not self.interrupted
        info = site.server_info
        mask = site.masker.text
        sites = [site, *([self.confirmation.site] if self.confirmation is not None else [])]
        tapes = dict.fromkeys(one.tape for each in sites for one in each.conversations)
        return Judgement(
            revision=site.revision,
            transport=site.transport,
            results=results,
            profile=profile_of(site.revision, site.order.corpora),
            server_name=show(mask(str(info.get("name", ""))), 100),
            server_version=show(mask(str(info.get("version", ""))), 60),
            revision_reason=mask(site.reason),
            causes=self.causes.counted(results),
            grade=grade(results) if whole else None,
            whole_corpus=whole,
            requests=sum(one.messages_sent for one in tapes),
            duration_ms=int((time.monotonic() - begun) * 1000),
            notes=tuple(self._notes()),
            captures=tuple(dict.fromkeys(path for one in sites for path in one.captures)),
        )

    def _notes(self) -> Iterator[str]:
        if self.interrupted:
            yield CUT_SHORT
        yield from (f"not read completely: {why}" for why in self.site.unread_lists)
        dropped = [one for one in self.site.conversations if one.tape.dropped]
        if dropped:
            yield (
                f"{len(dropped)} sessions were too large to keep, so the rules over sessions did "
                "not judge them"
            )


def judge_server(order: Order, tell: Tell) -> Judgement:
    """Judge one server by the corpus of one revision.

    Raises PeerError when it can't be reached or does not speak that revision, UsageError when
    there is no such corpus or rule.
    """
    return _judged(order, tell, lambda corpus: rules_to_judge(corpus, order.rules))


def run_tests(order: Order, tests: Sequence[ComplianceTest], tell: Tell) -> Judgement:
    """The tests of a suite's block: rules of the corpus by their ids, others by their own check."""

    def chosen(corpus: VersionCorpus) -> tuple[CorpusRule, ...]:
        named = [one.rule_id for one in tests if one.runs_corpus_rule]
        rules = {rule.id: rule for rule in rules_to_judge(corpus, named)} if named else {}
        return tuple(
            rules[one.rule_id] if one.runs_corpus_rule else _rule_of(one, corpus) for one in tests
        )

    judgement = _judged(order, tell, chosen)
    return msgspec.structs.replace(judgement, whole_corpus=False, grade=None)


def _rule_of(test: ComplianceTest, corpus: VersionCorpus) -> CorpusRule:
    """A test of a suite as a rule: its name is its id."""
    assert test.check is not None  # a suite with such a test is not sound
    revision = corpus.revision
    known = corpus.rules.get(test.rule_id)
    always = {Revision.V2024_11_05: Severity.MUST}
    own = RegistryEntry(test.name, title=test.name, section="tests", severities=always)
    entry = known.entry if known is not None else None
    row = Row(test.name, test.check, test.expect, place=test.place)
    return CorpusRule(test.name, row, entry or own, None, revision)


def _beside(order: Order) -> contextlib.closing[Site]:
    """The server as it speaks when it is left to choose; nothing is kept of what it says."""
    return contextlib.closing(Site(msgspec.structs.replace(order, revision=None, captures=None)))


def newest_spoken(order: Order) -> Met:
    """What the server speaks when it is left to choose, and why; raises PeerError."""
    with _beside(order) as site:
        return site.meet().client.met


def spoken_revisions(order: Order) -> tuple[Revision, ...]:
    """Every revision that the server agrees to speak, by asking; raises PeerError."""
    with _beside(order) as site:
        site.meet()
        stateless = site.revision.era is Era.STATELESS
        launched = []
        for revision in HANDSHAKE_REVISIONS:
            asking = Site(msgspec.structs.replace(order, revision=revision, captures=None))
            asking.transport = site.transport
            launched.append((asking, asking.launch(declare=EVERYTHING)))
        spoken, wordless = [], False
        for asking, conversation in launched:
            try:
                agreed = asking.ready(conversation).client.revision
            except PeerError:
                continue  # not this one
            finally:
                asking.close()
                wordless = wordless or asking.has_wordless_end
            if agreed is asking.revision:
                spoken.append(agreed)
    if wordless:
        site.require_second_process()
    return (*spoken, Revision.V2026_07_28) if stateless else tuple(spoken)


def _judged(order: Order, tell: Tell, choose: Choose) -> Judgement:
    begun = time.monotonic()
    with contextlib.closing(Site(order)) as site:
        judging = Judging(site, tell, choose)
        judging.meet()
        results = judging.results()
    if site.has_wordless_end and not judging.interrupted:
        site.require_second_process()
    return with_known_behaviour(judging.judgement(results, begun), answers_of(site))
