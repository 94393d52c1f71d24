"""What is particular to HTTP: event streams that are closed and taken up again or several at once,
who may talk to a server on this machine, and headers that say what the body says.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from mcptest.core.capture import HttpRequest, HttpResponse, SseEvent
from mcptest.core.safe_text import show
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Findings,
    Judge,
    expect,
    info,
    inside,
    object_in,
    untestable,
    verdict,
    warned,
)
from mcptest.probe.conformance.server.scene import Heard, ScenarioStage, Scene, ServerScript
from mcptest.schema.plausible import plausible_arguments
from mcptest.session.tool_safety import is_safe
from mcptest.transport.listener import LOOPBACK

_STRANGER = "evil.example.com"
_STREAMS = ("first", "second", "third")


def _is_streamed(heard: Heard) -> bool:
    return "event-stream" in (heard.header("content-type") or "")


def _streamed(judge: Callable[[Scene, Heard], CheckFinding]) -> Judge[Scene]:
    """Of a call that was answered with a stream."""

    def judged(scene: Scene) -> CheckFinding:
        heard = scene["asked"]
        if heard.status is None:
            return warned(heard.silence, heard)
        if heard.status >= 300:
            return warned(f"the server answered the call with HTTP {heard.status}", heard)
        if not _is_streamed(heard):
            return info("the server answered the call with JSON, not with a stream", heard)
        return judge(scene, heard)

    return judged


@_streamed
def _primed(scene: Scene, heard: Heard) -> CheckFinding:
    events = [one for one in scene.on_stream("asked") if getattr(one, "comment", None) is None]
    priming = [one for one in events if isinstance(one, SseEvent) and one.sse.id and not one.data]
    if not priming:
        return warned("the stream has no event with an id and no data", heard)
    return expect(events[0] is priming[0], "the priming event was not the first", heard, mild=True)


@_streamed
def _retried(scene: Scene, heard: Heard) -> CheckFinding:
    fields = [one.sse for one in scene.on_stream("asked") if one.sse is not None]
    named = any(one.retry is not None for one in fields)
    return expect(named, "no event of the stream has a retry field", heard, mild=True)


@_streamed
def _resumed(scene: Scene, heard: Heard) -> CheckFinding:
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


def _at_once(stage: ScenarioStage) -> None:
    for label in _STREAMS:
        stage.start(label, "tools/list")
    for label in _STREAMS:
        stage.collect(label)


def _all_accepted(scene: Scene) -> CheckFinding:
    statuses = [scene[label].status for label in _STREAMS]
    fine = all(status is not None and 200 <= status < 300 for status in statuses)
    said = ", ".join(map(str, statuses))
    return expect(
        fine, f"the server answered three parallel requests with HTTP {said}", scene["first"]
    )


def _all_deliver(scene: Scene) -> CheckFinding:
    streamed = [scene[label] for label in _STREAMS if _is_streamed(scene[label])]
    if not streamed:
        return info("the server answered all three with JSON, which is allowed")
    empty = [heard.silence for heard in streamed if not heard.answered]
    return verdict(empty, streamed[0], mild=len(empty) < len(streamed))


def _knock(stage: ScenarioStage) -> None:
    """Once as a page of another site would, once as a client on this machine does."""
    url = urlsplit(stage.site.order.target.url)
    hosts = {"stranger": _STRANGER, "friend": url.netloc} if url.hostname in LOOPBACK else {}
    for label, host in hosts.items():
        headers = {"Host": host, "Origin": f"http://{host}"}
        method = "server/discover" if stage.scene.is_stateless else "ping"
        stage.ask(label, method, headers=headers)


def _local(label: str, statuses: range, fault: str) -> Judge[Scene]:
    """What was asked on this machine is answered with one of these; `{}` is what came."""

    def judge(scene: Scene) -> CheckFinding:
        if label not in scene:
            return untestable("run the server on this machine, with a localhost URL")
        heard = scene[label]
        came = heard.silence if heard.status is None else f"HTTP {heard.status}"
        return expect(heard.status in statuses, fault.format(came), heard)

    return judge


_MISMATCH = -32020
_NO_TOOL = "list a tool, because Mcp-Name applies to calls"
_NO_CARRIER = "offer a tool with a string argument that has x-mcp-header in its input schema"

# -- the requests, by the names of their rows; None leaves a header out

_REFUSED: dict[str, dict[str, str | None]] = {
    "ServerRejectsMismatchedMethodHeader": {"Mcp-Method": "prompts/list"},
    "ServerRejectsMissingMethodHeader": {"Mcp-Method": None},
    "ServerRejectsMismatchedNameHeader": {"Mcp-Name": "wrong_tool_name"},
    "ServerRejectsMissingNameHeader": {"Mcp-Name": None},
    "ServerRejectsCaseMismatchValue": {"Mcp-Method": "TOOLS/LIST"},
}
_SPACED: dict[str, dict[str, str | None]] = {
    "ServerAcceptsWhitespaceHeaderValue": {"Mcp-Name": "  {tool}  "}
}
"""`{tool}` is the tool that is called; what has a Mcp-Name is a call."""
_OTHER_CASE: dict[str, dict[str, str | None]] = {
    "ServerAcceptsLowercaseHeaderName": {"mcp-method": "tools/list"},
    "ServerAcceptsUppercaseHeaderName": {"MCP-METHOD": "tools/list"},
}

_WORD = "Hello"
_CODED = base64.b64encode(_WORD.encode()).decode()
_DECODED: dict[str, tuple[str, str | None]] = {
    "ServerAcceptsValidBase64": (_WORD, f"=?base64?{_CODED}?=")
}
"""A call whose argument travels as a header too: the argument, and the header."""
_BROKEN: dict[str, tuple[str, str | None]] = {
    "ServerRejectsInvalidBase64Padding": (_WORD, "=?base64?SGVsbG8?="),
    "ServerRejectsInvalidBase64Chars": (_WORD, "=?base64?SGVs!!!bG8=?="),
}
_LITERAL: dict[str, tuple[str, str | None]] = {
    "ServerLiteralMissingBase64Prefix": (_CODED, _CODED),
    "ServerLiteralMissingBase64Suffix": (f"=?base64?{_CODED}", f"=?base64?{_CODED}"),
}
_LEFT_OUT: dict[str, tuple[str, str | None]] = {
    "ServerRejectsMissingCustomHeader": ("test-value", None)
}


def _try_headers(stage: ScenarioStage) -> None:
    # A tool that says that it only reads; else the first, as the official suite does it.
    offered = [
        one for one in stage.scene.offered.tools if isinstance(one, Mapping) and one.get("name")
    ]
    reading = [one for one in offered if is_safe(one)]
    tool = next((str(one["name"]) for one in (*reading, *offered)), None)
    for label, headers in {**_REFUSED, **_SPACED, **_OTHER_CASE}.items():
        if "Mcp-Name" not in headers:
            stage.ask(label, "tools/list", headers=headers)
        elif tool is not None:
            named = {key: value and value.replace("{tool}", tool) for key, value in headers.items()}
            arguments = plausible_arguments(stage.scene.offered.input_schema(tool))
            stage.ask(label, "tools/call", {"name": tool, "arguments": arguments}, headers=named)


def _try_params(stage: ScenarioStage) -> None:
    """With the first tool that has an argument which is a header too."""
    for tool in stage.scene.offered.tools:
        schema = object_in(tool, "inputSchema")
        for argument, field in object_in(schema, "properties").items():
            header = inside(field, "x-mcp-header")
            if isinstance(header, str) and field.get("type") == "string":
                _try_param(stage, str(tool.get("name")), schema, argument, header)
                return


def _try_param(
    stage: ScenarioStage, tool: str, schema: Mapping[str, Any], argument: str, header: str
) -> None:
    others = plausible_arguments(schema)
    for label, (value, sent) in {**_DECODED, **_BROKEN, **_LITERAL, **_LEFT_OUT}.items():
        params = {"name": tool, "arguments": {**others, argument: value}}
        stage.ask(label, "tools/call", params, headers={f"Mcp-Param-{header}": sent})


def _refused(heard: Heard) -> str:
    return heard.status_problem(400)


def _coded(heard: Heard) -> str:
    code = show(str(heard.code), 20)
    return (
        ""
        if heard.code == _MISMATCH
        else f"the server answered with error {code}; expected {_MISMATCH}"
    )


def _served(heard: Heard) -> str:
    refused = heard.status is not None and heard.status >= 400
    came = f"the server answered a valid request with HTTP {heard.status}" if refused else ""
    return "; ".join(filter(None, (came, heard.without_result)))


def _each(
    problem: Callable[[Heard], str],
    labels: Iterable[str],
    unlock: str = _NO_CARRIER,
    mild: bool = False,
) -> Callable[[Scene], Findings]:
    """A row for each of these requests; what was not asked needs something to be unlocked."""

    def judge(scene: Scene) -> Findings:
        for label in labels:
            name = f"{label}ErrorCode" if problem is _coded else label
            if label in scene:
                yield verdict(problem(scene[label]), scene[label], name, mild=mild)
            else:
                yield untestable(unlock, name=name)

    return judge


def _match_argument(scene: Scene) -> Findings:
    yield from _each(_served, _LITERAL)(scene)
    yield from _each(_refused, _LEFT_OUT)(scene)


SCRIPTS: dict[str, ServerScript] = {
    "server-sse-multiple-streams": _at_once,
    "dns-rebinding-protection": _knock,
    "http-header-validation": _try_headers,
    "http-custom-header-server-validation": _try_params,
}
JUDGES: dict[str, Judge[Scene]] = {
    "server-sse-priming-event": _primed,
    "server-sse-retry-field": _retried,
    "server-sse-disconnect-resume": _resumed,
    "server-accepts-multiple-post-streams": _all_accepted,
    "server-sse-streams-functional": _all_deliver,
    "localhost-host-rebinding-rejected": _local(
        "stranger",
        range(400, 500),
        f"the server answered Host and Origin {_STRANGER} with {{}}; expected HTTP 4xx",
    ),
    "localhost-host-valid-accepted": _local(
        "friend", range(200, 300), "the server rejected Host and Origin of this machine: {}"
    ),
    "sep-2243-server-reject-invalid-headers": _each(_refused, _REFUSED, _NO_TOOL),
    "sep-2243-server-reject-error-code": _each(_coded, _REFUSED, _NO_TOOL, mild=True),
    "sep-2243-server-accepts-whitespace-header-value": _each(_served, _SPACED, _NO_TOOL),
    "sep-2243-header-name-case-insensitive": _each(_served, _OTHER_CASE, _NO_TOOL),
    "sep-2243-server-decode-base64": _each(_served, _DECODED),
    "sep-2243-server-reject-invalid-param-chars": _each(_refused, _BROKEN),
    "sep-2243-server-validate-param-match": _match_argument,
    "sep-2243-server-reject-param-mismatch": _each(_coded, (*_BROKEN, *_LEFT_OUT)),
}
