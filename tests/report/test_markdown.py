"""Markdown that shows a peer's text and never obeys it."""

from __future__ import annotations

import html
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.results import RunReport
from mcptest.core.safe_text import show
from mcptest.report.markdown import code, fenced, render
from tests.support.sample_run import HOSTILE, READ, RUN, SUM, TRIALS, hostile_run

STEP_SUMMARY = 1024 * 1024


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")]


def outside_fences(text: str) -> list[str]:
    """The lines that Markdown looks at."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif match := re.match("(`{3,})text$", line):
            fence = match[1]
        else:
            kept.append(line)
    assert not fence
    return kept


def test_the_heading_counts_and_the_table_lists() -> None:
    text = render(RUN)
    assert text.startswith("### mcptest: 1 passed, 2 failed\n\n| Status | Test | Duration |\n")
    assert f"| PASS | <code>{READ.name}</code> | 39ms |" in rows(text)
    assert "_1 test skipped_" in text.splitlines()
    assert "<br><code>GITHUB_TOKEN is not set</code> |" in text
    green = render(RunReport(results=(READ,)))
    assert green.startswith("### mcptest: 1/1 passed\n")
    assert "<details>" not in green


def test_failures_are_told_in_fences() -> None:
    text = render(RUN)
    assert text.count("<details>") == text.count("</details>") == 1
    assert "1. expected exact match:\n     want: The sum of 2 and 3 is 5.\n" in text
    assert SUM.proof is not None
    assert f"repeat: {SUM.proof.repeat}\n```\n" in text


def test_trials_have_a_table_of_their_own() -> None:
    text = render(TRIALS)
    assert "| <code>wobbly</code> flaky | 4 | 2 | YES | NO |" in rows(text)
    assert "**pass@k: 2/3 capable, pass^k: 1/3 reliable**" in text
    assert "- <code>wobbly</code>: was <code>PASS</code>, now <code>FAIL</code>" in text
    assert "| PASS | <code>steady</code> trial 2 | 20ms |" in rows(text)


def test_an_interrupted_run_says_so() -> None:
    assert "**Interrupted:**" in render(msgspec.structs.replace(RUN, interrupted=True))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a|b", "a&#124;b"),
        ("`x`", "&#96;x&#96;"),
        ("<b>", "&#60;b&#62;"),
        ("@octocat", "&#64;<!-- -->octocat"),
        ("![i](http://x)", "&#33;&#91;i&#93;(http&#58;//x)"),
        ("www.evil.com", "www&#46;evil.com"),
        ("read_file __x_", "read_file &#95;&#95;x&#95;"),
        ("a\nb", "a&#92;nb"),
        ("", " "),
    ],
)
def test_what_means_something_to_markdown_becomes_a_reference(text: str, written: str) -> None:
    assert code(text) == f"<code>{written}</code>"


@given(st.text())
def test_a_name_reads_as_it_was(text: str) -> None:
    body = code(text).removeprefix("<code>").removesuffix("</code>").replace("<!-- -->", "")
    assert html.unescape(body) == (show(text) or " ")


@given(st.lists(st.text(st.sampled_from("`~ a"), max_size=12), max_size=5))
def test_no_line_ends_its_own_fence(lines: list[str]) -> None:
    fence, *inside, last = fenced(lines)
    assert fence == last + "text"
    assert inside == lines
    assert all(not line.strip().startswith(last) for line in inside)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_text_of_a_peer_leaves_its_place(number: int) -> None:
    text = render(hostile_run(HOSTILE[number], trials=3, interrupted=True))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u200b\ud800-\udfff]", text)
    seen = outside_fences(text)
    bare = [re.sub("<code>[^<>]*(?:<!-- -->[^<>]*)*</code>", "X", line) for line in seen]
    ours = (
        r"### (mcptest: \d+ passed, \d+ failed|Reliability|Regressions \(1\))|"
        r"\| (PASS|FAIL|SKIP) \| X trial \d(<br>X)? \| 5ms \||"
        r"\| X( flaky)? \| \d \| \d \| (YES|NO) \| (YES|NO) \||"
        r"\| (Status|Test) \|.*|\|(---\|)+|<details><summary>Failure details</summary>|</details>|"
        r"\*\*X\*\* trial \d|_3 tests skipped_|- X: was X, now X|\*\*Note:\*\* X|"
        r"\*\*pass@k: .*\*\*|\*\*Interrupted:\*\* .*|"
    )
    assert [line for line in bare if not re.fullmatch(ours, line)] == []
    assert len(text.encode()) < STEP_SUMMARY


def test_a_summary_of_ten_thousand_failures_still_fits() -> None:
    loud = hostile_run("|" * 1000).results[1]
    many = tuple(msgspec.structs.replace(loud, line=n) for n in range(10_000))
    text = render(RunReport(results=many, trials=2))
    assert len(text.encode()) < STEP_SUMMARY
    assert re.search(r"^\| \| and \d+ more \| \|$", text, re.MULTILINE)
    assert re.search(r"^and \d+ more failures$", text, re.MULTILINE)
    assert text.count("</details>") == 1
