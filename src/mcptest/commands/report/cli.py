"""`mcptest report`: stored runs and captures, looked at again; shards become one verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import (
    add_common_options,
    add_file_options,
    add_format_option,
    add_report_files,
)
from mcptest.commands.reporting import add_html_option


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="stored runs")
    add(
        "--capture",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="a capture, or a folder of them; may repeat",
    )
    add("--shards", type=int, metavar="N", help="there must be N files: a lost shard is no success")
    add = parser.add_argument_group("reports").add_argument
    add_html_option(add)
    add_report_files(add, ("junit", "markdown", "json_file", "badge"))
    add_file_options(add)
    add_format_option(add)
    add("--json", action="store_true", help="the merged run as JSON on stdout")
    add_common_options(parser)
