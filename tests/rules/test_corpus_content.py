"""The corpora that ship: complete, consistent, and nothing in them passes on silence."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from mcptest.core.revision import TIMELINE, Revision
from mcptest.core.verdict import Severity, Side
from mcptest.rules.catalogue import all_rules
from mcptest.rules.corpus.probes import (
    all_probes,
    fill,
    known_fixtures,
    placeholders,
    placeholders_in,
    well_known,
)
from mcptest.rules.corpus.reader import SHIPPED, VersionCorpus, corpus_of, shipped_registry
from mcptest.rules.corpus.registry import CorpusRule, Row, unmet
from mcptest.rules.corpus.version_diff import diff_versions
from mcptest.rules.declaration import RULES
from mcptest.suite.observed import SeenExchange, exchange_target_problem, judge_exchange
from tests.docs.compliance_docs import covered_statements, untested_statements

# Every statement of our list about servers or about both sides.
STATEMENTS = """
L03-06 L09 L11 L12 L15-17 L20-22 L24-30 L34 L36 L37 L40 L41
J01-04 J06-26 J28-32
S01 S02 S05 S07 S10 S14 S15
H01 H03-07 H10-12 H14-19 H21-26 H28 H29 H33 H34 H36 H37 H39-41 H43 H46 H47 H50 H51 H53-55 H57 H58
H60-64 H69
M01-05 M11-16
U01-08 U10 U11
C01-04
T01-25 T27-30
R01-05 R07-18
P01-11
K01-07
G01-11
Y02 Y03 Y05 Y06 Y08 Y09
E02-04 E06 E09-13 E16-19 E21 E22
O05 O07
Q01-15
N03 N06-08
W01-20 W23 W24
Z01-04 Z06-09 Z28-30
X03-05 X08
"""


def complete(revision: Revision) -> VersionCorpus:
    corpus = corpus_of(revision)
    assert corpus is not None
    return corpus


def rows() -> list[tuple[Revision, CorpusRule, Row]]:
    return [
        (revision, rule, rule.row)
        for revision in TIMELINE
        for rule in complete(revision).rules.values()
        if rule.row is not None
    ]


def statements() -> set[str]:
    found = set()
    for letter, first, last in re.findall(r"([A-Z])(\d\d)(?:-(\d\d))?", STATEMENTS):
        found |= {f"{letter}{n:02}" for n in range(int(first), int(last or first) + 1)}
    return found


# -- size and completeness -----------------------------------------------------------------


def test_the_list_of_statements_is_the_one_that_was_counted() -> None:
    assert len(statements()) == 287


def test_every_statement_is_judged_or_explained_and_never_both() -> None:
    judged = set(covered_statements())
    explained = [one.statement for one in untested_statements()]
    assert len(explained) == len(set(explained))
    assert judged | set(explained) == statements()
    assert judged & set(explained) == set()


@pytest.mark.parametrize(
    ("revision", "least"),
    [
        (Revision.V2024_11_05, 60),
        (Revision.V2025_03_26, 80),
        (Revision.V2025_06_18, 100),
        (Revision.V2025_11_25, 140),
        (Revision.V2026_07_28, 180),
        (Revision.DRAFT, 180),
    ],
)
def test_a_revision_has_its_rules(revision: Revision, least: int) -> None:
    assert len(complete(revision).rules) >= least


@pytest.mark.parametrize("revision", TIMELINE)
def test_a_complete_corpus_has_the_rules_over_sessions_too(revision: Revision) -> None:
    held = [
        rule for rule in all_rules() if revision in rule.window and rule.side is not Side.CLIENT
    ]
    judged = {rule.session.id for rule in complete(revision).rules.values() if rule.session}
    assert judged == {rule.id for rule in held}


def test_every_revision_but_the_first_shows_what_it_changed() -> None:
    for earlier, revision in pairwise(TIMELINE):
        alone = VersionCorpus.load_dir(revision.label, SHIPPED / revision.label, extending=False)
        assert len(alone.rules) < len(complete(revision).rules)
        was = complete(earlier)
        for name, rule in alone.rules.items():
            before = was.rules.get(name)
            if before is None or before.row is None or rule.row is None:
                continue
            same = (before.row.expect, before.row.check, before.row.needs)
            assert same != (rule.row.expect, rule.row.check, rule.row.needs), f"{name} is repeated"


# -- the registry --------------------------------------------------------------------------


def test_a_text_without_a_keyword_demands_nothing() -> None:
    """It may quote an example or a list: whoever does otherwise breaks neither MUST nor SHOULD."""
    bare = {
        name: {entry.severity_in(revision) for revision in TIMELINE}
        for name, entry in shipped_registry().items()
        if re.search("(without a|has no) keyword", " ".join(entry.requirement.split()))
    }
    assert {"TOOLS-005", "TOOLS-008"} <= bare.keys()
    assert set().union(*bare.values()) == {Severity.MAY}


def test_every_rule_of_a_corpus_is_in_the_registry_and_the_other_way_round() -> None:
    used = {name for revision in TIMELINE for name in complete(revision).rules}
    assert set(shipped_registry()) <= used
    for _, rule, _ in rows():
        assert rule.entry is not None


def test_no_id_means_two_rules() -> None:
    for entry in shipped_registry().values():
        if entry.session_rule:
            assert entry.id == entry.session_rule or entry.id not in RULES
        else:
            assert entry.id not in RULES, f"{entry.id} is a rule over sessions already"


def test_a_rule_over_sessions_is_named_once() -> None:
    named = [entry.session_rule for entry in shipped_registry().values() if entry.session_rule]
    assert len(named) == len(set(named))


def test_schema_006_is_structured_content_against_the_output_schema() -> None:
    rule = complete(Revision.V2025_06_18).rules["SCHEMA-006"]
    assert rule.session is RULES["TOOL-001"]
    assert "SCHEMA-006" not in complete(Revision.V2025_03_26).rules
    assert "TOOL-001" not in complete(Revision.V2025_06_18).rules, "it would count twice"


def test_every_rule_of_a_corpus_has_title_severity_page_and_remedy() -> None:
    for revision, rule, _ in rows():
        where = (revision.label, rule.id)
        assert rule.title, where
        assert rule.severity is not None, where
        assert rule.section, where
        assert rule.fix, where
        assert len(rule.requirement) > 20, where
        assert rule.url.startswith(f"https://modelcontextprotocol.io/specification/{revision}/")


def test_what_comes_and_goes_says_what_to_do() -> None:
    for older, newer in pairwise(TIMELINE):
        diff = diff_versions(complete(older), complete(newer))
        silent = [entry.rule_id for entry in diff.in_bucket("added") if not entry.rule.fix]
        silent += [
            entry.rule_id
            for entry in diff.in_bucket("removed")
            if entry.rule.entry is None or not entry.rule.entry.retired
        ]
        assert silent == [], f"{older} to {newer}"


# -- the rows ------------------------------------------------------------------------------


def test_silence_satisfies_no_rule() -> None:
    passed = {
        (revision.label, rule.id)
        for revision, rule, row in rows()
        if unmet(row.when, SeenExchange()) is None
        and judge_exchange(row.expect, SeenExchange()).passed
    }
    assert passed == set()


def test_a_condition_says_in_words_why_nothing_can_be_expected() -> None:
    for revision, rule, row in rows():
        for one in row.when:
            assert one.otherwise.startswith(("the ", "no ")), (revision.label, rule.id)


def test_an_error_of_another_code_satisfies_no_rule_about_a_code() -> None:
    seen = SeenExchange(error={"code": 1, "message": "something else"}, http={"status": 200})
    for revision, rule, row in rows():
        if any(one.target == "error.code" for one in row.expect):
            assert not judge_exchange(row.expect, seen).passed, (revision.label, rule.id)


def test_a_row_that_is_hard_to_read_says_it_in_words() -> None:
    for revision, rule, row in rows():
        if any("schema" in one.matcher for one in row.expect) and len(row.expect) == 1:
            assert row.says, (revision.label, rule.id)


def test_every_probe_and_every_placeholder_is_used() -> None:
    beside = [one for _, _, row in rows() for one in (row.control, row.unlike) if one is not None]
    sent = [*(row.check for _, _, row in rows()), *beside]
    sent += [step.send for probe in all_probes().values() for step in probe.steps]
    assert {check.probe for check in sent} - {""} == set(all_probes())
    texts = [(one.method, one.params, one.meta, one.headers, one.raw) for one in sent]
    assert set(placeholders_in(texts)) == set(placeholders())


def test_every_fact_and_every_step_of_a_probe_can_be_a_target() -> None:
    for probe in all_probes().values():
        assert len(set(probe.step_names)) == len(probe.steps)
        for name in probe.step_names:
            target = f"steps.{name}.answer"
            assert exchange_target_problem(target, probe.step_names, probe.facts) is None
        for fact in probe.facts:
            assert exchange_target_problem(f"probe.{fact}", (), probe.facts) is None


def test_every_fixture_of_a_placeholder_is_one_that_a_rule_needs() -> None:
    needed = {row.needs.fixture for _, _, row in rows()} - {""}
    assert needed == known_fixtures()
    assert set(well_known()) <= known_fixtures()


def test_a_check_that_uses_a_fixture_needs_it() -> None:
    prefix = "the fixture "
    for revision, rule, row in rows():
        for name in placeholders_in([row.check.params, row.check.headers]):
            unlocked_by = placeholders()[name].unlocked_by
            if unlocked_by.startswith(prefix):
                needed = unlocked_by.removeprefix(prefix)
                assert row.needs.fixture == needed, (revision.label, rule.id)


def test_a_rule_about_a_feature_needs_that_it_is_declared_or_is_about_its_absence() -> None:
    """A finding never rests on an undeclared capability."""
    for revision, rule, row in rows():
        feature = row.check.method.partition("/")[0]
        asks = [one.matcher.get("exact") for one in row.expect]
        if feature in {"tools", "resources", "prompts"} and asks != [-32601]:
            declared = {one.partition(".")[0] for one in row.needs.capability}
            ok = feature in declared or feature in row.needs.undeclared or row.needs.extension
            assert ok or "tasks" in declared, (revision.label, rule.id)


def test_a_rule_about_http_is_asked_over_http() -> None:
    for revision, rule, row in rows():
        about_http = any(one.target.startswith("http.") for one in row.expect)
        if about_http or row.check.http is not None:
            assert set(row.needs.transport) & {"http", "sse"}, (revision.label, rule.id)
        assert rule.entry is not None
        if rule.entry.transports:
            assert set(row.needs.transport) <= set(rule.entry.transports), (revision, rule.id)
            assert row.needs.transport, (revision.label, rule.id)


def test_filling_in_keeps_types_and_names_what_is_missing() -> None:
    known = {"safe_tool": "add", "safe_arguments": {"a": 1}, "header_name": "Mcp-Param-A"}
    params = {"name": "{safe_tool}", "arguments": "{safe_arguments}", "said": "call {safe_tool}"}
    assert fill(params, known) == {"name": "add", "arguments": {"a": 1}, "said": "call add"}
    assert fill({"{header_name}": None}, known) == {"Mcp-Param-A": None}
    assert fill([1, "x{y}"], {"y": 2}) == [1, "x2"]
    with pytest.raises(KeyError, match="unknown_uri"):
        fill({"uri": "{unknown_uri}"}, known)
