"""Hypothesis strategies: values that fit a JSON Schema, and values of the shape of a message.

The only module of this package that imports Hypothesis, which is an extra.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.core.message import ABSENT
from mcptest.core.revision import Revision
from mcptest.schema.combinations import Contradiction, TooLarge
from mcptest.schema.generator import Generator, generator_of
from mcptest.schema.message_shapes import (
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
)

LETTERS: Final = st.characters(exclude_categories=["Cs"])
"""What can be written as UTF-8. Hypothesis has the same as its default, by trying all of Unicode:
two seconds where it must not keep what it has found out."""
SAFEST_INTEGER: Final = 2**53 - 1
_FAR: Final = 10**6
_TEXT_ROOM: Final = 12
_TEXT_LONG: Final = 60
"""A text that must be longer is filled up: its length is what matters, not its letters."""
_TRIES: Final = 8
_BOOLEANS: Final = st.booleans()

# The same strategy for the same question: to build one takes longer than to draw from it.
_integers: Final = functools.lru_cache(maxsize=1_024)(st.integers)
_floats: Final = functools.lru_cache(maxsize=256)(st.floats)


@functools.lru_cache(maxsize=1_024)
def _texts(letters: str, least: int, most: int) -> SearchStrategy[str]:
    if least == most == 1 and letters:
        return st.sampled_from(letters)
    return st.text(letters or LETTERS, min_size=least, max_size=most)


class Drawn:
    """Choices that Hypothesis makes: what is chosen is drawn, and can be shrunk."""

    hints = False
    checks = True
    tries = 3

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def index(self, count: int) -> int:
        return self._draw(_integers(0, count - 1))

    def integer(self, low: int | None, high: int | None) -> int:
        """One that every JSON reader reads alike, where the bounds leave that room."""
        if low is None:
            low = -SAFEST_INTEGER if high is None or high > -SAFEST_INTEGER else high - _FAR
        if high is None:
            high = max(SAFEST_INTEGER, low + _FAR)
        return self._draw(_integers(low, high))

    def number(self, low: float | None, high: float | None, *, above: bool, below: bool) -> float:
        return self._draw(
            _floats(
                low,
                high,
                allow_nan=False,
                allow_infinity=False,
                exclude_min=above and low is not None,
                exclude_max=below and high is not None,
            )
        )

    def text(self, letters: str, least: int, most: int, name: str = "") -> str:
        if least > _TEXT_LONG and not letters:
            return self._draw(_texts("", 0, _TEXT_ROOM)).ljust(least, "x")
        return self._draw(_texts(letters, least, min(most, least + _TEXT_ROOM)))

    def more(self) -> bool:
        return self._draw(_BOOLEANS)


def fitting_values(schema: Any) -> SearchStrategy[Any]:
    """Values that a JSON Schema accepts; nothing when none was found or it can't be used."""
    generator = generator_of(schema)
    if generator is None:
        return st.nothing()
    plainest = generator.value()
    if plainest is ABSENT:
        return st.nothing()
    return _fitting(generator, msgspec.json.encode(plainest))


@st.composite
def _fitting(draw: DrawFn, generator: Generator, plainest: bytes) -> Any:
    choices = Drawn(draw)
    for _ in range(_TRIES):
        try:
            value = generator.make(choices)
        except (Contradiction, TooLarge, RecursionError):
            break
        if generator.compiled.fits(value):
            return value
    return msgspec.json.decode(plainest)


# -- values of the shape that a revision gives to a part of a message ----------------------------

Members: TypeAlias = Mapping[str, SearchStrategy[Any] | None]
"""What stands in for the members of these names, wherever they are; None leaves one out."""

TEXTS: Final = st.text(LETTERS, max_size=12)
INTEGERS: Final = st.integers(-SAFEST_INTEGER, SAFEST_INTEGER)
NUMBERS: Final = INTEGERS | st.floats(allow_nan=False, allow_infinity=False)
# A key of `_meta` has a grammar; these letters are within it, wherever the object stands.
KEYS: Final = st.text(string.ascii_lowercase, min_size=1, max_size=6)
SCALARS: Final = st.none() | st.booleans() | INTEGERS | TEXTS
OBJECTS: Final = st.dictionaries(KEYS, SCALARS, max_size=2)
_PLAIN: Final[Mapping[Plain, SearchStrategy[Any]]] = {
    Plain.STRING: TEXTS,
    Plain.INTEGER: INTEGERS,
    Plain.NUMBER: NUMBERS,
    Plain.BOOLEAN: st.booleans(),
    Plain.OBJECT: OBJECTS,
    Plain.TOKEN: INTEGERS | TEXTS,
    Plain.INTEGER_OR_NULL: INTEGERS | st.none(),
    Plain.PRIMITIVE: TEXTS | NUMBERS | st.booleans(),
    Plain.ANY: SCALARS | OBJECTS | st.lists(SCALARS, max_size=2),
}
_FEW: Final = 2


def shaped(shape: Shape, revision: Revision, members: Members) -> SearchStrategy[Any]:
    """Every value that is drawn has the shape in the revision."""
    if isinstance(shape, Plain):
        return _PLAIN[shape]
    if isinstance(shape, Words):
        return st.sampled_from(shape.words)
    if isinstance(shape, Between):
        most = SAFEST_INTEGER if shape.most is None else shape.most
        whole = st.integers(int(shape.least), int(most))
        return whole if shape.integer else whole | st.floats(shape.least, most)
    if isinstance(shape, ArrayOf):
        return st.lists(shaped(shape.item, revision, members), max_size=_FEW)
    if isinstance(shape, MapOf):
        return st.dictionaries(KEYS, shaped(shape.value, revision, members), max_size=_FEW)
    if isinstance(shape, OneOrMany):
        one = shaped(shape.item, revision, members)
        return one | st.lists(one, max_size=_FEW)
    if isinstance(shape, AnyShape):
        return st.one_of([shaped(one.shape, revision, members) for one in shape.alternatives])
    if isinstance(shape, Tagged):
        return st.one_of(
            [
                st.tuples(
                    shaped(case.shape, revision, members), st.just({shape.member: case.sign})
                ).map(lambda parts: {**parts[0], **parts[1]})
                for case in shape.cases
                if revision in case.window
            ]
        )
    if isinstance(shape, ByMember):
        held = [case.shape for case in shape.cases if revision in case.window]
        return st.one_of([shaped(one, revision, members) for one in (shape.otherwise, *held)])
    return _object(shape, revision, members)


@st.composite
def objects_of(
    draw: DrawFn,
    required: Mapping[str, SearchStrategy[Any]],
    optional: Mapping[str, SearchStrategy[Any]],
) -> dict[str, Any]:
    """Like `fixed_dictionaries`, in a fixed order and with one choice for each optional member."""
    made = {name: draw(one) for name, one in required.items()}
    for name, one in optional.items():
        if draw(_BOOLEANS):
            made[name] = draw(one)
    return made


def _object(shape: Obj, revision: Revision, members: Members) -> SearchStrategy[Any]:
    required: dict[str, SearchStrategy[Any]] = {}
    optional: dict[str, SearchStrategy[Any]] = {}
    for field in shape.fields:
        if revision not in field.window:
            continue
        given = members.get(field.name, ABSENT)
        if given is None:
            continue
        strategy = shaped(field.shape, revision, members) if given is ABSENT else given
        (required if field.required else optional)[field.name] = strategy
    return objects_of(required, optional)
