"""The upgrade guide: what it says, in three formats, and which tests it touches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcptest.core.revision import Revision
from mcptest.report.terminal import Style
from mcptest.report.upgrade_guide import diff_as_json, diff_as_markdown, diff_lines
from mcptest.rules.corpus.reader import VersionCorpus, corpus_of
from mcptest.rules.corpus.registry import CorpusRule, Row
from mcptest.rules.corpus.version_diff import VersionDiff, diff_versions, touched_tests
from mcptest.suite.lane_blocks import ComplianceBlock, ComplianceTest
from mcptest.suite.model import Expectation
from mcptest.suite.reading import Place
from mcptest.suite.sent_message import SentCheck

PLAIN = Style(colour=False, unicode=True)


@pytest.fixture(scope="module")
def break_of_2026() -> VersionDiff:
    older, newer = corpus_of(Revision.V2025_11_25), corpus_of(Revision.V2026_07_28)
    assert older is not None
    assert newer is not None
    return diff_versions(older, newer)


def guide(diff: VersionDiff) -> str:
    return "\n".join(diff_lines(diff, None, PLAIN))


def test_a_changed_rule_shows_both_sides_and_the_fix(break_of_2026: VersionDiff) -> None:
    lines = guide(break_of_2026).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  RES-102"))
    assert "SHOULD -> MUST" in lines[at]
    assert lines[at + 1].split() == ["was", "error.code", "is", "-32002"]
    assert lines[at + 2].split() == ["now", "error.code", "is", "-32602"]
    assert lines[at + 3].strip().startswith("fix  Answer clients of older revisions with -32002")
    assert lines[at + 4].strip().startswith("spec https://")


def test_the_guide_names_everything_that_breaks_in_2026(break_of_2026: VersionDiff) -> None:
    text = guide(break_of_2026)
    for needle in (
        "no handshake",
        "server/discover",
        "resultType",
        "ttlMs",
        "inputRequests",
        "subscriptions/listen",
        "Mcp-Method",
        "-32020",
        "-32021",
        "-32022",
        "logLevel",
        "ping gets error -32601",
    ):
        assert needle in text, needle


def test_a_removed_rule_says_what_becomes_of_it(break_of_2026: VersionDiff) -> None:
    text = guide(break_of_2026)
    assert "Removed: no longer required" in text
    assert "Offer subscriptions/listen with resourceSubscriptions instead." in text


def test_the_parts_come_in_their_order(break_of_2026: VersionDiff) -> None:
    text = guide(break_of_2026)
    places = [text.index(word) for word in ("\nChanged:", "\nAdded:", "\nRemoved:", "\nSame exp")]
    assert places == sorted(places)


def test_json_holds_every_rule_of_both(break_of_2026: VersionDiff) -> None:
    value = json.loads(diff_as_json(break_of_2026, None))
    assert value["format"] == "mcptest.version-diff/1"
    assert (value["from"], value["to"], value["clean"]) == ("v2025-11-25", "v2026-07-28", False)
    assert sum(
        value["summary"][key] for key in ("changed", "unchanged", "added", "removed")
    ) == len(value["entries"])
    [entry] = [one for one in value["entries"] if one["rule_id"] == "RES-102"]
    assert entry["bucket"] == "changed"
    assert entry["severity"] == {"from": "SHOULD", "to": "MUST"}
    assert entry["was"] == [{"target": "error.code", "matcher": {"exact": -32002}}]
    assert entry["now"] == [{"target": "error.code", "matcher": {"exact": -32602}}]
    assert "touched_tests" not in value


def test_markdown_has_headings_and_items(break_of_2026: VersionDiff) -> None:
    lines = list(diff_as_markdown(break_of_2026))
    assert lines[0] == "# v2025-11-25 → v2026-07-28"
    assert "## Changed: what was right is now wrong" in lines
    at = lines.index("- **RES-102** a missing resource gets its error code (SHOULD -> MUST)")
    assert lines[at + 1] == "  - was: error.code is -32002"


# -- texts of another registry are data ------------------------------------------------------


def hostile() -> VersionDiff:
    row = Row(
        "AAA-001", SentCheck(method="ping"), (Expectation("answer", {"exact": "\x1b[31m<b>"}),)
    )
    other = Row("AAA-001", SentCheck(method="ping"), (Expectation("answer", {"exact": "|x|"}),))
    return diff_versions(
        VersionCorpus("v2024-11-05", {"AAA-001": CorpusRule("AAA-001", row)}),
        VersionCorpus("draft", {"AAA-001": CorpusRule("AAA-001", other)}),
    )


def test_control_codes_reach_no_terminal() -> None:
    diff = hostile()
    for text in (guide(diff), diff.render_pretty(False), "\n".join(diff_as_markdown(diff))):
        assert "\x1b" not in text


def test_markup_stays_text_in_markdown() -> None:
    text = "\n".join(diff_as_markdown(hostile()))
    assert "<b>" not in text
    assert "\\|x\\|" in text


# -- whose tests ---------------------------------------------------------------------------


def one_named(name: str, method: str = "", line: int = 1) -> ComplianceTest:
    check = SentCheck(method=method) if method else None
    expect = (Expectation("answer", {"exact": "result"}),) if method else ()
    return ComplianceTest(name, check=check, expect=expect, place=Place("suite.yml", line))


def test_a_test_is_touched_by_its_rule_or_by_its_method(break_of_2026: VersionDiff) -> None:
    block = ComplianceBlock(
        tests=(
            one_named("RES-102", line=3),
            one_named("PROTO-010"),
            one_named("PROTO-008"),
            one_named("levels can be set", "logging/setLevel", line=9),
            one_named("tools are listed", "server/discover"),
        )
    )
    touched = touched_tests(block, break_of_2026)
    named = [(one.test.name, one.entry.rule_id) for one in touched]
    assert ("RES-102", "RES-102") in named
    assert ("levels can be set", "LOG-101") in named
    assert not {"PROTO-010", "PROTO-008"} & {name for name, _ in named}
    text = "\n".join(diff_lines(break_of_2026, touched, PLAIN))
    assert "RES-102  suite.yml:3" in text
    assert "it is named after RES-102, which was changed" in text
    assert "it sends logging/setLevel, and LOG-101 about it was removed" in text
    value = json.loads(diff_as_json(break_of_2026, touched))
    assert value["touched_tests"][0]["line"] == 3
    assert "levels can be set" in "\n".join(diff_as_markdown(break_of_2026, touched))


def test_nobody_touched_is_said_too(break_of_2026: VersionDiff) -> None:
    none = touched_tests(ComplianceBlock(tests=None), break_of_2026)
    assert none == []
    assert "none of your tests is affected" in "\n".join(diff_lines(break_of_2026, none, PLAIN))
    assert "None is affected." in list(diff_as_markdown(break_of_2026, none))


def test_the_same_revision_twice_has_nothing_to_say() -> None:
    corpus = corpus_of(Revision.DRAFT)
    assert corpus is not None
    diff = diff_versions(corpus, corpus)
    assert diff.is_clean()
    assert diff.summary.unchanged == len(diff.entries)
    assert "Changed" not in guide(diff)


def test_a_list_is_a_change_and_its_order_is_not() -> None:
    def one(*expect: Expectation) -> VersionCorpus:
        row = Row("AAA-001", SentCheck(method="ping"), expect)
        return VersionCorpus("draft", {"AAA-001": CorpusRule("AAA-001", row)})

    first = Expectation("answer", {"exact": "result"})
    second = Expectation("result.x", {"exact": 1})
    assert diff_versions(one(first, second), one(second, first)).is_clean()
    assert not diff_versions(one(first), one(first, second)).is_clean()
    assert not diff_versions(one(first, first), one(first, second)).is_clean()
    true = Expectation("result.x", {"exact": True})
    assert not diff_versions(one(second), one(true)).is_clean()


def test_a_check_that_is_sent_differently_is_no_breakage() -> None:
    expect = (Expectation("answer", {"exact": "result"}),)
    corpora = [
        VersionCorpus("draft", {"A": CorpusRule("A", Row("A", SentCheck(method=name), expect))})
        for name in ("ping", "server/discover")
    ]
    assert diff_versions(*corpora).is_clean()


def test_the_files_are_part_of_the_package() -> None:
    import mcptest

    folder = Path(mcptest.__file__).parent / "compliance"
    assert (folder / "registry.yml").is_file()
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {
        revision.label for revision in Revision
    }
