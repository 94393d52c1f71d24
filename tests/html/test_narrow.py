"""On a narrow window every figure can be read, and a command is broken between its words."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from mcptest.core.results import Invocation
from mcptest.report.fleet import FleetReport, FleetServer, ServerOutcome
from mcptest.report.html.building import page_of
from tests.html.browser import Browser
from tests.support.sample_compliance import judgement, report_of

COMMAND = "mcptest fleet servers.json --spec-version 2025-11-25 --save-capture kept --html a.html"
WIDER = "[...document.querySelectorAll('table.sections')].filter((table) => table.clientWidth > "
WIDER += "table.parentElement.clientWidth).length"
BROKEN = "[...document.querySelectorAll('.commandline .unbroken')].filter((word) => "
BROKEN += "word.getClientRects().length > 1).length"


@pytest.fixture(scope="module")
def fleet() -> FleetReport:
    judged = replace(report_of(judgement()), server="at-home")
    server = FleetServer("weather", ServerOutcome.PASSED, duration_ms=60_000, compliance=judged)
    called = Invocation(command=COMMAND)
    servers = (server, replace(server, name="other"))
    return FleetReport(config="a.json", servers=servers, duration_ms=61_400, invocation=called)


@pytest.fixture
def page(fleet: FleetReport, tmp_path: Path) -> Path:
    (tmp_path / "fleet.html").write_bytes(page_of(fleet))
    return tmp_path / "fleet.html"


@pytest.mark.parametrize("width", [360, 420, 1280])
def test_scores_by_section_and_the_words_of_a_command_are_whole(
    width: int, browser: Browser, page: Path
) -> None:
    browser.size(width, 800)
    browser.open(page, "/overview")
    browser.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert browser.value("document.querySelectorAll('table.sections').length") == 2
    assert browser.value(WIDER) == 0
    assert browser.value("document.querySelectorAll('.commandline .unbroken').length") == 4
    assert browser.value(BROKEN) == 0


def test_a_fleet_is_summed_up_as_on_the_terminal(
    browser: Browser, page: Path, fleet: FleetReport
) -> None:
    browser.open(page, "/overview")
    head = browser.text(".hero")
    assert fleet.in_words() in head
    assert "· 1m01s ·" in head  # not the sum of what ran in parallel


def test_few_columns_of_the_matrix_have_room_for_their_names(browser: Browser, page: Path) -> None:
    browser.size(1280, 800)
    browser.open(page, "/matrix")
    cut_off = "[...document.querySelectorAll('.servers > b')].filter((name) => "
    cut_off += "name.scrollWidth > name.clientWidth).map((name) => name.textContent)"
    assert browser.value(cut_off) == []
