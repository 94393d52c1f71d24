"""`mcptest init`: a first suite. With a server: one that calls it, and passes at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_server_options
from mcptest.commands.server_options import add_fixture_option

_DESCRIPTION = """\
Write a first suite. Without --server it is a small example, on the server
that ships with mcptest. With it each tool that says that it only reads is
called, and the tests expect what was seen, so that they pass at once; the
others are marked skip: true. The tests are then run twice to keep their
answers as golden files, for `mcptest snapshot`. Files that exist are never
touched.
"""
_EPILOG = """\
examples:
  mcptest init
  mcptest init evals --server "npx -y my-server"
  mcptest init evals --server "npx -y my-server {{fixture}}" --fixture ./data

exit codes:
  0    written
  1    something could not be written down
  2    bad options, or files in the way
  3    the server could not be reached or started
  4    the server offers nothing

see also: mcptest generate, mcptest run, docs/commands/init.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("evals"),
        metavar="DIR",
        help="where the suite is written (evals)",
    )
    add_fixture_option(add_server_options(parser).add_argument)
    add = parser.add_argument_group("what is tested").add_argument
    add("--include-writes", action="store_true", help="call tools that may write, too")
    add = parser.add_argument_group("files that are written").add_argument
    add(
        "--no-snapshots",
        dest="snapshots",
        action="store_false",
        help="no golden files: each tool is called only once",
    )
    add("--capture", type=Path, metavar="DIR", help="keep everything that went over the wire")
    add_common_options(parser)
