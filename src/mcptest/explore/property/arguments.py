"""Arguments of tools: what the schema accepts, and what it just does not."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.fuzz.case import Case, can_be_sent
from mcptest.explore.fuzz.members import Form, form_of
from mcptest.explore.fuzz.near_valid import judged, near_valid_cases
from mcptest.explore.property.translated import fitting_values

_TYPED: Final = frozenset({"type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"})
"""Keywords that can say what the arguments are; without them they are an object all the same."""


def tool_arguments(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    """Every value that is drawn is valid against the schema; nothing when no value is."""
    if _TYPED.isdisjoint(schema.keys()):
        return fitting_values({"type": "object", **schema})
    return fitting_values(schema)


def almost_valid_arguments(schema: Mapping[str, Any]) -> SearchStrategy[tuple[Any, str]]:
    """Arguments with one thing amiss, and what that is. None of them is valid against the schema.

    Nothing when the schema accepts everything, or can't be used.
    """
    try:
        spelled = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError):
        return st.nothing()
    return _almost_valid(spelled)


@functools.lru_cache(maxsize=256)
def _almost_valid(spelled: bytes) -> SearchStrategy[tuple[Any, str]]:
    schema = msgspec.json.decode(spelled)
    form = form_of({"inputSchema": schema})
    cases = [case for case in near_valid_cases(form) if _is_wrong(case)]
    if not cases:
        return st.nothing()
    return _spoilt(form, tool_arguments(schema), tuple(cases))


def _is_wrong(case: Case) -> bool:
    return case.valid is False and isinstance(case.arguments, dict) and can_be_sent(case.arguments)


@st.composite
def _spoilt(
    draw: DrawFn, form: Form, valid: SearchStrategy[Any], cases: tuple[Case, ...]
) -> tuple[Any, str]:
    """The one member that is wrong, in arguments that are right but for it."""
    case = draw(st.sampled_from(cases))
    around = draw(valid) if case.member else None
    if isinstance(around, dict):
        made = {name: value for name, value in around.items() if name != case.member}
        if case.member in case.arguments:
            made[case.member] = case.arguments[case.member]
        if judged(form, case.category, case.label, made).valid is False:
            return made, case.label
    return dict(case.arguments), case.label
