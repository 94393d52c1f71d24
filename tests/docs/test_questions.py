"""What a user asks first is answered on a page that the README leads to, in at most two clicks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.fences import ROOT

LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#[^)]*)?\)")
QUESTIONS = {
    "test a server that wants a token": ("docs/howto/tokens-and-headers.md", "Bearer ${TOKEN}"),
    "pass a header": ("docs/howto/tokens-and-headers.md", "--header NAME=VALUE"),
    "test one tool": ("docs/howto/one-tool.md", "--tool add"),
    "ignore a known failure": ("docs/howto/known-failures.md", "--update-baseline"),
    "run in Actions": ("docs/ci.md", "uses: OWNER/mcptest@v0"),
    "mock sampling": ("docs/howto/mock-sampling.md", "mock_text:"),
    "use pytest": ("docs/pytest.md", "mcp_client"),
    "test my client": ("docs/howto/test-a-client.md", "mcptest conformance client --command"),
    "understand MSG-009": ("docs/rules/MSG-009.md", "MSG-009"),
    "record Claude Desktop": ("docs/howto/claude-desktop.md", '"record", "--proxy"'),
    "use the Inspector": ("docs/howto/inspector.md", "inspector --config"),
    "know what is supported": ("docs/support.md", "Windows"),
    "report a vulnerability": ("SECURITY.md", "/security/advisories/new"),
    "install it": ("docs/install.md", "pipx install ."),
}


def links_of(page: Path) -> set[Path]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {(page.parent / link).resolve() for link in LINK.findall(text)}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_at_most_two_clicks_away(question: str) -> None:
    name, words = QUESTIONS[question]
    page = ROOT / name
    assert words in page.read_text(encoding="utf-8")
    first = links_of(ROOT / "README.md")
    second = {link for one in first if one.suffix == ".md" for link in links_of(one)}
    assert page in first | second
