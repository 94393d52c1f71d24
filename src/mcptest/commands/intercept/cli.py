"""`mcptest intercept`: sit between an agent and a server, then check what the agent did."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import (
    add_common_options,
    add_listening_options,
    add_server_group,
    add_strict_option,
)

_DESCRIPTION = """\
Sit between an agent and a server, then check what the agent did. Give it to
the agent as the command of the server: everything goes through unchanged,
both ways, with nothing of ours on stdout. When the session is over the tool
calls are held against the trajectory, and the session against the rules that
hold for every session.
"""
_EPILOG = """\
examples:
  mcptest intercept --trajectory calls.yaml --server "npx my-server /data"
  mcptest intercept --trajectory calls.yaml --junit c.xml -- python server.py
  mcptest intercept --trajectory calls.yaml --server http://127.0.0.1:3001/mcp \\
      --listen 127.0.0.1:8080

exit codes:
  0    all held, and the server ended well or the proxy for a URL was stopped
  1    a check failed; other codes are the server's own, 128 + n if signal n
       ended it
  2    bad options
  3    the server would not start
  4    nothing was said

see also: mcptest record, mcptest run, docs/commands/intercept.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument(
        "--trajectory",
        action="append",
        required=True,
        metavar="FILE",
        help="a suite with trajectories, or a folder of them; may repeat",
    )
    add_server_group(parser).add_argument(
        "--timeout",
        default="0",
        metavar="T",
        help="end a session that lasts longer, which fails it (0: as long as it lasts)",
    )
    add_listening_options(parser)
    add = parser.add_argument_group("what is good enough").add_argument
    add("--no-invariants", action="store_true", help="check the trajectory only")
    add("--strict", action="store_true", help="a broken SHOULD counts as well")
    add = parser.add_argument_group("reports").add_argument
    add("--json-file", type=Path, metavar="FILE", help="the report as JSON")
    add("--junit", type=Path, metavar="FILE", help="a JUnit report")
    add("--markdown", type=Path, metavar="FILE", help="a Markdown report")
    add("--html", type=Path, metavar="FILE", help="one page; with --capture also of the wire")
    add_strict_option(add)
    add("--capture", type=Path, metavar="FILE", help="keep everything that went over the wire")
    add_common_options(parser)
