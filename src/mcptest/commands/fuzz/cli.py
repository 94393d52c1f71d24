"""`mcptest fuzz`: almost valid inputs for each tool, and what becomes of the server."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_max_time, add_server_options
from mcptest.commands.reporting import add_report_options
from mcptest.commands.server_options import add_fixture_option

TIMEOUT = "15s"


_DESCRIPTION = """\
Send each tool inputs that are almost valid: wrong types, missing and unknown
members, extreme values, strings made to break things. What crashes, hangs,
leaks or answers nonsense is made small and told with the command that repeats
it; --output saves it as a test.

The same seed gives the same inputs. Tools that do not say that they only read
are skipped and listed; --include-writes fuzzes them too, and so does --docker
IMAGE.

The Markdown report is appended to $GITHUB_STEP_SUMMARY where that is set, as
`mcptest ci` does.
"""
_EPILOG = """\
examples:
  mcptest fuzz --server "npx -y my-server"
  mcptest fuzz --server "npx -y my-server" --runs 500 --seed 42 --tool search
  mcptest fuzz --fixture ./data --output fuzz -- node server.js {{fixture}}

exit codes:
  0    every input was taken well
  1    a crash, a hang, a leak, or no answer
  2    bad options
  3    the server could not be reached or started
  4    there was nothing to fuzz
  130  interrupted

see also: mcptest property, mcptest audit, docs/commands/fuzz.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    add_server_options(parser, timeout=TIMEOUT)
    add = parser.add_argument_group("what is tested").add_argument
    add("--tool", action="append", default=[], metavar="NAME", help="only this tool; may repeat")
    add("--input", metavar="JSON", help="only this input, for the one --tool that is named")
    add("--include-writes", action="store_true", help="fuzz tools that may write, too")
    add = parser.add_argument_group("how it runs").add_argument
    add("--runs", type=int, default=50, metavar="N", help="inputs for each tool (50)")
    add("--seed", type=int, metavar="N", help="the same seed gives the same inputs (random)")
    add("--jobs", default="auto", metavar="N", help="servers at a time (auto: as many as pay off)")
    add("--docker", default="", metavar="IMAGE", help="run the server in a container of this image")
    add_fixture_option(add)
    add_max_time(add)
    add = parser.add_argument_group("files that are written").add_argument
    add("--output", type=Path, metavar="DIR", help="save each failure as a test")
    add("--overwrite", action="store_true", help="replace saved failures that exist")
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="fuzz")
