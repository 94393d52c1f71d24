"""What was written where: starter suites in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from mcptest.core.safe_text import show

_SHOWN = 20


class PlacedFile(Protocol):
    """One starter suite and what became of it."""

    @property
    def subject(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def how(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def skipped(self) -> bool: ...
    @property
    def expects_error(self) -> bool: ...


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
    marks += [f"{erring} expect the error that was seen"] if erring else []
    marked = f" ({', '.join(marks)})" if marks else ""
    words = ", ".join(f"{count} {how}" for how, count in counts.items()) or "nothing to write"
    yield f"{show(folder, 200)}: {words}{marked}"
    if written and skipped == len(written):
        yield "  no test of these runs as it stands; each file says why"
    if needs and written:
        yield f"  a run needs in the environment: {', '.join(needs)}"
    for one in placed:
        if one.how == "left out":
            yield f"  left out: {one.subject}: {one.reason}"
    kept = [one for one in placed if one.how == "kept"]
    for one in kept[:_SHOWN]:
        yield f"  kept {one.file}: it exists already (--overwrite replaces it)"
    if len(kept) > _SHOWN:
        yield f"  … and {len(kept) - _SHOWN} more that exist already"
