"""What `--help` prints: a page of the manual around the options, which stand in groups.

All of it is looked up only when somebody asks for help, so a command costs nothing for being
explained well.
"""

from __future__ import annotations

import argparse
import textwrap

from mcptest.cli import manual_of_rules, manual_of_servers, manual_of_suites
from mcptest.cli.manual_page import Page

PAGES: dict[str, Page] = {
    **manual_of_suites.PAGES,
    **manual_of_servers.PAGES,
    **manual_of_rules.PAGES,
}
_WIDEST = 80
_PROGRAM = "mcptest "
_NO_BREAK = "\x00"
"""Stands for a space at which no line may end; textwrap breaks at what Unicode has for that."""
# fmt: off
_GROUPS = {
    "what is tested": (
        "--tool", "--tools", "--property", "--rule", "--scenario", "--suite", "--requirements",
        "--select", "--ignore", "--of", "--input", "--replay", "--include-writes", "--allow-tool",
        "--call-tools", "--detect-nondeterminism", "--call", "--read", "--list", "--languages",
        "--side",
    ),
    "how it runs": (
        "--runs", "--seed", "--jobs", "--examples", "--max-time", "--docker", "--fixture",
        "--no-verify", "--fail-fast", "--database", "--no-database", "--capabilities", "--claims",
        "--shell", "--strict-fixtures", "--command", "--scheduler", "--server-timeout",
        "--capture",
    ),
    "the server": (
        "--server", "--url", "--transport", "--header", "--env", "--clean-env", "--cwd",
        "--mcp-config", "--spec-version", "--timeout", "--startup-timeout",
    ),
    "over HTTP": (
        "--host", "--port", "--port-file", "--listen", "--http", "--token", "--response",
    ),
    "what it offers": ("--root", "--era", "--page-size", "--offer", "--hide"),
    "what is good enough": (
        "--min-score", "--strict", "--threshold", "--expected-failures", "--no-invariants",
        "--separate-transports",
    ),
    "files that are written": (
        "--output", "--overwrite", "--out", "--output-dir", "--no-snapshots",
    ),
    "reports": (
        "--format", "--json", "--json-file", "--junit", "--markdown", "--badge", "--html",
        "--sarif", "--code-quality", "--tap", "--baseline", "--save-baseline", "--strict-reports",
    ),
    "what is said": ("--quiet", "--verbose", "--debug", "--no-color"),
}
# fmt: on
_WORDS = {
    "--json-file": "the JSON report as well; `mcptest report` reads it",
    "--junit": "a JUnit report as well",
    "--markdown": "a Markdown report as well",
    "--badge": "a badge for shields.io",
    "--html": "one page with everything, that needs nothing else",
    "--save-baseline": "keep the outcomes, to compare with later",
    "--baseline": "compare with the outcomes kept there",
    "--json": "as JSON on stdout, alone",
    "--format": "on stdout (text)",
    "--transport": "how it talks",
    "--tag": "tests with this tag; may repeat",
    "--no-color": "plain text",
    "--capabilities": "as for conformance client (probe)",
}


def furnish(parser: argparse.ArgumentParser) -> None:
    """Make the parser's help a page of the manual."""
    parser.usage = _usage(parser)
    _group(parser)
    page = PAGES.get(parser.prog.removeprefix(_PROGRAM))
    if page is not None:
        width = _width(parser)
        parser.description = _paragraphs(page.about, width)
        parser.epilog = "\n\n".join(_sections(page, width))


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


def _width(parser: argparse.ArgumentParser) -> int:
    room: int = parser._get_formatter()._width  # noqa: SLF001 - argparse has no other way to ask
    return min(room, _WIDEST - 2)


def _paragraphs(text: str, width: int) -> str:
    return "\n\n".join(_filled(part, width) for part in text.split("\n\n"))


def _filled(text: str, width: int, first: str = "", rest: str = "") -> str:
    filled = textwrap.fill(
        text.replace("\n", " "),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_NO_BREAK, " ")


def _sections(page: Page, width: int) -> list[str]:
    examples = "\n".join(f"  {line}" for each in page.examples for line in each.split("\n"))
    exits = "\n".join(
        _filled(text, width, f"  {code:<4} ", " " * 7) for code, text in page.exits.items()
    )
    others = [f"mcptest {name}".replace(" ", _NO_BREAK) for name in page.others]
    see = _filled(", ".join([*others, page.see]), width, "see also: ", " " * 10)
    return [f"examples:\n{examples}", *filter(None, [page.more]), f"exit codes:\n{exits}", see]


# -- options in groups ---------------------------------------------------------------------------


def _group(parser: argparse.ArgumentParser) -> None:
    """Options that are in no group yet go where they belong; those of the command itself stay."""
    plain = parser._optionals  # noqa: SLF001 - argparse shows groups, and lets nobody move between them
    titles = {group.title: group for group in parser._action_groups}  # noqa: SLF001 - the same
    for title, names in _GROUPS.items():
        mine = [one for one in plain._group_actions if set(one.option_strings) & set(names)]  # noqa: SLF001 - the same
        if not mine:
            continue
        group = titles.get(title) or parser.add_argument_group(title)
        for action in mine:
            plain._group_actions.remove(action)  # noqa: SLF001 - the same
            group._group_actions.append(action)  # noqa: SLF001 - the same
    for action in parser._actions:  # noqa: SLF001 - the same
        if action.help is None and action.option_strings:
            action.help = _WORDS.get(action.option_strings[-1])
