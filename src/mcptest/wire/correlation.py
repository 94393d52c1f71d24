"""Which answer belongs to which request. Ids keep their JSON type, and old ones stay cheap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from mcptest.core.message import ABSENT, id_key

Request = TypeVar("Request")
_MOST_RANGES = 4096  # scattered integers would make each insertion dearer than the one before


class IdSet:
    """A set of JSON-RPC ids. Integers that follow one another cost nothing: they are ranges."""

    __slots__ = ("_begins", "_ends", "_others")

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []  # one past the last of each range
        self._others: set[Any] = set()

    def add(self, identifier: Any) -> bool:
        """Put it in; False when it was there already."""
        key = id_key(identifier)
        if type(key) is not int:
            if key in self._others:
                return False
            self._others.add(key)
            return True
        begins, ends = self._begins, self._ends
        if ends and key == ends[-1]:  # the usual client counts upwards
            ends[-1] += 1
            return True
        place = bisect_right(begins, key) - 1
        if (place >= 0 and key < ends[place]) or key in self._others:
            return False
        if len(begins) < _MOST_RANGES:
            self._put(key, place)
        else:
            self._others.add(key)
        return True

    def _put(self, key: int, place: int) -> None:
        begins, ends = self._begins, self._ends
        joins_left = place >= 0 and ends[place] == key
        joins_right = place + 1 < len(begins) and begins[place + 1] == key + 1
        if joins_left and joins_right:
            ends[place] = ends.pop(place + 1)
            del begins[place + 1]
        elif joins_left:
            ends[place] += 1
        elif joins_right:
            begins[place + 1] = key
        else:
            begins.insert(place + 1, key)
            ends.insert(place + 1, key + 1)

    def __contains__(self, identifier: object) -> bool:
        key = id_key(identifier)
        if key in self._others or type(key) is not int:
            return key in self._others
        place = bisect_right(self._begins, key) - 1
        return place >= 0 and key < self._ends[place]

    def shared_with(self, other: IdSet, limit: int) -> tuple[list[Any], int]:
        """The ids that are in both, at most `limit` of them, and how many there are."""
        shared: list[Any] = []
        total = 0
        for begin, end in _overlaps(self._begins, self._ends, other._begins, other._ends):
            total += end - begin
            shared.extend(range(begin, min(end, begin + limit - len(shared))))
        loose = {key for key in self._others if type(key) in {int, str} and key in other}
        loose.update(key for key in other._others if type(key) is int and key in self)
        shared.extend(islice(loose, limit - len(shared)))
        total += len(loose)
        return shared, total


def _overlaps(
    begins: list[int], ends: list[int], other_begins: list[int], other_ends: list[int]
) -> Iterator[tuple[int, int]]:
    mine = others = 0
    while mine < len(begins) and others < len(other_begins):
        begin = max(begins[mine], other_begins[others])
        end = min(ends[mine], other_ends[others])
        if begin < end:
            yield begin, end
        if ends[mine] <= other_ends[others]:
            mine += 1
        else:
            others += 1


class InFlight(Generic[Request]):
    """The requests of one sender: those that wait for their answer, and the ids of the others."""

    __slots__ = ("malformed", "seen", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[Any, Request] = {}
        self.seen = IdSet()
        self.malformed = IdSet()
        """Ids in messages that are no requests by their shape, which may be answered anyway."""

    def sent(self, identifier: Any, request: Request) -> bool:
        """A request goes out; False when its id was used before."""
        is_new = self.seen.add(identifier)
        self.waiting[id_key(identifier)] = request
        return is_new

    def answered(self, identifier: Any) -> Request | None:
        """An answer came; None when nothing waits for it."""
        return self.waiting.pop(id_key(identifier), None)

    def find(self, identifier: Any) -> Request | None:
        return self.waiting.get(id_key(identifier))

    def forget_settled(self) -> None:
        """Only what waits is still known: whoever counts from the beginning again may do so."""
        self.seen = IdSet()
        for key in self.waiting:
            self.seen.add(key)

    def twin_of_other_type(self, identifier: Any) -> Request | None:
        """A waiting request whose id differs in its JSON type alone: 1 for "1"."""
        return self.waiting.get(id_of_other_type(identifier))


def id_of_other_type(identifier: Any) -> Any:
    """The id that a peer may have made this one of by changing its JSON type; else ABSENT."""
    if isinstance(identifier, str):
        digits = identifier.removeprefix("-")
        small = len(identifier) < 20 and digits.isascii() and digits.isdigit()
        return int(identifier) if small else ABSENT
    key = id_key(identifier)
    return str(key) if type(key) is int else ABSENT
