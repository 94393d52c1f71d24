"""The tables of docs/compliance/grading.md and baseline.md, from the figures that are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from mcptest.model.revision import TIMELINE
from mcptest.report.flaky_history import RUNS_KEPT
from mcptest.rules import grading
from mcptest.rules.corpus.known_failures import RUNS_FOR_A_RATE
from mcptest.rules.corpus.version_corpus import corpus_of


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
    seen = f"less than {grading.SEEN_FOR_BEST} % of the applicable rules were observed"
    yield f"| {seen} | {grading.CAP_HALF_SEEN} |"
    yield "| a rule of the basic protocol failed | F |"


def _basic() -> Iterator[str]:
    yield "| rule | in | if it fails |"
    yield "|---|---|---|"
    for name, why in grading.BASIC.items():
        title, covered = _known(name)
        yield f"| **{name}** {title} | {covered} | {why} |"


def _known(name: str) -> tuple[str, str]:
    """The title of a rule, and the revisions that have it."""
    corpora = [corpus for corpus in map(corpus_of, TIMELINE) if corpus is not None]
    having = [corpus for corpus in corpora if name in corpus.rules]
    versions = [corpus.version for corpus in having]
    covered = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
    return having[-1].rules[name].title, covered


def _enough() -> Iterator[str]:
    yield f"- at least {grading.RULES_FOR_A_LETTER} rules were observed,"
    yield f"- at least {grading.MUSTS_FOR_A_LETTER} of them MUST rules,"
    yield f"- at least {grading.SHARE_FOR_A_LETTER} % of the rules that apply to the server,"
    yield (
        f"- and no more MUST rules that a root cause kept from being judged than "
        f"{grading.UNJUDGED_FOR_A_LETTER} % of those that were observed."
    )


def _history() -> Iterator[str]:
    yield f"The latest {RUNS_KEPT} runs of each revision are kept. The rate is judged from"
    yield f"{RUNS_FOR_A_RATE} runs on that saw the rule; before that it is only told."


PARTS: dict[str, dict[str, Callable[[], Iterator[str]]]] = {
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
