"""`mcptest run`: tests in YAML against real servers."""

from __future__ import annotations

import argparse

from mcptest.commands.options import add_options_of_run


def configure(parser: argparse.ArgumentParser) -> None:
    add_options_of_run(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcptest.commands.suite_command import run_suites  # --help needs nothing of it

    return run_suites(arguments)
