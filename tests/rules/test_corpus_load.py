"""Loading corpora: what extends what, and every mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcptest.core.revision import Revision
from mcptest.core.verdict import Severity
from mcptest.rules.corpus.reader import VersionCorpus, corpus_of
from mcptest.rules.corpus.registry import load_registry
from mcptest.suite.reading import SuiteError, SuiteProblem

ROW = """\
- rule_id: {name}
  check: ping
  expect:
    - {{target: answer, matcher: {{exact: {answer}}}}}
"""
ENTRY = """\
- id: {name}
  title: a title
  section: a section
  severity: MUST
  spec: basic
  requirement: Something must hold.
"""


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yml").write_text(text)
    return folder


def row(name: str, answer: str = "result") -> str:
    return ROW.format(name=name, answer=answer)


def registry(*names: str) -> str:
    return "rules:\n" + "".join(ENTRY.format(name=name) for name in names)


def load(folder: Path, *, extending: bool = True) -> VersionCorpus:
    return VersionCorpus.load_dir(folder.name, folder, extending=extending)


def problems_of(folder: Path) -> list[SuiteProblem]:
    with pytest.raises(SuiteError) as caught:
        load(folder)
    assert caught.value.exit_code == 2
    return list(caught.value.problems)


def only_problem(folder: Path) -> SuiteProblem:
    [problem] = problems_of(folder)
    return problem


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write(tmp_path / "v2024-11-05", rules=row("AAA-001") + row("AAA-002"))


# -- extends and removes -------------------------------------------------------------------


def test_a_folder_by_itself_is_its_rows(base: Path) -> None:
    corpus = load(base)
    assert list(corpus.rules) == ["AAA-001", "AAA-002"]
    assert corpus.revision is Revision.V2024_11_05
    rule = corpus.rules["AAA-001"]
    assert rule.row is not None
    assert rule.row.check.method == "ping"
    assert rule.row.place.line == 1
    assert rule.severity is None, "there is no registry"


def test_a_folder_that_extends_another_is_complete(base: Path) -> None:
    newer = write(
        base.parent / "v2025-03-26",
        corpus="extends: v2024-11-05\nremoves: [AAA-002]\nabout: It changed.\n",
        rules=row("AAA-001", "error") + row("BBB-001"),
    )
    corpus = load(newer)
    assert list(corpus.rules) == ["AAA-001", "BBB-001"]
    assert corpus.about == "It changed."
    replaced = corpus.rules["AAA-001"].row
    assert replaced is not None
    assert replaced.expect[0].matcher == {"exact": "error"}


def test_it_can_be_loaded_without_extending(base: Path) -> None:
    newer = write(
        base.parent / "v2025-03-26", corpus="extends: v2024-11-05\n", rules=row("BBB-001")
    )
    assert list(load(newer, extending=False).rules) == ["BBB-001"]
    assert len(load(newer).rules) == 3


def test_what_is_extended_is_found_over_several_revisions(base: Path) -> None:
    write(base.parent / "v2025-03-26", corpus="extends: v2024-11-05\n")
    newest = write(base.parent / "v2025-06-18", corpus="extends: v2025-03-26\n")
    assert list(load(newest).rules) == ["AAA-001", "AAA-002"]


def test_a_corpus_never_extends_itself_or_a_later_one(base: Path) -> None:
    write(base, corpus="extends: v2025-03-26\n")
    newer = write(base.parent / "v2025-03-26", corpus="extends: v2025-03-26\n")
    assert only_problem(newer).message == "v2025-03-26 is not an earlier revision"
    assert only_problem(base).message == "v2025-03-26 is not an earlier revision"


def test_extends_names_a_folder_beside_it(base: Path) -> None:
    newer = write(base.parent / "v2025-03-26", corpus="extends: ../v2024-11-05\n")
    assert "there is no corpus" in only_problem(newer).message
    write(newer, corpus="extends: v2025-01-01\n")
    problem = only_problem(newer)
    assert (problem.place.line, problem.place.column) == (1, 1)


def test_what_is_removed_was_there(base: Path) -> None:
    corpus = "extends: v2024-11-05\nremoves: [AAA-009]\n"
    newer = write(base.parent / "v2025-03-26", corpus=corpus)
    problem = only_problem(newer)
    assert problem.message == "AAA-009 is not in v2024-11-05"
    assert problem.place.line == 2


def test_what_is_removed_is_not_given_again(base: Path) -> None:
    newer = write(
        base.parent / "v2025-03-26",
        corpus="extends: v2024-11-05\nremoves: [AAA-001]\n",
        rules=row("AAA-001"),
    )
    assert only_problem(newer).message == "AAA-001 is both removed and defined"


def test_removes_without_extends_has_no_meaning(base: Path) -> None:
    write(base, corpus="removes: [AAA-001]\n")
    assert "needs extends" in only_problem(base).message


# -- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("- rule_id: AAA-001\n  check: ping\n", 1, 3, "expect is missing from a rule"),
        ("rules: []\n", 1, 1, "a corpus file must be a list of rules, not a mapping"),
        ("", 1, 1, "a corpus file must be a list of rules, not empty"),
        ("- ping\n", 1, 3, "a rule must be a mapping"),
        (row("AAA-001").replace("check", "chek"), 2, 3, "unknown key chek in a rule"),
        (row("AAA-001").replace("answer", "anser"), 4, 8, 'unknown target "anser"'),
        (row("AAA-001").replace("exact", "exct"), 4, 34, "unknown matcher exct"),
        (row("AAA-001").replace("ping", "{probe: no_such}"), 2, 11, "unknown probe no_such"),
        (row("AAA-001").replace("ping", "{raw: x, probe: y}"), 2, 10, "check has raw and probe"),
        (row("AAA-001").replace("ping", "{}"), 2, 10, "check has nothing to send"),
        (
            row("AAA-001").replace("ping", '{method: m, params: {u: "{nobody}"}}'),
            2,
            3,
            "unknown placeholder {nobody}",
        ),
        (row("AAA-001").replace("ping", "{raw: x, params: {}}"), 2, 19, "params has no effect"),
        (row("AAA-001").replace("ping", "{method: m, omit: [id]}"), 2, 22, "omit: id"),
        (row("AAA-001") + "  needs: {fixture: no_such}\n", 5, 11, "unknown fixture no_such"),
        (row("AAA-001") + row("AAA-001"), 5, 3, "the rule AAA-001 is defined twice"),
        (row("AAA-001") + "  check: pong\n", 5, 3, "the key check appears twice"),
        ("- rule_id: [\n", 2, 1, "not valid YAML"),
    ],
)
def test_a_mistake_has_its_place(
    tmp_path: Path, text: str, line: int, column: int, message: str
) -> None:
    folder = write(tmp_path / "v2024-11-05", rules=text)
    told = problems_of(folder)
    [problem] = [one for one in told if one.message.startswith(message)]
    assert (problem.place.line, problem.place.column) == (line, column)
    assert problem.place.file == str(folder / "rules.yml")


def test_a_mistake_is_shown_with_its_line_and_a_caret(tmp_path: Path) -> None:
    folder = write(tmp_path / "v2024-11-05", rules=row("AAA-001").replace("answer", "anser"))
    with pytest.raises(SuiteError) as caught:
        load(folder)
    shown = str(caught.value)
    assert "rules.yml:4:8: unknown target" in shown
    assert "did you mean answer?" in shown
    assert "^^^^^^" in shown


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    folder = write(tmp_path / "v2024-11-05", one="- x\n- y\n", two="a: b\n")
    assert len(problems_of(folder)) == 3


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert only_problem(tmp_path / "v2024-11-05").message == "the folder does not exist"


def test_a_step_or_a_fact_is_one_of_the_probe(tmp_path: Path) -> None:
    text = row("AAA-001").replace("ping", "{probe: cursor_twice}")
    folder = write(tmp_path / "v2024-11-05", rules=text.replace("answer", "steps.third.answer"))
    told = only_problem(folder).message
    assert "is not a step of the check: there are page, first, second" in told
    write(folder, rules=text.replace("answer", "probe.nothing"))
    assert "is not a fact of the check: there are same_items" in only_problem(folder).message
    write(folder, rules=text.replace("answer", "steps.first.answer"))
    assert list(load(folder).rules) == ["AAA-001"]


def test_a_deep_or_huge_file_is_refused_quickly(tmp_path: Path) -> None:
    folder = write(tmp_path / "v2024-11-05", rules="- " * 5_000 + "x\n")
    assert "nested more than" in only_problem(folder).message


# -- the registry --------------------------------------------------------------------------


def test_a_rule_that_the_registry_does_not_know_is_an_error(base: Path) -> None:
    write(base.parent, registry=registry("AAA-001", "AAA-003"))
    problem = only_problem(base)
    assert problem.message == "AAA-002 is not in the registry"
    assert problem.place.line == 5


def test_the_registry_beside_the_folder_gives_names_and_weights(base: Path) -> None:
    write(base.parent, registry=registry("AAA-001", "AAA-002"))
    rule = load(base).rules["AAA-001"]
    assert (rule.title, rule.severity, rule.section) == ("a title", Severity.MUST, "a section")
    assert rule.url == "https://modelcontextprotocol.io/specification/2024-11-05/basic"


def test_a_severity_may_hold_from_a_revision_on(tmp_path: Path) -> None:
    text = registry("AAA-001").replace(
        "severity: MUST", "severity: {v2024-11-05: MAY, v2025-06-18: SHOULD, draft: MUST}"
    )
    entry = load_registry(write(tmp_path, registry=text) / "registry.yml")["AAA-001"]
    found = [entry.severity_in(revision) for revision in Revision]
    words = [one.value for one in found if one]
    assert words == ["MAY", "MAY", "SHOULD", "SHOULD", "SHOULD", "MUST"]
    assert entry.severity_in(None) is Severity.MAY


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("severity: MUST", "severity: MIGHT", "severity must be MUST, SHOULD or MAY, not MIGHT"),
        ("severity: MUST", "severity: {v2025: MUST}", "severity: unknown revision v2025"),
        ("  title: a title\n", "", "title is missing"),
        ("spec: basic", "spec: basic\n  session_rule: XYZ-001", "unknown session rule XYZ-001"),
        (
            "spec: basic",
            "spec: basic\n  session_rule: MSG-001\n  fix: Do it.",
            "the docstring of a session rule has its fix",
        ),
        ("spec: basic", "spec: basic\n  transports: [tcp]", "unknown transport tcp"),
        ("spec: basic", "spec: basic\n  migration: [pong]", "unknown migration item pong"),
        (
            "spec: basic",
            "spec: basic\n  yields_to: {MSG-001: looks}",
            "unknown likeness with MSG-001",
        ),
        ("spec: basic", "spec: basic\n  side: nobody", "side must be one of"),
    ],
)
def test_a_mistake_in_the_registry_is_told(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    text = registry("AAA-001").replace(before, after)
    with pytest.raises(SuiteError) as caught:
        load_registry(write(tmp_path, registry=text) / "registry.yml")
    assert caught.value.problems[0].message.startswith(message)


def test_an_id_stands_once_in_a_registry(tmp_path: Path) -> None:
    text = registry("AAA-001", "AAA-001")
    with pytest.raises(SuiteError, match="the rule AAA-001 is defined twice"):
        load_registry(write(tmp_path, registry=text) / "registry.yml")


def test_a_registry_is_a_mapping_and_is_there(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="a registry must be a mapping, not a list"):
        load_registry(write(tmp_path, registry="- a\n") / "registry.yml")
    with pytest.raises(SuiteError, match="No such file"):
        load_registry(tmp_path / "other.yml")
    with pytest.raises(SuiteError, match="not empty"):
        load_registry(write(tmp_path, registry="\n") / "registry.yml")


def test_another_registry_has_its_own_corpora(base: Path) -> None:
    write(base.parent, registry=registry("AAA-001", "AAA-002"))
    corpus = corpus_of(Revision.V2024_11_05, base.parent)
    assert corpus is not None
    assert "AAA-001" in corpus.rules
    assert "MSG-001" in corpus.rules, "rules over sessions hold whatever the corpora say"
    assert "PROTO-002" not in corpus.rules
    assert corpus_of(Revision.DRAFT, base.parent) is None
