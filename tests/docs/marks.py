"""What the pages tell to run and the tests do not: `python -m tests.docs.marks` lists it.

A mark is needed only where a command can't run in a test: it is of a program that would change the
machine or ask the network, it searches for long, or another test that is named does the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.docs.fences import ROOT, Fence, fences_of, pages, steps_of

NEVER = frozenset(
    {
        "apt",
        "brew",
        "curl",
        "docker",
        "git",
        "npm",
        "npx",
        "pip",
        "pipx",
        "pre-commit",
        "python3",
        "uv",
    }
)
"""Programs that install, publish or fetch."""
MAKE = re.compile(r"^(?:\. \S+/activate|source \S+|make (?!demo\b)\S+|cd \S+|pytest|exec bash)")
SEARCH = re.compile(r"^mcptest property ")
"""Where what is shown took a search of a minute to find."""
_TEST = re.compile(r"tests/[\w/]+\.py")


class Marked(msgspec.Struct, frozen=True):
    page: str
    line: int
    reason: str
    commands: tuple[str, ...]


def all_marked() -> Iterator[Marked]:
    for page in pages():
        for fence in fences_of(page.read_text(encoding="utf-8")):
            if fence.not_run:
                name = page.relative_to(ROOT).as_posix()
                yield Marked(name, fence.first, fence.not_run, commands_of(fence))


def commands_of(fence: Fence) -> tuple[str, ...]:
    return tuple(step.command for step in steps_of(fence)) if fence.is_commands else ()


def why_not_needed(marked: Marked) -> str:
    """What is wrong with a mark, or nothing."""
    named = _TEST.search(marked.reason)
    if named:
        test = ROOT / named[0]
        told = test.exists() and Path(marked.page).name in test.read_text(encoding="utf-8")
        return "" if told else f"{named[0]} does not read {Path(marked.page).name}"
    if not marked.commands:
        return "" if marked.reason.startswith("a sketch") else "nothing below it would run"
    if marked.reason.startswith("the search takes") and all(map(SEARCH.match, marked.commands)):
        return ""
    if any(cmd.split()[0] in NEVER or MAKE.match(cmd) for cmd in marked.commands):
        return ""
    return "every command below it can be run here"


if __name__ == "__main__":
    everything = list(all_marked())
    for each in everything:
        print(f"{each.page}:{each.line}: {each.reason}: {'; '.join(each.commands)}")
    print(f"{sum(len(each.commands) for each in everything)} commands are not run")
