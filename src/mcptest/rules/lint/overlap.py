"""What tools have in common: parameters that a model carries over, and like descriptions.

Names are matched once, by `name_matches`, and never tool by tool. Descriptions are compared pair
by pair up to some tools; beyond, each with a bounded number of others: its neighbours when the
texts are sorted from either end, and those that share most of its rarer pieces. So the number of
comparisons grows with the number of tools, not with its square.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, pairwise, product
from zlib import crc32

import msgspec

from mcptest.core.safe_text import some_of
from mcptest.rules.lint.finding import LintLimits, LintSeverity, LintSuggestion, Remark, lint_rule
from mcptest.rules.lint.surface import NameMatches, Parameter, Surface, is_shared_by_nature

_NAMED = 3
_COMPARED = 8
"""How many tools of each name are held against each other, where descriptions decide."""
_ALIKE = 0.25


class _Use(msgspec.Struct, frozen=True):
    tool: int
    parameter: Parameter


def _uses(surface: Surface) -> Iterator[_Use]:
    for number, tool in enumerate(surface.tools):
        for parameter in tool.parameters:
            if not is_shared_by_nature(parameter.name):
                yield _Use(number, parameter)


@lint_rule("E105", "free text passed from tool to tool", LintSeverity.NOTE, "surface")
def free_text_flow(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """A model passes the value of one tool on to the next. Without a pattern it can pass anything.

    Give both parameters the same enum, pattern or format.
    """
    users: dict[str, dict[int, None]] = {}
    free = [
        use
        for use in _uses(surface)
        if use.parameter.type == "string"
        and not use.parameter.schema.keys() & {"enum", "pattern", "format"}
    ]
    for use in free:
        users.setdefault(use.parameter.name.lower(), {})[use.tool] = None
    for use in free:
        others = [surface.tools[one].name for one in _others(use, users, surface.name_matches)]
        if others:
            name, added = use.parameter.name, f"{use.parameter.pointer}/pattern"
            listed = ", ".join(f'"{other}"' for other in others[:_NAMED])
            more = " and others" if len(others) > _NAMED else ""
            message = f'free text "{name}" is also a parameter of {listed}{more}'
            tool, form = surface.tools[use.tool].name, LintSuggestion(added, "^…$")
            yield Remark(message, f"args.{name}", form, item=tool)


def _others(use: _Use, users: dict[str, dict[int, None]], matches: NameMatches) -> list[int]:
    """A few other tools that take the same: enough to name, whatever their number is."""
    found: dict[int, None] = {}
    name = use.parameter.name.lower()
    for other in (*matches.same(name), *matches.related(name)):
        for tool in users.get(other, ()):
            if tool != use.tool:
                found[tool] = None
            if len(found) > _NAMED:
                return list(found)
    return list(found)


@lint_rule("E107", "tools with the same parameters", LintSeverity.NOTE, "surface")
def circles(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """Tools that take the same parameters invite a model to loop between them.

    Say in each description which tool comes first and when to stop.
    """
    groups = _Groups(len(surface.tools))
    by_name: dict[tuple[str, str], dict[int, None]] = {}
    for use in _uses(surface):
        if use.parameter.type:
            key = (use.parameter.name.lower(), use.parameter.type)
            by_name.setdefault(key, {})[use.tool] = None
    matches = surface.name_matches
    for (name, kind), tools in by_name.items():
        first = next(iter(tools))
        for other in matches.same(name):
            for tool in by_name.get((other, kind), ()):
                groups.join(first, tool)
                if other != name:
                    break  # the rest are joined under their own name
        for other in matches.related(name):
            # Names that only contain each other count where descriptions have words in common.
            there = islice(by_name.get((other, kind), ()), _COMPARED)
            for pair in product(islice(tools, _COMPARED), there):
                if pair[0] != pair[1] and _overlap(surface, *pair) >= _ALIKE:
                    groups.join(*pair)
    for members in groups.larger_than_one():
        names = sorted({surface.tools[one].name for one in members})
        message = f"these tools take the same parameters: {some_of(names, 10)}"
        yield Remark(message, "dependencies", item=names[0])


def _overlap(surface: Surface, one: int, other: int) -> float:
    words, others = (
        {word for word in surface.tools[each].description.lower().split() if len(word) > 2}
        for each in (one, other)
    )
    together = len(words | others)
    return len(words & others) / together if together else 0.0


class _Groups:
    """Which tools hang together; joining is next to free."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def join(self, one: int, other: int) -> None:
        one, other = self._root(one), self._root(other)
        if one != other:
            self._parent[max(one, other)] = min(one, other)

    def _root(self, one: int) -> int:
        while self._parent[one] != one:
            self._parent[one] = self._parent[self._parent[one]]
            one = self._parent[one]
        return one

    def larger_than_one(self) -> Iterator[list[int]]:
        members: dict[int, list[int]] = {}
        for one in range(len(self._parent)):
            members.setdefault(self._root(one), []).append(one)
        return (group for group in members.values() if len(group) > 1)


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


@lint_rule("W105", "nearly identical descriptions", LintSeverity.WARNING, "surface")
def similar_descriptions(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """A model picks between the tools at random. It is a note if the descriptions differ in a word.

    Say in each description how the tool differs from the other. --similarity sets the limit.
    """
    tools = [tool for tool in surface.tools if tool.description]
    texts = [tool.description for tool in tools]
    found: dict[int, list[tuple[int, float]]] = {}
    for one, other, alike in similar_pairs(texts, limits.similarity):
        found.setdefault(one, []).append((other, alike))
    for one, others in sorted(found.items()):
        others.sort(key=lambda pair: (-pair[1], pair[0]))
        named = [f'"{tools[other].name}" ({alike:.0%})' for other, alike in others]
        message = f"the description is almost the same as that of {some_of(named, _NAMED)}"
        # Word by word: `Finds teams of …` is like `Finds projects of …`, and easily told apart.
        words, first = (texts[each].lower().split() for each in (one, others[0][0]))
        harm = None if words == first else LintSeverity.NOTE
        yield Remark(message, "description", item=tools[one].name, severity=harm)


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
