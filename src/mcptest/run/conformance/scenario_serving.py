"""Being the server of a scenario by hand: for clients that launch it, and for hosts with windows.

What `mcptest serve --scenario` does. The capture that it leaves can be judged later.
"""

from __future__ import annotations

import json
import os
import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcptest.clients.scenario import Scenario, offered_revisions
from mcptest.model.capture import AnyRecord, TransportName
from mcptest.model.conformance import CheckResult, ScenarioResult
from mcptest.model.errors import McptestError, UsageError
from mcptest.model.redaction import redaction
from mcptest.model.revision import Revision, revision_of_wire
from mcptest.model.verdict import Side
from mcptest.peer.scripted.loop import Loop
from mcptest.peer.scripted.performance import Performance
from mcptest.peer.scripted.recording import Tape, origins_of, spoken_in
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


def _offered(scenario: Scenario, wanted: Revision | None) -> tuple[Revision, ...]:
    """What to speak: what was asked for, or all revisions that have the scenario."""
    if wanted is not None and wanted not in scenario.revisions:
        known = ", ".join(str(one) for one in sorted(scenario.revisions))
        raise UsageError(f"scenario {scenario.name} is not for {wanted}", hint=f"it is for {known}")
    return offered_revisions(scenario, wanted)


def serve_on_pipes(
    scenario: Scenario, wanted: Revision | None, capture: Path | None, mode: str = "probe"
) -> int:
    """Be the server on stdin and stdout until the client leaves, in a revision or in them all."""
    if "stdio" not in scenario.transports:
        raise UsageError(f"scenario {scenario.name} is about HTTP", hint="use --transport http")
    script = scenario.make()
    offered = _offered(scenario, wanted)
    recorder = _recorder(capture, script)
    tape = _opened(scenario, wanted, "stdio", recorder)
    flush, probes = recorder.flush if recorder else _nothing, mode == "probe"
    try:
        defect = play_on_pipes(script, offered, tape, flush, asks_for_capabilities=probes)
    finally:
        _close(recorder)
    return _outcome(defect)


def serve_on_site(
    scenario: Scenario,
    wanted: Revision | None,
    capture: Path | None,
    port: int = 0,
    port_file: str | None = None,
    mode: str = "probe",
) -> int:
    """Be the server over HTTP until a signal comes."""
    if "http" not in scenario.transports:
        raise UsageError(f"scenario {scenario.name} is about stdio", hint="use --transport stdio")
    script = scenario.make()
    offered = _offered(scenario, wanted)
    loop = Loop()
    loop.stop_on_signals()
    recorder = _recorder(capture, script)
    tape = _opened(scenario, wanted, "http", recorder, loop)
    performance = Performance(script, tape, loop)
    try:
        site = _site(performance, offered, port, probes=mode == "probe")
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
    captures: Sequence[str],
    revision: Revision | None = None,
    *,
    mode: str = "probe",
    claims: frozenset[str] = frozenset(),
) -> ScenarioResult:
    """Judge what was kept, in one file or several. How the client ended is not known, so it is not
    judged. With several files a row says which one its place is in."""
    from mcptest.run.conformance.client_judging import Evidence, judge_client
    from mcptest.transport.capture_file import open_capture

    records: list[AnyRecord] = []
    begins: list[int] = []
    transport, spoken = "stdio", ""
    for capture in captures:
        begins.append(len(records))
        for session in open_capture(capture):
            records += (record for _, record in session.records)
            transport, spoken = session.transport or transport, session.spec_version or spoken
    asked_for = revision_of_wire(spoken)
    offered = _offered(scenario, revision or asked_for)
    speaks = revision or spoken_in(records) or asked_for or max(offered)
    evidence = Evidence(
        records=records,
        revision=speaks,
        transport=transport,
        urls=origins_of(records),
        endpoint=scenario.path or "/",
        context=dict(scenario.context),
        mode=mode,
        claims=claims,
        offered=offered,
        is_demanded=revision is not None or asked_for is not None,
    )
    judged = judge_client(scenario, evidence, 0.0)
    rows = judged.rows
    if len(captures) > 1:
        rows = tuple(_placed(row, captures, begins) for row in rows)
    return ScenarioResult(
        scenario=scenario.name,
        side=Side.CLIENT,
        revision=speaks,
        transport=transport,
        checks=rows,
        unreached=judged.unreached,
        capture=captures[0] if len(captures) == 1 else "",
    )


def _placed(row: CheckResult, captures: Sequence[str], begins: Sequence[int]) -> CheckResult:
    """With its place in the one capture that it is in."""
    if row.record is None:
        return row
    number = bisect_right(begins, row.record) - 1
    details = {**row.details, "capture": captures[number]}
    return replace(row, record=row.record - begins[number], details=details)


def _opened(
    scenario: Scenario,
    wanted: Revision | None,
    transport: TransportName,
    recorder: Recorder | None,
    loop: Loop | None = None,
) -> Tape:
    sink: Sink = discard
    if recorder is not None:
        sink = recorder if loop is None else flushed_soon(recorder, loop)
    tape = Tape(sink)
    label = recorder.path.stem if recorder is not None else scenario.name
    tape.opened(label, transport, "", "auto" if wanted is None else wanted.value)
    return tape


def _recorder(capture: Path | None, script: Script) -> Recorder | None:
    if capture is None:
        return None
    masker = ScenarioMasker(script, redaction.secrets)
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


def _site(
    performance: Performance, offered: Sequence[Revision], port: int, *, probes: bool
) -> ScriptedSite:
    try:
        return ScriptedSite(performance, offered, port, asks_for_capabilities=probes)
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
