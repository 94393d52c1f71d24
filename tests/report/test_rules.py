"""Rules of the corpora in `explain`, in the list of rules and on their pages."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from mcptest.commands.app import run
from mcptest.core.errors import UsageError
from mcptest.core.revision import TIMELINE, Revision
from mcptest.report.rules import (
    all_listed_rules,
    corpus_rules,
    described_rule,
    find_any_rule,
    rule_page,
    rules_as_json,
    rules_as_lines,
)
from mcptest.report.terminal import Style
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.declaration import RULES
from tests.docs.compliance_docs import FOLDER, corpus_pages, main, stale_corpus_pages
from tests.docs.page_files import write_files

DOCS = Path(__file__).parents[2] / "docs" / "compliance"


def page_of(name: str) -> str:
    return "\n".join(rule_page(find_any_rule(name), Style()))


def test_every_rule_of_every_corpus_is_listed_and_explained() -> None:
    listed = {rule.id for rule in all_listed_rules()}
    for revision in TIMELINE:
        corpus = corpus_of(revision)
        assert corpus is not None
        assert corpus.rules.keys() <= listed
        held = {rule.id for rule in all_listed_rules(revision)}
        assert corpus.rules.keys() <= held
    for name in listed:
        page = page_of(name)
        assert page.startswith(f"{name}  ")
        assert "\nWhat to do:\n  " in page


def test_the_list_stands_section_by_section_without_repeating_one() -> None:
    rules = all_listed_rules(Revision.V2025_06_18, "server")
    sections = [rule.category for rule in rules]
    assert len(list(dict.fromkeys(sections))) == 1 + sum(
        before != after for before, after in pairwise(sections)
    )
    lines = list(rules_as_lines(rules, [], Revision.V2025_06_18, Style()))
    assert any(line.startswith("  PROTO-002    MUST   the initialize result") for line in lines)
    assert lines[-1].startswith(f"{len(rules)} rules. To read one")


def test_a_rule_of_a_revision_is_not_listed_in_another() -> None:
    handshake = {rule.id for rule in all_listed_rules(Revision.V2025_11_25)}
    stateless = {rule.id for rule in all_listed_rules(Revision.V2026_07_28)}
    assert "PROTO-002" in handshake - stateless
    clients = all_listed_rules(None, "client")
    assert {rule.side.value for rule in clients} == {"client", "both"}


def test_a_page_says_what_is_sent_what_is_expected_and_what_to_do() -> None:
    page = page_of("proto-002")
    for part in (
        "the initialize result has a valid capabilities object",
        "The result of initialize has a capabilities object",
        "2024-11-05 to 2025-03-26\nSent:\n  initialize\n",
        "{revision}: the wire version",
        "\n2025-06-18 to 2025-11-25\nExpected:\n",
        "What to do:\n  Return an object for every capability",
        "severity       MUST",
        "statements     L03",
        "https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#",
        "later          from 2026-07-28 on: Declare capabilities",
    ):
        assert part in page


def test_severity_is_told_by_revision_where_it_moves() -> None:
    assert "SHOULD (2024-11-05 to 2026-07-28), MUST (draft)" in page_of("PROTO-008")


def test_a_probe_is_told_step_by_step() -> None:
    page = page_of("JSONRPC-007")
    assert "  step array: raw [" in page
    assert "  step after: request {alive_method}\n" in page
    assert "  steps.array.answer is one of" in page


def test_another_name_of_a_rule_over_sessions_says_who_judges_it() -> None:
    assert "LIFE-004 judges it over whole sessions." in page_of("PROTO-001")
    value = described_rule(corpus_rules()["PROTO-001"])
    assert (value.kind, value.judged_by) == ("session", "LIFE-004")


def test_what_a_rule_needs_is_told() -> None:
    fixture = page_of("SAMPLE-001")
    assert "Tested only if:\n  the server declares tools\n" in fixture
    assert "the fixture sampling_tool, or it has test_sampling" in " ".join(fixture.split())
    assert "the transport is http" in page_of("HTTP-107")


@pytest.mark.parametrize(
    ("typo", "meant"), [("PROTO-02", "PROTO-002"), ("TOOL-O01", "TOOL-001"), ("inv3", "INV-003")]
)
def test_a_typo_is_answered_with_the_nearest_rule(typo: str, meant: str) -> None:
    with pytest.raises(UsageError, match="unknown rule") as raised:
        find_any_rule(typo)
    assert f"did you mean {meant}?" in raised.value.hint


def test_hostile_names_are_refused_safely() -> None:
    with pytest.raises(UsageError) as raised:
        find_any_rule("\x1b[2J" + "x" * 100_000)
    assert "\x1b" not in raised.value.message
    assert len(raised.value.message) < 100


def test_explain_prints_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "TOOLS-004"]) == 0
    assert "Expected:\n  result.structuredContent has type" in capsys.readouterr().out
    assert run(["explain", "TOOLS-004", "--json"]) == 0
    rule = json.loads(capsys.readouterr().out)["rules"][0]
    assert rule["kind"] == "exchange"
    assert rule["asked"][0]["needs"] == ["the server declares tools"]
    assert rule["statements"] == ["T13"]


def test_the_json_list_has_every_rule_with_its_kind() -> None:
    listed = json.loads(rules_as_json(all_listed_rules(), [], None))["rules"]
    kinds = {rule["id"]: rule["kind"] for rule in listed}
    assert kinds["INV-003"] == "session"
    assert kinds["HTTP-107"] == "exchange"
    assert len(kinds) == len(listed) > 250


def test_revisions_of_a_rule_follow_each_other() -> None:
    """A window could not say it otherwise."""
    for rule in corpus_rules().values():
        assert list(rule.by_revision) == [one for one in TIMELINE if one in rule.window], rule.id


# -- pages ---------------------------------------------------------------------------------


def test_the_pages_of_the_sections_are_fresh() -> None:
    hint = "run: python -m tests.docs.compliance_docs docs/compliance"
    assert stale_corpus_pages(DOCS) == [], hint


def test_every_rule_is_on_one_page_and_its_links_lead_somewhere() -> None:
    pages = corpus_pages()
    for rule in corpus_rules().values():
        page = pages[f"{rule.category.replace(' ', '-')}.md"]
        if rule.session_rule is None:
            assert f"\n## {rule.id}\n" in page
        else:
            assert rule.session_rule.id in RULES
            assert f"](../../rules/{rule.session_rule.id}.md)" in page


def test_the_check_notices_missing_changed_and_leftover_pages(tmp_path: Path) -> None:
    write_files(tmp_path / FOLDER, corpus_pages())
    assert stale_corpus_pages(tmp_path) == []
    (tmp_path / "rules" / "tools.md").write_text("changed")
    (tmp_path / "rules" / "http.md").unlink()
    (tmp_path / "rules" / "old.md").write_text("left over")
    assert stale_corpus_pages(tmp_path) == ["rules/http.md", "rules/old.md", "rules/tools.md"]
    write_files(tmp_path / FOLDER, corpus_pages())
    assert stale_corpus_pages(tmp_path) == []
    assert main([]) == 2
