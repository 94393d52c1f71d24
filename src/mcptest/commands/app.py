"""From arguments to one command: help, errors for people, exit codes.

A command is a package here whose module `cli` has `configure(parser)`; what `--help` says around
the options is its `help.txt`, and `help-ACTION.txt` for an action of it. What it does is
`run_<name>(arguments) -> int` in its module `run`, which is imported only once the arguments are
read; where that is little, it is `run(arguments)` beside the options, in `cli`.
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
import textwrap
import time
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, NoReturn, cast

from mcptest.commands.early_signals import interrupt_on_signals
from mcptest.commands.output import (
    Meanwhile,
    code_with_output,
    masked_streams,
    say_lost,
    take_over_streams,
)
from mcptest.core.errors import (
    ErrorKind,
    ExitCode,
    McptestError,
    PeerError,
    UsageError,
    close_matches,
)
from mcptest.core.redaction import inherited_secrets, redaction, secrets_of_command

COMMANDS = {
    "run": "run suites: call servers and check their responses",
    "ci": "run suites in CI: gates, step summary, annotations",
    "matrix": "run one suite against several servers",
    "audit": "call every safe tool of a server, and score it",
    "lint": "check whether a model can use the tools of a server",
    "fuzz": "send almost valid inputs to each tool",
    "property": "test protocol properties with generated messages",
    "generate": "write a starter test for each tool, prompt and resource",
    "init": "write a first suite that passes",
    "coverage": "show which tools, prompts and resources a suite tests",
    "snapshot": "compare responses with golden files",
    "watch": "rerun tests when files change",
    "record": "record a session with a server as a capture",
    "intercept": "check the calls of an agent, as a proxy",
    "fleet": "judge every server of a client configuration",
    "compliance": "judge a server or a capture against the specification",
    "conformance": "run the conformance scenarios on a client or a server",
    "explain": "explain a rule or a lint code",
    "doctor": "find what breaks when a server moves to another revision",
    "mcp": "run mcptest as an MCP server for agents",
    "serve": "serve the demo, a mock, a capture or a scenario",
    "report": "render saved runs and captures, and merge shards",
    "completion": "print a completion script for a shell",
    "schema": "print the JSON Schema of a file format",
}
"""Each is a package of this one, named here with what `mcptest --help` says of it."""
FIRST_SCREEN = {
    "test your server": ("init", "run", "ci"),
    "explore a server": ("audit", "lint", "fuzz"),
    "conform to the specification": ("compliance", "doctor", "explain"),
    "test your client": ("conformance", "serve"),
    "record sessions": ("record",),
}
"""What a person wants to do, and the commands to begin with. The others come under `more`."""
EXIT_CODES = {
    "0": "passed",
    "1": "failed",
    "2": "invalid options or input; nothing was run",
    "3": "the server could not be started or reached",
    "4": "nothing to test",
    "130": "interrupted; partial results are reported",
}
"""What an exit code means, where the help of a command does not say more."""

_NOTHING_MORE_FITS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


class HelpText(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse makes one for each option: it has to be cheap."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_help_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = text.strip("\n").split("\n\n")
        return "\n\n".join(_wrap_block(block, width) for block in blocks)


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
        page = help_page(*self.prog.split()[1:])
        if page:
            about, examples, more = page.partition("examples:\n")
            self.description = about
            self.epilog = _EXIT_CODE.sub(_with_its_meaning, examples + more)

    def add_argument_group(self, *args: Any, **kwargs: Any) -> argparse._ArgumentGroup:
        """One group of each title, whoever adds options to it."""
        for group in self._action_groups:
            if args and group.title == args[0]:
                return group
        return super().add_argument_group(*args, **kwargs)

    def format_help(self) -> str:
        self.usage = _usage(self)
        return super().format_help()

    def print_help(self, file: Any = None) -> None:
        """argparse would swallow that it can't be written, and leave before anyone can see it."""
        (file or sys.stdout).write(self.format_help())
        sys.stdout.flush()

    def error(self, message: str) -> NoReturn:
        shown = (
            name
            for name, action in self._option_string_actions.items()
            if action.help != argparse.SUPPRESS
        )
        near = nearest_word(message, shown)
        hint = f"see {self.prog} --help"
        hint = f"did you mean {near}? {hint}" if near else hint
        raise UsageError(in_plain_words(message), hint=hint)

    def parse_known_args(  # type: ignore[override]  # of its three forms only this one is used
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """What nobody knows is told of by the parser of the action, which knows its options."""
        words = sys.argv[1:] if args is None else args
        found, unknown = super().parse_known_args(self._spelled_out(words), namespace)
        if unknown:
            self._refuse(unknown, found)
        return found, unknown

    def _refuse(self, unknown: Sequence[str], found: argparse.Namespace) -> NoReturn:
        what = "option" if unknown[0].startswith("-") else "argument"
        message = f"unknown {what}{'s' * (len(unknown) > 1)}: {' '.join(unknown)}"
        is_argument = any(one.metavar == "SERVER" for one in self._actions)
        named = getattr(found, "server", None)
        is_command = not unknown[0].startswith("--")
        if is_argument and named and is_command:
            hint = f'quote the whole command, "{named} {" ".join(unknown)}", or put it after --'
            raise UsageError(message, hint=hint)
        self.error(message)

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
    redaction.learn(lambda: (*secrets_of_command(argv), *inherited_secrets(os.environ)))
    with masked_streams():
        return _run(argv)


def _run(argv: Sequence[str]) -> int:
    debug = "--debug" in _split_at_dashes(argv)[0]
    try:
        return code_with_output(_dispatch(argv))
    except SystemExit as leaving:  # argparse, after the help
        return code_with_output(int(leaving.code or ExitCode.OK))
    except McptestError as error:
        if debug:
            _show_traceback()
        exited = isinstance(error, PeerError) and error.kind is ErrorKind.EXITED
        next_step = error.hint or ("run its command yourself to see why" if exited else "")
        hint = f"  {next_step}\n" if next_step else ""
        sys.stderr.write(f"mcptest: {error.message}\n{hint}")
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
        "  this is a bug in mcptest; run the same command with --debug for details\n"
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
    if not argv or argv[0] in {"-h", "--help"} or argv[0] == "help":
        words = list(argv[1:])
        if not argv or argv[0] != "help" or set(words) <= {"--all", "-h", "--help"}:
            sys.stdout.write(_overview(everything="--all" in words))
            return ExitCode.OK if argv else ExitCode.USAGE
        return _dispatch([*words, "--help"])
    name = argv[0]
    if name not in COMMANDS:
        near = close_matches(name, (*COMMANDS, "--help", "--version"), n=1)
        hint = f"did you mean {near[0]}?" if near else "mcptest help --all lists the commands"
        kind = "option" if name.startswith("-") else "command"
        raise UsageError(f"unknown {kind}: {name}", hint=hint)
    _import_msgspec_alone()
    parser = parser_of(name)
    own, command = _split_at_dashes(argv[1:])
    arguments = parser.parse_args(own)
    arguments.server_command = command
    interrupt_on_signals()
    cli = _import(name, "cli")
    _show_start(name, arguments)
    run_command = getattr(cli, "run", None) or getattr(_import(name, "run"), f"run_{name}")
    return cast("int", run_command(arguments))


_BEFORE_A_LINE = 0.7
"""Seconds: what a command says within them is soon enough."""


def _show_start(name: str, arguments: argparse.Namespace) -> None:
    """A terminal does not stay blank while a server starts."""
    words, terminal = _starting(arguments), getattr(sys.stderr, "unmasked", None)
    plain = getattr(arguments, "quiet", False) or getattr(arguments, "no_color", False)
    is_proxy = name == "intercept" or getattr(arguments, "proxy", False)
    if not words or plain or is_proxy or terminal is None or not terminal.isatty():
        return
    began = time.monotonic()

    def show(meanwhile: Meanwhile) -> None:
        if meanwhile.lasts(_BEFORE_A_LINE):
            display = importlib.import_module("mcptest.commands.live_display")
            display.show_start(meanwhile, redaction.text(words), terminal, began=began)

    Meanwhile(show)


def _starting(arguments: argparse.Namespace) -> str:
    """What the command waits for; nothing where no server is named."""
    server = getattr(arguments, "server", None)
    if not isinstance(server, str):
        server = ""
    if "://" in server:
        return f"connecting to {server.partition('?')[0]}"
    program = next(iter([*arguments.server_command, *server.split()]), "")
    return f"starting {program.rpartition('/')[2] or program}" if program else ""


def _overview(*, everything: bool = False) -> str:
    """The commands by what a person wants to do; those for later are only named at first."""
    first = [name for names in FIRST_SCREEN.values() for name in names]
    later = [name for name in COMMANDS if name not in first]
    groups = {**FIRST_SCREEN, **({"more": later} if everything else {})}
    width = max(len(name) for names in groups.values() for name in names)
    shown = "\n\n".join(
        "\n".join([f"{title}:", *(f"  {name:<{width}}  {COMMANDS[name]}" for name in names)])
        for title, names in groups.items()
    )
    if not everything:
        named = textwrap.fill(", ".join(later), 76, initial_indent="  ", subsequent_indent="  ")
        shown += f"\n\nmore (mcptest help --all):\n{named}"
    codes = textwrap.fill(
        ", ".join(f"{code} {text.partition(';')[0]}" for code, text in EXIT_CODES.items()),
        78,
        initial_indent="exit codes: ",
        subsequent_indent=" " * 12,
    )
    return (
        "usage: mcptest COMMAND [OPTIONS]\n\n"
        "Tells, with proof, whether an MCP server or client works and conforms.\n\n"
        f"{shown}\n\n{help_page()}\n{codes}\n"
    )


def parser_of(name: str) -> Parser:
    """The parser of one command, as its module configures it."""
    parser = Parser(prog=f"mcptest {name}")
    parser.set_defaults(command_name=name)
    configure_command(name, parser)
    return parser


def help_page(command: str = "", action: str = "") -> str:
    """What `--help` says around the options: what it is for; examples, exit codes, what to see."""
    name = f"help-{action}.txt" if action else "help.txt"
    folder = os.path.dirname(__file__)  # noqa: PTH120 - help is given without pathlib
    try:
        with open(f"{folder}/{command}/{name}", encoding="utf-8") as page:  # noqa: PTH123 - the same
            return page.read()
    except FileNotFoundError:
        return ""


def configure_command(name: str, parser: argparse.ArgumentParser) -> None:
    _import(name, "cli").configure(parser)


def _import(command: str, part: str) -> ModuleType:
    return importlib.import_module(f"mcptest.commands.{command}.{part}")


def _import_msgspec_alone() -> None:
    """Without typing_extensions, of which it needs nothing that our Python lacks.

    msgspec takes it where it is installed, and it takes 15 modules with it: a twentieth of a whole
    short run (docs/decisions/0027-plain-start.md).
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


# -- What was meant where a word of the command line is mistyped ---------------------------------

_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")
_UNKNOWN = re.compile(r"unknown options?: (-[^\s=]+)")


def nearest_word(complaint: str, options: Iterable[str]) -> str:
    """The option or choice that is near to the one that argparse complains of, or nothing."""
    if found := _UNKNOWN.search(complaint):
        typed, known = found[1], list(options)
    elif found := _CHOICE.search(complaint):
        typed, known = found[1], re.findall(r"[\w.-]+", found[2])
    else:
        return ""
    return next(iter(close_matches(typed, known, n=1, cutoff=0.7)), "")


_PLAIN = (
    (r"^argument ", ""),
    (r"^ACTION: invalid choice: '(.*?)' .*", r"unknown action: \1"),
    (r"invalid choice: '(.*?)' \(choose from (.*)\)", r"\1 is not one of \2"),
    (r"^([-/\w]+): expected (?:one|at least one) argument$", r"\1 needs a value"),
    (r"invalid int value: '(.*)'", r"\1 is not a whole number"),
    (r"invalid float value: '(.*)'", r"\1 is not a number"),
    (r"^the following arguments are required: ", "missing: "),
)
"""What argparse says, and how we say it."""


def in_plain_words(complaint: str) -> str:
    for said, words in _PLAIN:
        complaint, found = re.subn(said, words, complaint)
        if found and "is not one of" in words:
            complaint = complaint.replace("'", "")
    return complaint


# -- The form of `--help`: options stand in their groups, narrow terminals get narrow text --------

_COLUMN = re.compile(r"see also: | *\S+ {2,}| *")
"""Where the text of a line in a list begins: behind its first column."""
_COMMAND_LINES = ("  mcptest ", "      ")
"""How an example and the rest of a long one begin: broken elsewhere they could not be pasted."""


_EXIT_CODE = re.compile(r"^  (\d+)$", re.MULTILINE)


def _with_its_meaning(code: re.Match[str]) -> str:
    return f"  {code[1]:<3}  {EXIT_CODES[code[1]]}"


def _usage(parser: argparse.ArgumentParser) -> str:
    """What must be given, and that there are options: they have their place below."""
    actions = parser._actions  # noqa: SLF001 - argparse has no other way to ask
    needed = [one for one in actions if one.option_strings and one.required]
    words = [parser.prog, *(f"{one.option_strings[-1]} {one.metavar}" for one in needed)]
    words += ["[OPTIONS]", *(_positional(one) for one in actions if not one.option_strings)]
    takes_a_server = any("--server" in one.option_strings and one.metavar == "S" for one in actions)
    return " ".join([*words, *(["[-- COMMAND]"] if takes_a_server else [])]).replace("%", "%%")


def _positional(action: argparse.Action) -> str:
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the same
        return f"{action.metavar} ..."
    choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
    name = str(action.metavar or choices or action.dest)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(str(action.nargs), name)


def _wrap_block(block: str, width: int) -> str:
    """As it is written; on a narrow terminal paragraphs and lists are made to fit."""
    lines = block.split("\n")
    if max(map(len, lines)) <= width:
        return block
    if not any(line.startswith(" ") for line in lines):  # a paragraph
        lines = [" ".join(lines)]
    fitted = []
    for line in lines:
        column = _COLUMN.match(line)
        indent = " " * len(column[0] if column else "")
        whole = line.startswith(_COMMAND_LINES)
        wrap = textwrap.TextWrapper(
            width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        fitted.append(line if whole else wrap.fill(line))
    return "\n".join(fitted)
