"""`python -m mcptest.peer.demo`: the demo server, started as fast as Python starts."""

from __future__ import annotations

import sys

from mcptest.peer.demo.options import BadOption, Options, parse_options


def main() -> int:
    try:
        options = parse_options(sys.argv[1:])
    except BadOption as problem:
        sys.stderr.write(f"demo: {problem}\n")
        return 2
    return run(options)


def run(options: Options) -> int:
    """Be the server until there is no more to serve."""
    if options.transport == "http":
        from mcptest.peer.demo.http_server import run_http

        return run_http(options)
    from mcptest.peer.demo.stdio import run_stdio

    run_stdio(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
