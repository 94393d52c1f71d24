"""The HTML report in a real browser: nothing of a peer runs, everything can be reached."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcptest.model.capture import Closed, Frame, Opened, Stderr
from mcptest.model.errors import ExitCode
from mcptest.model.results import FailedCheck, Proof, RunReport, Status
from mcptest.model.results import TestResult as Result
from mcptest.report.html import making
from mcptest.report.html.making import pictured
from mcptest.report.stored import Stored
from mcptest.wire.capture_codec import encode_record
from tests.html import hostile
from tests.html.browser import CHROMIUM, Browser, running_browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
MANY_RESULTS = 10_000
MANY_MESSAGES = 100_000


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("profile")) as running:
        running.size(1200, 800)
        yield running


# -- hostile -----------------------------------------------------------------------------------


def hostile_page_of(folder: Path, long: str) -> Path:
    pictures = pictured([str(hostile.write_capture(folder / "hostile.jsonl", long))])
    page = folder / "hostile.html"
    page.write_bytes(pictures.page([Stored("x", hostile.RUN, ExitCode.FAILED)], ExitCode.FAILED))
    return page


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_page_of(tmp_path_factory.mktemp("hostile"), "short")


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_page_of(tmp_path_factory.mktemp("long"), hostile.LONG)


def test_nothing_of_a_hostile_peer_runs_or_loads(browser: Browser, hostile_page: Path) -> None:
    browser.open(hostile_page, "/results/1")
    for row in range(15):
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


def test_a_name_of_any_length_is_cut_where_it_is_a_heading_and_kept_in_full(
    browser: Browser, tmp_path: Path
) -> None:
    run = RunReport(results=(Result("n" * 300_000 + "END", Status.FAIL, file="f" * 300_000),))
    page = tmp_path / "named.html"
    page.write_bytes(making.page_of_run(run, ExitCode.FAILED))
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


def a_result(number: int) -> Result:
    if number % 10:
        return Result(f"test {number}", Status.PASS, duration_ms=number % 90, file="evals/a.yaml")
    check = FailedCheck("equals", "not equal", '{"a":1,"b":2}', '{"a":1,"b":3}')
    return Result(
        f"test {number}",
        Status.FAIL,
        detail=f"not equal: {number}",
        file="evals/b.yaml",
        failures=(check,),
        proof=Proof(request='{"id":1}', capture="large.jsonl"),
    )


@pytest.fixture(scope="module")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    capture = folder / "large.jsonl"
    with capture.open("wb") as file:
        file.write(encode_record(Opened(server_label="large", transport="stdio")))
        file.write(encode_record(Stderr(t=0.0, text="hello")))
        for number in range(MANY_MESSAGES // 2):
            t = number / 1000
            asked = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number
            answer = b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number
            file.write(encode_record(Frame(t=t, sender="client", raw=asked)))
            file.write(encode_record(Frame(t=t + 0.0005, sender="server", raw=answer)))
        file.write(encode_record(Closed(t=100.0)))
    run = RunReport(tuple(map(a_result, range(MANY_RESULTS))), started="2026-11-16T00:00:00Z")
    page = folder / "large.html"
    stored = [Stored("run.json", run, ExitCode.FAILED)]
    with pytest.MonkeyPatch.context() as patched:  # the rules are judged elsewhere, and take longer
        patched.setattr(making, "all_rules", list)
        page.write_bytes(pictured([str(capture)]).page(stored, ExitCode.FAILED))
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
    browser.value(
        "[...document.querySelectorAll('#result-detail .link')].pop().click()",
    )
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
