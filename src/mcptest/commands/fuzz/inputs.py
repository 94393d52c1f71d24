"""The inputs of one tool in one run: near-valid ones first, then mutations, as many as wanted."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

import msgspec

from mcptest.core.limits import cancellation
from mcptest.schema import tool_inputs
from mcptest.schema.choices import Seeded
from mcptest.schema.generator import fitting_value
from mcptest.schema.tool_inputs import (
    Category,
    Form,
    InputCase,
    can_be_sent,
    form_of,
    judged,
    near_valid_cases,
)

# -- Seeded mutations of valid inputs ------------------------------------------------------------

_BASES: Final = 24
"""So many valid inputs are mutated in turn."""
_MOST_STEPS: Final = 3
"""More only where the input was there before."""
_DEEPEST: Final = 6
_LONGEST: Final = 5_000
_VAIN: Final = 50
"""After so many steps that led to inputs that were there before, there are no more."""
_SHORT: Final = 64
_encode: Final = msgspec.json.Encoder().encode
_ALPHABET: Final = "abcXYZ019 _-./\\'\"<>%$;:\n\t\0\u00e9\u4e2d\U0001f600"
_LETTERS: Final = len(_ALPHABET)


def spelled(arguments: Any) -> bytes:
    """Short, and another one for each input: as JSON spells it, or a digest of that."""
    if not isinstance(arguments, dict):
        return repr(arguments).encode()
    try:
        text = _encode(arguments)
    except (UnicodeEncodeError, OverflowError):
        text = repr(arguments).encode("ascii", "backslashreplace")
    return text if len(text) <= _SHORT else hashlib.blake2b(text, digest_size=16).digest()


def mutated_cases(
    form: Form, seed: str, seen: set[bytes], *, writes: bool = False
) -> Iterator[InputCase]:
    """Without end, unless nothing new can be made. Each is another input than those `seen`.

    Whether its schema accepts one is found out when somebody asks: most pass, and nobody does.
    """
    bases: dict[int, dict[str, Any]] = {}
    mutation = _Mutation(random.Random(seed), writes)  # noqa: S311 - inputs for tests, no secrets
    number = 0
    while True:
        number += 1
        start = bases.get(number % _BASES)
        if start is None:
            start = fitting_value(form.schema, Seeded(f"{seed}/base/{number}"))
            if not isinstance(start, dict) or not can_be_sent(start):
                start = dict(form.base or {})
            bases[number % _BASES] = start
        made = mutation.of(start)
        steps = 0
        while (spelling := spelled(made)) in seen:  # one more step leads on faster than a new try
            steps += 1
            if steps > _VAIN:
                return
            made = mutation.step(made)
        seen.add(spelling)
        label = f"mutation {number}: {', '.join(mutation.steps)}"
        yield InputCase(Category.MUTATION, label, made)


class _Mutation:
    """A few steps away from a valid input, each of which is told."""

    def __init__(self, chance: random.Random, writes: bool) -> None:
        self._random = chance.random
        self._writes = writes
        self.steps: list[str] = []

    def _index(self, count: int) -> int:
        return int(self._random() * count)

    def _integer(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))

    def of(self, start: dict[str, Any]) -> dict[str, Any]:
        self.steps = []
        made = start
        for _ in range(1 + self._index(_MOST_STEPS)):
            made = self.step(made)
        return made

    def step(self, table: dict[str, Any]) -> dict[str, Any]:
        way = self._index(8) if table else 7
        if way == 7:
            name = self._text(1 + self._integer(0, 7))
            self.steps.append("another member")
            return {**table, name: self._anything()}
        name = list(table)[self._index(len(table))]
        if way == 0:
            self.steps.append(f"{name} left out")
            return {key: value for key, value in table.items() if key != name}
        if way == 1:
            self.steps.append(f"{name} renamed")
            return {(f"{key}_" if key == name else key): value for key, value in table.items()}
        if way == 2 and len(table) > 1:
            others = [key for key in table if key != name]
            other = others[self._index(len(others))]
            self.steps.append(f"{name} and {other} exchanged")
            return {**table, name: table[other], other: table[name]}
        return {**table, name: self._changed(table[name], name, 0)}

    def _changed(self, value: Any, place: str, depth: int) -> Any:
        way = self._index(5)
        if way == 0:
            self.steps.append(f"{place} of any type")
            return self._anything()
        if isinstance(value, dict | list) and value and way > 1 and depth < _DEEPEST:
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            key = keys[self._index(len(keys))]
            copy = value.copy()
            copy[key] = self._changed(value[key], f"{place}/{key}", depth + 1)
            return copy
        change = _CHANGES.get(type(value))
        if change is None or way == 1:
            self.steps.append(f"{place} wrapped")
            return [value] if self._index(2) else {place.rpartition("/")[2]: value}
        self.steps.append(f"{place} changed")
        return change(self, value)

    def _anything(self) -> Any:
        way = self._index(7)
        if way == 0:
            return None
        if way == 1:
            return bool(self._index(2))
        if way == 2:
            return self.number(self._integer(-1_000, 1_000))
        if way == 3:
            return [self._integer(0, 9)] * self._integer(0, 3)
        if way == 4:
            return {self._text(3): self._integer(0, 9)}
        return self.text(self._text(self._integer(0, 12)))

    def text(self, value: str) -> str:
        way = self._index(6)
        place = self._integer(0, len(value))
        if way == 0:
            return value[:place]
        if way == 1:
            return value[:place] + self._text(1 + self._integer(0, 3)) + value[place:]
        if way == 2:
            return (value * (2 + self._integer(0, 200)))[:_LONGEST]
        if way == 3:
            return value.swapcase()[::-1]
        named = tool_inputs.STRINGS[self._index(len(tool_inputs.STRINGS) - 1)][1]
        if self._writes and named == tool_inputs.TRAVERSAL:
            named = tool_inputs.TRAVERSAL_FOR_WRITERS
        return str(named) if way == 4 else value[:place] + str(named) + value[place:]

    def number(self, value: int | float) -> int | float:
        way = self._index(6)
        if way == 0:
            return -value
        if way == 1:
            return value + (1 if self._index(2) else -1)
        if way == 2:
            return value + 0.5
        if way == 3:
            power = 1 << self._integer(8, 62)
            return max(-(2**63), min(2**63 - 1, int(value) + power))
        found = tool_inputs.NUMBERS[self._index(len(tool_inputs.NUMBERS) - 1)][1]
        return found if isinstance(found, int | float) else 0

    def truth(self, value: bool) -> Any:
        return (not value, str(value).lower(), int(value), None)[self._index(4)]

    def items(self, value: list[Any]) -> list[Any]:
        way = self._index(4)
        if way == 0:
            return value[: self._integer(0, len(value))]
        if way == 1:
            return value[::-1] + value
        if way == 2:
            return (value or [None]) * self._integer(2, 50)
        return [*value, self._anything()]

    def table(self, value: dict[str, Any]) -> dict[str, Any]:
        if value and self._index(2):
            dropped = list(value)[self._index(len(value))]
            return {key: one for key, one in value.items() if key != dropped}
        return {**value, self._text(4): self._anything()}

    def _text(self, length: int) -> str:
        chance = self._random
        return "".join([_ALPHABET[int(chance() * _LETTERS)] for _ in range(length)])


_CHANGES: Final[dict[type, Callable[[Any, Any], Any]]] = {
    str: _Mutation.text,
    int: _Mutation.number,
    float: _Mutation.number,
    bool: _Mutation.truth,
    list: _Mutation.items,
    dict: _Mutation.table,
}


# -- The inputs of one tool in one run -----------------------------------------------------------


class Inputs:
    """What is sent to a tool. Each is made when it is asked for, by any thread, and kept."""

    def __init__(self, form: Form, cases: Iterable[InputCase], left_out: int = 0) -> None:
        """`left_out`: near-valid inputs beyond the number that was asked for."""
        self.form = form
        self.left_out = left_out
        self._made: list[InputCase] = []
        self._more = iter(cases)
        self._making = threading.Lock()

    def some(self, start: int, count: int) -> Sequence[InputCase]:
        """Up to so many from that number on; fewer only where they end."""
        with self._making:
            missing = start + count - len(self._made)
            if missing > 0:
                self._made.extend(islice(self._more, missing))
            return self._made[start : start + count]

    def arguments(self, number: int) -> Any:
        """What is sent with the one of that number, which was handed out before."""
        return self._made[number].arguments

    @property
    def cases(self) -> Sequence[InputCase]:
        """Those that were made until now, which are all that were ever handed out."""
        return self._made

    @property
    def total(self) -> int:
        """How many there are. Makes them all."""
        self._made.extend(self._more)
        return len(self._made)


def inputs_for(tool: Mapping[str, Any], runs: int, seed: int, *, writes: bool = False) -> Inputs:
    """The same for the same tool and seed, whatever else is fuzzed; more runs only add to them."""
    form = form_of(tool)
    near: list[InputCase] = []
    seen: set[bytes] = set()
    for case in near_valid_cases(form, writes=writes):
        if cancellation.is_over():  # of a large schema there are many, and each is as large
            break
        if not isinstance(case.arguments, Mapping) or can_be_sent(case.arguments):
            near.append(case)
            seen.add(spelled(case.arguments))
    mutated = mutated_cases(form, f"{seed}/{tool.get('name')}", seen, writes=writes)
    return Inputs(form, islice(chain(near, mutated), runs), max(0, len(near) - runs))


def given_input(tool: Mapping[str, Any], arguments: Any) -> Inputs:
    """Just the one that somebody wrote."""
    form = form_of(tool)
    return Inputs(form, [judged(form, Category.GIVEN, "the input that was given", arguments)])
