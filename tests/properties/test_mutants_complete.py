"""The contract of the mutants: no property without a bug, and no bug without a property."""

from __future__ import annotations

import pytest

from mcptest.probe.properties.property_catalogue import PROPERTIES
from tests.properties.every_fault import BUGS
from tests.properties.mutants import hunt

RELATIONS = [one.name for one in PROPERTIES.values() if one.relation]


@pytest.mark.parametrize("name", PROPERTIES)
def test_every_property_has_a_bug_that_it_finds(name: str) -> None:
    assert [bug.name for bug in BUGS.values() if bug.found_by == name]


def test_every_bug_is_for_a_property_that_there_is() -> None:
    assert {bug.found_by for bug in BUGS.values()} <= PROPERTIES.keys()


@pytest.mark.parametrize("name", RELATIONS)
def test_a_bug_of_a_relation_is_told_as_one(name: str) -> None:
    assert {bug.rules for bug in BUGS.values() if bug.found_by == name} == {("relation",)}


def test_a_tool_that_wrongly_claims_to_be_idempotent_is_found_out() -> None:
    found = hunt(BUGS["counting-is-idempotent"])
    assert found.found is not None
    assert found.is_small
    assert "demo://counter" in found.found.message
