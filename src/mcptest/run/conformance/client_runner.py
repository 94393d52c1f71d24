"""One client in one scenario: the server is started, then the client, and then it is judged."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mcptest.clients.scenario import Scenario, offered_revisions
from mcptest.model.capture import AnyRecord
from mcptest.model.conformance import CheckResult, Ended, ScenarioResult
from mcptest.model.errors import McptestError, PeerError
from mcptest.model.masking import Masker
from mcptest.model.redaction import redaction
from mcptest.model.revision import Revision
from mcptest.model.secrets import secrets_of_command, secrets_of_environment
from mcptest.model.verdict import Side
from mcptest.peer.scripted.loop import Loop
from mcptest.peer.scripted.performance import Performance
from mcptest.peer.scripted.recording import Tape, spoken_in, without_broken_off
from mcptest.peer.scripted.script import Script
from mcptest.peer.scripted.site import ScriptedSite
from mcptest.run.conformance.client_judging import Evidence, judge_client
from mcptest.run.conformance.client_launching import LaunchedServer, defect_in
from mcptest.run.conformance.client_process import ClientProcess
from mcptest.run.conformance.scenario_masking import ScenarioMasker
from mcptest.run.conformance.scenario_recording import CAPTURE_LIMITS, flushed_soon
from mcptest.transport.recorder import Recorder

INTERRUPTED = "interrupted"
QUIET_ROUNDS = 2_000
"""How much may still be dealt with of what a client sent before it ended."""


class ClientOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run."""

    command: tuple[str, ...]
    scenario: Scenario
    revision: Revision
    """What the client is told that the server speaks: the newest of it."""
    negotiates: bool = False
    """Nobody asked for the revision, so the server speaks every one that has the scenario."""
    shell: bool = False
    """Join the command with spaces and let a shell read it, as the official suite does."""
    transport: str = "http"
    timeout: float = 30.0
    env: Mapping[str, str] = {}
    cwd: str | None = None
    clean_env: bool = False
    capture: Path | None = None
    capabilities: str = "probe"
    claims: frozenset[str] = frozenset()
    repeat: str = ""


class _Played(msgspec.Struct, kw_only=True):
    """What was seen of the client. A defect is one of ours."""

    records: list[AnyRecord]
    client: ClientProcess
    urls: dict[str, str] = {}
    context: dict[str, Any] = {}
    launched: bool = True
    unwritten: str = ""
    defect: str = ""


def run_client(order: ClientOrder, should_stop: Callable[[], bool]) -> ScenarioResult:
    """Run one scenario. Whatever the client does, it ends in a result; nothing is left running."""
    started = time.monotonic()
    try:
        played = (_play_stdio if order.transport == "stdio" else _play_http)(order, should_stop)
        result = _judged(order, played)
    except PeerError as error:
        message = f"{error.message} ({error.hint})" if error.hint else error.message
        ended = Ended(not_started=message)
        result = _result(order, cause=f"the client could not be started: {message}", ended=ended)
    except McptestError as error:
        result = _result(order, cause=error.message)
    except OSError as error:
        cause = f"the scripted server could not be started: {error.strerror or error}"
        result = _result(order, cause=cause)
    except Exception as error:  # noqa: BLE001 - a defect of ours costs one scenario, and is said
        result = _result(order, cause=f"a defect of mcptest: {type(error).__name__}: {error}")
    duration = round((time.monotonic() - started) * 1000, 1)
    return msgspec.structs.replace(result, duration_ms=duration)


# Playing


def _play_http(order: ClientOrder, should_stop: Callable[[], bool]) -> _Played:
    loop, script = Loop(), order.scenario.make()
    if order.capture is None:
        return _play_on_site(order, Performance(script, Tape(), loop), should_stop)
    redaction.learn(lambda: _secrets(order))
    masker = ScenarioMasker(script, redaction.secrets)
    with Recorder(order.capture, masker=masker, limits=CAPTURE_LIMITS) as recorder:
        tape = Tape(flushed_soon(recorder, loop))
        played = _play_on_site(order, Performance(script, tape, loop), should_stop)
        recorder.close(interrupted=played.client.interrupted)
        if recorder.error is not None:
            played.unwritten = recorder.error.strerror or str(recorder.error)
        return played


def _play_on_site(
    order: ClientOrder, performance: Performance, should_stop: Callable[[], bool]
) -> _Played:
    loop, script, tape = performance.loop, performance.script, performance.tape
    tape.opened(order.scenario.name, "http", "", _asked_for(order))
    probes = order.capabilities == "probe"
    site = ScriptedSite(performance, _offered(order), asks_for_capabilities=probes)
    try:
        context = _context(order.scenario, script)
        words = (site.url() + order.scenario.path,)
        environment = _environment(order, context)
        client = ClientProcess(
            loop,
            _command(order, words),
            environment,
            order.cwd,
            order.timeout,
            should_stop,
            clean_env=order.clean_env,
        )
        performance.on_settled = client.may_leave
        try:
            loop.run()
            loop.run_until_quiet(QUIET_ROUNDS)  # what it sent before it ended is still to be read
            performance.play(script.left)
        finally:
            client.release()
    finally:
        site.close()
    tape.closed()
    return _Played(
        records=tape.records,
        client=client,
        urls=site.urls,
        context=context,
        defect=performance.defect,
    )


def _play_stdio(order: ClientOrder, should_stop: Callable[[], bool]) -> _Played:
    loop = Loop()
    context = dict(order.scenario.context)
    with LaunchedServer(order.scenario.name, _asked_for(order), order.capabilities) as server:
        words = server.command
        environment = _environment(order, context) | {
            "MCP_CONFORMANCE_SERVER_COMMAND": json.dumps(words)
        }
        client = ClientProcess(
            loop,
            _command(order, words),
            environment,
            order.cwd,
            order.timeout,
            should_stop,
            clean_env=order.clean_env,
        )
        try:
            loop.run()
            loop.run_until_quiet(QUIET_ROUNDS)
        finally:
            client.release()
        if order.capture is not None:
            server.keep(order.capture)
        records = server.records()
        if client.was_ended:
            records = without_broken_off(records)
        return _Played(
            records=records,
            client=client,
            context=context,
            launched=server.was_launched,
            defect=defect_in(records),
        )


def _offered(order: ClientOrder) -> tuple[Revision, ...]:
    return offered_revisions(order.scenario, None if order.negotiates else order.revision)


def _asked_for(order: ClientOrder) -> str:
    return "auto" if order.negotiates else order.revision.value


def _command(order: ClientOrder, words: tuple[str, ...]) -> tuple[str, ...]:
    if order.shell:
        return ("/bin/sh", "-c", f"{' '.join(order.command)} {shlex.join(words)}")
    return (*order.command, *words)


def _context(scenario: Scenario, script: Script) -> dict[str, Any]:
    return {**scenario.context, **script.context}


def _environment(order: ClientOrder, context: Mapping[str, Any]) -> dict[str, str]:
    """Ours, as with the official suite: it is the user's own program, not a stranger's."""
    name = order.scenario.name
    inherited = {key: value for key, value in os.environ.items() if not value.startswith("()")}
    told = {
        "MCP_CONFORMANCE_SCENARIO": name,
        "MCP_CONFORMANCE_PROTOCOL_VERSION": order.revision.wire_version,
    }
    inherited.pop("MCP_CONFORMANCE_CONTEXT", None)
    if context:
        told["MCP_CONFORMANCE_CONTEXT"] = json.dumps({"name": name, **context})
    return {**inherited, **order.env, **told}


# Judging


def _judged(order: ClientOrder, played: _Played) -> ScenarioResult:
    client, masker = played.client, redaction.masker
    said = {
        "stdout": masker.cut_text(client.stdout.text()),
        "stderr": masker.cut_text(client.stderr.text()),
    }
    if client.interrupted:
        return _result(order, cause=INTERRUPTED, ended=client.ended, **said)
    if played.defect:
        cause = f"a defect of mcptest: {played.defect}"
        return _result(order, cause=cause, ended=client.ended, **said)
    evidence = Evidence(
        records=played.records,
        revision=spoken_in(played.records) or order.revision,
        offered=_offered(order),
        is_demanded=not order.negotiates,
        stderr=said["stderr"],
        transport=order.transport,
        urls=played.urls,
        endpoint=order.scenario.path or "/",
        context=played.context,
        ended=client.ended,
        was_settled=client.was_settled,
        launched=played.launched,
        unwritten=played.unwritten,
        mode=order.capabilities,
        claims=order.claims,
    )
    judged = judge_client(order.scenario, evidence, order.timeout)
    return _result(
        order,
        revision=evidence.revision,
        checks=tuple(_masked(row, masker) for row in judged.rows),
        unreached=masker.cut_text(judged.unreached),
        ended=client.ended,
        **said,
    )


def _secrets(order: ClientOrder) -> Iterator[str]:
    inherited = {} if order.clean_env else os.environ
    yield from secrets_of_environment({**inherited, **order.env})
    yield from secrets_of_command(order.command)


def _masked(row: CheckResult, masker: Masker) -> CheckResult:
    message, excerpt = masker.cut_text(row.message), masker.cut_text(row.excerpt)
    return msgspec.structs.replace(row, message=message, excerpt=excerpt)


def _result(order: ClientOrder, **known: Any) -> ScenarioResult:
    capture = str(order.capture) if order.capture is not None and order.capture.exists() else ""
    return ScenarioResult(
        scenario=order.scenario.name,
        side=Side.CLIENT,
        transport=order.transport,
        capture=capture,
        repeat=order.repeat,
        **{"checks": (), "revision": order.revision, **known},
    )
