"""From stored reports and captures to the page: the captures are read once, drawn and judged."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from mcptest import __version__
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.limits import MEBIBYTE, Deadline
from mcptest.core.results import RunReport
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.fleet import FleetReport
from mcptest.report.head import AnyReport, stamped
from mcptest.report.html.embedded import Chunks
from mcptest.report.html.judged_sources import pins_of
from mcptest.report.html.page import Page, render
from mcptest.report.html.page_facts import Outcome, Pin, Source, brief, shortened
from mcptest.report.html.sources import source_of
from mcptest.report.html.wire_rows import Latencies, Places, WireSession
from mcptest.report.stored import Stored, parts_of_fleet
from mcptest.report.terminal import counted
from mcptest.report.verdicts import SessionsReport, build_report
from mcptest.rules.catalogue import all_rules
from mcptest.rules.judge import JudgedSession, judge
from mcptest.session.live import LiveSession
from mcptest.transport.capture_file import LINE_LIMIT, Excerpt, open_capture
from mcptest.transport.files import is_special
from mcptest.wire.capture_forms import SessionSource

# -- Whose column a rule stands in ---------------------------------------------------------------


def told_apart(stored: Sequence[Stored], sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources, with columns that are what they were judged on.

    A judged server has the first name that no other judgement has: its own, the user's, or that
    with the file. Where tests of it ran too, it is called as they call it.
    """
    tested = {
        column.server
        for one, source in zip(stored, sources, strict=True)
        if isinstance(one.report, RunReport)
        for column in source.columns
    }
    names: list[tuple[str, ...]] = []
    for one, source in zip(stored, sources, strict=True):
        server = one.report.server if isinstance(one.report, ComplianceReport) else ""
        known = bool(server and source.columns)
        names.append((source.columns[0].server, server, f"{server} ({one.file})") if known else ())
    often = Counter(name for mine in names for name in enumerate(mine))
    named = []
    for mine, source in zip(names, sources, strict=True):
        free = [name for level, name in enumerate(mine) if often[level, name] == 1]
        asked = [name for name in mine[1:2] if name in tested]
        named.append(_named(source, next(iter((*asked, *free, *mine[-1:])), "")))
    return tuple(named)


def _named(source: Source, name: str) -> Source:
    if not name or name == source.columns[0].server:
        return source
    columns = [replace(one, name=f"{name} {one.revision}", server=name) for one in source.columns]
    renamed = {old.name: new.name for old, new in zip(source.columns, columns, strict=True)}
    entries = (replace(one, column=renamed.get(one.column, one.column)) for one in source.entries)
    return replace(source, columns=tuple(columns), entries=tuple(entries))


# -- From stored reports and captures to the page ------------------------------------------------

CAPTURES = "captures"
LONGEST_PIN = 60
ROOM = 20_000
"""Records that a page shows of the captures of a command; of each there are some in any case."""
POINTED_AT = 1_000
SEARCHED = 64 * MEBIBYTE
"""Bytes of the captures of a command that are searched for its page: it has to end in time."""


SEARCHING = 1.0
"""Seconds after which a page shows only some records of each capture that is left."""
LONGEST_WHEN_LATE = 256 * 1024
"""Bytes of such a record: a long one takes as much time as thousands of others."""


class Pictures:
    """The sessions of some captures, with what the session rules say about each."""

    def __init__(self) -> None:
        self.chunks = Chunks("wire")
        self.sessions: list[WireSession] = []
        self.latencies = Latencies()
        self._judged: dict[int, JudgedSession] = {}
        self._left_to_search = SEARCHED
        self._until = Deadline.after(SEARCHING)

    def add(self, source: SessionSource, *, by_rules: bool = True) -> None:
        """`by_rules`: hold the session rules against it as well. UsageError for what is none."""
        session = WireSession(
            source.label, source.file, source.transport, source.form, self.chunks, self.latencies
        )
        records = session.watching(source.records)
        if by_rules:
            judged = judge(replace(source, records=records), all_rules())
            self._judged[len(self.sessions)] = judged
        else:
            for _ in records:
                pass
        self.sessions.append(session)

    def excerpt(self, judged: Sequence[JudgedSession] | None = None) -> Excerpt:
        """What there is room for of the next capture.

        Of one that was judged, what was found in its sessions, and the longest messages as well.
        """
        whole = judged is not None
        shown = sum(len(session.kinds) for session in self.sessions)
        is_late = not whole and self._until.expired
        room = 0 if is_late else ROOM - shown
        usual = Excerpt()
        longest = LONGEST_WHEN_LATE if is_late else usual.longest
        first = max(usual.least, min(usual.first, room))
        return Excerpt(
            first=first,
            telling=max(usual.least, min(usual.telling, room - first)),
            first_bytes=LINE_LIMIT if whole else usual.first_bytes * first // usual.first,
            searched=usual.searched if whole else self._left_to_search,
            until=None if whole else self._until,
            longest=LINE_LIMIT if whole else longest,
            wanted=[_pointed_at(one) for one in judged or ()],
        )

    def add_capture(self, path: str, *, by_rules: bool = True) -> Iterator[str]:
        """An excerpt of a capture; what it leaves out is said, and not judged. UsageError."""
        for source in open_capture(path, self.excerpt()):
            self.add(source, by_rules=by_rules)
            left_out = self.sessions[-1].left_out
            if left_out:
                said = f"{path}: {left_out:,} records of a long session are left out"
                again = f"mcptest compliance invariants --capture {path}"
                yield f"{said} and not judged (to judge all: {again})" if by_rules else said
        with contextlib.suppress(OSError):
            self._left_to_search -= Path(path).stat().st_size

    def add_judged(self, path: str) -> None:
        """A capture of which everything is judged. What can't be read twice is shown as a whole."""
        if is_special(Path(path)) or path == "-":
            for source in open_capture(path):
                self.add(source)
            return
        judged = [judge(source, all_rules()) for source in open_capture(path)]
        for one, source in zip(judged, open_capture(path, self.excerpt(judged)), strict=True):
            self._judged[len(self.sessions)] = one
            self.add(source, by_rules=False)

    def judged(self) -> Stored | None:
        """The session rules as a report of its own; each session stands for itself."""
        return Stored(CAPTURES, self._report()) if self._judged else None

    def _report(self) -> SessionsReport:
        return build_report(list(self._judged.values()), (), "report")

    def page(
        self,
        stored: Sequence[Stored],
        code: ExitCode,
        notes: Sequence[str] = (),
        embedded: str = "every recorded session",
        whole: FleetReport | None = None,
    ) -> bytes:
        """The whole file. `embedded`: which sessions it holds, in words.

        `whole`: the report of which what is stored are the parts.
        """
        places = Places(self.sessions)
        sources = told_apart(stored, [source_of(one, places) for one in stored])
        demands = (one.report.demand for one in stored if isinstance(one.report, RunReport))
        enough = {f"{one.threshold}%" for one in demands if one and one.threshold < 100}
        excuse = "known to fail"
        if enough:
            excuse = f"failed ({' or '.join(sorted(enough))} is enough)"
        page = Page(
            title=_title(sources, self.sessions),
            verdict=verdict_in_words(sources, code, excuse),
            exit_code=int(code),
            sources=sources,
            notes=tuple(notes),
            made_by=f"mcptest {__version__}",
            latencies=self.latencies.measured(),
            embedded=embedded,
            summary=whole.in_words() if whole else "",
            ms=whole.duration_ms if whole else 0,
        )
        return render(page, self.sessions, self._pins(stored, sources, places), self.chunks)

    def _pins(
        self, stored: Sequence[Stored], sources: Sequence[Source], places: Places
    ) -> list[list[Pin]]:
        """What the session rules found, and every failure whose message is known."""
        pins: list[list[Pin]] = [[] for _ in self.sessions]
        for number, entry in enumerate(one for source in sources for one in source.entries):
            failed = entry.outcome == "fail"
            for fact in entry.facts if failed or entry.outcome == "warn" else ():
                # A link to the first row is one to the session as a whole.
                if fact.form == "wire" and fact.row:
                    said = fact.text or entry.brief or entry.name
                    rule = entry.id or shortened(brief(entry.name), LONGEST_PIN)
                    pins[fact.session].append(Pin(fact.row, rule, said, failed, number))
        # Where we were rude on purpose the judgement itself says what of it was wrong.
        rude = {
            number
            for one in stored
            if isinstance(one.report, ComplianceReport)
            for judgement in one.report.judgements
            for file in judgement.captures
            for number in places.sessions_in(file)
        }
        for number, report in zip(self._judged, self._report().sessions, strict=True):
            if number not in rude:
                pins[number] += pins_of(report, self.sessions[number])
        return pins


def _pointed_at(judged: JudgedSession) -> frozenset[int]:
    """The records that findings are about, as far as a page has room for them."""
    places = (
        finding.record
        for verdict in judged.verdicts
        for finding in verdict.findings
        if finding.record is not None
    )
    return frozenset(islice(places, POINTED_AT))


def pictured(captures: Sequence[str]) -> Pictures:
    """Read captures: all is judged, an excerpt is shown. UsageError for a file that is none."""
    pictures = Pictures()
    for path in captures:
        pictures.add_judged(path)
    return pictures


def page_of(
    report: AnyReport,
    captures: Iterable[str] = (),
    *,
    name: str = "mcptest run",
    by_rules: bool = True,
    embedded: str = "every recorded session",
) -> bytes:
    """The page of what has just been found, with excerpts of the captures that were kept of it.

    A capture that can't be read costs itself: the page is worth having without it.
    """
    LiveSession.release_ended()  # the same messages are read once more, from the files
    pictures = Pictures()
    notes: list[str] = []
    for path in dict.fromkeys(captures):
        try:
            notes += pictures.add_capture(path, by_rules=by_rules)
        except UsageError as error:
            notes.append(f"not shown: {error.message}")
    report = stamped(report)
    if isinstance(report, FleetReport):
        said = (*report.notes, *notes)
        return pictures.page(parts_of_fleet(report), report.code, said, embedded, report)
    return pictures.page([Stored(name, report)], report.code, notes, embedded)


def page_of_run(report: RunReport) -> bytes:
    """The page of a run that has just ended, with the captures that it wrote of its failures."""
    proofs = (one.proof for one in report.results if one.proof is not None)
    kept = (proof.capture for proof in proofs if proof.capture)
    return page_of(report, kept, embedded="only those of failed tests")


def _title(sources: Sequence[Source], sessions: Sequence[WireSession]) -> str:
    # A fleet is each of its servers, and all of them together.
    subjects = (name for one in sources for name in one.subject.split(", "))
    names = dict.fromkeys(filter(None, subjects))
    about = ", ".join(names) or ", ".join(dict.fromkeys(one.label for one in sessions))
    return f"mcptest: {shortened(about, 200)}" if about else "mcptest report"


_JUDGED: tuple[Outcome, ...] = ("pass", "fail", "warn")


def verdict_in_words(
    sources: Sequence[Source], code: ExitCode, excuse: str = "known to fail"
) -> str:
    """One line. The exit code decides, the numbers explain it."""
    counts = Counter(entry.outcome for source in sources for entry in source.entries)
    total = sum(counts[one] for one in _JUDGED)
    if code is ExitCode.INTERRUPTED:
        return f"Interrupted after {counted(total, 'result')}, {counts['fail']} of them failed"
    if code is ExitCode.NOTHING_MATCHED:
        return "Nothing was judged"
    if code is ExitCode.UNREACHABLE:
        return "The server or client could not be reached"
    # What was not observed, or does not apply, is in no share.
    judged = " judged" if counts.total() > total + counts["skip"] else ""
    if code is ExitCode.OK:
        known = f", {counts['fail']} {excuse}" if counts["fail"] else ""
        warned = f", {counted(counts['warn'], 'warning')}" if counts["warn"] else ""
        return f"Passed: {counts['pass']} of {total}{judged}{warned}{known}"
    if counts["fail"]:
        return f"Failed: {counts['fail']} of {total}{judged}"
    changes = sum(len(source.changes) for source in sources)
    return f"Failed: {counted(changes, 'change')}" if changes else "Failed"
