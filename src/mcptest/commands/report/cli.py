"""`mcptest report`: stored runs and captures, looked at again; shards become one verdict."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    FORMS,
    OptionGroup,
    add_common_options,
    add_format_option,
    as_path,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "selection")
    add("files FILE", "JSON reports, as --json-file writes them", nargs="*", type=str)
    add("--capture PATH", "capture, or a folder of them (repeatable)", type=as_path)
    add("--shards N", "fail unless there are N files", type=int)
    add = OptionGroup(parser, "reports")
    add.known("--html", "--json-file", "--junit", "--markdown", "--badge", *FORMS)
    add_format_option(add)
    add.known("--json")
    add_common_options(parser)
