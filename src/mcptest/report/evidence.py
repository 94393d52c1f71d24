"""Why a test failed, and the proof: safe lines of bounded number and length, for every report.

The words are the peer's. No line that leaves this module can steer a terminal or a CI system.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from mcptest.core.results import FailedCheck, Proof, TestResult
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.report.terminal import counted

_COMMAND = 4_000
"""A command that was cut would not run; this is longer than any that a person writes."""


class Bounds(msgspec.Struct, frozen=True):
    """How much of a failure is shown."""

    lines: int
    characters: int
    wire: int
    """Characters of a request or a response."""
    stderr: int
    """Lines from the end of what the server wrote there."""
    failures: int


BRIEF = Bounds(lines=12, characters=300, wire=500, stderr=5, failures=20)
FULL = Bounds(lines=100, characters=1_000, wire=4_000, stderr=50, failures=200)


_META = re.compile(r'"_meta"\s*:\s*(?=\{)')
_BOILERPLATE = "io.modelcontextprotocol/"
_DECODER = json.JSONDecoder()


def without_boilerplate(request: str) -> str:
    """A request to be shown: what every stateless request of ours says is folded."""
    found = _META.search(request)
    if found is None or _BOILERPLATE not in request:
        return request
    try:
        meta, end = _DECODER.raw_decode(request, found.end())
    except (ValueError, RecursionError):  # it was cut
        return request
    ours = {name: meta[name] for name in meta if name.startswith(_BOILERPLATE)}
    if not _is_usual(ours):
        return request
    own = {name: value for name, value in meta.items() if name not in ours}
    shown = [f"{json.dumps(name)}:{json.dumps(value)}" for name, value in own.items()]
    return request[: found.end()] + "{" + ",".join([*shown, "…"]) + "}" + request[end:]


def _is_usual(ours: dict[str, Any]) -> bool:
    """Whatever was sent on purpose, such as a version that does not exist, is shown."""
    version = ours.get(f"{_BOILERPLATE}protocolVersion")
    client = ours.get(f"{_BOILERPLATE}clientInfo")
    return (
        len(ours) == 3
        and any(version == revision.wire_version for revision in Revision)
        and isinstance(client, dict)
        and client.get("name") == "mcptest"
        and ours.get(f"{_BOILERPLATE}clientCapabilities") == {}
    )


def safe_lines(text: str, lines: int, characters: int) -> list[str]:
    """The first lines of a text, and how many more there are."""
    parts = text.rstrip("\n").split("\n", lines)
    shown = [show(part, characters) for part in parts[:lines]]
    if len(parts) > lines:
        more = parts[lines].count("\n") + 1
        shown.append(f"(and {counted(more, 'more line')})")
    return shown


def first_line(text: str, characters: int = 200) -> str:
    return show(text.lstrip("\n").partition("\n")[0], characters)


def detail_lines(result: TestResult, bounds: Bounds, *, all_failures: bool = False) -> list[str]:
    """What was wrong: the first thing that did not hold, or everything."""
    if all_failures and len(result.failures) > 1:
        return list(_every_failure(result, bounds))
    lines = safe_lines(result.detail, bounds.lines, bounds.characters) if result.detail else []
    if result.failures:
        lines += _expected_and_actual(result.failures[0], result.detail, bounds)
    more = len(result.failures) - 1
    if more > 0:
        lines.append(f"({counted(more, 'more check')} failed: --all-failures shows all)")
    return lines or ["failed without a reason"]


def _every_failure(result: TestResult, bounds: Bounds) -> Iterator[str]:
    for number, failure in enumerate(result.failures[: bounds.failures], 1):
        message = safe_lines(failure.message, bounds.lines, bounds.characters)
        lines = message + _expected_and_actual(failure, failure.message, bounds)
        yield f"{number}. {lines[0]}"
        yield from (f"   {line}" for line in lines[1:])
    more = len(result.failures) - bounds.failures
    if more > 0:
        yield f"(and {more} more)"


def _expected_and_actual(failure: FailedCheck, told: str, bounds: Bounds) -> list[str]:
    """Only what the message does not already say."""
    # A schema is not what the value should have been: the message says where it does not match.
    expected = failure.expected if failure.check != "schema" else None
    facts = [("at", failure.pointer), ("expected", expected), ("actual", failure.actual)]
    return [
        f"  {label + ':':<9} {show(text, bounds.characters)}"
        for label, text in facts
        if text is not None and text not in told
    ]


def labelled_once(pairs: Iterable[tuple[str, str]], end: str = ":") -> Iterator[tuple[str, str]]:
    """The same pairs; of several in a row with one label, the first has it, with that end."""
    for label, group in groupby(pairs, key=itemgetter(0)):
        for number, (_, text) in enumerate(group):
            yield "" if number else f"{label}{end}", text


def _stderr_lines(result: TestResult, stderr: Sequence[str], bounds: Bounds) -> Iterator[str]:
    """The last lines, unless the reason quotes all of them."""
    last = stderr[-bounds.stderr :]
    if all(line.strip() in result.detail for line in last):
        return
    if len(stderr) > len(last):
        yield f"({counted(len(stderr) - len(last), 'earlier line')})"
    for line in last:
        text = line[: bounds.characters + 1].rstrip("\r\n").expandtabs(4)
        yield show(text, bounds.characters)


def proof_lines(result: TestResult, bounds: Bounds) -> Iterator[tuple[str, str]]:
    """Pairs of label and text. Several lines of one kind come as several pairs."""
    if result.file:
        yield "where", show(f"{result.file}:{result.line}" if result.line else result.file, 500)
    proof = result.proof or Proof()
    if proof.request:
        yield "request", show(without_boilerplate(proof.request), bounds.wire)
    if proof.request or proof.response:
        yield "response", show(proof.response, bounds.wire) or "(no response)"
    yield from (("stderr", text) for text in _stderr_lines(result, proof.stderr, bounds))
    if proof.exit:
        yield "exit", show(proof.exit, bounds.characters)
    if proof.capture:
        yield "capture", show(proof.capture, 500)
    if proof.repeat:
        yield "repeat", show(proof.repeat, _COMMAND)
