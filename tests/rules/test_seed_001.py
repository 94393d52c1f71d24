"""The page on pins and upgrade reports (seed 001), statement by statement: where each is tested.

Statements are numbered in the order of the page and told in our own words. Most tests stand where
the code they test is tested; what stands nowhere else is tested here.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from mcptest.core.revision import Revision
from mcptest.probe.lanes import judge_block
from mcptest.rules.corpus.reader import SHIPPED, VersionCorpus, corpus_of
from mcptest.rules.grading import exit_code_for
from mcptest.rules.migration import Fail, check_resource_error_code
from mcptest.suite.lane_blocks import ComplianceBlock, SpecVersionCheck, load_compliance_block
from mcptest.suite.observed import SeenExchange, judge_exchange

DIFF = "tests.rules.test_version_diff_seed"
BLOCK = "tests.suite.test_compliance_block"
LANES = "tests.suite.test_lane_blocks"
LANE = "tests.probe.test_compliance_lane"
RUN = "tests.e2e.test_compliance_run"
EXAMPLES = "tests.e2e.test_examples"
DOCTOR = "tests.e2e.test_doctor"
HERE = "tests.rules.test_seed_001"

STATEMENTS: dict[int, tuple[str, tuple[str, ...]]] = {
    1: (
        "a suite is written for one dated revision; the report says which rules moved since",
        (f"{DIFF}.test_a_pin_is_the_name_of_a_corpus_folder",),
    ),
    2: (
        "the pin and the diff are wired into a gate that fails the run on a breakage",
        (f"{RUN}.test_an_empty_list_is_the_gates_alone_and_starts_no_server",),
    ),
    3: (
        "the example pins a suite, gates the way into another revision, and runs by --from-suite",
        (f"{EXAMPLES}.test_the_pinned_example_conforms_and_its_gate_is_clean",),
    ),
    4: (
        "the pin stands in the compliance block, beside the server and the tests",
        (
            f"{LANES}.test_a_server_and_a_compliance_block_are_a_suite",
            f"{RUN}.test_a_suite_runs_rules_of_the_pinned_corpus_and_checks_of_its_own",
        ),
    ),
    5: ("the pin is optional", (f"{DIFF}.test_the_pin_is_optional",)),
    6: (
        "the bare list of tests has no place for a pin and needs none",
        (
            f"{DIFF}.test_a_bare_array_of_tests_has_no_place_for_a_pin",
            f"{RUN}.test_a_bare_list_is_judged_in_the_revision_that_is_spoken",
        ),
    ),
    7: (
        "accepted are the names of the corpora's folders",
        (
            f"{DIFF}.test_a_pin_is_the_name_of_a_corpus_folder",
            f"{HERE}.test_the_draft_comes_after_every_dated_revision",
        ),
    ),
    8: (
        "a misspelled pin fails the load and says so, in these words",
        (
            f"{DIFF}.test_a_misspelled_pin_fails_the_load",
            f"{LANES}.test_a_mistake_in_a_lane_is_told_with_its_place_and_nothing_is_run",
        ),
    ),
    9: (
        "two revisions may hold the same rule with other expectations, as PROTO-002 does",
        (
            f"{DIFF}.test_proto_002_gains_an_optional_transport_enum_in_v2025_06_18",
            f"{DIFF}.test_the_ids_of_the_page_keep_their_meaning_in_complete_corpora",
        ),
    ),
    10: (
        "a suite that is pinned tests what its own revision expects",
        (f"{HERE}.test_a_pinned_suite_tests_the_expectation_of_its_revision",),
    ),
    11: (
        "two loaded corpora are compared by the expect of each rule they share, by its id",
        (f"{HERE}.test_corpora_are_loaded_from_folders_and_compared",),
    ),
    12: (
        "each rule is in one of four buckets",
        (f"{DIFF}.test_entries_are_one_flat_list_ordered_by_rule_id_with_a_summary",),
    ),
    13: (
        "the comparison is one of structure: the order of keys does not count",
        (f"{DIFF}.test_the_order_of_keys_is_no_change",),
    ),
    14: (
        "the report is a flat list by rule id, with a summary; clean means that nothing changed",
        (
            f"{DIFF}.test_a_diff_is_clean_when_nothing_is_in_the_changed_bucket",
            f"{DIFF}.test_render_pretty_prints_a_summary_for_people",
        ),
    ),
    15: (
        "from v2024-11-05 to v2025-06-18 one rule changed, four are new, many are omitted",
        (
            f"{DIFF}.test_proto_002_gains_an_optional_transport_enum_in_v2025_06_18",
            f"{DIFF}.test_rules_of_the_newer_revision_alone_are_added",
            f"{DIFF}.test_rules_that_the_smaller_delta_corpus_omits_are_removed",
        ),
    ),
    16: (
        "into draft PROTO-008 is unchanged: only its severity moves",
        (f"{DIFF}.test_proto_008_is_unchanged_in_draft_where_only_its_severity_moves",),
    ),
    17: (
        "spec_version_check compares the pin with against and gives targets to expect",
        (
            f"{BLOCK}.test_the_object_form_has_pin_gates_and_tests",
            f"{DIFF}.test_the_gate_knows_what_was_added_removed_and_weighted",
        ),
    ),
    18: (
        "the breaking case fails the gate by default",
        (f"{DIFF}.test_the_gate_fails_on_an_upgrade_breakage",),
    ),
    19: (
        "the example that ships goes into draft and passes",
        (
            f"{DIFF}.test_the_gate_into_draft_is_clean",
            f"{DIFF}.test_the_newest_revision_leads_cleanly_into_the_draft",
            f"{EXAMPLES}.test_the_pinned_example_conforms_and_its_gate_is_clean",
        ),
    ),
    20: (
        "without expect the defaults are clean, and no breaking change",
        (f"{DIFF}.test_without_expect_the_defaults_are_clean_and_no_breaking_change",),
    ),
    21: (
        "one PASS or FAIL line goes into the exit code, as that of grade_delta does",
        (
            f"{RUN}.test_an_empty_list_is_the_gates_alone_and_starts_no_server",
            f"{RUN}.test_the_grade_gate_passes_with_a_note_first_and_then_compares",
            f"{LANE}.test_the_exit_code_follows_from_the_verdicts",
        ),
    ),
    22: (
        "the corpora ship with mcptest, and stand beside the registry that --registry names",
        (f"{HERE}.test_the_corpora_stand_beside_the_registry",),
    ),
    23: (
        "without against the gate passes with a note",
        (f"{DIFF}.test_a_gate_without_against_passes_with_a_note",),
    ),
    24: (
        "without a corpus for the revision to go to it passes with a note",
        (f"{DIFF}.test_a_target_without_a_corpus_passes_with_a_note",),
    ),
    25: ("a check without a pin is an error", (f"{DIFF}.test_a_gate_without_a_pin_is_an_error",)),
    26: (
        "only a changed rule is a breakage, and the run is red until the gate is loosened",
        (
            f"{DIFF}.test_the_gate_can_be_loosened_deliberately",
            f"{HERE}.test_the_run_stays_red_until_the_gate_is_loosened",
        ),
    ),
    27: (
        "the code for a missing resource is -32002 before 2026-07-28 and -32602 from then on",
        (f"{DIFF}.test_the_corpora_ask_for_the_same_codes",),
    ),
    28: (
        "who still answers -32002 then does not conform",
        (f"{HERE}.test_the_old_code_does_not_conform_to_the_new_revision",),
    ),
    29: (
        "that has nothing to do with the iss of authorization responses",
        (f"{HERE}.test_the_code_and_authorization_are_judged_by_different_rules",),
    ),
    30: (
        "the helper compares integers: Fail with the replacement, Pass, or Skipped",
        (
            f"{DIFF}.test_minus_32002_fails_on_the_new_target_and_names_its_replacement",
            f"{DIFF}.test_minus_32602_passes_on_the_new_target",
            f"{DIFF}.test_any_other_code_is_skipped",
        ),
    ),
    31: (
        "the companion that runs is examples/migration-doctor; ours asks a live server as well",
        (
            f"{DOCTOR}.test_the_example_says_what_its_readme_says",
            f"{DOCTOR}.test_the_code_of_a_missing_resource_is_judged_end_to_end",
        ),
    ),
}


@pytest.mark.parametrize("number", STATEMENTS)
def test_every_statement_has_its_tests(number: int) -> None:
    about, tests = STATEMENTS[number]
    assert tests, about
    for name in tests:
        module, _, function = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), function, None)), name


def test_no_number_is_left_out() -> None:
    assert list(STATEMENTS) == list(range(1, 32))


# -- what is tested nowhere else ---------------------------------------------------------------


def test_the_draft_comes_after_every_dated_revision() -> None:
    """Statement 7: draft looks ahead, and is no published revision."""
    assert max(Revision, key=lambda one: one.place) is Revision.DRAFT
    assert {path.name for path in SHIPPED.iterdir() if path.is_dir()} >= {
        revision.label for revision in Revision
    }


def test_a_pinned_suite_tests_the_expectation_of_its_revision() -> None:
    """Statement 10: the same server passes the older PROTO-002 and fails the newer one."""
    odd = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": "1"}}
    seen = SeenExchange(result={**odd, "capabilities": {}, "transport": "carrier pigeon"})
    passed = []
    for revision in (Revision.V2024_11_05, Revision.V2025_06_18):
        corpus = corpus_of(revision)
        assert corpus is not None
        row = corpus.rules["PROTO-002"].row
        assert row is not None
        passed.append(judge_exchange(row.expect, seen).passed)
    assert passed == [True, False]


def test_corpora_are_loaded_from_folders_and_compared() -> None:
    """Statement 11: `load_dir` takes a name and a folder."""
    from mcptest.rules.corpus.version_diff import diff_versions

    loaded = [
        VersionCorpus.load_dir(name, SHIPPED / name) for name in ("v2024-11-05", "v2025-06-18")
    ]
    diff = diff_versions(*loaded)
    assert (diff.from_version, diff.to_version) == ("v2024-11-05", "v2025-06-18")
    assert "PROTO-002" in [entry.rule_id for entry in diff.changed_rules()]


def _no_events(event: object) -> None:
    """Nobody listens."""


def test_the_corpora_stand_beside_the_registry(tmp_path: Path) -> None:
    """Statement 22: another registry brings its own corpora, or has none to compare with."""
    block = ComplianceBlock(Revision.V2024_11_05, SpecVersionCheck(Revision.V2025_06_18), tests=())
    (shipped,) = judge_block(block, None, _no_events).gates
    assert not shipped.passed
    (tmp_path / "registry.yml").write_text("{}\n")
    (own,) = judge_block(block, None, _no_events, corpora=tmp_path).gates
    assert own.passed
    assert "no corpus for v2025-06-18" in own.detail


@pytest.mark.parametrize(("expect", "code"), [("", 1), ("false", 0)])
def test_the_run_stays_red_until_the_gate_is_loosened(
    tmp_path: Path, expect: str, code: int
) -> None:
    """Statement 26, to the exit code."""
    loosened = f", expect: [{{target: spec_clean, matcher: {{exact: {expect}}}}}]" if expect else ""
    gate = f"spec_version_check: {{against: v2025-06-18{loosened}}}"
    path = tmp_path / "suite.yml"
    path.write_text(f"compliance: {{spec_version: v2024-11-05, {gate}, tests: []}}\n")
    block = load_compliance_block(path)
    assert block is not None
    found = judge_block(block, None, _no_events)
    assert exit_code_for(found.judgements, found.gates) == code


@pytest.mark.parametrize(
    ("revision", "code", "conforms"),
    [
        (Revision.V2025_11_25, -32002, True),
        (Revision.V2026_07_28, -32002, False),
        (Revision.V2026_07_28, -32602, True),
        (Revision.DRAFT, -32002, False),
    ],
)
def test_the_old_code_does_not_conform_to_the_new_revision(
    revision: Revision, code: int, conforms: bool
) -> None:
    """Statement 28: the rule of the corpus and the helper say the same."""
    corpus = corpus_of(revision)
    assert corpus is not None
    row = corpus.rules["RES-102"].row
    assert row is not None
    seen = SeenExchange(error={"code": code, "message": "no such resource"})
    assert judge_exchange(row.expect, seen).passed is conforms
    assert isinstance(check_resource_error_code(code, revision), Fail) is not conforms


def test_the_code_and_authorization_are_judged_by_different_rules() -> None:
    """Statement 29: no rule about authorization looks at the code, and RES-102 at nothing else."""
    corpus = corpus_of(Revision.V2026_07_28)
    assert corpus is not None
    row = corpus.rules["RES-102"].row
    assert row is not None
    assert [one.target for one in row.expect] == ["error.code"]
    assert not row.needs.authorization
    about_tokens = [one.row for name, one in corpus.rules.items() if name.startswith("AUTH-")]
    assert about_tokens
    assert not any("-32602" in str(one.expect) for one in about_tokens if one is not None)
