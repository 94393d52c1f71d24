"""Writes the generated parts of docs/compliance from the corpora and the registry.

`make docs` writes them; with `--check` nothing is written, and the exit code
says whether they are as they should be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from mcptest.core.revision import TIMELINE
from mcptest.report.compliance.facts import commonness_in_words
from mcptest.report.rules import ListedRule, asked_in_words, corpus_rules, window_in_words
from mcptest.report.scorecards import RUNS_KEPT
from mcptest.report.upgrade_guide import plain, severity_in_words
from mcptest.rules import grading
from mcptest.rules.corpus.known_failures import RUNS_FOR_A_RATE
from mcptest.rules.corpus.probes import all_probes, placeholders, well_known
from mcptest.rules.corpus.reader import SHIPPED, VersionCorpus, corpus_of, shipped_registry
from mcptest.rules.corpus.registry import RegistryEntry, expectations_in_words
from mcptest.rules.corpus.version_diff import Bucket, DiffEntry, VersionDiff, diff_versions
from mcptest.rules.declaration import RULES
from mcptest.rules.known_sdks import known_sdks
from mcptest.suite.observed import EXCHANGE_TARGETS, SPECIAL_TARGETS
from tests.docs.page_files import stale_files, write_files, write_or_check


class Untested(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a statement of the specification is not judged."""

    statement: str
    says: str
    why: str


def untested_statements() -> tuple[Untested, ...]:
    """The statements that no rule judges, each with the reason."""
    raw = (SHIPPED / "not-testable.yml").read_bytes()
    return msgspec.yaml.decode(raw, type=dict[str, tuple[Untested, ...]])["statements"]


# -- The tables of docs/compliance/grading.md and baseline.md, from the figures that are used ----


def _weights() -> Iterator[str]:
    yield "| keyword | weight |"
    yield "|---|---|"
    yield from (f"| {severity.value} | {weight} |" for severity, weight in grading.WEIGHTS.items())


def _cut_offs() -> Iterator[str]:
    yield "| grade | score from | to |"
    yield "|---|---|---|"
    rows = list(grading.CUT_OFFS.items())
    best, least = rows[0]
    yield f"| {best} | {least} | 100 |"
    for (_, above), (letter, lowest) in pairwise(rows):
        yield f"| {letter} | {lowest} | below {above} |"


def _caps() -> Iterator[str]:
    yield "| what was found | best grade |"
    yield "|---|---|"
    limits = sorted(grading.CAP_BY_BROKEN_MUSTS)
    for least, more in zip(limits, [*limits[1:], 0], strict=True):
        number = f"{least} to {more - 1}" if more else f"{least} or more"
        yield f"| {number} MUST rules failed | {grading.CAP_BY_BROKEN_MUSTS[least]} |"
    unjudged = "a MUST rule could not be judged because of a root cause"
    yield f"| {unjudged} | {grading.CAP_UNJUDGED} |"
    seen = f"less than {grading.SEEN_FOR_BEST}% of the applicable rules were observed"
    yield f"| {seen} | {grading.CAP_HALF_SEEN} |"
    yield "| a rule of the basic protocol failed | F |"


def _basic() -> Iterator[str]:
    yield "| rule | in | if it fails |"
    yield "|---|---|---|"
    for name, why in grading.basic_rules().items():
        title, covered = _known(name)
        harmless = grading.shown_harmless_by().get(name)
        unless = f"; no F where {harmless} passes" if harmless else ""
        yield f"| **{name}** {title} | {covered} | {why}{unless} |"


def _known(name: str) -> tuple[str, str]:
    """The title of a rule, and the revisions that have it."""
    having = [corpus for corpus in _corpora() if name in corpus.rules]
    versions = [corpus.version for corpus in having]
    covered = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
    return having[-1].rules[name].title, covered


def _enough() -> Iterator[str]:
    yield f"- at least {grading.RULES_FOR_A_LETTER} rules were observed,"
    yield f"- at least {grading.MUSTS_FOR_A_LETTER} of them MUST rules,"
    yield f"- at least {grading.SHARE_FOR_A_LETTER}% of the rules that apply to the server,"
    yield (
        f"- and no more MUST rules that a root cause kept from being judged than "
        f"{grading.UNJUDGED_FOR_A_LETTER}% of those that were observed."
    )


def _history() -> Iterator[str]:
    yield f"The latest {RUNS_KEPT} runs of each revision are kept. The rate is judged from"
    yield f"{RUNS_FOR_A_RATE} runs on that saw the rule; before that it is only told."


GRADING_PARTS: dict[str, dict[str, Callable[[], Iterator[str]]]] = {
    "grading.md": {
        "weights": _weights,
        "cut-offs": _cut_offs,
        "caps": _caps,
        "basic": _basic,
        "enough": _enough,
    },
    "baseline.md": {"history": _history},
}
"""For `PARTS` of `compliance_pages`."""


# -- Writes the generated parts of docs/compliance from the corpora and the registry -------------

_BEGIN = "<!-- begin {name}: python -m tests.docs.compliance_docs docs/compliance -->"
_END = "<!-- end {name} -->"


def _corpora() -> list[VersionCorpus]:
    found = [corpus_of(revision) for revision in TIMELINE]
    return [corpus for corpus in found if corpus is not None]


# -- The pages of docs/compliance/rules: one for each section of the corpora, and their index ----

FOLDER = "rules"
_HEAD = "<!-- Generated by `make docs`. Do not edit. -->\n"
_INTRODUCTION = """\
# Rules of the corpora

What `mcptest compliance run` judges a server by, section by section. `mcptest explain ID` shows one
rule in a terminal. A rule over whole sessions is judged on everything that went over the wire; it
has a page of its own in [docs/rules](../../rules/README.md).
"""


def file_of(section: str) -> str:
    return f"{section.replace(' ', '-')}.md"


def corpus_pages() -> dict[str, str]:
    """Every file of the folder with its content."""
    sections: dict[str, list[ListedRule]] = {}
    for rule in corpus_rules().values():
        sections.setdefault(rule.category, []).append(rule)
    ordered = dict(sorted(sections.items()))
    found = {
        file_of(name): "\n".join(_section_page(name, rules)) + "\n"
        for name, rules in ordered.items()
    }
    found["README.md"] = "\n".join(_section_index(ordered)) + "\n"
    return found


def _section_index(sections: dict[str, list[ListedRule]]) -> Iterator[str]:
    yield f"{_HEAD}\n{_INTRODUCTION}"
    yield "| section | rules | one exchange | whole sessions |"
    yield "|---|---|---|---|"
    for name, rules in sections.items():
        exchanges = sum(rule.session_rule is None for rule in rules)
        yield (
            f"| [{name}]({file_of(name)}) | {len(rules)} | {exchanges} | {len(rules) - exchanges} |"
        )


def _section_page(section: str, rules: list[ListedRule]) -> Iterator[str]:
    yield f"{_HEAD}\n# {section}\n"
    yield "| id | rule | severity | revisions |"
    yield "|---|---|---|---|"
    for rule in rules:
        link = (
            f"[{rule.id}](#{rule.id.lower()})"
            if rule.session_rule is None
            else _named_session_rule(rule)
        )
        severity = ", ".join(dict.fromkeys(word.value for _, word in rule.severities()))
        yield f"| {link} | {plain(rule.title)} | {severity} | {window_in_words(rule.window)} |"
    for rule in rules:
        if rule.session_rule is None:
            yield from _corpus_rule(rule)


def _named_session_rule(rule: ListedRule) -> str:
    """A rule over sessions, with a link to its page."""
    judge = rule.session_rule
    assert judge is not None  # who calls has looked
    assert judge.id in RULES
    also = "" if judge.id == rule.id else f" ({judge.id})"
    return f"[{rule.id}{also}](../../rules/{judge.id}.md)"


def _corpus_rule(rule: ListedRule) -> Iterator[str]:
    yield f"\n## {rule.id}\n\n**{plain(rule.title)}**\n\n{plain(rule.explanation)}\n"
    for window, word in rule.severities():
        yield f"- {word.value}: {window_in_words(window)}"
    if rule.transports:
        yield f"- seen over: {', '.join(sorted(rule.transports))}"
    if rule.entry.statements:
        yield f"- statements: {', '.join(rule.entry.statements)}"
    yield from (f"- specification: <{page}>" for page in rule.pages())
    common = known_sdks().commonness(rule.id)
    if common is not None:
        yield f"- common: {commonness_in_words(common)}"
    stages = rule.stages()
    for window, row in stages:
        if row is None:
            continue
        yield f"\n{window_in_words(window)}:" if len(stages) > 1 else ""
        yield from [""] if len(stages) > 1 else []
        for heading, lines in asked_in_words(row):
            yield f"- {heading.lower()}:"
            yield from (f"  - {plain(line)}" for line in lines)
    if rule.fix:
        yield f"\nWhat to do: {plain(rule.fix)}"
    if rule.entry.retired and rule.window.until is not None:
        yield f"\nFrom {rule.window.until} on: {plain(rule.entry.retired)}"


def stale_corpus_pages(folder: Path) -> list[str]:
    return [f"{FOLDER}/{name}" for name in stale_files(folder / FOLDER, corpus_pages())]


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
    for name, one in placeholders().items():
        yield f"| `{{{name}}}` | {one.about} | {one.unlocked_by or 'any server'} |"


def _fixtures() -> Iterator[str]:
    yield "| fixture | names of the official suite that are taken for it |"
    yield "|---|---|"
    for name, known in sorted(well_known().items()):
        yield f"| {name} | {', '.join(f'`{one}`' for one in known)} |"


def _probes() -> Iterator[str]:
    for probe in all_probes().values():
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
        yield from ("", plain(diff.about), "", f"{diff.summary.in_words}.")
        yield from _table(diff, "changed", "| rule | was | now | fix |", _changed_cells)
        yield from _table(
            diff,
            "added",
            "| rule | severity | fix |",
            lambda one: (severity_in_words(one), one.rule.fix),
        )
        yield from _table(diff, "removed", "| rule | what becomes of it |", _removed_cells)
        moved = [one for one in diff.severity_changes() if one.bucket == "unchanged"]
        if moved:
            yield from ("", "Same expectation, new severity:", "")
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
        yield (
            f"| **{entry.rule_id}** " + " | ".join(map(plain, (entry.title, *cells(entry)))) + " |"
        )


def _changed_cells(entry: DiffEntry) -> tuple[str, ...]:
    was = "; ".join(expectations_in_words(entry.was))
    now = "; ".join(expectations_in_words(entry.now))
    return was, now, entry.rule.fix


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
    for one in untested_statements():
        yield f"| {one.statement} | {plain(one.says)} | {plain(one.why)} |"


def _covered() -> Iterator[str]:
    registry = shipped_registry()
    yield "| statement | rules |"
    yield "|---|---|"
    for statement, rules in covered_statements().items():
        named = "; ".join(f"**{name}** {plain(_title(registry, name))}" for name in rules)
        yield f"| {statement} | {named} |"


def _title(registry: dict[str, RegistryEntry], name: str) -> str:
    entry = registry[name]
    return entry.title or (RULES[entry.session_rule].title if entry.session_rule else "")


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
    write_files(folder / FOLDER, corpus_pages())


def main(arguments: list[str]) -> int:
    return write_or_check(arguments, "tests.docs.compliance_docs", write_pages, stale_pages)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
