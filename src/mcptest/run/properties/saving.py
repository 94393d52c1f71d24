"""Counterexamples as files: an example, a suite and a pytest file that fail until it is mended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

from mcptest.model.errors import UsageError
from mcptest.model.property import Counterexample, PropertyReport
from mcptest.model.show import show
from mcptest.run.exploring.placing import Placed, place_schema, put
from mcptest.run.properties.examples import FORMAT
from mcptest.suite.written import SCHEMA_FILE, WrittenServer
from mcptest.transport.target import Target

_LONGEST_COMMENT = 200
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def save_counterexamples(
    folder: Path,
    report: PropertyReport,
    target: Target,
    server: WrittenServer,
    *,
    overwrite: bool,
) -> list[Placed]:
    """Three files for each. What exists is the same failure, and is kept."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't write into {folder}: {error.strerror}") from None
    placed: list[Placed] = []
    for found in report.counterexamples:
        placed += _save(folder, found, report, target, server, overwrite)
    if any(one.how in ("created", "replaced") for one in placed):
        place_schema(folder)
    return placed


def _save(
    folder: Path,
    found: Counterexample,
    report: PropertyReport,
    target: Target,
    server: WrittenServer,
    overwrite: bool,
) -> Iterator[Placed]:
    subject = show(f"{found.of_property}: {found.rule or found.title}", 120)
    example = example_as_data(found, report)
    texts = {
        f"{found.example}.json": json.dumps(example, indent=2) + "\n",
        f"{found.example}.yaml": suite_text(found, server),
        f"test_{found.example.replace('-', '_')}.py": pytest_text(found, example, server, target),
    }
    for file, text in texts.items():
        existed = (folder / file).exists()
        if put(folder / file, text.encode(), overwrite=overwrite):
            yield Placed(subject, file, "replaced" if existed else "created")
        else:
            yield Placed(subject, file, "kept", "it exists already")


def example_as_data(found: Counterexample, report: PropertyReport) -> dict[str, Any]:
    return {
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


def _about(found: Counterexample) -> Iterator[str]:
    rule = f"{found.rule}: " if found.rule else ""
    yield f"{rule}{found.title} ({found.severity.value})"
    yield found.message
    yield from (f"{number}. {words}" for number, words in enumerate(found.words, 1))


def _comments(found: Counterexample, server: WrittenServer) -> list[str]:
    told = (*server.comments, *_about(found))
    return [f"# {show(line, _LONGEST_COMMENT)}" for line in told]


def suite_text(found: Counterexample, server: WrittenServer) -> str:
    """A suite that tries the example beside it. The block is JSON, which is YAML as well."""
    lines = [f"# yaml-language-server: $schema=./{SCHEMA_FILE}", *_comments(found, server)]
    if server.block:
        lines.append(f"server: {json.dumps(server.block)}")
    lines += ["properties:", "  strict: true", f"  replay: [{found.example}.json]"]
    return "\n".join(lines) + "\n"


def pytest_text(
    found: Counterexample, example: dict[str, Any], server: WrittenServer, target: Target
) -> str:
    """A test that needs nothing but mcptest and the server."""
    name = found.example.replace("-", "_")
    told = "\n".join(f"    {show(line, 90)}" for line in _about(found)).replace('"""', "'''")
    body = pformat(example, width=96, sort_dicts=False)
    return (
        f'"""Found by `mcptest property`: it fails until the server is mended."""\n\n'
        "from __future__ import annotations\n\n"
        f"{_imports(server)}"
        f"{_server_text(server, target)}\n"
        f"EXAMPLE = {body}\n\n\n"
        f"def test_{name}() -> None:\n"
        f'    r"""\n{told}\n    """\n'
        f"    assert_holds(EXAMPLE, {_server_argument(server)})\n"
    )


def _imports(server: WrittenServer) -> str:
    first = "import os\n\n" if server.needs else ""
    return f"{first}from mcptest.testing import {'Server, ' * _is_special(server)}assert_holds\n\n"


def _server_text(server: WrittenServer, target: Target) -> str:
    if not server.block:
        return 'SERVER = ""  # it holds a secret: name it here'
    if "command" in server.block:
        words = [server.block["command"], *server.block.get("args", ())]
        return f"SERVER = {pformat(words, width=90)}"
    return f"SERVER = {server.block.get('url', target.url)!r}"


def _is_special(server: WrittenServer) -> bool:
    """Whether more is to be said of it than its name."""
    return any(server.block.get(what) for what in ("cwd", "env", "headers")) or _is_sse(server)


def _is_sse(server: WrittenServer) -> bool:
    return bool(server.block.get("transport") == "sse")


def _server_argument(server: WrittenServer) -> str:
    if not _is_special(server):
        return "SERVER"
    block = server.block
    given = ["tuple(SERVER)" if "command" in block else "SERVER"]
    given += [f"cwd={block['cwd']!r}"] if block.get("cwd") else []
    given += (f"{what}={_values(block[what])}" for what in ("env", "headers") if block.get(what))
    given += ['transport="sse"'] if _is_sse(server) else []
    return f"Server({', '.join(given)})"


def _values(written: Mapping[str, str]) -> str:
    """As a suite has them: a secret is a variable of the environment."""
    members = []
    for name, text in written.items():
        variable = _VARIABLE.fullmatch(text)
        value = f"os.environ[{variable[1]!r}]" if variable else repr(text.replace("$$", "$"))
        members.append(f"{name!r}: {value}")
    return "{" + ", ".join(members) + "}"
