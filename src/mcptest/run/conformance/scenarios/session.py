"""Sessions of the handshake era: initialize, its session id, ending it, ping and the log level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mcptest.clients.scenario import Row
from mcptest.model.capture import Frame, HttpResponse
from mcptest.model.message import Kind, id_key
from mcptest.run.conformance.scenarios.judges import (
    found,
    not_for_it,
    reference,
    result_of,
    told,
)
from mcptest.run.conformance.scenarios.scenario import (
    ACTIVE,
    FROM_2025_03_26,
    HANDSHAKE,
    HTTP,
    Needs,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Obj, Scene
from mcptest.run.conformance.scenarios.stage import Stage
from mcptest.wire.envelope import decode
from mcptest.wire.http_rules import is_legal_session_id

_SESSIONS = reference("MCP-Session-Management", "2025-11-25/basic/transports#session-management")
_GONE = 404
_NOT_ALLOWED = 405


class _Begun(msgspec.Struct, frozen=True):
    """How the session of a connection began."""

    result: Any = None
    session_id: str | None = None
    initialized: int | None = None
    """The status of the notification, over HTTP."""


def _begun(scene: Scene) -> _Begun:
    """Read from the records of the first connection."""
    records = scene.tapes[0] if scene.tapes else ()
    asked, carried, told_on = None, None, None
    result = None
    statuses: dict[int | None, HttpResponse] = {}
    for record in records:
        if isinstance(record, HttpResponse):
            statuses.setdefault(record.stream, record)
        if not isinstance(record, Frame):
            continue
        message = decode(record.raw)
        if record.sender == "client" and message.method == "initialize":
            asked, carried = id_key(message.id), record.stream
        elif record.sender == "client" and message.method == "notifications/initialized":
            told_on = record.stream
        elif message.kind is Kind.RESULT and asked is not None and id_key(message.id) == asked:
            result = message.result
    first, second = statuses.get(carried), statuses.get(told_on)
    return _Begun(
        result,
        first.header("mcp-session-id") if first is not None else None,
        second.status if second is not None else None,
    )


# -- server-initialize


def _only_begins(stage: Stage) -> None:
    """The connection of the scenario was opened for it: that is the handshake."""


def _initialized(scene: Scene) -> Iterator[Row]:
    yield found(_problems_of_handshake(scene))


def _problems_of_handshake(scene: Scene) -> Iterator[str]:
    begun = _begun(scene)
    if not isinstance(begun.result, dict):
        yield "initialize was not answered with a result"
        return
    info = begun.result.get("serverInfo")
    if not isinstance(begun.result.get("protocolVersion"), str):
        yield "the result has no protocolVersion"
    if not isinstance(begun.result.get("capabilities"), dict):
        yield "the result has no capabilities object"
    if not isinstance(info, dict) or not info.get("name") or not info.get("version"):
        yield "the result has no serverInfo with name and version"
    status = begun.initialized
    if status is not None and not 200 <= status < 300:
        yield f"notifications/initialized was answered with HTTP {status}"


def _session_id(scene: Scene) -> Iterator[Row]:
    given = _begun(scene).session_id
    if given is None:
        yield told("the server gave out no session id, which is its choice")
    else:
        fault = "the session id has characters outside of visible ASCII (0x21 to 0x7E)"
        yield found([] if is_legal_session_id(given) else [fault])


# -- server-session-lifecycle


def _end_session(stage: Stage) -> None:
    headers = stage.main.lifecycle.headers("", None)
    if "Mcp-Session-Id" not in headers:
        return
    stage.http("delete", "DELETE", {})
    stage.ask("after", "tools/list")


def _accepted(scene: Scene) -> Iterator[Row]:
    begun = _begun(scene)
    if begun.session_id is None:
        yield _without_session()
        return
    status = begun.initialized
    fine = status is not None and 200 <= status < 300
    yield found([] if fine else [f"notifications/initialized was answered with HTTP {status}"])


def _deleted(scene: Scene) -> Iterator[Row]:
    if _begun(scene).session_id is None:
        yield _without_session()
        return
    heard, after = scene["delete"], scene["after"]
    status = heard.status
    if status == _NOT_ALLOWED:
        yield not_for_it("the server does not let clients end sessions (HTTP 405)")
    elif status == _GONE and after.status != _GONE:
        fault = f"DELETE was answered with 404, yet the session still answers (HTTP {after.status})"
        yield found([fault], heard, mild=True)
    elif status is None:
        yield found([heard.silence], heard)
    else:
        fine = 200 <= status < 300 or status == _GONE
        yield found([] if fine else [f"DELETE was answered with HTTP {status}"], heard, mild=True)


def _stays_ended(scene: Scene) -> Iterator[Row]:
    if _begun(scene).session_id is None:
        yield _without_session()
        return
    ended, after = scene["delete"].status, scene["after"]
    over = ended is not None and (200 <= ended < 300 or (ended == _GONE and after.status == _GONE))
    if not over:
        yield not_for_it(f"the session was not ended (DELETE gave HTTP {ended})")
        return
    fault = f"a request of the ended session was answered with HTTP {after.status}, not 404"
    yield found([] if after.status == _GONE else [fault], after)


def _without_session() -> Row:
    return not_for_it("the server gave out no session id")


# -- ping, logging-set-level


def _empty(result: Obj) -> Iterator[str]:
    if result:
        yield f"the result is not empty: it has {', '.join(map(str, list(result)[:5]))}"


SCENARIOS = (
    ServerScenario(
        name="server-initialize",
        title="A session begins",
        description="A client sends `initialize` and then `notifications/initialized`. The server "
        "answers with its version, capabilities and name. A session id, if there is one, is of "
        "visible ASCII characters.",
        revisions=HANDSHAKE,
        suites=ACTIVE,
        script=_only_begins,
        isolated=True,
        checks=(
            ServerCheck(
                id="server-initialize",
                name="ServerInitialize",
                description="initialize is answered with a well-formed result",
                judge=_initialized,
                references=reference("MCP-Initialize", "2025-06-18/basic/lifecycle#initialization"),
            ),
            ServerCheck(
                id="server-session-id-visible-ascii",
                name="ServerSessionIdVisibleAscii",
                description="a session id has visible ASCII characters only",
                judge=_session_id,
                references=_SESSIONS,
                transports=HTTP,
            ),
        ),
    ),
    ServerScenario(
        name="server-session-lifecycle",
        title="A session ends",
        description="The client ends its session with DELETE and then asks once more under the "
        "same session id, which is answered with 404. A server may refuse DELETE with 405, and "
        "one without sessions has nothing to end.",
        revisions=FROM_2025_03_26,
        suites=ACTIVE,
        transports=HTTP,
        script=_end_session,
        isolated=True,
        checks=(
            ServerCheck(
                id="server-session-initialized-accepted",
                name="SessionInitializedAccepted",
                description="notifications/initialized under the session id is accepted",
                judge=_accepted,
                references=_SESSIONS,
            ),
            ServerCheck(
                id="server-session-delete-accepted",
                name="SessionDeleteAccepted",
                description="DELETE under the session id is accepted",
                judge=_deleted,
                references=_SESSIONS,
            ),
            ServerCheck(
                id="server-session-terminated-returns-404",
                name="SessionTerminatedReturns404",
                description="a request of an ended session is answered with 404",
                judge=_stays_ended,
                references=_SESSIONS,
            ),
        ),
    ),
    ServerScenario(
        name="logging-set-level",
        title="The log level is set",
        description="`logging/setLevel` with the level `info` is answered with an empty result.",
        revisions=HANDSHAKE,
        suites=ACTIVE,
        script=lambda stage: _ask(stage, "logging/setLevel", {"level": "info"}),
        needs=Needs(capabilities=("logging",)),
        checks=(
            ServerCheck(
                id="logging-set-level",
                name="LoggingSetLevel",
                description="logging/setLevel is answered with an empty result",
                judge=result_of("asked", _empty),
                references=reference("MCP-Logging", "2025-06-18/server/utilities/logging"),
            ),
        ),
    ),
    ServerScenario(
        name="ping",
        title="Ping",
        description="`ping` is answered with an empty result.",
        revisions=HANDSHAKE,
        suites=ACTIVE,
        script=lambda stage: _ask(stage, "ping"),
        checks=(
            ServerCheck(
                id="ping",
                name="Ping",
                description="ping is answered with an empty result",
                judge=result_of("asked", _empty),
                references=reference("MCP-Ping", "2025-06-18/basic/utilities/ping"),
            ),
        ),
    ),
)


def _ask(stage: Stage, method: str, params: Obj | None = None) -> None:
    stage.ask("asked", method, params)
