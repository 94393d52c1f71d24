"""Pins and upgrade reports, statement by statement, as the page that defines them says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.judgement import GateResult
from mcptest.core.revision import Revision
from mcptest.report.compliance.facts import gate_line
from mcptest.rules.corpus.reader import SHIPPED, VersionCorpus, corpus_of
from mcptest.rules.corpus.version_diff import (
    VersionDiff,
    diff_facts,
    diff_versions,
    judge_spec_version_check,
)
from mcptest.rules.migration import Fail, Pass, Skipped, check_resource_error_code
from mcptest.suite.lane_blocks import (
    SPEC_DEFAULTS,
    ComplianceBlock,
    SpecVersionCheck,
    load_compliance_block,
)
from mcptest.suite.model import Expectation
from mcptest.suite.reading import SuiteError

CORPORA = Path(__file__).parents[1] / "data" / "corpora_like_the_seed"
SEEDED = {"v2024-11-05", "v2025-03-26", "v2025-06-18", "draft"}


def delta(version: str) -> VersionCorpus:
    return VersionCorpus.load_dir(version, CORPORA / version, extending=False)


def worked_example(newer: str) -> VersionDiff:
    return diff_versions(delta("v2024-11-05"), delta(newer))


def ids(diff: VersionDiff, bucket: str) -> list[str]:
    return [entry.rule_id for entry in diff.entries if entry.bucket == bucket]


def block(tmp_path: Path, text: str) -> ComplianceBlock:
    path = tmp_path / "suite.yml"
    path.write_text(text)
    found = load_compliance_block(path)
    assert found is not None
    return found


# -- the pin -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [*sorted(SEEDED), "v2025-11-25", "v2026-07-28"])
def test_a_pin_is_the_name_of_a_corpus_folder(tmp_path: Path, value: str) -> None:
    pinned = block(tmp_path, f"compliance: {{spec_version: {value}}}")
    assert pinned.spec_version is not None
    assert pinned.spec_version.label == value
    assert (SHIPPED / value).is_dir()


def test_the_pin_is_optional(tmp_path: Path) -> None:
    assert block(tmp_path, "compliance: {tests: []}").spec_version is None


def test_a_bare_array_of_tests_has_no_place_for_a_pin(tmp_path: Path) -> None:
    found = block(tmp_path, "compliance:\n  - name: PROTO-002\n")
    assert found.spec_version is None
    assert found.spec_version_check is None
    assert [test.name for test in found.tests or ()] == ["PROTO-002"]


@pytest.mark.parametrize("typo", ["v2025-6-18", "2025-06-18", "v2025-06-19", "Draft", "latest"])
def test_a_misspelled_pin_fails_the_load(tmp_path: Path, typo: str) -> None:
    with pytest.raises(SuiteError) as caught:
        block(tmp_path, f"compliance:\n  spec_version: {typo}\n")
    [problem] = caught.value.problems
    assert problem.message == f"unknown compliance spec_version: {typo}"
    assert (problem.place.line, problem.place.column) == (2, 3)
    assert "accepted: v2024-11-05" in problem.hint
    if "2025-6" in typo:
        assert problem.hint.startswith("did you mean v2025-06-18?")


# -- the report ----------------------------------------------------------------------------


def test_proto_002_gains_an_optional_transport_enum_in_v2025_06_18() -> None:
    [changed] = worked_example("v2025-06-18").changed_rules()
    assert changed.rule_id == "PROTO-002"
    assert changed.was is not None
    assert changed.now is not None
    assert changed.was.row is not None
    assert changed.now.row is not None
    assert changed.now.row.expect[0] == changed.was.row.expect[0]
    assert "enum" in str(changed.now.row.expect[1].matcher)


def test_rules_of_the_newer_revision_alone_are_added() -> None:
    added = ids(worked_example("v2025-06-18"), "added")
    assert added == ["ELICIT-001", "RESTPL-001", "ROOTS-001", "SAMPLE-001"]


def test_rules_that_the_smaller_delta_corpus_omits_are_removed() -> None:
    assert ids(worked_example("v2025-06-18"), "removed") == ["PROTO-001", "PROTO-008", "TOOL-101"]


def test_proto_008_is_unchanged_in_draft_where_only_its_severity_moves() -> None:
    diff = worked_example("draft")
    assert ids(diff, "unchanged") == ["PROTO-008"]
    [moved] = diff.severity_changes()
    assert moved.rule_id == "PROTO-008"
    assert [one.value for one in moved.severity_move or () if one] == ["SHOULD", "MUST"]
    assert diff.is_clean()


def test_the_order_of_keys_is_no_change() -> None:
    text = (CORPORA / "draft" / "rules.yml").read_text()
    assert text.index("matcher") < text.index("target"), "the fixture has its keys reordered"
    assert worked_example("draft").is_clean()


def test_entries_are_one_flat_list_ordered_by_rule_id_with_a_summary() -> None:
    diff = worked_example("v2025-06-18")
    names = [entry.rule_id for entry in diff.entries]
    assert names == sorted(names)
    assert len(names) == len(set(names)) == 8
    counted = (diff.summary.changed, diff.summary.added, diff.summary.removed)
    assert counted == (1, 4, 3)
    assert diff.summary.unchanged == 0


def test_a_diff_is_clean_when_nothing_is_in_the_changed_bucket() -> None:
    assert not worked_example("v2025-06-18").is_clean()
    assert worked_example("draft").is_clean(), "added and removed rules do not count"


def test_render_pretty_prints_a_summary_for_people() -> None:
    text = worked_example("v2025-06-18").render_pretty(False)
    assert text.startswith("v2024-11-05 -> v2025-06-18: BREAKING\n")
    assert "! PROTO-002  initialize returns negotiated capabilities" in text
    assert "+ ELICIT-001" in text
    assert "- PROTO-001" in text
    assert "\x1b[" not in text
    assert "\x1b[31m" in worked_example("v2025-06-18").render_pretty(True)
    assert "~ PROTO-008  SHOULD -> MUST" in worked_example("draft").render_pretty(False)


# -- the same on our own, complete corpora -----------------------------------------------------


def complete(older: Revision, newer: Revision) -> VersionDiff:
    was, now = corpus_of(older), corpus_of(newer)
    assert was is not None
    assert now is not None
    return diff_versions(was, now)


def test_the_ids_of_the_page_keep_their_meaning_in_complete_corpora() -> None:
    diff = complete(Revision.V2024_11_05, Revision.V2025_06_18)
    assert "PROTO-002" in ids(diff, "changed")
    assert {"ELICIT-001", "SAMPLE-001", "ROOTS-001", "RESTPL-001"} <= set(ids(diff, "added"))
    assert {"PROTO-002", "PROTO-008"} & set(ids(diff, "removed")) == set()


def test_proto_008_is_unchanged_from_the_first_revision_to_the_draft() -> None:
    diff = complete(Revision.V2024_11_05, Revision.DRAFT)
    assert "PROTO-008" in ids(diff, "unchanged")
    assert "PROTO-008" in [entry.rule_id for entry in diff.severity_changes()]


def test_the_newest_revision_leads_cleanly_into_the_draft() -> None:
    assert complete(Revision.V2026_07_28, Revision.DRAFT).is_clean()


# -- the gate ------------------------------------------------------------------------------


def seeded(revision: Revision) -> VersionCorpus | None:
    folder = CORPORA / revision.label
    return delta(revision.label) if folder.is_dir() else None


def gate(tmp_path: Path, check: str, pin: str = "v2024-11-05") -> GateResult:
    text = f"compliance:\n  spec_version: {pin}\n  spec_version_check: {check}\n  tests: []\n"
    result = judge_spec_version_check(block(tmp_path, text), seeded)
    assert result is not None
    return result


def test_the_gate_fails_on_an_upgrade_breakage(tmp_path: Path) -> None:
    result = gate(tmp_path, "{against: v2025-06-18}")
    assert not result.passed
    assert gate_line(result).startswith("spec_version_check: FAIL (v2024-11-05 -> v2025-06-18")
    assert any("spec_clean" in failure for failure in result.lines)
    assert any("PROTO-002" in failure for failure in result.lines)


def test_the_gate_into_draft_is_clean(tmp_path: Path) -> None:
    result = gate(tmp_path, "{against: draft}")
    assert result.passed
    assert gate_line(result).startswith("spec_version_check: PASS")


def test_without_expect_the_defaults_are_clean_and_no_breaking_change(tmp_path: Path) -> None:
    text = "compliance: {spec_version: draft, spec_version_check: {against: draft}}"
    check = block(tmp_path, text).spec_version_check
    assert check is not None
    assert check.expect == SPEC_DEFAULTS
    assert [one.target for one in SPEC_DEFAULTS] == ["spec_clean", "spec_breaking_changes"]
    assert SPEC_DEFAULTS[1].matcher == {"schema": {"maxItems": 0}}


def test_the_gate_can_be_loosened_deliberately(tmp_path: Path) -> None:
    loose = "{against: v2025-06-18, expect: [{target: spec_clean, matcher: {exact: false}}]}"
    assert gate(tmp_path, loose).passed
    listed = (
        "{against: v2025-06-18, expect: "
        "[{target: spec_breaking_changes, matcher: {exact: [PROTO-002]}}]}"
    )
    assert gate(tmp_path, listed).passed


def test_the_gate_knows_what_was_added_removed_and_weighted(tmp_path: Path) -> None:
    facts = diff_facts(worked_example("v2025-06-18"))
    assert facts["spec_added"] == ["ELICIT-001", "RESTPL-001", "ROOTS-001", "SAMPLE-001"]
    assert facts["spec_removed"] == ["PROTO-001", "PROTO-008", "TOOL-101"]
    assert diff_facts(worked_example("draft"))["spec_severity_changes"] == ["PROTO-008"]
    strict = "{against: draft, expect: [{target: spec_severity_changes, matcher: {max_length: 0}}]}"
    assert not gate(tmp_path, strict).passed


def test_a_gate_without_against_passes_with_a_note(tmp_path: Path) -> None:
    for empty in ("{}", ""):
        result = gate(tmp_path, empty)
        assert result.passed
        assert "no against" in result.detail
        assert not result.lines


def test_a_target_without_a_corpus_passes_with_a_note(tmp_path: Path) -> None:
    result = gate(tmp_path, "{against: v2025-03-26}")
    assert result.passed
    assert "no corpus for v2025-03-26" in result.detail


def test_a_gate_without_a_pin_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as caught:
        block(tmp_path, "compliance:\n  spec_version_check: {against: draft}\n")
    [problem] = caught.value.problems
    assert "needs compliance.spec_version" in problem.message
    assert problem.place.line == 2
    unpinned = ComplianceBlock(spec_version_check=SpecVersionCheck(Revision.DRAFT))
    with pytest.raises(UsageError, match="needs compliance"):
        judge_spec_version_check(unpinned, seeded)


def test_a_misspelled_against_is_an_error(tmp_path: Path) -> None:
    text = "compliance: {spec_version: draft, spec_version_check: {against: v2025-6-18}}"
    with pytest.raises(SuiteError, match="unknown compliance spec_version: v2025-6-18"):
        block(tmp_path, text)


def test_a_block_without_the_gate_has_no_result() -> None:
    assert judge_spec_version_check(ComplianceBlock(), seeded) is None


def test_an_unknown_fact_fails_the_gate() -> None:
    expect = (Expectation("spec_unheard_of", {"exact": True}),)
    gated = ComplianceBlock(Revision.DRAFT, SpecVersionCheck(Revision.DRAFT, expect))
    result = judge_spec_version_check(gated, seeded)
    assert result is not None
    assert not result.passed


# -- the code for a missing resource ---------------------------------------------------------


def test_minus_32002_fails_on_the_new_target_and_names_its_replacement() -> None:
    result = check_resource_error_code(-32002, Revision.V2026_07_28)
    assert isinstance(result, Fail)
    assert result.replacement == -32602
    assert "-32602" in result.reason


def test_minus_32602_passes_on_the_new_target() -> None:
    assert check_resource_error_code(-32602, Revision.V2026_07_28) == Pass(-32602)
    assert check_resource_error_code(-32602, Revision.DRAFT) == Pass(-32602)
    assert check_resource_error_code(-32602) == Pass(-32602)


@pytest.mark.parametrize("code", [-32603, 0, 404, "-32002", None, True, -32002.0])
def test_any_other_code_is_skipped(code: object) -> None:
    assert isinstance(check_resource_error_code(code, Revision.V2026_07_28), Skipped)


@pytest.mark.parametrize("target", [r for r in Revision if r < Revision.V2026_07_28])
def test_before_the_change_the_old_code_is_the_right_one(target: Revision) -> None:
    assert check_resource_error_code(-32002, target) == Pass(-32002)
    result = check_resource_error_code(-32602, target)
    assert isinstance(result, Fail)
    assert result.replacement == -32002


def test_the_corpora_ask_for_the_same_codes() -> None:
    for revision, code in ((Revision.V2025_11_25, -32002), (Revision.V2026_07_28, -32602)):
        corpus = corpus_of(revision)
        assert corpus is not None
        row = corpus.rules["RES-102"].row
        assert row is not None
        assert row.check.method == "resources/read"
        assert row.expect == (Expectation("error.code", {"exact": code}),)
        assert check_resource_error_code(code, revision) == Pass(code)
