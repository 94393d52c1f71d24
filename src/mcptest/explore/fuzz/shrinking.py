"""Making an input that fails small: what is left out or simplified step by step must still fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def shrunk(
    value: Any,
    still_fails: Callable[[Any], bool],
    *,
    tries: int,
    may_be: Callable[[Any], bool] = lambda _: True,
) -> tuple[Any, int]:
    """The smallest that was found with so many tries, and how many it took.

    What `may_be` does not allow is not tried.
    """
    made = 0
    seen = {repr(value)}
    found = True
    while found:
        found = False
        for candidate in simpler(value):
            spelled = repr(candidate)
            if spelled in seen or not may_be(candidate):
                continue
            if made >= tries:
                return value, made
            seen.add(spelled)
            made += 1
            if still_fails(candidate):
                value, found = candidate, True
                break
    return value, made


def simpler(value: Any) -> Iterator[Any]:
    """What is a step simpler, the boldest step first."""
    if isinstance(value, dict):
        yield from _simpler_table(value)
    elif isinstance(value, list):
        yield from _simpler_list(value)
    elif isinstance(value, str):
        yield from _simpler_text(value)
    elif isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int | float) and value:
        yield from _simpler_number(value)


def _simpler_table(value: dict[str, Any]) -> Iterator[Any]:
    if not value:
        return
    yield {}
    names = list(value)
    if len(names) > 3:
        half = len(names) // 2
        for kept in (names[:half], names[half:]):
            yield {name: value[name] for name in kept}
    for name in names[:50]:
        yield {key: one for key, one in value.items() if key != name}
    for name in names[:50]:
        for one in simpler(value[name]):
            yield {**value, name: one}


def _simpler_list(value: list[Any]) -> Iterator[Any]:
    if not value:
        return
    yield []
    if len(value) > 2:
        half = len(value) // 2
        yield value[:half]
        yield value[half:]
    for place in range(min(len(value), 20)):
        yield value[:place] + value[place + 1 :]
    for place in range(min(len(value), 20)):
        for one in simpler(value[place]):
            yield [*value[:place], one, *value[place + 1 :]]


def _simpler_text(value: str) -> Iterator[str]:
    if not value:
        return
    yield ""
    if len(value) > 1:
        half = len(value) // 2
        yield value[:half]
        yield value[half:]
        yield value[:1]
        yield value[:-1]
        yield value[1:]
    if value.strip("a"):
        yield "a" * len(value)


def _simpler_number(value: int | float) -> Iterator[int | float]:
    yield 0
    yield 1
    if value < 0:
        yield -value
    if isinstance(value, float):
        if abs(value) < 2**53:
            yield int(value)
    elif abs(value) > 1:
        yield value // 2 if value > 0 else -(-value // 2)
