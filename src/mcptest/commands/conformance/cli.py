"""`mcptest conformance`: the scenario suite, for clients and for servers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from mcptest.commands.options import (
    CAPABILITIES,
    add_common_options,
    add_environment_options,
    add_jobs,
    add_map,
    add_no_color,
    add_renamed,
    add_server_options,
    as_path,
)
from mcptest.commands.reporting import add_report_options

_FOR_CLIENTS = "warnings of the scenarios' own checks, as in the official suite"


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _configure_client(commands.add_parser("client", help="test a client"))
    _configure_server(commands.add_parser("server", help="test a server"))
    _configure_list(commands.add_parser("list", help="list the scenarios"))
    about = "print a starter program for a client library"
    _configure_driver(commands.add_parser("driver", help=about))
    about = "judge a saved capture of a client scenario"
    _configure_judge(commands.add_parser("judge", help=about))


def _configure_client(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("client").add_argument
    add("--command", required=True, metavar="CMD", help="command line that starts the client")
    add("--shell", action="store_true", help="run the command in a shell, as the official suite")
    add(
        "--transport",
        choices=("http", "stdio"),
        default="http",
        help="transport of the client (default: http)",
    )
    add_environment_options(add, "client")
    _add_revision(add, "the newest that the client speaks")
    _add_capabilities(add)
    _add_choice(parser, "core, auth, all and others; see `mcptest conformance list`", "core")
    add = parser.add_argument_group("execution").add_argument
    add("--timeout", default="30s", metavar="T", help="time limit for one scenario (default: 30s)")
    add_jobs(add, "clients", "one per core")
    _add_gates(parser, _FOR_CLIENTS)
    _add_reports(parser)
    add_common_options(parser)


def _configure_server(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser).add_argument("--url", metavar="URL", help=argparse.SUPPRESS)
    add = _add_choice(parser, "active, all, pending, draft", "active")
    add_map(add)
    add = parser.add_argument_group("execution").add_argument
    add_jobs(add, "scenarios over HTTP")
    _add_gates(parser, "no warning")
    add = parser.add_argument_group("pass/fail criteria").add_argument
    add("--strict-fixtures", action="store_true", help="fail if a fixture is missing")
    _add_reports(parser)
    add_common_options(parser)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("selection").add_argument
    add("--client", action="store_true", help="list only scenarios for clients")
    add("--server", action="store_true", help="list only scenarios for servers")
    _add_revision(add, "all")
    _add_listing(parser)


def _configure_driver(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("selection").add_argument
    add("driver", nargs="?", metavar="NAME", help="library to print a program for (default: list)")
    add("--list", action="store_true", help="list the libraries, and what to install")
    _add_listing(parser)


def _configure_judge(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("selection").add_argument
    add("--scenario", required=True, metavar="NAME", help="client scenario of the capture")
    add(
        "--capture",
        required=True,
        action="append",
        type=as_path,
        metavar="FILE",
        help="capture to judge; several if the host restarted its server (repeatable)",
    )
    _add_revision(add, "the one in the capture")
    _add_capabilities(add)
    _add_gates(parser, _FOR_CLIENTS, knows_failures=False)
    _add_reports(parser)
    add_common_options(parser)


def _add_capabilities(add: Callable[..., Any]) -> None:
    add(
        "--capabilities",
        choices=CAPABILITIES,
        default="probe",
        help="optional capabilities: declared ones are well-formed (permissive), all are declared "
        "(strict), or exactly the declared ones work (default: probe)",
    )
    add("--claims", default="", metavar="A,B", help="capabilities the client supports, for probe")


def _add_revision(add: Callable[..., Any], default: str) -> None:
    add(
        "--spec-version",
        default="auto",
        metavar="REV",
        help=f"protocol revision (default: {default})",
    )


def _add_listing(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("reports").add_argument
    add("--json", action="store_true", help="print JSON only")
    add = parser.add_argument_group("messages").add_argument
    add_no_color(add)
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def _add_choice(parser: argparse.ArgumentParser, suites: str, default: str) -> Callable[..., Any]:
    add = parser.add_argument_group("selection").add_argument
    add("--suite", default="", metavar="NAME", help=f"suite to run: {suites} (default: {default})")
    add(
        "--scenario",
        action="append",
        default=[],
        metavar="NAME",
        help="run only this scenario (repeatable)",
    )
    add("--requirements", metavar="REV", help="run what conformance to this revision requires")
    add("--list", action="store_true", help="list what would run, and run nothing")
    return add


def _add_gates(
    parser: argparse.ArgumentParser, default: str, *, knows_failures: bool = True
) -> None:
    add = parser.add_argument_group("pass/fail criteria").add_argument
    about = f"fail on warnings (default: {default})"
    add("--fail-on-warning", action="store_true", default=None, dest="warnings", help=about)
    add(
        "--no-fail-on-warning",
        action="store_false",
        dest="warnings",
        help="do not fail on warnings",
    )
    if knows_failures:
        add("--expected-failures", type=as_path, metavar="FILE", help="known failures (YAML)")


def _add_reports(parser: argparse.ArgumentParser) -> None:
    add_report_options(parser, keeps_captures=False)
    add = parser.add_argument_group("output files").add_argument
    add_renamed(
        add,
        "--output-dir",
        *("-o", "--output"),
        type=as_path,
        metavar="DIR",
        help="write a folder for each scenario with checks.json, output and capture",
    )
