"""`mcptest intercept`: sit between an agent and a server, then check what the agent did."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.intercept_options import add_listening_options, passage_of
from mcptest.cli.options import add_clean_env_option, add_common_options, duration, server_words
from mcptest.cli.unwritten import add_strict_option, code_with_reports, say_unwritten
from mcptest.model.errors import McptestError
from mcptest.model.redaction import redaction

if TYPE_CHECKING:
    from mcptest.run.intercepting import Intercepted


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--trajectory",
        action="append",
        required=True,
        metavar="FILE",
        help="a suite with trajectories, or a folder of them; may repeat",
    )
    add("--capture", type=Path, metavar="FILE", help="keep everything that went over the wire")
    add("--no-invariants", action="store_true", help="check the trajectory only")
    add("--strict", action="store_true", help="a broken SHOULD counts as well")
    add("--json-file", type=Path, metavar="FILE", help="the report as JSON")
    add("--junit", type=Path, metavar="FILE", help="a JUnit report")
    add("--markdown", type=Path, metavar="FILE", help="a markdown report")
    add("--html", type=Path, metavar="FILE", help="one page; with --capture also of the wire")
    add_strict_option(add)
    add(
        "--timeout",
        default="0",
        metavar="T",
        help="end a session that lasts longer, which fails it (0: as long as it lasts)",
    )
    _add_server_options(parser)
    add_listening_options(parser)
    add_common_options(parser)


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    """Those of the other commands, without what only a client of ours would need."""
    group = parser.add_argument_group("the server")
    add = group.add_argument
    add(
        "--server",
        metavar="S",
        help="a command line, a URL, a name from a client configuration, or demo; "
        "or give the command after a bare --",
    )
    add("--transport", choices=("stdio", "http", "sse"), help="instead of the guess from --server")
    add("--header", action="append", default=[], metavar="K=V", help="may repeat")
    add("--headers", default="", metavar="K=V,K=V", help=argparse.SUPPRESS)
    add("--env", action="append", default=[], metavar="K=V", help="may repeat")
    add_clean_env_option(add)
    add("--cwd", metavar="DIR", help="where the server is started")
    add("--mcp-config", type=Path, metavar="FILE", help="client configuration with mcpServers")


def run(arguments: argparse.Namespace) -> int:
    from mcptest.run.intercepting import Interception, intercept, trajectories_in
    from mcptest.run.naming import target_of

    target = target_of(server_words(arguments))
    wanted = Interception(
        tests=trajectories_in(arguments.trajectory),
        passage=passage_of(arguments, _patience(arguments.timeout)),
        capture=arguments.capture,
        invariants=not arguments.no_invariants,
        strict=arguments.strict,
    )
    try:
        intercepted = intercept(target, wanted)
    except McptestError as error:
        raise error.masked(redaction.text) from None
    _tell(intercepted, arguments)
    unwritten = _write_files(intercepted, arguments)
    say_unwritten(unwritten)
    return code_with_reports(arguments, intercepted.code, unwritten)


def _patience(text: str) -> float | None:
    return None if text in {"0", "0s"} else duration(text, "--timeout")


def _tell(intercepted: Intercepted, arguments: argparse.Namespace) -> None:
    """On stderr: stdout belongs to the agent."""
    from mcptest.report.intercepted_text import intercepted_lines
    from mcptest.report.terminal import Style, columns, say

    if arguments.quiet and not intercepted.report.failed:
        return
    style = Style.of(sys.stderr, no_color=arguments.no_color)
    calls = () if arguments.quiet else intercepted.calls
    lines = intercepted_lines(
        calls, intercepted.report, style, verbose=arguments.verbose, width=columns()
    )
    for line in lines:
        say(sys.stderr, line + "\n")


def _write_files(intercepted: Intercepted, arguments: argparse.Namespace) -> list[str]:
    """A sentence for each that could not be written."""
    from mcptest.report.write import rendered, write_all

    report = intercepted.report
    return write_all(
        [
            (arguments.json_file, lambda: rendered("json", report)),
            (arguments.junit, lambda: rendered("junit", report)),
            (arguments.markdown, lambda: rendered("markdown", report)),
            (arguments.html, lambda: _as_html(intercepted, arguments.capture)),
        ]
    )


def _as_html(intercepted: Intercepted, capture: Path | None) -> bytes:
    from mcptest.report.html.making import page_of

    kept = [str(capture)] if capture is not None and capture.is_file() else []
    return page_of(intercepted.report, kept, name="mcptest intercept")
