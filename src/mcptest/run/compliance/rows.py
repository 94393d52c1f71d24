"""Asking the rows of a corpus: together where nothing disturbs, alone where something might.

Identical checks are asked once. A server that dies or falls silent is started again, and the
checks that were under way are asked one at a time until the one is found that did it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.revision import Era, Revision
from mcptest.run.compliance.causes import Causes, evidence_of
from mcptest.run.compliance.conversation import Asked, Conversation
from mcptest.run.compliance.planning import Question
from mcptest.run.compliance.probe_connections import Purpose, launched, set_going, shared
from mcptest.run.compliance.sending import is_odd, may_change_era
from mcptest.run.compliance.site import Site
from mcptest.suite.check_forms import Check

IN_FLIGHT = 16
_MOST_DEATHS = 8
"""So often a server is started again before the rest is given up."""
_MOST_SILENCES = 2
"""Silence has to be waited out, so it is looked into less often."""
_SINGLED_OUT = ("asked", "notifications")
"""Targets that can't be told apart when several requests are under way."""

Opener: TypeAlias = Callable[[], Conversation]


class Lane(enum.Enum):
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


BESIDE = ("control", "unlike", "absent")
"""What a row may ask beside its question, so that the answer means something."""


class Job(msgspec.Struct, eq=False):
    """One check that is asked, for every rule that needs it."""

    check: Check
    lane: Lane
    asked: Asked | None = None
    killed: PeerError | None = None
    """The server did not survive it, or said nothing any more."""
    cause: str = ""
    """Why it could not be asked."""
    conversation: Conversation | None = None
    """Where it was asked."""
    control: Job | None = None
    unlike: Job | None = None
    absent: Job | None = None
    """What is asked beside it, as its row says."""


def lane_of(question: Question, revision: Revision) -> Lane:
    check = question.check
    conditions = (one.expectation for one in question.when)
    targets = [one.target for one in (*question.expect, *conditions)]
    if check.raw or check.http is not None:
        return Lane.RUDE
    if check.method == "initialize":
        return Lane.FIRST
    if may_change_era(check, revision):
        return Lane.SPOILING
    if is_odd(check):
        return Lane.ODD
    if any(one.startswith("transport_observation") for one in targets):
        return Lane.LAST
    if check.declare or any(one.startswith(_SINGLED_OUT) for one in targets):
        return Lane.ALONE
    return Lane.PLAIN


def jobs_of(questions: Iterable[Question], revision: Revision) -> dict[str, Job]:
    """The job of each rule; rules with the same check on the same lane share one."""
    shared: dict[tuple[Lane, bytes], Job] = {}
    found: dict[str, Job] = {}
    for question in questions:
        job = _job_for(question, revision, shared)
        for name in BESIDE:
            check = getattr(question, name)
            if check is not None:
                beside = Question(question.id, check, question.expect, question.when)
                setattr(job, name, _job_for(beside, revision, shared))
        found[question.id] = job
    return found


def _job_for(question: Question, revision: Revision, shared: dict[tuple[Lane, bytes], Job]) -> Job:
    lane = lane_of(question, revision)
    key = (lane, msgspec.json.encode(question.check))
    return shared.setdefault(key, Job(question.check, lane))


def with_those_beside(jobs: Iterable[Job]) -> list[Job]:
    """All that is to be asked, each once."""
    return list(
        dict.fromkeys(
            each
            for job in jobs
            for each in (job, *(getattr(job, name) for name in BESIDE))
            if each is not None
        )
    )


class Asking:
    """Asks all jobs of one run."""

    def __init__(self, site: Site, causes: Causes) -> None:
        self._site = site
        self._causes = causes
        self._deaths = 0
        self._silences = 0
        self.given_up = ""
        """The cause for which nothing more is asked."""

    def set_going(self, jobs: Sequence[Job]) -> None:
        """Servers that start while others are talked to."""
        lanes = {job.lane for job in jobs}
        rude = bool(lanes & {Lane.ODD, Lane.SPOILING}) or any(job.check.raw for job in jobs)
        try:
            if lanes & {Lane.PLAIN, Lane.ALONE}:
                set_going(self._site, ["polite"])
            if rude:
                set_going(self._site, ["rude"])
        except PeerError as error:
            self.give_up(error)

    def ask_politely(self, jobs: Sequence[Job]) -> None:
        """What any client may ask."""
        self._together(_on(Lane.PLAIN, jobs), self._sharing("polite"), IN_FLIGHT)
        for declare, alone in _by_declare(_on(Lane.ALONE, jobs), self._site.revision):
            self._together(alone, self._sharing("polite", declare), 1)

    def ask_rudely(self, jobs: Sequence[Job]) -> None:
        """What no client should send, one at a time; over pipes to a process of its own."""
        raw = [job for job in _on(Lane.RUDE, jobs) if job.check.http is None]
        bare = [job for job in _on(Lane.RUDE, jobs) if job.check.http is not None]
        self._together([*raw, *_on(Lane.ODD, jobs)], self._sharing("rude"), 1)
        # A server may allow one GET stream at a time: none of ours may be open already.
        self._together(bare, _one_after_the_other(self._site.open_without_listening), 1)

    def ask_spoiling(self, jobs: Sequence[Job]) -> None:
        """After each of these its connection is not used any more."""
        self._together(_on(Lane.SPOILING, jobs), self._sharing("last"), 1)

    def ask_first(self, jobs: Sequence[Job]) -> None:
        """`initialize`, each on a connection of its own; what was asked already is not again."""
        greeting = self._site.greeting
        for job in _on(Lane.FIRST, jobs):
            if greeting is not None and job.check == greeting[0]:
                job.asked = greeting[1]
        self.ask_unbegun([job for job in _on(Lane.FIRST, jobs) if job.asked is None])

    def ask_last(self, jobs: Sequence[Job]) -> None:
        """How the connection that everybody shared has fared."""
        self._together(_on(Lane.LAST, jobs), self._sharing("polite"), 1)

    def ask_unbegun(self, jobs: Sequence[Job]) -> None:
        """Of a server that does not let us in: each request by itself, with no session."""
        self._ask_first(self._launched_unbegun(jobs))

    # -- connections -----------------------------------------------------------------------

    def _sharing(self, purpose: Purpose, declare: tuple[str, ...] = ()) -> Opener:
        """Connections are what costs most: the probes use the same ones."""

        return lambda: shared(self._site, purpose, declare)

    def _launched_unbegun(self, jobs: Sequence[Job]) -> list[tuple[Job, Conversation]]:
        """A connection that has not begun for each of them; all start at once."""
        opened: list[tuple[Job, Conversation]] = []
        for job in jobs:
            conversation = self._conversation(lambda: launched(self._site, begin=False))
            if conversation is None:
                job.cause = self.given_up
            else:
                conversation.polite = False
                opened.append((job, conversation))
        return opened

    # -- asking ----------------------------------------------------------------------------

    def _together(self, jobs: Sequence[Job], opener: Opener, in_flight: int) -> None:
        for start in range(0, len(jobs), in_flight):
            batch = jobs[start : start + in_flight]
            conversation = self._conversation(opener)
            if conversation is None:
                for job in batch:
                    job.cause = self.given_up
                continue
            self._ask_on(conversation, batch)
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

    def _ask_on(self, conversation: Conversation, batch: Sequence[Job]) -> None:
        started = [(job, conversation.start(job.check)) for job in batch]
        for job, under_way in started:
            asked = conversation.finish(under_way)
            if job.asked is not None and _is_unanswered(job):  # it was waited for once already
                cut_short = asked.cut_short and job.asked.cut_short
                asked = msgspec.structs.replace(asked, cut_short=cut_short)
            job.asked = asked
            job.conversation = conversation

    def _find_the_one(
        self, conversation: Conversation, batch: Sequence[Job], opener: Opener
    ) -> None:
        """After this batch the server was dead or silent: which of them did it?"""
        self._deaths += conversation.gone is not None
        self._silences += conversation.gone is None
        enough = self._deaths > _MOST_DEATHS or self._silences > _MOST_SILENCES
        error = conversation.gone or silence(self._site.order.timeout)
        suspects = [job for job in batch if _is_unanswered(job)]
        if len(batch) == 1:
            batch[0].killed = error
            self._tell(batch[0], error)
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

    def _tell(self, job: Job, error: PeerError) -> None:
        asked = job.asked
        sent = asked.sent if asked is not None else b""
        told = PeerError(error.kind, f"after {job.check.said}: {error.message}")
        self._causes.note_error(told, (evidence_of(sent, b""),))

    def _ask_first(self, unbegun: Sequence[tuple[Job, Conversation]]) -> None:
        started = [(job, one, one.start(job.check)) for job, one in unbegun]
        for job, conversation, under_way in started:
            job.asked = conversation.finish(under_way)
            if not conversation.usable:
                job.killed = conversation.gone
            # The site ends all of them side by side: some servers leave slowly.


def _on(lane: Lane, jobs: Sequence[Job]) -> list[Job]:
    return [job for job in jobs if job.lane is lane]


def _one_after_the_other(opener: Opener) -> Opener:
    """The same connection for as long as it is of use."""
    kept: list[Conversation] = []

    def usable() -> Conversation:
        if not kept or not kept[-1].usable:
            kept.append(opener())
        return kept[-1]

    return usable


def _by_declare(
    jobs: Sequence[Job], revision: Revision
) -> Iterator[tuple[tuple[str, ...], list[Job]]]:
    """Where every request says what the client can do, one connection is enough for all."""
    if revision.era is Era.STATELESS:
        yield (), [*jobs]
        return
    for declare in dict.fromkeys(job.check.declare for job in jobs):
        yield declare, [job for job in jobs if job.check.declare == declare]


def _is_unanswered(job: Job) -> bool:
    seen = job.asked.exchange if job.asked is not None else None
    return seen is None or (seen.answer == "none" and seen.http is None)


def silence(limit: float) -> PeerError:
    return PeerError(ErrorKind.TIMEOUT, f"the server answered nothing any more for {limit:g} s")
