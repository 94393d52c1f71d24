"""Values of the shape that a revision gives to a part of a message."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.property.drawn import LETTERS
from mcptest.model.message import ABSENT
from mcptest.model.revision import Revision
from mcptest.schema.shape_vocabulary import (
    AnyOf,
    Between,
    ByMember,
    ListOf,
    MapOf,
    Obj,
    OneOrMany,
    Plain,
    Shape,
    Tagged,
    Words,
)

Members: TypeAlias = Mapping[str, SearchStrategy[Any] | None]
"""What stands in for the members of these names, wherever they are; None leaves one out."""

SAFEST_INTEGER: Final = 2**53 - 1
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
_BOOLEANS: Final = st.booleans()
_FEW: Final = 2


def shaped(shape: Shape, revision: Revision, members: Members) -> SearchStrategy[Any]:
    """Every value that is drawn has the shape in the revision."""
    if isinstance(shape, Plain):
        return _PLAIN[shape]
    if isinstance(shape, Words):
        return st.sampled_from(shape.words)
    if isinstance(shape, Between):
        return _between(shape)
    if isinstance(shape, ListOf):
        return st.lists(shaped(shape.item, revision, members), max_size=_FEW)
    if isinstance(shape, MapOf):
        return st.dictionaries(KEYS, shaped(shape.value, revision, members), max_size=_FEW)
    if isinstance(shape, OneOrMany):
        one = shaped(shape.item, revision, members)
        return one | st.lists(one, max_size=_FEW)
    if isinstance(shape, AnyOf):
        return st.one_of([shaped(one, revision, members) for _, one in shape.alternatives])
    if isinstance(shape, Tagged):
        return st.one_of(_tagged(shape, revision, members))
    if isinstance(shape, ByMember):
        held = [case.shape for case in shape.cases if revision in case.window]
        return st.one_of([shaped(one, revision, members) for one in (shape.otherwise, *held)])
    return _object(shape, revision, members)


def objects_of(
    required: Mapping[str, SearchStrategy[Any]], optional: Mapping[str, SearchStrategy[Any]]
) -> SearchStrategy[dict[str, Any]]:
    """Like `fixed_dictionaries`, in a fixed order and with one choice for each optional member."""
    return _objects_of(tuple(required.items()), tuple(optional.items()))


@st.composite
def _objects_of(
    draw: DrawFn,
    required: tuple[tuple[str, SearchStrategy[Any]], ...],
    optional: tuple[tuple[str, SearchStrategy[Any]], ...],
) -> dict[str, Any]:
    made = {name: draw(one) for name, one in required}
    for name, one in optional:
        if draw(_BOOLEANS):
            made[name] = draw(one)
    return made


def _between(shape: Between) -> SearchStrategy[Any]:
    most = SAFEST_INTEGER if shape.most is None else shape.most
    whole = st.integers(int(shape.least), int(most))
    return whole if shape.integer else whole | st.floats(shape.least, most)


def _tagged(shape: Tagged, revision: Revision, members: Members) -> list[SearchStrategy[Any]]:
    return [
        st.tuples(shaped(case.shape, revision, members), st.just({shape.member: case.tag})).map(
            lambda parts: {**parts[0], **parts[1]}
        )
        for case in shape.cases
        if revision in case.window
    ]


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
