"""`mcptest record`: keep everything that a server and a client say to each other."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_listening_options, add_server_options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--proxy", action="store_true", help="sit between a client and the server")
    add_listening_options(parser)
    add_server_options(parser)
    add = parser.add_argument_group("what is asked, without --proxy").add_argument
    add(
        "--call",
        action="append",
        default=[],
        metavar="NAME[=JSON]",
        help="call this tool with these arguments; may repeat",
    )
    add("--read", action="append", default=[], metavar="URI", help="read this resource; may repeat")
    add = parser.add_argument_group("files that are written").add_argument
    add("--out", type=Path, required=True, metavar="FILE", help="the capture")
    add(
        "--format",
        choices=("full", "exchanges"),
        default="full",
        help="full (default): all that happened, one JSON record a line; "
        "exchanges: the public form, requests with their responses",
    )
    add_common_options(parser)
