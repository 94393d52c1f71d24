"""`mcptest conformance`: the scenario suite, for clients and for servers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mcptest.cli.options import (
    add_clean_env_option,
    add_common_options,
    add_file_options,
    add_format_option,
    add_server_options,
)
from mcptest.cli.report_forms import add_html_option
from mcptest.cli.unwritten import add_strict_option

_FOR_CLIENTS = "default: of the scenarios' own checks alone, as in the official suite"


def configure(parser: argparse.ArgumentParser) -> None:
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


def _configure_client(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--command", required=True, metavar="CMD", help="the client's command line")
    add("--shell", action="store_true", help="let a shell read it, as the official suite does")
    add("--suite", default="", metavar="NAME", help="core (default), auth, all, ...: see list")
    add("--transport", choices=("http", "stdio"), default="http")
    add(
        "--capabilities",
        choices=("permissive", "strict", "probe"),
        default="probe",
        help="optional capabilities: whatever is declared is well-formed (permissive), all are "
        "declared (strict), or what is declared works and nothing else does (probe, the default)",
    )
    add("--claims", default="", metavar="A,B", help="what the client is said to support, for probe")
    add("--timeout", default="30s", metavar="T", help="for each scenario (30s)")
    add("--jobs", default="auto", metavar="N", help="clients at a time (auto: one per core)")
    add("--env", action="append", default=[], metavar="K=V", help="for the client; may repeat")
    add_clean_env_option(add, "the client")
    add("--cwd", metavar="DIR", help="where the client is started")
    add(
        "--spec-version",
        default="auto",
        metavar="REV",
        help="auto: the newest that the client speaks",
    )
    _add_choice(parser)
    _add_warnings(parser, _FOR_CLIENTS)
    _add_reports(parser)
    add_common_options(parser)


def _configure_server(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--suite", default="", metavar="NAME", help="active (default), all, pending, draft")
    add("--url", metavar="URL", help="the same as --server URL")
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
    _add_choice(parser)
    _add_warnings(parser, "default: it does not")
    _add_reports(parser)
    add_server_options(parser)
    add_common_options(parser)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--client", action="store_true", help="only those for clients")
    add("--server", action="store_true", help="only those for servers")
    add("--spec-version", default="auto", metavar="REV", help="only those of this revision")
    add("--json", action="store_true", help="as JSON")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def _configure_driver(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("driver", nargs="?", metavar="NAME", help="print the program for this library")
    add(
        "--list", action="store_true", help="the libraries, and what to install (also without NAME)"
    )
    add("--json", action="store_true", help="as JSON")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def _configure_judge(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
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
    add("--capabilities", choices=("permissive", "strict", "probe"), default="probe")
    add("--claims", default="", metavar="A,B", help="what the client is said to support")
    _add_warnings(parser, _FOR_CLIENTS)
    _add_reports(parser)
    add_common_options(parser)


def _add_warnings(parser: argparse.ArgumentParser, default: str) -> None:
    add = parser.add_argument
    about = f"what is only recommended counts ({default})"
    add("--fail-on-warning", action="store_true", default=None, dest="warnings", help=about)
    add("--no-fail-on-warning", action="store_false", dest="warnings", help="or does not")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--scenario", action="append", default=[], metavar="NAME", help="only this; may repeat")
    add("--requirements", metavar="REV", help="what conformance to this revision asks for")
    add("--expected-failures", type=Path, metavar="FILE", help="what is known to fail (YAML)")
    add("--list", action="store_true", help="say what would run")


def _add_reports(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        *("-o", "--output-dir"),
        type=Path,
        metavar="DIR",
        help="a folder for each scenario with checks.json, output and capture",
    )
    add("--json", action="store_true", help="the report as JSON, and nothing else, on stdout")
    add("--json-file", type=Path, metavar="FILE", help="the JSON report as well")
    add("--junit", type=Path, metavar="FILE", help="a JUnit report as well")
    add("--markdown", type=Path, metavar="FILE", help="a markdown report as well")
    add_html_option(add)
    add_file_options(add)
    add_format_option(add)
    add_strict_option(add)


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "client":
        from mcptest.cli.conformance_client import test_client

        return test_client(arguments)
    if arguments.action == "server":
        from mcptest.cli.conformance_server import test_server

        return test_server(arguments)
    from mcptest.cli.conformance_other import judge_again, list_scenarios, show_driver

    if arguments.action == "list":
        return list_scenarios(arguments, sys.stdout)
    if arguments.action == "driver":
        return show_driver(arguments, sys.stdout)
    return judge_again(arguments)
