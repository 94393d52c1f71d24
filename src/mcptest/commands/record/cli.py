"""`mcptest record`: keep everything that a server and a client say to each other."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    OptionGroup,
    add_common_options,
    add_listening_options,
    add_server_options,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    add = OptionGroup(parser, "selection")
    add("--call NAME[=JSON]", "call this tool with these arguments (repeatable)")
    add("--read URI", "read this resource (repeatable)")
    add = OptionGroup(parser, "execution")
    add("--proxy", "record between a client and the server")
    add_listening_options(parser)
    add = OptionGroup(parser, "output files")
    add("--out FILE", "write the capture", required=True)
    about = "full: one JSON record per line; exchanges: the public form, requests with their "
    about += "responses (default: full)"
    add("--form", about, choices=("full", "exchanges"), default="full", was="--format")
    add_common_options(parser)
