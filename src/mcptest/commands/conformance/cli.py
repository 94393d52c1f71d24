"""`mcptest conformance`: the scenario suite, for clients and for servers."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    CAPABILITIES,
    HIDDEN,
    OptionGroup,
    add_common_options,
    add_environment_options,
    add_report_options,
    add_server_options,
)

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
    add = OptionGroup(parser, "client")
    add("--command CMD", "command line that starts the client", required=True)
    add("--shell", "run the command in a shell, as the official suite")
    about = "transport of the client (default: http)"
    add("--transport", about, choices=("http", "stdio"), default="http")
    add_environment_options(add, "client")
    _add_revision(add, "the newest that the client speaks")
    _add_capabilities(add)
    _add_choice(parser, "core, auth, all and others; see `mcptest conformance list`", "core")
    add = OptionGroup(parser, "execution")
    add("--timeout T", "time limit for one scenario (default: 30s)", default="30s")
    add("--jobs N", "clients in parallel (default: one per core)", default="auto")
    _add_gates(parser, _FOR_CLIENTS)
    _add_reports(parser)


def _configure_server(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)("--url URL", HIDDEN)
    _add_choice(parser, "active, all, pending, draft", "active").known("--map")
    add = OptionGroup(parser, "execution")
    add("--jobs N", "scenarios over HTTP in parallel (default: auto)", default="auto")
    _add_gates(parser, "no warning")
    add = OptionGroup(parser, "pass/fail criteria")
    add("--strict-fixtures", "fail if a fixture is missing")
    _add_reports(parser)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "selection")
    add("--client", "list only scenarios for clients")
    add("--server", "list only scenarios for servers")
    _add_revision(add, "all")
    _add_listing(parser)


def _configure_driver(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "selection")
    add("driver NAME", "library to print a program for (default: list)", nargs="?")
    add("--list", "list the libraries, and what to install")
    _add_listing(parser)


def _configure_judge(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "selection")
    add("--scenario NAME", "client scenario of the capture", required=True)
    about = "capture to judge; several if the host restarted its server (repeatable)"
    add("--capture FILE", about, required=True)
    _add_revision(add, "the one in the capture")
    _add_capabilities(add)
    _add_gates(parser, _FOR_CLIENTS, knows_failures=False)
    _add_reports(parser)


def _add_capabilities(add: OptionGroup) -> None:
    about = "optional capabilities: declared ones are well-formed (permissive), all are declared "
    about += "(strict), or exactly the declared ones work (default: probe)"
    add("--capabilities", about, choices=CAPABILITIES, default="probe")
    add("--claims A,B", "capabilities the client supports, for probe", default="")


def _add_revision(add: OptionGroup, default: str) -> None:
    add("--spec-version REV", f"protocol revision (default: {default})", default="auto")


def _add_listing(parser: argparse.ArgumentParser) -> None:
    OptionGroup(parser, "reports")("--json", "print JSON only")
    add = OptionGroup(parser, "messages")
    add.known("--no-color")
    add("--debug", HIDDEN)


def _add_choice(parser: argparse.ArgumentParser, suites: str, default: str) -> OptionGroup:
    add = OptionGroup(parser, "selection")
    add("--suite NAME", f"suite to run: {suites} (default: {default})", default="")
    add("--scenario NAME", "run only this scenario (repeatable)")
    add("--requirements REV", "run what conformance to this revision requires")
    add("--list", "list what would run, and run nothing")
    return add


def _add_gates(
    parser: argparse.ArgumentParser, default: str, *, knows_failures: bool = True
) -> None:
    add = OptionGroup(parser, "pass/fail criteria")
    about = f"fail on warnings (default: {default})"
    add("--fail-on-warning", about, dest="warnings", action="store_true", default=None)
    about = "do not fail on warnings"
    add("--no-fail-on-warning", about, dest="warnings", action="store_false")
    if knows_failures:
        add("--expected-failures FILE", "known failures (YAML)")


def _add_reports(parser: argparse.ArgumentParser) -> None:
    add_report_options(parser, keeps_captures=False)
    add = OptionGroup(parser, "output files")
    about = "write a folder for each scenario with checks.json, output and capture"
    add("-o --output DIR", about, was="--output-dir")
    add_common_options(parser)
