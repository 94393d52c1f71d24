"""Our message shapes against the official schema: every sort, all examples, thousands of messages.

The official files are not part of the project; where they are absent this is skipped.
"""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.message import Kind
from mcptest.core.revision import Revision
from mcptest.schema.message_shapes import message_table, shape_problems
from tests.support.official_schema import (
    DATED,
    ERROR_NAMES,
    FOLDER,
    FromSchema,
    Sort,
    definitions,
    judging,
    sorts_of,
    validator,
)
from tests.support.shape_differences import (
    DIFFERENCES,
    ELSEWHERE,
    Difference,
    OutsideShapes,
    Witness,
)
from tests.support.shape_generation import broken, each_member_changed, enveloped, sample

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the official schema files are not beside the repository"
)
TABLE = message_table()
OF_EACH_SORT = 31
"""From each of the two sources; each is then broken once or twice."""
AT_LEAST = 20_000
FULL_ONES = 20
"""Messages with nothing left out, of each sort; there each member is changed in turn."""


def our_verdict(sort: Sort, revision: Revision, message: Any) -> bool:
    return not shape_problems(message, sort.kind, sort.sender, revision, sort.method or None)


def without_task(schema: Any) -> Any:
    """The changed definitions choose between a result and a task by themselves."""
    return json.loads(json.dumps(schema).replace(', {"$ref": "#/$defs/CreateTaskResult"}', ""))


@cache
def oracle(sort: Sort, revision: Revision, changed: bool = True) -> Any:
    known = definitions(revision)
    for difference in DIFFERENCES if changed else ():
        if revision in difference.revisions:
            difference.change(known)
    schema = judging(sort, revision)
    if changed and sort.kind is Kind.RESULT and "CreateTaskResult" in known:
        schema = json.loads(
            json.dumps(schema).replace(', {"$ref": "#/$defs/CreateTaskResult"}', "")
        )
    return validator(schema, known)


def our_content(
    sort: Sort, revision: Revision, chance: random.Random, full: bool = False
) -> dict[str, Any]:
    if sort.kind is Kind.ERROR:
        shape = TABLE.errors.get(sort.code, TABLE.any_error)
        made: dict[str, Any] = sample(shape, revision, chance, full)
        made["error"]["code"] = sort.code
        return made
    if sort.kind is Kind.NOTIFICATION:
        shape = next(row.message for row in TABLE.notifications if row.method == sort.method)
    else:
        row = next(row for row in TABLE.requests if row.method == sort.method)
        shape = row.message if sort.kind is Kind.REQUEST else row.answer
    content: dict[str, Any] = sample(shape, revision, chance, full)
    return content


@cache
def their_schema(sort: Sort, revision: Revision) -> tuple[dict[str, Any], dict[str, Any]]:
    if sort.kind is Kind.ERROR and sort.code in ERROR_NAMES:
        return {"$ref": f"#/$defs/{ERROR_NAMES[sort.code]}"}, definitions(revision)
    return judging(sort, revision), definitions(revision)


def their_message(sort: Sort, revision: Revision, chance: random.Random) -> dict[str, Any]:
    schema, known = their_schema(sort, revision)
    return enveloped(sort.kind, sort.method, FromSchema(known, chance).value(schema))


# -- the same sorts of messages ------------------------------------------------------------


@pytest.mark.parametrize("revision", DATED, ids=str)
def test_each_side_sends_what_the_official_schema_lets_it_send(revision: Revision) -> None:
    ours = []
    for side, other in (("client", "server"), ("server", "client")):
        methods = [row.method for row in TABLE.requests if row.is_sent_by(side, revision)]
        ours += [Sort(Kind.REQUEST, side, method) for method in methods]
        ours += [Sort(Kind.RESULT, other, method) for method in methods]
        notices = [row.method for row in TABLE.notifications if row.is_sent_by(side, revision)]
        ours += [Sort(Kind.NOTIFICATION, side, method) for method in notices]
    theirs = [sort for sort in sorts_of(revision) if sort.kind is not Kind.ERROR]
    assert sorted(map(str, ours)) == sorted(map(str, theirs))


# -- thousands of messages -----------------------------------------------------------------


def messages_of(sort: Sort, revision: Revision) -> list[dict[str, Any]]:
    chance = random.Random(f"{revision} {sort}")
    made = []
    for _ in range(OF_EACH_SORT):
        own = enveloped(sort.kind, sort.method, our_content(sort, revision, chance))
        theirs = their_message(sort, revision, chance)
        made += [own, broken(own, chance), broken(own, chance)]
        made += [theirs, broken(theirs, chance), broken(theirs, chance)]
    return made


@pytest.mark.parametrize("revision", DATED, ids=str)
def test_we_agree_with_the_official_schema_on_thousands_of_messages(revision: Revision) -> None:
    accepted = refused = 0
    for sort in sorts_of(revision):
        official = oracle(sort, revision)
        for message in messages_of(sort, revision):
            ours, theirs = our_verdict(sort, revision, message), official.is_valid(message)
            assert ours == theirs, f"{revision} {sort}: {json.dumps(message)}"
            accepted, refused = accepted + ours, refused + (not ours)
    assert min(accepted, refused) > (accepted + refused) / 5, "one-sided messages prove little"


@pytest.mark.parametrize("revision", DATED, ids=str)
def test_we_agree_on_every_single_member(revision: Revision) -> None:
    chance = random.Random(str(revision))
    for sort in sorts_of(revision):
        official = oracle(sort, revision)
        for _ in range(FULL_ONES):
            message = enveloped(sort.kind, sort.method, our_content(sort, revision, chance, True))
            for changed in each_member_changed(message):
                ours = our_verdict(sort, revision, changed)
                assert ours == official.is_valid(changed), f"{sort}: {json.dumps(changed)}"


def test_they_are_at_least_twenty_thousand() -> None:
    sorts = sum(len(sorts_of(revision)) for revision in DATED)
    assert sorts * OF_EACH_SORT * 6 >= AT_LEAST


@pytest.mark.parametrize("revision", DATED, ids=str)
def test_what_is_made_from_our_table_fits_it(revision: Revision) -> None:
    chance = random.Random(str(revision))
    for sort in sorts_of(revision):
        for _ in range(5):
            message = enveloped(sort.kind, sort.method, our_content(sort, revision, chance))
            assert our_verdict(sort, revision, message), f"{sort}: {json.dumps(message)}"


# -- differences ---------------------------------------------------------------------------

WITNESSES = [(difference, each) for difference in DIFFERENCES for each in difference.witnesses]


@pytest.mark.parametrize(
    ("difference", "witness"), WITNESSES, ids=[f"{d.name}-{w.revision}" for d, w in WITNESSES]
)
def test_a_difference_is_there_and_is_what_we_mean(
    difference: Difference, witness: Witness
) -> None:
    sort, revision = witness.sort, witness.revision
    message = enveloped(sort.kind, sort.method, witness.content)
    assert revision in difference.revisions
    assert our_verdict(sort, revision, message) is witness.we_accept
    assert oracle(sort, revision).is_valid(message) is witness.we_accept
    assert oracle(sort, revision, changed=False).is_valid(message) is not witness.we_accept


@pytest.mark.parametrize("row", ELSEWHERE, ids=[row.name for row in ELSEWHERE])
def test_what_is_judged_elsewhere_is_no_problem_of_shape(row: OutsideShapes) -> None:
    official = validator(
        judging(row.sort, row.revision), definitions(row.revision), formats=row.formats
    )
    assert official.is_valid(row.message) is row.official_accepts
    assert our_verdict(row.sort, row.revision, row.message)


def test_every_difference_is_in_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs" / "compliance" / "message-shapes.md"
    text = page.read_text()
    missing = [row.name for row in (*DIFFERENCES, *ELSEWHERE) if row.name not in text]
    assert missing == []
