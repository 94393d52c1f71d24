"""From arguments to one command: help, errors for people, exit codes.

A command is a module with `configure(parser)` and `run(arguments) -> int`. Only the module of the
command that was named is imported.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol, cast

from mcptest.model.errors import ExitCode, McptestError, UsageError

COMMANDS: dict[str, tuple[str, str]] = {
    "record": ("mcptest.cli.record", "record a session with a server, or between a client and one"),
    "compliance": ("mcptest.cli.compliance", "judge captures and servers by the specification"),
    "explain": ("mcptest.cli.explain", "one rule in full: what it demands, why, and where from"),
    "serve": ("mcptest.cli.serve", "be a server: the demo that ships with mcptest"),
    "schema": ("mcptest.cli.schema", "print the JSON Schema of a file format"),
}

EPILOG = """\
examples:
  mcptest record --server demo --out session.jsonl
  mcptest record --server "npx -y my-server /data" --out session.jsonl
  mcptest compliance invariants --capture session.jsonl
  mcptest explain INV-003

exit codes: 0 passed, 1 something failed, 2 could not start, 3 peer unreachable,
            4 nothing matched, 130 interrupted
"""


class CommandModule(Protocol):
    def configure(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


class Parser(argparse.ArgumentParser):
    """argparse, with our way of saying what is wrong."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed through unchanged

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see {self.prog} --help")


def run(argv: Sequence[str]) -> int:
    """Run one command line; every error that is somebody's fault ends here as one message."""
    debug = "--debug" in argv
    try:
        code = _dispatch(argv)
        sys.stdout.flush()
        return code
    except McptestError as error:
        if debug:
            raise
        _say(error)
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output left, as `head` does. Nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except Exception as error:  # the last line of defence: no traceback for a user
        if debug:
            raise
        sys.stderr.write(
            f"mcptest: internal error: {type(error).__name__}: {error}\n"
            "  this is a defect of mcptest; run the same command with --debug for the details\n"
        )
        return ExitCode.FAILED


def _dispatch(argv: Sequence[str]) -> int:
    if not argv or argv[0] in {"-h", "--help", "help"}:
        sys.stdout.write(_overview())
        return ExitCode.OK if argv else ExitCode.USAGE
    name = argv[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else "mcptest --help lists the commands"
        kind = "option" if name.startswith("-") else "command"
        raise UsageError(f"unknown {kind}: {name}", hint=hint)
    module_name, summary = COMMANDS[name]
    module = cast("CommandModule", importlib.import_module(module_name))
    parser = Parser(prog=f"mcptest {name}", description=summary[0].upper() + summary[1:] + ".")
    module.configure(parser)
    return module.run(parser.parse_args(argv[1:]))


def _overview() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())
    return (
        "usage: mcptest COMMAND [OPTIONS]\n\n"
        "Tells, with proof, whether an MCP server or client works and conforms.\n\n"
        f"commands:\n{rows}\n\n{EPILOG}"
    )


def _say(error: McptestError) -> None:
    sys.stderr.write(f"mcptest: {error.message}\n")
    if error.hint:
        sys.stderr.write(f"  {error.hint}\n")
