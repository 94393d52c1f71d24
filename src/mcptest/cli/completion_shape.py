"""What can be completed, read from the parsers of all commands: there is no second list of options.

What a value is follows from its metavar, which stands in the help for people to read.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from mcptest.cli.app import COMMANDS, parser_of

_KINDS = {
    "FILE": "file",
    "PATH": "file",
    "SUITE": "file",
    "CAPTURE": "file",
    "CONFIG": "file",
    "CMD": "file",
    "DIR": "folder",
    "REV": "revision",
    "FROM": "revision",
    "TO": "revision",
    "ID": "rule",
    "CODES": "lint code",
    "S": "server",
}
_HELP = 90


def shape_of_all() -> dict[str, Any]:
    """Of every command. Imports all of them, which takes a while: see `completion_memory`."""
    commands = {}
    for name, (_, summary) in COMMANDS.items():
        commands[name] = {**_shape(parser_of(name)), "help": summary}
    options = [_plain("--help", "list the commands"), _plain("--version", "which one this is")]
    return {"commands": commands, "options": options, "positionals": [], "values": _values()}


def _plain(name: str, words: str) -> dict[str, Any]:
    return {"names": [name], "help": words, "kind": "", "choices": {}, "repeats": False}


def _shape(parser: argparse.ArgumentParser) -> dict[str, Any]:
    options, positionals, commands = [], [], {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the same
            helps = {one.dest: one.help for one in action._choices_actions}  # noqa: SLF001 - the same
            for name, sub in action.choices.items():
                commands[name] = {**_shape(sub), "help": _words(helps.get(name))}
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            options.append({**_value(action), "names": action.option_strings[::-1]})
        else:
            positionals.append(_value(action))
    return {"options": options, "positionals": positionals, "commands": commands}


def _value(action: argparse.Action) -> dict[str, Any]:
    takes = action.nargs != 0
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    choices = dict.fromkeys(map(str, action.choices or ()), "")
    kind = "choice" if choices else _KINDS.get(metavar, "any")
    if action.dest in {"scenario", "driver"}:
        kind = action.dest
    return {
        "help": _words(action.help),
        "kind": kind if takes else "",
        "choices": choices,
        "repeats": isinstance(action, argparse._AppendAction) or action.nargs in {"*", "+"},  # noqa: SLF001 - the same
    }


def _words(text: str | None) -> str:
    """In one line, as short as a list can bear."""
    plain = " ".join((text or "").replace("%%", "%").split())
    return plain if len(plain) <= _HELP else plain[: _HELP - 1] + "…"


def _values() -> dict[str, dict[str, str]]:
    """Values by their kind, each with what it means."""
    from mcptest.clients.driver import drivers
    from mcptest.explore.lint.catalogue import all_lint_rules
    from mcptest.model.revision import Revision
    from mcptest.report.corpus_rules import corpus_rules
    from mcptest.rules.catalogue import all_rules
    from mcptest.rules.composition import COMPOSITION_RULES

    lint = {rule.code: _words(rule.title) for rule in all_lint_rules()}
    titles = {name: rule.title for name, rule in corpus_rules().items()}
    titles |= {name: rule.title for name, rule in COMPOSITION_RULES.items()}
    titles |= {rule.id: rule.title for rule in all_rules()}
    rules = {name: _words(title) for name, title in sorted(titles.items())}
    return {
        "revision": {"auto": "", **{str(one): "" for one in Revision}},
        "rule": {**rules, **lint},
        "lint code": lint,
        "server": {"demo": "the server that ships with mcptest"},
        "scenario": _scenarios(),
        "driver": {one.name: _words(one.library) for one in drivers()},
    }


def _scenarios() -> dict[str, str]:
    clients = importlib.import_module("mcptest.clients.catalogue")
    servers = importlib.import_module("mcptest.run.conformance.scenarios.catalogue")
    every = [*clients.client_scenarios("all", None), *servers.server_scenarios("all", None)]
    return {one.name: "" for one in every}
