"""`mcptest fuzz`: almost valid inputs for each tool, and what becomes of the server."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcptest.cli.concluded import (
    Saved,
    Views,
    add_report_options,
    code_of_tries,
    conclude,
    saved_into,
)
from mcptest.cli.explored import (
    Explored,
    add_fixture_option,
    check_tool_names,
    exploring,
    named_tools,
    out_of_time,
    repeat_command,
)
from mcptest.cli.options import (
    add_common_options,
    add_max_time,
    add_server_options,
    duration,
    limit_of,
    startup_of,
    wanted_jobs,
    wanted_revision,
)
from mcptest.model.errors import McptestError, UsageError

if TYPE_CHECKING:
    from mcptest.model.fuzz import FuzzedTool, FuzzReport
    from mcptest.model.results import RunReport
    from mcptest.run.exploring.fuzzing import FuzzOrder
    from mcptest.run.exploring.subject import Subject
    from mcptest.run.interrupt import Stop

_MOST_JOBS = 16
_TIMEOUT = "15s"
_LARGEST_SEED = 2**31
_WORTH_A_SERVER = 1_000
"""For fewer inputs each, `--jobs auto` starts no further server."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--runs", type=int, default=50, metavar="N", help="inputs for each tool (50)")
    add("--seed", type=int, metavar="N", help="the same seed gives the same inputs (by chance)")
    add("--tool", action="append", default=[], metavar="NAME", help="only this tool; may repeat")
    add("--input", metavar="JSON", help="only this input, for the one --tool that is named")
    add("--jobs", default="auto", metavar="N", help="so many servers at once (as it pays)")
    add("--include-writes", action="store_true", help="fuzz tools that may write, too")
    add("--docker", default="", metavar="IMAGE", help="run the server in a container of this image")
    add_fixture_option(parser)
    add("--output", type=Path, metavar="DIR", help="save each failure as a test")
    add("--overwrite", action="store_true", help="replace saved failures that exist")
    add_max_time(parser)
    add_report_options(parser)
    add_server_options(parser)
    add_common_options(parser)
    parser.set_defaults(timeout=_TIMEOUT, command_name="fuzz")


def run(arguments: argparse.Namespace) -> int:
    from mcptest.run.interrupt import stopping_on_signals

    _check(arguments)
    with stopping_on_signals() as stop, exploring(arguments, stop) as explored:
        stop.limit = limit_of(arguments)
        try:
            report = _fuzzed(arguments, explored, stop)
        except McptestError as error:
            raise error.masked(explored.subject.masker.cut_text) from None
        saved = _save(arguments, explored, report)
    written = conclude(arguments, _views(report, arguments), in_step_summary=True)
    return max(saved.tell(arguments), written, _code(report))


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
    """One alone where servers are in each other's way: tools that write, and a shared fixture."""
    from mcptest.run.cores import cores

    wanted = wanted_jobs(arguments.jobs)
    if arguments.include_writes or arguments.docker:
        return 1
    if wanted is None:  # a capture is one session then, as far as nothing crashes
        wanted = 1 if arguments.capture else cores()
    return min(wanted, _MOST_JOBS)


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
        worth_a_server=_WORTH_A_SERVER if arguments.jobs == "auto" else 1,
    )


def _given(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--input is not JSON: {error}") from None


def _fuzzed(arguments: argparse.Namespace, explored: Explored, stop: Stop) -> FuzzReport:
    with _servers(arguments, explored.subject, stop) as subjects:
        explored.subject.launch()  # it gets going while we import what it takes
        from mcptest.cli.live import live_progress
        from mcptest.run.exploring.fuzzing import Fuzz

        order = _order(arguments, explored)
        fuzz = Fuzz(subjects, order)
        total = fuzz.meet()
        check_tool_names(arguments.tool, named_tools(fuzz.tools))
        with live_progress(arguments, total) as progress:

            def tell(tool: FuzzedTool) -> None:
                first = next(iter(tool.failures), None)
                if not tool.skipped:
                    reason = f"{first.label}: {first.verdict.value}" if first else ""
                    progress.finish(tool.name, tool.name, failed=first is not None, reason=reason)

            fuzz.run(tell)
    was_cut = fuzz.interrupted and stop.is_out_of_time
    return fuzz.report(out_of_time(arguments) if was_cut else "")


@contextlib.contextmanager
def _servers(arguments: argparse.Namespace, first: Subject, stop: Stop) -> Iterator[list[Subject]]:
    """The server as often as there are jobs. Behind a URL there is one: a crash is seen by all."""
    from mcptest.run.exploring.subject import Subject

    jobs = _jobs(arguments) if first.target.way == "stdio" else 1

    with contextlib.ExitStack() as stack:
        others = [
            stack.enter_context(
                Subject(
                    first.target,
                    revision=wanted_revision(arguments.spec_version),
                    timeout=first.timeout,
                    startup=startup_of(arguments),
                    captures=arguments.capture / f"job-{number}" if arguments.capture else None,
                    should_stop=stop.is_over,
                )
            )
            for number in range(2, jobs + 1)
        ]
        yield [first, *others]


def _save(arguments: argparse.Namespace, explored: Explored, report: FuzzReport) -> Saved:
    if arguments.output is None or not report.failures:
        return Saved()
    from mcptest.run.exploring.fuzzing_saved import save_failures
    from mcptest.run.exploring.written_server import written_server

    server = written_server(
        explored.target, spec_version=arguments.spec_version, docker=arguments.docker
    )
    folder, found = arguments.output, report.failures
    return saved_into(
        folder, lambda: save_failures(folder, found, server, overwrite=arguments.overwrite)
    )


def _views(report: FuzzReport, arguments: argparse.Namespace) -> Views:
    from mcptest.report.fuzz_json import fuzz_as_json
    from mcptest.report.fuzz_markdown import fuzz_as_markdown
    from mcptest.report.fuzz_text import fuzz_lines, summary_in_words

    def as_run() -> RunReport:
        from mcptest.report.fuzz_run import fuzz_as_run

        return fuzz_as_run(report)

    return Views(
        failed=report.failed,
        json=lambda: fuzz_as_json(report),
        run=as_run,
        markdown=lambda: fuzz_as_markdown(report),
        lines=lambda style: fuzz_lines(report, style, verbose=arguments.verbose),
        summary=lambda: summary_in_words(report),
        report=report,
    )


def _code(report: FuzzReport) -> int:
    hint = ": --include-writes fuzzes tools that may write" if report.tools else ""
    return code_of_tries(report, "" if report.runs else f"nothing was fuzzed{hint}")
