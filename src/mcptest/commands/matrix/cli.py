"""`mcptest matrix`: one suite over several servers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import partial

from mcptest.commands.matrix import view
from mcptest.commands.options import (
    OptionGroup,
    add_common_options,
    add_run_options,
    add_servers_of_suites,
    add_suite_options,
    add_suite_reports,
)
from mcptest.commands.suite_command import Languages, choice_of, run_suites
from mcptest.commands.suite_reports import RunEnding
from mcptest.core.errors import UsageError
from mcptest.core.safe_text import show
from mcptest.probe.suites.server_start import chosen_target
from mcptest.probe.suites.settings import ServerChoice

_SPECIFICATION = re.compile(r"\s*([^:\s\"']+)\s*:\s*(.*?)\s*", re.DOTALL)
_WHOLLY_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'", re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    add_suite_options(parser)
    add_servers_of_suites(parser, is_option=False)
    add = OptionGroup(parser, "server")
    add("--languages NAME:SERVER,…", "servers to compare, one column each (repeatable)")
    add_run_options(parser)
    add_suite_reports(parser)
    add_common_options(parser)
    parser.set_defaults(server=None, transport=None, mcp_config=None, fix=False)


def run(arguments: argparse.Namespace) -> int:
    if arguments.server_command:
        raise UsageError("mcptest matrix takes several servers", hint="name them with --languages")
    languages = servers_of(arguments)
    names = [name for name, _ in languages]

    ending = RunEnding(as_text=partial(view.render, languages=names))
    return run_suites(arguments, languages=languages, ending=ending)


def servers_of(arguments: argparse.Namespace) -> Languages:
    """The columns, in the order in which they were named. UsageError says what is wrong."""
    found: dict[str, ServerChoice] = {}
    for text in arguments.languages:
        for name, server in parse_languages(text):
            if name in found:
                raise UsageError(f"--languages names {show(name, 60)} twice")
            choice = choice_of(arguments, server)
            chosen_target(choice)
            found[name] = choice
    if not found:
        raise UsageError("no server is given", hint="add --languages node:CMD,python:CMD")
    return tuple(found.items())


def parse_languages(text: str) -> Iterator[tuple[str, str]]:
    """`a:cmd,b:cmd` as pairs."""
    for entry in _split_at_commas(text):
        match = _SPECIFICATION.fullmatch(entry)
        if match is None or not match[2]:
            raise UsageError(
                f"invalid language spec {show(entry, 80)!r} (expected NAME:SERVER)",
                hint="quote a command that contains a comma",
            )
        quoted = _WHOLLY_QUOTED.fullmatch(match[2])
        yield match[1], (quoted[1] or quoted[2] or "") if quoted else match[2]


def _split_at_commas(text: str) -> Iterator[str]:
    """At those outside of quotes, as a shell would see them."""
    entry, quote = "", ""
    letters = iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            entry += letter + next(letters, "")
            continue
        if letter == "," and not quote:
            yield entry
            entry = ""
            continue
        if letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        entry += letter
    if quote:
        raise UsageError(f"--languages: unclosed quote in {show(text, 120)!r}")
    yield entry
