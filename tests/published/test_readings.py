"""Every failing verdict on a published server was read by a person, and no MUST is false."""

from __future__ import annotations

from mcptest.report.rules import corpus_rules
from tests.published.commonness import counts
from tests.published.readings import (
    PAGE,
    load_readings,
    load_verdicts,
    published_section,
    reading_of,
)
from tests.published.table import published_servers

VERDICTS = load_verdicts()
READINGS = load_readings()


def test_every_failing_verdict_was_read() -> None:
    unread = [one for one in VERDICTS.failing() if reading_of(one, READINGS) is None]
    assert unread == []


def test_no_failing_verdict_is_false() -> None:
    read = [(one, reading_of(one, READINGS)) for one in VERDICTS.failing()]
    assert [one for one, reading in read if reading is None or reading.reading == "false"] == []


def test_every_arguable_rule_says_so() -> None:
    arguable = {one.rule for one in READINGS if one.reading == "arguable"}
    silent = [rule for rule in arguable if "arguable" not in corpus_rules()[rule].explanation]
    assert silent == []


def test_every_server_was_judged_over_every_transport() -> None:
    wanted = {f"{one.name} {way}" for one in published_servers() for way in one.ways}
    assert set(VERDICTS.configurations) == wanted


def test_the_table_in_the_docs_is_of_these_verdicts() -> None:
    assert "\n".join(published_section()) + "\n" in PAGE.read_text(encoding="utf-8")


def test_the_counts_that_reports_tell_are_of_these_verdicts() -> None:
    from mcptest.rules.known_sdks import known_sdks

    assert dict(known_sdks().common) == counts(VERDICTS)
    assert known_sdks().when == VERDICTS.date[:7]
