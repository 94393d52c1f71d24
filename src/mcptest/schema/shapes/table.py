"""What a shape is made of, and the table of messages, `messages.yml`, as shapes.

Shapes are values, not code: `checker` turns one into functions, `hypothesis_strategies` and the
tests turn it into messages. The file says how it is to be read, and is read when the first message
is looked at.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from mcptest.core.loading import loaded_once
from mcptest.core.revision import EVERY_REVISION, HANDSHAKE_ERA, STATELESS_ERA, Revision, Window


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
