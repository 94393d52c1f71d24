"""`mcptest init`: a first suite. With a server: one that calls it, and passes at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_max_time, add_server_options
from mcptest.commands.server_options import add_fixture_option


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("evals"),
        metavar="DIR",
        help="where the suite is written (evals)",
    )
    add_fixture_option(add_server_options(parser).add_argument)
    add_max_time(parser.add_argument_group("how it runs").add_argument)
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
