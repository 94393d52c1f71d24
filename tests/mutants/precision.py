"""`python -m tests.mutants.precision`: are all mutants caught, and does nothing fire without one?

It judges every mutant and the healthy demo, prints what came of it and writes the page
`docs/compliance/precision.md`. With `--check` it only says whether the page is fresh. Patterns of
rule ids, as in `"HTTP-*"`, judge just those mutants, each beside the healthy demo in the same
place, and write just their rows; `--new` does so for the mutants that the page does not tell of, or
tells of as missed.
"""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from msgspec.structs import replace

from tests.mutants.judged import ROOT, Case, Seen, healthy_cases, look_at, mutant_cases
from tests.mutants.mutant import every_mutant
from tests.mutants.precision_page import Precision, is_called_caught, page_of, with_rows

PAGE = ROOT / "docs" / "compliance" / "precision.md"
AT_ONCE = 2


def main(words: Sequence[str]) -> int:
    patterns = [word for word in words if not word.startswith("--")]
    if patterns or "--new" in words:
        return _judge_some(patterns)
    found = look_at_all(mutant_cases(), healthy_cases(), _tell)
    print(found.summary)
    page = page_of(found)
    if "--check" in words:
        fresh = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page
        print(f"{PAGE.relative_to(ROOT)} is {'fresh' if fresh else 'out of date'}")
        return 0 if fresh else 1
    PAGE.write_text(page, encoding="utf-8")
    return 0 if found.is_perfect else 1


def _judge_some(patterns: Sequence[str]) -> int:
    """Those that fit a pattern, or else those that the page does not call caught as they are."""
    page = PAGE.read_text(encoding="utf-8")
    cases = mutant_cases()
    if patterns:
        wanted = [one for one in cases if any(fnmatch.fnmatch(one.rule, each) for each in patterns)]
    else:
        wanted = [one for one in cases if not is_called_caught(one, page)]
    healthy = [replace(one, rule="") for one in wanted]
    found = look_at_all(wanted, healthy, _tell)
    print(found.summary)
    PAGE.write_text(with_rows(page, found.mutants, cases), encoding="utf-8")
    return 0 if found.is_perfect else 1


def look_at_all(
    mutants: Sequence[Case], healthy: Sequence[Case], tell: Callable[[Seen], None]
) -> Precision:
    """Judge them all, two at a time; each is a server with processes of its own."""
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
        seen = _told(pool.map(look_at, [*healthy, *mutants]), tell)
    return Precision(tuple(seen[len(healthy) :]), tuple(seen[: len(healthy)]))


def _told(seen: Iterable[Seen], tell: Callable[[Seen], None]) -> list[Seen]:
    kept = []
    for one in seen:
        tell(one)
        kept.append(one)
    return kept


def _tell(seen: Seen) -> None:
    """Only what is not as it should be is worth a line."""
    case = seen.case
    where = f"{case.revision} {case.way}"
    if not case.rule:
        if seen.failed or seen.trouble:
            options = " ".join(case.options)
            print(f"healthy demo {where} {options}: {', '.join(seen.failed)} {seen.trouble}")
    elif not seen.is_caught:
        print(f"missed {case.rule} {where}: {seen.outcome or seen.trouble}")
    elif len(seen.failed) > 1 and not every_mutant()[case.rule].also:
        print(f"{case.rule} {where} also fails without a reason given: {', '.join(seen.failed)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
