"""The HTML report as text: what is embedded can't leave its place, and nothing is lost."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.errors import ExitCode, UsageError
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.html import embedded
from mcptest.report.html.building import Pictures, page_of_run, pictured
from mcptest.report.html.embedded import Chunks, as_embedded_json
from mcptest.report.html.page import SCRIPTS
from mcptest.report.stored import Stored
from tests.html.hostile import DUPLICATE, LONG, LONG_ROW, NOT_TEXT, REVERSED, RUN, SCRIPT
from tests.html.hostile import write_capture as hostile_capture
from tests.support.sample_compliance import SAMPLE as JUDGED

ASSETS = Path(embedded.__file__).with_name("assets")


class Parsed(HTMLParser):
    """The page as a browser's parser takes it apart."""

    def __init__(self, content: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, Any] = {}
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._open: tuple[str, str] | None = None
        self.feed(content.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in {"script", "style"}:
            self._open = (tag, dict(attrs).get("id") or "")

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is None:
            return
        tag, name = self._open
        if tag == "style":
            self.styles.append(data)
        elif name:
            self.blocks[name] = json.loads(data)
        else:
            self.scripts.append(data)

    @property
    def policy(self) -> str:
        return next(
            attributes["content"] or ""
            for tag, attributes in self.tags
            if attributes.get("http-equiv") == "Content-Security-Policy"
        )

    def records(self) -> list[Any]:
        names = sorted(
            (name for name in self.blocks if name.startswith("wire-")),
            key=lambda name: int(name.partition("-")[2]),
        )
        return [record for name in names for record in self.blocks[name]]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    capture = hostile_capture(tmp_path_factory.mktemp("hostile") / "hostile.jsonl")
    pictures = pictured([str(capture)])
    return Parsed(pictures.page([Stored(SCRIPT, RUN)], ExitCode.FAILED))


def test_only_our_own_script_and_style_are_there(page: Parsed) -> None:
    assert len(page.scripts) == len(page.styles) == 1
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"img", "svg", "iframe", "object", "embed", "link", "base", "audio", "video"}
    assert not [name for _, given in page.tags for name in given if name.startswith("on")]


def test_the_policy_names_the_hashes_of_exactly_these(page: Parsed) -> None:
    for kind, content in (("script", page.scripts[0]), ("style", page.styles[0])):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in page.policy
    assert "default-src 'none'" in page.policy
    assert "require-trusted-types-for 'script'" in page.policy
    assert "unsafe" not in page.policy


def test_nothing_is_loaded_from_anywhere(page: Parsed) -> None:
    addressed = [given for _, given in page.tags if {"src", "href", "action"} & set(given)]
    assert addressed == []
    assert "url(" not in page.styles[0]
    assert "@import" not in page.styles[0]


def test_the_script_has_no_way_to_make_markup_of_text() -> None:
    for name in SCRIPTS:
        source = (ASSETS / name).read_text()
        forbidden = (
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(|fetch\("
        )
        assert not re.search(forbidden, source), name


def test_every_byte_of_a_capture_is_in_the_page(page: Parsed) -> None:
    records = page.records()
    raw = [record.get("raw") for record in records]
    assert json.loads(raw[LONG_ROW])["result"]["text"] == LONG
    assert DUPLICATE.decode() in raw
    assert SCRIPT in raw
    assert base64.b64encode(NOT_TEXT).decode() in [record.get("base64") for record in records]
    assert any(REVERSED in (text or "") for text in raw)


def test_names_of_a_run_come_back_as_they_were(page: Parsed) -> None:
    entry = page.blocks["page"]["entries"][1]
    assert entry["name"] == RUN.results[1].name
    facts = page.blocks["facts-0"][1]
    assert [fact["actual"] for fact in facts if "actual" in fact] == [
        RUN.results[1].failures[0].actual
    ]


def test_no_control_or_direction_code_stands_in_the_file(tmp_path: Path) -> None:
    capture = hostile_capture(tmp_path / "hostile.jsonl", "short")
    content = pictured([str(capture)]).page([Stored("x", RUN)], ExitCode.FAILED)
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", content.decode()
    )


def test_half_a_surrogate_pair_does_not_stop_a_page() -> None:
    assert json.loads(as_embedded_json({"a": ["x\ud800y"]})) == {"a": ["x\ud800y"]}


def test_a_page_that_no_browser_would_open_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "PAGE_LIMIT", 100)
    chunks = Chunks("wire")
    chunks.add("x" * 50)
    with pytest.raises(UsageError, match="larger than"):
        chunks.add("x" * 50)


def test_values_are_found_by_their_number_over_all_blocks() -> None:
    chunks = Chunks("wire")
    numbers = [chunks.add("x" * (number * 100)) for number in range(600)]
    blocks = [json.loads(re.sub(rb"<[^>]*>", b"", one)) for one in chunks.elements()]
    assert numbers == list(range(600))
    assert len(blocks) == len(chunks.starts) > 2
    for start, block in zip(chunks.starts, blocks, strict=True):
        assert [len(text) for text in block] == [100 * (start + i) for i in range(len(block))]


def test_a_reader_without_scripts_sees_the_verdict() -> None:
    text = page_of_run(RUN).decode()
    plain = text.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "Failed: 1 of 2, exit code 1" in plain
    assert "&lt;/script&gt;" in plain


def test_a_judged_server_has_requirement_verdict_and_proof() -> None:
    report: ComplianceReport = JUDGED
    page = Parsed(Pictures().page([Stored("c.json", report)], ExitCode.FAILED))
    entries = page.blocks["page"]["entries"]
    number = next(i for i, one in enumerate(entries) if one.get("id") == "TOOLS-004")
    assert entries[number]["outcome"] == "fail"
    labels = {fact["label"]: fact for fact in page.blocks["facts-0"][number]}
    assert {"Requirement", "Specification", "Finding", "Sent", "Received", "What to do"} <= set(
        labels
    )
    assert labels["Finding"]["actual"] == "[21]"
