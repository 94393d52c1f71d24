"""Does a message have the shape that its revision gives it? Answers with JSON pointers.

Looked at are the params of requests and notifications, the results and the errors; the envelope
around them is for `wire.envelope`. A method that the revision does not give to the sender has no
shape, and nothing is said about it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mcptest.core.message import ABSENT, Kind, json_type
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.schema.shapes.table import (
    AnyShape,
    ArrayOf,
    Between,
    ByMember,
    MapOf,
    Obj,
    OneOrMany,
    Plain,
    Shape,
    Tagged,
    Words,
    message_table,
)

# -- Shapes made into functions, for one revision at a time --------------------------------------

MOST_PROBLEMS = 20
"""Enough to understand a message that is wrong throughout."""
_KEPT_OF_A_KEY = 200
_KEPT_OF_A_VALUE = 60


class ShapeProblem:
    """One place where a message is not what its revision says."""

    __slots__ = ("expected", "path", "value")

    def __init__(self, expected: str, value: Any, *path: str) -> None:
        self.expected = expected
        self.value = value
        self.path: list[str | int] = list(path)
        """From the innermost part to the outermost."""

    @property
    def pointer(self) -> str:
        """A JSON pointer into the message; of what is missing, where it should have been."""
        parts = (str(part)[:_KEPT_OF_A_KEY] for part in reversed(self.path))
        return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)

    @property
    def actual(self) -> str:
        return described(self.value)


Fit: TypeAlias = Callable[[Any], list[ShapeProblem] | None]


def described(value: Any) -> str:
    """The type of a value, with the value itself where it is short."""
    kind = json_type(value)
    if isinstance(value, str):
        return f"string {show(repr(value[:_KEPT_OF_A_VALUE]), _KEPT_OF_A_VALUE)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"{kind} of {value.bit_length()} bits"
    return f"{kind} {value!r}" if isinstance(value, int | float) else kind


def fit_of(shape: Shape, revision: Revision) -> Fit:
    """The function for a shape as it is in the revision."""
    make: Any = _MAKERS[type(shape)]
    made: Fit = make(shape, revision)
    return made


# -- plain values --------------------------------------------------------------------------


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


_TESTS: dict[Plain, tuple[type | None, Callable[[Any], bool]]] = {
    Plain.STRING: (str, lambda value: type(value) is str),
    Plain.INTEGER: (int, _is_integer),
    Plain.NUMBER: (int, _is_number),
    Plain.BOOLEAN: (bool, lambda value: type(value) is bool),
    Plain.OBJECT: (dict, lambda value: type(value) is dict),
    Plain.TOKEN: (int, lambda value: type(value) is str or _is_integer(value)),
    Plain.INTEGER_OR_NULL: (None, lambda value: value is None or _is_integer(value)),
    Plain.PRIMITIVE: (str, lambda value: type(value) in (str, bool) or _is_number(value)),
    Plain.ANY: (None, lambda value: True),
}
"""A Python type that is enough to fit, looked at first, and what tells of any value."""


def _testing(test: Callable[[Any], bool], expected: str) -> Fit:
    def fit(value: Any) -> list[ShapeProblem] | None:
        return None if test(value) else [ShapeProblem(expected, value)]

    return fit


def _between(shape: Between, revision: Revision) -> Fit:
    is_kind = _is_integer if shape.integer else _is_number
    noun = "an integer" if shape.integer else "a number"
    least, most = shape.least, shape.most
    if most is None:
        return _testing(lambda v: is_kind(v) and v >= least, f"{noun} of at least {least:g}")
    return _testing(
        lambda v: is_kind(v) and least <= v <= most, f"{noun} from {least:g} to {most:g}"
    )


def _words(shape: Words, revision: Revision) -> Fit:
    words = frozenset(shape.words)
    return _testing(lambda v: type(v) is str and v in words, _listed(shape.words))


def _listed(words: tuple[str, ...]) -> str:
    *most, last = [f'"{word}"' for word in words]
    return f"{', '.join(most)} or {last}" if most else last


# -- arrays and objects --------------------------------------------------------------------


def _list(shape: ArrayOf, revision: Revision) -> Fit:
    item, most = fit_of(shape.item, revision), shape.most

    def fit(value: Any) -> list[ShapeProblem] | None:
        if type(value) is not list:
            return [ShapeProblem("an array", value)]
        if most is not None and len(value) > most:
            return [ShapeProblem(f"at most {most} items", len(value))]
        return _inside(enumerate(value), item)

    return fit


def _map(shape: MapOf, revision: Revision) -> Fit:
    member = fit_of(shape.value, revision)

    def fit(value: Any) -> list[ShapeProblem] | None:
        if type(value) is not dict:
            return [ShapeProblem("an object", value)]
        return _inside(value.items(), member)

    return fit


def _inside(parts: Any, fit: Fit) -> list[ShapeProblem] | None:
    found: list[ShapeProblem] | None = None
    for key, part in parts:
        problems = fit(part)
        if problems:
            for problem in problems:
                problem.path.append(key)
            found = found + problems if found else problems
            if len(found) >= MOST_PROBLEMS:
                break
    return found


def _object(shape: Obj, revision: Revision) -> Fit:
    fields = [field for field in shape.fields if revision in field.window]
    rows = [
        (
            field.name,
            _TESTS[field.shape][0] if isinstance(field.shape, Plain) else None,
            fit_of(field.shape, revision),
            field.required,
            _summary(field.shape),
        )
        for field in fields
    ]
    if len({field.name for field in fields}) != len(fields):
        raise ValueError(f"{shape.name or 'an object'} has a member twice in {revision}")

    def fit(value: Any) -> list[ShapeProblem] | None:
        if type(value) is not dict:
            return [ShapeProblem("an object", value)]
        found: list[ShapeProblem] | None = None
        get = value.get
        for name, sure, member_fit, required, expected in rows:
            member = get(name, ABSENT)
            if type(member) is sure:
                continue
            if member is ABSENT:
                if not required:
                    continue
                problems = [ShapeProblem(expected, ABSENT, name)]
            else:
                inner = member_fit(member)
                if inner is None:
                    continue
                problems = inner
                for problem in problems:
                    problem.path.append(name)
            found = found + problems if found else problems
        return found

    return fit


def _summary(shape: Shape) -> str:
    """What a missing member should have been."""
    if isinstance(shape, Plain):
        return shape.value
    if isinstance(shape, Words):
        return _listed(shape.words)
    if isinstance(shape, Between):
        return "an integer" if shape.integer else "a number"
    return "an array" if isinstance(shape, ArrayOf) else "an object"


# -- choices -------------------------------------------------------------------------------


def _tagged(shape: Tagged, revision: Revision) -> Fit:
    known = [case for case in shape.cases if revision in case.window]
    cases = {case.sign: fit_of(case.shape, revision) for case in known}
    expected = _listed(tuple(cases))
    untagged = fit_of(shape.untagged, revision) if shape.untagged is not None else None
    other = fit_of(shape.other, revision) if shape.other is not None else None
    member = shape.member

    def fit(value: Any) -> list[ShapeProblem] | None:
        if type(value) is not dict:
            return [ShapeProblem("an object", value)]
        tag = value.get(member, ABSENT)
        chosen = cases.get(tag) if type(tag) is str else None
        if chosen is None:
            is_missing = tag is ABSENT or (other is not None and type(tag) is not str)
            chosen = untagged if is_missing else other
        return chosen(value) if chosen else [ShapeProblem(expected, tag, member)]

    return fit


def _by_member(shape: ByMember, revision: Revision) -> Fit:
    cases = [
        (case.sign, case.lacking, fit_of(case.shape, revision))
        for case in shape.cases
        if revision in case.window
    ]
    otherwise = fit_of(shape.otherwise, revision)

    def fit(value: Any) -> list[ShapeProblem] | None:
        if type(value) is dict:
            for member, lacking, chosen in cases:
                if member in value and not (lacking and lacking in value):
                    return chosen(value)
        return otherwise(value)

    return fit


def _any_of(shape: AnyShape, revision: Revision) -> Fit:
    alternatives = [(case.sign, fit_of(case.shape, revision)) for case in shape.alternatives]

    def fit(value: Any) -> list[ShapeProblem] | None:
        refused: list[tuple[bool, int, list[ShapeProblem]]] = []
        for sign, one in alternatives:
            problems = one(value)
            if problems is None:
                return None
            is_meant = type(value) is dict and sign in value
            refused.append((not is_meant, len(problems), problems))
        return min(refused, key=lambda each: each[:2])[2]

    return fit


def _one_or_many(shape: OneOrMany, revision: Revision) -> Fit:
    one = fit_of(shape.item, revision)
    many = fit_of(ArrayOf(shape.item), revision)

    def fit(value: Any) -> list[ShapeProblem] | None:
        return many(value) if type(value) is list else one(value)

    return fit


_MAKERS: dict[type, Any] = {
    Plain: lambda shape, revision: _testing(_TESTS[shape][1], shape.value),
    Between: _between,
    Words: _words,
    ArrayOf: _list,
    MapOf: _map,
    Obj: _object,
    Tagged: _tagged,
    ByMember: _by_member,
    AnyShape: _any_of,
    OneOrMany: _one_or_many,
}


# -- Does a message have the shape that its revision gives it? -----------------------------------


def problems_if_known(
    message: Any, kind: Kind, sender: str, revision: Revision, request_method: str | None = None
) -> list[ShapeProblem] | None:
    """Everything wrong with the shape of one message, at most twenty places of it; None for a
    message that has no shape to be held to.

    `request_method` is the method of the request that a result answers.
    """
    if type(message) is not dict:
        return None
    # What this side may send in this revision, by method or error code; made once.
    # Members of an enumeration are hashed in Python; their identity is as good and faster.
    key = (id(kind), sender, id(revision))
    fits = _KNOWN.get(key)
    if fits is None:
        shapes = _shapes(kind, sender, revision)
        fits = _KNOWN[key] = {name: fit_of(shape, revision) for name, shape in shapes.items()}
    fit: Fit | None
    if kind is Kind.ERROR:
        error = message.get("error")
        code = error.get("code") if type(error) is dict else None
        fit = fits.get(code if type(code) is int else None, fits[None])
    else:
        method = request_method if kind is Kind.RESULT else message.get("method")
        fit = fits.get(method) if type(method) is str else None
    return None if fit is None else (fit(message) or [])[:MOST_PROBLEMS]


_KNOWN: dict[tuple[int, str, int], dict[Any, Fit]] = {}


def _shapes(kind: Kind, sender: str, revision: Revision) -> dict[Any, Obj]:
    table = message_table()
    if kind is Kind.ERROR:
        return {None: table.any_error, **table.errors}
    if kind is Kind.RESULT:
        asker = "server" if sender == "client" else "client"
        asked = (row for row in table.requests if row.is_sent_by(asker, revision))
        return {row.method: row.answer for row in asked}
    rows = {Kind.REQUEST: table.requests, Kind.NOTIFICATION: table.notifications}.get(kind, ())
    return {row.method: row.message for row in rows if row.is_sent_by(sender, revision)}
