"""Which answer belongs to which request. Ids keep their JSON type, and old ones stay cheap."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any, Generic, TypeVar

from mcptest.core.message import ABSENT, id_key

Request = TypeVar("Request")
_BLOCK = 512
"""Numbers that share an integer: a peer that counts fills it up, and one number alone in it takes
little more than it would in a set."""


class IdSet:
    """A set of JSON-RPC ids. Integers that follow one another take one bit each."""

    __slots__ = ("_blocks", "_others")

    def __init__(self) -> None:
        self._blocks: dict[int, int] = {}
        self._others: set[Any] = set()

    def add(self, identifier: Any) -> bool:
        """Put it in; False when it was there already."""
        key = id_key(identifier)
        if type(key) is not int:
            count = len(self._others)
            self._others.add(key)
            return len(self._others) > count
        block, bit = key // _BLOCK, 1 << key % _BLOCK
        bits = self._blocks.get(block, 0)
        self._blocks[block] = bits | bit
        return not bits & bit

    def __contains__(self, identifier: object) -> bool:
        key = id_key(identifier)
        if type(key) is not int:
            return key in self._others
        return bool(self._blocks.get(key // _BLOCK, 0) >> key % _BLOCK & 1)

    def shared_with(self, other: IdSet, limit: int) -> tuple[list[Any], int]:
        """The ids that are in both, at most `limit` of them, and how many there are."""
        blocks = sorted(self._blocks.keys() & other._blocks.keys())
        both = {block: self._blocks[block] & other._blocks[block] for block in blocks}
        numbers = (
            block * _BLOCK + place
            for block, bits in both.items()
            for place in range(_BLOCK)
            if bits >> place & 1
        )
        texts = [key for key in self._others & other._others if type(key) is str]
        total = sum(bits.bit_count() for bits in both.values()) + len(texts)
        return list(islice(chain(numbers, texts), limit)), total


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
