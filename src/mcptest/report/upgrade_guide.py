"""What moved between two revisions as an upgrade guide: text, JSON or markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from mcptest.core.results import Count
from mcptest.core.safe_text import show
from mcptest.core.verdict import Severity
from mcptest.report.codec import as_json
from mcptest.report.evidence import labelled_once
from mcptest.report.markdown import code
from mcptest.report.terminal import Style
from mcptest.rules.corpus.registry import CorpusRule, expectations_in_words
from mcptest.rules.corpus.version_diff import (
    Bucket,
    DiffEntry,
    DiffSummary,
    Touched,
    VersionDiff,
    move_in_words,
)
from mcptest.suite.model import Expectation

HEADINGS: dict[Bucket, str] = {
    "changed": "Changed: what was right is now wrong",
    "added": "Added: new requirements",
    "removed": "Removed: no longer required",
}
_MARKUP = re.compile(r"([\\*_{}\[\]<>|])")
_COLOURS = {"changed": "red", "added": "green", "removed": "yellow"}


def severity_in_words(entry: DiffEntry) -> str:
    """`MUST`, or `SHOULD -> MUST` where it moved."""
    if entry.severity_move is not None:
        return move_in_words(entry.severity_move)
    return entry.rule.severity.value if entry.rule.severity is not None else ""


def facts_of_entry(entry: DiffEntry) -> Iterator[tuple[str, str]]:
    """The lines of one rule: what was, what is, what to do, where it stands.

    Where both revisions have it, the expectations say it best; else the requirement does.
    """
    if entry.was is not None and entry.now is not None:
        yield from (("was", line) for line in expectations_in_words(entry.was))
        yield from (("now", line) for line in expectations_in_words(entry.now))
    elif entry.now is not None:
        yield "now", _first_paragraph(entry.now.requirement)
    else:
        yield "was", _first_paragraph(entry.rule.requirement)
        yield "now", _retired(entry.was)
    if entry.now is not None and entry.now.fix:
        yield "fix", entry.now.fix
    if entry.rule.url:
        yield "spec", entry.rule.url


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _retired(rule: CorpusRule | None) -> str:
    said = rule.entry.retired if rule is not None and rule.entry is not None else ""
    return said or "no longer required"


# -- text ----------------------------------------------------------------------------------


def diff_lines(diff: VersionDiff, touched: Sequence[Touched] | None, style: Style) -> Iterator[str]:
    """The whole guide for a terminal, line by line."""
    yield style.paint(f"{diff.from_version} -> {diff.to_version}", "bold")
    if diff.about:
        yield from (f"  {line}" for line in _wrapped(diff.about))
    yield f"  {diff.summary.in_words}"
    for bucket, heading in HEADINGS.items():
        entries = list(diff.in_bucket(bucket))
        if entries:
            yield ""
            yield style.paint(heading, _COLOURS[bucket])
            for entry in entries:
                yield from _entry_lines(entry, style)
    moved = [entry for entry in diff.severity_changes() if entry.bucket == "unchanged"]
    if moved:
        yield from ("", style.paint("Same expectation, new severity", "cyan"))
    for entry in moved:
        yield f"  {entry.rule_id:<12} {show(entry.title, 120)}  {severity_in_words(entry)}"
    if touched is not None:
        yield from _touched_lines(touched, style)


def _entry_lines(entry: DiffEntry, style: Style) -> Iterator[str]:
    severity = style.paint(severity_in_words(entry), "dim")
    yield f"  {style.paint(f'{entry.rule_id:<12}', 'bold')} {show(entry.title, 120)}  {severity}"
    lines = (
        (name, line)
        for name, text in facts_of_entry(entry)
        for line in ([text] if name == "spec" else _wrapped(text))
    )
    for label, line in labelled_once(lines, ""):
        yield style.paint(f"      {label:<5}{line}", *(["dim"] if label == "spec" else []))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(show(text, 1_000), 92, break_long_words=False)


def _touched_lines(touched: Sequence[Touched], style: Style) -> Iterator[str]:
    yield ""
    if not touched:
        yield f"{style.tick} none of your tests is affected"
        return
    names = dict.fromkeys(one.test.name for one in touched)
    count = f"{len(names)} of your tests {'is' if len(names) == 1 else 'are'} affected"
    yield style.paint(count, "bold")
    for one in touched:
        place = one.test.place
        yield f"  {show(one.test.name, 80)}  {show(place.file, 200)}:{place.line}"
        yield style.paint(f"      {show(one.why, 200)}", "dim")


# -- JSON ----------------------------------------------------------------------------------


class SeverityMove(msgspec.Struct, frozen=True):
    older: Severity | None = msgspec.field(name="from")
    newer: Severity | None = msgspec.field(name="to")


class DiffedRule(msgspec.Struct, frozen=True, kw_only=True):
    rule_id: str
    bucket: Bucket
    title: str
    section: str
    kind: Literal["exchange", "session"]
    severity: SeverityMove
    was: tuple[Expectation, ...] | None
    now: tuple[Expectation, ...] | None
    requirement: str
    fix: str
    specification: str


class TouchedTest(msgspec.Struct, frozen=True, kw_only=True):
    test: str
    file: str
    line: Count
    rule_id: str
    bucket: Bucket
    why: str


class VersionDiffReport(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag="mcptest.version-diff/1"
):
    """What changes between two revisions, as JSON."""

    older: str = msgspec.field(name="from")
    newer: str = msgspec.field(name="to")
    clean: bool
    about: str
    summary: DiffSummary
    entries: tuple[DiffedRule, ...]
    touched_tests: tuple[TouchedTest, ...] | UnsetType = UNSET
    """Only where a suite was named."""


def diff_as_json(diff: VersionDiff, touched: Sequence[Touched] | None) -> bytes:
    tests = (
        TouchedTest(
            test=one.test.name,
            file=one.test.place.file,
            line=one.test.place.line,
            rule_id=one.entry.rule_id,
            bucket=one.entry.bucket,
            why=one.why,
        )
        for one in touched or ()
    )
    report = VersionDiffReport(
        older=diff.from_version,
        newer=diff.to_version,
        clean=diff.is_clean(),
        about=diff.about,
        summary=diff.summary,
        entries=tuple(map(_diffed_rule, diff.entries)),
        touched_tests=UNSET if touched is None else tuple(tests),
    )
    return as_json(report)


def _diffed_rule(entry: DiffEntry) -> DiffedRule:
    return DiffedRule(
        rule_id=entry.rule_id,
        bucket=entry.bucket,
        title=entry.title,
        section=entry.rule.section,
        kind="exchange" if entry.rule.row is not None else "session",
        severity=SeverityMove(
            entry.was.severity if entry.was is not None else None,
            entry.now.severity if entry.now is not None else None,
        ),
        was=_expected(entry.was),
        now=_expected(entry.now),
        requirement=entry.rule.requirement,
        fix=entry.rule.fix if entry.now is not None else _retired(entry.was),
        specification=entry.rule.url,
    )


def _expected(rule: CorpusRule | None) -> tuple[Expectation, ...] | None:
    return rule.row.expect if rule is not None and rule.row is not None else None


# -- markdown ------------------------------------------------------------------------------


def diff_as_markdown(diff: VersionDiff, touched: Sequence[Touched] | None = None) -> Iterator[str]:
    """The guide as markdown lines."""
    yield f"# {diff.from_version} → {diff.to_version}"
    yield ""
    yield from ((diff.about, "") if diff.about else ())
    yield f"{diff.summary.in_words}."
    for bucket, heading in HEADINGS.items():
        entries = list(diff.in_bucket(bucket))
        if entries:
            yield from ("", f"## {heading}", "")
        for entry in entries:
            yield f"- **{entry.rule_id}** {plain(entry.title)} ({severity_in_words(entry)})"
            for name, text in facts_of_entry(entry):
                yield f"  - {name}: {f'<{text}>' if name == 'spec' else plain(text)}"
    moved = [entry for entry in diff.severity_changes() if entry.bucket == "unchanged"]
    if moved:
        yield from ("", "## Same expectation, new severity", "")
        yield from (f"- **{e.rule_id}** {e.title}: {severity_in_words(e)}" for e in moved)
    if touched is not None:
        yield from ("", "## Your tests", "")
        yield from (f"- {code(one.test.name)}: {plain(one.why)}" for one in touched)
        yield from () if touched else ("None is affected.",)


def plain(text: str) -> str:
    """Our own prose, with its backticks; other markup in it is escaped."""
    return _MARKUP.sub(r"\\\1", show(text, 600))
