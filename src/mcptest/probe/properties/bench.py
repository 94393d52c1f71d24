"""Where an example is tried: what the rules say about one that was played, and what relations show.

A message that was sent as it is, is judged by the rows of the corpus that its mutation names; what
the server said, by the rules over sessions: all of them where we kept to the specification, and
those that hold whatever a server is sent where we did not. For a relation, what a server claims to
be the same is looked at twice. What changes by itself proves nothing, so each difference is looked
at once more without cause.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.core.capture import AnyRecord, Closed
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.message import ABSENT
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.core.verdict import Finding, Outcome, Severity, Side
from mcptest.probe.compliance.rule_results import of_the_server
from mcptest.probe.hint_checks import Verifier
from mcptest.probe.live_server import OutcomeKind, Subject
from mcptest.probe.properties.player import (
    EveryStep,
    ExampleServer,
    Played,
    Sent,
    play,
    tools_called,
)
from mcptest.probe.properties.steps import ALIVE, AskStep, Connect, Relate, Send, Steps
from mcptest.report.property import Way
from mcptest.rules.catalogue import all_rules
from mcptest.rules.corpus.explanation import explanations
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.registry import CorpusRule, Row, unmet
from mcptest.rules.declaration import RULES, Rule, shown_by
from mcptest.rules.judge import OngoingJudge, RuleTable, judge
from mcptest.session.pages import Offer, named_items
from mcptest.session.tape import Tape
from mcptest.suite.matching import json_equal
from mcptest.suite.observed import SeenExchange, judge_exchange
from mcptest.suite.sent_message import texts_in

# -- The session rules over a session that goes on -----------------------------------------------

_KEPT = 50


class WatchedSession:
    def __init__(self, tape: Tape, rules: RuleTable, revision: Revision) -> None:
        self.tape = tape
        source = tape.as_session(revision.wire_version, ())
        self._judge = OngoingJudge(source, rules, revision, kept=_KEPT, read=tape.read)
        self._place = 0
        self.broken_at_first = self.look(tape.records[: tape.marked])
        """What the server broke before the first example."""

    def look(self, records: Sequence[AnyRecord]) -> list[tuple[Rule, Finding]]:
        """Take in more records; what the server broke with them."""
        self._judge.feed(enumerate(records, self._place))
        self._place += len(records)
        return [
            (rule, one)
            for rule, found in self._judge.broken_since()
            for one in of_the_server(rule, (found,))
        ]


# -- What the rules say about an example that was played -----------------------------------------

_TAKEN_FOR_NONE = frozenset({-32700, -32600, -32601})
"""Codes that say: this is no message, or none that I know."""
_PLACEHOLDER = re.compile(r"\{[a-z][a-z_]*\}")
_MOST_SAID = 1_000
_LARGEST_MARK = 4_096
_encode = msgspec.json.Encoder().encode
_OF_ANY_TEXT = frozenset({"prompts/get", "completion/complete"})
"""Their arguments have names and no schema: nothing says which texts a server takes."""
_WEIGHT = {Severity.MUST: 0, Severity.SHOULD: 1, Severity.MAY: 2}


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which an example breaks its property."""

    way: Way
    rule: str = ""
    title: str = ""
    severity: Severity = Severity.MUST
    message: str = ""
    expected: str = ""
    actual: str = ""
    record: int | None = None
    """The place of the record at fault in the session that shows it."""
    carried_over: bool = False
    """It shows only with what was said before this example."""
    tape: Tape | None = None
    """The session that shows it; None: the last one."""

    @property
    def is_silence(self) -> bool:
        """An answer did not come in time: on a busy machine that may be no fault of the server."""
        return self.way is Way.HANG or shown_by(self.rule) == "missing answer"

    @property
    def key(self) -> tuple[str, str]:
        """What makes two of them the same."""
        return (self.way.value, self.rule or self.title)


class Judge:
    """The rules for one server, and what they said of the session that goes on."""

    def __init__(self, revision: Revision, transport: str, *, rude: bool = False) -> None:
        self.revision = revision
        self.transport = transport
        corpus = corpus_of(revision)
        self._corpus = corpus.rules if corpus is not None else {}
        rules = [one for one in all_rules() if self._can_judge(one, rude=rude)]
        self._rules = RuleTable(rules)
        self._rules_of_the_dead = RuleTable(one for one in rules if not one.is_about_silence)
        """Who has ended owes nothing any more."""
        self._watching: WatchedSession | None = None
        self._rows: dict[tuple[str, ...], list[tuple[CorpusRule, Row]]] = {}
        self._owed: dict[tuple[str, ...], bool] = {}
        self._said: dict[tuple[Any, ...], tuple[Violation, ...]] = {}
        """Servers answer the same to most of what is invalid, and rows say the same of that."""
        self.told: set[str] = set()

    def _can_judge(self, rule: Rule, *, rude: bool) -> bool:
        return (
            rule.side is not Side.CLIENT
            and rule.conversations != "tour"
            and rule.may_hold(self.revision)
            and (not rule.transports or self.transport in rule.transports)
            and (not rude or rule.conversations == "any")
        )

    def tell(self, rule: str) -> None:
        """The server is known to break this one: nobody waits any more for it to be kept."""
        self.told.add(rule)
        self._owed.clear()

    # -- one message -----------------------------------------------------------------------

    def owed(self, step: Send) -> bool:
        """Whether some rule is broken by silence alone."""
        known = self._owed.get(step.rules)
        if known is None:
            told = self.told
            observed = {"transport": self.transport, "alive": True, "unusable": 0}
            silence = SeenExchange(transport=observed)
            steps = EveryStep(silence, after=SeenExchange(result={}))
            silence = msgspec.structs.replace(silence, steps=steps)
            rows = [row for rule, row in self._rows_of(step) if rule.id not in told]
            known = any(not judge_exchange(row.expect, silence).passed for row in rows)
            self._owed[step.rules] = known
        return known

    def _rows_of(self, step: Send) -> list[tuple[CorpusRule, Row]]:
        """The rows that speak about the message, in this revision and over this transport."""
        if step.rules in self._rows:
            return self._rows[step.rules]
        found = self._rows[step.rules] = []
        for rule in filter(None, map(self._corpus.get, step.rules)):
            row = rule.row
            if row is None or (row.needs.transport and self.transport not in row.needs.transport):
                continue
            if any(one.target.startswith("probe.") for one in row.expect):
                continue
            # Without what is expected of the corpus' own question, which was not asked here.
            expect = tuple(
                one
                for one in row.expect
                if not any(_PLACEHOLDER.search(text) for text in texts_in(one.matcher))
            )
            if expect:
                found.append((rule, dataclasses.replace(row, expect=expect)))
        return found

    def _of_message(self, sent: Sent) -> Sequence[Violation]:
        if sent.step.valid:
            # It is accepted and processed: it may fail, but not as a message.
            error = sent.exchange.error
            code = error.get("code") if isinstance(error, dict) else None
            if not sent.step.offered or error is ABSENT or code not in _TAKEN_FOR_NONE:
                return ()
            asked = "a valid request for something that the server offers"
            return (
                Violation(
                    way=Way.RULE,
                    title="a valid message is accepted and processed",
                    message=f"the server answered {asked} with error {code}",
                    expected="a result, or an error about the request",
                    actual=f"error {code}",
                ),
            )
        mark = _mark_of(sent)
        known = self._said.get(mark) if mark is not None else None
        if known is None:
            known = tuple(self._by_rows(sent))
            if mark is not None and len(self._said) < _MOST_SAID:
                self._said[mark] = known
        return known

    def _by_rows(self, sent: Sent) -> Iterator[Violation]:
        for rule, row in self._rows_of(sent.step):
            if unmet(row.when, sent.exchange) is not None:
                continue
            judged = judge_exchange(row.expect, sent.exchange)
            if not judged.passed:
                found = explanations(row, judged.failures, sent.exchange)[0]
                yield Violation(
                    way=Way.RULE,
                    rule=rule.id,
                    title=rule.title,
                    severity=rule.severity or Severity.MUST,
                    message=found.message,
                    expected=found.expected or "",
                )

    # -- everything that was said ----------------------------------------------------------

    def broken(self, stage: ExampleServer, played: Played) -> list[Violation]:
        """Whatever is wrong with how the server took the example, the gravest first."""
        found: list[Violation] = []
        if played.ended is not None:
            alive = self._corpus.get(ALIVE)
            title = alive.title if alive is not None else "the server is still running"
            rule = ALIVE if alive is not None else ""
            found.append(Violation(way=played.ended, rule=rule, title=title, message=played.detail))
        for sent in played.sent:
            found += (one for one in self._of_message(sent) if not (found and one.rule == ALIVE))
        for tape, records in played.scenes:
            found += self._of_records(tape, records, ended=played.ended is not None)
        found += self._of_session(stage, played)
        if played.internal:
            found.append(
                Violation(
                    way=Way.CRASH,
                    title="a valid request gets a result",
                    severity=Severity.SHOULD if played.internal in _OF_ANY_TEXT else Severity.MUST,
                    message=f"the server answered {played.internal} with an internal error",
                    expected="a result, or -32602 for an invalid argument"
                    if played.internal in _OF_ANY_TEXT
                    else "a result, with isError: true if the tool fails",
                    actual="error -32603",
                )
            )
        return sorted(found, key=lambda one: (one.way is Way.RULE, _WEIGHT[one.severity]))

    def _of_session(self, stage: ExampleServer, played: Played) -> list[Violation]:
        """What the session that goes on shows; first whether there is anything to be seen."""
        tape = stage.tape
        if not tape.since_mark and played.scenes:
            return []
        watching, odd = self._watching, False
        if watching is None or watching.tape is not tape:
            watching = self._watching = WatchedSession(tape, self._rules, self.revision)
            # What is wrong with the beginning is wrong with every example: it is told once.
            odd = bool(watching.broken_at_first)
        carried = watching.look(tape.since_mark)
        if not (odd or carried or played.unanswered):
            return []
        found = self._of_records(tape, tape.records, ended=played.ended is not None)
        names = {one.rule for one in found}
        return found + [
            _of_rule(rule, finding, self.revision, carried_over=True)
            for rule, finding in carried
            if rule.id not in names
        ]

    def _of_records(
        self, tape: Tape, records: Sequence[AnyRecord], *, ended: bool
    ) -> list[Violation]:
        whole = [*records]
        if not tape.dropped:  # nobody knows what else was said in one that was cut off
            last = records[-1].t if records else 0.0
            whole.append(Closed(t=last, records=len(records)))
        rules = self._rules_of_the_dead if ended else self._rules
        source = tape.as_session(self.revision.wire_version, whole)
        found = []
        for verdict in judge(source, rules, self.revision).verdicts:
            if verdict.outcome is Outcome.FAIL:
                rule = RULES[verdict.rule]
                theirs = of_the_server(rule, verdict.findings)
                found += [_of_rule(rule, one, self.revision, tape) for one in theirs[:1]]
        return found


def _of_rule(
    rule: Rule,
    finding: Finding,
    revision: Revision,
    tape: Tape | None = None,
    *,
    carried_over: bool = False,
) -> Violation:
    return Violation(
        way=Way.RULE,
        rule=rule.id,
        title=rule.title,
        severity=rule.severity_in(revision),
        message=finding.message,
        expected=finding.expected or "",
        actual=finding.actual or "",
        record=None if carried_over else finding.record,
        carried_over=carried_over,
        tape=tape,
    )


def _mark_of(sent: Sent) -> tuple[Any, ...] | None:
    """The same for messages and answers of which the rows say the same; None: it is too large."""
    seen = sent.exchange
    after = seen.steps.get("after", seen)
    parts = (seen.result, seen.error, seen.http, seen.transport, after.result, after.error)
    try:
        mark = _encode([None if part is ABSENT else [part] for part in parts])
    except (ValueError, TypeError, RecursionError, OverflowError):  # no JSON that can be written
        return None
    return (sent.step.rules, mark) if len(mark) <= _LARGEST_MARK else None


# -- The bench for examples that are conversations -----------------------------------------------

_VAIN_STARTS = 3
_PATIENCE = 4
"""So many times longer a server may take that fell silent, before that is believed."""
_SLOW = 1.0
"""Seconds that a call may take before its tool is called no more."""


class PlayBench:
    def __init__(self, stage: ExampleServer, *, rude: bool = False) -> None:
        self.stage = stage
        self.judge = Judge(stage.revision, stage.met.transport, rude=rude)
        self.is_fresh = True
        """Whether nothing was done to the server that is there: it is new, or there is none."""
        self.began_anew = False
        """Whether the last example left its session for another."""
        self._avoided: set[str] = set()
        """Mutations that are known to end the server, which is not ended once more for each."""

    def close(self) -> None:
        """The server is closed by whoever opened it."""

    def learn(self, steps: Steps, found: Violation) -> None:
        """This is known now: it need not cost time again."""
        self.judge.tell(found.rule)
        if found.way is not Way.RULE:
            self._avoided |= {one.mutation for one in steps if isinstance(one, Send)} - {""}

    def renew(self, *, patient: bool = False) -> None:
        """A server that nothing was done to before, for whatever is tried next.

        `patient`: it may take longer to answer, so that only silence is taken for silence.
        """
        self.stage.drop()
        self.stage.patience = _PATIENCE if patient else 1
        self.is_fresh = True

    def skips(self, steps: Steps) -> bool:
        """Whether trying it would only cost time."""
        if self._avoided and any(
            isinstance(one, Send) and one.mutation in self._avoided for one in steps
        ):
            return True
        slow = self.stage.slow_tools
        return bool(slow) and not slow.keys().isdisjoint(tools_called(steps))

    def judged(self, steps: Steps) -> Sequence[Violation]:
        """What the server breaks when it is treated so, the gravest first.

        Raises PeerError when no server can be had any more.
        """
        played = self._played(steps)
        found = self.judge.broken(self.stage, played)
        cut_off = bool(self.stage.tape.dropped)
        self.is_fresh = played.ended is not None or not self.stage.is_open or cut_off
        self.began_anew = bool(played.scenes)
        if self.is_fresh:
            self.stage.drop(deaf=played.ended is Way.HANG)
        seconds, tool = played.slowest
        if seconds > _SLOW:
            self.stage.note_slow(tool, seconds)
        if played.silent and played.ended is None:
            # A call that gets no answer all by itself takes its time; that is for the user to
            # judge. One that gets its answer alone was forgotten because of what was around it.
            tape = self.stage.tape
            forgotten = False
            for ask in played.silent:
                self.stage.drop()
                alone = self._played((Connect(), AskStep(ask.method, ask.params)))
                forgotten = forgotten or not alone.silent
            self.renew()
            self.stage.tape = tape  # it is what shows the failure, if it is one
            if not forgotten:
                found = [one for one in found if shown_by(one.rule) == "message"]
        shown = self.stage.tape  # also when something else was played since
        return [one if one.tape is not None else replace(one, tape=shown) for one in found]

    def _played(self, steps: Steps) -> Played:
        for _ in range(_VAIN_STARTS - 1):
            try:
                return play(self.stage, steps, self.judge.owed)
            except PeerError:
                self.stage.drop()
        return play(self.stage, steps, self.judge.owed)


# -- The bench for relations ---------------------------------------------------------------------

_SEVERITIES = {"argument-order": Severity.SHOULD}
"""Nothing forbids it; JSON says that the members of an object have no order."""
_SLOW_MS = 1_000
_LARGE = 1_000_000
_TITLES = {
    "idempotent": "a tool with idempotentHint changes nothing when called again",
    "read-only": "a tool with readOnlyHint changes nothing",
    "argument-order": "the order of arguments does not change a tool's response",
    "same-lists": "two connections get the same lists",
}


class RelationBench:
    """One server that is asked the same twice. It comes back after a crash by itself."""

    is_fresh = False
    began_anew = False

    def __init__(self, stage: ExampleServer) -> None:
        """Of the stage: which server it is, and which of its tools are slow."""
        self._stage = stage
        self._timeout = stage.order.timeout
        self._subject = self._another()

    def _another(self) -> Subject:
        order = self._stage.order
        return Subject(
            order.target,
            revision=self._stage.revision,
            timeout=order.timeout,
            startup=order.startup,
            should_stop=order.is_over,
        )

    def close(self) -> None:
        self._subject.close()

    def skips(self, steps: Steps) -> bool:
        slow = self._stage.slow_tools
        return any(isinstance(one, Relate) and one.tool in slow for one in steps)

    def learn(self, steps: Steps, found: Violation) -> None:
        """Nothing is found faster by that."""

    def renew(self, *, patient: bool = False) -> None:
        """A claim holds in every state, so there is no need for a fresh server."""

    def judged(self, steps: Steps) -> Sequence[Violation]:
        (relation,) = steps
        assert isinstance(relation, Relate)  # these properties are tried with nothing else
        if relation.relation == "same-lists":
            why = self._same_lists()
        elif relation.relation == "argument-order":
            why = self._order_matters(relation)
        else:
            why = self._claim_is_wrong(relation)
        if not why:
            return ()
        severity = _SEVERITIES.get(relation.relation, Severity.MUST)
        title = _TITLES[relation.relation]
        return (Violation(way=Way.RELATION, title=title, severity=severity, message=why),)

    @cached_property
    def _offer(self) -> Offer:
        return self._subject.offer()

    @cached_property
    def _verifier(self) -> Verifier:
        return Verifier(self._subject, self._offer, None)

    def _claim_is_wrong(self, relation: Relate) -> str:
        for tool in named_items(self._offer.tools):
            if tool["name"] == relation.tool:
                claims = self._verifier.claims(tool, relation.arguments, self._timeout)
                return next((one.detail for one in claims if one.holds is False), "")
        return ""

    def _order_matters(self, relation: Relate) -> str:
        straight = relation.arguments
        turned = dict(reversed(straight.items()))
        first, again = self._called(relation, straight), self._called(relation, straight)
        if not first.is_like(again) or first.kind is OutcomeKind.HUNG:
            return ""  # it never says the same twice
        other = self._called(relation, turned)
        if first.is_like(other) or not other.is_like(self._called(relation, turned)):
            return ""
        return f"the tool returned {first.shown}, and {other.shown} with the arguments reversed"

    def _called(self, relation: Relate, arguments: Mapping[str, Any]) -> _Answered:
        outcome = self._subject.call(relation.tool, arguments, timeout=self._timeout)
        if outcome.duration_ms > _SLOW_MS:
            self._stage.note_slow(relation.tool, outcome.duration_ms / 1000)
        content: Any = outcome.kind.value
        if outcome.reply is not None:
            value = outcome.reply.message.value
            content = value.get("result", value.get("error")) if isinstance(value, dict) else value
            if isinstance(content, dict):
                content = {key: part for key, part in content.items() if key != "_meta"}
        if len(outcome.received) >= _LARGE:  # four answers of 15 MB are too many to keep at once
            content = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return _Answered(outcome.kind, content, show(outcome.received, 120) or outcome.kind.value)

    def _same_lists(self) -> str:
        mine, theirs = self._subject.offer(), self._offer_of_another()
        for name in ("tools", "prompts", "resources", "templates"):
            if not json_equal(list(getattr(mine, name)), list(getattr(theirs, name))):
                again = self._subject.offer()
                if json_equal(list(getattr(mine, name)), list(getattr(again, name))):
                    return f"the list of {name} differs on a second connection"
        return ""

    def _offer_of_another(self) -> Offer:
        try:
            with self._another() as beside:
                return beside.offer()
        except PeerError as error:
            if error.kind not in {ErrorKind.EXITED, ErrorKind.CLOSED}:
                raise
        self._subject.drop()  # it may allow no second process beside itself
        with self._another() as alone:
            return alone.offer()


class _Answered(msgspec.Struct, frozen=True):
    kind: OutcomeKind
    content: Any
    shown: str

    def is_like(self, other: _Answered) -> bool:
        return self.kind is other.kind and json_equal(self.content, other.content)
