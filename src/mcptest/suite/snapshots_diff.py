"""Golden text against answer: whether they agree, and a unified diff in bounded time."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import takewhile

from mcptest.suite.snapshots_masks import VOLATILE

_CONTEXT = 3
_ALIGNED = 300
"""Lines between the first and the last difference that are lined up; of more, blocks are shown."""
_WIDEST = 240
_BEFORE = 60
_UNCOMPARED = f"<{VOLATILE}>"

_Step = tuple[str, int, int, int, int]


def is_all_volatile(golden: str) -> bool:
    """Whether the whole golden file says that there is nothing to compare."""
    return golden.strip() == _UNCOMPARED


def agree(golden: str, actual: str) -> bool:
    """Whether they are the same, but for the lines that the golden text calls volatile."""
    if golden == actual:
        return True
    if _UNCOMPARED not in golden:
        return False
    old, new = golden.split("\n"), actual.split("\n")
    return len(old) == len(new) and all(
        a in (b, _UNCOMPARED) for a, b in zip(old, new, strict=True)
    )


def with_volatile_lines(first: str, second: str) -> str:
    """A golden text for an answer that was given twice: what differs is not compared again."""
    if first == second:
        return first
    old, new = first.split("\n"), second.split("\n")
    if len(old) != len(new):
        return _UNCOMPARED + "\n"
    lines = [a if a == b else _UNCOMPARED for a, b in zip(old, new, strict=True)]
    told = [line for line in lines if line and line != _UNCOMPARED]
    return "\n".join(lines) if told else _UNCOMPARED + "\n"


def with_the_same_volatile_lines(stored: str, renewed: str) -> str:
    """The new text with the lines volatile that were so before, if there are as many lines."""
    old, new = stored.split("\n"), renewed.split("\n")
    if _UNCOMPARED not in old or len(old) != len(new):
        return renewed
    return "\n".join(a if a == _UNCOMPARED else b for a, b in zip(old, new, strict=True))


def unified(golden: str, actual: str) -> list[str]:
    """The lines of a diff, `-` golden and `+` actual, long lines cut around their difference."""
    old, new = golden.removesuffix("\n").split("\n"), actual.removesuffix("\n").split("\n")
    if len(old) == len(new):
        old = [b if a == _UNCOMPARED else a for a, b in zip(old, new, strict=True)]
    return [line for group in _groups(old, new) for line in _hunk(group, old, new)]


def _groups(old: Sequence[str], new: Sequence[str]) -> Iterator[list[_Step]]:
    """Steps with their context, counted in whole lines of both texts."""
    before = _common(old, new)
    after = _common(old[before:][::-1], new[before:][::-1])
    a, b = old[before : len(old) - after], new[before : len(new) - after]
    if len(a) <= _ALIGNED and len(b) <= _ALIGNED:
        steps = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    else:
        steps = [("replace", 0, len(a), 0, len(b))]
    moved = [(w, before + i, before + j, before + k, before + n) for w, i, j, k, n in steps]
    top, bottom = min(before, _CONTEXT), min(after, _CONTEXT)
    first, last = (before, before), (len(old) - after, len(new) - after)
    around: list[_Step] = [
        ("equal", first[0] - top, first[0], first[1] - top, first[1]),
        *moved,
        ("equal", last[0], last[0] + bottom, last[1], last[1] + bottom),
    ]
    yield from _split(around)


def _split(steps: Sequence[_Step]) -> Iterator[list[_Step]]:
    """One group for each stretch of changes that lie close together."""
    group: list[_Step] = []
    for what, i, j, k, n in steps:
        if what != "equal" or j - i <= 2 * _CONTEXT:
            group.append((what, i, j, k, n))
            continue
        group.append((what, i, i + _CONTEXT, k, k + _CONTEXT))
        yield group
        group = [(what, j - _CONTEXT, j, n - _CONTEXT, n)]
    if any(what != "equal" for what, *_ in group):
        yield group


def _hunk(group: Sequence[_Step], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    i, j, k, n = group[0][1], group[-1][2], group[0][3], group[-1][4]
    yield f"@@ -{_range(i, j)} +{_range(k, n)} @@"
    for what, first, last, begin, end in group:
        if what == "equal":
            yield from (f" {line[:_WIDEST]}" for line in old[first:last])
            continue
        a, b = old[first:last], new[begin:end]
        if len(a) == len(b):
            pairs = [_focused(one, other) for one, other in zip(a, b, strict=True)]
            a, b = [one for one, _ in pairs], [other for _, other in pairs]
        yield from (f"-{line[:_WIDEST]}" for line in a)
        yield from (f"+{line[:_WIDEST]}" for line in b)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many characters, or lines, both begin with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in same)


def _range(begin: int, end: int) -> str:
    length = end - begin
    return f"{begin + 1}" if length == 1 else f"{begin + (length > 0)},{length}"


def _focused(old: str, new: str) -> tuple[str, str]:
    """Two long lines, from a little before the place where they part."""
    if max(len(old), len(new)) <= _WIDEST:
        return old, new
    start = _common(old, new) - _BEFORE
    return (old, new) if start <= 0 else (f"…{old[start:]}", f"…{new[start:]}")
