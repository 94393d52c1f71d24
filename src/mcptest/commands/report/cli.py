"""`mcptest report`: stored runs and captures, looked at again; shards become one verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_file_options, add_report_files
from mcptest.commands.reporting import add_html_option

REPORT_FORMS = ("junit", "markdown", "json_file", "badge")


_DESCRIPTION = """\
Render stored runs and captures again, as HTML or in any other form. Nothing
is run and no server is contacted. FILE is what --json-file wrote. Several
files are shards of one run: they are merged, and there is one verdict.

A capture is shown as a sequence diagram, and the session rules are judged on
it, so that each finding is pinned to its message. Beside stored runs these
findings only explain; when captures are all there is, they are the verdict,
as in `mcptest compliance invariants`.
"""
_EPILOG = """\
examples:
  mcptest report run.json --html report.html
  mcptest report shard-1.json shard-2.json --shards 2 --junit results.xml
  mcptest report run.json --capture captures/ --html report.html
  mcptest report --capture session.jsonl --html session.html

exit codes:
  0    what was stored had passed
  1    something failed, or a report could not be written
  2    a file can't be read
  3    a peer was unreachable
  4    nothing was run
  130  a run was interrupted

see also: mcptest run, mcptest ci, docs/commands/report.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
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
    add_report_files(add, REPORT_FORMS)
    add_file_options(add)
    add("--json", action="store_true", help="the merged run as JSON on stdout")
    add_common_options(parser)
