"""`mcptest run`: tests in YAML against real servers."""

from __future__ import annotations

import argparse

from mcptest.commands.suite_command import run_suites
from mcptest.commands.suite_options import add_options_of_run

_DESCRIPTION = """\
Run suites: start each server, call it as the tests in YAML say, and check its
answers. What the files declare besides their tests, compliance, invariants
and properties, is run too; there is one report and one exit code. Each test
has a server and a copy of the fixture for itself unless you ask for
--isolation shared.

On a terminal you see what runs and what has failed while it goes on. In a
pipe, with NO_COLOR, in CI and with --quiet there are only plain lines.
"""
_EPILOG = """\
examples:
  mcptest run evals/
  mcptest run --suite evals/ --fixture evals/fixtures --junit results.xml
  mcptest run evals/ -k "read and not slow" --trials 5
  mcptest run evals/ --isolation shared --in-flight 32
  mcptest run evals/ --fixture data --server "node server.js {{fixture}}"
  mcptest run evals/ --last-failed --verbose -- python my_server.py

exit codes:
  0    every test passed
  1    a test failed, or a regression was found
  2    could not start: bad options, or a suite that can't be read. Nothing
       was run
  4    no test was selected, or all of them were skipped
  130  interrupted; what had finished is reported

see also: mcptest ci, mcptest watch, mcptest snapshot, docs/suite-format.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    add_options_of_run(parser)


def run(arguments: argparse.Namespace) -> int:
    return run_suites(arguments)
