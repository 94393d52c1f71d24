"""`--help` of every command: what it is for, its options in groups, and examples that work."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcptest.commands import app
from tests.e2e.driving import mcptest

ROOT = Path(__file__).parent.parent.parent
WIDTH = 80
SECTIONS = re.compile(r"^(examples|exit codes|see also):", re.MULTILINE)


def parsers_of(name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Of a command and every command below it."""
    parser = app.parser_of(name)
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below, one in action.choices.items():
                yield f"{name} {below}", one


NAMES = [name for command in app.COMMANDS for name, _ in parsers_of(command)]


def parser_named(name: str) -> argparse.ArgumentParser:
    return dict(parsers_of(name.split(" ", maxsplit=1)[0]))[name]


@pytest.fixture(autouse=True)
def _a_usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    app._help_width.cache_clear()


def section(parser: argparse.ArgumentParser, title: str) -> str:
    """What the epilog has below this title, or behind it."""
    found = re.search(
        rf"^{title}:\s*(.*?)(?=\n\n|\Z)", parser.epilog or "", re.DOTALL | re.MULTILINE
    )
    assert found, f"{parser.prog} --help has no {title}"
    return found[1].strip()


def examples_of(parser: argparse.ArgumentParser) -> list[str]:
    """Command lines; one too long for a line is broken where a shell would take it."""
    lines = section(parser, "examples").replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines]


@pytest.mark.parametrize("name", NAMES)
def test_help_says_what_a_command_is_for_and_how_it_ends(name: str) -> None:
    parser = parser_named(name)
    text = parser.format_help()
    assert text.startswith(f"usage: mcptest {name} ")
    assert SECTIONS.findall(text) == ["examples", "exit codes", "see also"]
    assert max(map(len, text.splitlines())) <= WIDTH
    about = (parser.description or "").strip()
    assert about[0].isupper() or about.startswith("mcptest")
    assert about.endswith(".")
    assert len(about) > 80
    assert re.search(r"^  0 +\S", text, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_says_what_it_does_and_stands_in_a_group(name: str) -> None:
    parser = parser_named(name)
    for action in parser._actions:
        if action.help is not argparse.SUPPRESS:
            assert action.help or isinstance(action, argparse._SubParsersAction), action
    assert len(parser._optionals._group_actions) <= 8


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_command_lines_of_this_command(name: str) -> None:
    examples = examples_of(parser_named(name))
    assert len(examples) >= 2
    assert len(set(examples)) == len(examples)
    for example in examples:
        line, _, _ = example.partition(" > ")
        program, *words = shlex.split(line)
        assert program == "mcptest"
        assert " ".join(words).startswith(name)
        own, command = app._split_at_dashes(words[1:])
        app.parser_of(words[0]).parse_args(own)
        assert command or "--" not in words


@pytest.mark.parametrize("name", NAMES)
def test_what_is_named_to_be_seen_is_there(name: str) -> None:
    parser = parser_named(name)
    *others, page = re.split(r",\s+", section(parser, "see also"))
    assert {f"mcptest {one}" for one in NAMES if one != name}.issuperset(others)
    assert (ROOT / page).is_file()
    for other in re.findall(r"`mcptest ([a-z]+)", parser.description or ""):
        assert other in app.COMMANDS


@pytest.mark.parametrize("name", NAMES)
def test_a_time_that_the_help_names_is_the_default(name: str) -> None:
    """A command with a default of its own says so, and not what other commands have."""
    for action in parser_named(name)._actions:
        is_shown = action.help != argparse.SUPPRESS
        if "--timeout" in action.option_strings and action.default and is_shown:
            shown = re.search(r"\(default: (\w+)", action.help or "")
            assert shown, name
            assert shown[1] == action.default


def test_a_command_shares_its_options_but_not_its_words() -> None:
    words = [parser_named(name).description for name in NAMES]
    assert len(set(words)) == len(words)


def test_help_is_on_stdout_and_no_failure() -> None:
    for words in (("fuzz",), ("compliance", "diff")):
        done = mcptest(*words, "--help")
        assert (done.code, done.err) == (0, "")
        assert "see also:" in done.out


def test_on_a_narrow_terminal_only_what_must_not_be_broken_is_wider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    app._help_width.cache_clear()
    text = parser_named("fuzz").format_help()
    wide = [line for line in text.splitlines() if len(line) > 50]
    assert all(line.startswith(("  mcptest ", "usage: ")) for line in wide)
    assert "see also: mcptest property, mcptest audit,\n          docs/commands/fuzz.md" in text
    assert "  3    the server could not be started or\n       reached\n" in text
