"""What the demo can be told when it is started: one table for both of its command lines."""

from __future__ import annotations

import os

from mcptest.servers.demo import versions

TYPE_CHECKING = False  # see jsonrpc
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

OFFERS = ("fixtures", "tasks")
"""What the demo has when it is asked to: things that only a test needs."""
PARTS = ("tools", "resources", "prompts", "completions", "logging", "subscribe", "list-changed")
"""What the demo can be told to do without."""
ERAS = {"both": versions.ALL, "handshake": versions.HANDSHAKE, "stateless": versions.STATELESS}


class BadOption(Exception):  # noqa: N818  says what it is
    """An option that can't be used; the text says why."""


class Options:
    """The settings of one demo server."""

    def __init__(self) -> None:
        self.transport = "stdio"
        self.host = "127.0.0.1"
        self.port = 0
        self.port_file: str | None = None
        self.root: str | None = None
        self.spec_version: str | None = None
        self.era = "both"
        self.response = "auto"
        self.page_size = 10
        self.offer: frozenset[str] = frozenset()
        self.hide: frozenset[str] = frozenset()
        self.token: str | None = None
        self.secret = ""
        """Where it is set, the endpoint stands below it, and only who knows it finds anything."""
        self.shown_secret = ""
        """What is said of the secret to whoever reads our stderr."""

    @property
    def spoken(self) -> tuple[str, ...]:
        """The revisions that are spoken, oldest first."""
        wanted = self.spec_version
        return tuple(v for v in ERAS[self.era] if wanted is None or v == wanted)

    @property
    def handshake(self) -> tuple[str, ...]:
        return tuple(version for version in self.spoken if version in versions.HANDSHAKE)

    @property
    def stateless(self) -> tuple[str, ...]:
        return tuple(version for version in self.spoken if version in versions.STATELESS)


def _one_of(*words: str) -> Callable[[str], str]:
    def convert(value: str) -> str:
        if value not in words:
            raise BadOption(f"must be one of {', '.join(words)}, not {value!r}")
        return value

    return convert


def _some_of(*words: str) -> Callable[[str], frozenset[str]]:
    def convert(value: str) -> frozenset[str]:
        return frozenset(_one_of(*words)(one.strip()) for one in value.split(","))

    return convert


def _token(value: str) -> str:
    if not value or not all("!" <= letter <= "~" for letter in value):
        raise BadOption("must be of visible ASCII characters")
    return value


def _number(least: int, most: int) -> Callable[[str], int]:
    def convert(value: str) -> int:
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise BadOption(f"must be a number, not {value!r}")
        if not least <= int(value) <= most:
            raise BadOption(f"must be from {least} to {most}, not {value}")
        return int(value)

    return convert


def _revision(value: str) -> str | None:
    if value in {"auto", "all"}:
        return None
    if value == "draft":
        return versions.V2026_07_28
    return _one_of(*versions.ALL)(value.removeprefix("v"))


def _folder(value: str) -> str:
    path = os.path.abspath(value)  # noqa: PTH100  pathlib costs start-up time
    if not os.path.isdir(path):  # noqa: PTH112  as above
        raise BadOption(f"is not a folder: {value!r}")
    return path


TABLE: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "transport": (_one_of("stdio", "http"), "NAME", "stdio or http (default: stdio)"),
    "host": (str, "ADDRESS", "address to listen on with http (default: 127.0.0.1)"),
    "port": (_number(0, 65535), "N", "port to listen on with http (default: 0, any free port)"),
    "port-file": (str, "FILE", "write the port to FILE once the server listens"),
    "root": (_folder, "DIR", "folder for the file tools (default: one in memory)"),
    "spec-version": (_revision, "REV", "speak only this revision (default: all)"),
    "era": (_one_of(*ERAS), "ERA", "both, handshake or stateless (default: both)"),
    "response": (
        _one_of("auto", "json", "sse"),
        "KIND",
        "form of HTTP responses: json, sse, or auto for sse only if needed (default: auto)",
    ),
    "page-size": (_number(1, 1000), "N", "items per page of a list (default: 10)"),
    "offer": (_some_of(*OFFERS), "LIST", f"offer more, for tests: {', '.join(OFFERS)}"),
    "hide": (_some_of(*PARTS), "LIST", f"leave out: {', '.join(PARTS)}"),
    "token": (_token, "TEXT", "with http, require this bearer token"),
}


def set_option(options: Options, name: str, value: str) -> None:
    """Set one option of the table from its text."""
    try:
        setattr(options, name.replace("-", "_"), TABLE[name][0](value))
    except BadOption as problem:
        raise BadOption(f"--{name} {problem}") from None


def check_options(options: Options) -> Options:
    if not options.spoken:
        raise BadOption(f"--spec-version {options.spec_version} is not of the era {options.era}")
    return options


def parse_options(arguments: Sequence[str]) -> Options:
    """Read `--name value` and `--name=value`. By hand: argparse would double the start-up time."""
    options = Options()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in TABLE:
            known = ", ".join(f"--{known}" for known in TABLE)
            raise BadOption(f"unknown option {word!r}; there are {known}")
        if not equals:
            if not rest:
                raise BadOption(f"--{name} needs a value")
            value = rest.pop(0)
        set_option(options, name, value)
    return check_options(options)
