"""The site builds without a warning, holds every page, and asks nobody for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mcptest.commands.app import COMMANDS, parser_of
from tests.docs.compared_features import FEATURES, Feature
from tests.docs.comparison_page import main as comparison_page
from tests.docs.fences import ROOT, fences_of, pages
from tests.html.browser import CHROMIUM, running_browser

COMMAND_TABLE = (ROOT / "docs" / "commands" / "README.md").read_text(encoding="utf-8")
LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
"""What a browser would fetch from another place."""
ROW = re.compile(r"^\| `mcptest (\S+)` \|.*\[.*\]\(([^)#]+)(?:#[^)]*)?\) \|$", re.MULTILINE)

LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#[^)]*)?\)")
"""Where a link or a picture leads that stays in this repository."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mkdocs is strict about links, anchors and pages that nobody leads to."""
    folder = tmp_path_factory.mktemp("built") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        name = re.sub(r"README\.md$", "index.md", name).removesuffix(".md") + ".html"
        text = (site / name).read_text(encoding="utf-8")
        assert LOADED.findall(text) == [], name
    assert "never passes what it did not observe" in (site / "index.html").read_text("utf-8")


def test_no_table_of_the_site_has_an_empty_head_and_every_page_leads_to_the_repository(
    site: Path,
) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<thead>\s*<tr>\s*(?:<th[^>]*></th>\s*)+</tr>", text), page.name
        assert 'href="https://github.com/OWNER/mcptest"' in text, page.name
        assert 'data-md-component="source"' not in text, "the theme would ask GitHub"


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_the_search_works_on_a_page_that_was_opened_from_disk(site: Path, tmp_path: Path) -> None:
    with running_browser(tmp_path) as browser:
        browser.send("Page.navigate", url=(site / "commands" / "run.html").as_uri())
        browser.wait("document.readyState === 'complete'")
        browser.value("document.querySelector('#__search').click()")
        browser.value("document.querySelector('.md-search__input').focus()")
        browser.type("trajectory")
        browser.wait("document.querySelectorAll('.md-search-result__item').length > 0")
        found = browser.text(".md-search-result__list")
        assert [one for one in browser.asked_for if one.startswith("http")] == []
    assert "What must hold of a sequence of tool calls" in found


def test_the_table_of_commands_leads_to_the_page_of_each() -> None:
    rows = ROW.findall(COMMAND_TABLE)
    assert rows == [(command, f"{command}.md") for command in COMMANDS]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_page_made_the_same_way(command: str) -> None:
    """What it is for, a run with its output, the exit codes of `--help`, and where to go on."""
    page = (ROOT / "docs" / "commands" / f"{command}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {command}: ")
    shown = [fence.lines for fence in fences_of(page) if fence.is_commands]
    samples = [lines for lines in shown if any(f"mcptest {command}" in line for line in lines)]
    assert any(len(lines) > 1 for lines in samples), "no output of it is shown"
    assert re.findall(r"^## (.*)", page, re.MULTILINE)[-2:] == ["Exit codes", "See also"]
    codes, also = page.split("\n## Exit codes\n")[1].split("\n## See also\n")
    in_help = (parser_of(command).epilog or "").partition("exit codes:\n")[2].partition("\n\n")[0]
    for code in re.findall(r"^  (\d+) ", in_help, re.MULTILINE):
        assert re.search(rf"(?:^|· ?|\| ){code}\b", codes, re.MULTILINE), (
            f"nothing is said of {code}"
        )
    assert f"`mcptest {command} --help`" in also


def test_every_file_that_the_pages_beside_the_site_lead_to_is_there() -> None:
    """mkdocs knows of nothing outside docs/."""
    for page in (*ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in LINK.findall(text):
            assert (page.parent / link).exists(), f"{page.name} leads to {link}"


def test_every_yaml_and_json_block_can_be_read() -> None:
    for page in pages():
        for fence in fences_of(page.read_text(encoding="utf-8")):
            if fence.language in {"yaml", "yml"}:
                list(yaml.safe_load_all(re.sub(r"\{\{([\w.]+)\}\}", r"\1", "\n".join(fence.lines))))


def test_the_comparison_is_what_was_measured() -> None:
    assert comparison_page(["--check"]) == 0


@pytest.mark.parametrize("feature", FEATURES, ids=lambda each: each.what)
def test_what_we_say_we_can_do_is_shown_by_a_test(feature: Feature) -> None:
    test = ROOT / feature.shown_by
    assert "def test_" in test.read_text(encoding="utf-8")
