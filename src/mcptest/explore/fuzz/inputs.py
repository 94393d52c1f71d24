"""The inputs of one tool in one run: near-valid ones first, then mutations, as many as wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from mcptest.explore.fuzz.case import Case, Category, can_be_sent
from mcptest.explore.fuzz.members import Form, form_of
from mcptest.explore.fuzz.mutations import mutated_cases, spelled
from mcptest.explore.fuzz.near_valid import judged, near_valid_cases


class Inputs:
    """What is sent to a tool. Each is made when it is asked for, and kept."""

    def __init__(self, form: Form, cases: Iterable[Case], left_out: int = 0) -> None:
        """`left_out`: near-valid inputs beyond the number that was asked for."""
        self.form = form
        self.left_out = left_out
        self._made: list[Case] = []
        self._more = iter(cases)

    def some(self, start: int, count: int) -> Sequence[Case]:
        """Up to so many from that number on; fewer only where they end."""
        missing = start + count - len(self._made)
        if missing > 0:
            self._made.extend(islice(self._more, missing))
        return self._made[start : start + count]

    @property
    def cases(self) -> Sequence[Case]:
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
    near = list(_sendable(near_valid_cases(form, writes=writes)))
    cases = islice(_then_mutations(near, form, f"{seed}/{tool.get('name')}", writes), runs)
    return Inputs(form, cases, max(0, len(near) - runs))


def _then_mutations(near: list[Case], form: Form, seed: str, writes: bool) -> Iterator[Case]:
    yield from near
    seen = {spelled(case.arguments) for case in near}
    yield from mutated_cases(form, seed, seen, writes=writes)


def given_input(tool: Mapping[str, Any], arguments: Any) -> Inputs:
    """Just the one that somebody wrote."""
    form = form_of(tool)
    return Inputs(form, [judged(form, Category.GIVEN, "the input that was given", arguments)])


def _sendable(cases: Iterator[Case]) -> Iterator[Case]:
    for case in cases:
        if not isinstance(case.arguments, Mapping) or can_be_sent(case.arguments):
            yield case
