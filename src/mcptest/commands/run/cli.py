"""`mcptest run`: tests in YAML against real servers."""

from __future__ import annotations

import argparse

from mcptest.commands.options import add_options_of_run
from mcptest.commands.suite_command import run_suites


def configure(parser: argparse.ArgumentParser) -> None:
    add_options_of_run(parser)


def run(arguments: argparse.Namespace) -> int:
    return run_suites(arguments)
