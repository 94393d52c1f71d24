"""`mcptest report`: stored runs and captures, looked at again; shards become one verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import (
    add_common_options,
    add_file_options,
    add_format_option,
    add_json,
    add_report_files,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("selection").add_argument
    add("files", nargs="*", metavar="FILE", help="JSON reports, as --json-file writes them")
    add(
        "--capture",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="capture, or a folder of them (repeatable)",
    )
    add("--shards", type=int, metavar="N", help="fail unless there are N files")
    add = parser.add_argument_group("reports").add_argument
    add_report_files(add, ("html", "json_file", "junit", "markdown", "badge"))
    add_file_options(add)
    add_format_option(add)
    add_json(add)
    add_common_options(parser)
