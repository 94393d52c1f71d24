"""`mcptest schema NAME`: the JSON Schema of one of our file formats."""

from __future__ import annotations

import argparse
import json
import sys

from mcptest.model.errors import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    from mcptest.report.schemas import NAMES

    parser.add_argument("name", choices=NAMES, help="which file format")
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    from mcptest.report.schemas import schema_of

    sys.stdout.write(json.dumps(schema_of(arguments.name), indent=2) + "\n")
    return ExitCode.OK
