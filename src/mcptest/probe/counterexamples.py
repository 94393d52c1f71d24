"""Counterexamples as files: how what `fuzz` and `property` found is saved, and read to be replayed.

With `--output` each becomes a suite that fails until the server is mended; a conversation of
`property` also becomes an example and a pytest file. Besides, `property` keeps its examples in a
folder of the server and tries them first next time. An example holds the steps and the rule,
nothing that was received, and no secret: a request is made of what the server lists, never of what
the user configured.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

import msgspec
from msgspec import UNSET

from mcptest.core.errors import UsageError
from mcptest.core.safe_text import show
from mcptest.probe.live_server import INTERNAL_ERROR
from mcptest.probe.properties.steps import AnyStep, Steps
from mcptest.probe.starter_suites import place_files
from mcptest.report.fuzz import FuzzFailure, FuzzVerdict
from mcptest.report.property import Counterexample, PropertyReport
from mcptest.report.starter_files import PlacedFile
from mcptest.suite.sent_message import texts_in
from mcptest.suite.starters import (
    SCHEMA_FILE,
    FileNames,
    UnwritableError,
    WrittenServer,
    flow,
    scalar,
)
from mcptest.transport.files import read_input, replace_file
from mcptest.transport.target import Target

FORMAT = "mcptest.example/1"
FOLDER = Path(".mcptest", "examples")
_LARGEST = 4 * 1024 * 1024
_MOST = 200
"""Examples of one property that are read."""
_LONGEST_COMMENT = 200
_PLACEHOLDER = re.compile(r"\{[a-z][a-z_]*\}|\{\{")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


# -- examples that are kept ----------------------------------------------------------------------


class SavedExample(msgspec.Struct, frozen=True, kw_only=True):
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
        what = [self.of_property, self.rule or self.title, self.way, self.steps]
        digest = hashlib.sha256(msgspec.json.encode(what)).hexdigest()
        return f"{self.of_property}-{digest[:10]}"

    @property
    def all_steps(self) -> Steps:
        return tuple(self.steps)


class Examples:
    """The folder of one server. One that can't be read or written is said, and costs no verdict."""

    def __init__(self, folder: Path | None, target: Target) -> None:
        mark = hashlib.sha256(target.peer.encode()).hexdigest()[:12]
        self.folder = None if folder is None else folder / mark
        self.troubles: list[str] = []

    def of(self, name: str, revision: str, transport: str) -> list[SavedExample]:
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

    def keep(self, example: SavedExample) -> None:
        if self.folder is None:
            return
        written = msgspec.json.format(msgspec.json.encode(example), indent=2) + b"\n"
        try:
            # Several workers, and several runs at once, may keep the same example.
            replace_file(self.folder / f"{example.name}.json", written)
        except UsageError as error:
            self.troubles.append(f"could not save the example: {error.message}")

    def forget(self, example: SavedExample) -> None:
        """It holds now."""
        if self.folder is None:
            return
        try:
            (self.folder / f"{example.name}.json").unlink(missing_ok=True)
        except OSError as error:
            self.troubles.append(f"could not delete {example.name}: {error.strerror}")


def read_example(path: Path) -> SavedExample:
    """Raises UsageError for anything that is no example."""
    return example_of(read_input(path, "the example", largest=_LARGEST), str(path))


def example_of(data: bytes | dict[str, Any], where: str) -> SavedExample:
    try:
        if isinstance(data, bytes):
            example = msgspec.json.decode(data, type=SavedExample)
        else:
            example = msgspec.convert(data, SavedExample)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{where} is not an example: {error}") from None
    if example.format != FORMAT:
        raise UsageError(f"{where} has an unknown format; expected {FORMAT}")
    return example


# -- files that are written ----------------------------------------------------------------------


def save_failures(
    folder: Path, failures: Iterable[FuzzFailure], server: WrittenServer, *, overwrite: bool
) -> list[PlacedFile]:
    files: list[tuple[PlacedFile, str]] = []
    for failure in failures:
        subject = show(f"{failure.tool}: {failure.label}", 120)
        stem = FileNames().name_for(failure.tool, f"fuzz-{failure.verdict.value}-")
        # With the tool in it: where names differ in their case only, the marks do more.
        sent = {"no": "arguments"} if failure.minimal is UNSET else failure.minimal
        what = json.dumps([failure.tool, sent, failure.verdict.value, failure.pattern])
        mark = hashlib.sha256(what.encode()).hexdigest()[:8]
        name = f"{stem.removesuffix('.yaml')}-{mark}.yaml"
        try:
            file, text = PlacedFile(subject, name, "created"), failure_yaml(failure, server)
        except UnwritableError as error:
            file, text = PlacedFile(subject, name, "left out", str(error)), ""
        files.append((file, text))
    return place_files(folder, files, overwrite=overwrite)


def save_counterexamples(
    folder: Path, report: PropertyReport, target: Target, server: WrittenServer, *, overwrite: bool
) -> list[PlacedFile]:
    """An example, a suite and a pytest file for each counterexample to a property."""
    files = (
        file
        for found in report.counterexamples
        for file in _property_files(found, report, target, server)
    )
    return place_files(folder, files, overwrite=overwrite)


def _suite_head(server: WrittenServer, about: Iterable[str]) -> list[str]:
    """The first lines of a suite. The block is JSON, which is YAML as well."""
    lines = [f"# yaml-language-server: $schema=./{SCHEMA_FILE}"]
    lines += (f"# {show(line, _LONGEST_COMMENT)}" for line in (*server.comments, *about))
    return lines


# -- a failure of a fuzz run ---------------------------------------------------------------------


def failure_yaml(failure: FuzzFailure, server: WrittenServer) -> str:
    """The whole file. Raises UnwritableError for what can't be said in one."""
    params: dict[str, Any] = {"name": failure.tool}
    if failure.minimal is not UNSET:
        params["arguments"] = failure.minimal
    if any(map(_PLACEHOLDER.search, texts_in(params))):
        raise UnwritableError("a value has braces that a suite would read as a variable")
    about = [f"found by fuzzing: {failure.verdict.value}: {failure.detail}"]
    if failure.valid is not None:
        misfit = "" if failure.valid else f": {failure.misfit}"
        accepts = "accepts" if failure.valid else "does not accept"
        about.append(f"the tool's own schema {accepts} the input{misfit}")
    about.append(
        "it passes if the tool returns a result (with or without isError) or rejects the call"
    )
    lines = _suite_head(server, about)
    if server.block:
        lines.append(f"server: {flow(server.block)}")
    name = scalar(show(f"{failure.tool}: {failure.label}", 200))
    if failure.afterwards:
        # A server that dies after its answer is seen to be dead by the next call only.
        if not isinstance(failure.minimal, Mapping):
            raise UnwritableError("the server exited after its response to a malformed request")
        call = {"tool": failure.tool, "args": failure.minimal}
        there = {"target": "duration", "matcher": {"minimum": 0}}
        lines += ["tests:", f"  - name: {name}", f"    setup: [{flow(call)}]"]
        lines.append(f"    assert: {flow({**call, 'expect': [there]})}")
    else:
        expected = {"target": "exchange", "matcher": {"schema": _sound_answer(failure)}}
        lines += ["compliance:", "  tests:", f"    - name: {name}"]
        lines.append(f"      check: {flow({'method': 'tools/call', 'params': params})}")
        lines += ["      expect:", f"        - {flow(expected)}"]
    return "\n".join(lines) + "\n"


def _sound_answer(failure: FuzzFailure) -> dict[str, Any]:
    if failure.verdict is FuzzVerdict.LEAK:
        if not failure.pattern:
            raise UnwritableError("a secret leaked, so the input is not written down")
        clean: dict[str, Any] = {"$ref": "#/$defs/clean"}
        rule = {"not": {"type": "string", "pattern": failure.pattern}}
        clean_value = {**rule, "items": clean, "additionalProperties": clean}
        return {**clean, "$defs": {"clean": clean_value}}
    code = {"type": "integer", "not": {"const": INTERNAL_ERROR}}
    return {
        "properties": {
            "answer": {"enum": ["result", "error"]},
            "result": {"type": "object"},
            "error": {"properties": {"code": code}, "required": ["code"]},
        }
    }


# -- a counterexample to a property --------------------------------------------------------------


def _property_files(
    found: Counterexample, report: PropertyReport, target: Target, server: WrittenServer
) -> Iterator[tuple[PlacedFile, str]]:
    subject = show(f"{found.of_property}: {found.rule or found.title}", 120)
    example = {
        "format": FORMAT,
        "property": found.of_property,
        "rule": found.rule,
        "title": found.title,
        "way": found.way.value,
        "revision": report.revision,
        "transport": report.transport,
        "after": found.after,
        "steps": list(found.steps),
    }
    lines = _suite_head(server, _about_counterexample(found))
    if server.block:
        lines.append(f"server: {json.dumps(server.block)}")
    lines += ["properties:", "  strict: true", f"  replay: [{found.example}.json]"]
    test = f"test_{found.example.replace('-', '_')}.py"
    texts = {
        f"{found.example}.json": json.dumps(example, indent=2) + "\n",
        f"{found.example}.yaml": "\n".join(lines) + "\n",
        test: pytest_text(found, example, server, target),
    }
    yield from ((PlacedFile(subject, name, "created"), text) for name, text in texts.items())


def _about_counterexample(found: Counterexample) -> Iterator[str]:
    rule = f"{found.rule}: " if found.rule else ""
    yield f"{rule}{found.title} ({found.severity.value})"
    yield found.message
    yield from (f"{number}. {words}" for number, words in enumerate(found.words, 1))


def pytest_text(
    found: Counterexample, example: dict[str, Any], server: WrittenServer, target: Target
) -> str:
    """A test that needs nothing but mcptest and the server."""
    name = found.example.replace("-", "_")
    lines = (f"    {show(line, 90)}" for line in _about_counterexample(found))
    about = "\n".join(lines).replace('"""', "'''")
    body = pformat(example, width=96, sort_dicts=False)
    block = server.block
    if not block:
        named = 'SERVER = ""  # it has a secret: set it here'
    elif "command" in block:
        named = f"SERVER = {pformat([block['command'], *block.get('args', ())], width=90)}"
    else:
        named = f"SERVER = {block.get('url', target.url)!r}"
    argument = _server_argument(block)
    first = "import os\n\n" if server.needs else ""
    imported = "assert_holds" if argument == "SERVER" else "Server, assert_holds"
    return (
        f'"""Found by `mcptest property`: it fails until the server is fixed."""\n\n'
        "from __future__ import annotations\n\n"
        f"{first}from mcptest.testing import {imported}\n\n"
        f"{named}\n"
        f"EXAMPLE = {body}\n\n\n"
        f"def test_{name}() -> None:\n"
        f'    r"""\n{about}\n    """\n'
        f"    assert_holds(EXAMPLE, {argument})\n"
    )


def _server_argument(block: Mapping[str, Any]) -> str:
    """Its name, or a Server where more is to be said of it."""
    given = [f"cwd={block['cwd']!r}"] if block.get("cwd") else []
    given += (f"{what}={_values(block[what])}" for what in ("env", "headers") if block.get(what))
    given += ['transport="sse"'] if block.get("transport") == "sse" else []
    if not given:
        return "SERVER"
    return f"Server({', '.join(['tuple(SERVER)' if 'command' in block else 'SERVER', *given])})"


def _values(written: Mapping[str, str]) -> str:
    """As a suite has them: a secret is a variable of the environment."""
    members = []
    for name, text in written.items():
        variable = _VARIABLE.fullmatch(text)
        value = f"os.environ[{variable[1]!r}]" if variable else repr(text.replace("$$", "$"))
        members.append(f"{name!r}: {value}")
    return "{" + ", ".join(members) + "}"
