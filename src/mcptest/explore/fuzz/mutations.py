"""Seeded mutations of valid inputs: the same for the same seed, tool and number, and no others."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from mcptest.explore.choices import Seeded
from mcptest.explore.from_schema import fitting_value
from mcptest.explore.fuzz import values
from mcptest.explore.fuzz.case import Case, Category, can_be_sent
from mcptest.explore.fuzz.members import Form

_BASES: Final = 24
"""So many valid inputs are mutated in turn."""
_MOST_STEPS: Final = 3
_DEEPEST: Final = 6
_LONGEST: Final = 5_000
_VAIN: Final = 50
"""After so many mutations in a row that were there before, there are no more."""
_ALPHABET: Final = "abcXYZ019 _-./\\'\"<>%$;:\n\t\0\u00e9\u4e2d\U0001f600"


def mutated_cases(form: Form, seed: str, seen: set[str], *, writes: bool = False) -> Iterator[Case]:
    """Without end, unless nothing new can be made. Each is another input than those `seen`.

    Whether its schema accepts one is found out when somebody asks: most pass, and nobody does.
    """
    bases: dict[int, dict[str, Any]] = {}
    chance = _Chance(seed)
    number = vain = 0
    while vain < _VAIN:
        number += 1
        start = bases.get(number % _BASES)
        if start is None:
            start = bases[number % _BASES] = _base(form, f"{seed}/base/{number}")
        mutation = _Mutation(chance, writes)
        made = mutation.of(start)
        spelled = repr(made)
        if spelled in seen:
            vain += 1
            continue
        seen.add(spelled)
        vain = 0
        label = f"mutation {number}: {', '.join(mutation.steps)}"
        yield Case(category=Category.MUTATION, label=label, arguments=made)


def _base(form: Form, seed: str) -> dict[str, Any]:
    value = fitting_value(form.schema, Seeded(seed))
    sound = isinstance(value, dict) and can_be_sent(value)
    return value if sound else dict(form.base or {})


class _Chance:
    """As `Seeded`, and many times faster: a run asks it for a hundred thousand decisions."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random  # noqa: S311 - inputs for tests, no secrets

    def index(self, count: int) -> int:
        return int(self._random() * count)

    def integer(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))


class _Mutation:
    """A few steps away from a valid input, each of which is told."""

    def __init__(self, choices: _Chance, writes: bool) -> None:
        self._choices = choices
        self._writes = writes
        self.steps: list[str] = []

    def of(self, start: dict[str, Any]) -> dict[str, Any]:
        made = dict(start)
        for _ in range(1 + self._choices.integer(0, _MOST_STEPS - 1)):
            made = self._step(made)
        return made

    def _step(self, table: dict[str, Any]) -> dict[str, Any]:
        way = self._choices.index(8) if table else 7
        if way == 7:
            name = self._text(1 + self._choices.integer(0, 7))
            self.steps.append("another member")
            return {**table, name: self._anything()}
        name = list(table)[self._choices.index(len(table))]
        if way == 0:
            self.steps.append(f"{name} left out")
            return {key: value for key, value in table.items() if key != name}
        if way == 1:
            self.steps.append(f"{name} renamed")
            return {(f"{key}_" if key == name else key): value for key, value in table.items()}
        if way == 2 and len(table) > 1:
            others = [key for key in table if key != name]
            other = others[self._choices.index(len(others))]
            self.steps.append(f"{name} and {other} exchanged")
            return {**table, name: table[other], other: table[name]}
        return {**table, name: self._changed(table[name], name, 0)}

    def _changed(self, value: Any, place: str, depth: int) -> Any:
        way = self._choices.index(5)
        if way == 0:
            self.steps.append(f"{place} of any type")
            return self._anything()
        if isinstance(value, dict | list) and value and way > 1 and depth < _DEEPEST:
            return self._inside(value, place, depth)
        change = _CHANGES.get(type(value))
        if change is None or way == 1:
            self.steps.append(f"{place} wrapped")
            return [value] if self._choices.index(2) else {place.rpartition("/")[2]: value}
        self.steps.append(f"{place} changed")
        return change(self, value)

    def _inside(self, value: Any, place: str, depth: int) -> Any:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = keys[self._choices.index(len(keys))]
        copy = value.copy()
        copy[key] = self._changed(value[key], f"{place}/{key}", depth + 1)
        return copy

    def _anything(self) -> Any:
        way = self._choices.index(7)
        if way == 0:
            return None
        if way == 1:
            return bool(self._choices.index(2))
        if way == 2:
            return self.number(self._choices.integer(-1_000, 1_000))
        if way == 3:
            return [self._choices.integer(0, 9)] * self._choices.integer(0, 3)
        if way == 4:
            return {self._text(3): self._choices.integer(0, 9)}
        return self.text(self._text(self._choices.integer(0, 12)))

    def text(self, value: str) -> str:
        way = self._choices.index(6)
        place = self._choices.integer(0, len(value))
        if way == 0:
            return value[:place]
        if way == 1:
            return value[:place] + self._text(1 + self._choices.integer(0, 3)) + value[place:]
        if way == 2:
            return (value * (2 + self._choices.integer(0, 200)))[:_LONGEST]
        if way == 3:
            return value.swapcase()[::-1]
        named = values.STRINGS[self._choices.index(len(values.STRINGS) - 1)][1]
        if self._writes and named == values.TRAVERSAL:
            named = values.TRAVERSAL_FOR_WRITERS
        return str(named) if way == 4 else value[:place] + str(named) + value[place:]

    def number(self, value: int | float) -> int | float:
        way = self._choices.index(6)
        if way == 0:
            return -value
        if way == 1:
            return value + (1 if self._choices.index(2) else -1)
        if way == 2:
            return value + 0.5
        if way == 3:
            power = 1 << self._choices.integer(8, 62)
            return max(-(2**63), min(2**63 - 1, int(value) + power))
        found = values.NUMBERS[self._choices.index(len(values.NUMBERS) - 1)][1]
        return found if isinstance(found, int | float) else 0

    def truth(self, value: bool) -> Any:
        return (not value, str(value).lower(), int(value), None)[self._choices.index(4)]

    def items(self, value: list[Any]) -> list[Any]:
        way = self._choices.index(4)
        if way == 0:
            return value[: self._choices.integer(0, len(value))]
        if way == 1:
            return value[::-1] + value
        if way == 2:
            return (value or [None]) * self._choices.integer(2, 50)
        return [*value, self._anything()]

    def table(self, value: dict[str, Any]) -> dict[str, Any]:
        if value and self._choices.index(2):
            dropped = list(value)[self._choices.index(len(value))]
            return {key: one for key, one in value.items() if key != dropped}
        return {**value, self._text(4): self._anything()}

    def _text(self, length: int) -> str:
        return "".join(_ALPHABET[self._choices.index(len(_ALPHABET))] for _ in range(length))


_CHANGES: Final[dict[type, Callable[[Any, Any], Any]]] = {
    str: _Mutation.text,
    int: _Mutation.number,
    float: _Mutation.number,
    bool: _Mutation.truth,
    list: _Mutation.items,
    dict: _Mutation.table,
}
