"""The HTML report in a real browser: nothing of a peer runs, everything can be reached."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcptest.core.capture import Frame
from mcptest.core.errors import ExitCode
from mcptest.core.results import RunReport, Status
from mcptest.core.results import TestResult as Result
from mcptest.report.html import building
from mcptest.report.html.building import pictured
from mcptest.report.stored import Stored
from tests.html import hostile, large
from tests.html.browser import Browser

# -- hostile -----------------------------------------------------------------------------------


def hostile_page_of(folder: Path, long: str) -> Path:
    pictures = pictured([str(hostile.write_capture(folder / "hostile.jsonl", long))])
    page = folder / "hostile.html"
    page.write_bytes(pictures.page([Stored("x", hostile.RUN)], ExitCode.FAILED))
    return page


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_page_of(tmp_path_factory.mktemp("hostile"), "short")


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_page_of(tmp_path_factory.mktemp("long"), hostile.LONG)


def test_nothing_of_a_hostile_peer_runs_or_loads(browser: Browser, hostile_page: Path) -> None:
    browser.open(hostile_page, "/results/1")
    for row in range(hostile.ROWS):
        browser.value(f"location.hash = '#/wire/0/{row}'")
        browser.wait(
            f"document.querySelector('#wire-list [aria-selected=true]').dataset.at=='{row}'"
        )
    browser.click("#tab-overview")
    assert browser.value("typeof window.ran") == "undefined"
    assert browser.complaints == []
    assert browser.dialogs == 0
    assert browser.asked_for == [hostile_page.as_uri() + "#/results/1"] or browser.asked_for == [
        hostile_page.as_uri()
    ]
    assert browser.value("document.images.length + document.scripts.length") == browser.value(
        "document.querySelectorAll('script[type=\"application/json\"]').length + 1"
    )


def test_the_policy_stops_a_script_that_gets_in_all_the_same(
    browser: Browser, hostile_page: Path
) -> None:
    browser.open(hostile_page)
    browser.value(
        "(() => { const s = document.createElement('script');"
        "try { s.textContent = 'window.ran = 1' } catch { return }"
        "document.body.append(s) })()"
    )
    assert browser.value("typeof window.ran") == "undefined"
    with pytest.raises(AssertionError, match="TrustedHTML"):
        browser.value("document.body.innerHTML = '<b>x</b>'")


def test_what_can_not_be_seen_is_shown_as_an_escape(browser: Browser, hostile_page: Path) -> None:
    browser.open(hostile_page, "/wire/0/4")
    assert "\\u001b" in browser.text("#wire-detail h2")
    browser.open(hostile_page, "/results/1")
    shown = browser.text("#result-detail h2")
    assert "\\u202e" in shown
    assert "\u202e" not in browser.value("document.body.innerText")
    assert "<script>window.ran=1</script>" in shown


def test_a_long_string_can_be_read_to_its_end(browser: Browser, long_page: Path) -> None:
    browser.open(long_page, f"/wire/0/{hostile.LONG_ROW}")
    more = "#wire-detail .long > button"
    assert len(browser.text("#wire-detail pre")) < 100_000
    # To lay out all of it takes the browser seconds, which are not what is tested here.
    browser.value("document.getElementById('wire-detail').style.display = 'none'")
    for _ in range(8):
        if not browser.value(f"document.querySelector({json.dumps(more)}).hidden"):
            browser.click(more)
    assert browser.text("#wire-detail pre").endswith('THE END"}}')


def saved(browser: Browser, folder: Path, row: int, page: Path) -> bytes:
    """What the Save button of a record writes."""
    browser.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.open(page, f"/wire/0/{row}")
    button = "[...document.querySelectorAll('#wire-detail .small')].find((b) => b.textContent === "
    browser.value(f"{button}'Save').click()")
    browser.until(lambda: any(one.name.startswith("record-") for one in folder.iterdir()))
    browser.until(lambda: not [one for one in folder.iterdir() if one.suffix == ".crdownload"])
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.unlink()
    return content


def test_every_byte_can_be_saved_as_it_was_sent(
    browser: Browser, long_page: Path, tmp_path: Path
) -> None:
    sent = [one for one in hostile.records(hostile.LONG) if isinstance(one, Frame)]
    long = next(one.raw for one in sent if len(one.raw) > 10_000_000)
    assert saved(browser, tmp_path, hostile.LONG_ROW, long_page) == long
    assert saved(browser, tmp_path, hostile.NOT_TEXT_ROW, long_page) == hostile.NOT_TEXT
    assert saved(browser, tmp_path, hostile.HALF_ROW, long_page) == hostile.HALF_SENT
    assert browser.complaints == []


def test_separators_and_halves_of_pairs_are_shown_and_break_nothing(
    browser: Browser, hostile_page: Path
) -> None:
    browser.open(hostile_page)
    notes = browser.text("#overview .card:last-child")
    for part in ("one\\u2028two\\u2029three\\u0085four", "half \\ud800 of a pair"):
        assert part in notes
    assert (
        browser.value(
            "JSON.parse(document.getElementById('page').textContent).sources[0].notes[3]"
            ".charCodeAt(5)"
        )
        == 0xD800
    )
    assert browser.complaints == []


def test_a_name_of_any_length_is_cut_where_it_is_a_heading_and_kept_in_full(
    browser: Browser, tmp_path: Path
) -> None:
    run = RunReport(results=(Result("n" * 300_000 + "END", Status.FAIL, file="f" * 300_000),))
    page = tmp_path / "named.html"
    page.write_bytes(building.page_of_run(run))
    browser.open(page, "/results/0")
    assert len(browser.text("#result-detail h2")) < 3_000
    assert len(browser.text("#result-detail")) < 100_000
    assert browser.value("document.getElementById('page').textContent").count("nEND") == 1
    browser.click("#result-detail .long > button")


def test_letters_from_right_to_left_stay_by_themselves(
    browser: Browser, hostile_page: Path
) -> None:
    browser.open(hostile_page, "/wire/0/11")
    assert browser.text("#wire-detail h2 bdi") == "\u05d0\u05d1\u05d2"


# -- large -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("large") / "large.html"
    page.write_bytes(large.large_page())
    return page


def test_ten_thousand_results_are_filtered_searched_and_opened_by_keys(
    browser: Browser, large_page: Path
) -> None:
    browser.open(large_page)
    assert "Failed: 1000 of 10000" in browser.text("#overview .headline")
    browser.click("#overview .tile.fail")
    assert browser.text("#result-count") == "1,000 of 10,000"
    assert browser.value("document.querySelectorAll('#result-list .row').length") < 60
    browser.press("/")
    browser.type("test 9990")
    assert browser.text("#result-count") == "1 of 10,000"
    assert browser.text("#result-detail h2") == "test 9990"
    assert [browser.text(f"#result-detail .{side} mark") for side in ("gone", "come")] == ["2", "3"]
    browser.press("Escape")
    assert browser.text("#result-count") == "10,000 of 10,000"
    assert browser.value("document.activeElement.id") == "result-list"
    browser.press("ArrowDown")
    browser.press("j")
    assert browser.text("#result-detail h2") == "test 20"
    browser.press("Enter")
    assert browser.value("document.activeElement.id") == "result-detail"
    assert browser.complaints == []


def test_a_hundred_thousand_messages_are_walked_and_paired(
    browser: Browser, large_page: Path
) -> None:
    browser.open(large_page, "/wire/0/50002")
    assert browser.text("#wire-detail h2") == "ping #25000"
    browser.click("#wire-detail .link")
    assert browser.text("#wire-detail h2") == "ping #25000 result"
    browser.value("document.getElementById('wire-list').focus()")
    browser.press("End")
    assert "end of the capture" in browser.text("#wire-list [aria-selected=true]")
    assert browser.value("document.querySelectorAll('#wire-list .row').length") < 60
    browser.press("/")
    browser.type("#49999 result")
    assert browser.text("#wire-count") == "1 of 100,003"


def test_a_result_leads_to_its_messages_on_the_wire(browser: Browser, large_page: Path) -> None:
    browser.open(large_page, "/results/10")
    browser.click("#result-detail .to-wire")
    assert browser.value("document.getElementById('wire').hidden") is False
    assert browser.value("location.hash") == "#/wire/0/0"


def test_a_finding_is_pinned_to_its_message_and_leads_to_the_rule(
    browser: Browser, hostile_page: Path
) -> None:
    browser.open(hostile_page, "/wire/0/0")
    browser.press("n")
    assert browser.value("document.querySelectorAll('#wire-detail .finding').length") > 0
    assert browser.text("#wire-list [aria-selected=true] .pin").startswith("⚑ ")


# -- looks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [400, 1300])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_is_wider_than_the_window(
    browser: Browser, hostile_page: Path, width: int, scheme: str
) -> None:
    browser.media(scheme)
    browser.size(width, 800)
    try:
        for place in ("/overview", "/results/1", "/wire/0/2"):
            browser.open(hostile_page, place)
            assert browser.value("document.documentElement.scrollWidth") <= width, place
        dark = browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(14, 17, 22)"
        assert dark == (scheme == "dark")
    finally:
        browser.media("light")
        browser.size(1200, 800)
