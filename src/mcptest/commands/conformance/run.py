"""What `mcptest conformance` does: choose scenarios, put a client or a server through, report."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.commands.command_line import options_again, repeat_line, server_options
from mcptest.commands.live_display import live_progress
from mcptest.commands.options import (
    duration,
    env_of,
    named_target,
    pairs,
    startup_of,
    wanted_jobs,
    wanted_revision,
)
from mcptest.commands.reporting import conclude, page_of, tell_unwritten, write_files
from mcptest.core.errors import ErrorKind, ExitCode, McptestError, PeerError, UsageError
from mcptest.core.redaction import redaction
from mcptest.core.results import made_since
from mcptest.core.revision import Revision, parse_revision
from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import (
    WIRE_SCHEMA,
    CheckResult,
    CheckStatus,
    ExpectedFailure,
    ScenarioResult,
)
from mcptest.core.verdict import Side
from mcptest.probe.compliance.judging import newest_spoken
from mcptest.probe.compliance.site import Order
from mcptest.probe.conformance.client.driver import driver_named, drivers
from mcptest.probe.conformance.client.judged_client import judged_capture
from mcptest.probe.conformance.client.runner import ClientOrder, run_clients
from mcptest.probe.conformance.client.seen import SeenSession, offered_revisions
from mcptest.probe.conformance.scenario import Scenario
from mcptest.probe.conformance.scenario_catalogue import (
    not_offered,
    scenario_named,
    scenario_table,
    scenarios,
)
from mcptest.probe.conformance.server.server_suite import ConformanceOrder, run_server_scenarios
from mcptest.probe.suites.settings import cores
from mcptest.report.conformance import ConformanceReport
from mcptest.report.terminal import Style, say, say_json
from mcptest.rules.expected_failures import (
    Known,
    compared_with,
    load_expected_failures,
    requirement_set,
)
from mcptest.session.meeting import ASKED_FOR
from mcptest.session.server_spec import given_twice
from mcptest.transport.files import replace_file
from mcptest.transport.interrupt import stopping_on_signals
from mcptest.transport.target import Target
from mcptest.transport.temporary import temporary_folder

Tell: TypeAlias = Callable[[ScenarioResult], None]


def run_conformance(arguments: argparse.Namespace) -> int:
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "client": test_client,
        "server": test_server,
        "list": list_scenarios,
        "driver": show_driver,
        "judge": judge_again,
    }
    return actions[arguments.action](arguments)


# -- Choosing scenarios --------------------------------------------------------------------------


def check_choice(arguments: argparse.Namespace) -> None:
    """`--requirements` says all of it: the revision and what is run."""
    if arguments.requirements is None:
        return
    choices = {
        "--suite": arguments.suite,
        "--scenario": arguments.scenario,
        "--spec-version": arguments.spec_version != "auto",
    }
    for option, given in choices.items():
        if given:
            raise UsageError(f"--requirements and {option} are both given", hint="give one of them")


def _chosen(
    arguments: argparse.Namespace,
    side: Side,
    revision: Revision | None,
    transport: str | None = None,
) -> tuple[list[Scenario[Any]], list[str], list[str]]:
    """What is run, what of it counts, and what has to be said about it."""
    if arguments.requirements is not None:
        found = requirement_set(parse_revision(arguments.requirements))
        missing = [name for name in found.shown(side) if name in not_offered(side)]
        there = [scenario_named(side, one) for one in found.shown(side) if one not in missing]
        notes = [f"not offered: {', '.join(missing)}"] if missing else []
        return there, list(found.scored(side)), notes
    if arguments.scenario:
        return [scenario_named(side, name) for name in arguments.scenario], [], []
    if side is Side.CLIENT or arguments.suite:
        return scenarios(side, arguments.suite or DEFAULT_SUITE, revision, transport), [], []
    every = scenarios(side, "all", revision, transport)
    return [one for one in every if "pending" not in one.suites], [], []


def _asked_revision(arguments: argparse.Namespace) -> Revision | None:
    if arguments.requirements is not None:
        return parse_revision(arguments.requirements)
    return wanted_revision(arguments.spec_version)


# -- Clients -------------------------------------------------------------------------------------

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
        sys.stderr.write("mcptest: no scenario matches\n")
        return ExitCode.NOTHING_MATCHED
    return _put_through(
        arguments,
        lambda folder, tell, should_stop: run_clients(
            [_client_order(arguments, one, revision, folder, claims) for one, revision in chosen],
            jobs=wanted_jobs(arguments.jobs) or cores(),
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
            raise UsageError(f"--claims: {word!r} is not one of {', '.join(CLAIMS)}")
    return (words - {"elicitation"}) | both


def _client_chosen(
    arguments: argparse.Namespace,
) -> tuple[list[tuple[Scenario[SeenSession], Revision]], list[str], list[str]]:
    """As above, with the revision of each: those that the client can take part in."""
    wanted = _asked_revision(arguments)
    found, scored, notes = _chosen(arguments, Side.CLIENT, wanted)
    fitting = [one for one in found if arguments.transport in one.transports]
    left_out = [one.name for one in found if one not in fitting]
    if left_out and (arguments.scenario or not fitting):
        raise UsageError(f"{left_out[0]} does not run over {arguments.transport}")
    if left_out:
        notes.append(f"not over {arguments.transport}: {', '.join(left_out)}")
    # the newest that the server will speak
    return [(one, offered_revisions(one, wanted)[-1]) for one in fitting], scored, notes


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
        env=env_of(arguments),
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
        raise UsageError(f"--command: {error}") from None
    if not words:
        raise UsageError("--command is empty")
    return words


def _client_repeat(
    arguments: argparse.Namespace, scenario: Scenario[SeenSession], revision: Revision
) -> str:
    words = ["mcptest", "conformance", "client", *options_again(arguments, "command", "shell")]
    words += ["--scenario", scenario.name]
    if arguments.spec_version != "auto" or arguments.requirements is not None:
        words += ["--spec-version", revision.value]
    usual = {"transport": "http", "capabilities": "probe"}
    asked = [name for name, value in usual.items() if getattr(arguments, name) != value]
    words += options_again(arguments, *asked, "claims", "env", "env_file", "clean_env", "cwd")
    return repeat_line([*words, "--verbose"], arguments)


# -- Servers -------------------------------------------------------------------------------------


def test_server(arguments: argparse.Namespace) -> int:
    check_choice(arguments)
    if arguments.url is not None:
        if arguments.server is not None:
            raise given_twice()
        arguments.server = arguments.url
    target = named_target(arguments)
    revision, because = _server_revision(arguments, target)
    chosen, scored, notes = _chosen(arguments, Side.SERVER, revision, target.way)
    names = [one.name for one in chosen]
    if arguments.list:
        sys.stdout.writelines(f"{name} {revision}\n" for name in names)
        return ExitCode.OK if names else ExitCode.NOTHING_MATCHED
    if not names:
        sys.stderr.write(
            f"mcptest: no scenario for {revision} over {target.way}\n"
            f"  {revision}: {because}; `mcptest compliance run` judges every revision\n"
        )
        return ExitCode.NOTHING_MATCHED
    mask = redaction.text
    problems: list[str] = []

    def run(
        folder: Path | None, tell: Tell, should_stop: Callable[[], bool]
    ) -> list[ScenarioResult]:
        order = ConformanceOrder(
            target=target,
            revision=revision,
            because=because,
            scenarios=tuple(names),
            fixtures=pairs(arguments.map, "--map"),
            strict_fixtures=arguments.strict_fixtures,
            timeout=duration(arguments.timeout, "--timeout"),
            startup=startup_of(arguments),
            captures=folder,
            repeat=mask(_server_repeat(arguments, revision)),
            jobs=(wanted_jobs(arguments.jobs) or cores()) if target.way == "http" else 1,
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
        arguments.output and arguments.output / "captures",
        side=Side.SERVER,
        subject=mask(target.label),
        scored=scored,
        notes=notes,
        problems=problems,
        revision_reason=mask(because),
    )


def _server_revision(arguments: argparse.Namespace, target: Target) -> tuple[Revision, str]:
    """Without a wish the newest that the server speaks; and why it is this one."""
    wanted = _asked_revision(arguments)
    if wanted is not None:
        required = arguments.requirements is not None
        return wanted, "asked for by --requirements" if required else ASKED_FOR
    try:
        met = newest_spoken(Order(target=target, startup=startup_of(arguments)))
    except McptestError as error:
        raise error.masked(redaction.text) from None
    return met.revision, met.reason


def _server_repeat(arguments: argparse.Namespace, revision: Revision) -> str:
    words = ["mcptest", "conformance", "server", *server_options(arguments)]
    words += options_again(arguments, "map", "strict_fixtures")
    return repeat_line([*words, "--spec-version", revision.value], arguments)


# -- Running and reporting -----------------------------------------------------------------------


def _put_through(
    arguments: argparse.Namespace,
    run: Callable[[Path | None, Tell, Callable[[], bool]], list[ScenarioResult]],
    total: int,
    captures: Path | None = None,
    **facts: Any,
) -> int:
    """Run, show how far it has come, and report; `facts` are what the report says besides."""
    listed, expected = arguments.expected_failures, None
    if listed is not None:
        expected = load_expected_failures(listed, known_checks())
    began = time.monotonic()
    with stopping_on_signals() as stop, contextlib.ExitStack() as lent:
        if captures is None and (arguments.output is not None or arguments.html is not None):
            captures = lent.enter_context(temporary_folder())  # until they are copied or shown
        with live_progress(arguments, total) as progress:

            def tell(result: ScenarioResult) -> None:
                bad = (one.message for one in result.checks if one.status is CheckStatus.FAILURE)
                reason = result.cause or next(bad, "")
                name = f"{result.scenario} {result.revision}"
                progress.finish(name, name, failed=result.failed, reason=reason)

            results = run(captures, tell, stop.is_set)
        facts |= {"expected": expected, "interrupted": stop.is_set()}
        report = conformance_report(arguments, results=results, began=began, **facts)
        return publish(arguments, report, captures_lent=arguments.output is None)


def known_checks() -> Known:
    """Every scenario of both sides with its check ids, for reading lists of expected failures."""
    return {
        side: {
            **dict.fromkeys(not_offered(side), frozenset[str]()),
            **{
                name: frozenset({WIRE_SCHEMA, *(check.id for check in one.checks)})
                for name, one in scenario_table(side).items()
            },
        }
        for side in (Side.CLIENT, Side.SERVER)
    }


def conformance_report(
    arguments: argparse.Namespace,
    side: Side,
    results: Sequence[ScenarioResult],
    *,
    began: float,
    expected: tuple[ExpectedFailure, ...] | None = None,
    scored: Sequence[str] = (),
    notes: Sequence[str] = (),
    problems: Sequence[str] = (),
    **facts: Any,
) -> ConformanceReport:
    """`began` is a time of the monotonic clock; `facts` are what the report says besides.

    Where the options say nothing of warnings, it is as the official suite has it: they fail a
    client, but no server, and nothing when a requirement set is what counts.
    """
    warnings_fail: Literal["none", "own", "all"] = "none"
    if arguments.warnings is not None:
        warnings_fail = "all" if arguments.warnings else "none"
    elif side is Side.CLIENT and not scored:
        warnings_fail = "own"
    counted = [one for one in results if not scored or one.scenario in scored]
    return ConformanceReport(
        side=side,
        results=tuple(results),
        compared=None if expected is None else compared_with(expected, counted),
        scored=tuple(scored),
        notes=tuple(notes),
        problems=tuple(problems),
        warnings_fail=warnings_fail,
        **made_since(began),
        **facts,
    )


def publish(
    arguments: argparse.Namespace, report: ConformanceReport, *, captures_lent: bool = False
) -> int:
    """Everything that was asked for is written; then the exit code.

    `captures_lent`: they are gone at the end, and only the page shows what is in them.
    """
    whole = report  # the page shows captures also where they do not stay
    captures = [one.capture for one in report.results if one.capture]
    name = f"mcptest conformance {report.side.value}"
    report, unkept = _with_kept_captures(arguments, report, captures_lent=captures_lent)
    page = partial(page_of, whole, captures, name=name, by_rules=False)
    unreachable = _unreachable(report)
    if unreachable is not None and not arguments.json:
        tell_unwritten(arguments, [*unkept, *write_files(arguments, report, page)])
        raise unreachable
    nothing = "nothing was judged: no check was observed"
    code = conclude(arguments, report, nothing=nothing, page=page, lost=unkept)
    if unreachable is not None:
        raise unreachable
    return code


def _unreachable(report: ConformanceReport) -> PeerError | None:
    """A client that can't be started, or a server that can't be met, is no verdict on it.

    It is one cause, so it is said once.
    """
    causes = {one.cause for one in report.results}
    if report.interrupted or len(causes) != 1 or "" in causes:
        return None
    started = any(one.ended is not None and not one.ended.not_started for one in report.results)
    return None if started else PeerError(ErrorKind.SPAWN_FAILED, causes.pop().replace("\\n", "\n"))


def _with_kept_captures(
    arguments: argparse.Namespace, report: ConformanceReport, *, captures_lent: bool
) -> tuple[ConformanceReport, list[str]]:
    """The folders are written first: a report names captures where they stay, and no others."""
    if arguments.output is None:
        if captures_lent:
            gone = tuple(replace(one, capture="") for one in report.results)
            report = replace(report, results=gone)
        return report, []
    results: list[ScenarioResult] = []
    problems: list[str] = []
    for result in report.results:
        capture = ""
        try:
            place = write_results(arguments.output, result) / CAPTURE
            capture = str(place) if place.exists() else ""
        except (McptestError, OSError) as error:
            problems.append(f"results not written: {show(str(error), 300)}")
        results.append(replace(result, capture=capture))
    return replace(report, results=tuple(results)), problems[:1]


CAPTURE = "capture.jsonl"
_MOST = 1_000


def write_results(folder: Path, result: ScenarioResult) -> Path:
    """Make `<scenario>-<time>/` with `checks.json` and, of a client, its output and capture."""
    now = datetime.datetime.now(datetime.UTC)
    place = _new_folder(folder, result, now)
    rows = [_check_row(check, now) for check in result.checks]
    text = json.dumps(rows, indent=2, ensure_ascii=False, default=str) + "\n"
    replace_file(place / "checks.json", text.encode("utf-8", "backslashreplace"))
    if result.side is Side.CLIENT:
        replace_file(place / "stdout.txt", result.stdout.encode("utf-8", "backslashreplace"))
        replace_file(place / "stderr.txt", result.stderr.encode("utf-8", "backslashreplace"))
    if result.capture:
        try:
            shutil.copyfile(result.capture, place / CAPTURE)
            (place / CAPTURE).chmod(0o600)
        except OSError as error:
            where = place / CAPTURE
            raise UsageError(f"cannot copy the capture to {where}: {error.strerror}") from None
    return place


def _new_folder(folder: Path, result: ScenarioResult, now: datetime.datetime) -> Path:
    stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    name = result.scenario if result.side is Side.CLIENT else f"server-{result.scenario}"
    base = f"{name}-{stamp.replace(':', '-').replace('.', '-')}"
    for number in range(1, _MOST + 1):
        place = folder / (base if number == 1 else f"{base}-{number}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"cannot write results to {folder}: {error.strerror}") from None
        return place
    raise UsageError(f"cannot write results to {folder}: no free name")


def _check_row(check: CheckResult, now: datetime.datetime) -> dict[str, Any]:
    status = CheckStatus.SKIPPED if check.status is CheckStatus.UNTESTABLE else check.status
    row: dict[str, Any] = {
        "id": check.id,
        "name": check.name,
        "description": check.description,
        "status": status.value,
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "specReferences": [{"id": one.id, "url": one.url} for one in check.references],
    }
    details = dict(check.details)
    if check.record is not None:
        details["record"] = check.record
    if check.excerpt:
        details["excerpt"] = check.excerpt
    if details:
        row["details"] = details
    if check.message:
        row["errorMessage"] = check.message
    return row


# -- What there is, and what was kept ------------------------------------------------------------


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
    began = time.monotonic()
    result = judged_capture(
        scenario,
        [str(one) for one in arguments.capture],
        wanted_revision(arguments.spec_version),
        mode=arguments.capabilities,
        claims=claims_of(arguments.claims),
    )
    subject = ", ".join(str(one) for one in arguments.capture)
    report = conformance_report(arguments, Side.CLIENT, [result], began=began, subject=subject)
    return publish(arguments, report)
