"""`mcptest mcp`: mcptest itself as an MCP server, for agents."""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("permissions").add_argument
    add(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="folder that agents may read (default: the current one) (repeatable)",
    )
    add("--allow-run", action="store_true", help="start servers named by --allow-server")
    add(
        "--allow-server",
        action="append",
        default=[],
        metavar="S",
        help="name from a client configuration, command, URL, or demo (repeatable)",
    )
    add(
        "--mcp-config",
        type=Path,
        metavar="FILE",
        help="client configuration with mcpServers (default: .mcp.json)",
    )
    add("--allow-write", action="store_true", help="write suites below --root")
    add = parser.add_argument_group("HTTP").add_argument
    add("--http", metavar="PORT", help="listen on this port of 127.0.0.1; 0 picks a free one")
    add("--port-file", metavar="FILE", help="write the port to this file")
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
