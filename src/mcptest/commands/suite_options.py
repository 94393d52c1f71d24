"""The options of the commands that run suites: which tests, how they run, which reports."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    DEFAULT_TIMEOUT,
    REPORT_FILES,
    add_clean_env_option,
    add_common_options,
    add_file_options,
    add_format_option,
    add_report_files,
    add_strict_option,
    as_path,
)


def add_options_of_run(parser: argparse.ArgumentParser) -> None:
    """Everything that `run` takes, and so `ci`."""
    add_suite_options(parser)
    add_server_options(parser)
    add_run_options(parser)
    add_fix_option(parser)
    add_report_options(parser)
    add_common_options(parser)


def add_suite_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which tests")
    group.add_argument("paths", nargs="*", metavar="PATH", help="suite files and folders")
    group.add_argument("--suite", action="append", default=[], metavar="PATH", help="the same")
    group.add_argument("--config", action="append", default=[], metavar="FILE", help="the same")
    group.add_argument(
        "-k",
        dest="pattern",
        default="",
        metavar="EXPR",
        help="names that match; and, or, not, *, =NAME",
    )
    group.add_argument("--tag", action="append", default=[], help="tests with this tag; may repeat")
    group.add_argument("--shard", metavar="I/N", help="only this part of the tests")
    group.add_argument("--last-failed", action="store_true", help="only what failed last time")
    group.add_argument(
        "--keep-going",
        action="store_true",
        help="run the valid rest of a broken suite, and still fail",
    )
    group.add_argument("--list", action="store_true", help="what would run, one line each")


def add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group("the server").add_argument(
        "--server", metavar="S", help="use this server for every test; or its command after --"
    )


def add_fix_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fix",
        action="store_true",
        help="look for positions nearby at which a failing test passes; no file is changed",
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how they run")
    group.add_argument(
        "--fixture", metavar="DIR", help="copied for each test; {{fixture}} is its path"
    )
    group.add_argument("--docker", default="", metavar="IMAGE", help="start servers in this image")
    group.add_argument(
        "--lenient",
        action="store_true",
        help="a malformed answer that can still be read is a warning, not a failure",
    )
    group.add_argument(
        "--quick-end",
        action="store_true",
        help="end servers after 50 ms instead of waiting for them to exit by themselves",
    )
    group.add_argument(
        "--warm-start",
        action="store_true",
        help="start servers sooner in ways they can notice: Node's compile cache, npx only once",
    )
    group.add_argument("--env", action="append", default=[], metavar="K=V", help="for all servers")
    add_clean_env_option(group.add_argument, "a server")
    group.add_argument(
        "--header", action="append", default=[], metavar="K=V", help="for all servers with a URL"
    )
    group.add_argument("--headers", default="", metavar="K=V,K=V", help=argparse.SUPPRESS)
    group.add_argument("--cwd", metavar="DIR", help="where servers are started")
    group.add_argument(
        "--spec-version", default="", metavar="REV", help="speak this revision, or auto"
    )
    group.add_argument(
        "--timeout", default=DEFAULT_TIMEOUT, metavar="T", help=f"for each test ({DEFAULT_TIMEOUT})"
    )
    group.add_argument(
        "--jobs",
        metavar="N",
        help="tests at a time (auto: the cores; by default one for files of a single test)",
    )
    group.add_argument(
        "--isolation",
        choices=("fresh", "shared"),
        help="a server for each test (fresh), or one for all",
    )
    group.add_argument("--reuse-server", action="store_true", help=argparse.SUPPRESS)
    group.add_argument(
        "--in-flight", type=int, default=1, metavar="N", help="calls at once on a shared server (1)"
    )
    group.add_argument("--trials", type=int, default=1, metavar="N", help="run each test N times")
    group.add_argument(
        "-x", dest="fail_fast", action="store_true", help="stop after the first failure"
    )
    group.add_argument(
        "--all-failures", action="store_true", help="every failing expectation, not the first only"
    )
    group.add_argument(
        "--capture", type=as_path, metavar="DIR", help="keep what went over the wire"
    )


def add_report_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reports")
    add_report_files(group.add_argument, REPORT_FILES)
    add_file_options(group.add_argument)
    add_format_option(group.add_argument)
    group.add_argument("--json", action="store_true", help="results as JSON on stdout, alone")
    add_strict_option(group.add_argument)
