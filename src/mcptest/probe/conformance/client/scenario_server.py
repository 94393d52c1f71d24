"""Being the server of a scenario by hand: for clients that launch it, and for hosts with windows.

What `mcptest serve --scenario` does. The capture that it leaves can be judged later.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from mcptest.core.capture import AnyRecord, Headers, TransportName
from mcptest.core.errors import McptestError, UsageError
from mcptest.core.limits import MEBIBYTE, Limits
from mcptest.core.masking import Masker
from mcptest.core.redaction import is_credential_header, redaction
from mcptest.core.revision import Revision
from mcptest.probe.conformance.client.seen import SeenSession, offered_revisions
from mcptest.probe.conformance.scenario import Scenario
from mcptest.servers.scripted.recording import SiteTape
from mcptest.servers.scripted.script import DEFECT, Script, ScriptedPipes, ScriptedSite, ScriptStage
from mcptest.transport.files import replace_file
from mcptest.transport.loop import Loop
from mcptest.transport.recorder import Recorder


class ScenarioMasker(Masker):
    """Masks every credential of a client except those that it has from us."""

    def __init__(self, script: Script, secrets: Iterable[str] = ()) -> None:
        super().__init__(secrets)
        self._script = script

    def headers(self, headers: Headers) -> Headers:
        masked = super().headers(headers)
        return tuple(
            (name, value) if is_credential_header(name) and self._is_ours(value) else hidden
            for (name, value), hidden in zip(headers, masked, strict=True)
        )

    def _is_ours(self, value: str) -> bool:
        scheme, _, credential = value.strip().partition(" ")
        if scheme.lower() == "basic":
            try:
                pair = base64.b64decode(credential, validate=True).decode()
            except (binascii.Error, ValueError):
                return False
            credential = unquote_plus(pair.partition(":")[2])
        return bool(credential) and credential in self._script.issued


_CAPTURE_LIMITS = Limits(capture_bytes=128 * MEBIBYTE)


@contextmanager
def recorded(
    script: Script, loop: Loop, place: Path | None
) -> Iterator[tuple[SiteTape, Recorder | None]]:
    """A tape for a script, and what writes it down if there is a place for it: as soon as what came
    has been dealt with, so it costs no memory, and a kill loses nothing."""
    if place is None:
        yield SiteTape(), None
        return
    masker = ScenarioMasker(script, redaction.secrets)
    with Recorder(place, masker=masker, limits=_CAPTURE_LIMITS) as recorder:

        def tell(record: AnyRecord) -> None:
            recorder(record)
            loop.after(0, recorder.flush)

        yield SiteTape(tell, recorder.flush), recorder


_MOST_LAUNCHES = 1_000


def serve_scenario(
    scenario: Scenario[SeenSession],
    wanted: Revision | None,
    capture: Path | None,
    *,
    transport: TransportName,
    mode: str = "probe",
    port: int = 0,
    port_file: str | None = None,
) -> int:
    """Be the server, in a revision or in them all: over HTTP until a signal comes, on stdin and
    stdout until the client leaves."""
    if transport not in scenario.transports:
        other = "HTTP" if transport == "stdio" else "stdio"
        hint = f"use --transport {other.lower()}"
        raise UsageError(f"scenario {scenario.name} applies to {other}", hint=hint)
    script, offered, loop = scenario.script(), offered_revisions(scenario, wanted), Loop()
    loop.stop_on_signals()
    with recorded(script, loop, capture and _free_place(capture)) as (tape, recorder):
        if recorder is not None:
            recorder.kept = True  # that it was launched at all is worth keeping
        label = scenario.name if recorder is None else recorder.path.stem
        tape.opened(label, transport, "auto" if wanted is None else wanted.value)
        site: ScriptStage
        if transport == "stdio":
            site = ScriptedPipes(script, tape, loop, offered)
        else:
            try:
                site = ScriptedSite(script, tape, loop, offered, port)
            except OSError as error:
                raise UsageError(f"can't listen on port {port}: {error.strerror}") from None
        site.asks_for_capabilities = mode == "probe"
        try:
            if transport != "stdio":
                context = {**scenario.context, **script.context}
                _announce(site.url() + scenario.path, port_file, context)
            site.run()
        finally:
            site.close()
    if recorder is not None and recorder.error is not None:
        raise McptestError(f"the capture could not be written: {recorder.error.strerror}")
    if site.defect:
        raise McptestError(f"{DEFECT}{site.defect}")
    return 0


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
    raise UsageError(f"there are already {_MOST_LAUNCHES} captures beside {wanted}")


def _announce(url: str, port_file: str | None, context: Mapping[str, Any]) -> None:
    sys.stderr.write(f"listening on {url}\n")
    if context:
        sys.stderr.write(f"context for the client: {json.dumps(context)}\n")
    sys.stderr.flush()
    if port_file is not None:
        port = url.removeprefix("http://").partition("/")[0].rpartition(":")[2]
        replace_file(Path(port_file), f"{port}\n".encode())
