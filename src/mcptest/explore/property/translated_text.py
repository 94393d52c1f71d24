"""Strategies for texts: by length, by format, by regular expression."""

from __future__ import annotations

import datetime
import ipaddress
import string
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcptest.explore.property.drawn import LETTERS
from mcptest.explore.property.translated_pattern import texts_matching
from mcptest.explore.scalars import FORMATS, count

_ROOM: Final = 12
"""So much longer than it must be does a text become."""
_LONG: Final = 60
"""A text that must be longer is filled up: its length is what matters, not its letters."""
_LONGEST: Final = 100_000
_EPOCH: Final = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_CENTURY: Final = 36_524
_WORDS: Final = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8)
_HOSTS: Final = st.sampled_from(("example.com", "example.org", "a.b-c.example.net"))


def texts(plain: Mapping[str, Any]) -> SearchStrategy[str]:
    """What pattern, format and lengths ask for. A guess where these get in each other's way."""
    least = min(count(plain.get("minLength"), 0), _LONGEST)
    most = min(count(plain.get("maxLength"), _LONGEST), _LONGEST)
    if least > most:
        return st.nothing()
    pattern = plain.get("pattern")
    if isinstance(pattern, str):
        matching = texts_matching(pattern, least, most)
        if matching is not None:
            return matching
    made = _of_format(str(plain.get("format")))
    if made is not None:
        return made
    if least > _LONG:
        return st.text(LETTERS, max_size=_ROOM).map(lambda text: text.ljust(least, "x"))
    return st.text(LETTERS, min_size=least, max_size=min(most, least + _ROOM))


def _of_format(name: str) -> SearchStrategy[str] | None:
    made = _MADE.get(name)
    if made is not None:
        return made()
    return st.sampled_from(FORMATS[name]) if name in FORMATS else None


def _dates() -> SearchStrategy[str]:
    return st.integers(0, _CENTURY).map(
        lambda day: (_EPOCH + datetime.timedelta(day)).date().isoformat()
    )


def _moments() -> SearchStrategy[str]:
    return st.integers(0, _CENTURY * 86_400).map(
        lambda second: (_EPOCH + datetime.timedelta(seconds=second)).isoformat()[:19] + "Z"
    )


def _times() -> SearchStrategy[str]:
    return st.integers(0, 86_399).map(
        lambda second: (_EPOCH + datetime.timedelta(seconds=second)).time().isoformat() + "Z"
    )


def _identities() -> SearchStrategy[str]:
    return st.integers(0, 2**122 - 1).map(lambda n: str(uuid.UUID(int=n, version=4)))


_MADE: Final[Mapping[str, Callable[[], SearchStrategy[str]]]] = {
    "date": _dates,
    "date-time": _moments,
    "time": _times,
    "duration": lambda: st.integers(0, 10**6).map(lambda seconds: f"PT{seconds}S"),
    "email": lambda: st.tuples(_WORDS, _HOSTS).map("@".join),
    "uuid": _identities,
    "ipv4": lambda: st.integers(0, 2**32 - 1).map(lambda n: str(ipaddress.IPv4Address(n))),
    "ipv6": lambda: st.integers(0, 2**128 - 1).map(lambda n: str(ipaddress.IPv6Address(n))),
    "hostname": lambda: st.tuples(_WORDS, _HOSTS).map(".".join),
    "uri": lambda: st.tuples(_HOSTS, _WORDS).map(lambda parts: f"https://{parts[0]}/{parts[1]}"),
    "json-pointer": lambda: st.lists(_WORDS, max_size=2).map(
        lambda parts: "".join(f"/{part}" for part in parts)
    ),
}
