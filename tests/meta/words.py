"""What a machine can see of the words that people read: a part of `make lint`.

The style is `docs/contributing/words.md`. Pages, help and messages are searched for phrases that it
bans; help has to have its form, and sentences a length that can be read. What still has to be
rewritten is listed in `words_open.txt`, which only gets shorter: an entry without a finding is one.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from mcptest.commands.app import COMMANDS, parser_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "mcptest"
OPEN = Path(__file__).with_name("words_open.txt")
LONGEST = 30
"""Words of a sentence. The style asks for 25; a list of names may take a few more."""

GENERATED = (
    *("docs/rules/*", "docs/safety.md", "docs/comparison.md", "docs/property-*.md"),
    *("docs/compliance/rules/*", "docs/conformance/client-scenarios/*"),
    *("docs/conformance/server-scenarios/*", "docs/conformance/client-libraries.md"),
    *("docs/conformance/drivers.md", "docs/conformance/differences.md"),
    *("docs/compliance/corpora.md", "docs/compliance/message-shapes.md"),
    *("docs/compliance/not-testable.md", "docs/compliance/precision.md"),
    *("docs/compliance/upgrade.md", "docs/commands/lint.md"),
)
"""Their texts come from the code, where they are looked at, or from measurements."""
RECORDS = ("docs/decisions/*", "CHANGELOG.md")
"""They say what was true when they were written, and stay as they are."""

BANNED = {
    r"what is said": "output, or what was sent",
    r"\b(?:is|are|was|were) told\b": "reported, or shown",
    r"\bby chance\b": "random",
    r"\bmanners\b": "say what it does",
    r"\bin health\b": "works",
    r"\bmay repeat\b": "(repeatable)",
    r"\bas it pays\b": "auto",
    r"\bso many at once\b": "in parallel",
    r"\bone wants\b": "worth …",
    r"there is no such way": "no upgrade path",
    r"\bat best [A-F]": "capped at",
    r"\bnothing came\b": "did not answer",
    r"\bis no (?:JSON|message|number|object|list|URL|revision|rule|server|suite)\b": "is not",
    r"\bsays? (?:that )?(?:it|they) (?:only|just) reads?\b": "is marked readOnlyHint",
    r"\bdo(?:es)? not say that (?:it|they)\b": "is not marked",
    r"\blast words\b": "last lines",
    r"\bwill do\b": "is enough",
    r"\bpolite\b|\brude\b": "valid, or invalid",
    r"\bwhat came of it\b": "the outcome",
    r"\bof (?:its|their|your|our) making\b": "written by",
    r"\bbehaviour": "behavior",
    r"\bcolour": "color",
    r"\bhonour": "honor",
    r"\bmisspelt\b": "misspelled",
    r"\b(?:recogni|minimi|normali|serialis|optimi)s(?:e|ed|es|ing)\b": "-ize",
}
"""What the style bans, as patterns, with what to say instead."""
IN_CODE = (
    *("what is said", r"\bmanners\b", r"\bin health\b", r"\bmay repeat\b", r"\bas it pays\b"),
    *(r"\bso many at once\b", r"\bone wants\b", "there is no such way", r"\bat best [A-F]"),
)
"""Those that nothing in a program can mean otherwise."""
VERBS = frozenset(
    [
        *("audit", "call", "check", "compare", "complete", "convert", "create", "explain", "find"),
        *("fuzz", "generate", "intercept", "judge", "lint", "list", "measure", "plan", "print"),
        *("probe", "record", "render", "replay", "rerun", "run", "score", "serve", "send", "show"),
        *("start", "test", "watch", "write"),
    ]
)
"""With what a summary of a command begins."""
UPPER = re.compile(r"[A-Z]{2,}|JUnit|GitLab|GitHub|Markdown|Dask")
"""Names and abbreviations with which help may begin."""


class Finding(NamedTuple):
    path: str
    line: int
    kind: str
    """`banned`, `help`, `summary` or `length`."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.message}"


# -- Text ----------------------------------------------------------------------------------------


def banned_in(text: str, patterns: Sequence[str] = tuple(BANNED)) -> Iterator[tuple[int, str]]:
    """The lines, counted from 1, with a phrase that is banned, and what to say instead."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in patterns:
            if found := re.search(pattern, line, re.IGNORECASE):
                yield number, f"{found[0]!r}: {BANNED[pattern]}"


def prose_of(page: str) -> str:
    """A Markdown page without code, comments, generated parts and targets of links."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    page = re.sub(r"^ *```.*?^ *```$", blank, page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"<!-- begin .*?<!-- end [^>]*-->", blank, page, flags=re.DOTALL)  # generated
    page = re.sub(r"<!--.*?-->", blank, page, flags=re.DOTALL)
    page = re.sub(r"\]\([^)]*\)", "]", page)
    return re.sub(r"`[^`\n]*`", "code", page)


def sentences_of(prose: str) -> Iterator[tuple[int, str]]:
    """The sentences of paragraphs and list items, each with its first line. Tables have none."""
    block: list[str] = []
    first = 1
    for number, line in enumerate([*prose.splitlines(), ""], 1):
        text = line.strip()
        begins = re.match(r"(?:[-*]|\d+\.) ", text)
        if block and (not text or begins or text.startswith(("|", "#", ">"))):
            for sentence in re.split(r"(?<=[.!?:;·])\s", " ".join(block)):
                yield first, sentence
            block = []
        if text and not text.startswith(("|", "#")):
            first = first if block else number
            block.append(text)


def too_long(text: str) -> Iterator[tuple[int, str]]:
    for number, sentence in sentences_of(text):
        count = len(re.findall(r"\w[\w'/-]*", sentence))
        if count > LONGEST:
            yield number, f"a sentence of {count} words: {sentence[:60]} …"


# -- Pages, help and messages --------------------------------------------------------------------


def pages() -> list[Path]:
    """What people read as a page and somebody wrote by hand."""
    found = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
    return [page for page in sorted(found) if not _is(page, (*GENERATED, *RECORDS))]


def _is(path: Path, patterns: Sequence[str]) -> bool:
    return any(fnmatch(path.relative_to(ROOT).as_posix(), pattern) for pattern in patterns)


def in_pages() -> Iterator[Finding]:
    for path in (*pages(), *sorted(SOURCE.rglob("help*.txt"))):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if path.suffix == ".txt":
            text = text.partition("\nexamples:")[0]
        elif name == "docs/contributing/words.md":  # it shows what it bans
            text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
        prose = prose_of(text)
        yield from (Finding(name, line, "banned", said) for line, said in banned_in(prose))
        yield from (Finding(name, line, "length", said) for line, said in too_long(prose))


def in_code() -> Iterator[Finding]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {one.value for one in ast.walk(tree) if isinstance(one, ast.Expr)}
        for node in ast.walk(tree):
            if node in docstrings or not isinstance(node, ast.Constant):
                continue
            if isinstance(node.value, str):
                for _, said in banned_in(node.value, IN_CODE):
                    yield Finding(name, node.lineno, "banned", said)
    for path in sorted(SOURCE.rglob("*.yml")):
        name = path.relative_to(ROOT).as_posix()
        for line, said in banned_in(path.read_text(encoding="utf-8"), IN_CODE):
            yield Finding(name, line, "banned", said)


def in_help() -> Iterator[Finding]:
    for command, summary in COMMANDS.items():
        name = f"src/mcptest/commands/{command}/cli.py"
        if summary.split()[0].strip(":,") not in VERBS:
            yield Finding("src/mcptest/commands/app.py", 1, "summary", f"{command}: {summary}")
        for said in dict.fromkeys(problems_of_help(parser_of(command))):
            yield Finding(name, 1, "help", said)


def problems_of_help(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in dict.fromkeys(action.choices.values()):
                yield from problems_of_help(one)
        elif action.help and action.help != argparse.SUPPRESS:
            named = action.option_strings[-1] if action.option_strings else action.dest
            yield from (f"{named}: {said}" for said in problems_of_option(action.help))


def problems_of_option(text: str) -> Iterator[str]:
    if text.endswith("."):
        yield f"ends with a period: {text[-40:]}"
    if not re.match(r"[a-z`\"'({]", text) and not UPPER.match(text):
        yield f"begins with neither a verb nor a noun in lower case: {text[:40]}"
    if re.search(r"\bdefault\b", text) and "(default: " not in text:
        yield f"a default is written (default: X): {text[:60]}"
    yield from (said for _, said in banned_in(text))
    yield from (said for _, said in too_long(text))


# -- What is still open --------------------------------------------------------------------------


def open_entries() -> list[tuple[str, str]]:
    """Patterns of paths, each with the kind of finding that is still to be worked on there."""
    lines = (line.partition("#")[0].split() for line in OPEN.read_text().splitlines())
    return [(words[0], words[1]) for words in lines if words]


def findings() -> list[Finding]:
    """All that are not listed as open, and the entries of that list that have none."""
    entries, used, found = open_entries(), set(), []
    for one in (*in_pages(), *in_code(), *in_help()):
        matching = [
            entry for entry in entries if fnmatch(one.path, entry[0]) and entry[1] == one.kind
        ]
        used.update(matching)
        if not matching:
            found.append(one)
    name = OPEN.relative_to(ROOT).as_posix()
    stale = (" ".join(entry) for entry in entries if entry not in used)
    found += (Finding(name, 1, "stale", f"nothing is open there: {entry}") for entry in stale)
    return found


def main() -> int:
    found = findings()
    for one in found:
        sys.stderr.write(f"{one}\n")
    if found:
        sys.stderr.write(f"{len(found)} findings; the style is docs/contributing/words.md\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
