"""`--help` of every command: a page of the manual whose examples work."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcptest.cli import app
from mcptest.cli.manual import PAGES
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


def test_there_is_a_page_for_each_command_and_a_command_for_each_page() -> None:
    assert sorted(PAGES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_help_is_a_page_of_the_manual(name: str) -> None:
    text = parser_named(name).format_help()
    assert text.startswith(f"usage: mcptest {name} ")
    assert SECTIONS.findall(text) == ["examples", "exit codes", "see also"]
    assert max(map(len, text.splitlines())) <= WIDTH
    about = PAGES[name].about
    assert about[0].isupper() or about.startswith("mcptest")
    assert about.endswith(".")
    assert len(about) > 80
    assert re.search(r"^  0 +\S", text, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_says_what_it_does_and_stands_in_a_group(name: str) -> None:
    parser = parser_named(name)
    parser.format_help()
    for action in parser._actions:
        if action.help is not argparse.SUPPRESS:
            assert action.help or isinstance(action, argparse._SubParsersAction), action
    assert len(parser._optionals._group_actions) <= 8


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_command_lines_of_this_command(name: str) -> None:
    page = PAGES[name]
    assert len(page.examples) >= 2
    assert len(set(page.examples)) == len(page.examples)
    for example in page.examples:
        line, _, _ = example.replace("\\\n", " ").partition(" > ")
        program, *words = shlex.split(line)
        assert program == "mcptest"
        assert " ".join(words).startswith(name)
        own, command = app._split_at_dashes(words[1:])
        app.parser_of(words[0]).parse_args(own)
        assert command or "--" not in words


@pytest.mark.parametrize("name", NAMES)
def test_what_is_named_to_be_seen_is_there(name: str) -> None:
    page = PAGES[name]
    assert set(page.others) <= set(NAMES) - {name}
    assert (ROOT / page.see).is_file()
    for other in re.findall(r"`mcptest ([a-z]+)", page.about):
        assert other in app.COMMANDS


def test_the_manual_is_the_only_place_for_such_words() -> None:
    for path in (ROOT / "src" / "mcptest" / "cli").glob("*.py"):
        if path.name != "manual.py":
            assert not re.search(r"\.epilog\b|parser\.description\b", path.read_text()), path.name


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
    assert all(line.startswith("  mcptest ") for line in wide)
