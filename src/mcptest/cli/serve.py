"""`mcptest serve`: be a server. For now that is the demo, on stdio or over HTTP."""

from __future__ import annotations

import argparse

from mcptest.model.errors import UsageError
from mcptest.peer.demo.options import TABLE, BadOption, Options, check_options, set_option


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["demo"], help="the server to be")
    for name, (_, metavar, words) in TABLE.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=words)
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    from mcptest.peer.demo.__main__ import run as run_demo

    return run_demo(_options(arguments))


def _options(arguments: argparse.Namespace) -> Options:
    options = Options()
    try:
        for name in TABLE:
            value = getattr(arguments, name.replace("-", "_"))
            if value is not None:
                set_option(options, name, value)
        return check_options(options)
    except BadOption as problem:
        raise UsageError(str(problem), hint="see mcptest serve --help") from None
