"""`mcptest completion SHELL`: a script that lets a shell complete our command lines.

The script is that of argcomplete. At each Tab it starts mcptest with the line in its environment,
and `answer` says what may come next: from the parser of the command that stands on the line.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from argcomplete import autocomplete
from argcomplete.completers import DirectoriesCompleter, FilesCompleter, SuppressCompleter
from argcomplete.shell_integration import shellcode

from mcptest.commands.app import COMMANDS, Parser, configure_command
from mcptest.commands.options import HIDDEN, OptionGroup
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.revision import Revision

SHELLS = ("bash", "zsh", "fish")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/+-]*")
"""Others would have to be quoted, and a name out of somebody's file must never become a command."""
Completer = Callable[..., Iterable[str] | Mapping[str, str]]
"""What argcomplete asks for values; in a mapping each has its meaning, which zsh and fish show."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser)
    add("shell", "shell to print the script for", choices=SHELLS)
    add("--debug", HIDDEN)


def run(arguments: argparse.Namespace) -> int:
    sys.stdout.write(shellcode(["mcptest"], shell=arguments.shell))
    return ExitCode.OK


def answer() -> None:
    """Tell the shell that asks what may come next, and leave."""
    words = os.environ.get("COMP_LINE", "").split()
    autocomplete(
        parser_for(words),
        always_complete_options=False,
        validator=lambda value, typed: value.lower().startswith(typed.lower()),
    )


def parser_for(words: list[str]) -> argparse.ArgumentParser:
    """A parser that knows all commands by name, and the one that is named in full."""
    parser = Parser(prog="mcptest")
    if "--" in words:  # then come the words of somebody else's command
        _complete(parser.add_argument("words", nargs=argparse.REMAINDER), FilesCompleter())
        return parser
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if name in words[1:2]:
            configure_command(name, command)
            _add_completers(command)
    return parser


def _add_completers(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the same
            for below in action.choices.values():
                _add_completers(below)
        elif action.help == argparse.SUPPRESS:
            _complete(action, SuppressCompleter())
        elif action.choices is None and action.nargs != 0:
            known = _BY_DEST.get(action.dest) or _BY_METAVAR.get(str(action.metavar))
            _complete(action, known or (lambda **_: ()))


def _complete(action: argparse.Action, completer: Completer) -> None:
    action.completer = completer  # type: ignore[attr-defined]  # how argcomplete is told


# -- values --------------------------------------------------------------------------------------


def _revisions(**_: object) -> list[str]:
    return ["auto", *map(str, Revision)]


def _lint_codes(**_: object) -> dict[str, str]:
    from mcptest.rules.lint.linter import all_lint_rules

    return {rule.code: rule.title for rule in all_lint_rules()}


def _rules(**_: object) -> dict[str, str]:
    from mcptest.commands.knowledge import titles

    return titles()


def _scenarios(**_: object) -> list[str]:
    from mcptest.core.verdict import Side
    from mcptest.probe.conformance.scenario_catalogue import scenario_table

    return [*scenario_table(Side.CLIENT), *scenario_table(Side.SERVER)]


def _drivers(**_: object) -> dict[str, str]:
    from mcptest.probe.conformance.client.driver import drivers

    return {one.name: one.library for one in drivers()}


def _servers(parsed_args: argparse.Namespace, **_: object) -> dict[str, str]:
    names = server_names(getattr(parsed_args, "mcp_config", None))
    return {
        "demo": "the demo server of mcptest",
        **dict.fromkeys(names, "from the client configuration"),
    }


def server_names(path: str | Path | None) -> list[str]:
    """The names in a client configuration that can be typed as they are; none if it is broken."""
    from mcptest.session.server_spec import DEFAULT_CONFIG, servers_in

    try:
        names = servers_in(Path(path or DEFAULT_CONFIG).expanduser())
    except (UsageError, RuntimeError):  # then there is nothing to offer, and no word
        return []
    return [name for name in names if _PLAIN_NAME.fullmatch(name)]


_BY_DEST: dict[str, Completer] = {"scenario": _scenarios, "driver": _drivers}
_BY_METAVAR: dict[str, Completer] = {
    **dict.fromkeys(("FILE", "PATH", "SUITE", "CAPTURE", "CONFIG", "CMD"), FilesCompleter()),
    **dict.fromkeys(("REV", "FROM", "TO"), _revisions),
    "DIR": DirectoriesCompleter(),
    "ID": _rules,
    "CODES": _lint_codes,
    "S": _servers,
    "SERVER": _servers,
}
"""What a value is follows from its metavar, which stands in the help for people to read."""
