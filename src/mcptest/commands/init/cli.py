"""`mcptest init`: a first suite. With a server: one that calls it, and passes at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import OptionGroup, add_common_options, add_server_options


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, is_argument=False)
    OptionGroup(parser, "selection").known("--allow-tool", "--allow-writes")
    OptionGroup(parser, "execution").known("--fixture", "--max-time")
    add = OptionGroup(parser, "output files")
    about = "folder to write the suite to (default: evals)"
    add("folder DIR", about, nargs="?", default=Path("evals"))
    about = "write no golden files, and call each tool only once"
    add("--no-snapshots", about, dest="snapshots", action="store_false")
    add.known("--save-capture")
    add_common_options(parser)
