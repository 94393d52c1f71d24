"""`mcptest mcp`: mcptest itself as an MCP server, for agents."""

from __future__ import annotations

import argparse

from mcptest.commands.options import HIDDEN, OptionGroup


def configure(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "permissions")
    about = "folder that agents may read (default: the current one) (repeatable)"
    add("--root DIR", about, type=str)
    add("--allow-run", "start servers named by --allow-server")
    about = "name from a client configuration, command, URL, or demo (repeatable)"
    add("--allow-server S", about)
    add("--mcp-config FILE", "client configuration with mcpServers (default: .mcp.json)")
    add("--allow-write", "write suites below --root")
    add = OptionGroup(parser, "HTTP")
    add("--http PORT", "listen on this port of 127.0.0.1; 0 picks a free one")
    add("--port-file FILE", "write the port to this file", type=str)
    OptionGroup(parser)("--debug", HIDDEN)
