"""From arguments to one command: help, errors for people, exit codes.

A command is a module with `configure(parser)` and `run(arguments) -> int`. Only the module of the
command that was named is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import importlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, NoReturn, Protocol, cast

from mcptest.cli.output import code_with_output, say_lost, take_over_streams
from mcptest.cli.streams import masked_streams
from mcptest.model.errors import ExitCode, McptestError, UsageError
from mcptest.model.redaction import redaction
from mcptest.transport.bare_signals import interrupt_on_signals

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("mcptest.cli.run", "run suites: call servers and check their answers"),
    "ci": ("mcptest.cli.ci", "run suites with the manners of continuous integration"),
    "matrix": ("mcptest.cli.matrix", "run one suite over several servers, as a table"),
    "audit": ("mcptest.cli.audit", "zero configuration: call every safe tool, classify, score"),
    "lint": ("mcptest.cli.lint", "can a model use these tools? names, words, schemas, costs"),
    "fuzz": ("mcptest.cli.fuzz", "almost valid inputs for each tool: crashes, hangs, leaks"),
    "property": ("mcptest.cli.property", "generated messages and conversations, judged and shrunk"),
    "generate": ("mcptest.cli.generate", "a starter test for each tool, prompt and resource"),
    "init": ("mcptest.cli.init", "a first suite; with a server, one that passes at once"),
    "coverage": ("mcptest.cli.coverage", "which items of a live server a suite asserts on"),
    "snapshot": ("mcptest.cli.snapshot", "golden answers: write them, and see what has changed"),
    "watch": ("mcptest.cli.watch", "rerun what changed, and show which outcomes flipped"),
    "record": ("mcptest.cli.record", "record a session with a server, or between a client and one"),
    "intercept": ("mcptest.cli.intercept", "sit between an agent and a server, check its calls"),
    "fleet": ("mcptest.cli.fleet", "judge every server of a client configuration"),
    "compliance": ("mcptest.cli.compliance", "judge captures and servers by the specification"),
    "conformance": ("mcptest.cli.conformance", "the scenario suite, for clients and servers"),
    "explain": ("mcptest.cli.explain", "one rule or lint code in full: what, why, and where from"),
    "doctor": ("mcptest.cli.doctor", "what will break when a server moves to another revision"),
    "mcp": ("mcptest.cli.mcp", "be an MCP server for agents: judge, lint, run what you allow"),
    "serve": ("mcptest.cli.serve", "be a server: the demo, a mock, a recording, a scenario"),
    "report": ("mcptest.cli.report", "stored runs and captures again: HTML, merged shards"),
    "completion": ("mcptest.cli.completion", "a script that completes command lines in a shell"),
    "schema": ("mcptest.cli.schema", "print the JSON Schema of a file format"),
}

EPILOG = """\
examples:
  mcptest run evals/ --fixture evals/fixtures
  mcptest compliance run --server "npx -y my-server /data"
  mcptest doctor --server http://127.0.0.1:3001/mcp --to 2026-07-28
  mcptest record --server demo --out session.jsonl
  mcptest compliance invariants --capture session.jsonl
  mcptest explain INV-003

exit codes: 0 passed, 1 something failed, 2 could not start, 3 peer unreachable,
            4 nothing matched, 130 interrupted
"""


_NOTHING_MORE_FITS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


class CommandModule(Protocol):
    def configure(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


class HelpText(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse makes one for each option: it has to be cheap."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_help_width())


@functools.cache
def _help_width() -> int:
    with contextlib.suppress(ValueError):
        return max(20, int(os.environ.get("COLUMNS", "")) - 2)
    try:
        return (os.get_terminal_size(sys.__stdout__.fileno()).columns or 80) - 2  # type: ignore[union-attr]  # None is an AttributeError
    except (AttributeError, ValueError, OSError):  # closed, or no terminal
        return 78


class Parser(argparse.ArgumentParser):
    """argparse, with our way of saying what is wrong."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("formatter_class", HelpText)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed through unchanged

    def format_help(self) -> str:
        from mcptest.cli.manual import furnish

        furnish(self)
        return super().format_help()

    def print_help(self, file: Any = None) -> None:
        """argparse would swallow that it can't be written, and leave before anyone can see it."""
        (file or sys.stdout).write(self.format_help())
        sys.stdout.flush()

    def error(self, message: str) -> NoReturn:
        from mcptest.cli.meant import meant

        near = meant(message, self._option_string_actions)
        hint = f"see {self.prog} --help"
        raise UsageError(message, hint=f"did you mean {near}? {hint}" if near else hint)

    def parse_known_args(  # type: ignore[override]  # of its three forms only this one is used
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """What nobody knows is told of by the parser of the action, which knows its options."""
        words = sys.argv[1:] if args is None else args
        found, unknown = super().parse_known_args(self._spelled_out(words), namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _spelled_out(self, words: Sequence[str]) -> list[str]:
        """Options in the spelling of Go, and so of mcp-assert: `-suite evals`, `--json=true`."""
        told: list[str] = []
        for word in words:
            name, assigned, value = word.partition("=")
            if (
                re.fullmatch(r"-[a-z][a-z0-9-]+", name)
                and f"-{name}" in self._option_string_actions
            ):
                name = f"-{name}"
            action = self._option_string_actions.get(name)
            is_flag = action is not None and action.nargs == 0
            if not (is_flag and assigned and value in _TRUE | _FALSE):
                told.append(f"{name}{assigned}{value}")
            elif value in _TRUE:
                told.append(name)
            else:  # the last word counts
                told = [each for each in told if each != name]
        return told


_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def run(argv: Sequence[str]) -> int:
    """Run one command line; every error that is somebody's fault ends here as one message."""
    take_over_streams()
    redaction.learn(lambda: _secrets_given(argv))
    with masked_streams():
        return _run(argv)


def _secrets_given(argv: Sequence[str]) -> Iterable[str]:
    from mcptest.model.secrets import inherited_secrets, secrets_of_command

    return (*secrets_of_command(argv), *inherited_secrets(os.environ))


def _run(argv: Sequence[str]) -> int:
    debug = "--debug" in _split_at_dashes(argv)[0]
    try:
        return code_with_output(_dispatch(argv))
    except SystemExit as leaving:  # argparse, after the help
        return code_with_output(int(leaving.code or ExitCode.OK))
    except McptestError as error:
        if debug:
            _show_traceback()
        _say(error)
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output left, as `head` does. Nothing more can be said to it.
        _abandon_stdout()
        return ExitCode.FAILED
    except OSError as error:
        if error.errno not in _NOTHING_MORE_FITS:
            return _say_defect(error, debug=debug)
        # A report that could not be written is said, and is no success.
        _abandon_stdout()
        say_lost(error)
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback for a user
        return _say_defect(error, debug=debug)


def _say_defect(error: Exception, *, debug: bool) -> int:
    if debug:
        _show_traceback()
    sys.stderr.write(
        f"mcptest: internal error: {type(error).__name__}: {error}\n"
        "  this is a defect of mcptest; run the same command with --debug for the details\n"
    )
    return ExitCode.FAILED


def _show_traceback() -> None:
    import traceback

    traceback.print_exc()


def _abandon_stdout() -> None:
    """What is still buffered must not fail once more when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _dispatch(argv: Sequence[str]) -> int:
    if not argv or argv[0] in {"-h", "--help", "help"}:
        sys.stdout.write(_overview())
        return ExitCode.OK if argv else ExitCode.USAGE
    name = argv[0]
    if name not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(name, (*COMMANDS, "--help", "--version"), n=1)
        hint = f"did you mean {near[0]}?" if near else "mcptest --help lists the commands"
        kind = "option" if name.startswith("-") else "command"
        raise UsageError(f"unknown {kind}: {name}", hint=hint)
    if name != "completion":  # somebody waits with a finger on a key, and it needs none of it
        _import_msgspec_alone()
    parser = parser_of(name)
    own, command = _split_at_dashes(argv[1:])
    arguments = parser.parse_args(own)
    arguments.server_command = command
    interrupt_on_signals()
    return _module_of(name).run(arguments)


def parser_of(name: str) -> Parser:
    """The parser of one command, as its module configures it."""
    summary = COMMANDS[name][1]
    parser = Parser(prog=f"mcptest {name}", description=summary[0].upper() + summary[1:] + ".")
    _module_of(name).configure(parser)
    return parser


def _module_of(name: str) -> CommandModule:
    return cast("CommandModule", importlib.import_module(COMMANDS[name][0]))


def _import_msgspec_alone() -> None:
    """Without typing_extensions, of which it needs nothing that our Python lacks.

    msgspec takes it where it is installed, and it takes 15 modules with it: a tenth of the time
    until the first server of a run is started.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = cast("ModuleType", None)  # how to say: it can't be imported
    try:
        importlib.import_module("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def _split_at_dashes(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """After a bare `--` the rest of the line is the server's command."""
    words = list(argv)
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


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
