"""The one registry. A rule is a declared value and a function that watches a session.

The function is a generator: it receives the steps it listens to, one at a time, and runs on after
the last one. All rules watch in the same pass, so a capture is read once however many there are.
A rule that has seen enough returns.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from mcptest.model.capture import Record
from mcptest.model.message import Kind
from mcptest.model.revision import (
    EVERY_REVISION,
    HANDSHAKE_REVISIONS,
    TIMELINE,
    Era,
    Revision,
    Window,
)
from mcptest.model.verdict import Severity, Side

if TYPE_CHECKING:
    from mcptest.rules.check import Check
    from mcptest.rules.session import Step

Watching: TypeAlias = Generator[None, "Step | None", None]
OnRoutine: TypeAlias = Literal["send", "count", "skip"]
Topic: TypeAlias = Kind | type[Record]

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


@dataclass(frozen=True, slots=True)
class Rule:
    """Everything about one rule; the page, the rule list and the verdict all come from here."""

    id: str
    title: str
    category: str
    severity: Severity
    side: Side
    spec: str
    """Page and anchor under the specification of a revision, like `basic/lifecycle#ping`."""
    watch: Callable[[Check], Watching]
    window: Window = EVERY_REVISION
    should_until: Revision | None = None
    """Before this revision the same sentence was a SHOULD."""
    transports: frozenset[str] = frozenset()
    """Empty: any. Otherwise the rule needs facts that only these transports leave behind."""
    listens: frozenset[Topic] = frozenset(Kind)
    methods: frozenset[str] = frozenset()
    """Empty: any. Of requests and notifications; of answers, that of their request."""
    answers_to: frozenset[str] = frozenset()
    """Like `methods`, but for answers alone."""
    sender: str = ""
    on_routine: OnRoutine = "send"
    """What to do with a step that is routine: the function would only count it, or do nothing."""

    @property
    def explanation(self) -> str:
        return inspect.cleandoc(self.watch.__doc__ or "")

    def severity_in(self, revision: Revision | None) -> Severity:
        """A capture that does not name its revision is judged by the milder word."""
        if self.should_until is None:
            return self.severity
        softer = revision is None or revision < self.should_until
        return Severity.SHOULD if softer else self.severity

    def may_hold(self, revision: Revision | None) -> bool:
        """Could it hold? An unknown revision is some revision with the handshake."""
        if revision is not None:
            return revision in self.window
        return any(known in self.window for known in HANDSHAKE_REVISIONS)

    def surely_holds(self, revision: Revision | None) -> bool:
        if revision is not None:
            return revision in self.window
        return all(known in self.window for known in HANDSHAKE_REVISIONS)

    def url(self, revision: Revision | None = None) -> str:
        """The page in that revision, or in the newest one that has the rule."""
        covered = [known for known in TIMELINE if known in self.window]
        dated = [known for known in covered if known is not Revision.DRAFT]
        chosen = revision if revision in covered else (dated or covered)[-1]
        return specification_url(self.spec, chosen)


def specification_url(spec: str, revision: Revision) -> str:
    """The address of a page in one revision."""
    page = spec if revision.era is Era.HANDSHAKE else _in_stateless_era(spec)
    return f"{SPECIFICATION}/{revision}/{page}"


def _in_stateless_era(spec: str) -> str:
    """Pages moved in 2026-07-28; where one did, its anchors are not the same any more."""
    return _MOVED.get(spec) or _MOVED.get(spec.partition("#")[0]) or spec


RULES: dict[str, Rule] = {}


def session_rule(
    id: str,  # noqa: A002 - a rule's id is called id
    title: str,
    *,
    category: str,
    severity: Severity,
    side: Side,
    spec: str,
    window: Window = EVERY_REVISION,
    should_until: Revision | None = None,
    transports: tuple[str, ...] = (),
    listens: tuple[Topic, ...] = tuple(Kind),
    methods: tuple[str, ...] = (),
    answers_to: tuple[str, ...] = (),
    sender: str = "",
    on_routine: OnRoutine = "send",
) -> Callable[[Callable[[Check], Watching]], Callable[[Check], Watching]]:
    """Declare a rule. The docstring of the function is the rule's page."""

    def declare(watch: Callable[[Check], Watching]) -> Callable[[Check], Watching]:
        if not _ID.fullmatch(id) or id in RULES:
            raise ValueError(f"rule id {id!r} is malformed or taken")
        if not watch.__doc__:
            raise ValueError(f"rule {id} has no page: write its docstring")
        RULES[id] = Rule(
            id=id,
            title=title,
            category=category,
            severity=severity,
            side=side,
            spec=spec,
            watch=watch,
            window=window,
            should_until=should_until,
            transports=frozenset(transports),
            listens=frozenset(listens),
            methods=frozenset(methods),
            answers_to=frozenset(answers_to),
            sender=sender,
            on_routine=on_routine,
        )
        return watch

    return declare
