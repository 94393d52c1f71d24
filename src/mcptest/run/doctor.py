"""The doctor: finds out what a server speaks, examines it, and judges every item on its way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from mcptest import __version__
from mcptest.model.compliance import Evidence
from mcptest.model.doctor import (
    Diagnosis,
    DoctorReport,
    Judged,
    MovedRule,
    RulesOnTheWay,
    Verdict,
)
from mcptest.model.errors import PeerError, UsageError
from mcptest.model.revision import NEWEST_HANDSHAKE, TIMELINE, Era, Revision
from mcptest.model.show import show
from mcptest.peer.connection import Stopped
from mcptest.rules.corpus.version_corpus import corpus_of
from mcptest.rules.corpus.version_diff import VersionDiff, diff_versions
from mcptest.rules.migration_item import MigrationItem
from mcptest.rules.migration_items import items_between
from mcptest.run import doctor_probes_handshake, doctor_probes_http, doctor_probes_stateless
from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.declared import EVERYTHING
from mcptest.run.compliance.order import Order
from mcptest.run.compliance.site import Site
from mcptest.run.doctor_examination import Examination, kept_apart
from mcptest.run.doctor_verdicts import Probe
from mcptest.transport.target import Target

PROBES: Final[dict[str, Probe]] = {
    **doctor_probes_stateless.PROBES,
    **doctor_probes_http.PROBES,
    **doctor_probes_handshake.PROBES,
}
_LAST = (
    "batches",
    "batches-received",
    "notifications",
    "error-codes",
    "meta-keys",
    "audio",
    "result-type",
    "cache-hints",
    "utf-8",
    "exit-on-eof",
)
"""Asked after the others: they may upset a server, or look back at everything that was seen."""


_RESTS_ON: Final = {
    "server-requests": "tools",
    "tasks": "tools",
    "param-headers": "tools",
    "tool-schemas": "tools",
    "tool-names": "tools",
    "argument-errors": "tools",
    "structured-output": "tools",
    "declared-only": "tools",
    "resource-uris": "resources",
    "completions": "prompts",
    "stable-lists": "tools",
}
"""The list that an item is judged by: without it nothing is known, whatever else was seen."""
_NOT_REACHED: Final = Judged(Verdict.UNKNOWN, "it was not looked at: the examination was stopped")
INTERRUPTED: Final = "interrupted: only what was looked at by then is told here"


class Way(msgspec.Struct, frozen=True):
    """From where to where, and the session in which the server is met."""

    older: Revision
    newer: Revision
    site: Site
    conversation: Conversation
    notes: tuple[str, ...] = ()


def examine(
    order: Order,
    newer: Revision,
    older: Revision | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> DoctorReport:
    """What breaks on the way to `newer`. `older` None: from what the server speaks today.

    Raises PeerError when the server can't be reached, UsageError when there is no such way.
    """
    if older is not None and older >= newer:
        raise UsageError(
            f"{older} is not older than {newer}", hint="--from names the revision it comes from"
        )
    begun = time.monotonic()
    way = find_way(order, newer, older)
    examination = Examination(way.site, way.conversation, newer)
    try:
        items = list(items_between(way.older, newer))
        judged = _judged(items, examination, order.allow_tools, tell)
    finally:
        examination.close()
    broken = [item for item in items if judged[item.id].verdict is Verdict.BREAKS]
    unreached = sum(one is _NOT_REACHED for one in judged.values())
    if broken and INTERRUPTED not in examination.notes:
        again, left = _confirmed(broken, judged, examination, order.allow_tools, tell)
        judged |= again
        unreached += left
    if examination.has_wordless_end and INTERRUPTED not in examination.notes:
        examination.site.require_second_process()
    return _report(way, examination, items, judged, begun, unreached)


def _judged(
    items: Sequence[MigrationItem],
    examination: Examination,
    allow_tools: tuple[str, ...],
    tell: Callable[[str], None],
) -> dict[str, Judged]:
    """Every item; where we are stopped, with what was found before it."""
    judged = dict.fromkeys((item.id for item in items), _NOT_REACHED)
    try:
        if items:
            tell("looking around")
            examination.look_around(allow_tools)
        for item in sorted(items, key=lambda one: _place(one.id)):
            tell(item.title)
            judged[item.id] = _judge(item, examination)
    except Stopped:
        examination.notes.append(INTERRUPTED)
    return judged


def _confirmed(
    broken: Sequence[MigrationItem],
    judged: Mapping[str, Judged],
    first: Examination,
    allow_tools: tuple[str, ...],
    tell: Callable[[str], None],
) -> tuple[dict[str, Judged], int]:
    """What breaks is looked at again, in a session of a server that was started for this.

    Also how many of them could not be, because we were stopped: nobody may take those for mended.
    """
    tell("looking again at what breaks")
    site = first.site.twin()
    try:
        examination = Examination(site, site.open(declare=EVERYTHING), first.newer)
    except (PeerError, Stopped) as error:
        site.close()
        first.notes += [INTERRUPTED] if isinstance(error, Stopped) else []
        said = error.message if isinstance(error, PeerError) else "interrupted"
        why = f"it could not be looked at again: {said}"
        left = len(broken) if isinstance(error, Stopped) else 0
        return {one.id: _seen_once(judged[one.id], why) for one in broken}, left
    try:
        again = _judged(broken, examination, allow_tools, lambda _: None)
    finally:
        examination.close()
    first.notes += [one for one in examination.notes if one not in first.notes]
    confirmed = {
        item.id: judged[item.id]
        if again[item.id].verdict is Verdict.BREAKS
        else _seen_once(judged[item.id], again[item.id].detail, again[item.id].evidence)
        for item in broken
    }
    return confirmed, sum(again[item.id] is _NOT_REACHED for item in broken)


def _seen_once(first: Judged, why: str, evidence: tuple[Evidence, ...] = ()) -> Judged:
    detail = f"broke once and not again: {first.detail}; then: {why}"
    return Judged(Verdict.UNKNOWN, detail, (*first.evidence, *evidence))


def _report(
    way: Way,
    examination: Examination,
    items: Sequence[MigrationItem],
    judged: Mapping[str, Judged],
    begun: float,
    unreached: int,
) -> DoctorReport:
    site, diff = way.site, _diff(way)
    unlisted = {f"the list of {member}" for member in examination.unlisted}
    info, mask = site.server_info, site.masker.text
    return DoctorReport(
        server=mask(site.order.target.label),
        transport=site.transport,
        older=way.older,
        newer=way.newer,
        spoken=way.newer if examination.speaks_newer else site.revision,
        items=tuple(_diagnosis(item, judged[item.id], diff, mask) for item in items),
        rules=_moved(diff),
        server_name=mask(show(str(info.get("name") or ""), 80)),
        server_version=mask(show(str(info.get("version") or ""), 40)),
        tool=f"mcptest {__version__}",
        revision_reason=mask(site.reason),
        requests=examination.requests,
        duration_ms=round((time.monotonic() - begun) * 1000),
        unreached=unreached,
        unanswered=tuple(sorted(examination.unanswered | unlisted)),
        notes=tuple(mask(one) for one in (*way.notes, *examination.notes)),
    )


def _judge(item: MigrationItem, examination: Examination) -> Judged:
    judged = PROBES[item.id](examination)
    member = _RESTS_ON.get(item.id, "")
    if member in examination.unlisted and judged.verdict is not Verdict.BREAKS:
        return Judged(Verdict.UNKNOWN, f"the list of {member} could not be read")
    return judged


def _place(item: str) -> int:
    return _LAST.index(item) + 1 if item in _LAST else 0


# -- from where to where -------------------------------------------------------------------


def find_way(order: Order, newer: Revision, older: Revision | None) -> Way:
    """Meet the server in the newer revision if it speaks that, and else in an older one."""
    site, conversation = _meet(order, None)
    found = Way(older or site.revision, newer, site, conversation)
    # HTTP+SSE is found by falling back to it once; nobody has to find it again.
    order = msgspec.structs.replace(order, target=_as_met(order.target, site.transport))
    try:
        return _settled(order, found, older)
    except BaseException:
        site.close()
        raise


def _as_met(target: Target, transport: str) -> Target:
    way: Any = transport
    return msgspec.structs.replace(target, way=way)


def _settled(order: Order, way: Way, older: Revision | None) -> Way:
    """Which step it is, and in which revision the server is examined."""
    newest, newer = way.site.revision, way.newer
    if newest < newer and newest.wire_version != newer.wire_version:
        return _from_today(order, way, older)
    if newest <= newer:
        # The draft is spoken under the name of the revision before it: that is where it starts.
        if older is not None or newest < newer:
            return way
        before, notes = _what_it_spoke_before(order, newer)
        return msgspec.structs.replace(way, older=before, notes=notes)
    if older is None:
        raise UsageError(
            f"the server speaks {newest}, which is newer than {newer}",
            hint="name a newer revision with --to, or look at an older step with --from REV",
        )
    return _pinned(order, way)


def _meet(order: Order, revision: Revision | None, because: str = "") -> tuple[Site, Conversation]:
    named = "today" if revision is None else f"in-{revision}"
    order = msgspec.structs.replace(order, revision=revision, because=because)
    site = Site(kept_apart(order, named))
    return site, site.meet()


def _from_today(order: Order, way: Way, older: Revision | None) -> Way:
    """The server does not speak the newer revision: it is examined in an older one."""
    if older is None or older == way.site.revision:
        return way
    try:
        site, conversation = _meet(order, older, "asked for by --from")
    except PeerError as error:
        note = f"{error.message}; it was examined in {way.site.revision}"
        return msgspec.structs.replace(way, notes=(note,))
    way.site.close()
    return msgspec.structs.replace(way, site=site, conversation=conversation)


def _pinned(order: Order, way: Way) -> Way:
    """A server that speaks still newer revisions can be looked at in this one, if it speaks it."""
    try:
        site, conversation = _meet(order, way.newer, "asked for by --to")
    except PeerError as error:
        hint = "name a revision that it speaks, or a newer one"
        raise UsageError(error.message, hint=hint) from None
    way.site.close()
    return msgspec.structs.replace(way, site=site, conversation=conversation)


def _what_it_spoke_before(order: Order, newer: Revision) -> tuple[Revision, tuple[str, ...]]:
    """The newest older revision that the server speaks too, by asking."""
    before = TIMELINE[max(0, newer.place - 1)]
    offer = NEWEST_HANDSHAKE if newer.era is Era.STATELESS else before
    site = Site(kept_apart(msgspec.structs.replace(order, revision=offer), f"before-{offer}"))
    try:
        site.meet()
    except PeerError:
        note = f"the server does not agree to {offer}: what changed after {before} was looked at"
        return before, (note,)
    finally:
        site.close()
    return offer, ()


# -- what is said about an item ------------------------------------------------------------


def _diff(way: Way) -> VersionDiff | None:
    was, now = corpus_of(way.older), corpus_of(way.newer)
    return None if was is None or now is None else diff_versions(was, now)


def _moved(diff: VersionDiff | None) -> RulesOnTheWay | None:
    if diff is None:
        return None
    return RulesOnTheWay(diff.summary.changed, diff.summary.added, diff.summary.removed)


def _diagnosis(
    item: MigrationItem, judged: Judged, diff: VersionDiff | None, mask: Callable[[str], str]
) -> Diagnosis:
    buckets = {entry.rule_id: entry.bucket for entry in diff.entries} if diff is not None else {}
    rules = tuple(MovedRule(name, buckets[name]) for name in item.rules if name in buckets)
    wanting = judged.verdict in {Verdict.BREAKS, Verdict.UNKNOWN} or judged.advice
    return Diagnosis(
        id=item.id,
        title=item.title,
        since=item.since,
        change=item.change,
        verdict=judged.verdict,
        detail=mask(judged.detail),
        evidence=judged.evidence,
        rules=rules,
        fix=item.fix if wanting else "",
        advice=mask(judged.advice),
        unchecked=judged.unchecked,
    )
