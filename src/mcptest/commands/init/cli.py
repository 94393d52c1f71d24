"""`mcptest init`: a first suite. With a server: one that calls it, and passes at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import (
    add_allow_writes,
    add_common_options,
    add_fixture_option,
    add_max_time,
    add_save_capture,
    add_server_options,
    as_path,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, is_argument=False)
    add_allow_writes(parser.add_argument_group("selection").add_argument)
    add = parser.add_argument_group("execution").add_argument
    add_fixture_option(add)
    add_max_time(add)
    add = parser.add_argument_group("output files").add_argument
    add(
        "folder",
        nargs="?",
        type=as_path,
        default=Path("evals"),
        metavar="DIR",
        help="folder to write the suite to (default: evals)",
    )
    add(
        "--no-snapshots",
        dest="snapshots",
        action="store_false",
        help="write no golden files, and call each tool only once",
    )
    add_save_capture(add)
    add_common_options(parser)
