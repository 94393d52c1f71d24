"""Being the server of a scenario by hand: for clients that launch it, and for hosts with windows.

What `mcptest serve --scenario` does. The capture that it leaves can be judged later.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcptest.clients.scenario import Scenario
from mcptest.model.capture import AnyRecord, TransportName
from mcptest.model.conformance import CheckResult
from mcptest.model.errors import McptestError, UsageError
from mcptest.model.revision import NEWEST_HANDSHAKE, Revision
from mcptest.peer.scripted.loop import Loop
from mcptest.peer.scripted.performance import Performance
from mcptest.peer.scripted.recording import Tape, origins_of
from mcptest.peer.scripted.script import Script
from mcptest.peer.scripted.site import ScriptedSite
from mcptest.peer.scripted.stdio import play_on_pipes
from mcptest.run.conformance.scenario_masking import ScenarioMasker
from mcptest.run.conformance.scenario_recording import CAPTURE_LIMITS, flushed_soon
from mcptest.transport.base import Sink, discard
from mcptest.transport.files import replace_file
from mcptest.transport.recorder import Recorder

DEFECT = "a defect of mcptest: "
_MOST_LAUNCHES = 1_000


def revision_for(scenario: Scenario, wanted: Revision | None) -> Revision:
    """The revision to speak: the one that was asked for, or the newest that has a handshake."""
    if wanted is not None:
        if wanted not in scenario.revisions:
            known = ", ".join(str(one) for one in sorted(scenario.revisions))
            raise UsageError(
                f"scenario {scenario.name} is not for {wanted}", hint=f"it is for {known}"
            )
        return wanted
    return NEWEST_HANDSHAKE if NEWEST_HANDSHAKE in scenario.revisions else max(scenario.revisions)


def serve_on_pipes(scenario: Scenario, revision: Revision, capture: Path | None) -> int:
    """Be the server on stdin and stdout until the client leaves."""
    if "stdio" not in scenario.transports:
        raise UsageError(f"scenario {scenario.name} is about HTTP", hint="use --transport http")
    script = scenario.make(revision)
    recorder = _recorder(capture, script)
    tape = _opened(scenario, revision, "stdio", recorder)
    try:
        defect = play_on_pipes(script, revision, tape, recorder.flush if recorder else _nothing)
    finally:
        _close(recorder)
    return _outcome(defect)


def serve_on_site(
    scenario: Scenario,
    revision: Revision,
    capture: Path | None,
    port: int = 0,
    port_file: str | None = None,
) -> int:
    """Be the server over HTTP until a signal comes."""
    if "http" not in scenario.transports:
        raise UsageError(f"scenario {scenario.name} is about stdio", hint="use --transport stdio")
    script = scenario.make(revision)
    loop = Loop()
    loop.stop_on_signals()
    recorder = _recorder(capture, script)
    tape = _opened(scenario, revision, "http", recorder, loop)
    performance = Performance(script, tape, loop)
    try:
        site = _site(performance, revision, port)
        try:
            _announce(site.url() + scenario.path, port_file, {**scenario.context, **script.context})
            if not performance.defect:
                loop.run()
        finally:
            site.close()
    finally:
        _close(recorder)
    return _outcome(performance.defect)


def judged_capture(
    scenario: Scenario,
    capture: str,
    revision: Revision | None = None,
    *,
    mode: str = "probe",
    claims: frozenset[str] = frozenset(),
) -> tuple[Revision, str, tuple[CheckResult, ...]]:
    """Judge a capture that was kept. How the client ended is not known, so it is not judged."""
    from mcptest.run.conformance.client_judging import Evidence, rows_of
    from mcptest.transport.capture_file import open_capture

    records: list[AnyRecord] = []
    transport, spoken = "stdio", ""
    for session in open_capture(capture):
        records += (record for _, record in session.records)
        transport, spoken = session.transport or transport, session.spec_version or spoken
    wanted = revision or next((one for one in Revision if one.value == spoken), None)
    speaks = revision_for(scenario, wanted)
    evidence = Evidence(
        records=records,
        revision=speaks,
        transport=transport,
        urls=origins_of(records),
        endpoint=scenario.path or "/",
        context=dict(scenario.context),
        mode=mode,
        claims=claims,
    )
    return speaks, transport, tuple(rows_of(scenario, evidence, 0.0))


def _opened(
    scenario: Scenario,
    revision: Revision,
    transport: TransportName,
    recorder: Recorder | None,
    loop: Loop | None = None,
) -> Tape:
    sink: Sink = discard
    if recorder is not None:
        sink = recorder if loop is None else flushed_soon(recorder, loop)
    tape = Tape(sink)
    label = recorder.path.stem if recorder is not None else scenario.name
    tape.opened(label, transport, "", revision.value)
    return tape


def _recorder(capture: Path | None, script: Script) -> Recorder | None:
    if capture is None:
        return None
    masker = ScenarioMasker(script)
    recorder = Recorder(_free_place(capture), masker=masker, limits=CAPTURE_LIMITS)
    recorder.kept = True  # that it was launched at all is worth keeping
    return recorder


def _free_place(wanted: Path) -> Path:
    """A name that nobody has: whoever launches us twice gets two captures."""
    for number in range(1, _MOST_LAUNCHES + 1):
        name = wanted.name if number == 1 else f"{wanted.stem}-{number}{wanted.suffix}"
        place = wanted.with_name(name)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"can't write the capture {wanted}: {error.strerror}") from None
        return place
    raise UsageError(f"there are {_MOST_LAUNCHES} captures beside {wanted} already")


def _close(recorder: Recorder | None) -> None:
    if recorder is not None:
        recorder.close()
        if recorder.error is not None:
            raise McptestError(f"the capture could not be written: {recorder.error.strerror}")


def _site(performance: Performance, revision: Revision, port: int) -> ScriptedSite:
    try:
        return ScriptedSite(performance, revision, port)
    except OSError as error:
        raise UsageError(f"can't listen on port {port}: {error.strerror}") from None


def _announce(url: str, port_file: str | None, context: Mapping[str, Any]) -> None:
    sys.stderr.write(f"listening on {url}\n")
    if context:
        sys.stderr.write(f"the client is to know: {json.dumps(context)}\n")
    sys.stderr.flush()
    if port_file is not None:
        port = url.removeprefix("http://").partition("/")[0].rpartition(":")[2]
        replace_file(Path(port_file), f"{port}\n".encode())


def _outcome(defect: str) -> int:
    if defect:
        raise McptestError(f"{DEFECT}{defect}")
    return 0


def _nothing() -> None:
    pass
