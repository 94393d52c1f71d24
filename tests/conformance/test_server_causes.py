"""What a scenario makes of odd servers: no answer, and answers with more than they need."""

from __future__ import annotations

import pytest

from tests.e2e.driving import mcptest
from tests.safety.cases import CASES
from tests.safety.cell import peer_of


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("call-ends-the-server", "tools/call got no response: the server closed the connection"),
        ("call-never-answered", "the server did not answer tools/call"),
    ],
)
def test_a_scenario_names_the_end_of_its_http_exchange(name: str, cause: str) -> None:
    case = next(case for case in CASES if case.name == name)
    with peer_of(case, "http") as peer:
        done = mcptest(
            *("conformance", "server", "--scenario", "tools-call-simple-text", "--timeout", "2s"),
            *("--map", "test_simple_text=echo", *peer.tail),
        )
    assert done.code == 1
    assert cause in done.out


def test_an_empty_result_may_have_meta() -> None:
    case = next(case for case in CASES if case.name == "wide-meta")
    with peer_of(case, "stdio") as peer:
        done = mcptest("conformance", "server", "--scenario", "ping", *peer.tail)
    assert done.code == 0, done.out
