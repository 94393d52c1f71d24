"""Asking again: a failure is reported only if it is seen a second time.

What failed is asked once more, of a server that was started for this, as the command that repeats
it would ask. A failure of a MUST is the first thing that its connection carries. Other requests
that any client may send follow one at a time, on a connection on which nothing else was asked but
its lists. What no client should send comes last; another question follows only where the
connection still answers as it did at first. A rule
over a whole session is held against a second session in which the same was said; where all
connections lead to one server, which may send the answers of one to another, also against two
sessions side by side. What does not fail again is inconclusive, and both transcripts are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import msgspec

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.judgement import RuleResult
from mcptest.core.revision import Era
from mcptest.core.verdict import Outcome, Severity
from mcptest.probe.compliance.conversation import Conversation, Started
from mcptest.probe.compliance.course import shared
from mcptest.probe.compliance.learning import take_the_tour
from mcptest.probe.compliance.probing import Probed, Unobserved, is_taken_aside, take_probe
from mcptest.probe.compliance.questions import CheckLane, RowJob, silence, slow_machine
from mcptest.probe.compliance.site import Site
from mcptest.rules.corpus.probes import Probe, all_probes
from mcptest.rules.declaration import shown_by
from mcptest.rules.utilities import RACE

_MOST_ALONE = 12
"""So many questions begin a connection of their own; a server that fails more shares them."""
_AT_ONCE = 4
"""Servers that are started side by side for this."""
_SIDE_BY_SIDE = "seen only while two connections were open, not on a single connection"

Second: TypeAlias = Callable[[Any], RuleResult]
"""What a rule says about what was seen the second time: a job, what a probe found, or a session."""


class Doubt(msgspec.Struct, frozen=True):
    """A failing verdict that was seen once."""

    result: RuleResult
    judge: Second
    asked: RowJob | str | Conversation
    """What is done again: a row's check, a probe by its name, or a whole session."""


class Repetition(msgspec.Struct, eq=False):
    """One question that is asked again, for every rule that failed over it."""

    asked: RowJob | str | Conversation
    doubts: list[Doubt] = []

    @property
    def is_must(self) -> bool:
        return any(one.result.severity is Severity.MUST for one in self.doubts)

    @property
    def probe(self) -> Probe | None:
        return all_probes()[self.asked] if isinstance(self.asked, str) else None

    def may_share(self, site: Site) -> bool:
        """Whether it can be asked on a connection that begins as any other."""
        probe = self.probe
        if probe is not None:
            return not is_taken_aside(probe)
        if not isinstance(self.asked, RowJob):
            return False
        check = self.asked.check
        declares = bool(check.declare) and site.revision.era is Era.HANDSHAKE
        plain = self.asked.lane not in {CheckLane.FIRST, CheckLane.LAST}
        return plain and check.http is None and not declares

    @property
    def is_rude(self) -> bool:
        probe = self.probe
        if probe is not None:
            return probe.is_rude
        rude = {CheckLane.ODD, CheckLane.RUDE, CheckLane.SPOILING}
        return isinstance(self.asked, RowJob) and self.asked.lane in rude


def repetitions_of(doubts: Iterable[Doubt]) -> list[Repetition]:
    """What was asked once for several rules is asked again once for all of them."""
    found: dict[int | str, Repetition] = {}
    for one in doubts:
        key = one.asked if isinstance(one.asked, str) else id(one.asked)
        found.setdefault(key, Repetition(one.asked, [])).doubts.append(one)
    return [*found.values()]


class Confirmation:
    """Asks again, on the side, what failed. `results` waits for all of it."""

    def __init__(self, site: Site, *, begins: bool) -> None:
        """`begins` is False where the server lets nobody in: then no session begins at all."""
        self.site = site
        self._begins = begins
        self.under_way: list[tuple[Doubt, Future[Mapping[int, RuleResult | PeerError]]]] = []
        # Over HTTP all connections lead to one server, which any of the questions may end.
        at_once = 1 if site.takes_one_at_a_time else _AT_ONCE
        self._alone = ThreadPoolExecutor(at_once, "mcptest-1")
        self._in_turn = self._alone
        if site.transport == "stdio":
            self._in_turn = ThreadPoolExecutor(1, "mcptest-again")
        self._begun_alone = 0
        self._has_shared = threading.Event()
        self._has_shared.set()

    def await_connection(self) -> None:
        """Those that share one wait until they are given it, or `results` is asked for."""
        self._has_shared.clear()

    def take_over(self, conversation: Conversation | None) -> None:
        """Share a connection that nobody else needs any more; None: begin one for this."""
        if conversation is not None:
            self.site.shared["rude", ()] = conversation.handed_over(self.site)
        self._has_shared.set()

    def begin(self, doubts: Iterable[Doubt]) -> None:
        """Set the questions going: ordinary ones first, and of these a MUST before a SHOULD."""
        repetitions = repetitions_of(doubts)
        for one in sorted(repetitions, key=lambda one: (one.is_rude, not one.is_must)):
            shares = self._begins and one.may_share(self.site)
            self._begun_alone += shares and one.is_must
            alone = not shares or (one.is_must and self._begun_alone <= _MOST_ALONE)
            pool = self._alone if alone else self._in_turn
            seen = pool.submit(self._ask, one, alone=alone)
            self.under_way += [(doubt, seen) for doubt in one.doubts]

    def results(self) -> list[RuleResult]:
        """Every verdict that was in doubt, as it stands now. Raises when we are told to stop."""
        self._has_shared.set()
        try:
            return [confirmed(one.result, seen.result()[id(one)]) for one, seen in self.under_way]
        finally:
            self._in_turn.shutdown()
            self._alone.shutdown()
            self.site.close()

    # -- asking ----------------------------------------------------------------------------

    def _ask(self, one: Repetition, *, alone: bool) -> Mapping[int, RuleResult | PeerError]:
        """What each rule says about the second time, by its doubt; or why there was none."""
        try:
            if not alone:
                self._has_shared.wait()
            seen = self._seen_alone(one) if alone else self._seen(one, shared(self.site, "rude"))
        except Unobserved as nothing:
            error = PeerError(ErrorKind.PROTOCOL, nothing.reason)
            return {id(doubt): error for doubt in one.doubts}
        except PeerError as error:
            return {id(doubt): error for doubt in one.doubts}
        judged = {id(doubt): doubt.judge(seen) for doubt in one.doubts}
        if not isinstance(one.asked, Conversation) or self.site.transport == "stdio":
            return judged
        if all(result.failed for result in judged.values()):
            return judged
        try:
            sessions = self._side_by_side(one.asked)
        except PeerError:
            return judged
        # What fails where another connection is open, as it was the first time.
        for doubt in one.doubts:
            for second in map(doubt.judge, sessions):
                if second.failed:
                    judged[id(doubt)] = msgspec.structs.replace(second, reason=_SIDE_BY_SIDE)
        return judged

    def _side_by_side(self, first: Conversation) -> tuple[Conversation, Conversation]:
        """A session that has little to say, and one beside it in which all is said again."""
        quiet = self.site.open(declare=first.answers.declare)
        busy = self._repeated(first)
        quiet.start(self.site.alive_check)
        busy.ask(self.site.alive_check)
        quiet.pump(2 * RACE, lambda: not quiet.usable)
        quiet.close()
        busy.close()
        return quiet, busy

    def _seen_alone(self, one: Repetition) -> RowJob | Probed | Conversation:
        home = self.site.open() if self._begins and one.may_share(self.site) else None
        try:
            return self._seen(one, home)
        finally:
            if home is not None:
                self.site.leave(home)

    def _seen(self, one: Repetition, home: Conversation | None) -> RowJob | Probed | Conversation:
        """What comes when it is asked again; of a session, all of it, after its end."""
        probe = one.probe
        if probe is not None:
            return take_probe(probe, self.site, home, again=True)
        if isinstance(one.asked, Conversation):
            again = self._repeated(one.asked)
            if any(shown_by(doubt.result.id) == "silence" for doubt in one.doubts) and again.usable:
                # From then on no answer was on its way when its request was cancelled.
                again.pump(2 * RACE, lambda: not again.usable)
                again.ask(self.site.alive_check)
            again.close()
            return again
        assert isinstance(one.asked, RowJob)  # a probe has a name
        return self._job_again(one.asked, home)

    def _job_again(self, job: RowJob, home: Conversation | None) -> RowJob:
        again = RowJob(job.check, job.lane, beside=job.beside)
        conversation = home if home is not None else self._opened_for(job)
        again.asked = conversation.ask(job.check)
        again.conversation = conversation
        if not conversation.usable:
            slow = slow_machine(self.site, conversation, again=True)
            if slow is not None:
                raise slow
            again.killed = conversation.gone or silence(conversation, self.site.order.timeout)
        if home is None:
            self.site.leave(conversation)
        return again

    def _opened_for(self, job: RowJob) -> Conversation:
        if not self._begins or job.lane is CheckLane.FIRST:
            return self.site.launch(begin=False)
        if job.lane is CheckLane.LAST and job.conversation is not None:
            return self._repeated(job.conversation)
        if job.check.http is not None:
            return self.site.open_without_listening()
        return self.site.open(declare=job.check.declare)

    def _repeated(self, first: Conversation) -> Conversation:
        """A second session in which the same is said in the same order."""
        if first.is_quiet:
            again = self.site.open_without_listening()
        else:
            begins = first.beginning or first.client.has_begun
            again = self.site.launch(begin=begins, declare=first.answers.declare)
            try:
                self.site.ready(again)
            except PeerError:
                if first.client.has_begun:
                    raise
                return again  # neither time a session came of it: that is what was seen
        if first.toured:
            take_the_tour(again)
        started: dict[int, Started] = {}
        for act, earlier in first.said:
            if not again.usable:
                break
            if act == "start":
                started[id(earlier)] = again.start(earlier.check, identifier=earlier.id)
            elif act == "notify":
                again.notify(earlier.check)
            elif id(earlier) in started:
                repeat = again.finish if act == "finish" else again.give_up
                repeat(started[id(earlier)])
        return again


def confirmed(first: RuleResult, second: RuleResult | PeerError) -> RuleResult:
    """The verdict, where it was seen twice; what is left of it, where it was not."""
    if isinstance(second, PeerError):
        return unconfirmed(first, f"it failed once and could not be repeated: {second.message}")
    if second.failed:
        if second.reason != _SIDE_BY_SIDE:
            return first
        finding, *others = first.findings
        told = msgspec.structs.replace(finding, message=f"{finding.message}; {_SIDE_BY_SIDE}")
        return msgspec.structs.replace(first, findings=(told, *others))
    seen = second.reason or "it passed"
    why = f"it failed once but not when repeated alone on a fresh connection: {seen}"
    return msgspec.structs.replace(unconfirmed(first, why), again=second.evidence)


def unconfirmed(result: RuleResult, why: str) -> RuleResult:
    """What is left of a failure that was seen once only."""
    return msgspec.structs.replace(result, outcome=Outcome.INCONCLUSIVE, reason=why)
