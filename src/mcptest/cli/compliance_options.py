"""The options of `mcptest compliance run`, and the command line that repeats a run."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from mcptest.cli.command_line import repeat_line, server_options
from mcptest.cli.options import (
    add_common_options,
    add_file_options,
    add_format_option,
    add_server_options,
    pairs,
)
from mcptest.cli.unwritten import add_strict_option
from mcptest.model.errors import UsageError
from mcptest.model.show import show

FORMATS = ("text", "json", "markdown", "md", "html", "agent", "tap")
FILES = ("json-file", "markdown", "html", "junit")
_LETTER = re.compile(r"A\+|[A-D][+-]?|F")


def configure_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from-suite", type=Path, metavar="FILE", help="judge as the compliance block of it says"
    )
    add_server_options(parser)
    _add_judging_options(parser)
    _add_gate_options(parser)
    _add_report_options(parser)
    add_common_options(parser)


def _add_judging_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is judged")
    add = group.add_argument
    add("--rule", action="append", default=[], metavar="ID", help="only this rule; may repeat")
    add(
        "--allow-tool",
        action="append",
        default=[],
        metavar="NAME",
        help="call this tool too, although it does not say that it only reads; may repeat",
    )
    add(
        "--fixture",
        action="append",
        default=[],
        metavar="NAME=TOOL",
        help="which tool, prompt or resource of the server is this fixture; may repeat",
    )
    add("--registry", metavar="FILE", help="another registry.yml, with its corpora beside it")
    add("--capture", type=Path, metavar="DIR", help="keep what went over the wire")


def _add_gate_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is good enough")
    add = group.add_argument
    add("--strict", action="store_true", help="a broken SHOULD fails as well")
    add("--min-grade", metavar="A-", help="fail below this grade")
    add("--baseline", type=Path, metavar="FILE", help="rules that are known to fail, with reasons")
    add("--update-baseline", action="store_true", help="write what fails now into --baseline")


def _add_report_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reports")
    add = group.add_argument
    add_format_option(add, FORMATS)
    add("--json", action="store_true", help="the same as --format json")
    for name in FILES:
        add(f"--{name}", type=Path, metavar="FILE")
    add_file_options(add)
    add("--save-scorecard", type=Path, metavar="FILE", help="keep the grade, for grade_delta")
    add("--server-label", default="", metavar="S", help="what the scorecard calls the server")
    add_strict_option(add)


def check(arguments: argparse.Namespace) -> None:
    """UsageError for options that don't go together. Nothing was run."""
    names_server = arguments.server is not None or bool(arguments.server_command)
    if arguments.from_suite is None and not names_server:
        raise UsageError(
            "no server is named",
            hint='add --server demo, --server "npx my-server", --server http://…/mcp, '
            "--from-suite FILE, or the command after --",
        )
    if arguments.update_baseline and arguments.baseline is None:
        raise UsageError("--update-baseline requires --baseline")
    if arguments.min_grade is not None and not _LETTER.fullmatch(arguments.min_grade):
        raise UsageError(f"--min-grade takes A+ to F, not {show(arguments.min_grade, 20)!r}")
    if arguments.rule:
        for option in ("min_grade", "save_scorecard"):
            if getattr(arguments, option):
                word = option.replace("_", "-")
                raise UsageError(f"--{word} needs the whole corpus: leave out --rule")


def corpora_of(arguments: argparse.Namespace) -> Path | None:
    """The folder of the registry that was named."""
    if arguments.registry is None:
        return None
    path = Path(arguments.registry)
    folder = path if path.is_dir() else path.parent
    if not (folder / "registry.yml").is_file():
        raise UsageError(f"there is no registry {show(str(path), 200)}")
    return folder


def fixtures_of(arguments: argparse.Namespace) -> dict[str, str]:
    from mcptest.rules.corpus.placeholders import FIXTURES
    from mcptest.suite.problems import did_you_mean

    given = pairs(arguments.fixture, "--fixture")
    for name in given:
        if name not in FIXTURES:
            hint = did_you_mean(name, sorted(FIXTURES))
            raise UsageError(f"--fixture: unknown fixture {show(name, 60)}", hint=hint)
    return given


# -- the command that repeats --------------------------------------------------------------------


def repeat_command(arguments: argparse.Namespace, revision: str = "") -> str:
    """This command line again, without secrets, to which ` --rule ID` can be appended."""
    words = ["mcptest", "compliance", "run"]
    if arguments.from_suite is not None:
        words += ["--from-suite", str(arguments.from_suite)]
    words += server_options(arguments)
    if revision:
        words += ["--spec-version", revision]
    for option in ("allow_tool", "fixture"):
        for value in getattr(arguments, option):
            words += [f"--{option.replace('_', '-')}", value]
    for option, usual in (("registry", None), ("timeout", "30s"), ("startup_timeout", None)):
        value = getattr(arguments, option)
        if value != usual:
            words += [f"--{option.replace('_', '-')}", str(value)]
    return repeat_line(words, arguments)
