"""The HTML of a judged server: one file, no script, no network, and nothing of a peer is markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from mcptest.report.compliance_html import compliance_as_html
from tests.unit.sample_compliance import (
    HEALTHY,
    ONE_RULE,
    SAMPLE,
    STRUCTURED,
    URL,
    hostile_report,
    several_revisions,
)
from tests.unit.sample_run import HOSTILE

SPECIFICATION = "https://modelcontextprotocol.io/specification/"
VOID = {"meta", "br"}
ELEMENTS = frozenset(
    re.findall(
        r"\S+",
        """
    html head meta title style body main section div h1 h2 p span code pre table tr th td
    details summary dl dt dd ul li a i br footer
""",
    )
)
ATTRIBUTES = frozenset(
    re.findall(r"\S+", "lang charset http-equiv content name class style open href rel title")
)


class Reader(HTMLParser):
    """What a browser would see: elements in order, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.elements: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.comments: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.stack == []
    return reader


def test_the_page_shows_grade_proof_gates_sections_and_coverage() -> None:
    text = " ".join("".join(read(compliance_as_html(SAMPLE)).text).split())
    for part in (
        "B+",
        "npx my-server /data · weather 2.1.0",
        "2025-11-25 over stdio",
        "87.3 of 100",
        "0.1.0/v2025-11-25/3f9ab2c1",
        "a broken MUST keeps it below A",
        "kept 1 rule from being judged",
        STRUCTURED.evidence[0].sent,
        STRUCTURED.evidence[0].received,
        STRUCTURED.fix,
        STRUCTURED.repeat,
        "the grade fell from A- to B+",
        "2 not observed, by what would unlock them",
        "the fixture embedding_tool",
        "57.1 %: 4 of 7 applicable rules exercised",
        "the server does not declare prompts",
    ):
        assert part in text


def test_a_broken_must_is_open_and_the_rest_opens_without_a_script() -> None:
    page = compliance_as_html(SAMPLE)
    assert page.count("<details") == page.count("</details>")
    assert re.findall(r'<details class="rule" open><summary>.*?"id">([A-Z0-9-]+)<', page) == [
        "TOOLS-004"
    ]


def test_nothing_is_fetched_and_nothing_runs() -> None:
    for report in (SAMPLE, HEALTHY, ONE_RULE, several_revisions()):
        page = compliance_as_html(report)
        found = read(page)
        assert found.elements <= ELEMENTS
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        assert any(value.startswith(policy) for _, _, value in found.attributes)
        assert "url(" not in page
        assert "@import" not in page
        links = {value for _, name, value in found.attributes if name == "href"}
        assert all(link.startswith(SPECIFICATION) for link in links)


def test_light_and_dark_and_paper_have_their_looks() -> None:
    page = compliance_as_html(SAMPLE)
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_several_revisions_are_a_table_with_a_sign_for_each() -> None:
    page = compliance_as_html(several_revisions())
    row = next(
        line for line in page.splitlines() if line.startswith('<tr><td class="id">TOOLS-004')
    )
    assert re.findall(r"<td[^>]*>(.?)</td>", row) == ["", "✗", "✗"]
    assert page.count('<section class="card">') == 3


@pytest.mark.parametrize("number", range(len(HOSTILE)))
@pytest.mark.parametrize("revisions", [1, 2])
def test_nothing_of_a_peer_is_markup(number: int, revisions: int) -> None:
    page = compliance_as_html(hostile_report(HOSTILE[number], revisions=revisions))
    found = read(page)
    assert found.elements <= ELEMENTS
    assert found.comments == []
    for tag, name, value in found.attributes:
        assert name in ATTRIBUTES
        assert tag != "a"  # an address that is not the specification's is no link
        assert name != "style" or re.fullmatch(r"width:\d+\.\d%", value)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page
    )
    page.encode()


def test_an_address_that_only_looks_like_the_specification_is_no_way_out() -> None:
    trick = URL + '"><script>alert(1)</script>'
    found = read(compliance_as_html(hostile_report(trick)))
    assert "script" not in found.elements
    assert {value for _, name, value in found.attributes if name == "href"} == {trick}
