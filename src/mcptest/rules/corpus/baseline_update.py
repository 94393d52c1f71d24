"""Writing a baseline anew from what was judged. What was not judged now stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mcptest.model.compliance import Judgement, RuleResult
from mcptest.model.revision import TIMELINE, Revision
from mcptest.model.show import show
from mcptest.model.verdict import Outcome
from mcptest.rules.corpus.baseline_entries import KnownFailure, KnownFailures, is_known_matter
from mcptest.rules.corpus.baseline_file import SERVER

_HEAD = (
    "# Rules that this server is known to fail. A failure that is not listed is red, and so is a",
    "# listed rule that passes. Give each its reason, and a link to where the repair is tracked.",
)
_NOT_RAW = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def known_failures_from(
    judged: Judgement | Sequence[Judgement], earlier: KnownFailures | None = None
) -> str:
    """The YAML text of a baseline under which these judgements are green.

    Entries of `earlier` keep their reason while the rule fails, and stay where it was not judged;
    flaky ones always stay. Of several judgements each gets entries of its own revision.
    """
    judgements = (judged,) if isinstance(judged, Judgement) else tuple(judged)
    kept = [one for one in (earlier or KnownFailures()).entries if _stays(one, judgements)]
    entries = [*kept, *_new(judgements, kept, earlier or KnownFailures())]
    titles = {result.id: result.title for one in judgements for result in one.results}
    return "\n".join((*_HEAD, *_groups(entries, titles))) + "\n"


def _stays(entry: KnownFailure, judgements: Iterable[Judgement]) -> bool:
    if entry.max_rate is not None:
        return True
    return not any(
        result.id == entry.rule_id and result.outcome is Outcome.PASS
        for one in judgements
        if entry.revision in (None, one.revision)
        for result in one.results
    )


def _new(
    judgements: Sequence[Judgement], kept: Sequence[KnownFailure], earlier: KnownFailures
) -> Iterator[KnownFailure]:
    """An entry for each failure that has none; it takes over the reason of one that had to go."""
    by_revision = len(judgements) > 1 or any(one.revision is not None for one in earlier.entries)
    added: set[tuple[Revision, str]] = set()
    for one in judgements:
        listed, before = KnownFailures(tuple(kept)).of(one.revision), earlier.of(one.revision)
        for result in one.results:
            which = (one.revision, result.id)
            if is_known_matter(result) and result.id not in listed and which not in added:
                added.add(which)
                entry = before.get(result.id, KnownFailure(result.id, _first_reason(result)))
                yield replace(entry, revision=one.revision if by_revision else None)


def _first_reason(result: RuleResult) -> str:
    """A place to write the real one, unless a root cause is the reason."""
    return "" if result.failed else f"could not be judged: {show(result.cause, 60)}"


def _groups(entries: Sequence[KnownFailure], titles: dict[str, str]) -> Iterator[str]:
    revisions: tuple[Revision | None, ...] = (None, *TIMELINE)
    for revision in revisions:
        own = sorted(
            (one for one in entries if one.revision is revision), key=lambda one: one.rule_id
        )
        name = SERVER if revision is None else revision.label
        if own:
            yield f"{name}:"
        elif revision is None and not entries:
            yield f"{name}: []"
        for one in own:
            yield from _lines(one, titles.get(one.rule_id, ""))


def _lines(entry: KnownFailure, title: str) -> Iterator[str]:
    comment = f"  # {show(title, 80)}" if title else ""
    yield f"  - rule_id: {_text(entry.rule_id)}{comment}"
    yield f"    reason: {_text(entry.reason)}"
    if entry.tracking:
        yield f"    tracking: {_text(entry.tracking)}"
    if entry.max_rate is not None:
        yield f"    flaky: {{max_rate: {entry.max_rate!r}}}"


def _text(text: str) -> str:
    """As it stands where that is plain, else in quotes: a JSON text is a YAML one."""
    if re.fullmatch(r"[A-Z]+-\d+", text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_RAW.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)
