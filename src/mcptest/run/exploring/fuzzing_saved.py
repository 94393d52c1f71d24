"""Failures of a fuzz run as suites: each is one test that fails until the server is mended.

A test of the `compliance` block, because that is the one place where a suite may send arguments
that are no object, and expect either a result or a refusal.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mcptest.model.errors import UsageError
from mcptest.model.fuzz import FuzzFailure, Verdict
from mcptest.model.message import ABSENT
from mcptest.model.show import show
from mcptest.run.exploring.outcome import INTERNAL_ERROR
from mcptest.run.exploring.placing import Placed, place_schema, put
from mcptest.suite.written import SCHEMA_FILE, UnwritableError, WrittenServer, scalar
from mcptest.suite.written_names import FileNames

_PLACEHOLDER = re.compile(r"\{[a-z][a-z_]*\}|\{\{")
_LONGEST_COMMENT = 200


def save_failures(
    folder: Path, failures: Iterable[FuzzFailure], server: WrittenServer, *, overwrite: bool
) -> list[Placed]:
    """One file for each. One that exists already is the same failure, and is kept."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't write into {folder}: {error.strerror}") from None
    placed = [_save(folder, failure, server, overwrite) for failure in failures]
    if any(one.how in ("created", "replaced") for one in placed):
        place_schema(folder)
    return placed


def _save(folder: Path, failure: FuzzFailure, server: WrittenServer, overwrite: bool) -> Placed:
    subject = show(f"{failure.tool}: {failure.label}", 120)
    file = _file_name(failure)
    try:
        text = failure_yaml(failure, server)
    except UnwritableError as error:
        return Placed(subject, file, "left out", str(error))
    existed = (folder / file).exists()
    if not put(folder / file, text.encode(), overwrite=overwrite):
        return Placed(subject, file, "kept", "it exists already")
    return Placed(subject, file, "replaced" if existed else "created")


def _file_name(failure: FuzzFailure) -> str:
    stem = FileNames().name_for(failure.tool, f"fuzz-{failure.verdict.value}-")
    # With the tool in it: where names differ in their case only, the marks do more.
    what = json.dumps([failure.tool, _sent(failure), failure.verdict.value, failure.pattern])
    mark = hashlib.sha256(what.encode()).hexdigest()[:8]
    return f"{stem.removesuffix('.yaml')}-{mark}.yaml"


def _sent(failure: FuzzFailure) -> Any:
    return {"no": "arguments"} if failure.minimal is ABSENT else failure.minimal


def failure_yaml(failure: FuzzFailure, server: WrittenServer) -> str:
    """The whole file. Raises UnwritableError for what can't be said in one."""
    params: dict[str, Any] = {"name": failure.tool}
    if failure.minimal is not ABSENT:
        params["arguments"] = failure.minimal
    _refuse_placeholders(params)
    about = (*server.comments, *_about(failure))
    lines = [f"# yaml-language-server: $schema=./{SCHEMA_FILE}"]
    lines += [f"# {show(line, _LONGEST_COMMENT)}" for line in about]
    if server.block:
        lines.append(f"server: {_flow(server.block)}")
    name = scalar(show(f"{failure.tool}: {failure.label}", 200))
    lines += _called_twice(failure, name) if failure.afterwards else _called(failure, name, params)
    return "\n".join(lines) + "\n"


def _called(failure: FuzzFailure, name: str, params: Mapping[str, Any]) -> list[str]:
    expected = {"target": "exchange", "matcher": {"schema": _schema(failure)}}
    return [
        "compliance:",
        "  tests:",
        f"    - name: {name}",
        f"      check: {_flow({'method': 'tools/call', 'params': params})}",
        "      expect:",
        f"        - {_flow(expected)}",
    ]


def _called_twice(failure: FuzzFailure, name: str) -> list[str]:
    """A server that dies after its answer is seen to be dead by the next call only."""
    if not isinstance(failure.minimal, Mapping):
        raise UnwritableError("the server died after its answer to a malformed request")
    call = {"tool": failure.tool, "args": failure.minimal}
    there = {"target": "duration", "matcher": {"minimum": 0}}
    return [
        "tests:",
        f"  - name: {name}",
        f"    setup: [{_flow(call)}]",
        f"    assert: {_flow({**call, 'expect': [there]})}",
    ]


def _about(failure: FuzzFailure) -> Iterator[str]:
    yield f"found by fuzzing: {failure.verdict.value}: {failure.detail}"
    if failure.valid is not None:
        yield (
            "the tool's own schema accepts the input"
            if failure.valid
            else f"the tool's own schema does not accept the input: {failure.misfit}"
        )
    yield "it passes when the tool answers with a result (isError: true is one) or refuses the call"


def _schema(failure: FuzzFailure) -> dict[str, Any]:
    """What a sound answer looks like."""
    if failure.verdict is Verdict.LEAK:
        if not failure.pattern:
            raise UnwritableError("a secret got out, which is not written down")
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


def _refuse_placeholders(value: Any) -> None:
    if isinstance(value, str) and _PLACEHOLDER.search(value):
        raise UnwritableError("a value holds braces that a suite reads as a variable")
    if isinstance(value, Mapping):
        for key, one in value.items():
            _refuse_placeholders(key)
            _refuse_placeholders(one)
    elif isinstance(value, list):
        for one in value:
            _refuse_placeholders(one)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return scalar(value)
