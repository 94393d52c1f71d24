"""`mcptest schema NAME`: the JSON Schema of a file format; without a name, which there are."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from mcptest.commands.options import HIDDEN, OptionGroup
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.safe_text import show
from mcptest.report.json_schemas import FORMATS, schema_of, titled
from mcptest.transport.files import replace_file

_EXAMPLE = "a counterexample of `mcptest property`"


def configure(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser)
    add("name NAME", "file format (default: list them)", nargs="?", choices=tuple(_titles()))
    about = "write the schema to these files; leave up-to-date files alone"
    add("--out FILE", about, nargs="+", default=[], was="--output")
    add("--debug", HIDDEN)


def run(arguments: argparse.Namespace) -> int:
    if arguments.name is None:
        if arguments.out:
            raise UsageError(
                "no schema is named", hint="for example: mcptest schema suite --out FILE"
            )
        titles = _titles()
        width = max(map(len, titles))
        sys.stdout.writelines(f"{name:<{width}}  {title}\n" for name, title in titles.items())
        return ExitCode.OK
    text = json.dumps(schema_named(arguments.name), indent=2) + "\n"
    if not arguments.out:
        sys.stdout.write(text)
    for file in arguments.out:
        _write(file, text.encode())
    return ExitCode.OK


def _write(file: Path, data: bytes) -> None:
    try:
        if not file.is_file() or file.read_bytes() != data:
            replace_file(file, data)
    except OSError as error:
        said = error.strerror or str(error)
        raise UsageError(f"cannot write {show(str(file), 300)}: {said}") from None


def schema_named(name: str) -> dict[str, Any]:
    """Of any format, also of those that belong to runs."""
    if name != "example":
        return schema_of(name)
    from mcptest.probe.counterexamples import FORMAT, SavedExample

    schema = msgspec.json.schema(SavedExample)
    whole = schema["$defs"]["SavedExample"]
    whole["properties"]["format"] = {"const": FORMAT}
    whole["required"] = ["format", *whole["required"]]
    return titled(_EXAMPLE, schema)


def _titles() -> dict[str, str]:
    return {**{name: title for name, (title, _) in FORMATS.items()}, "example": _EXAMPLE}
