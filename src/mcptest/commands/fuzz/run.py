"""What `mcptest fuzz` does: fuzz each tool, save what fails, report."""

from __future__ import annotations

import argparse
import contextlib
import secrets
from typing import TYPE_CHECKING

from mcptest.commands.live_display import live_progress
from mcptest.commands.options import duration, wanted_jobs
from mcptest.commands.reporting import Saved, conclude, saved_into
from mcptest.commands.server_options import (
    Explored,
    cut_off,
    exploring,
    repeat_command,
    subject_for,
)
from mcptest.core.errors import UsageError
from mcptest.core.message import ABSENT
from mcptest.probe.suites.settings import cores
from mcptest.report.fuzz import FuzzedTool, FuzzReport
from mcptest.session.pages import check_tool_names
from mcptest.wire.json_text import json_value

if TYPE_CHECKING:
    from mcptest.commands.fuzz.fuzzer import FuzzOrder

_MOST_JOBS = 16
_LARGEST_SEED = 2**31
_WORTH_A_SERVER = 1_000
"""For fewer inputs each, `--jobs auto` starts no further server."""


def run_fuzz(arguments: argparse.Namespace) -> int:
    if arguments.runs < 1:
        raise UsageError(f"--runs must be at least 1, not {arguments.runs}")
    if arguments.input is not None and len(arguments.tool) != 1:
        raise UsageError("--input requires one --tool", hint="add --tool NAME")
    _jobs(arguments)
    if arguments.seed is None:
        arguments.seed = secrets.randbelow(_LARGEST_SEED)
    with exploring(arguments) as explored:
        report = _fuzzed(arguments, explored)
        saved = _save(arguments, explored, report)
    hint = "; --allow-writes fuzzes tools not marked readOnlyHint" if report.skipped else ""
    nothing = f"nothing was fuzzed{hint}"
    return conclude(arguments, report, in_step_summary=True, nothing=nothing, saved=saved)


def _jobs(arguments: argparse.Namespace) -> int:
    """One alone where servers are in each other's way: tools that write, and a shared fixture."""
    wanted = wanted_jobs(arguments.jobs)
    if arguments.allow_writes or arguments.allow_tool or arguments.docker:
        return 1
    if wanted is None:  # a capture is one session then, as far as nothing crashes
        wanted = 1 if arguments.save_capture else cores()
    return min(wanted, _MOST_JOBS)


def _order(arguments: argparse.Namespace, explored: Explored) -> FuzzOrder:
    from mcptest.commands.fuzz.fuzzer import FuzzOrder

    mask = explored.subject.masker.text
    try:
        given = json_value("null" if arguments.input is None else arguments.input)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--input is not valid JSON: {error}") from None
    return FuzzOrder(
        runs=arguments.runs,
        seed=arguments.seed,
        tools=tuple(arguments.tool),
        allow_tools=frozenset(arguments.allow_tool),
        include_writes=arguments.allow_writes or bool(arguments.docker),
        timeout=duration(arguments.timeout, "--timeout"),
        given=ABSENT if arguments.input is None else given,
        repeat=mask(repeat_command(arguments, "allow_writes", "allow_tool", "docker", "timeout")),
        worth_a_server=_WORTH_A_SERVER if arguments.jobs == "auto" else 1,
    )


def _fuzzed(arguments: argparse.Namespace, explored: Explored) -> FuzzReport:
    first, kept = explored.subject, arguments.save_capture
    # Behind a URL there is one: a crash is seen by all.
    jobs = _jobs(arguments) if first.target.way == "stdio" else 1
    with contextlib.ExitStack() as lent:
        folders = [kept and kept / f"job-{number}" for number in range(2, jobs + 1)]
        others = [subject_for(arguments, first.target, explored.stop, folder) for folder in folders]
        subjects = [first, *map(lent.enter_context, others)]
        first.launch()  # it gets going while we import what it takes
        from mcptest.commands.fuzz.fuzzer import Fuzz

        order = _order(arguments, explored)
        fuzz = Fuzz(subjects, order)
        total = fuzz.meet()
        check_tool_names([*arguments.tool, *arguments.allow_tool], fuzz.tools)
        with live_progress(arguments, total) as progress:

            def tell(tool: FuzzedTool) -> None:
                first = next(iter(tool.failures), None)
                reason = f"{first.label}: {first.verdict.value}" if first else ""
                progress.finish(tool.name, tool.name, failed=first is not None, reason=reason)

            fuzz.run(tell)
    return fuzz.report(cut_off(explored, arguments, interrupted=fuzz.interrupted))


def _save(arguments: argparse.Namespace, explored: Explored, report: FuzzReport) -> Saved | None:
    if arguments.output is None or not report.failures:
        return None
    from mcptest.probe.counterexamples import save_failures
    from mcptest.probe.starter_suites import written_server

    server = written_server(
        explored.target, spec_version=arguments.spec_version, docker=arguments.docker
    )
    folder, found = arguments.output, report.failures
    return saved_into(
        folder, lambda: save_failures(folder, found, server, overwrite=arguments.overwrite)
    )
