"""What `mcptest doctor` does: find the way between two revisions, probe, diagnose, report."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.commands.doctor.examination import Examination, kept_apart
from mcptest.commands.doctor.migration_probes import PROBES
from mcptest.commands.live_display import live_progress
from mcptest.commands.options import duration, limit_of, named_target, startup_of, wanted_revision
from mcptest.commands.reporting import captures_for_html, conclude
from mcptest.commands.server_options import ending_for_people, out_of_time, repeat_command
from mcptest.core.errors import ErrorKind, ExitCode, PeerError, UsageError
from mcptest.core.judgement import Evidence
from mcptest.core.results import made_since
from mcptest.core.revision import NEWEST_HANDSHAKE, TIMELINE, Era, Revision, parse_revision
from mcptest.core.safe_text import show
from mcptest.probe.compliance.conversation import Conversation
from mcptest.probe.compliance.site import Order, Site
from mcptest.report.doctor import (
    Diagnosis,
    DoctorReport,
    DoctorVerdict,
    Judged,
    MovedRule,
    RulesOnTheWay,
    ServerInfo,
)
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.version_diff import VersionDiff, diff_versions
from mcptest.rules.migration import MigrationItem, items_between
from mcptest.session.answers import EVERYTHING
from mcptest.session.connection import Stopped
from mcptest.transport.interrupt import Stop, stopping_on_signals


def run_doctor(arguments: argparse.Namespace) -> int:
    newer = parse_revision(arguments.to)
    # --spec-version names the revision to speak, which is where the server comes from.
    spoken = arguments.older if arguments.older != "auto" else arguments.spec_version
    older = wanted_revision(spoken)
    # Until the reports are written: a signal must not cost them.
    with captures_for_html(arguments), stopping_on_signals() as stop:
        stop.limit = limit_of(arguments)
        order = _order(arguments, stop)
        with ending_for_people(arguments, stop), live_progress(arguments, 0) as progress:
            report = examine(order, newer, older, progress.reach)
        if stop.is_out_of_time and report.unreached:
            notes = [note for note in report.notes if note != INTERRUPTED]
            left = f"{report.unreached} of {len(report.items)} items not reached"
            report = replace(report, notes=(*notes, f"{out_of_time(arguments)}: {left}"))
        if stop.is_set():
            sys.stderr.write("mcptest: interrupted\n")
        code = conclude(arguments, report, repeat=partial(repeat_command, arguments, "to"))
        return ExitCode.INTERRUPTED if stop.is_set() else code


def _order(arguments: argparse.Namespace, stop: Stop) -> Order:
    return Order(
        timeout=duration(arguments.timeout, "--timeout"),
        startup=startup_of(arguments),
        target=named_target(arguments),
        allow_tools=tuple(arguments.allow_tool),
        captures=arguments.save_capture,
        should_stop=stop.is_over,
    )


Tell: TypeAlias = Callable[[int, int, str], None]
"""Hears how many of how many items were looked at, and what is looked at now."""
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


_NOT_REACHED: Final = Judged(
    DoctorVerdict.UNKNOWN, "it was not looked at: the examination was stopped"
)
INTERRUPTED: Final = "interrupted: the report is incomplete"


class RevisionMove(msgspec.Struct, frozen=True):
    """From where to where, and the session in which the server is met."""

    older: Revision
    newer: Revision
    site: Site
    conversation: Conversation
    notes: tuple[str, ...] = ()


def examine(
    order: Order, newer: Revision, older: Revision | None = None, tell: Tell = lambda *_: None
) -> DoctorReport:
    """What breaks on the way to `newer`. `older` None: from what the server speaks today.

    Raises PeerError when the server can't be reached, UsageError when there is no such way.
    """
    if older is not None and older >= newer:
        raise UsageError(
            f"{older} is not older than {newer}", hint="--from is the revision to move from"
        )
    begun = time.monotonic()
    move = find_move(order, newer, older)
    examination = Examination(move.site, move.conversation, newer)
    try:
        items = list(items_between(move.older, newer))
        judged = _run_probes(items, examination, tell)
    finally:
        examination.close()
    broken = [item for item in items if judged[item.id].verdict is DoctorVerdict.BREAKS]
    unreached = sum(one is _NOT_REACHED for one in judged.values())
    if broken and INTERRUPTED not in examination.notes:
        again, left = _confirm_breaks(broken, judged, examination, tell)
        judged |= again
        unreached += left
    if examination.has_wordless_end and INTERRUPTED not in examination.notes:
        examination.site.require_second_process()
    return _report(move, examination, items, judged, begun, unreached)


def _run_probes(
    items: Sequence[MigrationItem], examination: Examination, tell: Tell
) -> dict[str, Judged]:
    """Every item; where we are stopped, with what was found before it."""
    judged = dict.fromkeys((item.id for item in items), _NOT_REACHED)
    try:
        if items:
            tell(0, len(items), "reading what the server offers")
            examination.look_around()
        last = {name: place for place, name in enumerate(_LAST, 1)}
        for done, item in enumerate(sorted(items, key=lambda one: last.get(one.id, 0))):
            tell(done, len(items), item.title)
            found = PROBES[item.id](examination)
            if item.rests_on in examination.unlisted and found.verdict is not DoctorVerdict.BREAKS:
                why = f"the list of {item.rests_on} could not be read"
                found = Judged(DoctorVerdict.UNKNOWN, why)
            judged[item.id] = found
    except Stopped:
        examination.notes.append(INTERRUPTED)
    return judged


def _confirm_breaks(
    broken: Sequence[MigrationItem], judged: Mapping[str, Judged], first: Examination, tell: Tell
) -> tuple[dict[str, Judged], int]:
    """What breaks is looked at again, in a session of a server that was started for this.

    Also how many of them could not be, because we were stopped: nobody may take those for mended.
    """
    tell(0, len(broken), "confirming what breaks")
    site = first.site.twin()
    try:
        examination = Examination(site, site.open(declare=EVERYTHING), first.newer)
    except (PeerError, Stopped) as error:
        site.close()
        first.notes += [INTERRUPTED] if isinstance(error, Stopped) else []
        said = error.message if isinstance(error, PeerError) else "interrupted"
        left = len(broken) if isinstance(error, Stopped) else 0
        why = f"it could not be confirmed: {said}"
        return {one.id: _broke_once(judged[one.id], "", why) for one in broken}, left
    try:
        again = _run_probes(broken, examination, lambda *_: None)
    finally:
        examination.close()
    first.notes += [one for one in examination.notes if one not in first.notes]
    confirmed = {item.id: judged[item.id] for item in broken}
    for name, second in again.items():
        if second.verdict is not DoctorVerdict.BREAKS:
            why = f"then: {second.detail}"
            confirmed[name] = _broke_once(judged[name], " and not again", why, second.evidence)
    return confirmed, sum(again[item.id] is _NOT_REACHED for item in broken)


def _broke_once(first: Judged, how: str, why: str, evidence: tuple[Evidence, ...] = ()) -> Judged:
    detail = f"broke once{how}: {first.detail}; {why}"
    return Judged(DoctorVerdict.UNKNOWN, detail, (*first.evidence, *evidence))


def _report(
    move: RevisionMove,
    examination: Examination,
    items: Sequence[MigrationItem],
    judged: Mapping[str, Judged],
    begun: float,
    unreached: int,
) -> DoctorReport:
    site, was, now = move.site, corpus_of(move.older), corpus_of(move.newer)
    diff = None if was is None or now is None else diff_versions(was, now)
    total = diff.summary if diff is not None else None
    on_the_way = RulesOnTheWay(total.changed, total.added, total.removed) if total else None
    unlisted = {f"the list of {member}" for member in examination.unlisted}
    info, mask = site.server_info, site.masker.text
    return DoctorReport(
        server=mask(site.order.target.label),
        transport=site.transport,
        older=move.older,
        newer=move.newer,
        spoken=move.newer if examination.speaks_newer else site.revision,
        items=tuple(_diagnosis(item, judged[item.id], diff, mask) for item in items),
        rules=on_the_way,
        server_info=ServerInfo(
            name=mask(show(str(info.get("name") or ""), 80)),
            version=mask(show(str(info.get("version") or ""), 40)),
        ),
        revision_reason=mask(site.reason),
        requests=examination.requests,
        **made_since(begun),
        unreached=unreached,
        unanswered=tuple(sorted(examination.unanswered | unlisted)),
        notes=tuple(mask(one) for one in (*move.notes, *examination.notes)),
    )


def find_move(order: Order, newer: Revision, older: Revision | None) -> RevisionMove:
    """Meet the server in the newer revision if it speaks that, and else in an older one."""
    site, conversation = _meet(order, None, "today")
    found = RevisionMove(older or site.revision, newer, site, conversation)
    # HTTP+SSE is found by falling back to it once; nobody has to find it again.
    way: Any = site.transport
    order = replace(order, target=replace(order.target, way=way))
    try:
        return _choose_revision(order, found, older)
    except BaseException:
        site.close()
        raise


def _choose_revision(order: Order, move: RevisionMove, older: Revision | None) -> RevisionMove:
    """Which step it is, and in which revision the server is examined."""
    newest, newer = move.site.revision, move.newer
    if newest < newer and newest.wire_version != newer.wire_version:
        if older is None or older == newest:
            return move
        try:
            return _met_again(order, move, older, "asked for by --from")
        except PeerError as error:
            return replace(move, notes=(f"{error.message}; it was examined in {newest}",))
    if newest <= newer:
        # The draft is spoken under the name of the revision before it: that is where it starts.
        if older is not None or newest < newer:
            return move
        before, notes = _newest_older_revision(order, newer)
        return replace(move, older=before, notes=notes)
    if older is None:
        hint = "name a newer revision with --to, or look at an older step with --from REV"
        raise UsageError(f"the server speaks {newest}, which is newer than {newer}", hint=hint)
    # One that speaks still newer revisions can be looked at in this one, if it speaks it.
    try:
        return _met_again(order, move, newer, "asked for by --to")
    except PeerError as error:
        hint = "name a revision that it speaks, or a newer one"
        raise UsageError(error.message, hint=hint) from None


def _meet(
    order: Order, revision: Revision | None, folder: str, because: str = ""
) -> tuple[Site, Conversation]:
    site = Site(kept_apart(replace(order, revision=revision, because=because), folder))
    return site, site.meet()


def _met_again(order: Order, move: RevisionMove, revision: Revision, because: str) -> RevisionMove:
    """The same move, with the server examined in this revision. Raises PeerError."""
    site, conversation = _meet(order, revision, f"in-{revision}", because)
    move.site.close()
    return replace(move, site=site, conversation=conversation)


def _newest_older_revision(order: Order, newer: Revision) -> tuple[Revision, tuple[str, ...]]:
    """The newest older revision that the server speaks too, by asking."""
    before = TIMELINE[max(0, newer.place - 1)]
    offer = NEWEST_HANDSHAKE if newer.era is Era.STATELESS else before
    for revision in reversed(TIMELINE[: offer.place + 1]):
        asked = replace(order, revision=revision)
        site = Site(kept_apart(asked, f"before-{revision}"))
        try:
            site.meet()
        except PeerError as error:
            if error.kind is not ErrorKind.VERSION_REFUSED:
                break
        else:
            return revision, ()
        finally:
            site.close()
    note = f"the server does not agree to {offer}: what changed after {before} was looked at"
    return before, (note,)


def _diagnosis(
    item: MigrationItem, judged: Judged, diff: VersionDiff | None, mask: Callable[[str], str]
) -> Diagnosis:
    moved = diff.entries if diff is not None else ()
    rules = (MovedRule(one.rule_id, one.bucket) for one in moved if item.id in one.rule.migration)
    wanting = judged.verdict in {DoctorVerdict.BREAKS, DoctorVerdict.UNKNOWN} or judged.advice
    return Diagnosis(
        id=item.id,
        title=item.title,
        since=item.since,
        change=item.change,
        verdict=judged.verdict,
        detail=mask(judged.detail),
        evidence=judged.evidence,
        rules=tuple(rules),
        fix=item.fix if wanting else "",
        advice=mask(judged.advice),
        unchecked=judged.unchecked,
    )
