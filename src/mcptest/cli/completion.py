"""`mcptest completion SHELL`: a script that lets a shell complete our command lines.

The script knows nothing by itself. It calls `mcptest completion SHELL --words -- WORDS`, which
answers from what argparse knows, so it never grows old.
"""

from __future__ import annotations

import argparse
import sys

from mcptest.model.errors import ExitCode

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")
    parser.add_argument("--words", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    if not arguments.words:
        from mcptest.cli.completion_scripts import SCRIPTS

        sys.stdout.write(SCRIPTS[arguments.shell])
        return ExitCode.OK
    from mcptest.cli.completing import complete
    from mcptest.cli.completion_memory import known_shape

    words = arguments.server_command or [""]
    for line in complete(known_shape(), words, arguments.shell):
        sys.stdout.write(f"{line}\n")
    return ExitCode.OK
