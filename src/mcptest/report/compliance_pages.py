"""Writes the generated parts of docs/compliance from the corpora and the registry.

`python -m mcptest.report.compliance_pages docs/compliance` writes them; with `--check` nothing is
written, and the exit code says whether they are as they should be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from mcptest.model.revision import TIMELINE
from mcptest.report.corpus_pages import stale_corpus_pages, write_corpus_pages
from mcptest.report.grading_tables import PARTS as GRADING_PARTS
from mcptest.report.page_command import write_or_check
from mcptest.report.version_diff import plain, severity_in_words, summary_in_words
from mcptest.rules.corpus.load import SHIPPED, shipped_registry
from mcptest.rules.corpus.placeholders import PLACEHOLDERS, WELL_KNOWN
from mcptest.rules.corpus.probes import PROBES
from mcptest.rules.corpus.registry import UNTESTED_FILE, Entry, load_untested
from mcptest.rules.corpus.version_corpus import VersionCorpus, corpus_of
from mcptest.rules.corpus.version_diff import Bucket, DiffEntry, VersionDiff, diff_versions
from mcptest.rules.corpus.words import expectations_in_words
from mcptest.suite.exchange_targets import EXCHANGE_TARGETS, SPECIAL_TARGETS

_BEGIN = "<!-- begin {name}: python -m mcptest.report.compliance_pages docs/compliance -->"
_END = "<!-- end {name} -->"


def _corpora() -> list[VersionCorpus]:
    found = [corpus_of(revision) for revision in TIMELINE]
    return [corpus for corpus in found if corpus is not None]


# -- corpora.md ----------------------------------------------------------------------------


def _counts() -> Iterator[str]:
    yield "| revision | one exchange | whole sessions | together | what it changed |"
    yield "|---|---|---|---|---|"
    for corpus in _corpora():
        exchanges = sum(rule.row is not None for rule in corpus.rules.values())
        sessions = len(corpus.rules) - exchanges
        yield (
            f"| {corpus.version} | {exchanges} | {sessions} | {len(corpus.rules)} "
            f"| {plain(corpus.about)} |"
        )


def _targets() -> Iterator[str]:
    yield "| target | what it is |"
    yield "|---|---|"
    for name, target in EXCHANGE_TARGETS.items():
        yield f"| `{name}` | {target.about} |"
    for name, about in SPECIAL_TARGETS.items():
        yield f"| `{name}` | {about} |"


def _placeholders() -> Iterator[str]:
    yield "| placeholder | stands for | there is one with |"
    yield "|---|---|---|"
    for name, one in PLACEHOLDERS.items():
        yield f"| `{{{name}}}` | {one.about} | {one.unlocked_by or 'any server'} |"


def _fixtures() -> Iterator[str]:
    yield "| fixture | names of the official suite that are taken for it |"
    yield "|---|---|"
    for name, known in sorted(WELL_KNOWN.items()):
        yield f"| {name} | {', '.join(f'`{one}`' for one in known)} |"


def _probes() -> Iterator[str]:
    for probe in PROBES.values():
        yield f"- **{probe.name}**: {probe.about} Steps: {', '.join(probe.step_names)}."
        yield from (f"  - `probe.{fact}`: {about}" for fact, about in probe.facts.items())


# -- upgrade.md ----------------------------------------------------------------------------


def _adjacent() -> list[VersionDiff]:
    return [diff_versions(older, newer) for older, newer in pairwise(_corpora())]


def _matrix() -> Iterator[str]:
    yield "| from | to | changed | added | removed | unchanged | another severity |"
    yield "|---|---|---|---|---|---|---|"
    for diff in _adjacent():
        total = diff.summary
        changed = ", ".join(entry.rule_id for entry in diff.changed_rules())
        listed = f"{total.changed} ({changed})" if changed else "0"
        yield (
            f"| {diff.from_version} | {diff.to_version} | {listed} | {total.added} "
            f"| {total.removed} | {total.unchanged} | {total.severity_changes} |"
        )


def _guides() -> Iterator[str]:
    for diff in _adjacent():
        yield f"## {diff.from_version} to {diff.to_version}"
        yield from ("", plain(diff.about), "", f"{summary_in_words(diff)}.")
        yield from _table(diff, "changed", "| rule | was | now | fix |", _changed_cells)
        yield from _table(diff, "added", "| rule | severity | fix |", _added_cells)
        yield from _table(diff, "removed", "| rule | what becomes of it |", _removed_cells)
        moved = [one for one in diff.severity_changes() if one.bucket == "unchanged"]
        if moved:
            yield from ("", "Same expectation, another severity:", "")
            yield from (f"- {one.rule_id}: {severity_in_words(one)}" for one in moved)
        yield ""


def _table(
    diff: VersionDiff, bucket: Bucket, head: str, cells: Callable[[DiffEntry], tuple[str, ...]]
) -> Iterator[str]:
    entries = list(diff.in_bucket(bucket))
    if not entries:
        return
    yield from ("", f"### {bucket.capitalize()}", "", head, "|---" * (head.count("|") - 1) + "|")
    for entry in entries:
        yield "| " + " | ".join((_named(entry), *map(plain, cells(entry)))) + " |"


def _named(entry: DiffEntry) -> str:
    return f"**{entry.rule_id}** {plain(entry.title)}"


def _changed_cells(entry: DiffEntry) -> tuple[str, ...]:
    was = "; ".join(expectations_in_words(entry.was))
    now = "; ".join(expectations_in_words(entry.now))
    return was, now, entry.rule.fix


def _added_cells(entry: DiffEntry) -> tuple[str, ...]:
    return severity_in_words(entry), entry.rule.fix


def _removed_cells(entry: DiffEntry) -> tuple[str, ...]:
    known = entry.was.entry if entry.was is not None else None
    return (known.retired if known is not None else "",)


# -- not-testable.md -----------------------------------------------------------------------


def covered_statements() -> dict[str, list[str]]:
    """The rules that judge each statement of the specification, by its code."""
    found: dict[str, list[str]] = {}
    for entry in shipped_registry().values():
        for statement in entry.statements:
            found.setdefault(statement, []).append(entry.id)
    return dict(sorted(found.items()))


def _uncovered() -> Iterator[str]:
    yield "| statement | says that | is not judged because |"
    yield "|---|---|---|"
    for one in load_untested(SHIPPED / UNTESTED_FILE):
        yield f"| {one.statement} | {plain(one.says)} | {plain(one.why)} |"


def _covered() -> Iterator[str]:
    registry = shipped_registry()
    yield "| statement | rules |"
    yield "|---|---|"
    for statement, rules in covered_statements().items():
        named = "; ".join(f"**{name}** {plain(_title(registry, name))}" for name in rules)
        yield f"| {statement} | {named} |"


def _title(registry: dict[str, Entry], name: str) -> str:
    entry = registry[name]
    return entry.title or (entry.session.title if entry.session is not None else "")


# -- pages ---------------------------------------------------------------------------------

PARTS: dict[str, dict[str, Callable[[], Iterator[str]]]] = {
    "corpora.md": {
        "counts": _counts,
        "targets": _targets,
        "placeholders": _placeholders,
        "fixtures": _fixtures,
        "probes": _probes,
    },
    "upgrade.md": {"matrix": _matrix, "guides": _guides},
    "not-testable.md": {"uncovered": _uncovered, "covered": _covered},
    **GRADING_PARTS,
}


def refreshed(page: str, text: str) -> str:
    """The page with each of its generated parts written anew; ValueError when one is not there."""
    for name, lines in PARTS[page].items():
        begin, end = _BEGIN.format(name=name), _END.format(name=name)
        before, found, rest = text.partition(begin + "\n")
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{page} lacks the part {name}")
        body = "\n".join(lines()).rstrip("\n")
        text = f"{before}{begin}\n\n{body}\n\n{end}{after}"
    return text


def stale_pages(folder: Path) -> list[str]:
    """Names of the pages that are not as the corpora say."""
    texts = {page: (folder / page).read_text(encoding="utf-8") for page in PARTS}
    changed = [page for page, text in texts.items() if refreshed(page, text) != text]
    return [*changed, *stale_corpus_pages(folder)]


def write_pages(folder: Path) -> None:
    for page in PARTS:
        path = folder / page
        path.write_text(refreshed(page, path.read_text(encoding="utf-8")), encoding="utf-8")
    write_corpus_pages(folder)


def main(arguments: list[str]) -> int:
    return write_or_check(arguments, "mcptest.report.compliance_pages", write_pages, stale_pages)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
