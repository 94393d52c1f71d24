"""`mcptest conformance`: the scenario suite, for clients and for servers."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import (
    CAPABILITIES,
    add_clean_env_option,
    add_common_options,
    add_file_options,
    add_format_option,
    add_report_files,
    add_server_options,
    add_strict_option,
)
from mcptest.commands.reporting import add_html_option

_FOR_CLIENTS = "default: of the scenarios' own checks alone, as in the official suite"


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _configure_client(commands.add_parser("client", help="test a client: we are the server"))
    _configure_server(commands.add_parser("server", help="the scenario suite for servers"))
    _configure_list(commands.add_parser("list", help="every scenario, and what is not offered"))
    about = "a program to begin with, for your client library"
    _configure_driver(commands.add_parser("driver", help=about))
    about = "judge a kept capture of a client scenario again"
    _configure_judge(commands.add_parser("judge", help=about))


def _configure_client(parser: argparse.ArgumentParser) -> None:
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
    _add_gates(parser, _FOR_CLIENTS)
    _add_reports(parser)
    add_common_options(parser)


def _configure_server(parser: argparse.ArgumentParser) -> None:
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
    _add_gates(parser, "default: it does not")
    _add_reports(parser)
    add_common_options(parser)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--client", action="store_true", help="only those for clients")
    add("--server", action="store_true", help="only those for servers")
    add("--spec-version", default="auto", metavar="REV", help="only those of this revision")
    _add_listing(parser)


def _configure_driver(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("driver", nargs="?", metavar="NAME", help="print the program for this library")
    add(
        "--list", action="store_true", help="the libraries, and what to install (also without NAME)"
    )
    _add_listing(parser)


def _configure_judge(parser: argparse.ArgumentParser) -> None:
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
    _add_gates(parser, _FOR_CLIENTS, knows_failures=False)
    _add_reports(parser)
    add_common_options(parser)


def _add_listing(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--json", action="store_true", help="as JSON")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def _add_choice(parser: argparse.ArgumentParser, suites: str) -> None:
    add = parser.add_argument_group("what is tested").add_argument
    add("--suite", default="", metavar="NAME", help=suites)
    add("--scenario", action="append", default=[], metavar="NAME", help="only this; may repeat")
    add("--requirements", metavar="REV", help="what conformance to this revision asks for")
    add("--list", action="store_true", help="say what would run")


def _add_gates(
    parser: argparse.ArgumentParser, default: str, *, knows_failures: bool = True
) -> None:
    add = parser.add_argument_group("what is good enough").add_argument
    about = f"what is only recommended counts ({default})"
    add("--fail-on-warning", action="store_true", default=None, dest="warnings", help=about)
    add("--no-fail-on-warning", action="store_false", dest="warnings", help="or does not")
    if knows_failures:
        add("--expected-failures", type=Path, metavar="FILE", help="what is known to fail (YAML)")


def _add_reports(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("reports").add_argument
    add("--json", action="store_true", help="the report as JSON, and nothing else, on stdout")
    add_report_files(add, ("json_file", "junit", "markdown"))
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
