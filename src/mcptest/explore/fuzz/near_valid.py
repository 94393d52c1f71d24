"""Inputs that are almost valid: the right structure with a wrong value, or one thing amiss.

Every label is held against the schema before it is given: an input that is said to break it does,
and every other one says what validation found.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final

from mcptest.explore.from_schema import fitting_value
from mcptest.explore.fuzz import edges, values
from mcptest.explore.fuzz.case import Case, Category
from mcptest.explore.fuzz.members import Form, Member
from mcptest.model.message import ABSENT
from mcptest.schema.json_schema import SchemaLimitError

UNKNOWN: Final = "mcptest_unknown"
_OF_KIND: Final = {
    "string": Category.STRING,
    "integer": Category.NUMBER,
    "number": Category.NUMBER,
    "boolean": Category.BOOLEAN,
    "array": Category.ARRAY,
    "object": Category.OBJECT,
}
_DEFINITIONS: Final = ("$defs", "definitions", "$schema")


def near_valid_cases(form: Form, *, writes: bool = False) -> Iterator[Case]:
    """All of them in a fixed order: structure first, then one of each member in turn.

    `writes`: the tool may change things, so nothing leads it to a file that exists.
    """
    yield from _structural(form)
    yield from _missing(form)
    rows = [list(_of_member(form, member, writes)) for member in form.members]
    for turn in zip_longest(*rows):
        yield from (case for case in turn if case is not None)


def judged(form: Form, category: Category, label: str, arguments: Any, member: str = "") -> Case:
    """The case with what validation says of it."""
    valid: bool | None = None
    try:
        misfit = form.misfit(arguments) or ""
        if form.compiled is not None:
            valid = not misfit
    except SchemaLimitError:
        misfit = ""
    return Case(
        category=category,
        label=label,
        arguments=arguments,
        valid=valid,
        misfit=misfit,
        member=member,
    )


def judged_again(form: Form, case: Case) -> Case:
    """The same case, with what validation says of it."""
    return judged(form, case.category, case.label, case.arguments, case.member)


def _structural(form: Form) -> Iterator[Case]:
    kind = Category.STRUCTURAL
    if form.base is not None:
        yield judged(form, kind, "valid input", dict(form.base))
    yield judged(form, kind, "empty object", {})
    yield judged(form, kind, "null args", None)
    yield judged(form, kind, "no args", ABSENT)
    base = dict(form.base or {})
    yield judged(form, kind, "unknown member", {**base, UNKNOWN: "?"}, UNKNOWN)


def _missing(form: Form) -> Iterator[Case]:
    base = form.base or {}
    for name in (member.name for member in form.members if member.required):
        rest = {key: value for key, value in base.items() if key != name}
        case = judged(form, Category.CROSS_PROPERTY, f"missing required: {name}", rest, name)
        if case.valid is False:
            yield case


def _of_member(form: Form, member: Member, writes: bool) -> Iterator[Case]:
    base, name = dict(form.base or {}), member.name
    seen: set[str] = set()
    for kind, value in edges.wrong_types(member.kinds):
        label = f"wrong type for {name} (sent {kind})"
        case = judged(form, Category.STRUCTURAL, label, {**base, name: value}, name)
        if form.base is not None and case.valid is False:
            seen.add(repr(value))
            yield case
            break  # one is what it takes to see whether types are looked at
    for kind in member.kinds:
        for label, value in _values(form, member, kind, writes):
            if repr(value) not in seen:  # typed, as JSON is: 1 is not true, and -0.0 is not 0
                seen.add(repr(value))
                made = {**base, name: value}
                yield judged(form, _OF_KIND[kind], f"{name}: {label}", made, name)
    yield from _beyond(form, member, base, seen)


def _beyond(form: Form, member: Member, base: dict[str, Any], seen: set[str]) -> Iterator[Case]:
    if form.base is None:
        return  # nothing could be proven
    name = member.name
    valid = base.get(name, ABSENT)
    if valid is ABSENT:
        valid = _part(form, member)
    found: set[str] = set()
    for label, value in edges.beyond(member.plain, valid):
        if label in found or repr(value) in seen:
            continue
        kind = _OF_KIND.get(member.kinds[0], Category.STRING)
        case = judged(form, kind, f"{name}: {label}", {**base, name: value}, name)
        if case.valid is False:
            found.add(label)
            seen.add(repr(value))
            yield case


def _values(form: Form, member: Member, kind: str, writes: bool) -> tuple[values.Named, ...]:
    if kind == "string":
        away = values.TRAVERSAL_FOR_WRITERS
        return tuple(
            (label, away if writes and value == values.TRAVERSAL else value)
            for label, value in values.STRINGS
        )
    if kind in ("integer", "number"):
        return values.NUMBERS
    if kind == "boolean":
        return values.BOOLEANS
    return values.arrays(_item(form, member)) if kind == "array" else values.objects()


def _item(form: Form, member: Member) -> Any:
    made = _made(form, member.plain.get("items", {}))
    return "item" if made is ABSENT else made


def _part(form: Form, member: Member) -> Any:
    return _made(form, member.plain)


def _made(form: Form, part: Any) -> Any:
    """A value for a part of the schema, which may refer to definitions of the whole."""
    if not isinstance(part, dict):
        return ABSENT
    root = form.schema if isinstance(form.schema, dict) else {}
    around = {key: root[key] for key in _DEFINITIONS if key in root}
    return fitting_value({**part, **around})
