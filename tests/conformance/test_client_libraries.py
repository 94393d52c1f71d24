"""Captures of real client libraries, judged again without them; every verdict is explained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mcptest.core.scenario_outcome import CheckStatus
from tests.peers.clients import page
from tests.peers.clients.findings import findings, verdicts
from tests.peers.clients.libraries import LIBRARIES, Library
from tests.peers.clients.record import CLIENT_EXIT, TRANSPORTS, VERDICTS, judged

STORED = json.loads(VERDICTS.read_text())


def test_at_least_ten_libraries_were_put_through_the_scenarios_over_both_transports() -> None:
    assert set(STORED) <= {one.name for one in LIBRARIES}
    assert len(STORED) >= 10
    for found in STORED.values():
        for transport in TRANSPORTS:
            rows = found[transport].values()
            assert sum(row["passed"] for row in rows), "nothing was seen of it"


RECORDED = [one for one in LIBRARIES if one.name in STORED]


@pytest.mark.parametrize("library", RECORDED, ids=lambda one: one.name)
def test_a_capture_is_judged_as_the_client_was(library: Library) -> None:
    stored = STORED[library.name]
    for result in judged(library, stored):
        row = stored[result.transport][result.scenario]
        where = (result.transport, result.scenario)
        assert str(result.revision) == row["revision"], where
        for kind, status in (("failed", CheckStatus.FAILURE), ("warned", CheckStatus.WARNING)):
            found = {one.id: one.message for one in result.checks if one.status is status}
            assert set(found) == set(row.get(kind, {})) - {CLIENT_EXIT}, (*where, kind, found)


def test_every_driver_gives_back_a_schema_whatever_the_library_made_of_it() -> None:
    """What a library does to a schema is its own; that none comes back is the driver's fault."""
    runs = [row.get("json-schema-2020-12-preservation") for row in _stored_runs()]
    assert any(runs)
    silent = "json-schema-2020-12-client-echo-completed"
    assert [row for row in runs if row and silent in row["failed"]] == []


def _stored_runs() -> Iterator[dict[str, Any]]:
    for found in STORED.values():
        yield from (found[transport] for transport in TRANSPORTS)


def test_every_verdict_is_explained_by_one_finding_and_every_finding_by_a_verdict() -> None:
    every, known = list(verdicts()), findings()
    for verdict in every:
        by = [one.title for one in known if one.explains(verdict)]
        assert len(by) == 1, (verdict, by)
    for finding in known:
        assert finding.judgement in {"true", "arguable"}
        for library in finding.libraries:
            seen = [one for one in every if finding.explains(one) and one.library == library]
            assert seen, f"{finding.title}: nothing of the kind was found in {library}"


def test_the_page_is_fresh() -> None:
    assert page.main(["--check"]) == 0
