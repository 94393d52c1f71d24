"""Which tests of a suite are run: by name, tag, shard, and what failed the last time."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.show import show
from mcptest.suite.model import Test


class Selection(msgspec.Struct, frozen=True):
    """What was asked for. Everything that is set must hold."""

    pattern: str = ""
    tags: tuple[str, ...] = ()
    shard: tuple[int, int] | None = None
    only: Collection[str] | None = None
    """Identities of tests, as `identity` gives them."""


def identity(test: Test) -> str:
    """What names a test across runs: its file and its name."""
    return f"{test.place.file}::{test.name}"


def select(tests: Sequence[Test], selection: Selection) -> list[Test]:
    chosen = [test for test in tests if _wanted(test, selection)]
    if selection.shard is None:
        return chosen
    index, count = selection.shard
    return chosen[index - 1 :: count]  # in turn, so that no shard is much larger than another


def _wanted(test: Test, selection: Selection) -> bool:
    if selection.only is not None and identity(test) not in selection.only:
        return False
    if selection.tags and not set(selection.tags) & set(test.tags):
        return False
    return not selection.pattern or _matches(test, selection.pattern)


def _matches(test: Test, pattern: str) -> bool:
    """A part of the name, `*` as a wildcard, words joined by `and`, `or`, `not`.

    Behind `=` stands the whole name, whatever it holds.
    """
    if pattern.startswith("="):
        return test.name == pattern[1:]
    alternatives = re.split(r"\s+or\s+", pattern.strip(), flags=re.IGNORECASE)
    return any(
        all(_term(test, term) for term in re.split(r"\s+and\s+", part, flags=re.IGNORECASE))
        for part in alternatives
    )


def _term(test: Test, term: str) -> bool:
    negated = re.match(r"not\s+", term, flags=re.IGNORECASE)
    if negated:
        return not _term(test, term[negated.end() :])
    wanted = term.strip().lower()
    name = test.name.lower()
    if any(character in wanted for character in "*?["):
        import fnmatch

        return fnmatch.fnmatchcase(name, wanted)
    return wanted in name


def only_this(test: Test, others: Sequence[Test]) -> str:
    """A pattern that chooses this test and, if it can be done, none of the others in its file."""
    pattern = Selection(pattern=test.name)
    chosen = [each for each in others if each is test or _wanted(each, pattern)]
    is_pattern = not test.name.startswith("=") and _misplaced(test.name) is None
    plain = is_pattern and test.name.strip() and _wanted(test, pattern)
    return test.name if plain and chosen == [test] else f"={test.name}"


def parse_pattern(text: str) -> str:
    """The pattern as it is. UsageError, with its place, for one that can't be understood."""
    wrong = None if text.startswith("=") or not text else _misplaced(text)
    if wrong is None:
        return text
    at, message = wrong
    shown = show(text, 200)
    caret = " " * min(len(show(text[:at], 200)), len(shown))
    raise UsageError(
        f"-k: {message}\n  {shown}\n  {caret}^",
        hint="names are joined by and, or, not; behind = stands the whole name of one test",
    )


def _misplaced(text: str) -> tuple[int, str] | None:
    """Where a name is missing, and what is said about it."""
    before = ""
    wants_name = True
    for word in re.finditer(r"\S+", text):
        joins = word[0].lower() if word[0].lower() in ("and", "or") else ""
        if joins and wants_name:
            return word.start(), f"a name is expected before {joins!r}"
        if joins or (wants_name and word[0].lower() == "not"):
            wants_name, before = True, word[0]
        else:
            wants_name = False
    if not wants_name:
        return None
    return len(text.rstrip()), f"a name is expected after {before!r}" if before else "it is blank"


def parse_shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if match:
        index, count = int(match.group(1)), int(match.group(2))
        if 1 <= index <= count:
            return index, count
    raise UsageError(f"not a shard: {text!r}", hint="write it like 1/4, the first of four")
