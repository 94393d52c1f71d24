"""`mcptest coverage`: which tools, prompts and resources of a live server a suite asserts on."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_server_options
from mcptest.commands.reporting import add_report_options
from mcptest.commands.server_options import add_fixture_option

KINDS = ("tools", "prompts", "resources", "templates")


_DESCRIPTION = """\
Which tools, prompts and resources of a live server a suite asserts on, and
which it leaves out. Only what a test asserts on counts: calls in setup steps
don't, and neither do tests that are skipped. The server is asked for its
lists; nothing is called.
"""
_EPILOG = """\
examples:
  mcptest coverage --suite evals --server "npx -y my-server"
  mcptest coverage evals --server http://127.0.0.1:3001/mcp --threshold 80
  mcptest coverage --suite evals --of tools --json -- python my_server.py

exit codes:
  0    counted, and enough
  1    below --threshold
  2    bad options or suite
  3    the server could not be reached or started
  4    the server offers nothing to cover

see also: mcptest generate, mcptest audit, docs/commands/coverage.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("paths", nargs="*", metavar="PATH", help="suites, as files or folders")
    add_fixture_option(add_server_options(parser).add_argument)
    add = parser.add_argument_group("what is tested").add_argument
    add("--suite", action="append", default=[], metavar="PATH", help="a suite; may repeat")
    add(
        "--of",
        default=",".join(KINDS),
        metavar="LIST",
        help=f"what counts: {','.join(KINDS)} (default: all)",
    )
    add = parser.add_argument_group("what is good enough").add_argument
    add("--threshold", type=float, metavar="N", help="fail below this share, in percent")
    add_report_options(parser)
    parser.add_argument("--coverage-json", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    add_common_options(parser)
    parser.set_defaults(command_name="coverage")
