"""The words by which the linter knows what a name or a text is about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec


class WordLists(msgspec.Struct, frozen=True):
    """The lists of `words.json`. Those that begin with `also` are what mcp-assert does not know:
    they are used by our own codes only."""

    vague: frozenset[str]
    """Descriptions that say nothing, as a whole."""
    generic_names: frozenset[str]
    user_facing: tuple[str, ...]
    """Parts of parameter names for which one example says more than a sentence."""
    telling_names: frozenset[str]
    """Names of parameters that say what to pass without a description."""
    telling_endings: frozenset[str]
    """The same behind a word that says of what: `user_id`."""
    mutating: frozenset[str]
    also_mutating: frozenset[str]
    destroying: frozenset[str]
    acknowledging: tuple[str, ...]
    """Words by which a description owns up to what the tool changes."""
    actions: tuple[str, ...]
    returning: tuple[str, ...]
    sensitive: tuple[str, ...]
    also_sensitive: tuple[str, ...]
    """Without separators: what mcp-assert lets through."""
    sensitive_words: frozenset[str]
    """As the whole name only: a page token is none of our business."""
    shared_by_nature: frozenset[str]
    """Parameters that many tools have in common without one feeding the other."""
    shared_endings: tuple[str, ...]
    filler: frozenset[str]
    """Words of a description that say nothing of the parameter."""
    meanings: dict[str, str]
    """What a parameter with that word in its name stands for."""
    examples: dict[str, str]


_FILE = Path(__file__).with_name("words.json")
WORDS: Final = msgspec.json.decode(_FILE.read_bytes(), type=WordLists)
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def words_of(name: str) -> list[str]:
    """`getUserById`, `get-user_by.id` as words in small letters."""
    return [word.lower() for word in _BOUNDARY.split(name[:500]) if word]


def plain(name: str) -> str:
    """A name without what people write differently: case and separators."""
    return "".join(words_of(name))


def is_shared_by_nature(name: str) -> bool:
    small = name.lower()
    return small in WORDS.shared_by_nature or small.endswith(WORDS.shared_endings)
