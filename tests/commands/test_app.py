"""From arguments to one command: help, messages for people, exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcptest import __version__
from mcptest.__main__ import main
from mcptest.commands import app
from mcptest.core.errors import ErrorKind, McptestError, PeerError, UsageError


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A command `try` whose body the test sets."""
    module = SimpleNamespace(configure=_configure, run=lambda arguments: 0)
    monkeypatch.setitem(app.COMMANDS, "try", "try something")
    monkeypatch.setitem(sys.modules, "mcptest.commands.try", SimpleNamespace(cli=module))
    monkeypatch.setitem(sys.modules, "mcptest.commands.try.cli", module)
    return module


def _configure(parser: Any) -> None:
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--debug", action="store_true")


def fails_with(command: Any, error: BaseException) -> None:
    def run(arguments: Any) -> int:
        raise error

    command.run = run


def test_without_a_command_the_overview_is_shown_and_nothing_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert app.run([]) == 2
    assert "usage: mcptest COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["-h", "--help", "help"])
def test_help_begins_with_a_dozen_commands_and_names_the_others_and_the_exit_codes(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run([word]) == 0
    first, _, others = capsys.readouterr().out.partition("more (mcptest help --all):")
    described = [name for name in app.COMMANDS if f"\n  {name} " in first]
    assert 6 <= len(described) <= 12
    named = re.findall(r"[a-z]+", others.partition("examples:")[0])
    assert sorted([*described, *named]) == sorted(app.COMMANDS)
    assert "130 interrupted" in others
    assert max(map(len, (first + others).splitlines())) <= 80


def test_help_all_describes_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["help", "--all"]) == 0
    out = capsys.readouterr().out
    for name, summary in app.COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", out, re.MULTILINE)


@pytest.mark.parametrize("words", ["run", "compliance", "compliance run", "conformance client"])
def test_help_of_a_command_is_that_of_its_option(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["help", *words.split()]) == 0
    first = capsys.readouterr().out
    assert first.startswith(f"usage: mcptest {words} ")
    assert app.run([*words.split(), "--help"]) == 0
    assert capsys.readouterr().out == first


NUMBER = "did you mean --number? see mcptest try --help"


@pytest.mark.parametrize(
    ("argv", "message", "hint"),
    [
        (["recrod"], "unknown command: recrod", "did you mean record?"),
        (["xyzzy"], "unknown command: xyzzy", "mcptest help --all lists the commands"),
        (["--verison"], "unknown option: --verison", "did you mean --version?"),
        (["try", "--nmber", "3"], "unknown option", NUMBER),
        (["try", "--number", "x"], "--number: x is not a whole number", "see mcptest try --help"),
        (["try", "--num", "3"], "unknown option", NUMBER),
        (["try", "--number"], "--number needs a value", "see mcptest try --help"),
        (["record", "demo"], "missing: --out", "see mcptest record --help"),
        (
            ["lint", "--tools", "a.json", "--format", "xml"],
            "--format: xml is not one of text, json, agent, tap",
            "see mcptest lint --help",
        ),
        (["compliance"], "missing: ACTION", "see mcptest compliance --help"),
        (
            ["compliance", "rn"],
            "unknown action: rn",
            "did you mean run? see mcptest compliance --help",
        ),
        (["explain"], "missing: ID", "see mcptest explain --help"),
    ],
)
def test_a_bad_command_line_is_one_message_with_a_hint_and_exit_code_2(
    argv: list[str], message: str, hint: str, command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    first, second = captured.err.splitlines()
    assert first.startswith("mcptest: ")
    assert message in first
    assert second == f"  {hint}"


def test_what_follows_the_dashes_is_the_servers_own(command: Any) -> None:
    seen: list[Any] = []
    command.run = lambda arguments: seen.append(arguments) or 0
    app.run(["try", "--number", "3", "--", "server", "--number", "x", "--", "--debug"])
    assert seen[0].number == 3
    assert seen[0].server_command == ["server", "--number", "x", "--", "--debug"]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("bad words"), 2, "mcptest: bad words\n"),
        (PeerError(ErrorKind.EXITED, "gone", hint="try again"), 3, "mcptest: gone\n  try again\n"),
        (McptestError("a failure"), 1, "mcptest: a failure\n"),
        (KeyboardInterrupt(), 130, "mcptest: interrupted\n"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_every_end_has_its_message_and_exit_code(
    error: BaseException,
    code: int,
    message: str,
    command: Any,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "_abandon_stdout", lambda: None)
    fails_with(command, error)
    assert app.run(["try"]) == code
    assert capfd.readouterr().err == message


def test_a_defect_of_ours_is_one_message_without_a_traceback(
    command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    fails_with(command, ZeroDivisionError("oh"))
    assert app.run(["try"]) == 1
    err = capsys.readouterr().err
    assert "internal error: ZeroDivisionError: oh" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("error", "code"), [(ZeroDivisionError("oh"), 1), (PeerError(ErrorKind.TLS, "no"), 3)]
)
def test_debug_shows_the_traceback_and_keeps_the_exit_code(
    error: Exception, code: int, command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    fails_with(command, error)
    assert app.run(["try", "--debug"]) == code
    assert "Traceback" in capsys.readouterr().err
    assert app.run(["try", "--", "server", "--debug"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_letters_that_the_output_lacks_are_escaped(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    command.run = lambda arguments: sys.stdout.write("✓ done\n") and 0
    assert app.run(["try"]) == 0
    assert raw.getvalue() == b"\\u2713 done\n"


# -- the program itself --------------------------------------------------------------------


def mcptest(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mcptest", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, **options)


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_the_version_is_one_line(word: str) -> None:
    done = mcptest(word)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"mcptest {__version__}\n", "")


def test_the_installed_command_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("mcptest")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=240)
    assert done.stdout == f"mcptest {__version__}\n"


LOST = {
    ">/dev/full": "cannot write the output: No space left on device",
    ">&-": "cannot write the output: it is closed",
    "|true": "the output was closed before its end: Broken pipe",
}
REMEDY = "  the output is incomplete; write it where it fits, and let its reader finish\n"


@pytest.fixture
def into(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command whose output goes to one of these places."""

    def run(where: str, *argv: str) -> subprocess.CompletedProcess[str]:
        command = shlex.join([sys.executable, "-m", "mcptest", *argv])
        words = ["sh", "-c", f"exec {command} {where if where != '|true' else ''}"]
        reading, writing = os.pipe()
        os.close(reading)
        out = writing if where == "|true" else subprocess.PIPE
        try:
            return subprocess.run(
                words, stdout=out, stderr=subprocess.PIPE, text=True, timeout=240, cwd=tmp_path
            )
        finally:
            os.close(writing)

    return run


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("where", LOST)
@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("run", "--help"),
        ("compliance", "run", "--help"),
        ("explain", "INV-003"),
        ("schema", "suite"),
        ("completion", "bash"),
        ("audit", "--server", "demo", "--json"),
        ("lint", "--server", "demo", "--format", "json"),
    ],
    ids=" ".join,
)
def test_an_output_that_got_lost_is_said_and_is_no_success(
    words: tuple[str, ...], where: str, into: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = into(where, *words)
    assert done.returncode == 1
    assert done.stderr.endswith(f"mcptest: {LOST[where]}\n{REMEDY}")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("where", LOST)
def test_a_run_whose_output_got_lost_still_writes_its_other_reports(
    where: str, tmp_path: Path, into: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    (tmp_path / "s.yaml").write_text(
        "assert: {tool: echo, args: {text: hi}, expect: {not_error: true}}\n"
    )
    for form in ([], ["--json"]):
        report = tmp_path / f"report{len(form)}.json"
        done = into(where, "run", "s.yaml", "--server", "demo", *form, "--json-file", str(report))
        assert (done.returncode, LOST[where] in done.stderr) == (1, True)
        assert json.loads(report.read_bytes())["results"][0]["status"] == "PASS"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("where", [">/dev/full", ">&-", ">&- 2>&-"])
def test_a_version_that_can_not_be_written_is_no_success(
    where: str, into: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = into(where, "--version")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == ("2>&-" not in where)


def test_diagnostics_that_can_not_be_written_do_no_harm(
    into: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    for where in ("2>&-", "<&- 2>&-", "2>/dev/full"):
        done = into(where, "audit", "--server", "demo", "--json")
        assert done.returncode == 0
        assert json.loads(done.stdout)["score"] > 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("fleet mcp.json --srver x", "did you mean --server? see mcptest fleet --help"),
        ("run s.yaml --jbos=3", "did you mean --jobs? see mcptest run --help"),
        ("compliance run --servr demo", "did you mean --server? see mcptest compliance run --help"),
        ("conformance sever", "did you mean server? see mcptest conformance --help"),
        ("schema suit", "did you mean suite? see mcptest schema --help"),
        ("lint --server demo --format agnt", "did you mean agent? see mcptest lint --help"),
        ("run --unlike-anything", "  see mcptest run --help"),
        ("--versoin", "did you mean --version?"),
        ("rn", "did you mean run?"),
    ],
)
def test_a_word_that_is_mistyped_has_what_was_meant_beside_it(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(typed.split()) == 2
    assert capsys.readouterr().err.rstrip().endswith(meant)


# -- the spelling of Go, which mcp-assert has ------------------------------------------------------

# fmt: off
FLAGS_OF_MCP_ASSERT = {
    "run": "suite fixture server docker trials timeout json junit markdown badge baseline "
           "save-baseline fix reuse-server",
    "ci": "suite fixture server docker timeout junit markdown badge baseline save-baseline fix "
          "reuse-server threshold fail-on-regression",
    "matrix": "suite languages fixture timeout",
    "init": "server fixture timeout",
    "coverage": "suite server timeout coverage-json",
    "generate": "server output fixture timeout overwrite include-writes transport headers",
    "snapshot": "suite fixture server docker update timeout",
    "watch": "suite fixture server interval timeout",
    "intercept": "server trajectory timeout",
    "audit": "server transport headers timeout json docker output include-writes",
    "fuzz": "server transport headers timeout json runs seed tool junit markdown",
    "lint": "server transport headers timeout json threshold call-tools max-response-kb "
            "detect-nondeterminism strict fix skip-rules",
}
# fmt: on


@pytest.mark.parametrize("command", FLAGS_OF_MCP_ASSERT)
def test_every_flag_of_mcp_assert_is_known_with_one_dash_and_with_two(command: str) -> None:
    parser = app.parser_of(command)
    for flag in FLAGS_OF_MCP_ASSERT[command].split():
        assert f"--{flag}" in parser._option_string_actions
        assert parser._spelled_out([f"-{flag}"]) == [f"--{flag}"]
        assert parser._spelled_out([f"-{flag}=x y"]) == [f"--{flag}=x y"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-number", "3"], ["--number", "3"]),
        (["-number=3"], ["--number=3"]),
        (["-debug"], ["--debug"]),
        (["--debug=true"], ["--debug"]),
        (["-debug=T"], ["--debug"]),
        (["--debug=false"], []),
        (["--debug", "--debug=0"], []),
        (["--debug=0", "--debug=1"], ["--debug"]),
        (["--debug=maybe"], ["--debug=maybe"]),
        (["-h"], ["-h"]),
        (["-nu=3"], ["-nu=3"]),
        (["-d"], ["-d"]),
        (["number=3", "-3", "-"], ["number=3", "-3", "-"]),
        (["--number=true"], ["--number=true"]),
    ],
)
def test_options_may_be_spelled_as_in_go(command: Any, words: list[str], told: list[str]) -> None:
    assert app.parser_of("try")._spelled_out(words) == told


def test_what_is_neither_true_nor_false_is_refused(
    command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["try", "--debug=maybe"]) == 2
    assert "maybe" in capsys.readouterr().err


def test_options_of_an_action_may_be_spelled_as_in_go(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["compliance", "rules", "-json=true"]) == 0
    assert capsys.readouterr().out.startswith(("{", "["))


# -- where it runs ---------------------------------------------------------------------------------


def test_on_windows_it_says_at_once_where_it_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(sys, "argv", ["mcptest", "run"])
    assert main() == 2
    first, then = capsys.readouterr().err.splitlines()
    assert first == "mcptest: Windows is not supported; mcptest runs on Linux and macOS"
    assert "WSL" in then
