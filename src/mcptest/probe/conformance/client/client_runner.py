"""One client in one scenario: the server is started, then the client, and then it is judged."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.core.capture import AnyRecord
from mcptest.core.errors import McptestError, PeerError
from mcptest.core.redaction import redaction, secrets_of_command, secrets_of_environment
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import Ended, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.client_judging import judge_client
from mcptest.probe.conformance.client.client_process import ClientProcess, LaunchedServer, defect_in
from mcptest.probe.conformance.client.scenario_server import recorded
from mcptest.probe.conformance.client.seen import SeenSession, offered_revisions
from mcptest.probe.conformance.scenario import Scenario
from mcptest.probe.conformance.scenario_runs import ScenarioRuns
from mcptest.servers.scripted.recording import spoken_in, without_broken_off
from mcptest.servers.scripted.script import DEFECT
from mcptest.servers.scripted.sites import ScriptedSite
from mcptest.transport.loop import Loop

INTERRUPTED = "interrupted"


class ClientOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run."""

    command: tuple[str, ...]
    scenario: Scenario[SeenSession]
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

    @property
    def asked_for(self) -> str:
        return "auto" if self.negotiates else self.revision.value

    @property
    def offered(self) -> tuple[Revision, ...]:
        return offered_revisions(self.scenario, None if self.negotiates else self.revision)

    def started(
        self,
        loop: Loop,
        words: Sequence[str],
        env: Mapping[str, str],
        should_stop: Callable[[], bool],
    ) -> ClientProcess:
        """The client, with the words that say where the server is."""
        command = (*self.command, *words)
        if self.shell:
            command = ("/bin/sh", "-c", f"{' '.join(self.command)} {shlex.join(words)}")
        return ClientProcess(
            loop, command, env, self.cwd, self.timeout, should_stop, clean_env=self.clean_env
        )


def run_client(order: ClientOrder, should_stop: Callable[[], bool]) -> ScenarioResult:
    """Run one scenario. Whatever the client does, it ends in a result; nothing is left running."""
    started = time.monotonic()
    try:
        play = _play_stdio if order.transport == "stdio" else _play_http
        result = _judged(order, *play(order, should_stop))
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
        result = _result(order, cause=f"{DEFECT}{type(error).__name__}: {error}")
    duration = round((time.monotonic() - started) * 1000, 1)
    return replace(result, duration_ms=duration)


def _play_http(
    order: ClientOrder, should_stop: Callable[[], bool]
) -> tuple[ClientProcess, SeenSession]:
    loop, script = Loop(), order.scenario.script()
    if order.capture is not None:
        redaction.learn(lambda: _secrets(order))
    with recorded(script, loop, order.capture) as (tape, recorder):
        tape.opened(order.scenario.name, "http", order.asked_for)
        site = ScriptedSite(script, tape, loop, order.offered)
        site.asks_for_capabilities = order.capabilities == "probe"
        try:
            context = {**order.scenario.context, **script.context}
            words = (site.url() + order.scenario.path,)
            client = order.started(loop, words, _environment(order, context), should_stop)
            site.on_settled = client.may_leave
            client.run()
        finally:
            site.close()
        tape.closed()
        unwritten = ""
        if recorder is not None:
            recorder.close(interrupted=client.ended_for == "interrupt")
            error = recorder.error
            unwritten = "" if error is None else error.strerror or str(error)
        return client, _seen(order, client, tape.records, urls=site.urls, unwritten=unwritten)


def _play_stdio(
    order: ClientOrder, should_stop: Callable[[], bool]
) -> tuple[ClientProcess, SeenSession]:
    loop = Loop()
    with LaunchedServer(order.scenario.name, order.asked_for, order.capabilities) as server:
        words = server.command
        environment = _environment(order, order.scenario.context) | {
            "MCP_CONFORMANCE_SERVER_COMMAND": json.dumps(words)
        }
        client = order.started(loop, words, environment, should_stop)
        client.run()
        if order.capture is not None:
            server.keep(order.capture)
        records = server.records()
        if client.ended_for:
            records = without_broken_off(records)
        return client, _seen(order, client, records, launched=server.was_launched)


def _seen(
    order: ClientOrder, client: ClientProcess, records: list[AnyRecord], **known: Any
) -> SeenSession:
    return SeenSession(
        records=records,
        revision=spoken_in(records) or order.revision,
        offered=order.offered,
        is_demanded=not order.negotiates,
        stderr=redaction.masker.cut_text(client.stderr.text()),
        transport=order.transport,
        endpoint=order.scenario.path or "/",
        ended=client.ended,
        was_settled=client.ended_for == "settled",
        mode=order.capabilities,
        claims=order.claims,
        **known,
    )


def _environment(order: ClientOrder, context: Mapping[str, Any]) -> dict[str, str]:
    """Ours, as with the official suite: it is the user's own program, not a stranger's."""
    name = order.scenario.name
    inherited = {key: value for key, value in os.environ.items() if not value.startswith("()")}
    expected = {
        "MCP_CONFORMANCE_SCENARIO": name,
        "MCP_CONFORMANCE_PROTOCOL_VERSION": order.revision.wire_version,
    }
    inherited.pop("MCP_CONFORMANCE_CONTEXT", None)
    if context:
        expected["MCP_CONFORMANCE_CONTEXT"] = json.dumps({"name": name, **context})
    return {**inherited, **order.env, **expected}


def _judged(order: ClientOrder, client: ClientProcess, seen: SeenSession) -> ScenarioResult:
    masker = redaction.masker
    stdout = masker.cut_text(client.stdout.text())
    said: dict[str, Any] = {"stdout": stdout, "stderr": seen.stderr, "ended": client.ended}
    if client.ended_for == "interrupt":
        return _result(order, cause=INTERRUPTED, **said)
    if defect := defect_in(seen.records):
        return _result(order, cause=f"{DEFECT}{defect}", **said)
    judged = judge_client(order.scenario, seen, order.timeout)
    return _result(
        order,
        revision=seen.revision,
        checks=tuple(
            replace(row, message=masker.cut_text(row.message), excerpt=masker.cut_text(row.excerpt))
            for row in judged.rows
        ),
        unreached=masker.cut_text(judged.unreached),
        **said,
    )


def _secrets(order: ClientOrder) -> Iterator[str]:
    inherited = {} if order.clean_env else os.environ
    yield from secrets_of_environment({**inherited, **order.env})
    yield from secrets_of_command(order.command)


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


def run_clients(
    orders: Sequence[ClientOrder],
    *,
    jobs: int,
    tell: Callable[[ScenarioResult], None],
    should_stop: Callable[[], bool],
) -> list[ScenarioResult]:
    """Results in the order of `orders`; `tell` hears of each as it is finished.

    Once it is to stop, all clients are ended, and only what was finished by then is given.
    """
    runs = ScenarioRuns(tell)

    def is_to_stop() -> bool:
        return runs.broken.is_set() or should_stop()

    def lane(place: int) -> ScenarioResult | None:
        if is_to_stop():
            return None
        result = run_client(orders[place], is_to_stop)
        return None if result.cause == INTERRUPTED else result

    runs.run(range(len(orders)), [lane] * min(jobs, len(orders)))
    return [runs.results[place] for place in sorted(runs.results)]
