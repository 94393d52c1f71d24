"""What was written where: starter suites in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from mcptest.core.safe_text import show

_SHOWN = 20


class PlacedFile(msgspec.Struct, frozen=True):
    """One starter suite and what became of it."""

    subject: str
    file: str
    how: Literal["created", "replaced", "kept", "left out"]
    reason: str = ""
    skipped: bool = False
    """Whether the test in it is marked to be skipped."""
    expects_error: bool = False
    """Whether it passes when the call fails, as it did."""


def placed_lines(
    placed: Iterable[PlacedFile], folder: str, needs: Sequence[str] = ()
) -> Iterator[str]:
    """What was written; what was not is always named. `needs`: variables that a run has to have."""
    placed = list(placed)
    counts = Counter(one.how for one in placed)
    written = [one for one in placed if one.how in ("created", "replaced")]
    skipped = sum(one.skipped for one in written)
    erring = sum(one.expects_error for one in written)
    marks = [f"{skipped} marked skip: true"] if skipped else []
    marks += [f"{erring} expect the observed error"] if erring else []
    marked = f" ({', '.join(marks)})" if marks else ""
    words = ", ".join(f"{count} {how}" for how, count in counts.items()) or "nothing to write"
    yield f"{show(folder, 200)}: {words}{marked}"
    if written and skipped == len(written):
        yield "  none of these tests runs as is (each file says why)"
    if needs and written:
        yield f"  required environment variables: {', '.join(needs)}"
    for one in placed:
        if one.how == "left out":
            yield f"  left out: {one.subject}: {one.reason}"
    kept = [one for one in placed if one.how == "kept"]
    for one in kept[:_SHOWN]:
        yield f"  kept {one.file}: it already exists (--overwrite replaces it)"
    if len(kept) > _SHOWN:
        yield f"  … and {len(kept) - _SHOWN} more already exist"
