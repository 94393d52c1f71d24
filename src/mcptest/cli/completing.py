"""From the words on a command line to what may come next. Pure, but for the names of servers.

It is asked while somebody waits with a finger on a key, so it imports next to nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Shape = Mapping[str, Any]
"""What `completion_shape` makes of the parsers."""
_CONFIGURATION = ".mcp.json"
_LARGEST_CONFIGURATION = 1_000_000
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/+-]*")
"""Others would have to be quoted, and a name out of somebody's file must never become a command."""


def complete(shape: Shape, words: Sequence[str], shell: str = "bash") -> Iterator[str]:
    """Lines for the script of a shell; the last of the words is the one to complete."""
    *before, word = joined(words) if shell == "bash" else words
    option, equals, value = word.partition("=")
    if word.startswith("--") and equals:  # zsh and fish leave it in one piece
        found = _Place(shape, [*before, option], value).candidates()
        head = f"{option}=" if shell == "fish" else ""
    else:
        found, head = _Place(shape, before, word).candidates(), ""
    for line in found:
        yield line if line.startswith(":") else f"{head}{line}"


def joined(words: Sequence[str]) -> list[str]:
    """bash takes `--option=value` apart at the `=`; here it is two words."""
    plain = [word for place, word in enumerate(words) if word != "=" or place == len(words) - 1]
    return [*plain[:-1], ""] if plain and plain[-1] == "=" else plain


class _Place:
    """Where on the line we are: which command, which option waits for its value."""

    def __init__(self, shape: Shape, before: Sequence[str], word: str) -> None:
        self._root = shape
        self._command: Shape = shape
        self._word = word
        self._waiting: Shape | None = None
        self._used: set[str] = set()
        self._given: dict[str, str] = {}
        self._positionals = 0
        self._is_foreign = False
        """Behind a bare `--`: the words of somebody else's command."""
        for each in before:
            self._read(each)

    def _read(self, word: str) -> None:
        if self._is_foreign:
            return
        if self._waiting is not None:
            self._given[self._waiting["names"][0]] = word
            self._waiting = None
        elif word == "--":
            self._is_foreign = True
        elif word.startswith("-") and word != "-":
            option = self._option(word.partition("=")[0])
            if option is not None:
                self._used.update(option["names"])
                self._waiting = option if option["kind"] and "=" not in word else None
        elif word in self._command["commands"]:
            self._command = self._command["commands"][word]
        else:
            self._positionals += 1

    def _option(self, name: str) -> Shape | None:
        return next((one for one in self._command["options"] if name in one["names"]), None)

    def candidates(self) -> Iterator[str]:
        if self._is_foreign:
            yield ":file"
        elif self._waiting is not None:
            yield from self._values(self._waiting["kind"], self._waiting["choices"])
        elif self._word.startswith("-"):
            yield from self._options()
        elif self._command["commands"]:
            if self._positionals:
                return  # behind a command that there is not
            for name, command in self._command["commands"].items():
                if name.startswith(self._word):
                    yield f"{name}\t{command['help']}"
        else:
            yield from self._positional()

    def _options(self) -> Iterator[str]:
        for option in self._command["options"]:
            if self._used & set(option["names"]) and not option["repeats"]:
                continue
            for name in option["names"]:
                if name.startswith(self._word):
                    yield f"{name}\t{option['help']}"

    def _positional(self) -> Iterator[str]:
        places = self._command["positionals"]
        if not places:
            return
        place = places[min(self._positionals, len(places) - 1)]
        if self._positionals < len(places) or place["repeats"]:
            yield from self._values(place["kind"], place["choices"])

    def _values(self, kind: str, choices: Mapping[str, str]) -> Iterator[str]:
        if kind in {"file", "folder"}:
            yield f":{kind}"
            return
        found = {**choices, **self._root["values"].get(kind, {})}
        if kind == "server":
            found.update(dict.fromkeys(self._servers(), "from the client configuration"))
        wanted = self._word.lower()
        for value, meaning in found.items():
            if value.lower().startswith(wanted):
                yield f"{value}\t{meaning}"
        if kind == "server":
            yield ":file"

    def _servers(self) -> list[str]:
        return server_names(self._given.get("--mcp-config", _CONFIGURATION))


def server_names(path: str) -> list[str]:
    """The names in a client configuration that can be typed as they are; none if it is broken."""
    import json

    try:
        with open(os.path.expanduser(path), "rb") as file:  # noqa: PTH111, PTH123 - pathlib is slow
            document = json.loads(file.read(_LARGEST_CONFIGURATION))
    except (OSError, ValueError, RecursionError):  # then there is nothing to offer, and no word
        return []
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    return (
        [name for name in servers if _PLAIN_NAME.fullmatch(name)]
        if isinstance(servers, dict)
        else []
    )
