"""`mcptest mcp`: mcptest itself as an MCP server, for agents."""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
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
