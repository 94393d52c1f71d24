"""The unit of work of a fleet: one server, judged by the specification and audited."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest import __version__
from mcptest.model.compliance import ComplianceReport
from mcptest.model.compliance_events import Event, RuleJudged
from mcptest.model.errors import McptestError, PeerError
from mcptest.model.fleet import Found, Kept, OfferedNames
from mcptest.model.masking import Masker
from mcptest.model.redaction import redaction
from mcptest.model.revision import parse_revision
from mcptest.peer.connection import Stopped
from mcptest.run.compliance.judging import judge_server
from mcptest.run.compliance.order import Order
from mcptest.run.exploring.auditing import Audit, AuditOrder
from mcptest.run.exploring.subject import Offer, Subject
from mcptest.run.fleet.order import ServerOrder
from mcptest.run.lanes_compliance import exit_code_for, min_grade_gate

Tell = Callable[[str], None]
_MOST_NAMES = 10_000
_LONGEST_NAME = 300


def judge_one(order: ServerOrder, tell: Tell) -> Found:
    """Whatever the server does is in what is found. What was found before the limit stands."""
    begun = time.monotonic()
    limit = _Limit(begun + order.limit)
    found = Found(order.name)
    masker = redaction.masker
    try:
        found = replace(found, compliance=_judged(order, tell, limit.is_over))
        found = _audited(order, found, tell, limit.is_over)
    except Stopped:
        pass  # before anything was found; the limit is told below
    except McptestError as error:
        kept = Kept.UNREACHABLE if isinstance(error, PeerError) else Kept.LOST
        said = error.masked(masker.cut_text)
        found = replace(found, kept=kept, reason=said.message, hint=said.hint)
    if limit.was_noticed:
        found = replace(
            found,
            kept=Kept.OUT_OF_TIME,
            reason=f"not judged to the end within {order.limit:g} s",
            hint="--server-timeout gives it longer",
        )
    spent = round((time.monotonic() - begun) * 1000)
    return _without_secrets(replace(found, duration_ms=spent), masker)


class _Limit:
    """The end of the time for one server."""

    def __init__(self, until: float) -> None:
        self._until = until
        self.was_noticed = False
        """Whether anyone was stopped by it: what is done before that is whole."""

    def is_over(self) -> bool:
        if time.monotonic() >= self._until:
            self.was_noticed = True
        return self.was_noticed


# -- judged by the specification ---------------------------------------------------------------


def _judged(order: ServerOrder, tell: Tell, is_over: Callable[[], bool]) -> ComplianceReport:
    begun = time.monotonic()
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

    def told(event: Event) -> None:
        if isinstance(event, RuleJudged):
            tell(f"{event.done} of {event.total} rules")

    judgement = judge_server(
        Order(
            target=order.target,
            revision=parse_revision(order.revision) if order.revision else None,
            timeout=order.timeout,
            startup=order.startup,
            captures=_folder(order, "compliance"),
            repeat=order.repeat_compliance,
            should_stop=is_over,
        ),
        told,
    )
    gates = () if not order.min_grade else (min_grade_gate(order.min_grade, judgement),)
    return ComplianceReport(
        server=order.name,
        judgements=(judgement,),
        gates=gates,
        tool=f"mcptest {__version__}",
        started=started,
        duration_ms=round((time.monotonic() - begun) * 1000),
        exit_code=exit_code_for((judgement,), gates, strict=order.strict),
    )


def _folder(order: ServerOrder, kind: str) -> Path | None:
    if not order.captures:
        return None
    folder = Path(order.captures) / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# -- audited -----------------------------------------------------------------------------------


def _audited(order: ServerOrder, found: Found, tell: Tell, is_over: Callable[[], bool]) -> Found:
    """The audit beside the judgement. A server that can't be met again keeps its judgement."""
    assert found.compliance is not None  # else there is nothing to stand beside
    judged = found.compliance.judgements[0]
    subject = Subject(
        order.target,
        revision=judged.revision,
        because=judged.revision_reason,
        timeout=order.audit_timeout,
        startup=order.startup,
        captures=_folder(order, "audit"),
        should_stop=is_over,
    )
    audit = Audit(
        subject,
        AuditOrder(
            timeout=order.audit_timeout, min_score=order.min_score, repeat=order.repeat_audit
        ),
    )
    try:
        with subject:
            total = audit.meet()
            for number, _ in enumerate(audit.items(), 1):
                tell(f"{number} of {total} items called")
    except PeerError as error:
        said = error.masked(subject.masker.cut_text)
        return replace(found, reason=f"not audited: {said.message}", hint=said.hint)
    except Stopped:
        return found
    report = replace(audit.report(), server=order.name)
    return replace(found, audit=report, offered=names_of(audit.offer))


def names_of(offer: Offer) -> OfferedNames:
    """What is compared with other servers: the names, as many as can be kept."""
    lists = {
        "tools": _names_in(offer.tools, "name"),
        "prompts": _names_in(offer.prompts, "name"),
        "resources": _names_in(offer.resources, "uri"),
    }
    kept = {kind: _comparable(names) for kind, names in lists.items()}
    left_out = sum(map(len, lists.values())) - sum(map(len, kept.values()))
    return OfferedNames(kept["tools"], kept["prompts"], kept["resources"], left_out)


def _comparable(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if len(name) <= _LONGEST_NAME)[:_MOST_NAMES]


def _names_in(items: Iterable[Any], member: str) -> list[str]:
    named = (item.get(member) for item in items if isinstance(item, dict))
    return list(dict.fromkeys(name for name in named if isinstance(name, str)))


# -- what may be told --------------------------------------------------------------------------

_OUR_WORDS = frozenset(
    {"format", "health", "id", "kept", "kind", "outcome", "revision"}
    | {"section", "severity", "transport", "letter", "grade", "tool", "started", "corpus"}
)
"""Members whose values are ours: a secret that is spelled like one of them does not change them."""


def _without_secrets(found: Found, masker: Masker) -> Found:
    """Also in what a server says of itself, in names and in descriptions."""
    if masker.idle:
        return found
    masked = _masked(msgspec.to_builtins(found), masker)
    return msgspec.convert({**masked, "name": found.name}, Found)


def _masked(value: Any, masker: Masker) -> Any:
    if isinstance(value, str):
        return masker.text(value)
    if isinstance(value, list | tuple):
        return [_masked(one, masker) for one in value]
    if isinstance(value, dict):
        return {
            key: one if key in _OUR_WORDS and isinstance(one, str) else _masked(one, masker)
            for key, one in value.items()
        }
    return value
