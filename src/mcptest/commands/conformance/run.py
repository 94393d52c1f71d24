"""What `mcptest conformance` does: choose scenarios, put a client or a server through, report."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from mcptest.commands.command_line import repeat_line, server_options
from mcptest.commands.conformance.scenario_run import (
    Stopwatch,
    check_choice,
    conformance_report,
    jobs_of,
    known_checks,
    publish,
    required_scenarios,
    scenario_progress,
)
from mcptest.commands.options import duration, pairs, server_words, startup_of, wanted_revision
from mcptest.core.errors import ExitCode, McptestError, UsageError
from mcptest.core.redaction import redaction
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.compliance.judging import newest_spoken
from mcptest.probe.compliance.site import Order
from mcptest.probe.conformance.client.client_runner import ClientOrder, run_clients
from mcptest.probe.conformance.client.driver import driver_named, drivers
from mcptest.probe.conformance.client.scenario_server import judged_capture
from mcptest.probe.conformance.client.seen import SeenSession
from mcptest.probe.conformance.scenario import Scenario
from mcptest.probe.conformance.scenario_catalogue import not_offered, scenario_named, scenarios
from mcptest.probe.conformance.server.server_suite import ConformanceOrder, run_server_scenarios
from mcptest.report.terminal import Style, say, say_json
from mcptest.rules.expected_failures import load_expected_failures
from mcptest.session.meeting import ASKED_FOR
from mcptest.session.server_spec import target_of
from mcptest.transport.interrupt import stopping_on_signals
from mcptest.transport.target import Target
from mcptest.transport.temporary import temporary_folder


def run_conformance(arguments: argparse.Namespace) -> int:
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "client": test_client,
        "server": test_server,
        "list": list_scenarios,
        "driver": show_driver,
        "judge": judge_again,
    }
    return actions[arguments.action](arguments)


@contextmanager
def _captures(arguments: argparse.Namespace, kept: Path | None) -> Iterator[Path | None]:
    """Where captures are written while they are needed: where they are kept, or, until they are
    copied or shown, in a folder that goes; nowhere if nobody asked."""
    if kept is not None or (arguments.output_dir is None and arguments.html is None):
        yield kept
        return
    with temporary_folder() as folder:
        yield folder


def _put_through(
    arguments: argparse.Namespace,
    run: Callable[
        [Path | None, Callable[[ScenarioResult], None], Callable[[], bool]], list[ScenarioResult]
    ],
    total: int,
    captures: Path | None = None,
    **facts: Any,
) -> int:
    """Run, show how far it has come, and report; `facts` are what the report says besides."""
    listed, expected = arguments.expected_failures, None
    if listed is not None:
        expected = load_expected_failures(listed, known_checks())
    stopwatch = Stopwatch()
    with stopping_on_signals() as stop, _captures(arguments, captures) as folder:
        with scenario_progress(arguments, total) as tell:
            results = run(folder, tell, stop.is_set)
        report = conformance_report(
            results=results,
            stopwatch=stopwatch,
            expected=expected,
            interrupted=stop.is_set(),
            fail_on_warning=arguments.warnings,
            **facts,
        )
        return publish(arguments, report, captures_lent=arguments.output_dir is None)


CLAIMS = ("roots", "sampling", "elicitation-form", "elicitation-url")
DEFAULT_SUITE = "core"


def test_client(arguments: argparse.Namespace) -> int:
    check_choice(arguments)
    claims = claims_of(arguments.claims)
    chosen, scored, notes = _client_chosen(arguments)
    if arguments.list:
        sys.stdout.writelines(f"{one.name} {revision}\n" for one, revision in chosen)
        return ExitCode.OK if chosen else ExitCode.NOTHING_MATCHED
    if not chosen:
        sys.stderr.write("mcptest: no scenario fits\n")
        return ExitCode.NOTHING_MATCHED
    return _put_through(
        arguments,
        lambda folder, tell, should_stop: run_clients(
            [_client_order(arguments, one, revision, folder, claims) for one, revision in chosen],
            jobs=jobs_of(arguments),
            tell=tell,
            should_stop=should_stop,
        ),
        len(chosen),
        side=Side.CLIENT,
        subject=arguments.command,
        scored=scored,
        notes=notes,
    )


def claims_of(text: str) -> frozenset[str]:
    words = frozenset(filter(None, (word.strip() for word in text.split(","))))
    both = {"elicitation-form", "elicitation-url"} if "elicitation" in words else set()
    for word in words - {"elicitation"}:
        if word not in CLAIMS:
            raise UsageError(f"--claims: {word!r} is none of {', '.join(CLAIMS)}")
    return (words - {"elicitation"}) | both


def _client_chosen(
    arguments: argparse.Namespace,
) -> tuple[list[tuple[Scenario[SeenSession], Revision]], list[str], list[str]]:
    """What is run in which revision, what of it counts, and what has to be said about it."""
    notes: list[str] = []
    scored: list[str] = []
    wanted = wanted_revision(arguments.spec_version)
    if arguments.requirements is not None:
        required = required_scenarios(arguments, Side.CLIENT)
        wanted, scored, notes = required.revision, required.scored, required.notes
        found = [scenario_named(Side.CLIENT, name) for name in required.names]
    elif arguments.scenario:
        found = [scenario_named(Side.CLIENT, name) for name in arguments.scenario]
    else:
        found = scenarios(Side.CLIENT, arguments.suite or DEFAULT_SUITE, wanted)
    fitting = [one for one in found if arguments.transport in one.transports]
    left_out = [one.name for one in found if one not in fitting]
    if left_out and (arguments.scenario or not fitting):
        raise UsageError(f"{left_out[0]} is not for {arguments.transport}")
    if left_out:
        notes.append(f"not over {arguments.transport}: {', '.join(left_out)}")
    return [(one, _client_revision(one, wanted)) for one in fitting], scored, notes


def _client_revision(scenario: Scenario[SeenSession], wanted: Revision | None) -> Revision:
    if wanted is None:
        return max(scenario.revisions)
    if wanted not in scenario.revisions:
        known = ", ".join(str(one) for one in sorted(scenario.revisions))
        raise UsageError(f"scenario {scenario.name} is not for {wanted}", hint=f"for {known}")
    return wanted


def _client_order(
    arguments: argparse.Namespace,
    scenario: Scenario[SeenSession],
    revision: Revision,
    folder: Path | None,
    claims: frozenset[str],
) -> ClientOrder:
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
        repeat=_client_repeat(arguments, scenario, revision),
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


def _client_repeat(
    arguments: argparse.Namespace, scenario: Scenario[SeenSession], revision: Revision
) -> str:
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


def test_server(arguments: argparse.Namespace) -> int:
    check_choice(arguments)
    if arguments.url is not None:
        if arguments.server is not None:
            raise UsageError("--url and --server name the same thing", hint="give one of them")
        arguments.server = arguments.url
    target = target_of(server_words(arguments))
    revision, because = _server_revision(arguments, target)
    names, scored, notes = _server_chosen(arguments, target, revision)
    if arguments.list:
        sys.stdout.writelines(f"{name} {revision}\n" for name in names)
        return ExitCode.OK if names else ExitCode.NOTHING_MATCHED
    if not names:
        sys.stderr.write(
            f"mcptest: no scenario fits {revision} over {target.way}\n"
            f"  {revision}: {because}; `mcptest compliance run` judges every revision\n"
        )
        return ExitCode.NOTHING_MATCHED
    mask = redaction.text
    problems: list[str] = []

    def run(
        folder: Path | None, tell: Callable[[ScenarioResult], None], should_stop: Callable[[], bool]
    ) -> list[ScenarioResult]:
        order = ConformanceOrder(
            target=target,
            revision=revision,
            because=because,
            scenarios=tuple(names),
            fixtures=pairs(arguments.fixtures, "--fixture"),
            strict_fixtures=arguments.strict_fixtures,
            timeout=duration(arguments.timeout, "--timeout"),
            startup=startup_of(arguments),
            captures=folder,
            repeat=mask(_server_repeat(arguments, revision)),
            jobs=jobs_of(arguments) if target.way == "http" else 1,
        )
        try:
            return run_server_scenarios(
                order,
                tell=tell,
                tell_problem=lambda problem: problems.append(mask(problem)),
                should_stop=should_stop,
            )
        except McptestError as error:
            raise error.masked(mask) from None

    return _put_through(
        arguments,
        run,
        len(names),
        arguments.output_dir and arguments.output_dir / "captures",
        side=Side.SERVER,
        subject=mask(target.label),
        scored=scored,
        notes=notes,
        problems=problems,
        revision_reason=mask(because),
    )


def _server_revision(arguments: argparse.Namespace, target: Target) -> tuple[Revision, str]:
    """Without a wish the newest that the server speaks; and why it is this one."""
    if arguments.requirements is not None:
        return required_scenarios(arguments, Side.SERVER).revision, "asked for by --requirements"
    wanted = wanted_revision(arguments.spec_version)
    if wanted is not None:
        return wanted, ASKED_FOR
    try:
        met = newest_spoken(Order(target=target, startup=startup_of(arguments)))
    except McptestError as error:
        raise error.masked(redaction.text) from None
    return met.revision, met.reason


def _server_chosen(
    arguments: argparse.Namespace, target: Target, revision: Revision
) -> tuple[list[str], list[str], list[str]]:
    if arguments.scenario:
        return [scenario_named(Side.SERVER, name).name for name in arguments.scenario], [], []
    if arguments.requirements is not None:
        required = required_scenarios(arguments, Side.SERVER)
        return required.names, required.scored, required.notes
    if arguments.suite:
        found = scenarios(Side.SERVER, arguments.suite, revision, target.way)
    else:
        every = scenarios(Side.SERVER, "all", revision, target.way)
        pending = {one.name for one in scenarios(Side.SERVER, "pending", revision)}
        found = [one for one in every if one.name not in pending]
    return [one.name for one in found], [], []


def _server_repeat(arguments: argparse.Namespace, revision: Revision) -> str:
    words = ["mcptest", "conformance", "server", *server_options(arguments)]
    words += [word for value in arguments.fixtures for word in ("--fixture", value)]
    words += ["--strict-fixtures"] if arguments.strict_fixtures else []
    return repeat_line([*words, "--spec-version", revision.value], arguments)


def list_scenarios(arguments: argparse.Namespace) -> int:
    stream = sys.stdout
    wanted = wanted_revision(arguments.spec_version)
    both = arguments.client == arguments.server
    groups = [
        (side.value, [_row(one) for one in scenarios(side, "all", wanted)], not_offered(side))
        for side in (Side.CLIENT, Side.SERVER)
        if both or getattr(arguments, side.value)
    ]
    if arguments.json:
        plain = {
            side: {"scenarios": rows, "not_offered": missing} for side, rows, missing in groups
        }
        say_json(stream, msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n")
        return ExitCode.OK
    style = Style.of(stream, no_color=arguments.no_color)
    for side, rows, missing in groups:
        title = f"{len(rows)} scenarios for {side}s"
        say(stream, style.paint(title, "bold") + "\n")
        for row in rows:
            where = f"{', '.join(row['revisions'])}  {', '.join(row['transports'])}"
            say(stream, f"  {row['name']:<46} {style.paint(where, 'dim')}\n")
        for name, why in missing.items():
            say(stream, style.paint(f"  {name:<46} not offered: {why}", "dim") + "\n")
        say(stream, "\n")
    return ExitCode.OK


def _row(scenario: Scenario[Any]) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "title": scenario.title,
        "revisions": [one.value for one in sorted(scenario.revisions)],
        "transports": sorted(scenario.transports),
        "suites": sorted(scenario.suites),
        "checks": list(dict.fromkeys(check.id for check in scenario.checks)),
    }


def show_driver(arguments: argparse.Namespace) -> int:
    """One program, or which there are."""
    stream = sys.stdout
    chosen = drivers() if arguments.list or not arguments.driver else ()
    one = driver_named(arguments.driver) if arguments.driver else None
    if arguments.json:
        plain = [_driver_row(each) for each in chosen] or _driver_row(one, whole=True)
        say_json(stream, msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n")
    elif chosen or one is None:
        style = Style.of(stream, no_color=arguments.no_color)
        for each in chosen:
            say(stream, f"{each.name:<18} {each.library}\n")
            say(stream, style.paint(f"{'':<18} {each.install}\n", "dim"))
        first = drivers()[0]
        say(stream, f"\nmcptest conformance driver {first.name} > {first.file}\n")
        say(stream, f'mcptest conformance client --command "{first.command}"\n')
    else:
        say(stream, one.program)
    return ExitCode.OK


def _driver_row(driver: Any, *, whole: bool = False) -> dict[str, Any]:
    row = {
        name: getattr(driver, name) for name in ("name", "library", "install", "file", "command")
    }
    return {**row, "program": driver.program} if whole else row


def judge_again(arguments: argparse.Namespace) -> int:
    scenario = scenario_named(Side.CLIENT, arguments.scenario)
    stopwatch = Stopwatch()
    result = judged_capture(
        scenario,
        [str(one) for one in arguments.capture],
        wanted_revision(arguments.spec_version),
        mode=arguments.capabilities,
        claims=claims_of(arguments.claims),
    )
    subject = ", ".join(str(one) for one in arguments.capture)
    report = conformance_report(
        Side.CLIENT,
        [result],
        stopwatch=stopwatch,
        fail_on_warning=arguments.warnings,
        subject=subject,
    )
    return publish(arguments, report)
