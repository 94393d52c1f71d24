"""`mcptest record`: keep everything that a server and a client say to each other."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    add_common_options,
    add_listening_options,
    add_renamed,
    add_server_options,
    as_path,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    add = parser.add_argument_group("selection").add_argument
    add(
        "--call",
        action="append",
        default=[],
        metavar="NAME[=JSON]",
        help="call this tool with these arguments (repeatable)",
    )
    add(
        "--read", action="append", default=[], metavar="URI", help="read this resource (repeatable)"
    )
    add = parser.add_argument_group("execution").add_argument
    add("--proxy", action="store_true", help="record between a client and the server")
    add_listening_options(parser)
    add = parser.add_argument_group("output files").add_argument
    add("--out", type=as_path, required=True, metavar="FILE", help="write the capture")
    add_renamed(
        add,
        "--format",
        "--form",
        choices=("full", "exchanges"),
        default="full",
        help="full: one JSON record per line; exchanges: the public form, requests with their "
        "responses (default: full)",
    )
    add_common_options(parser)
