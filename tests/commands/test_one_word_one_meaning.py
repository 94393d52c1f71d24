"""One word, one meaning: what the parsers of all commands have in common, asked of the parsers."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest

from mcptest.commands import app
from mcptest.commands.options import _Renamed, env_of, headers_of, server_words, suite_paths
from mcptest.core.errors import UsageError
from tests.e2e.driving import mcptest
from tests.terminal.test_help import NAMES, parser_named

REACHING = ("--header", "--token-env", "--env", "--env-file", "--clean-env", "--cwd")
NAMING = ("--server", "--mcp-config", "--transport", *REACHING)
TALKING = ("--spec-version", "--timeout", "--startup-timeout")
FIRST = {
    *("audit", "lint", "fuzz", "property", "generate", "record", "intercept", "doctor"),
    *("compliance run", "conformance server"),
}
"""Commands without another argument: the server may be the first."""
ALSO = {"init", "coverage", "run", "ci", "snapshot", "watch"}
"""Commands that name files or folders first."""
GROUPS = {
    "options": {"selection", "server", "client", "execution", "pass/fail criteria"}
    | {"output files", "reports", "messages"},
    "record": {"proxy for a server with a URL"},
    "intercept": {"proxy for a server with a URL"},
    "snapshot": {"golden files"},
    "watch": {"watching"},
    "serve": {"protocol", "HTTP", "content"},
    "mcp": {"permissions", "HTTP"},
}
OLD_WORDS = {"--include-writes", "--threshold", "--min-score", "--output-dir", "--headers"}
RENAMED = {
    *((name, "--capture", "--save-capture") for name in ("run", "ci", "matrix", "snapshot")),
    *((name, "--capture", "--save-capture") for name in ("watch", "audit", "lint", "fuzz")),
    *((name, "--capture", "--save-capture") for name in ("property", "coverage", "doctor")),
    *((name, "--capture", "--save-capture") for name in ("fleet", "generate", "init")),
    *((name, "--capture", "--save-capture") for name in ("intercept", "compliance run")),
    *((name, "--include-writes", "--allow-writes") for name in ("audit", "fuzz")),
    *((name, "--include-writes", "--allow-writes") for name in ("generate", "init")),
    *((name, "--threshold", "--fail-under") for name in ("ci", "coverage")),
    *((name, "--min-score", "--fail-under") for name in ("audit", "fleet")),
    *((name, "--fixture", "--map") for name in ("compliance run", "conformance server")),
    *((f"conformance {name}", "--output-dir", "--output") for name in ("client", "server")),
    ("conformance judge", "--output-dir", "--output"),
    ("lint", "--threshold", "--max-findings"),
    ("record", "--format", "--form"),
    ("intercept", "--timeout", "--max-time"),
    ("schema", "--output", "--out"),
}
NEEDED = {
    "generate": ["--output", "d"],
    "record": ["--out", "f"],
    "intercept": ["--trajectory", "t"],
    "doctor": ["--to", "draft"],
    "conformance client": ["--command", "c"],
    "conformance judge": ["--scenario", "s", "--capture", "c"],
}
"""What a command asks for besides."""
HELP_BEGINS = re.compile(r"[a-z]|HTTP|JSON|PATH|Dask|SARIF|TAP")


def shown(name: str) -> list[argparse.Action]:
    return [one for one in parser_named(name)._actions if one.help != argparse.SUPPRESS]


def options_of(name: str) -> dict[str, argparse.Action]:
    return {word: one for one in shown(name) for word in one.option_strings}


def parsed(name: str, *words: str) -> argparse.Namespace:
    command, *action = name.split()
    arguments = app.parser_of(command).parse_args([*action, *NEEDED.get(name, ()), *words])
    arguments.server_command = []
    return arguments


def text_of(action: argparse.Action) -> tuple[Any, ...]:
    """All that a person reads of an option but its default."""
    without_default = re.sub(r" *\(default: .*", "", action.help or "")
    return without_default, action.metavar, action.choices


# -- the server -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*FIRST, *ALSO}))
def test_the_server_group_reads_the_same_everywhere(name: str) -> None:
    wanted = NAMING if name == "intercept" else NAMING + TALKING  # a proxy asks nothing itself
    reference = options_of("audit")
    group = next(one for one in parser_named(name)._action_groups if one.title == "server")
    members = {word for one in group._group_actions for word in one.option_strings}
    assert members.issuperset(wanted)
    for option in wanted:
        assert text_of(options_of(name)[option]) == text_of(reference[option]), option


@pytest.mark.parametrize("name", ["matrix", "fleet", "conformance client"])
def test_a_command_with_another_way_to_name_its_peer_has_the_rest_in_the_same_words(
    name: str,
) -> None:
    reference, own = options_of("audit"), options_of(name)
    alike = {"matrix": (*REACHING, *TALKING), "fleet": ("--clean-env", *TALKING)}
    for option in alike.get(name, ()):
        assert text_of(own[option]) == text_of(reference[option]), option
    if name == "conformance client":
        for option in ("--env", "--env-file", "--clean-env", "--cwd"):
            words = (reference[option].help or "").replace("the server", "the client")
            assert own[option].help == words


@pytest.mark.parametrize("name", NAMES)
def test_the_server_is_the_first_argument_wherever_there_is_no_other(name: str) -> None:
    arguments = [one for one in shown(name) if not one.option_strings]
    assert any(one.metavar == "SERVER" for one in arguments) == (name in FIRST)
    if name in FIRST:
        assert len(arguments) == 1
        assert parsed(name, "npx -y s").server == "npx -y s"
        assert parsed(name, "--verbose", "npx -y s").server == "npx -y s"
        assert parsed(name, "--server", "npx -y s").server == "npx -y s"
        assert parsed(name).server is None


@pytest.mark.parametrize("name", sorted(FIRST))
def test_a_server_that_is_given_twice_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="the server is given twice"):
        parsed(name, "demo", "--server", "demo")
    with pytest.raises(UsageError, match="the server is given twice"):
        parsed(name, "--server", "one", "--server", "two")


@pytest.mark.parametrize("words", ["audit demo -- demo", "run s.yaml --server demo -- demo"])
def test_a_server_before_and_after_the_dashes_is_refused(words: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("assert: {tool: t, expect: {not_error: true}}\n")
    done = mcptest(*words.split(), cwd=tmp_path)
    assert (done.code, done.err.splitlines()[0]) == (2, "mcptest: the server is given twice")


def test_a_command_without_quotes_is_told_how_to_be_written() -> None:
    done = mcptest("audit", "npx", "-y", "my-server")
    assert done.code == 2
    assert 'quote the whole command, "npx -y my-server", or put it after --' in done.err
    done = mcptest("audit", "demo", "--tol", "add")
    assert (done.code, "did you mean --tool?" in done.err) == (2, True)


# -- the environment and the token ----------------------------------------------------------------


def test_a_variable_is_set_passed_on_or_read_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED", "mine")
    file = tmp_path / "env"
    file.write_text("# a comment\n\nexport A=1\nB='two words'\nC=\"x=y\"\nD=file\n")
    arguments = parsed("audit", "x", "--env-file", str(file), "--env", "D=d", "--env", "PASSED")
    assert env_of(arguments) == {"A": "1", "B": "two words", "C": "x=y", "D": "d", "PASSED": "mine"}


def test_a_line_that_is_no_variable_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("A=1\noops\n")
    with pytest.raises(UsageError, match=r"env:2: expected NAME=VALUE"):
        env_of(parsed("audit", "x", "--env-file", str(file)))


@pytest.mark.parametrize("option", ["--env", "--token-env"])
def test_a_variable_that_is_not_set_is_refused(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GONE", raising=False)
    with pytest.raises(UsageError, match=f"{option}: the variable GONE is not set"):
        server_words(parsed("audit", "http://h/mcp", option, "GONE"))


def test_the_token_of_a_variable_is_sent_as_a_bearer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIN_WORD", "t-123456")
    arguments = parsed("audit", "http://h/mcp", "--token-env", "PLAIN_WORD", "--header", "A=b")
    assert headers_of(arguments) == {"A": "b", "Authorization": "Bearer t-123456"}
    twice = parsed("audit", "x", "--token-env", "PLAIN_WORD", "--header", "authorization=x")
    with pytest.raises(UsageError, match="both set Authorization"):
        headers_of(twice)


# -- words ----------------------------------------------------------------------------------------


def test_every_former_spelling_is_known_and_no_other() -> None:
    found = {
        (name, one.option_strings[0], one.of.option_strings[-1])
        for name in NAMES
        for one in parser_named(name)._actions
        if isinstance(one, _Renamed)
    }
    assert found == RENAMED


@pytest.mark.parametrize(("name", "old", "new"), sorted(RENAMED))
def test_a_former_spelling_does_the_same_and_names_the_new_one(
    name: str, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    action = options_of(name)[new]
    value = [] if action.nargs == 0 else [[*(action.choices or ["7"])][-1]]
    now = parsed(name, new, *value)
    assert capsys.readouterr().err == ""
    assert parsed(name, old, *value) == now
    assert capsys.readouterr().err == f"mcptest: {old} is now {new}\n"
    assert now != parsed(name)


def test_a_capture_of_a_scenario_may_still_be_named_as_before(tmp_path: Path) -> None:
    words = ("serve", "--scenario", "tools_call", "--transport", "stdio", "--capture", "c.jsonl")
    done = mcptest(*words, cwd=tmp_path)
    assert "--capture with --scenario is now --save-capture" in done.err
    assert (tmp_path / "c.jsonl").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_no_option_that_is_shown_is_an_old_word(name: str) -> None:
    assert OLD_WORDS.isdisjoint(options_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_described_in_the_same_form(name: str) -> None:
    """It begins with a verb or a noun in lower case, ends without a period, names its default."""
    for one in shown(name):
        if isinstance(one, argparse._SubParsersAction) or "--help" in one.option_strings:
            continue
        words = (one.help or "").replace("%%", "%")
        assert HELP_BEGINS.match(words), words
        assert not words.endswith("."), words
        assert "may repeat" not in words
        is_repeated = isinstance(one, argparse._AppendAction)
        if is_repeated and one.metavar != "CODES":
            assert words.endswith("(repeatable)"), words
        assert words.count("(") == words.count(")")


@pytest.mark.parametrize("name", NAMES)
def test_the_groups_have_the_same_titles_everywhere(name: str) -> None:
    titles = [one.title for one in parser_named(name)._action_groups if one._group_actions]
    assert len(set(titles)) == len(titles)
    own = GROUPS["options"] | GROUPS.get(name, set()) | {"options", "positional arguments"}
    assert own.issuperset(titles)


@pytest.mark.parametrize("name", NAMES)
def test_the_exit_codes_say_the_same_everywhere(name: str) -> None:
    text = (parser_named(name).epilog or "").partition("exit codes:\n")[2].partition("\n\n")[0]
    codes = dict(re.findall(r"^  (\d+) +(.*)", text, re.MULTILINE))
    assert {"0", "2"} <= set(codes) <= set(app.EXIT_CODES)
    assert codes["2"] == app.EXIT_CODES["2"]
    assert codes.get("130") in {None, app.EXIT_CODES["130"], "interrupted"}


@pytest.mark.parametrize("summary", app.COMMANDS.values())
def test_a_summary_begins_with_a_verb(summary: str) -> None:
    verbs = "run call check send test write show compare rerun record judge explain find serve"
    assert summary.split(maxsplit=1)[0] in (*verbs.split(), "render", "print")


def test_a_hidden_word_is_never_proposed() -> None:
    for typed in ("--treshold", "--headrs", "--min-scor", "--include-write"):
        done = mcptest("audit", "--server", "demo", typed, "x")
        assert done.code == 2
        proposed = re.search(r"did you mean (\S+)\?", done.err)
        assert proposed is None or proposed[1] in options_of("audit")


# -- suites of this folder ------------------------------------------------------------------------


def test_suites_are_looked_for_where_they_usually_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no suite is named"):
        suite_paths([])
    (tmp_path / "mcptest.yaml").touch()
    assert suite_paths([]) == ["mcptest.yaml"]
    (tmp_path / "evals").mkdir()
    assert suite_paths([]) == ["evals", "mcptest.yaml"]
    assert suite_paths(["other"]) == ["other"]


@pytest.mark.parametrize("command", ["run", "snapshot --update", "coverage", "ci"])
def test_a_command_for_suites_needs_no_path_where_evals_is(command: str, tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "add.yaml").write_text(
        "assert: {tool: add, args: {a: 1, b: 2}, expect: {contains: ['3']}}\n"
    )
    done = mcptest(*command.split(), "--server", "demo", cwd=tmp_path)
    assert done.code == 0, done.said
