"""Where a problem is, in the two ways in which readers want it: a URI, or a path in a project."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

from mcptest.model.show import show
from mcptest.report.problems import Problem

LONGEST = 1_000
_WEB_ADDRESS = re.compile(
    r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?"
    r"(?:/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?"
    r"(?:\?(?:[\w.~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
    r"(?:#(?:[\w.~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?",
    re.ASCII,
)


def web_address(text: str) -> str:
    """The text if it is one that anybody may follow, else nothing."""
    return text if len(text) <= LONGEST and _WEB_ADDRESS.fullmatch(text) else ""


def uri_of(problem: Problem) -> str:
    """The suite's file, or else the rule's page, or else a name that stands for the subject."""
    if not problem.file:
        return web_address(problem.page) or _named(problem)
    if not problem.file.startswith("/"):
        return _quoted(_path(problem.file)) or _named(problem)
    return _quoted(_below_here(problem.file)) or "file://" + _quoted(problem.file)


def path_of(problem: Problem) -> str:
    """Relative to the project, without a `./`."""
    path = problem.file
    if path.startswith("/"):
        path = os.path.relpath(path[:LONGEST].replace("\0", ""))
    return show(_path(path), LONGEST) or _named(problem)


def _below_here(path: str) -> str:
    """Relative to the folder we are in; empty for one that is elsewhere."""
    here = f"{Path.cwd()}/"
    return _path(path.removeprefix(here)) if path.startswith(here) else ""


def _path(path: str) -> str:
    cut = path[:LONGEST]
    while cut.startswith("./"):
        cut = cut[2:].lstrip("/")
    return cut


def _named(problem: Problem) -> str:
    """Readers want a path for everything. This one is no file's, and is the same in every run."""
    return f"mcp/{_quoted(problem.subject[:200] or problem.rule)}"


def _quoted(path: str) -> str:
    """As a path in a URI: also a colon, which would end the scheme, and text without a UTF-8."""
    return quote(path[:LONGEST], safe="/", errors="backslashreplace")
