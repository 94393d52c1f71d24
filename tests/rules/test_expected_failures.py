"""Lists of expected failures: read with places, held against a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcptest.commands.conformance.run import known_checks
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckResult, CheckStatus, ExpectedFailure, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.rules.expected_failures import compared_with, load_expected_failures, requirement_set
from mcptest.suite.reading import SuiteError


def loaded(tmp_path: Path, text: str) -> tuple[ExpectedFailure, ...]:
    file = tmp_path / "baseline.yml"
    file.write_text(text, encoding="utf-8")
    return load_expected_failures(file, known_checks())


def complaint(tmp_path: Path, text: str) -> str:
    with pytest.raises(SuiteError) as raised:
        loaded(tmp_path, text)
    return raised.value.message


def result(scenario: str = "tools_call", **rows: CheckStatus) -> ScenarioResult:
    checks = tuple(
        CheckResult(id=name.replace("_", "-"), name=name, description="", status=status)
        for name, status in rows.items()
    )
    return ScenarioResult(scenario, Side.CLIENT, Revision.V2026_07_28, "http", checks)


def test_the_official_form_is_read_as_it_is(tmp_path: Path) -> None:
    entries = loaded(
        tmp_path,
        "server:\n  - tools-call-audio\nclient:\n  - tools_call:tool-add-numbers\n  - auth/dpop\n",
    )
    assert [one.name for one in entries] == [
        "tools-call-audio",
        "tools_call:tool-add-numbers",
        "auth/dpop",
    ]
    assert [one.side for one in entries] == [Side.SERVER, Side.CLIENT, Side.CLIENT]
    assert entries[1].place.endswith("baseline.yml:4")


def test_an_entry_may_say_why_and_be_flaky(tmp_path: Path) -> None:
    text = "client:\n  - scenario: sse-retry\n    reason: slow machine\n    flaky: true\n"
    (entry,) = loaded(tmp_path, text)
    assert (entry.reason, entry.flaky) == ("slow machine", True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("client:\n  - tool_call\n", "2:5: unknown client scenario tool_call"),
        ("client:\n  - tool_call\n", "did you mean tools_call?"),
        ("client:\n  - tools_call:tool-add-number\n", "did you mean tool-add-numbers?"),
        ("client:\n  - tools_call: tool-add-numbers\n", "without a space after the colon"),
        ("clients:\n  - tools_call\n", "did you mean client?"),
        ("client: tools_call\n", "client must be a list"),
        ("client:\n  -\n", "an entry must be `scenario` or"),
        ("client:\n  - tools_call\n  - tools_call:tool-add-numbers\n", "as a whole and by check"),
        ("client:\n  - tools_call\n  - tools_call\n", "is listed twice"),
        ("- tools_call\n", "expected `server:` and `client:`"),
    ],
)
def test_every_mistake_has_its_place_and_remedy(tmp_path: Path, text: str, said: str) -> None:
    assert said in complaint(tmp_path, text)


def expected(check: str = "", **more: bool) -> ExpectedFailure:
    return ExpectedFailure(Side.CLIENT, "tools_call", check, place="b.yml:1", **more)


def test_the_four_outcomes_of_a_check() -> None:
    run = [
        result(
            a=CheckStatus.FAILURE,
            b=CheckStatus.SUCCESS,
            c=CheckStatus.WARNING,
            d=CheckStatus.SKIPPED,
        )
    ]
    found = compared_with([expected("a"), expected("b"), expected("d"), expected("e")], run)
    assert found.expected == ("tools_call:a",)
    assert found.stale == ("tools_call:b (b.yml:1)",)
    assert found.new == ("tools_call:c",)
    assert found.tolerated == ("tools_call:d", "tools_call:e")
    assert not found.holds


def test_a_whole_scenario_is_expected_stale_or_unseen() -> None:
    assert compared_with([expected()], [result(a=CheckStatus.FAILURE)]).expected == ("tools_call",)
    assert compared_with([expected()], [result(a=CheckStatus.SUCCESS)]).stale
    assert compared_with([expected()], [result(a=CheckStatus.SKIPPED)]).tolerated == ("tools_call",)
    assert compared_with([expected()], []).holds, "what was not run is left alone"


def test_rows_of_one_id_count_as_their_worst() -> None:
    rows = (CheckStatus.SUCCESS, CheckStatus.FAILURE)
    checks = tuple(CheckResult("a", str(n), "", status) for n, status in enumerate(rows))
    run = ScenarioResult("tools_call", Side.CLIENT, Revision.V2026_07_28, "http", checks)
    assert compared_with([expected("a")], [run]).expected == ("tools_call:a",)


def test_a_flaky_entry_is_news_neither_way() -> None:
    for status in CheckStatus.FAILURE, CheckStatus.SUCCESS:
        assert compared_with([expected("a", flaky=True)], [result(a=status)]).holds
        assert compared_with([expected(flaky=True)], [result(a=status)]).holds


def test_a_rule_that_is_listed_and_not_broken_any_more_is_stale() -> None:
    found = compared_with([expected("HTTP-010")], [result(a=CheckStatus.SUCCESS)])
    assert found.stale == ("tools_call:HTTP-010 (b.yml:1)",)


def test_what_could_not_be_judged_is_new() -> None:
    run = ScenarioResult("tools_call", Side.CLIENT, Revision.V2026_07_28, "http", (), cause="gone")
    assert compared_with([], [run]).new == ("tools_call: gone",)


@pytest.mark.parametrize(
    ("revision", "servers", "clients"),
    [(Revision.V2025_11_25, 30, 18), (Revision.V2026_07_28, 37, 32)],
)
def test_requirement_sets_have_what_they_always_had(
    revision: Revision, servers: int, clients: int
) -> None:
    found = requirement_set(revision)
    assert (len(found.server), len(found.client)) == (servers, clients)
    known = known_checks()
    assert set(found.shown(Side.SERVER)) <= set(known[Side.SERVER])
    scored = {name for name in found.client if not name.startswith("auth/")}
    assert scored <= set(known[Side.CLIENT])
