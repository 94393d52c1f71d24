"""The options of the commands that run suites: which tests, how they run, which reports."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from mcptest.commands.options import (
    REPORT_FILES,
    add_common_options,
    add_file_options,
    add_fixture_option,
    add_format_option,
    add_json,
    add_report_files,
    add_save_capture,
    add_server_group,
    add_strict_option,
    add_talk_options,
)


def add_options_of_run(parser: argparse.ArgumentParser) -> None:
    """Everything that `run` takes, and so `ci`."""
    add_suite_options(parser)
    add_server_options(parser)
    add = add_run_options(parser)
    add(
        "--fix",
        action="store_true",
        help="look for positions nearby at which a failing test passes; changes no file",
    )
    add_report_options(parser)
    add_common_options(parser)


def add_suite_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("selection").add_argument
    flag = partial(add, action="store_true")
    add_paths(add)
    add("--config", action="append", default=[], metavar="FILE", help="same as PATH (repeatable)")
    add(
        "-k",
        dest="pattern",
        default="",
        metavar="EXPR",
        help="run tests whose names match; takes and, or, not, *, =NAME",
    )
    add("--tag", action="append", default=[], help="run tests with this tag (repeatable)")
    add("--shard", metavar="I/N", help="run part I of N of the tests")
    flag("--last-failed", help="run only tests that failed last time")
    flag("--keep-going", help="run the valid tests of a broken suite, and still fail")
    flag("--list", help="list what would run, and run nothing")


def add_paths(add: Callable[..., Any]) -> None:
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        help="suite files and folders (default: evals/ and mcptest.yaml)",
    )
    add("--suite", action="append", default=[], metavar="PATH", help="same as PATH (repeatable)")


def add_server_options(parser: argparse.ArgumentParser, *, is_option: bool = True) -> None:
    """The server for all tests, and how to talk to those that the suites name."""
    group = add_server_group(parser, is_argument=False, is_option=is_option)
    add_talk_options(
        group.add_argument,
        revision="",
        shown_revision="from the suite, else auto",
        shown_startup="part of --timeout",
    )
    parser.set_defaults(timeout_given=False)


def add_run_options(parser: argparse.ArgumentParser) -> Callable[..., Any]:
    """How tests run. Gives what adds further options to the group."""
    add = parser.add_argument_group("execution").add_argument
    flag = partial(add, action="store_true")
    add_fixture_option(add)
    add("--docker", default="", metavar="IMAGE", help="start servers in this container image")
    flag("--lenient", help="warn about malformed responses that can still be read")
    flag("--quick-end", help="stop servers after 50ms instead of waiting for them to exit")
    flag("--warm-start", help="start servers faster: Node's compile cache, npx only once")
    add(
        "--jobs",
        metavar="N",
        help="tests in parallel (default: one per core; 1 for files with one test each)",
    )
    add(
        "--isolation",
        choices=("fresh", "shared"),
        help="start a server for each test, or share one (default: fresh)",
    )
    flag("--reuse-server", help=argparse.SUPPRESS)
    add(
        "--in-flight",
        type=int,
        default=1,
        metavar="N",
        help="calls in parallel on a shared server (default: 1)",
    )
    add("--trials", type=int, default=1, metavar="N", help="run each test N times (default: 1)")
    flag("-x", dest="fail_fast", help="stop after the first failure")
    flag("--all-failures", help="show every failed expectation, not only the first")
    add_save_capture(add)
    return add


def add_report_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("reports").add_argument
    add_report_files(add, REPORT_FILES)
    add_file_options(add)
    add_format_option(add)
    add_json(add)
    add_strict_option(add)
