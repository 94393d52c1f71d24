"""`mcptest property`: generated messages, arguments and conversations, judged by the rules."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.concluded import (
    Saved,
    Views,
    add_report_options,
    code_of_tries,
    conclude,
    saved_into,
)
from mcptest.cli.options import (
    add_common_options,
    add_server_options,
    duration,
    server_words,
    startup_of,
    wanted_jobs,
    wanted_revision,
)
from mcptest.cli.report_forms import captures_for_html
from mcptest.model.errors import ExitCode, McptestError, UsageError

if TYPE_CHECKING:
    from mcptest.model.property import PropertyReport
    from mcptest.model.results import RunReport
    from mcptest.run.interrupt import Stop
    from mcptest.run.properties.examples import Example
    from mcptest.run.properties.order import PropertyOrder
    from mcptest.transport.target import Target

_TIMEOUT = "5s"
_LARGEST_SEED = 2**31


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--property", action="append", default=[], metavar="NAME", help="only this; may repeat")
    add("--examples", type=int, default=100, metavar="N", help="for each property (100)")
    add("--seed", type=int, metavar="N", help="the same seed gives the same examples (by chance)")
    add("--jobs", default="auto", metavar="N", help="so many properties at once (as it pays)")
    add("--max-time", default="2m", metavar="T", help="for all of it together (2m)")
    add("--allow-tool", action="append", default=[], metavar="NAME", help="call this tool, too")
    add("--strict", action="store_true", help="a broken SHOULD fails as well")
    add("--fail-fast", action="store_true", help="one counterexample to each property is enough")
    add("--replay", metavar="EXAMPLE", help="only this counterexample: its name, or a file")
    add("--database", type=Path, metavar="DIR", help="where they are kept (.mcptest/examples)")
    add("--no-database", action="store_true", help="keep none, and replay none")
    add("--output", type=Path, metavar="DIR", help="write each as capture, suite and pytest file")
    add("--overwrite", action="store_true", help="replace written files that exist")
    add("--list", action="store_true", help="what there is, and no more")
    add_report_options(parser)
    add_server_options(parser)
    add_common_options(parser)
    parser.set_defaults(timeout=_TIMEOUT, command_name="property")


def run(arguments: argparse.Namespace) -> int:
    _need_hypothesis()
    if arguments.list:
        return _list()
    _check(arguments)
    from mcptest.run.naming import target_of

    target = target_of(server_words(arguments))
    with captures_for_html(arguments):
        return _try_and_tell(arguments, target)


def _try_and_tell(arguments: argparse.Namespace, target: Target) -> int:
    from mcptest.model.redaction import redaction
    from mcptest.peer.connection import Stopped
    from mcptest.run.interrupt import stopping_on_signals

    try:
        with stopping_on_signals() as stop:
            report = _tried(arguments, target, stop)
    except Stopped:
        raise KeyboardInterrupt from None  # nothing was seen yet that could be reported
    except McptestError as error:
        raise error.masked(redaction.masker.cut_text) from None
    saved = _save(arguments, target, report)
    written = conclude(arguments, _views(report, arguments))
    code = code_of_tries(report, "" if report.examples else "nothing was tried")
    return max(saved.tell(arguments), written, code)


def _need_hypothesis() -> None:
    """It is an extra: a third of our size, which no other command needs."""
    from importlib.util import find_spec

    if find_spec("hypothesis") is None:
        raise UsageError(
            "property tests need Hypothesis, which is not installed",
            hint="pip install 'mcptest[property]'",
        )


def _list() -> int:
    from mcptest.run.properties.catalogue import PROPERTIES

    width = max(map(len, PROPERTIES))
    for one in PROPERTIES.values():
        sys.stdout.write(f"{one.name:<{width}}  {one.about}\n")
    return ExitCode.OK


def _check(arguments: argparse.Namespace) -> None:
    from mcptest.run.properties.catalogue import PROPERTIES

    _jobs(arguments)
    if arguments.examples < 1:
        raise UsageError(f"--examples is at least 1, not {arguments.examples}")
    for name in arguments.property:
        if name not in PROPERTIES:
            import difflib

            near = difflib.get_close_matches(name, PROPERTIES, n=1)
            hint = f"did you mean {near[0]}?" if near else "--list says which there are"
            raise UsageError(f"there is no property {name!r}", hint=hint)
    if arguments.seed is None:
        import secrets

        arguments.seed = secrets.randbelow(_LARGEST_SEED)
    if arguments.seed < 0:
        raise UsageError(f"--seed is no negative number: {arguments.seed}")


def _jobs(arguments: argparse.Namespace) -> int:
    """`auto`: one for each core, but one alone where tools may write.

    Two servers may stand on the same files, and what one changes the other would be blamed for.
    """
    from mcptest.run.cores import cores

    return wanted_jobs(arguments.jobs) or (1 if arguments.allow_tool else cores())


def _order(arguments: argparse.Namespace, target: Target, stop: Stop) -> PropertyOrder:
    from mcptest.cli.explored import repeat_command
    from mcptest.model.redaction import redaction
    from mcptest.run.properties.examples import FOLDER
    from mcptest.run.properties.order import PropertyOrder

    options = [word for name in arguments.allow_tool for word in ("--allow-tool", name)]
    options += ["--timeout", arguments.timeout] if arguments.timeout != _TIMEOUT else []
    options += ["--database", str(arguments.database)] if arguments.database else []
    repeat = redaction.text(repeat_command(arguments, *options))
    from mcptest.transport.files import claim_folder

    captures = arguments.output or arguments.capture
    if captures is not None:
        claim_folder(captures)
    return PropertyOrder(
        target=target,
        revision=wanted_revision(arguments.spec_version),
        properties=tuple(dict.fromkeys(arguments.property)),
        examples=arguments.examples,
        seed=arguments.seed,
        max_time=duration(arguments.max_time, "--max-time"),
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


def _tried(arguments: argparse.Namespace, target: Target, stop: Stop) -> PropertyReport:
    from mcptest.cli.live import live_progress
    from mcptest.run.properties.catalogue import PROPERTIES
    from mcptest.run.properties.engine import replay_example, run_properties
    from mcptest.run.properties.search import keep_nothing_here

    keep_nothing_here()
    order = _order(arguments, target, stop)
    if order.jobs > 1 and target.way != "stdio" and arguments.jobs != "auto":
        sys.stderr.write("mcptest: behind a URL is one server: one property after the other\n")
    if arguments.replay:
        return replay_example(order, _example(arguments.replay, order))
    names = list(order.properties or PROPERTIES)
    with live_progress(arguments, len(names)) as progress:
        return run_properties(
            order,
            begins=lambda name: progress.begin(name, name),
            ends=lambda name: progress.finish(name, name),
        )


def _example(name: str, order: PropertyOrder) -> Example:
    """Of that name among those that are kept, or in that file."""
    from mcptest.run.properties.examples import Examples, read_example

    folder = Examples(order.database, order.target).folder
    kept = folder / f"{name}.json" if folder is not None else None
    if kept is not None and "/" not in name and kept.is_file():
        return read_example(kept)
    if not Path(name).is_file():
        raise UsageError(f"no example {name!r} is kept for this server, and no file is called so")
    return read_example(Path(name))


def _save(arguments: argparse.Namespace, target: Target, report: PropertyReport) -> Saved:
    if arguments.output is None or not report.counterexamples:
        return Saved()
    from mcptest.run.exploring.written_server import written_server
    from mcptest.run.properties.saving import save_counterexamples

    server = written_server(target, spec_version=report.revision)
    folder, overwrite = arguments.output, arguments.overwrite
    return saved_into(
        folder, lambda: save_counterexamples(folder, report, target, server, overwrite=overwrite)
    )


def _views(report: PropertyReport, arguments: argparse.Namespace) -> Views:
    from mcptest.report.property_json import property_as_json
    from mcptest.report.property_markdown import property_as_markdown
    from mcptest.report.property_text import property_lines, summary_in_words

    def as_run() -> RunReport:
        from mcptest.report.property_run import property_as_run

        return property_as_run(report)

    return Views(
        failed=report.failed,
        json=lambda: property_as_json(report),
        run=as_run,
        markdown=lambda: property_as_markdown(report),
        lines=lambda style: property_lines(report, style, verbose=arguments.verbose),
        summary=lambda: summary_in_words(report),
        report=report,
    )
