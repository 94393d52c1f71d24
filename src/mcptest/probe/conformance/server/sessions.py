"""Sessions of the handshake era: initialize, its session id, ending it, ping and the log level. And
what is particular to HTTP: event streams that are closed and taken up again or several at once, who
may talk to a server on this machine, and headers that say what the body says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from mcptest.core.capture import Frame, HttpRequest, HttpResponse, SseEvent
from mcptest.core.safe_text import show
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Decided,
    Findings,
    Judge,
    bad,
    expect,
    info,
    inside,
    object_in,
    skipped,
    untestable,
    verdict,
    warned,
)
from mcptest.probe.conformance.server.scene import (
    Heard,
    Obj,
    ScenarioStage,
    Scene,
    ServerScript,
    result_of,
)
from mcptest.schema.tool_inputs import plausible_arguments
from mcptest.session.tape import answered_requests
from mcptest.session.tool_safety import is_safe
from mcptest.transport.listener import LOOPBACK
from mcptest.wire.envelope import decode
from mcptest.wire.mcp_headers import is_legal_session_id

_GONE = 404
_NOT_ALLOWED = 405


class _Begun(msgspec.Struct, frozen=True):
    """How the session of a connection began."""

    result: Any = None
    session_id: str | None = None
    initialized: int | None = None
    """The status of the notification, over HTTP."""


def _begun(scene: Scene) -> _Begun:
    """Read from the records of the connection."""
    frames = (one for one in scene.records if isinstance(one, Frame) and one.sender == "client")
    carried = {decode(one.raw).method: one.stream for one in frames}
    responses: dict[int | None, HttpResponse] = {
        one.stream: one for one in scene.records if isinstance(one, HttpResponse)
    }
    first = responses.get(carried.get("initialize"))
    second = responses.get(carried.get("notifications/initialized"))
    answered = answered_requests(scene.records)
    return _Begun(
        next((answer.result for asked, answer in answered if asked.method == "initialize"), None),
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


def _session(scene: Scene) -> _Begun:
    """How it began. Decided where the server gave out no session id."""
    begun = _begun(scene)
    if begun.session_id is None:
        raise Decided(skipped("the server issued no session id"))
    return begun


def server_session_initialized_accepted(scene: Scene) -> CheckFinding:
    status = _session(scene).initialized
    return expect(
        _is_fine(status), f"the server answered notifications/initialized with HTTP {status}"
    )


def server_session_delete_accepted(scene: Scene) -> CheckFinding:
    _session(scene)
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


def server_session_terminated_returns_404(scene: Scene) -> CheckFinding:
    _session(scene)
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


_STRANGER = "evil.example.com"
_STREAMS = ("first", "second", "third")


def _is_streamed(heard: Heard) -> bool:
    return "event-stream" in (heard.header("content-type") or "")


def _streamed(scene: Scene) -> Heard:
    """The call. Decided where it was not answered with a stream."""
    heard = scene["asked"]
    if heard.status is None:
        raise Decided(warned(heard.silence, heard))
    if heard.status >= 300:
        raise Decided(warned(f"the server answered the call with HTTP {heard.status}", heard))
    if not _is_streamed(heard):
        raise Decided(info("the server answered the call with JSON, not with a stream", heard))
    return heard


def server_sse_priming_event(scene: Scene) -> CheckFinding:
    heard = _streamed(scene)
    events = [one for one in scene.on_stream("asked") if getattr(one, "comment", None) is None]
    priming = [one for one in events if isinstance(one, SseEvent) and one.sse.id and not one.data]
    if not priming:
        return warned("the stream has no event with an id and no data", heard)
    return expect(events[0] is priming[0], "the priming event was not the first", heard, mild=True)


def server_sse_retry_field(scene: Scene) -> CheckFinding:
    heard = _streamed(scene)
    fields = [one.sse for one in scene.on_stream("asked") if one.sse is not None]
    named = any(one.retry is not None for one in fields)
    return expect(named, "no event of the stream has a retry field", heard, mild=True)


def server_sse_disconnect_resume(scene: Scene) -> CheckFinding:
    heard = _streamed(scene)
    again = next(  # the stream of the GET with Last-Event-ID, if the client had to come back
        (
            one.stream
            for one in scene.records_since("asked")
            if isinstance(one, HttpRequest)
            and any(name.lower() == "last-event-id" for name, _ in one.headers)
        ),
        None,
    )
    if again is None and not heard.answered:
        return warned(heard.silence, heard)
    if again is None:
        why = "the server sent the result on the first stream and did not close it before"
        return info(f"{why}; make test_reconnection close its stream", heard)
    status = next(
        (
            one.status
            for one in scene.records_since("asked")
            if isinstance(one, HttpResponse) and one.stream == again
        ),
        None,
    )
    if status == 405:
        return info("the server has no stream to resume (HTTP 405)", heard)
    if status is None or status >= 300:
        return warned(f"the server answered the reconnection with HTTP {status}", heard)
    return verdict(heard.without_result, heard, mild=True)


def ask_at_once(stage: ScenarioStage) -> None:
    for label in _STREAMS:
        stage.start(label, "tools/list")
    for label in _STREAMS:
        stage.collect(label)


def server_accepts_multiple_post_streams(scene: Scene) -> CheckFinding:
    statuses = [scene[label].status for label in _STREAMS]
    fine = all(status is not None and 200 <= status < 300 for status in statuses)
    said = ", ".join(map(str, statuses))
    return expect(
        fine, f"the server answered three parallel requests with HTTP {said}", scene["first"]
    )


def server_sse_streams_functional(scene: Scene) -> CheckFinding:
    streamed = [scene[label] for label in _STREAMS if _is_streamed(scene[label])]
    if not streamed:
        return info("the server answered all three with JSON, which is allowed")
    empty = [heard.silence for heard in streamed if not heard.answered]
    return verdict(empty, streamed[0], mild=len(empty) < len(streamed))


def knock(stage: ScenarioStage) -> None:
    """Once as a page of another site would, once as a client on this machine does."""
    url = urlsplit(stage.site.order.target.url)
    hosts = {"stranger": _STRANGER, "friend": url.netloc} if url.hostname in LOOPBACK else {}
    for label, host in hosts.items():
        headers = {"Host": host, "Origin": f"http://{host}"}
        method = "server/discover" if stage.scene.is_stateless else "ping"
        stage.ask(label, method, headers=headers)


def locally(label: str, least: int, most: int, fault: str) -> Judge[Scene]:
    """What was asked on this machine is answered with one of these statuses; `{}` is what came."""

    def judge(scene: Scene) -> CheckFinding:
        if label not in scene:
            return untestable("run the server on this machine, with a localhost URL")
        heard = scene[label]
        came = heard.silence if heard.status is None else f"HTTP {heard.status}"
        return expect(heard.status in range(least, most + 1), fault.format(came), heard)

    return judge


_MISMATCH = -32020


def try_headers(**requests: Mapping[str, str | None]) -> ServerScript:
    """The headers of each request, by its label; None leaves one out. What has a Mcp-Name is the
    call of a tool, which `{tool}` stands for."""

    def script(stage: ScenarioStage) -> None:
        # A tool that says that it only reads; else the first, as the official suite does it.
        offered = [
            one for one in stage.scene.offered.tools if isinstance(one, Mapping) and one.get("name")
        ]
        reading = [one for one in offered if is_safe(one)]
        tool = next((str(one["name"]) for one in (*reading, *offered)), None)
        for label, headers in requests.items():
            if "Mcp-Name" not in headers:
                stage.ask(label, "tools/list", headers=headers)
            elif tool is not None:
                named = {
                    key: text and text.replace("{tool}", tool) for key, text in headers.items()
                }
                arguments = plausible_arguments(stage.scene.offered.input_schema(tool))
                params = {"name": tool, "arguments": arguments}
                stage.ask(label, "tools/call", params, headers=named)

    return script


def try_params(**requests: tuple[str, str | None]) -> ServerScript:
    """Calls, by their labels, of the first tool that has an argument which is a header too: the
    argument, and the header."""

    def script(stage: ScenarioStage) -> None:
        found = next(_arguments_with_header(stage.scene.offered.tools), None)
        if found is None:
            return
        tool, argument, header = found
        others = plausible_arguments(object_in(tool, "inputSchema"))
        for label, (value, sent) in requests.items():
            params = {"name": str(tool.get("name")), "arguments": {**others, argument: value}}
            stage.ask(label, "tools/call", params, headers={f"Mcp-Param-{header}": sent})

    return script


def _arguments_with_header(tools: Iterable[Any]) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    for tool in tools:
        for argument, field in object_in(tool, "inputSchema", "properties").items():
            header = inside(field, "x-mcp-header")
            if isinstance(header, str) and field.get("type") == "string":
                yield tool, argument, header


def _refused(heard: Heard) -> str:
    return heard.status_problem(400)


def _coded(heard: Heard) -> str:
    fault = f"the server answered with error {show(str(heard.code), 20)}; expected {_MISMATCH}"
    return "" if heard.code == _MISMATCH else fault


def _served(heard: Heard) -> str:
    refused = heard.status is not None and heard.status >= 400
    came = f"the server answered a valid request with HTTP {heard.status}" if refused else ""
    return "; ".join(filter(None, (came, heard.without_result)))


_EXPECTED = {"refused": _refused, "coded": _coded, "served": _served}


def each(unlock: str, mild: bool = False, **expected: Sequence[str]) -> Judge[Scene]:
    """A row for each of these requests, by what is expected of them; what was not asked needs
    something to be unlocked."""

    def judge(scene: Scene) -> Findings:
        for kind, labels in expected.items():
            for label in labels:
                name = f"{label}ErrorCode" if kind == "coded" else label
                if label in scene:
                    problem = _EXPECTED[kind](scene[label])
                    yield verdict(problem, scene[label], name, mild=mild)
                else:
                    yield untestable(unlock, name=name)

    return judge
