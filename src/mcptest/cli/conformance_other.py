"""`mcptest conformance list`, `mcptest conformance driver` and `mcptest conformance judge`."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

import msgspec

from mcptest.cli.conformance_client import claims_of
from mcptest.cli.conformance_shared import Clock, made_report, published
from mcptest.cli.options import wanted_revision
from mcptest.model.errors import ExitCode
from mcptest.model.revision import Revision
from mcptest.model.verdict import Side
from mcptest.report.terminal import Style, say, say_json


def list_scenarios(arguments: argparse.Namespace, stream: TextIO) -> int:
    wanted = wanted_revision(arguments.spec_version)
    both = arguments.client == arguments.server
    groups = []
    if both or arguments.client:
        groups.append(("client", *_clients(wanted)))
    if both or arguments.server:
        groups.append(("server", *_servers(wanted)))
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


def _clients(wanted: Revision | None) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from mcptest.clients.catalogue import NOT_OFFERED, client_scenarios

    return [_row(one) for one in client_scenarios("all", wanted)], dict(NOT_OFFERED)


def _servers(wanted: Revision | None) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from mcptest.run.conformance.scenarios.catalogue import NOT_OFFERED, server_scenarios

    return [_row(one) for one in server_scenarios("all", wanted)], dict(NOT_OFFERED)


def _row(scenario: Any) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "title": scenario.title,
        "revisions": [one.value for one in sorted(scenario.revisions)],
        "transports": sorted(scenario.transports),
        "suites": sorted(scenario.suites),
        "checks": list(dict.fromkeys(check.id for check in scenario.checks)),
    }


def show_driver(arguments: argparse.Namespace, stream: TextIO) -> int:
    """One program, or which there are."""
    from mcptest.clients.driver import driver_named, drivers

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
    from mcptest.clients.catalogue import scenario_named
    from mcptest.run.conformance.scenario_serving import judged_capture

    scenario = scenario_named(arguments.scenario)
    clock = Clock()
    result = judged_capture(
        scenario,
        [str(one) for one in arguments.capture],
        wanted_revision(arguments.spec_version),
        mode=arguments.capabilities,
        claims=claims_of(arguments.claims),
    )
    subject = ", ".join(str(one) for one in arguments.capture)
    report = made_report(
        Side.CLIENT, subject, [result], clock=clock, fail_on_warning=arguments.warnings
    )
    return published(arguments, report)
