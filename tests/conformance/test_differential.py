"""The official suite and ours: what was kept is explained, and the demo is compared live."""

from __future__ import annotations

import json

import pytest

from tests.conformance.differences_page import PAGE, disagreements, page
from tests.conformance.differential import (
    CLIENTS,
    NODE,
    REVISIONS,
    SERVERS,
    STORED,
    compared_server,
)
from tests.conformance.explained import EXPLANATIONS, explanation_of


def test_three_servers_and_three_clients_were_put_through_both_suites() -> None:
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    wanted = {f"server/{name}/{one}" for name in SERVERS for one in REVISIONS}
    wanted |= {f"client/{name}/{one}" for name in CLIENTS for one in REVISIONS}
    assert set(stored) == wanted
    assert min(len(SERVERS), len(CLIENTS)) >= 3


def test_every_disagreement_is_explained_and_no_explanation_is_idle() -> None:
    found = disagreements()
    assert found.pop(None, []) == []
    assert set(found) == set(EXPLANATIONS)


def test_the_page_says_what_was_kept() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.skipif(not NODE.exists(), reason="the official suite needs the Node 22 of npm")
def test_the_demo_gets_the_verdicts_that_were_kept() -> None:
    revision = REVISIONS[1]
    now = compared_server("demo", revision)
    stored = json.loads(STORED.read_text(encoding="utf-8"))[f"server/demo/{revision}"]
    assert now == stored
    for scenario, rows in now.items():
        for check, (official, ours) in rows.items():
            if official != ours:
                assert explanation_of(f"server/demo/{revision}", scenario, check, official, ours)
