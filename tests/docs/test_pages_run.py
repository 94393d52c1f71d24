"""Every command on every page runs, ends as the page says, and says what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.fences import ROOT, fences_of, pages
from tests.docs.playing import differences
from tests.docs.workshop import workshop

GENERATED = (
    "docs/rules/",
    "docs/conformance/client-scenarios/",
    "docs/conformance/server-scenarios/",
)
NPM = '--server "npx -y @modelcontextprotocol/'


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def with_commands() -> list[Path]:
    return [
        page
        for page in pages()
        if not name_of(page).startswith(GENERATED)
        and any(fence.is_commands and not fence.not_run for fence in fences_of(page.read_text()))
    ]


def parameters() -> list[object]:
    """Pages that show servers from npm need Node, as the tests with such servers do."""
    return [
        pytest.param(page, marks=pytest.mark.npm, id=name_of(page))
        if NPM in page.read_text(encoding="utf-8")
        else pytest.param(page, id=name_of(page))
        for page in with_commands()
    ]


@pytest.mark.parametrize("page", parameters())
def test_what_the_page_tells_to_run_runs_as_it_says(page: Path, tmp_path: Path) -> None:
    with workshop(page, tmp_path) as shop:
        found = differences(page.read_text(), shop)
    assert not found, "\n".join(
        (
            *(f"{name_of(page)}, {each}" for each in found),
            f"python -m tests.docs.rewrite {name_of(page)} writes it anew",
        )
    )
