"""`mcptest mcp`: mcptest itself as an MCP server, for agents."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from mcptest.model.errors import UsageError

TOKEN_VARIABLE = "MCPTEST_MCP_TOKEN"
LEAST_TOKEN = 16
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="the folder that may be read (the current one); may repeat",
    )
    parser.add_argument(
        "--allow-run", action="store_true", help="start servers, those of --allow-server only"
    )
    parser.add_argument(
        "--allow-server",
        action="append",
        default=[],
        metavar="S",
        help="a name from a client configuration, a command, a URL, or demo; may repeat",
    )
    parser.add_argument(
        "--mcp-config", type=Path, metavar="FILE", help="client configuration with mcpServers"
    )
    parser.add_argument("--allow-write", action="store_true", help="write suites below --root")
    parser.add_argument(
        "--http", metavar="PORT", help="listen on this port of 127.0.0.1 instead of stdio; 0: any"
    )
    parser.add_argument("--port-file", metavar="FILE", help="write the port into FILE")
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    from mcptest.agents.allowed import allowed_of
    from mcptest.agents.content import AgentContent, options_for
    from mcptest.peer.demo.__main__ import run as serve
    from mcptest.peer.demo.options import BadOption, set_option

    allowed = allowed_of(
        arguments.root,
        run=arguments.allow_run,
        servers=arguments.allow_server,
        config=arguments.mcp_config,
        write=arguments.allow_write,
    )
    options = options_for(allowed)
    try:
        if arguments.http is not None:
            set_option(options, "transport", "http")
            set_option(options, "port", arguments.http)
            options.port_file = arguments.port_file
            options.secret, options.shown_secret = _secret()
    except BadOption as problem:
        said = str(problem).replace("--port", "--http")
        raise UsageError(said, hint="see mcptest mcp --help") from None
    return serve(options, AgentContent(allowed))


def _secret() -> tuple[str, str]:
    """Who may connect to the port is not yet who may ask for something.

    The secret, and what is said of it on stderr: one that was given is known, and not repeated. It
    is part of the URL because a client can be told a URL; a 401 would promise OAuth.
    """
    given = os.environ.get(TOKEN_VARIABLE, "")
    if given:
        if len(given) < LEAST_TOKEN or not _TOKEN.fullmatch(given):
            raise UsageError(
                f"{TOKEN_VARIABLE} must have at least {LEAST_TOKEN} characters out of "
                "letters, digits, - and _"
            )
        return given, "***"
    import secrets

    made = secrets.token_urlsafe(24)
    return made, made
