"""Descriptions that are nearly the same, found without comparing every tool with every other.

Up to some tools all pairs are compared. Beyond, each is compared with a bounded number of others:
its neighbours when the texts are sorted from either end, and those that share most of its rarer
pieces. So the number of comparisons grows with the number of tools, not with its square.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from zlib import crc32

from mcptest.explore.lint.declare import lint_rule
from mcptest.explore.lint.finding import Limits, Remark, Severity
from mcptest.explore.lint.surface import Surface

EXHAUSTIVE = 64
"""As many texts are compared pair by pair."""
_NEIGHBOURS = 4
_PIECE = 6
_LONG_WORD = 20
_PIECES = 12
_PER_PIECE = 6
_PARTNERS = 16
_COMMON = 40
"""A piece that more texts hold, or a fiftieth of all, tells nothing."""
MOST_EACH = 2 * _NEIGHBOURS + _PARTNERS
_LONGEST = 4_000
_PLACES = 8_192
"""Pairs of letters that are told apart: more than all texts of one language have."""
_NAMED = 3


@lint_rule(
    "W105",
    "descriptions that are nearly the same",
    Severity.WARNING,
    "surface",
    why="A model picks between the tools by chance. A note where they differ in a word.",
    fix="Say in each how it differs from the other. --similarity sets the bound.",
)
def similar_descriptions(surface: Surface, limits: Limits) -> Iterator[Remark]:
    tools = [tool for tool in surface.tools if tool.description]
    texts = [tool.description for tool in tools]
    found: dict[int, list[tuple[int, float]]] = {}
    for one, other, alike in similar_pairs(texts, limits.similarity):
        found.setdefault(one, []).append((other, alike))
    for one, others in sorted(found.items()):
        others.sort(key=lambda pair: (-pair[1], pair[0]))
        listed = ", ".join(
            f'"{tools[other].name}" ({alike:.0%})' for other, alike in others[:_NAMED]
        )
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        yield Remark(
            f"the description is nearly that of {listed}{more}",
            "description",
            item=tools[one].name,
            severity=None if _says_the_same(texts[one], texts[others[0][0]]) else Severity.NOTE,
        )


def _says_the_same(one: str, other: str) -> bool:
    """Word by word: `Finds teams of …` is like `Finds projects of …`, and easily told apart."""
    return one.lower().split() == other.lower().split()


def similar_pairs(texts: Sequence[str], bound: float) -> Iterator[tuple[int, int, float]]:
    """Pairs of texts (the earlier one first) whose likeness is at least `bound`."""
    small = [text[:_LONGEST].lower() for text in texts]
    marks = _marks_of(small)
    for one, other in candidates(small):
        alike = 1.0 if small[one] == small[other] else likeness(marks[one], marks[other])
        if alike >= bound:
            yield one, other, alike


def _marks_of(texts: Sequence[str]) -> list[int]:
    """A bit for each pair of letters that a text has: small, and compared at once."""
    places: dict[str, int] = {}
    marks = []
    for text in texts:
        bits = 0
        for pair in set(map("".join, pairwise(text))):
            bits |= 1 << places.setdefault(pair, len(places) % _PLACES)
        marks.append(bits)
    return marks


def likeness(one: int, other: int) -> float:
    """The share of pairs of letters that both have (Dice)."""
    total = one.bit_count() + other.bit_count()
    return 2 * (one & other).bit_count() / total if total else 0.0


def candidates(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Which pairs are worth a comparison, each once."""
    if len(texts) <= EXHAUSTIVE:
        yield from combinations(range(len(texts)), 2)
        return
    seen: set[tuple[int, int]] = set()
    for pair in (*_sorted_neighbours(texts), *_sharing_a_piece(texts)):
        if pair not in seen:
            seen.add(pair)
            yield pair


def _sorted_neighbours(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    forwards = sorted(range(len(texts)), key=lambda one: texts[one])
    backwards = sorted(range(len(texts)), key=lambda one: texts[one][::-1])
    for order in (forwards, backwards):
        for place, one in enumerate(order):
            for other in order[place + 1 : place + 1 + _NEIGHBOURS]:
                yield (one, other) if one < other else (other, one)


def _sharing_a_piece(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    pieces = [_pieces(text) for text in texts]
    counts = Counter(piece for each in pieces for piece in each)
    common = max(_COMMON, len(texts) // 50)
    holders: dict[int, list[int]] = {}
    for one, each in enumerate(pieces):
        telling = sorted(piece for piece in each if 1 < counts[piece] <= common)
        shared: Counter[int] = Counter()
        for piece in telling[:_PIECES]:
            there = holders.setdefault(piece, [])
            shared.update(there[-_PER_PIECE:])
            there.append(one)
        most = shared.most_common(_PARTNERS)
        yield from ((other, one) for other, count in most if count > 1 or len(telling) < 4)


def _pieces(text: str) -> set[int]:
    """Short pieces of a text as numbers, in an order that has nothing to do with the text."""
    words = text.encode("utf-8", "replace").split()
    if len(words) * _LONG_WORD < len(text):  # written without blanks
        data = b" ".join(words)
        return {crc32(data[at : at + _PIECE]) for at in range(max(1, len(data) - _PIECE + 1))}
    return {crc32(one + b" " + other) for one, other in pairwise([b"", *words])}
