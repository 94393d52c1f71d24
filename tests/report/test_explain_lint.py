"""`mcptest explain` for codes of the linter, and what a page of a corpus rule says about asking."""

from __future__ import annotations

import json

import pytest

from mcptest.commands.app import run
from mcptest.report.audit import CODE_OF, AuditCode, Health, audit_codes
from mcptest.report.lint_explained import examples, findings_in, lint_rule_page
from mcptest.report.rules import conditions_in_words, corpus_rules, needs_in_words
from mcptest.report.terminal import Style
from mcptest.rules.corpus.registry import Needs
from mcptest.rules.lint.finding import LintRule
from mcptest.rules.lint.linter import all_lint_rules

RULES = all_lint_rules()


def test_every_code_has_its_example_and_no_other_has() -> None:
    assert examples().keys() == {rule.code for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_an_example_breaks_its_code_and_is_mended(rule: LintRule) -> None:
    example = examples()[rule.code]
    assert findings_in(rule, example.broken, example.limits)
    assert findings_in(rule, example.mended, example.limits) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_says_what_why_and_what_to_do_in_lines_that_fit(rule: LintRule) -> None:
    lines = list(lint_rule_page(rule, Style()))
    text = " ".join(" ".join(lines).split())
    assert lines[0] == f"{rule.code}  {rule.title}"
    assert rule.why in text
    assert rule.fix in text
    example = examples()[rule.code]
    said = findings_in(rule, example.broken, example.limits)[0].message
    assert said[:200] in text
    assert max(map(len, lines)) <= 100
    assert all(line.isprintable() for line in lines)


def test_explain_prints_a_code_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "e103"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("E103  required parameter without description\n")
    assert 'required parameter "number" has no description' in out


def test_explain_gives_a_code_as_json(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["explain", "W112", "--json"]) == 0
    value = json.loads(capsysbinary.readouterr().out)
    assert value["code"] == "W112"
    assert value["example"]["options"] == "--max-tools 1"
    (said,) = value["example"]["says"]
    assert "maximum 1" in said
    assert len(value["example"]["broken"]) == 2


def test_a_code_that_does_not_exist_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "E999"]) == 2
    assert "unknown lint code E999" in capsys.readouterr().err


# -- rules of the corpora ------------------------------------------------------------------------


def test_a_page_says_what_must_hold_before_anything_is_expected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["explain", "PROMPT-107"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Tested only if: the server declares prompts" in out
    assert (
        'Judged only if: result.messages[*].content.type contains "image" '
        "(otherwise not observed: the prompt has no image)" in out
    )


def test_every_condition_and_every_need_of_the_corpora_has_words() -> None:
    rows = [row for rule in corpus_rules().values() for _, row in rule.stages() if row is not None]
    conditions = [row for row in rows if row.when]
    assert conditions
    assert all(len(conditions_in_words(row.when)) == len(row.when) for row in conditions)
    needy = [row for row in rows if row.needs != Needs()]
    assert all(needs_in_words(row.needs) for row in needy)


def test_one_of_several_capabilities_is_told() -> None:
    needs = Needs(any_capability=("tools", "prompts"))
    assert needs_in_words(needs) == ["the server declares one of tools, prompts"]


@pytest.mark.parametrize("code", audit_codes(), ids=lambda code: code.code)
def test_a_code_of_an_audit_is_explained(
    code: AuditCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", code.code.lower()]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{code.code}  {code.title}\n")
    assert max(map(len, said.splitlines())) <= 100
    assert run(["explain", code.code, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == code.health.value


def test_every_class_of_an_audit_has_a_code_that_can_be_explained() -> None:
    assert set(Health) - {one.health for one in audit_codes()} == {Health.SKIPPED}
    assert {one.health: one.code for one in audit_codes()} == CODE_OF, "as reports name them"
    codes = {one.code for one in audit_codes()}
    assert codes.isdisjoint(rule.code for rule in RULES)
