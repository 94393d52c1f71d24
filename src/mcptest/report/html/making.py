"""From stored reports and captures to the page: the captures are read once, drawn and judged."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

from mcptest import __version__
from mcptest.model.compliance import ComplianceReport
from mcptest.model.conformance import ConformanceReport
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.results import RunReport
from mcptest.report.html.embedded import Chunks
from mcptest.report.html.facts import Entry, Pin, Source, brief
from mcptest.report.html.of_compliance import source_of_compliance
from mcptest.report.html.of_conformance import source_of_conformance
from mcptest.report.html.of_run import source_of_run
from mcptest.report.html.of_session import SESSION_RULES, pins_of, source_of_sessions
from mcptest.report.html.page import Page, render
from mcptest.report.html.places import Places
from mcptest.report.html.wire_rows import WireSession
from mcptest.report.stored import Stored
from mcptest.report.verdicts_json import Report, build_report, exit_code_for
from mcptest.rules.catalogue import all_rules
from mcptest.rules.judge import JudgedSession, judge
from mcptest.transport.capture_file import open_capture
from mcptest.wire.session_source import SessionSource

CAPTURES = "captures"


class Pictures:
    """The sessions of some captures, with what the session rules say about each."""

    def __init__(self) -> None:
        self.chunks = Chunks("wire")
        self.sessions: list[WireSession] = []
        self._judged: list[JudgedSession] = []

    def add(self, source: SessionSource) -> None:
        session = WireSession(source.label, source.file, source.transport, source.form, self.chunks)
        passing_by = dataclasses.replace(source, records=session.watching(source.records))
        judged = judge(passing_by, all_rules())  # UsageError for a record that can't be read
        self.sessions.append(session)
        self._judged.append(judged)

    def judged(self) -> Stored | None:
        """The session rules as a report of its own; each session stands for itself."""
        if not self._judged:
            return None
        code = exit_code_for(self._judged, ())
        return Stored(CAPTURES, build_report(self._judged, (), "report", code), code)

    def page(self, stored: Sequence[Stored], code: ExitCode, notes: Sequence[str] = ()) -> bytes:
        """The whole file."""
        places = Places(self.sessions)
        sources = tuple(_source(one, places) for one in stored)
        page = Page(
            title=_title(sources, self.sessions),
            verdict=verdict_in_words(sources, code),
            exit_code=int(code),
            sources=sources,
            notes=tuple(notes),
            made_by=f"mcptest {__version__}",
        )
        return render(page, self.sessions, self._pins(sources), self.chunks)

    def _pins(self, sources: Sequence[Source]) -> list[list[Pin]]:
        """What the session rules found, and every failure whose message is known."""
        judged = self.judged()
        reports = judged.report.sessions if judged and isinstance(judged.report, Report) else ()
        pins = [list(pins_of(*pair)) for pair in zip(reports, self.sessions, strict=True)]
        for source in sources:
            if source.kind == SESSION_RULES:
                continue
            for entry in source.entries:
                for session, pin in _pins_of_entry(entry):
                    pins[session].append(pin)
        return pins


def _pins_of_entry(entry: Entry) -> Iterator[tuple[int, Pin]]:
    """A link to the first row is one to the session as a whole."""
    if entry.outcome not in ("fail", "warn"):
        return
    for fact in entry.facts:
        if fact.form == "wire" and fact.row:
            said = fact.text or entry.brief or entry.name
            rule = entry.id or brief(entry.name)[:40]
            yield fact.session, Pin(fact.row, rule, said, entry.outcome == "fail")


def pictured(captures: Sequence[str]) -> Pictures:
    """Read captures. UsageError for a file that is none."""
    pictures = Pictures()
    for path in captures:
        for source in open_capture(path):
            pictures.add(source)
    return pictures


def page_of_run(report: RunReport, code: ExitCode, name: str = "this run") -> bytes:
    """The page of a run that has just ended, with the captures that it wrote of its failures."""
    pictures = Pictures()
    notes = []
    proofs = (one.proof for one in report.results if one.proof is not None)
    for path in dict.fromkeys(proof.capture for proof in proofs if proof.capture):
        try:
            for source in open_capture(path):
                pictures.add(source)
        except UsageError as error:  # the page is worth having without it
            notes.append(f"not shown: {error.message}")
    return pictures.page([Stored(name, report, code)], code, notes)


def _source(stored: Stored, places: Places) -> Source:
    report, code = stored.report, int(stored.exit_code)
    if isinstance(report, RunReport):
        return source_of_run(report, stored.file, code, places)
    if isinstance(report, ComplianceReport):
        return source_of_compliance(report, stored.file, code, places)
    if isinstance(report, ConformanceReport):
        return source_of_conformance(report, stored.file, code, places)
    return source_of_sessions(report, stored.file, places)


def _title(sources: Sequence[Source], sessions: Sequence[WireSession]) -> str:
    names = dict.fromkeys(one.subject for one in sources if one.subject)
    about = ", ".join(names) or ", ".join(dict.fromkeys(one.label for one in sessions))
    return f"mcptest: {about[:200]}" if about else "mcptest report"


def verdict_in_words(sources: Sequence[Source], code: ExitCode) -> str:
    """One line. The exit code decides, the numbers explain it."""
    counts = Counter(entry.outcome for source in sources for entry in source.entries)
    total = sum(counts.values())
    if code is ExitCode.INTERRUPTED:
        return f"Interrupted after {total} results, {counts['fail']} of them failed"
    if code is ExitCode.NOTHING_MATCHED:
        return "Nothing was judged"
    if code is ExitCode.UNREACHABLE:
        return "The peer could not be reached"
    if code is ExitCode.OK:
        known = f", {counts['fail']} known to fail" if counts["fail"] else ""
        return f"Passed: {counts['pass']} of {total}{known}"
    if counts["fail"]:
        return f"Failed: {counts['fail']} of {total}"
    changes = sum(len(source.changes) for source in sources)
    return f"Failed: {changes} changes" if changes else "Failed"
