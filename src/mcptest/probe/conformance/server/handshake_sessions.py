"""Sessions of the handshake era: initialize, its session id, ending it, ping and the log level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mcptest.core.capture import Frame, HttpResponse
from mcptest.core.message import Kind, id_key
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Judge,
    bad,
    expect,
    info,
    skipped,
    verdict,
    warned,
)
from mcptest.probe.conformance.server.scene import (
    Obj,
    ScenarioStage,
    Scene,
    result_of,
)
from mcptest.wire.envelope import decode
from mcptest.wire.mcp_headers import is_legal_session_id

_GONE = 404
_NO_SESSION = "the server issued no session id"
_NOT_ALLOWED = 405


class _Begun(msgspec.Struct, frozen=True):
    """How the session of a connection began."""

    result: Any = None
    session_id: str | None = None
    initialized: int | None = None
    """The status of the notification, over HTTP."""


def _begun(scene: Scene) -> _Begun:
    """Read from the records of the connection."""
    asked, carried, notified_on = None, None, None
    result = None
    statuses: dict[int | None, HttpResponse] = {}
    for record in scene.records:
        if isinstance(record, HttpResponse):
            statuses.setdefault(record.stream, record)
        if not isinstance(record, Frame):
            continue
        message = decode(record.raw)
        if record.sender == "client" and message.method == "initialize":
            asked, carried = id_key(message.id), record.stream
        elif record.sender == "client" and message.method == "notifications/initialized":
            notified_on = record.stream
        elif message.kind is Kind.RESULT and asked is not None and id_key(message.id) == asked:
            result = message.result
    first, second = statuses.get(carried), statuses.get(notified_on)
    return _Begun(
        result,
        first.header("mcp-session-id") if first is not None else None,
        second.status if second is not None else None,
    )


def keep_quiet(stage: ScenarioStage) -> None:
    """The connection was opened for the scenario: the handshake is all that it looks at."""


def server_initialize(scene: Scene) -> CheckFinding:
    return verdict(_problems_of_handshake(scene))


def _problems_of_handshake(scene: Scene) -> Iterator[str]:
    begun = _begun(scene)
    if not isinstance(begun.result, dict):
        yield "the server did not answer initialize with a result"
        return
    named = begun.result.get("serverInfo")
    if not isinstance(begun.result.get("protocolVersion"), str):
        yield "the result has no protocolVersion"
    if not isinstance(begun.result.get("capabilities"), dict):
        yield "the result has no capabilities object"
    if not isinstance(named, dict) or not named.get("name") or not named.get("version"):
        yield "the result has no serverInfo with name and version"
    status = begun.initialized
    if status is not None and not _is_fine(status):
        yield f"the server answered notifications/initialized with HTTP {status}"


def server_session_id_visible_ascii(scene: Scene) -> CheckFinding:
    given = _begun(scene).session_id
    if given is None:
        return info("the server issued no session id, which is optional")
    fault = "the session id has characters outside visible ASCII (0x21 to 0x7E)"
    return expect(is_legal_session_id(given), fault)


def end_session(stage: ScenarioStage) -> None:
    if "Mcp-Session-Id" in stage.main.lifecycle.headers("", None):
        stage.http("delete", "DELETE", {})
        stage.ask("after", "tools/list")


def _of_session(judge: Callable[[Scene, _Begun], CheckFinding]) -> Judge[Scene]:
    """Of a server that gave out a session id; without one there is nothing to look at."""

    def judged(scene: Scene) -> CheckFinding:
        begun = _begun(scene)
        return skipped(_NO_SESSION) if begun.session_id is None else judge(scene, begun)

    return judged


@_of_session
def server_session_initialized_accepted(scene: Scene, begun: _Begun) -> CheckFinding:
    status = begun.initialized
    return expect(
        _is_fine(status), f"the server answered notifications/initialized with HTTP {status}"
    )


@_of_session
def server_session_delete_accepted(scene: Scene, begun: _Begun) -> CheckFinding:
    heard, after = scene["delete"], scene["after"]
    status = heard.status
    if status == _NOT_ALLOWED:
        return skipped("the server does not allow clients to end sessions (HTTP 405)")
    if status == _GONE and after.status != _GONE:
        fault = f"DELETE got HTTP 404, but the session still works (HTTP {after.status})"
        return warned(fault, heard)
    if status is None:
        return bad(heard.silence, heard)
    fine = _is_fine(status) or status == _GONE
    return expect(fine, f"the server answered DELETE with HTTP {status}", heard, mild=True)


@_of_session
def server_session_terminated_returns_404(scene: Scene, begun: _Begun) -> CheckFinding:
    ended, after = scene["delete"].status, scene["after"]
    if not _is_fine(ended) and not ended == after.status == _GONE:
        return skipped(f"the session did not end (DELETE got HTTP {ended})")
    fault = (
        f"the server answered a request in the ended session with HTTP {after.status}; expected 404"
    )
    return expect(after.status == _GONE, fault, after)


def _is_fine(status: int | None) -> bool:
    return status is not None and 200 <= status < 300


@result_of("asked")
def empty_result(result: Obj) -> Iterator[str]:
    members = [str(name) for name in result if name != "_meta"]  # which any result may have
    if members:
        yield f"the result is not empty, it has {', '.join(members[:5])}"
