"""JUnit XML: every output is parsed again and held against what the readers' schema allows."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.results import RunReport, Status
from mcptest.report.junit import escape, render
from tests.support.sample_run import HOSTILE, READ, RUN, SKIPPED, SUM, TRIALS, hostile_run, trial

# What the schema of Jenkins' xUnit plugin (junit-10) allows: attributes with those that are
# required marked by a star, then the elements within.
SCHEMA = {
    "testsuites": ("name time tests failures errors", {"testsuite"}),
    "testsuite": (
        "*name *tests *failures *errors group time skipped timestamp hostname id package file",
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": ("", {"property"}),
    "property": ("*name *value", set()),
    "testcase": (
        "*name time classname group",
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ("type message", set()),
    "skipped": ("type message", set()),
    "system-out": ("", set()),
}
WITH_TEXT = {"failure", "skipped", "system-out"}
TIME = re.compile(r"[0-9]+\.[0-9]{3}")


def parsed(report: RunReport) -> ET.Element:
    """The document, once everything about its structure has been checked."""
    root = ET.fromstring(render(report))
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = SCHEMA[element.tag]
        allowed = attributes.replace("*", "").split()
        assert set(element.attrib) <= set(allowed)
        assert {a[1:] for a in attributes.split() if a[0] == "*"} <= set(element.attrib)
        assert {child.tag for child in element} <= children
        assert element.tag in WITH_TEXT or not (element.text or "").strip()
        assert TIME.fullmatch(element.get("time", "0.000"))
    check_counts(root, report)
    return root


def check_counts(root: ET.Element, report: RunReport) -> None:
    cases = list(root.iter("testcase"))
    assert len(cases) == len(report.results) == int(root.get("tests", ""))
    assert len(list(root.iter("failure"))) == report.failed == int(root.get("failures", ""))
    assert len(list(root.iter("skipped"))) == report.skipped
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped", "")) == len(suite.findall("testcase/skipped"))
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(set(names)) == len(names)
    assert all(name for pair in names for name in pair)


def test_each_suite_file_is_a_testsuite_with_its_tests() -> None:
    root = parsed(RUN)
    assert [suite.get("file") for suite in root] == [result.file for result in RUN.results]
    assert [case.get("classname") for case in root.iter("testcase")] == [
        "read_file",
        "math",
        "echo",
        "search",
    ]
    assert root.get("time") == "1.530"
    assert {suite.get("timestamp") for suite in root} == {RUN.started}


def test_a_failure_has_its_message_its_kind_and_its_proof() -> None:
    case = parsed(RUN).findall("testsuite/testcase")[1]
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib == {"message": "expected exact match:", "type": "check"}
    assert "     want: The sum of 2 and 3 is 5.\n" in (failure.text or "")
    assert "2. took 1.24s" in (failure.text or "")
    output = case.findtext("system-out") or ""
    assert SUM.proof is not None
    for line in ("where: evals/math.yaml:14", f"request: {SUM.proof.request}"):
        assert line in output.splitlines()
    assert f"repeat: {SUM.proof.repeat}" in output.splitlines()


def test_a_skipped_test_says_why() -> None:
    skipped = parsed(RUN).find("testsuite/testcase/skipped")
    assert skipped is not None
    assert skipped.get("message") == SKIPPED.detail


def test_times_are_decimal_however_small_or_large() -> None:
    results = tuple(
        msgspec.structs.replace(READ, duration_ms=ms, name=str(ms)) for ms in (0, 7, -3, 10**12)
    )
    times = [case.get("time") for case in parsed(RunReport(results=results)).iter("testcase")]
    assert times == ["0.000", "0.007", "0.000", "1000000000.000"]


def test_trials_are_told_apart_and_scored() -> None:
    root = parsed(TRIALS)
    names = [case.get("name") for case in root.iter("testcase")]
    assert names[:2] == ["steady (trial 1)", "steady (trial 2)"]
    properties = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert properties == {"pass_at_k": "2/3", "pass_up_k": "1/3"}
    assert list(parsed(RUN).iter("property")) == []


def test_the_language_is_the_class_and_equal_names_are_numbered() -> None:
    twins = (READ, READ, msgspec.structs.replace(READ, name=f"{READ.name} #2"), READ)
    go = msgspec.structs.replace(READ, language="go")
    cases = list(parsed(RunReport(results=(*twins, go))).iter("testcase"))
    assert [case.get("name") for case in cases[:2]] == [READ.name, f"{READ.name} #2"]
    assert cases[-1].get("classname") == "go"


def test_an_interrupted_run_says_so() -> None:
    root = parsed(msgspec.structs.replace(RUN, interrupted=True))
    assert {(p.get("name"), p.get("value")) for p in root.iter("property")} == {
        ("interrupted", "true")
    }


def test_a_run_of_nothing_is_a_document() -> None:
    assert list(parsed(RunReport())) == []


def test_a_result_without_file_name_or_reason_is_still_a_test() -> None:
    root = parsed(RunReport(results=(trial("", 1, Status.SKIP), trial("", 1, Status.PASS))))
    assert [case.get("classname") for case in root.iter("testcase")] == ["mcptest", "mcptest"]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_text_of_a_peer_breaks_the_document(number: int) -> None:
    run = hostile_run(HOSTILE[number], trials=2)
    parsed(run)
    text = render(run).decode("utf-8")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ufffe\uffff]", text)
    assert not re.search(r"^\s*(::|##)", text, re.MULTILINE)
    assert len(text) < 5_000_000


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_can_be_content_and_attribute(text: str) -> None:
    root = ET.fromstring(f'<a b="{escape(text)}">{escape(text)}</a>')
    assert root.get("b") == root.text or text == ""


@given(st.text(st.characters(exclude_categories=["C"])))
def test_harmless_text_is_read_back_as_it_was(text: str) -> None:
    assert (ET.fromstring(f"<a>{escape(text)}</a>").text or "") == text


@given(st.text(st.sampled_from("<>&\"']-!\x00\x1b\ud800\uffff\n\t :#"), max_size=60))
def test_any_run_is_a_valid_document(text: str) -> None:
    parsed(hostile_run(text))
