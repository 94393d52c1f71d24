"""Reports that can't be written: always said, and a failure where `--strict-reports` asks for one.

A verdict is about a server, and a full disk does not change it; whoever depends on the file says
so. This is one rule for every command that judges. A command whose purpose is the file (`report`,
`record`, `generate`, `schema`) fails without being asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mcptest.cli.options import is_for_a_program
from mcptest.model.errors import ExitCode
from mcptest.model.show import show


def add_strict_option(add: Callable[..., Any]) -> None:
    add("--strict-reports", action="store_true", help="a report that can't be written fails")


def tell_unwritten(arguments: argparse.Namespace, unwritten: Sequence[str]) -> None:
    """On stderr, and below the text that a person reads on stdout."""
    say_unwritten(unwritten)
    if not unwritten or is_for_a_program(arguments):
        return
    from mcptest.report.terminal import Style, say

    style = Style.of(sys.stdout, no_color=arguments.no_color)
    for sentence in unwritten:
        say(sys.stdout, f"{style.warning} {show(sentence, 500)}\n")


def say_unwritten(unwritten: Sequence[str]) -> None:
    """On stderr only: where stdout is somebody else's, or says it already."""
    sys.stderr.writelines(f"mcptest: {sentence}\n" for sentence in unwritten)


def code_with_reports(arguments: argparse.Namespace, code: int, unwritten: Sequence[str]) -> int:
    """The exit code, when it is known which reports are missing. What is worse stays."""
    if code == ExitCode.OK and unwritten and arguments.strict_reports:
        return ExitCode.FAILED
    return code
