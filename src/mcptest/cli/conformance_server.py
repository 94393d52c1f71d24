"""`mcptest conformance server`: choose the scenarios, put the server through them, report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from mcptest.cli.command_line import repeat_line, server_options
from mcptest.cli.conformance_shared import (
    Clock,
    Telling,
    check_choice,
    expected_of,
    jobs_of,
    made_report,
    published,
    required,
)
from mcptest.cli.options import duration, pairs, server_words, startup_of, wanted_revision
from mcptest.model.errors import ExitCode, McptestError, UsageError
from mcptest.model.redaction import redaction
from mcptest.model.revision import Revision
from mcptest.model.verdict import Side
from mcptest.peer.meeting import ASKED_FOR
from mcptest.run.conformance.scenarios.catalogue import (
    NOT_OFFERED,
    server_scenario,
    server_scenarios,
)
from mcptest.run.conformance.server_suite import ServerOrder, run_server_scenarios
from mcptest.run.interrupt import stopping_on_signals
from mcptest.run.naming import target_of
from mcptest.run.temporary import temporary_folder
from mcptest.transport.target import Target


def test_server(arguments: argparse.Namespace) -> int:
    check_choice(arguments)
    if arguments.url is not None:
        if arguments.server is not None:
            raise UsageError("--url and --server name the same thing", hint="give one of them")
        arguments.server = arguments.url
    target = target_of(server_words(arguments))
    revision, because = _revision(arguments, target)
    names, scored, notes = _chosen(arguments, target, revision)
    if arguments.list:
        sys.stdout.writelines(f"{name} {revision}\n" for name in names)
        return ExitCode.OK if names else ExitCode.NOTHING_MATCHED
    if not names:
        sys.stderr.write(f"mcptest: no scenario fits {revision} over {target.way}\n")
        return ExitCode.NOTHING_MATCHED
    expected = expected_of(arguments)
    mask = redaction.text
    clock = Clock()
    telling = Telling(arguments, len(names))
    problems: list[str] = []
    with stopping_on_signals() as stop, _captures(arguments) as folder:
        try:
            order = replace(_order(arguments, target, revision, names, folder), because=because)
            results = run_server_scenarios(
                order, tell=telling, tell_problem=problems.append, should_stop=stop.is_set
            )
        except McptestError as error:
            raise error.masked(mask) from None
        finally:
            telling.close()
        report = made_report(
            Side.SERVER,
            mask(target.label),
            results,
            clock=clock,
            expected=expected,
            scored=scored,
            notes=notes,
            problems=[mask(one) for one in problems],
            interrupted=stop.is_set(),
            revision_reason=mask(because),
            fail_on_warning=arguments.warnings,
        )
        return published(arguments, report, captures_lent=arguments.output_dir is None)


def _revision(arguments: argparse.Namespace, target: Target) -> tuple[Revision, str]:
    """Without a wish the newest that the server speaks; and why it is this one."""
    if arguments.requirements is not None:
        return required(arguments, Side.SERVER)[0], "asked for by --requirements"
    wanted = wanted_revision(arguments.spec_version)
    if wanted is not None:
        return wanted, ASKED_FOR
    from mcptest.run.compliance.judging import newest_spoken
    from mcptest.run.compliance.order import Order

    startup = startup_of(arguments)
    try:
        met = newest_spoken(Order(target=target, startup=startup))
    except McptestError as error:
        raise error.masked(redaction.text) from None
    return met.revision, met.reason


def _chosen(
    arguments: argparse.Namespace, target: Target, revision: Revision
) -> tuple[list[str], list[str], list[str]]:
    if arguments.scenario:
        return [server_scenario(name).name for name in arguments.scenario], [], []
    if arguments.requirements is not None:
        _, names, scored = required(arguments, Side.SERVER)
        missing = [name for name in names if name in NOT_OFFERED]
        notes = [f"not offered: {', '.join(missing)}"] if missing else []
        return [name for name in names if name not in NOT_OFFERED], scored, notes
    if arguments.suite:
        found = server_scenarios(arguments.suite, revision, target.way)
    else:
        every = server_scenarios("all", revision, target.way)
        pending = {one.name for one in server_scenarios("pending", revision)}
        found = [one for one in every if one.name not in pending]
    return [one.name for one in found], [], []


def _order(
    arguments: argparse.Namespace,
    target: Target,
    revision: Revision,
    names: list[str],
    captures: Path | None,
) -> ServerOrder:
    timeout = duration(arguments.timeout, "--timeout")
    return ServerOrder(
        target=target,
        revision=revision,
        scenarios=tuple(names),
        fixtures=pairs(arguments.fixtures, "--fixture"),
        strict_fixtures=arguments.strict_fixtures,
        timeout=timeout,
        startup=startup_of(arguments),
        captures=captures,
        repeat=redaction.text(_repeat(arguments, revision)),
        jobs=jobs_of(arguments) if target.way == "http" else 1,
    )


@contextmanager
def _captures(arguments: argparse.Namespace) -> Iterator[Path | None]:
    """Beside the results; for a page alone they live until it is written."""
    if arguments.output_dir is not None or arguments.html is None:
        yield arguments.output_dir / "captures" if arguments.output_dir is not None else None
        return
    with temporary_folder() as folder:
        yield folder


def _repeat(arguments: argparse.Namespace, revision: Revision) -> str:
    words = ["mcptest", "conformance", "server", *server_options(arguments)]
    for value in arguments.fixtures:
        words += ["--fixture", value]
    words += ["--strict-fixtures"] if arguments.strict_fixtures else []
    return repeat_line([*words, "--spec-version", revision.value], arguments)
