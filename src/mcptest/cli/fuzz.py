"""`mcptest fuzz`: almost valid inputs for each tool, and what becomes of the server."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcptest.cli.explored import Explored, add_fixture_option, exploring, repeat_command
from mcptest.cli.options import add_common_options, add_server_options, duration, wanted_revision
from mcptest.model.errors import ExitCode, McptestError, UsageError

if TYPE_CHECKING:
    from mcptest.model.fuzz import FuzzedTool, FuzzReport
    from mcptest.run.exploring.fuzzing import Fuzz, FuzzOrder
    from mcptest.run.exploring.subject import Subject
    from mcptest.run.interrupt import Stop

_EPILOG = """\
examples:
  mcptest fuzz --server "npx -y my-server"
  mcptest fuzz --server "npx -y my-server" --runs 500 --seed 42 --tool search
  mcptest fuzz --server "npx -y my-server {{fixture}}" --fixture ./data --output evals/fuzz

The same seed gives the same inputs. Tools that do not say that they only read are skipped and
listed; --include-writes fuzzes them too, and so does --docker IMAGE.

exit codes: 0 every input was taken well, 1 a crash, hang, leak or no answer, 2 bad options,
            3 the server is unreachable, 4 there was nothing to fuzz
"""
_MOST_JOBS = 16
_TIMEOUT = "15s"
_LARGEST_SEED = 2**31


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("--runs", type=int, default=50, metavar="N", help="inputs for each tool (50)")
    add("--seed", type=int, metavar="N", help="the same seed gives the same inputs (by chance)")
    add("--tool", action="append", default=[], metavar="NAME", help="only this tool; may repeat")
    add("--input", metavar="JSON", help="only this input, for the one --tool that is named")
    add("--jobs", default="1", metavar="N", help="so many servers at once, or auto (1)")
    add("--include-writes", action="store_true", help="fuzz tools that may write, too")
    add("--docker", default="", metavar="IMAGE", help="run the server in a container of this image")
    add_fixture_option(parser)
    add("--output", type=Path, metavar="DIR", help="save each failure as a test")
    add("--overwrite", action="store_true", help="replace saved failures that exist")
    add("--json", action="store_true", help="the report as JSON, and nothing else, on stdout")
    add("--json-file", type=Path, metavar="FILE", help="the JSON report as well")
    add("--junit", type=Path, metavar="FILE", help="a JUnit report as well")
    add("--markdown", type=Path, metavar="FILE", help="a markdown report as well")
    add("--capture", type=Path, metavar="DIR", help="keep everything that went over the wire")
    add_server_options(parser)
    add_common_options(parser)
    parser.set_defaults(timeout=_TIMEOUT, startup_timeout="30s", command_name="fuzz")


def run(arguments: argparse.Namespace) -> int:
    from mcptest.run.interrupt import stopping_on_signals

    _check(arguments)
    with stopping_on_signals() as stop, exploring(arguments, stop) as explored:
        try:
            report = _fuzzed(arguments, explored, stop)
        except McptestError as error:
            raise error.masked(explored.subject.masker.cut_text) from None
        saved = _save(arguments, explored, report)
    _print(report, arguments)
    if not arguments.json:
        sys.stdout.writelines(saved)
    return max(_code(report), _write_files(report, arguments))


def _check(arguments: argparse.Namespace) -> None:
    if arguments.runs < 1:
        raise UsageError(f"--runs is at least 1, not {arguments.runs}")
    if arguments.input is not None and len(arguments.tool) != 1:
        raise UsageError("--input is for one tool", hint="name it with --tool NAME")
    _jobs(arguments)
    if arguments.seed is None:
        import secrets

        arguments.seed = secrets.randbelow(_LARGEST_SEED)


def _jobs(arguments: argparse.Namespace) -> int:
    import os

    if arguments.jobs == "auto":
        wanted = os.cpu_count() or 1
    else:
        try:
            wanted = int(arguments.jobs)
        except ValueError:
            raise UsageError(f"--jobs is a number or auto, not {arguments.jobs!r}") from None
    if wanted < 1:
        raise UsageError(f"--jobs is at least 1, not {wanted}")
    # Tools that write, and what is in a fixture, are in each other's way.
    alone = arguments.include_writes or arguments.docker
    return 1 if alone else min(wanted, _MOST_JOBS)


def _order(arguments: argparse.Namespace, explored: Explored) -> FuzzOrder:
    from mcptest.model.message import ABSENT
    from mcptest.run.exploring.fuzzing import FuzzOrder

    options = ["--include-writes"] if arguments.include_writes else []
    options += ["--docker", arguments.docker] if arguments.docker else []
    options += ["--timeout", arguments.timeout] if arguments.timeout != _TIMEOUT else []
    mask = explored.subject.masker.text
    return FuzzOrder(
        runs=arguments.runs,
        seed=arguments.seed,
        tools=tuple(arguments.tool),
        include_writes=arguments.include_writes or bool(arguments.docker),
        timeout=duration(arguments.timeout, "--timeout"),
        given=ABSENT if arguments.input is None else _given(arguments.input),
        repeat=mask(repeat_command(arguments, *options)),
    )


def _given(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--input is not JSON: {error}") from None


def _fuzzed(arguments: argparse.Namespace, explored: Explored, stop: Stop) -> FuzzReport:
    from mcptest.report.progress import StatusLine
    from mcptest.report.terminal import Style
    from mcptest.run.exploring.fuzzing import Fuzz

    order = _order(arguments, explored)
    line = StatusLine(sys.stderr, Style.of(sys.stderr, no_color=arguments.no_color))
    with _servers(arguments, explored.subject, stop) as subjects:
        fuzz = Fuzz(subjects, order)
        total, done = fuzz.meet(), 0
        _check_names(arguments, fuzz)

        def tell(tool: FuzzedTool) -> None:
            nonlocal done
            done += not tool.skipped
            if not arguments.quiet:
                line.draw(f"[{done}/{total}]", tool.name)

        try:
            fuzz.run(tell)
        finally:
            line.clear()
    return fuzz.report()


@contextlib.contextmanager
def _servers(arguments: argparse.Namespace, first: Subject, stop: Stop) -> Iterator[list[Subject]]:
    """The server as often as there are jobs."""
    from mcptest.run.exploring.subject import Subject

    with contextlib.ExitStack() as stack:
        others = [
            stack.enter_context(
                Subject(
                    first.target,
                    revision=wanted_revision(arguments.spec_version),
                    timeout=first.timeout,
                    startup=duration(arguments.startup_timeout, "--startup-timeout"),
                    captures=arguments.capture / f"job-{number}" if arguments.capture else None,
                    should_stop=stop.is_set,
                )
            )
            for number in range(2, _jobs(arguments) + 1)
        ]
        yield [first, *others]


def _check_names(arguments: argparse.Namespace, fuzz: Fuzz) -> None:
    offered = [tool["name"] for tool in fuzz.tools]
    for name in arguments.tool:
        if name not in offered:
            import difflib

            near = difflib.get_close_matches(name, offered[:1_000], n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {len(offered)} others"
            raise UsageError(f"the server has no tool named {name!r}", hint=hint)


def _save(arguments: argparse.Namespace, explored: Explored, report: FuzzReport) -> list[str]:
    if arguments.output is None or not report.failures:
        return []
    from mcptest.report.placed import placed_lines
    from mcptest.run.exploring.fuzzing_saved import save_failures
    from mcptest.run.exploring.written_server import written_server

    server = written_server(
        explored.target, spec_version=arguments.spec_version, docker=arguments.docker
    )
    placed = save_failures(arguments.output, report.failures, server, overwrite=arguments.overwrite)
    return [f"{line}\n" for line in placed_lines(placed, str(arguments.output))]


def _print(report: FuzzReport, arguments: argparse.Namespace) -> None:
    from mcptest.report.fuzz_json import fuzz_as_json
    from mcptest.report.fuzz_text import fuzz_lines, summary_in_words
    from mcptest.report.terminal import Style, say, say_json

    if arguments.json:
        say_json(sys.stdout, fuzz_as_json(report))
    elif arguments.quiet and not report.failed:
        say(sys.stdout, summary_in_words(report) + "\n")
    else:
        style = Style.of(sys.stdout, no_color=arguments.no_color)
        for line in fuzz_lines(report, style, verbose=arguments.verbose):
            say(sys.stdout, line + "\n")


def _code(report: FuzzReport) -> int:
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.failed:
        return ExitCode.FAILED
    if not report.runs:
        hint = "" if not report.tools else ": --include-writes fuzzes tools that may write"
        sys.stderr.write(f"mcptest: nothing was fuzzed{hint}\n")
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK


def _write_files(report: FuzzReport, arguments: argparse.Namespace) -> int:
    """A report that can't be written is said, and is no success."""
    from mcptest.report import junit
    from mcptest.report.fuzz_json import fuzz_as_json
    from mcptest.report.fuzz_markdown import fuzz_as_markdown
    from mcptest.report.fuzz_run import fuzz_as_run
    from mcptest.report.placed import write_all

    wanted = {
        arguments.json_file: lambda: fuzz_as_json(report),
        arguments.junit: lambda: junit.render(fuzz_as_run(report)),
        arguments.markdown: lambda: fuzz_as_markdown(report).encode(),
    }
    return write_all(wanted, sys.stderr)
