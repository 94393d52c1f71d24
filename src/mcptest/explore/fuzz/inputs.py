"""The inputs of one tool in one run: near-valid ones first, then mutations, as many as wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from mcptest.explore.fuzz.case import Case, Category, can_be_sent
from mcptest.explore.fuzz.members import Form, form_of
from mcptest.explore.fuzz.mutations import mutated_cases
from mcptest.explore.fuzz.near_valid import judged, near_valid_cases


class Inputs(msgspec.Struct, frozen=True):
    """What is sent to a tool."""

    form: Form
    cases: tuple[Case, ...]
    left_out: int = 0
    """Near-valid inputs beyond the number that was asked for."""


def inputs_for(tool: Mapping[str, Any], runs: int, seed: int, *, writes: bool = False) -> Inputs:
    """The same for the same tool and seed, whatever else is fuzzed; more runs only add to them."""
    form = form_of(tool)
    near = list(_sendable(near_valid_cases(form, writes=writes)))
    cases = near[:runs]
    if len(cases) < runs:
        seen = {repr(case.arguments) for case in near}
        more = mutated_cases(form, f"{seed}/{tool.get('name')}", seen, writes=writes)
        cases += islice(more, runs - len(cases))
    return Inputs(form, tuple(cases), max(0, len(near) - runs))


def given_input(tool: Mapping[str, Any], arguments: Any) -> Inputs:
    """Just the one that somebody wrote."""
    form = form_of(tool)
    return Inputs(form, (judged(form, Category.GIVEN, "the input that was given", arguments),))


def _sendable(cases: Iterator[Case]) -> Iterator[Case]:
    for case in cases:
        if not isinstance(case.arguments, Mapping) or can_be_sent(case.arguments):
            yield case
