"""The options of the commands that run suites: which tests, how they run, which reports."""

from __future__ import annotations

import argparse
from functools import partial

from mcptest.commands.options import (
    DEFAULT_TIMEOUT,
    REPORT_FILES,
    NotedTimeout,
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
    parser.add_argument(
        "--fix",
        action="store_true",
        help="look for positions nearby at which a failing test passes; no file is changed",
    )
    add_report_options(parser)
    add_common_options(parser)


def add_suite_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("which tests").add_argument
    flag = partial(add, action="store_true")
    add("paths", nargs="*", metavar="PATH", help="suite files and folders")
    add("--suite", action="append", default=[], metavar="PATH", help="the same")
    add("--config", action="append", default=[], metavar="FILE", help="the same")
    add(
        "-k",
        dest="pattern",
        default="",
        metavar="EXPR",
        help="names that match; and, or, not, *, =NAME",
    )
    add("--tag", action="append", default=[], help="tests with this tag; may repeat")
    add("--shard", metavar="I/N", help="only this part of the tests")
    flag("--last-failed", help="only what failed last time")
    flag("--keep-going", help="run the valid rest of a broken suite, and still fail")
    flag("--list", help="what would run, one line each")


def add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group("the server").add_argument(
        "--server", metavar="S", help="use this server for every test; or its command after --"
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("how they run").add_argument
    flag = partial(add, action="store_true")
    add("--fixture", metavar="DIR", help="copied for each test; {{fixture}} is its path")
    add("--docker", default="", metavar="IMAGE", help="start servers in this image")
    flag("--lenient", help="a malformed answer that can still be read is a warning, not a failure")
    flag(
        "--quick-end",
        help="end servers after 50 ms instead of waiting for them to exit by themselves",
    )
    flag(
        "--warm-start",
        help="start servers sooner in ways they can notice: Node's compile cache, npx only once",
    )
    add("--env", action="append", default=[], metavar="K=V", help="for all servers")
    add_clean_env_option(add, "a server")
    add("--header", action="append", default=[], metavar="K=V", help="for all servers with a URL")
    add("--headers", default="", metavar="K=V,K=V", help=argparse.SUPPRESS)
    add("--cwd", metavar="DIR", help="where servers are started")
    add("--spec-version", default="", metavar="REV", help="speak this revision, or auto")
    add(
        "--timeout",
        default=DEFAULT_TIMEOUT,
        metavar="T",
        action=NotedTimeout,
        help=f"for each test ({DEFAULT_TIMEOUT})",
    )
    parser.set_defaults(timeout_given=False)
    add(
        "--jobs",
        metavar="N",
        help="tests at a time (auto: the cores; by default one for files of a single test)",
    )
    add(
        "--isolation",
        choices=("fresh", "shared"),
        help="a server for each test (fresh), or one for all",
    )
    flag("--reuse-server", help=argparse.SUPPRESS)
    add(
        "--in-flight", type=int, default=1, metavar="N", help="calls at once on a shared server (1)"
    )
    add("--trials", type=int, default=1, metavar="N", help="run each test N times")
    flag("-x", dest="fail_fast", help="stop after the first failure")
    flag("--all-failures", help="every failing expectation, not the first only")
    add("--capture", type=as_path, metavar="DIR", help="keep what went over the wire")


def add_report_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("reports").add_argument
    add_report_files(add, REPORT_FILES)
    add_file_options(add)
    add_format_option(add)
    add("--json", action="store_true", help="results as JSON on stdout, alone")
    add_strict_option(add)
