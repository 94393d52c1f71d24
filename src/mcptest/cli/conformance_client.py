"""`mcptest conformance client`: choose the scenarios, run the client in each, report."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.command_line import repeat_line
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
from mcptest.cli.options import duration, pairs, wanted_revision
from mcptest.clients.scenario import Scenario
from mcptest.model.conformance import ScenarioResult
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.revision import Revision
from mcptest.model.verdict import Side
from mcptest.run.conformance.client_suite import run_clients
from mcptest.run.interrupt import stopping_on_signals
from mcptest.run.temporary import temporary_folder

if TYPE_CHECKING:
    from mcptest.run.conformance.client_runner import ClientOrder

CLAIMS = ("roots", "sampling", "elicitation-form", "elicitation-url")
DEFAULT_SUITE = "core"


def test_client(arguments: argparse.Namespace) -> int:
    check_choice(arguments)
    claims = claims_of(arguments.claims)
    chosen, scored, notes = _chosen(arguments)
    if arguments.list:
        for scenario, revision in chosen:
            sys.stdout.write(f"{scenario.name} {revision}\n")
        return ExitCode.OK if chosen else ExitCode.NOTHING_MATCHED
    if not chosen:
        sys.stderr.write("mcptest: no scenario fits\n")
        return ExitCode.NOTHING_MATCHED
    expected = expected_of(arguments)
    clock = Clock()
    with stopping_on_signals() as stop, _captures(arguments) as folder:
        orders = [_order(arguments, one, revision, folder, claims) for one, revision in chosen]
        telling = Telling(arguments, len(orders))
        try:
            results: list[ScenarioResult] = run_clients(
                orders, jobs=jobs_of(arguments), tell=telling, should_stop=stop.is_set
            )
        finally:
            telling.close()
        report = made_report(
            Side.CLIENT,
            arguments.command,
            results,
            clock=clock,
            expected=expected,
            scored=scored,
            notes=notes,
            interrupted=stop.is_set(),
            fail_on_warning=arguments.warnings,
        )
        return published(arguments, report, captures_lent=arguments.output_dir is None)


def claims_of(text: str) -> frozenset[str]:
    words = frozenset(filter(None, (word.strip() for word in text.split(","))))
    both = {"elicitation-form", "elicitation-url"} if "elicitation" in words else set()
    for word in words - {"elicitation"}:
        if word not in CLAIMS:
            raise UsageError(f"--claims: {word!r} is none of {', '.join(CLAIMS)}")
    return (words - {"elicitation"}) | both


def _chosen(
    arguments: argparse.Namespace,
) -> tuple[list[tuple[Scenario, Revision]], list[str], list[str]]:
    """What is run in which revision, what of it counts, and what has to be said about it."""
    from mcptest.clients.catalogue import NOT_OFFERED, client_scenarios, scenario_named

    notes: list[str] = []
    scored: list[str] = []
    wanted = wanted_revision(arguments.spec_version)
    if arguments.requirements is not None:
        wanted, names, scored = required(arguments, Side.CLIENT)
        missing = [name for name in names if name in NOT_OFFERED]
        notes += [f"not offered: {', '.join(missing)}"] if missing else []
        found = [scenario_named(name) for name in names if name not in NOT_OFFERED]
    elif arguments.scenario:
        found = [scenario_named(name) for name in arguments.scenario]
    else:
        found = client_scenarios(arguments.suite or DEFAULT_SUITE, wanted)
    fitting = [one for one in found if arguments.transport in one.transports]
    left_out = [one.name for one in found if one not in fitting]
    if left_out and (arguments.scenario or not fitting):
        raise UsageError(f"{left_out[0]} is not for {arguments.transport}")
    if left_out:
        notes.append(f"not over {arguments.transport}: {', '.join(left_out)}")
    return [(one, _revision(one, wanted)) for one in fitting], scored, notes


def _revision(scenario: Scenario, wanted: Revision | None) -> Revision:
    if wanted is None:
        return max(scenario.revisions)
    if wanted not in scenario.revisions:
        known = ", ".join(str(one) for one in sorted(scenario.revisions))
        raise UsageError(f"scenario {scenario.name} is not for {wanted}", hint=f"for {known}")
    return wanted


@contextmanager
def _captures(arguments: argparse.Namespace) -> Iterator[Path | None]:
    """Where captures wait until they are copied or shown; nowhere if nobody asked."""
    if arguments.output_dir is None and arguments.html is None:
        yield None
        return
    with temporary_folder() as folder:
        yield folder


def _order(
    arguments: argparse.Namespace,
    scenario: Scenario,
    revision: Revision,
    folder: Path | None,
    claims: frozenset[str],
) -> ClientOrder:
    from mcptest.run.conformance.client_runner import ClientOrder

    name = f"{scenario.name.replace('/', '-')}-{revision}.jsonl"
    return ClientOrder(
        command=_words(arguments),
        shell=arguments.shell,
        scenario=scenario,
        revision=revision,
        negotiates=arguments.spec_version == "auto" and arguments.requirements is None,
        transport=arguments.transport,
        timeout=duration(arguments.timeout, "--timeout"),
        env=pairs(arguments.env, "--env"),
        cwd=arguments.cwd,
        clean_env=arguments.clean_env,
        capture=folder / name if folder is not None else None,
        capabilities=arguments.capabilities,
        claims=claims,
        repeat=_repeat(arguments, scenario, revision),
    )


def _words(arguments: argparse.Namespace) -> tuple[str, ...]:
    if arguments.shell:
        return (arguments.command,)
    try:
        words = tuple(shlex.split(arguments.command))
    except ValueError as error:
        raise UsageError(f"--command can't be read: {error}") from None
    if not words:
        raise UsageError("--command is empty")
    return words


def _repeat(arguments: argparse.Namespace, scenario: Scenario, revision: Revision) -> str:
    words = ["mcptest", "conformance", "client", "--command", arguments.command]
    words += ["--shell"] if arguments.shell else []
    words += ["--scenario", scenario.name]
    if arguments.spec_version != "auto" or arguments.requirements is not None:
        words += ["--spec-version", revision.value]
    words += ["--transport", "stdio"] if arguments.transport == "stdio" else []
    words += ["--claims", arguments.claims] if arguments.claims else []
    if arguments.capabilities != "probe":
        words += ["--capabilities", arguments.capabilities]
    words += [word for pair in arguments.env for word in ("--env", pair)]
    words += ["--clean-env"] if arguments.clean_env else []
    return repeat_line([*words, "--verbose"], arguments)
