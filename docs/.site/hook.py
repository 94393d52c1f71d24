"""Brings the pages that live beside `docs/` into the site, and keeps every link true.

README, changelog, architecture, contributing, the benchmarks and the examples are read where they
are. They appear below `project/`, under the paths that they have in the repository; the README is
the home page as well. A link that leads out of `docs/` leads there, and what it names comes along.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROJECT = "project"
BEGIN_WITH = ("README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(!?\[[^\]\n]*(?:\n[^\]\n]+)?\])\(([^)\s#]*)(#[^)\s]*)?\)")
EMPTY_HEAD = re.compile(r"<thead>\s*<tr>\s*(?:<th[^>]*></th>\s*)+</tr>\s*</thead>\s*")
FENCED = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """The pages from outside, and whatever they link to, until nothing new is named."""
    waiting = [*BEGIN_WITH, *_named_outside(files)]
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        source = ROOT / path
        if path.endswith(".md"):
            text = source.read_text(encoding="utf-8")
            waiting += [target for target in _targets(text, path) if _is_outside(target)]
            files.append(File.generated(config, f"{PROJECT}/{path}", content=text))
        else:
            files.append(File.generated(config, f"{PROJECT}/{path}", content=source.read_bytes()))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Each link as it has to be written in the site."""
    where = page.file.src_uri

    def lead(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        wanted = _place_in_site(_in_repository(target, _home_of(where)))
        if not wanted:
            return label.removeprefix("!").strip("[]")
        return f"{label}({posixpath.relpath(wanted, posixpath.dirname(where) or '.')}{anchor})"

    pieces = FENCED.split(markdown)
    pieces[::2] = [LINK.sub(lead, piece) for piece in pieces[::2]]
    return "".join(pieces)


def on_page_content(html: str, **_: Any) -> str:
    """A table without column titles has no row for them: Markdown can't leave it out."""
    return EMPTY_HEAD.sub("", html)


def _home_of(where: str) -> str:
    """Where a page of the site lives in the repository."""
    if where == "index.md":
        return "README.md"
    if where.startswith(f"{PROJECT}/"):
        return where.removeprefix(f"{PROJECT}/")
    return f"docs/{where}"


def _in_repository(target: str, home: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(home), target))


def _place_in_site(path: str) -> str:
    """Nothing for a folder without a page: there is nothing to look at."""
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
        if not (ROOT / path).exists():
            return ""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{PROJECT}/{path}"


def _targets(text: str, home: str) -> list[str]:
    pieces = FENCED.split(text)[::2]
    found = [link[2] for piece in pieces for link in LINK.finditer(piece)]
    return [
        _in_repository(target, home)
        for target in found
        if target and not re.match(r"[a-z]+:", target)
    ]


def _is_outside(path: str) -> bool:
    return not path.startswith(("docs/", "../")) and (ROOT / path).is_file()


def _named_outside(files: Files) -> list[str]:
    return [
        target
        for file in files.documentation_pages()
        for target in _targets(file.content_string, f"docs/{file.src_uri}")
        if _is_outside(target)
    ]
