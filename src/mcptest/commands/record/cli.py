"""`mcptest record`: keep everything that a server and a client say to each other."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_listening_options, add_server_options

_DESCRIPTION = """\
Record a session as a capture, which can be judged, replayed and looked at
later without the server. Without --proxy the server is asked for everything
that is safe: its lists with all pages, a ping, one tool that says it only
reads, a few resources, a prompt.

With --proxy nothing is asked: the bytes of whoever started us go through
unchanged, both ways. Give it to a client as the command of its server. For a
server with a URL the proxy listens on this machine until Ctrl-C, and says
where.
"""
_EPILOG = """\
examples:
  mcptest record --server demo --out session.jsonl
  mcptest record --out s.jsonl --call 'add={"a":1,"b":2}' -- python my_server.py
  mcptest record --proxy --out seen.jsonl -- npx my-server /data
  mcptest record --proxy --out seen.jsonl --server http://127.0.0.1:3001/mcp \\
      --listen 127.0.0.1:8080

exit codes:
  0    recorded; with --proxy that of the server
  1    the capture is not whole, or could not be written
  2    bad options
  3    the server could not be reached or started
  130  interrupted

see also: mcptest compliance invariants, mcptest report, mcptest intercept,
          docs/capture-format.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
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
