"""What `mcptest property` does: try the properties, save counterexamples, report."""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from mcptest.commands.live_display import live_progress
from mcptest.commands.options import (
    duration,
    named_target,
    startup_of,
    wanted_jobs,
    wanted_revision,
)
from mcptest.commands.reporting import Saved, captures_for_html, conclude, saved_into
from mcptest.commands.server_options import ending_for_people, repeat_command
from mcptest.core.errors import ExitCode, UsageError, close_matches
from mcptest.core.redaction import redaction
from mcptest.core.safe_text import show
from mcptest.probe.counterexamples import (
    FOLDER,
    Examples,
    SavedExample,
    read_example,
    save_counterexamples,
)
from mcptest.probe.properties.engine import replay_example, run_properties
from mcptest.probe.properties.property_catalogue import PROPERTIES, PropertyOrder
from mcptest.probe.properties.search import keep_nothing_here
from mcptest.probe.starter_suites import written_server
from mcptest.probe.suites.settings import cores
from mcptest.report.property import PropertyReport
from mcptest.transport.files import claim_folder
from mcptest.transport.interrupt import Stop, stopping_on_signals
from mcptest.transport.target import Target

_LARGEST_SEED = 2**31


def run_property(arguments: argparse.Namespace) -> int:
    if arguments.list:
        width = max(map(len, PROPERTIES))
        for one in PROPERTIES.values():
            sys.stdout.write(f"{one.name:<{width}}  {one.about}\n")
        return ExitCode.OK
    _check(arguments)
    target = named_target(arguments)
    with captures_for_html(arguments):
        with stopping_on_signals() as stop, ending_for_people(arguments, stop):
            report = _try_properties(arguments, target, stop)
        saved = _save(arguments, target, report)
        return conclude(arguments, report, nothing="no property was tested", saved=saved)


def _check(arguments: argparse.Namespace) -> None:
    _jobs(arguments)
    if arguments.examples < 1:
        raise UsageError(f"--examples must be at least 1, not {arguments.examples}")
    for name in arguments.property:
        if name not in PROPERTIES:
            near = close_matches(name, PROPERTIES, n=1)
            hint = f"did you mean {near[0]}?" if near else "`mcptest property --list` lists them"
            raise UsageError(f"unknown property {show(name, 60)}", hint=hint)
    if arguments.seed is None:
        arguments.seed = secrets.randbelow(_LARGEST_SEED)
    if arguments.seed < 0:
        raise UsageError(f"--seed must not be negative: {arguments.seed}")


def _jobs(arguments: argparse.Namespace) -> int:
    """`auto`: one for each core, but one alone where tools may write.

    Two servers may stand on the same files, and what one changes the other would be blamed for.
    """
    return wanted_jobs(arguments.jobs) or (1 if arguments.allow_tool else cores())


def _order(arguments: argparse.Namespace, target: Target, stop: Stop) -> PropertyOrder:
    repeat = redaction.text(repeat_command(arguments, "tool", "allow_tool", "timeout", "database"))
    captures = arguments.output or arguments.save_capture
    if captures is not None:
        claim_folder(captures)
    return PropertyOrder(
        target=target,
        revision=wanted_revision(arguments.spec_version),
        properties=tuple(dict.fromkeys(arguments.property)),
        examples=arguments.examples,
        seed=arguments.seed,
        max_time=duration(arguments.max_time, "--max-time"),
        tools=frozenset(arguments.tool),
        allow_tools=tuple(arguments.allow_tool),
        database=None if arguments.no_database else arguments.database or FOLDER,
        captures=captures,
        timeout=duration(arguments.timeout, "--timeout"),
        startup=startup_of(arguments),
        strict=arguments.strict,
        fail_fast=arguments.fail_fast,
        jobs=_jobs(arguments),
        repeat="" if arguments.no_database else repeat,
        should_stop=stop.is_set,
    )


def _try_properties(arguments: argparse.Namespace, target: Target, stop: Stop) -> PropertyReport:
    keep_nothing_here()
    order = _order(arguments, target, stop)
    if order.jobs > 1 and target.way != "stdio" and arguments.jobs != "auto":
        sys.stderr.write("mcptest: a server with a URL is tested one property at a time\n")
    if arguments.replay:
        return replay_example(order, _example(arguments.replay, order))
    names = list(order.properties or PROPERTIES)
    with live_progress(arguments, len(names)) as progress:
        return run_properties(
            order,
            begins=lambda name: progress.begin(name, name),
            ends=lambda name: progress.finish(name, name),
        )


def _example(name: str, order: PropertyOrder) -> SavedExample:
    """Of that name among those that are kept, or in that file."""
    folder = Examples(order.database, order.target).folder
    kept = folder / f"{name}.json" if folder is not None else None
    if kept is not None and "/" not in name and kept.is_file():
        return read_example(kept)
    if not Path(name).is_file():
        raise UsageError(f"no saved example or file is named {name!r}")
    return read_example(Path(name))


def _save(arguments: argparse.Namespace, target: Target, report: PropertyReport) -> Saved | None:
    if arguments.output is None or not report.counterexamples:
        return None
    server = written_server(target, spec_version=report.revision)
    folder, overwrite = arguments.output, arguments.overwrite
    return saved_into(
        folder, lambda: save_counterexamples(folder, report, target, server, overwrite=overwrite)
    )
