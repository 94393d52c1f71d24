"""docs/property-precision.md tells of every bug there is, and of nothing but success.

`python -m tests.properties.precision` writes it, which takes minutes: whoever adds a bug or a pair
runs it, or this fails.
"""

from __future__ import annotations

import re

from mcptest.probe.properties.property_catalogue import PROPERTIES
from tests.properties.every_fault import BUGS
from tests.properties.healthy import cases
from tests.properties.precision import PAGE, _parts_of

ROW = re.compile(r"^\| (.*) \|$", re.MULTILINE)


def rows(part: str) -> list[list[str]]:
    text = _parts_of(PAGE.read_text(encoding="utf-8"))[part]
    return [found[1].split(" | ") for found in ROW.finditer(text)][1:]


def test_every_bug_was_found_and_made_as_small_as_it_can_be() -> None:
    found = {row[0].strip("`"): row for row in rows("mutants")}
    assert found.keys() == BUGS.keys()
    for name, row in found.items():
        assert row[2] == BUGS[name].found_by
        messages, least = map(int, row[6].split(" of "))
        assert (messages <= least, least) == (True, BUGS[name].least), name
        assert float(row[7].split()[0]) <= 60.0, name


def test_the_healthy_demo_held_ten_thousand_examples_everywhere() -> None:
    held = rows("healthy")
    assert [(row[0], row[1]) for row in held] == [(one.revision.value, one.way) for one in cases()]
    assert all(len(row) == len(PROPERTIES) + 4 for row in held)
    assert sum(int(row[-2]) for row in held) >= 10_000
    assert {row[-1] for row in held} == {"0"}
