"""A person with the page: from the verdict to the bytes, by mouse and by keys alone."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from mcptest.core.capture import Frame, Opened
from mcptest.core.errors import ExitCode
from mcptest.core.results import FailedCheck, Invocation, Proof, Regression, RunReport
from mcptest.report.html.building import pictured
from mcptest.report.stored import Stored
from tests.html.browser import Browser
from tests.support.records import encode_record
from tests.support.sample_compliance import STRUCTURED, several_revisions
from tests.support.sample_run import READ, SUM

ASKED = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"weather"}}'


def capture_of(path: Path, *answers: str) -> str:
    records = [Opened(server_label="weather", transport="stdio"), Frame(sender="client", raw=ASKED)]
    records += [Frame(t=0.25, sender="server", raw=text.encode()) for text in answers]
    path.write_bytes(b"".join(map(encode_record, records)))
    return str(path)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tests, and a server that was judged in several revisions."""
    folder = tmp_path_factory.mktemp("clicked")
    assert SUM.proof is not None
    tested = capture_of(folder / "sum.jsonl", SUM.proof.response)
    judged = capture_of(folder / "judged.jsonl", STRUCTURED.evidence[0].received)
    proof = msgspec.structs.replace(SUM.proof, capture=tested)
    failed = msgspec.structs.replace(SUM, proof=proof)
    run = RunReport(results=(READ, failed), regressions=(Regression(SUM.name, "PASS", "FAIL"),))
    report = several_revisions()
    judgements = [msgspec.structs.replace(one, captures=(judged,)) for one in report.judgements]
    report = msgspec.structs.replace(report, judgements=tuple(judgements))
    stored = [Stored("run.json", run), Stored("judged.json", report)]
    page = folder / "page.html"
    page.write_bytes(pictured([tested, judged]).page(stored, ExitCode.FAILED))
    return page


def test_from_the_overview_by_a_filter_to_the_failure_its_message_and_its_bytes(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    assert browser.text("#overview .headline").startswith("Failed")
    browser.click("#overview .tile.fail")
    browser.press("/")
    browser.type("get-sum")
    assert browser.text("#result-detail h2") == SUM.name
    assert browser.value("document.querySelectorAll('#result-detail .diff').length") > 0
    chosen = browser.text("#result-detail .excerpt .chosen .label")
    assert "answer" in chosen or "result" in chosen
    browser.click("#result-detail .to-wire")
    assert browser.value("document.getElementById('wire').hidden") is False
    assert SUM.name in browser.text("#wire-detail .finding code")
    assert SUM.proof is not None
    raw = "[...document.querySelectorAll('#wire-detail .small')].find((b) => b.textContent === "
    browser.value(f"{raw}'As sent').click()")
    assert browser.text("#wire-detail pre") == SUM.proof.response
    browser.click("#wire-detail .finding .link")
    assert browser.text("#result-detail h2") == SUM.name
    browser.value("document.querySelector('#result-detail .raw').open = true")
    browser.wait("document.querySelector('#result-detail .raw pre')")
    stored = json.loads(browser.text("#result-detail .raw pre"))
    assert stored["name"] == SUM.name
    assert any(fact["label"] == "Repeat" for fact in stored["facts"])
    assert browser.complaints == []


def test_a_failure_names_its_server_where_there_are_several(
    browser: Browser, tmp_path: Path
) -> None:
    stored = [
        Stored(name, msgspec.structs.replace(several_revisions(), server=name))
        for name in ("one", "two")
    ]
    page = tmp_path / "page.html"
    page.write_bytes(pictured([]).page(stored, ExitCode.FAILED))
    browser.open(page)
    assert "one: " in browser.text("#overview .failures")
    assert "two: " in browser.text("#overview .failures")
    assert browser.text("#title") == "mcptest: one, two"


def test_what_changed_since_the_baseline_leads_to_the_test(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert "Changed since the baseline" in browser.text("#overview")
    browser.value(
        "[...document.querySelectorAll('#overview .card')].find((card) => "
        "card.textContent.startsWith('Changed')).querySelector('button').click()"
    )
    assert browser.text("#result-detail h2") == SUM.name


def test_a_cell_of_the_matrix_leads_to_its_proof_and_the_wire(browser: Browser, page: Path) -> None:
    browser.open(page, "/matrix")
    row = "[...document.querySelectorAll('#matrix-list .row')].find((r) => r.textContent.includes("
    assert browser.value(f"{row}'TOOLS-004')).querySelectorAll('.mark.fail').length") == 2
    browser.value(f"{row}'TOOLS-004')).querySelector('.mark.fail').click()")
    assert browser.text("#matrix-detail h2") == STRUCTURED.title
    shown = browser.text("#matrix-detail")
    for part in (STRUCTURED.requirement, STRUCTURED.fix, "structuredContent"):
        assert part in shown
    browser.click("#matrix-detail .to-wire")
    assert browser.text("#wire-list [aria-selected=true] .pin").startswith("⚑ TOOLS-004")
    # The browser's own way back leads to the cell again.
    browser.value("history.back()")
    browser.wait("!document.getElementById('matrix').hidden")
    browser.wait("document.querySelector('#matrix-list .mark.here')")
    browser.press("Escape")


def test_the_grade_is_shown_with_its_sections_and_what_was_not_judged(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    medals = "[...document.querySelectorAll('.medal')].map((one) => one.textContent)"
    assert browser.value(medals) == [
        one.grade.letter for one in several_revisions().judgements if one.grade
    ]
    text = browser.text("#overview")
    for part in (
        "87.3 of 100",
        "capped: a broken MUST keeps it below A",
        "profile 0.1.0/v2025-11-25/3f9ab2c1",
        "57.1%: 4 of 7 applicable rules judged",
        "2 not observed, by what is needed to observe them",
        "the fixture embedding_tool",
        "the server does not declare prompts",
        "Score by section",
    ):
        assert part in text


def test_keys_alone_lead_from_the_overview_to_the_bytes_and_back(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    browser.press("?")
    assert browser.value("document.getElementById('keys').open") is True
    browser.press("Escape")
    browser.wait("!document.getElementById('keys').open")
    browser.press("2")
    browser.press("/")
    browser.type(SUM.name)
    browser.press("Enter")
    assert browser.value("document.activeElement.id") == "result-list"
    browser.press("Enter")
    assert browser.value("document.activeElement.id") == "result-detail"
    browser.press("w")
    assert browser.value("location.hash").startswith("#/wire/")
    browser.press("1")
    browser.press("j")
    assert browser.value("document.activeElement.matches('#overview .tile')") is True
    browser.press("3")
    browser.press("j")
    browser.press("l")
    assert browser.value("document.querySelectorAll('#matrix-list .mark.here').length") <= 1
    assert browser.value("location.hash") == "#/matrix/0/1"
    browser.press("k")
    browser.press("Enter")
    assert browser.value("document.activeElement.id") == "matrix-detail"
    browser.press("Escape")
    assert browser.value("document.activeElement.id") == "matrix-list"
    assert browser.complaints == []


def test_the_theme_can_be_chosen_against_the_system(browser: Browser, page: Path) -> None:
    browser.open(page)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(ground)
    browser.press("t")
    assert browser.value("document.documentElement.dataset.theme") == "light"
    browser.press("t")
    assert browser.value(ground) != light
    browser.media("dark")
    browser.press("t")
    assert browser.value("document.documentElement.dataset.theme") == "auto"
    assert browser.value(ground) != light


def test_what_has_the_focus_can_be_seen(browser: Browser, page: Path) -> None:
    browser.open(page, "/results")
    browser.press("j")
    browser.value("document.getElementById('result-list').focus()")
    style = "getComputedStyle(document.activeElement).outlineStyle"
    browser.press("Tab")
    assert browser.value(style) != "none"


@pytest.mark.parametrize("width", [390, 1400])
def test_the_matrix_fits_the_window(browser: Browser, page: Path, width: int) -> None:
    browser.size(width, 800)
    browser.open(page, "/matrix")
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("document.getElementById('matrix-list').clientWidth") > 0.9 * width - 20


def test_the_badge_counts_failures(browser: Browser, page: Path) -> None:
    browser.open(page)
    failed = browser.value("document.querySelector('.tile.fail b').textContent")
    assert browser.text("#verdict") == f"✗ {failed}"


def test_the_wire_view_opens_on_the_first_finding(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click("#tab-wire")
    assert browser.text("#wire-list [aria-selected=true] .pin")
    assert browser.text("#wire-detail .finding")


def test_the_overview_lists_what_is_recommended_and_not_done(browser: Browser, page: Path) -> None:
    browser.open(page)
    titles = browser.value(
        "[...document.querySelectorAll('.card h2')].map((one) => one.textContent)"
    )
    warned = browser.value("document.querySelector('.tile.warn b').textContent")
    assert f"SHOULD and MAY findings ({warned})" in titles


def test_a_line_says_which_sessions_are_embedded(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert "2 sessions embedded: every recorded session." in browser.text("#overview")


def test_the_head_says_when_how_and_where_it_was_run(browser: Browser, tmp_path: Path) -> None:
    run = RunReport(
        results=(READ,),
        started="2026-11-18T14:24:07+00:00",
        duration_ms=124_000,
        invocation=Invocation("mcptest run evals", "0123456789ab", "Linux x86_64, Python 3.12.1"),
    )
    page = tmp_path / "page.html"
    page.write_bytes(pictured([]).page([Stored("run.json", run)], ExitCode.OK))
    browser.open(page)
    head = browser.text("#overview .hero")
    facts = ("18 November 2026, 14:24 UTC", "2m04s", "commit 0123456789ab", "Linux x86_64")
    for fact in ("mcptest run evals", *facts, "exit code 0"):
        assert fact in head
    assert "No session is embedded in this page." in browser.text("#overview")


def test_a_schema_that_does_not_fit_is_told_and_not_compared(
    browser: Browser, tmp_path: Path
) -> None:
    why = '/words: expected integer, got "1"'
    check = FailedCheck("schema", why, expected='{"type": "object"}', actual='{"words": "1"}')
    run = RunReport(results=(msgspec.structs.replace(SUM, failures=(check,), proof=None),))
    page = tmp_path / "page.html"
    page.write_bytes(pictured([]).page([Stored("run.json", run)], ExitCode.FAILED))
    browser.open(page, "/results/0")
    told = browser.text("#result-detail")
    assert why in told
    assert '"words": "1"' in told
    assert '"type"' not in told
    assert browser.value("document.querySelectorAll('#result-detail .diff').length") == 0


def test_a_request_folds_what_every_request_says_and_shows_it_as_sent(
    browser: Browser, tmp_path: Path
) -> None:
    client = {"clientInfo": {"name": "mcptest"}, "clientCapabilities": {}}
    ours = {"protocolVersion": "2026-07-28", **client}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in ours.items()}
    sent = json.dumps({"id": 1, "params": {"name": "add", "_meta": meta}, "method": "x"})
    run = RunReport(results=(msgspec.structs.replace(SUM, proof=Proof(request=sent)),))
    page = tmp_path / "page.html"
    page.write_bytes(pictured([]).page([Stored("run.json", run)], ExitCode.FAILED))
    browser.open(page, "/results/0")
    pres = "[...document.querySelectorAll('#result-detail pre')].map((one) => one.textContent)"
    (folded,) = [text for text in browser.value(pres) if '"params"' in text]
    assert '"_meta": {…}' in folded
    assert '"method": "x"' in folded
    assert "protocolVersion" not in folded
    raw = "[...document.querySelectorAll('#result-detail .small')].find((b) => b.textContent === "
    browser.value(f"{raw}'As sent').click()")
    assert sent in browser.value(pres)
