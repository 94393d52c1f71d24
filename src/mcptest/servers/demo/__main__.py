"""`python -m mcptest.servers.demo`: the demo server, started as fast as Python starts."""

from __future__ import annotations

import os
import signal
import sys

from mcptest.servers.demo.start_options import BadOption, Options, parse_options

TYPE_CHECKING = False  # see jsonrpc
if TYPE_CHECKING:
    from mcptest.servers.demo.offers import Content


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT):  # as the loop does later on, without a traceback
        signal.signal(number, lambda received, frame: os._exit(0))
    try:
        options = parse_options(sys.argv[1:])
    except BadOption as problem:
        sys.stderr.write(f"demo: {problem}\n")
        return 2
    return run(options)


def run(options: Options, content: Content | None = None) -> int:
    """Be the server until there is no more to serve: the demo, or one with other content."""
    if options.transport == "http":
        from mcptest.servers.demo.http_server import run_http

        return run_http(options, content)
    from mcptest.servers.demo.stdio_server import run_stdio

    run_stdio(options, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
