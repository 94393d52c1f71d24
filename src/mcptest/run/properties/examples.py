"""Counterexamples that are kept: a file for each, in a folder of the server, tried first next time.

A file holds the steps and the rule, nothing that was received, and no secret: a request is made of
what the server lists, never of what the user configured.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from mcptest.model.errors import UsageError
from mcptest.run.properties.playing import AnyStep, Steps
from mcptest.transport.files import replace_file
from mcptest.transport.input_file import read_input
from mcptest.transport.target import Target

FORMAT = "mcptest.example/1"
FOLDER = Path(".mcptest", "examples")
_LARGEST = 4 * 1024 * 1024
_MOST = 200
"""Examples of one property that are read."""


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that broke a property of a server."""

    format: str = FORMAT
    of_property: str = msgspec.field(name="property")
    rule: str = ""
    title: str = ""
    way: str = "rule"
    revision: str = ""
    transport: str = ""
    after: int = 0
    steps: list[AnyStep]

    @property
    def name(self) -> str:
        """The same for the same conversation."""
        what = msgspec.json.encode(
            [self.of_property, self.rule or self.title, self.way, self.steps]
        )
        return f"{self.of_property}-{hashlib.sha256(what).hexdigest()[:10]}"

    @property
    def all_steps(self) -> Steps:
        return tuple(self.steps)


class Examples:
    """The folder of one server. One that can't be read or written is said, and costs no verdict."""

    def __init__(self, folder: Path | None, target: Target) -> None:
        mark = hashlib.sha256(target.peer.encode()).hexdigest()[:12]
        self.folder = None if folder is None else folder / mark
        self.troubles: list[str] = []

    def of(self, name: str, revision: str, transport: str) -> list[Example]:
        """What broke that property in that revision over that transport."""
        if self.folder is None or not self.folder.is_dir():
            return []
        found = []
        for path in sorted(self.folder.glob(f"{name}-*.json"))[:_MOST]:
            try:
                one = read_example(path)
            except UsageError as error:
                self.troubles.append(error.message)
                continue
            if (one.of_property, one.revision, one.transport) == (name, revision, transport):
                found.append(one)
        return found

    def keep(self, example: Example) -> None:
        if self.folder is None:
            return
        written = msgspec.json.format(msgspec.json.encode(example), indent=2) + b"\n"
        try:
            # Several workers, and several runs at once, may keep the same example.
            replace_file(self.folder / f"{example.name}.json", written)
        except UsageError as error:
            self.troubles.append(f"the example could not be kept: {error.message}")

    def forget(self, example: Example) -> None:
        """It holds now."""
        if self.folder is None:
            return
        try:
            (self.folder / f"{example.name}.json").unlink(missing_ok=True)
        except OSError as error:
            self.troubles.append(f"{example.name} could not be forgotten: {error.strerror}")


def read_example(path: Path) -> Example:
    """Raises UsageError for anything that is no example."""
    return example_of(read_input(path, "the example", largest=_LARGEST), str(path))


def example_of(data: bytes | dict[str, Any], where: str) -> Example:
    try:
        if isinstance(data, bytes):
            example = msgspec.json.decode(data, type=Example)
        else:
            example = msgspec.convert(data, Example)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{where} is no example: {error}") from None
    if example.format != FORMAT:
        raise UsageError(f"{where} is no example of a format that is known here: {FORMAT}")
    return example
