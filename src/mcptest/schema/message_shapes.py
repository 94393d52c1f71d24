"""The shape of every message in every revision, and whether a message has it.

`messages.yml` is the one table, with a revision window for each member; it says how it is to be
read, and is read when the first message is looked at. Shapes are values, not code: here they are
made into functions that answer with JSON pointers, `hypothesis_strategies` and the tests make
messages of them.

Looked at are the params of requests and notifications, the results and the errors; the envelope
around them is for `wire.envelope`. A method that the revision does not give to the sender has no
shape, and nothing is said about it here.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from mcptest.core.loading import loaded_once
from mcptest.core.message import ABSENT, Kind, json_type
from mcptest.core.revision import EVERY_REVISION, HANDSHAKE_ERA, STATELESS_ERA, Revision, Window
from mcptest.core.safe_text import show


class Plain(enum.Enum):
    """A type without inner structure; the value is how a person is told what was expected."""

    STRING = "a string"
    INTEGER = "an integer"
    """As JSON Schema counts: 1.0 is one."""
    NUMBER = "a number"
    BOOLEAN = "a boolean"
    OBJECT = "an object"
    TOKEN = "a string or an integer"
    INTEGER_OR_NULL = "an integer or null"
    PRIMITIVE = "a string, a number or a boolean"
    ANY = "any JSON value"


class Between(msgspec.Struct, frozen=True):
    """A number within bounds, both included."""

    least: float
    most: float | None = None
    integer: bool = False


class Words(msgspec.Struct, frozen=True):
    """One of these strings."""

    words: tuple[str, ...]


class ArrayOf(msgspec.Struct, frozen=True):
    item: Shape
    most: int | None = None


class OneOrMany(msgspec.Struct, frozen=True):
    """A value or an array of such values."""

    item: Shape


class MapOf(msgspec.Struct, frozen=True):
    """An object whose keys its sender chooses."""

    value: Shape


class ShapeField(msgspec.Struct, frozen=True):
    """One member of an object, in the revisions where it means something.

    Outside of its window it is a member like any other that nobody knows. A member whose type
    changed has a row for each type. null is a value, and not the same as leaving a member out.
    """

    name: str
    shape: Shape
    required: bool = True
    window: Window = EVERY_REVISION


class Obj(msgspec.Struct, frozen=True):
    """An object with known members; `name` is what the specification calls it, if it does."""

    name: str
    fields: tuple[ShapeField, ...]


class Case(msgspec.Struct, frozen=True):
    """What is chosen by a tag, or where a member is there and another is not."""

    sign: str
    shape: Shape
    window: Window = EVERY_REVISION
    lacking: str = ""


class Tagged(msgspec.Struct, frozen=True):
    """An object whose shape is told by the value of one of its members.

    Without `untagged` the tag must be there, without `other` it must be one of the known ones.
    """

    member: str
    cases: tuple[Case, ...]
    untagged: Shape | None = None
    other: Shape | None = None


class ByMember(msgspec.Struct, frozen=True):
    """An object whose shape is told by which members it has; the first case that fits counts."""

    cases: tuple[Case, ...]
    otherwise: Shape


class AnyShape(msgspec.Struct, frozen=True):
    """At least one shape fits. Where none does, the one whose `sign` is a member is explained."""

    alternatives: tuple[Case, ...]


Shape: TypeAlias = (
    Plain | Between | Words | ArrayOf | MapOf | Obj | Tagged | ByMember | AnyShape | OneOrMany
)


# -- the table ----------------------------------------------------------------------------------

_WINDOW = re.compile(r"(?:always|(.*?)) ?(?:since (\S+))? ?(?:until (\S+))?")
_MANY = re.compile(r"(.+)\[(\d*)\]")
_BOUNDED = re.compile(r"(number|integer) (?:of at least|from) (\d+)(?: to (\d+))?")
_BEFORE_TASKS = Window(until=Revision.V2025_11_25)
_WITH_TASKS = Window(Revision.V2025_11_25, Revision.V2026_07_28)


class MethodShapes(msgspec.Struct, frozen=True):
    """A request and its result, or a notification. The shapes are those of whole messages."""

    method: str
    message: Obj
    answer: Obj
    """Of a notification: without members."""
    by_client: Window | None = None
    by_server: Window | None = None

    def is_sent_by(self, sender: str, revision: Revision) -> bool:
        window = self.by_client if sender == "client" else self.by_server
        return window is not None and revision in window


class _Method(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the file."""

    client: str = ""
    server: str = ""
    params: str = ""
    optional_params: str = msgspec.field(name="params?", default="")
    result: str = ""
    task_without: str = ""


class _Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    member: str = ""
    cases: dict[str, str] = {}
    untagged: str = ""
    holding: dict[str, str] = {}
    otherwise: str = ""
    any: dict[str, str] = {}
    """Each alternative with its sign."""


class _MessageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: dict[str, str]
    objects: dict[str, dict[str, Any]]
    choices: dict[str, _Choice]
    requests: dict[str, _Method]
    notifications: dict[str, _Method]
    errors: dict[int, str]


@loaded_once
def message_table() -> MessageTable:
    return MessageTable(Path(__file__).with_name("messages.yml").read_text("utf-8"))


def read_tables(text: str) -> dict[str, Any]:
    """Tables of texts, each within the one that is indented less: all the YAML that the file has.
    To import a reader of all of YAML takes longer than to read it."""
    root: dict[str, Any] = {}
    levels, last = [(0, root)], ""
    for line in text.splitlines():
        key, _, value = line.partition(" #")[0].partition(":")
        name = key.strip()
        if not name or name.startswith("#"):
            continue
        depth = key.index(name)
        if depth > levels[-1][0]:
            inner: dict[str, Any] = {}
            levels[-1][1][last] = inner
            levels.append((depth, inner))
        while depth < levels[-1][0]:
            levels.pop()
        levels[-1][1][name], last = value.strip(), name
    return root


class MessageTable:
    """Every message that there is, and every type by its name."""

    def __init__(self, text: str) -> None:
        self._file = msgspec.convert(read_tables(text), _MessageFile, strict=False)
        self._types: dict[str, Shape] = {}
        self.requests = tuple(self._request(*row) for row in self._file.requests.items())
        self.notifications = tuple(
            self._notification(*row) for row in self._file.notifications.items()
        )
        self.any_error = self._error("data?", "any")
        self.errors = {code: self._error("data", data) for code, data in self._file.errors.items()}

    def type(self, name: str) -> Shape:
        """KeyError when there is none of that name."""
        if name not in self._types:
            self._types[name] = self._made(name)
        return self._types[name]

    def _made(self, name: str) -> Shape:
        if name in self._file.words:
            return Words(tuple(self._file.words[name].split(", ")))
        if name in self._file.objects:
            return Obj(name, tuple(self._fields(self._file.objects[name])))
        one = self._file.choices[name]
        if one.any:
            return AnyShape(
                tuple(Case(sign, self._written(text)) for text, sign in one.any.items())
            )
        if one.holding:
            return ByMember(tuple(self._cases(one.holding)), self._written(one.otherwise))
        untagged = self._written(one.untagged) if one.untagged else None
        return Tagged(one.member, tuple(self._cases(one.cases)), untagged)

    def _cases(self, listed: Mapping[str, str]) -> Iterator[Case]:
        for sign, text in listed.items():
            for shape, window in self._by_window(text):
                yield Case(sign, shape, window)

    def _fields(self, members: Mapping[str, Any]) -> Iterator[ShapeField]:
        for name, written in members.items():
            plain, required = name.removesuffix("?"), not name.endswith("?")
            if name.startswith("+"):
                yield from self._fields(self._file.objects[name[1:]])
            elif isinstance(written, dict):
                yield ShapeField(plain, Obj("", tuple(self._fields(written))), required)
            else:
                for shape, window in self._by_window(written):
                    yield ShapeField(plain, shape, required, window)

    def _by_window(self, text: str) -> Iterator[tuple[Shape, Window]]:
        """`T until 2025-11-25; U since 2025-11-25`."""
        for part in text.split("; "):
            written, window = _read_window(part)
            yield self._written(written), window

    def _written(self, text: str) -> Shape:
        """A type as it is written down."""
        if text.upper() in Plain.__members__:
            return Plain[text.upper()]
        if text.startswith("map of "):
            return MapOf(self._written(text.removeprefix("map of ")))
        if text.startswith("one or many "):
            return OneOrMany(self._written(text.removeprefix("one or many ")))
        if many := _MANY.fullmatch(text):
            return ArrayOf(self._written(many[1]), int(many[2]) if many[2] else None)
        if bounds := _BOUNDED.fullmatch(text):
            most = float(bounds[3]) if bounds[3] else None
            return Between(float(bounds[2]), most, bounds[1] == "integer")
        return self.type(text)

    # -- whole messages --------------------------------------------------------------------

    def _request(self, method: str, row: _Method) -> MethodShapes:
        fields = list(self._fields({"params": row.params})) if row.params else []
        if row.optional_params:
            params = self._written(row.optional_params)
            # They can be left out until they have to name the version on every request.
            fields.append(ShapeField("params", params, False, HANDSHAKE_ERA))
            fields.append(ShapeField("params", params, True, STATELESS_ERA))
        return _method(method, row, fields, self._answers(self.type(row.result), row.task_without))

    def _notification(self, method: str, row: _Method) -> MethodShapes:
        name, params = ("params", row.params) if row.params else ("params?", row.optional_params)
        return _method(method, row, list(self._fields({name: params})), [])

    def _answers(self, complete: Shape, task_without: str) -> list[ShapeField]:
        """An answer with this result.

        From 2026-07-28 on `resultType` tells what it is. Whether a method may ask for input is for
        a rule to say; an extension's type is judged only by what all results have.
        """
        asking = Case("input_required", self.type("InputRequiredResult"))
        cases = (Case("complete", complete), asking)
        by_type = Tagged("resultType", cases, untagged=complete, other=self.type("Result"))
        stateless = ShapeField("result", by_type, window=STATELESS_ERA)
        if not task_without:
            return [ShapeField("result", complete, window=HANDSHAKE_ERA), stateless]
        task = Case("task", self.type("CreateTaskResult"), lacking=task_without)
        or_task = ShapeField("result", ByMember((task,), complete), window=_WITH_TASKS)
        return [ShapeField("result", complete, window=_BEFORE_TASKS), or_task, stateless]

    def _error(self, data: str, written: str) -> Obj:
        members = {"code": "integer", "message": "string", data: written}
        error = Obj("Error", tuple(self._fields(members)))
        return Obj("", (ShapeField("error", error),))


def _method(
    method: str, row: _Method, fields: list[ShapeField], answer: list[ShapeField]
) -> MethodShapes:
    by_client, by_server = (
        _read_window(text)[1] if text else None for text in (row.client, row.server)
    )
    return MethodShapes(
        method, Obj("", tuple(fields)), Obj("", tuple(answer)), by_client, by_server
    )


def _read_window(text: str) -> tuple[str, Window]:
    """What stands before `since` and `until`, and the window that these name."""
    found = _WINDOW.fullmatch(text)
    assert found is not None  # the first part takes anything
    since, until = (Revision(one) if one else None for one in found.group(2, 3))
    return found[1] or "", Window(since or EVERY_REVISION.since, until)


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


def shape_problems(
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
