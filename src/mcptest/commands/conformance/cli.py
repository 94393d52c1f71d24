"""`mcptest conformance`: the scenario suite, for clients and for servers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcptest.commands.options import (
    CAPABILITIES,
    add_clean_env_option,
    add_common_options,
    add_file_options,
    add_format_option,
    add_server_options,
    add_strict_option,
)
from mcptest.commands.reporting import add_html_option

_FOR_CLIENTS = "default: of the scenarios' own checks alone, as in the official suite"


_DESCRIPTION = """\
Put a client or a server through the scenarios of the official suite, judged
by its checks; for the rules of the specification there is mcptest compliance.
A client meets a scripted server, a server is asked what an SDK's test server
is expected to do.
"""
_EPILOG = """\
examples:
  mcptest conformance driver python-sdk > client.py
  mcptest conformance client --command "python client.py"
  mcptest conformance server --server http://127.0.0.1:3001/mcp
  mcptest conformance list --client

mcptest conformance ACTION --help tells more of each

exit codes:
  0    passed
  1    a check failed
  2    bad options
  3    unreachable
  4    nothing judged

see also: mcptest compliance, mcptest serve, docs/commands/conformance.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _configure_client(commands.add_parser("client", help="test a client: we are the server"))
    _configure_server(commands.add_parser("server", help="the scenario suite for servers"))
    _configure_list(commands.add_parser("list", help="every scenario, and what is not offered"))
    _configure_driver(
        commands.add_parser("driver", help="a program to begin with, for your client library")
    )
    _configure_judge(
        commands.add_parser("judge", help="judge a kept capture of a client scenario again")
    )


_CLIENT_DESCRIPTION = """\
Test a client: we are the server. For each scenario a scripted server is
started and then the client, with the server's URL as its last argument. What
the client sent is judged afterwards.

The client learns from its environment what is expected of it, as with the
official suite: MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION
and, where there is more to say, MCP_CONFORMANCE_CONTEXT (JSON). With
--transport stdio it gets a command to launch instead of a URL: as its last
arguments, and as a JSON array in MCP_CONFORMANCE_SERVER_COMMAND.

`mcptest conformance driver` prints such a program for your client library.
"""
_CLIENT_EPILOG = """\
examples:
  mcptest conformance client --command "python my_client.py"
  mcptest conformance client --command "node client.js" --suite auth --jobs 4
  mcptest conformance client --command ./client --scenario tools_call --verbose
  mcptest conformance client --command ./client --requirements 2026-07-28 \\
      --expected-failures conformance-baseline.yml
  mcptest conformance client --command ./client --transport stdio --suite core

exit codes:
  0    passed
  1    a check failed, or the expected failures do not hold
  2    bad options or files
  3    the client could not be started
  4    nothing was judged
  130  interrupted

see also: mcptest conformance driver, mcptest conformance judge,
          mcptest conformance list, docs/commands/conformance.md
"""


def _configure_client(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _CLIENT_DESCRIPTION, _CLIENT_EPILOG
    _add_choice(parser, "core (default), auth, all, ...: see list")
    add = parser.add_argument_group("the client").add_argument
    add("--command", required=True, metavar="CMD", help="the client's command line")
    add("--shell", action="store_true", help="let a shell read it, as the official suite does")
    add("--transport", choices=("http", "stdio"), default="http", help="how it talks (http)")
    add(
        "--capabilities",
        choices=CAPABILITIES,
        default="probe",
        help="optional capabilities: whatever is declared is well-formed (permissive), all are "
        "declared (strict), or what is declared works and nothing else does (probe, the default)",
    )
    add("--claims", default="", metavar="A,B", help="what the client is said to support, for probe")
    add("--env", action="append", default=[], metavar="K=V", help="for the client; may repeat")
    add_clean_env_option(add, "the client")
    add("--cwd", metavar="DIR", help="where the client is started")
    add(
        "--spec-version",
        default="auto",
        metavar="REV",
        help="auto: the newest that the client speaks",
    )
    add = parser.add_argument_group("how it runs").add_argument
    add("--timeout", default="30s", metavar="T", help="for each scenario (30s)")
    add("--jobs", default="auto", metavar="N", help="clients at a time (auto: one per core)")
    add = _add_gates(parser, _FOR_CLIENTS)
    _add_expected_failures(add)
    _add_reports(parser)
    add_common_options(parser)


_SERVER_DESCRIPTION = """\
The scenario suite for servers: what an SDK's test server is expected to do.
What the server does not declare or have is untestable, with what would unlock
it, and no failure. A server that has its own tools in place of the official
fixtures names them with --fixture.
"""
_SERVER_EPILOG = """\
examples:
  mcptest conformance server --server http://127.0.0.1:3001/mcp
  mcptest conformance server --server "node server.js" --spec-version 2026-07-28
  mcptest conformance server --server demo --requirements 2025-11-25
  mcptest conformance server --server ./server --fixture test_simple_text=hello

exit codes:
  0    passed
  1    a check failed, or the expected failures do not hold
  2    bad options or files
  3    the server could not be reached or started
  4    nothing was judged
  130  interrupted

see also: mcptest conformance list, mcptest compliance run,
          docs/commands/conformance.md
"""


def _configure_server(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _SERVER_DESCRIPTION, _SERVER_EPILOG
    add_server_options(parser).add_argument("--url", metavar="URL", help="the same as --server URL")
    _add_choice(parser, "active (default), all, pending, draft")
    add = parser.add_argument_group("how it runs").add_argument
    add(
        "--fixture",
        action="append",
        default=[],
        metavar="NAME=YOURS",
        dest="fixtures",
        help="your tool, prompt or resource that stands for an official fixture; may repeat",
    )
    add("--strict-fixtures", action="store_true", help="what is missing is a failure")
    add("--jobs", default="auto", metavar="N", help="scenarios at a time over HTTP")
    add = _add_gates(parser, "default: it does not")
    _add_expected_failures(add)
    _add_reports(parser)
    add_common_options(parser)


_LIST_DESCRIPTION = """\
List every scenario with the revisions and transports it is for, and those of
the official suite that are not offered, with the reason.
"""
_LIST_EPILOG = """\
examples:
  mcptest conformance list
  mcptest conformance list --server --spec-version 2026-07-28 --json

exit codes:
  0    listed
  2    bad options

see also: mcptest conformance client, mcptest conformance server,
          docs/commands/conformance.md
"""


def _configure_list(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _LIST_DESCRIPTION, _LIST_EPILOG
    add = parser.add_argument
    add("--client", action="store_true", help="only those for clients")
    add("--server", action="store_true", help="only those for servers")
    add("--spec-version", default="auto", metavar="REV", help="only those of this revision")
    add("--json", action="store_true", help="as JSON")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


_DRIVER_DESCRIPTION = """\
Print a program that takes part in every scenario for clients: it connects
over HTTP or stdio, lists the tools and makes the calls that the scenario's
context asks for. There is one for each SDK and framework in the list; change
it as you like. The scenarios about authorization need more.
"""
_DRIVER_EPILOG = """\
examples:
  mcptest conformance driver --list
  mcptest conformance driver python-sdk > client.py
  mcptest conformance driver typescript-sdk > client.mjs

exit codes:
  0    printed
  2    there is no such driver

see also: mcptest conformance client, mcptest conformance list,
          docs/conformance/drivers.md
"""


def _configure_driver(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DRIVER_DESCRIPTION, _DRIVER_EPILOG
    add = parser.add_argument
    add("driver", nargs="?", metavar="NAME", help="print the program for this library")
    add(
        "--list", action="store_true", help="the libraries, and what to install (also without NAME)"
    )
    add("--json", action="store_true", help="as JSON")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


_JUDGE_DESCRIPTION = """\
Judge a kept capture of a client scenario again, by the checks and rules of
this version. No client is started.
"""
_JUDGE_EPILOG = """\
examples:
  mcptest conformance judge --scenario tools_call --capture tools_call.jsonl
  mcptest conformance judge --scenario tools_call --capture kept.jsonl --json

exit codes:
  0    passed
  1    a check failed
  2    bad options, or a file that can't be read
  4    nothing was judged

see also: mcptest conformance client, docs/commands/conformance.md
"""


def _configure_judge(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _JUDGE_DESCRIPTION, _JUDGE_EPILOG
    add = parser.add_argument_group("what is judged").add_argument
    add("--scenario", required=True, metavar="NAME", help="the client scenario it was made in")
    add(
        "--capture",
        required=True,
        action="append",
        type=Path,
        metavar="FILE",
        help="what was kept of it; may repeat, for a host that restarts its server",
    )
    add("--spec-version", default="auto", metavar="REV", help="instead of what the capture says")
    add(
        "--capabilities",
        choices=CAPABILITIES,
        default="probe",
        help="as for conformance client (probe)",
    )
    add("--claims", default="", metavar="A,B", help="what the client is said to support")
    _add_gates(parser, _FOR_CLIENTS)
    _add_reports(parser)
    add_common_options(parser)


def _add_choice(parser: argparse.ArgumentParser, suites: str) -> None:
    add = parser.add_argument_group("what is tested").add_argument
    add("--suite", default="", metavar="NAME", help=suites)
    add("--scenario", action="append", default=[], metavar="NAME", help="only this; may repeat")
    add("--requirements", metavar="REV", help="what conformance to this revision asks for")
    add("--list", action="store_true", help="say what would run")


def _add_gates(parser: argparse.ArgumentParser, default: str) -> Callable[..., Any]:
    add = parser.add_argument_group("what is good enough").add_argument
    about = f"what is only recommended counts ({default})"
    add("--fail-on-warning", action="store_true", default=None, dest="warnings", help=about)
    add("--no-fail-on-warning", action="store_false", dest="warnings", help="or does not")
    return add


def _add_expected_failures(add: Callable[..., Any]) -> None:
    add("--expected-failures", type=Path, metavar="FILE", help="what is known to fail (YAML)")


def _add_reports(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("reports").add_argument
    add("--json", action="store_true", help="the report as JSON, and nothing else, on stdout")
    add("--json-file", type=Path, metavar="FILE", help="the JSON report as well")
    add("--junit", type=Path, metavar="FILE", help="a JUnit report as well")
    add("--markdown", type=Path, metavar="FILE", help="a Markdown report as well")
    add_html_option(add)
    add_file_options(add)
    add_format_option(add)
    add_strict_option(add)
    add(
        *("-o", "--output-dir"),
        type=Path,
        metavar="DIR",
        help="a folder for each scenario with checks.json, output and capture",
    )
