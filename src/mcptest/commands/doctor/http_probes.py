"""Probes that need HTTP: headers, sessions, methods and status codes of both eras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcptest.commands.doctor.examination import (
    METHOD_NOT_FOUND,
    UNKNOWN_VERSION,
    Examination,
    arguments_for,
    breaks,
    came,
    code_of,
    is_result,
    not_used,
    probe,
    ready,
    said,
    some,
    status_of,
    unknown,
)
from mcptest.probe.compliance.conversation import Asked
from mcptest.report.doctor import Judged
from mcptest.session.tool_safety import may_call
from mcptest.suite.sent_message import SentCheck
from mcptest.wire.mcp_headers import (
    PARAM_PREFIX,
    SESSION_HEADER,
    VERSION_HEADER,
    annotation_problems,
    header_annotations,
)

_HEADER_MISMATCH = -32020
_FOREIGN = "https://mcptest.invalid"
_MUTATIONS = {
    "method-missing": "without Mcp-Method",
    "method-wrong": "with another Mcp-Method",
    "name-missing": "without Mcp-Name",
    "name-wrong": "with another Mcp-Name",
}


@probe("sessions", over_http=True)
def sessions(examination: Examination) -> Judged:
    if examination.speaks_newer:
        return _no_sessions(examination)
    if not examination.site.session_id:
        return ready("the server gives out no session id")
    asked = examination.ask(SentCheck(method=examination.a_list, headers={SESSION_HEADER: None}))
    if is_result(asked):
        return breaks("a session id is given out, though requests are served without it", asked)
    return breaks(f"a request without its session id is answered with {said(asked)}", asked)


def _no_sessions(examination: Examination) -> Judged:
    asked = examination.knocked("session")
    if not is_result(asked):
        return breaks(f"a request with a session id is answered with {said(asked)}", asked)
    # What names an older version may be answered as an old server does.
    own = (one for name, one in examination.knocks.items() if name != "version-differs")
    minted = [one for one in own if _header(one, "mcp-session-id")]
    advice = "a session id is given out, which means nothing any more" if minted else ""
    return ready("a session id is ignored", asked, *minted[:1], advice=advice)


def _header(asked: Asked, name: str) -> str:
    http = asked.exchange.http
    headers: Mapping[str, str] = http["headers"] if http is not None else {}
    return headers.get(name, "")


@probe("protocol-headers", over_http=True)
def protocol_headers(examination: Examination) -> Judged:
    for name, words in _MUTATIONS.items():
        if name.startswith("name") and not examination.declares("tools"):
            continue
        asked = examination.knocked(name)
        if status_of(asked) != 400 or code_of(asked) != _HEADER_MISMATCH:
            told = f"a request {words} is answered with {said(asked)}, not with 400 and -32020"
            return breaks(told, asked)
    differs = examination.knocked("version-differs")
    right = examination.knocked("method-wrong")
    if code_of(differs) == _HEADER_MISMATCH:
        return ready("headers that differ from the body are refused", right, differs)
    if status_of(differs) == 400:  # a server of both eras may take it for an old client
        advice = f"a version header that differs from the body is answered with {said(differs)}"
        return ready("headers that differ from the body are refused", right, advice=advice)
    told = f"a version header that differs from the body is answered with {said(differs)}"
    return breaks(told, differs)


@probe("param-headers", over_http=True)
def param_headers(examination: Examination) -> Judged:
    annotated = [tool for tool in examination.tools if header_annotations(tool.get("inputSchema"))]
    if not annotated:
        return not_used("no input schema has x-mcp-header")
    for tool in annotated:
        problems = annotation_problems(tool.get("inputSchema"))
        if problems:
            return breaks(f"clients drop the tool {some([tool.get('name')])}: {problems[0]}")
    return _call_without_header(examination, annotated)


def _call_without_header(examination: Examination, annotated: list[Mapping[str, Any]]) -> Judged:
    names = {str(call.tool.get("name")) for call in examination.calls}
    for tool in annotated:
        arguments = arguments_for(tool)
        headers = [
            f"{PARAM_PREFIX}{one.header}"
            for one in header_annotations(tool.get("inputSchema"))
            if one.path is not None and len(one.path) == 1 and one.path[0] in arguments
        ]
        may = may_call(tool, names)
        if not (examination.speaks_newer and may and headers):
            continue
        params = {"name": tool.get("name"), "arguments": arguments}
        check = SentCheck(method="tools/call", params=params, headers=dict.fromkeys(headers))
        asked = examination.ask(check)
        if status_of(asked) == 400 and code_of(asked) == _HEADER_MISMATCH:
            return ready("a call without its Mcp-Param header is refused", asked)
        return breaks(f"a call without its Mcp-Param header is answered with {said(asked)}", asked)
    return unknown("no annotated tool could be called without its header")


@probe("http-methods", over_http=True)
def http_methods(examination: Examination) -> Judged:
    get, delete = examination.knocked("get"), examination.knocked("delete")
    others = [one for one in (get, delete) if status_of(one) != 405]
    if not others:
        return ready("GET and DELETE are answered with 405", get, delete)
    if not came(get):
        return unknown("GET was not answered", get)
    told = f"GET is answered with {said(get)}, DELETE with {said(delete)}"
    return ready(
        "nothing depends on GET or DELETE; what is pushed on a GET stream is under subscriptions",
        *others,
        advice=f"{told}; 405 is recommended for both",
    )


@probe("http-status", over_http=True)
def http_status(examination: Examination) -> Judged:
    asked = examination.knocked("unknown-method")
    if status_of(asked) == 404 and code_of(asked) == METHOD_NOT_FOUND:
        return ready("an unknown method is answered with 404 and -32601", asked)
    return breaks(f"an unknown method is answered with {said(asked)}", asked)


@probe("origin")
def origin(examination: Examination) -> Judged:
    if examination.transport == "stdio":
        return not_used("the server is not reached by HTTP")
    check = SentCheck(method=examination.alive.method, headers={"Origin": _FOREIGN})
    asked = examination.ask(check)
    if status_of(asked) == 403:
        return ready("a foreign Origin is refused with 403", asked)
    return breaks(f"a request of a foreign Origin is answered with {said(asked)}", asked)


@probe("version-header", over_http=True)
def version_header(examination: Examination) -> Judged:
    unknown_one = examination.ask(
        SentCheck(method="ping", headers={VERSION_HEADER: UNKNOWN_VERSION})
    )
    missing = examination.ask(SentCheck(method="ping", headers={VERSION_HEADER: None}))
    if status_of(unknown_one) != 400:
        told = f"the version {UNKNOWN_VERSION} in the header is answered with {said(unknown_one)}"
        return breaks(told, unknown_one)
    advice = ""
    if not is_result(missing):
        advice = f"a request without the header is answered with {said(missing)}"
    return ready(
        "an unknown version in the header is answered with 400", unknown_one, advice=advice
    )


@probe("transport")
def transport(examination: Examination) -> Judged:
    if examination.transport == "sse":
        return breaks("the server is reached by HTTP+SSE, at two endpoints")
    if examination.transport == "http":
        return ready("the server is reached by streamable HTTP")
    return not_used("the server is started by its clients")
