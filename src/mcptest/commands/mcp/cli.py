"""`mcptest mcp`: mcptest itself as an MCP server, for agents."""

from __future__ import annotations

import argparse
from pathlib import Path

_DESCRIPTION = """\
mcptest itself as an MCP server, for agents. Without options nothing is
started and nothing is written: the tools read and judge what lies below
--root. Tools that are not allowed are not listed. Over HTTP it listens on
127.0.0.1, at a URL that holds a secret: the token in MCPTEST_MCP_TOKEN, or a
new one, which is told on stderr.
"""
_EPILOG = """\
examples:
  mcptest mcp
  mcptest mcp --root ./evals --allow-run --allow-server "python my_server.py"
  mcptest mcp --mcp-config .mcp.json --allow-run --allow-server filesystem
  mcptest mcp --http 8765

exit codes:
  0    the client has gone
  2    bad options, or the port is taken

see also: mcptest serve, docs/commands/mcp.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    add = parser.add_argument_group("what agents may do").add_argument
    add(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="the folder that may be read (the current one); may repeat",
    )
    add("--allow-run", action="store_true", help="start servers, those of --allow-server only")
    add(
        "--allow-server",
        action="append",
        default=[],
        metavar="S",
        help="a name from a client configuration, a command, a URL, or demo; may repeat",
    )
    add("--mcp-config", type=Path, metavar="FILE", help="client configuration with mcpServers")
    add("--allow-write", action="store_true", help="write suites below --root")
    add = parser.add_argument_group("over HTTP").add_argument
    add("--http", metavar="PORT", help="listen on this port of 127.0.0.1 instead of stdio; 0: any")
    add("--port-file", metavar="FILE", help="write the port into FILE")
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
