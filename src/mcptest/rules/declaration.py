"""The one registry. A rule is a declared value and a function that watches a session.

The function is a generator: it receives the steps it listens to, one at a time, and runs on after
the last one. A rule that has seen enough returns. One that judges each step by itself takes the
step as its second argument. All rules watch in the same pass, so a capture is read once however
many there are.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal, TypeAlias, TypeVar

import msgspec

from mcptest.core.capture import Frame, Record
from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import Kind
from mcptest.core.revision import (
    EVERY_REVISION,
    HANDSHAKE_REVISIONS,
    TIMELINE,
    Era,
    Revision,
    Window,
)
from mcptest.core.safe_text import show
from mcptest.core.verdict import Finding, Outcome, Severity, Side, Verdict
from mcptest.rules.session import NO_MESSAGE, Session, Step
from mcptest.wire.json_text import write_json

Watching: TypeAlias = Generator[None, "Step | None", None]
Judgement: TypeAlias = Callable[["Check"], Watching] | Callable[["Check", "Step"], None]
"""A rule's function. One that takes the step needs nothing of what came before."""
OnRoutine: TypeAlias = Literal["send", "count", "skip"]
Conversations: TypeAlias = Literal["polite", "any", "tour"]
Same: TypeAlias = Literal["message", "silence", "id", "noise", "answer", "reply"]
"""What two rules saw where they tell of one fault; `rules/yielding.py` compares their proofs."""
Narrowing: TypeAlias = Callable[["Step", list[str]], bool]
"""Narrows a wrong shape to what a rule sees, by the message and the parts of the pointer."""
ShownBy: TypeAlias = Literal["message", "missing answer", "silence"]
Topic: TypeAlias = Kind | type[Record]
Judging = TypeVar("Judging", bound=Judgement)

SPECIFICATION = "https://modelcontextprotocol.io/specification"
_MOVED = {
    "basic/lifecycle#capability-negotiation": "server/discover",
    "basic/lifecycle": "basic/versioning",
    "basic/transports#stdio": "basic/transports/stdio",
    "basic/transports#streamable-http": "basic/transports/streamable-http",
    "basic/utilities/progress": "basic/patterns/progress",
    "basic/utilities/cancellation": "basic/patterns/cancellation",
}
_ID = re.compile(r"[A-Z]{3,8}-\d{3}")
FIX = "Fix: "
"""The last paragraph of a rule's docstring begins with it, and says what to do."""
ANSWERS = (Kind.RESULT, Kind.ERROR)
MESSAGES = (Kind.REQUEST, Kind.NOTIFICATION, *ANSWERS)


@dataclass(frozen=True, slots=True)
class WrongShape:
    """What a rule reports of messages of a wrong shape: what is wrong at a pointer like one of the
    `patterns`, where `*` is any one part and a `/**` at the end everything below."""

    kind: Kind
    patterns: tuple[str, ...]
    methods: tuple[str, ...] = ()
    """Empty: whatever the method."""
    when: Narrowing | None = None
    window: Window = EVERY_REVISION


def _undeclared(check: Check) -> Watching:
    raise NotImplementedError(f"{check.rule.id} was declared without a function")


@dataclass(frozen=True, slots=True)
class Rule:
    """Everything about one rule; the page, the rule list and the verdict all come from here.

    It is the decorator of the function that watches, whose docstring is the rule's page and fix.
    """

    id: str
    title: str
    spec: str = ""
    """Page and anchor under the specification of a revision, like `basic/lifecycle#ping`. Where
    the family has a `page`, the anchor alone or nothing will do."""
    _: KW_ONLY
    category: str
    side: Side
    page: str = ""
    severity: Severity = Severity.MUST
    window: Window = EVERY_REVISION
    should_until: Revision | None = None
    """Before this revision the same sentence was a SHOULD."""
    transports: tuple[str, ...] = ()
    """Empty: any. Otherwise the rule needs facts that only these transports leave behind."""
    listens: tuple[Topic, ...] = tuple(Kind)
    methods: tuple[str, ...] = ()
    """Empty: any. Of requests and notifications; of answers, that of their request."""
    answers_to: tuple[str, ...] = ()
    """Like `methods`, but for answers alone."""
    sender: str = ""
    on_routine: OnRoutine = "send"
    """What to do with a step that is routine: the function would only count it, or do nothing."""
    conversations: Conversations = "polite"
    """In which conversations of ours it judges a server: in those where we keep to the
    specification ourselves; in "any", as rules about messages as such hold whatever a server was
    sent; or on the "tour" alone, which asks for things that should work, one page after the other,
    as rules take for granted that conclude from all that a client asked for."""
    shown_by: ShownBy = "message"
    """What shows that it is broken: a message of the side at fault; a "missing answer", so that
    the finding points at the request of the other side; or, where there must be "silence" after a
    message of the other side, what came nevertheless."""
    probe: str = ""
    """The probe that makes its occasion, where no client does that on a tour."""
    root_cause: str = ""
    """The root cause that is reported where it fails: other rules can't be judged then."""
    yields_to: Mapping[str, Same] = field(default_factory=dict)
    """Rules that report the fault where both saw the same, the first of them that did."""
    absorbs: Same | None = None
    """Every other rule yields to it where both saw the same."""
    reports: str = ""
    """What it reports where it has a wrong shape, so that the rules about shapes leave it alone:
    patterns of pointers into the messages that it listens to first of all, with blanks between
    them. `/a{,/b,/c}` is short for `/a /a/b /a/c`."""
    reports_when: Mapping[str, Narrowing] = field(default_factory=dict)
    """The same under a condition."""
    reports_shapes: tuple[WrongShape, ...] = ()
    """The same of other messages; once it is declared, all of them."""
    judging: Judgement = _undeclared
    by_step: bool = False
    """Whether `judging` takes each step by itself. Otherwise it is a generator of one session."""

    def __call__(self, judging: Judging) -> Judging:
        if not _ID.fullmatch(self.id) or self.id in RULES:
            raise ValueError(f"rule id {self.id!r} is malformed or taken")
        if FIX not in (judging.__doc__ or ""):
            raise ValueError(
                f"rule {self.id} has no page: write a docstring that ends with `Fix: `"
            )
        by_step = len(inspect.signature(judging).parameters) > 1
        shapes = (*self._wrong_shapes(), *self.reports_shapes)
        page = self.page.partition("#")[0] if self.spec.startswith("#") else ""
        spec = page + self.spec if self.spec else self.page
        RULES[self.id] = replace(
            self, spec=spec, judging=judging, by_step=by_step, reports_shapes=shapes
        )
        return judging

    def _wrong_shapes(self) -> Iterator[WrongShape]:
        kind = self.listens[0]
        if isinstance(kind, Kind):  # only messages have a shape
            if self.reports:
                yield WrongShape(kind, spelled_out(self.reports), self.methods, None, self.window)
            for pattern, when in self.reports_when.items():
                yield WrongShape(kind, (pattern,), self.methods, when, self.window)

    @property
    def is_about_silence(self) -> bool:
        """A server that has died or fallen silent says nothing about it, or the wrong thing."""
        return self.shown_by != "message"

    @property
    def explanation(self) -> str:
        return explanation_and_fix(self.judging)[0]

    @property
    def fix(self) -> str:
        """What the side at fault should do."""
        return explanation_and_fix(self.judging)[1]

    def severity_in(self, revision: Revision | None) -> Severity:
        """A capture that does not name its revision is judged by the milder word."""
        until = self.should_until
        softer = until is not None and (revision is None or revision < until)
        return Severity.SHOULD if softer else self.severity

    def may_hold(self, revision: Revision | None) -> bool:
        """Could it hold? An unknown revision is some revision with the handshake."""
        possible = HANDSHAKE_REVISIONS if revision is None else (revision,)
        return any(known in self.window for known in possible)

    def surely_holds(self, revision: Revision | None) -> bool:
        possible = HANDSHAKE_REVISIONS if revision is None else (revision,)
        return all(known in self.window for known in possible)

    def url(self, revision: Revision | None = None) -> str:
        """The page in that revision, or in the newest one that has the rule."""
        covered = [known for known in TIMELINE if known in self.window]
        dated = [known for known in covered if known is not Revision.DRAFT]
        chosen = revision if revision in covered else (dated or covered)[-1]
        return specification_url(self.spec, chosen)


def explanation_and_fix(declared: Callable[..., object]) -> tuple[str, str]:
    """The docstring of a rule's function: its page, and its last paragraph, in one line."""
    explanation, _, fix = inspect.cleandoc(declared.__doc__ or "").partition(f"\n\n{FIX}")
    return explanation, " ".join(fix.split())


def spelled_out(patterns: str) -> tuple[str, ...]:
    """Patterns of pointers one by one, without braces."""
    found: list[str] = []
    for pattern in patterns.split():
        before, _, rest = pattern.partition("{")
        choices, _, after = rest.partition("}")
        found += (before + one + after for one in choices.split(","))
    return tuple(found)


def specification_url(spec: str, revision: Revision) -> str:
    """The address of a page in one revision.

    Pages moved in 2026-07-28; where one did, its anchors are not the same any more.
    """
    moved = _MOVED if revision.era is Era.STATELESS else {}
    page = moved.get(spec) or moved.get(spec.partition("#")[0]) or spec
    return f"{SPECIFICATION}/{revision}/{page}"


RULES: dict[str, Rule] = {}
session_rule = Rule
"""What a rule is declared with; a `partial` of it says what the rules of a family share."""
server_rule = functools.partial(session_rule, side=Side.SERVER, sender="server")


def shown_by(rule: str) -> ShownBy:
    """What shows that the rule with this id is broken. A row of a corpus is about an answer."""
    declared = RULES.get(rule)
    return declared.shown_by if declared is not None else "message"


@dataclass(slots=True, eq=False)
class Check:
    """One rule at work on one session."""

    rule: Rule
    session: Session
    kept: int = DEFAULT_LIMITS.findings
    observed: int = 0
    of_server: int = 0
    """How much of that the server sent."""
    violations: int = 0
    _findings: list[Finding] = field(default_factory=list)
    _reason: str = ""
    _unchecked: str = ""
    _doubt: str = ""

    def saw(self, step: Step | None = None) -> None:
        """The capture exercised the rule here."""
        self.observed += 1
        if step is not None and step.sender == "server":
            self.of_server += 1

    def violated(
        self,
        step: Step | None,
        message: str,
        expected: str | None = None,
        *,
        actual: str | None = None,
        pointer: str | None = None,
    ) -> None:
        """It is broken here. Text of the peer may be passed in as it is: it is made safe here."""
        self.violations += 1
        if len(self._findings) >= self.kept:
            return
        self._findings.append(
            Finding(
                message=show(message, 400),
                record=step.place if step else None,
                sender=step.sender or None if step else None,
                expected=show(expected, 300) if expected is not None else None,
                actual=show(actual, 300) if actual is not None else None,
                excerpt=_excerpt(step) if step else None,
                pointer=show(pointer, 200) if pointer else None,
            )
        )

    def inconclusive(self, reason: str) -> None:
        """It can't be judged; counts only if nothing else was seen that can be."""
        self._reason = self._reason or reason

    def doubtful(self, reason: str) -> None:
        """What was seen may break it, or be something else: it does not pass, whatever else was
        seen."""
        self._doubt = self._doubt or reason

    def unchecked(self, reason: str) -> None:
        """Something that it is about costs too much to look at: it does not pass, whatever else
        was seen."""
        self._unchecked = self._unchecked or reason

    def verdict(self) -> Verdict:
        """A violation fails, something seen passes, and silence is neither."""
        outcome, reason = Outcome.NOT_OBSERVED, "nothing in the capture exercises it"
        hindered = self._unchecked or self._doubt
        if self.violations or (self.observed and not hindered):
            outcome, reason = Outcome.FAIL if self.violations else Outcome.PASS, ""
        elif hindered or self._reason:
            outcome, reason = Outcome.INCONCLUSIVE, hindered or self._reason
        return Verdict(
            rule=self.rule.id,
            outcome=outcome,
            reason=reason,
            observed=max(self.observed, self.violations),
            findings=tuple(self._findings),
            findings_total=self.violations,
            unchecked=bool(self._unchecked) and not self.violations,
            doubtful=bool(self._doubt) and not (self.violations or self._unchecked),
        )


_MOST_EARLY = 100
"""So many steps are kept that come before the server has declared anything."""


def once_declared(check: Check, judge: Callable[[Step], None]) -> Watching:
    """Judge each step by what the server declares, also one that comes before the declaration.

    A server may log before it answers `initialize`.
    """
    early: list[Step] = []
    while step := (yield):
        if check.session.server_capabilities is not None:
            judge(step)
        elif len(early) < _MOST_EARLY:
            early.append(step)
    for step in early:
        if check.session.server_capabilities is not None:
            judge(step)
        else:
            check.inconclusive("the capture does not contain the server's capabilities")


def _excerpt(step: Step) -> str | None:
    raw = step.message.raw
    if step.message is NO_MESSAGE:
        record = step.record
        line = record.raw if isinstance(record, Frame) else b""
        raw = line or msgspec.json.encode(record)  # an empty line shows as the record of it
    elif not raw:  # a message of a batch
        raw = write_json(step.message.value)
    return show(raw, 200)
