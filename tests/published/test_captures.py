"""The recordings of published servers, judged without them: exactly these rules fail in each.

A change here is a change of how we read strangers: it is true by the text, or it is our defect.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.published.record import CAPTURES, PINNED, judged
from tests.published.table import published_servers

KNOWN = json.loads(PINNED.read_bytes())
MOST_BYTES = 3_700_000


@pytest.mark.parametrize("capture", sorted(CAPTURES.glob("*.jsonl.gz")), ids=lambda one: one.name)
def test_a_recorded_server_is_read_as_it_was(capture: Path) -> None:
    assert judged(capture) == KNOWN[capture.name], (
        "if that is right by the text, python -m tests.published.record --judge writes it down"
    )


def test_every_server_of_the_table_is_recorded_over_every_transport() -> None:
    wanted = {f"{one.name}-{way}.jsonl.gz" for one in published_servers() for way in one.ways}
    assert {path.name for path in CAPTURES.iterdir()} == wanted
    assert set(KNOWN) == wanted


def test_the_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in CAPTURES.iterdir()) < MOST_BYTES


def test_the_servers_are_of_many_families() -> None:
    servers = published_servers()
    assert len(servers) >= 25
    assert len({one.family for one in servers}) >= 6
    assert len({one.language for one in servers}) >= 4
