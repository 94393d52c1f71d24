"""HTTP in the stateless era: each request says in its headers what it is."""

from __future__ import annotations

from typing import Any

from mcptest.model.capture import HttpRequest, HttpResponse
from mcptest.model.message import Kind
from mcptest.model.revision import STATELESS_ERA, Era
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.protocol import PROTOCOL_VERSION
from mcptest.rules.session import Step
from mcptest.wire.http_rules import NAMED_BY, decode_header_value

_SPEC = "basic/transports/streamable-http"


def _compare_header(check: Check, step: Step, header: str, wanted: Any) -> None:
    """The header is there and says the same as the body, decoded first if it is encoded."""
    sent = step.stream.sent_header(header.lower()) if step.stream is not None else None
    check.saw(step)
    if sent is None:
        check.violated(step, f"{step.method!r} without {header}", expected=f"{header}: {wanted}")
        return
    try:
        plain = decode_header_value(sent)
    except ValueError as error:
        check.violated(step, f"{header} can't be decoded: {error}", actual=sent)
        return
    if plain != wanted:
        check.violated(
            step,
            f"{header} does not match the body",
            expected=str(wanted),
            actual=plain,
        )


def _is_posted(step: Step) -> bool:
    return step.stream is not None and step.stream.request is not None


@session_rule(
    "HTTP-010",
    "every POST names the version of its body",
    category="http",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec=_SPEC,
    window=STATELESS_ERA,
    transports=("http",),
    listens=(Kind.REQUEST,),
    sender="client",
)
def version_header_matches_meta(check: Check) -> Watching:
    """`MCP-Protocol-Version` is on each request and equals the version in its `_meta`.

    Proxies route by the header and servers by the body; where they differ a server answers 400
    with -32020. Notifications are not judged: the specification leaves them open.
    """
    while step := (yield):
        version = step.meta.get(PROTOCOL_VERSION)
        if _is_posted(step) and isinstance(version, str):
            _compare_header(check, step, "MCP-Protocol-Version", version)


@session_rule(
    "HTTP-011",
    "Mcp-Method matches the body",
    category="http",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec=_SPEC,
    window=STATELESS_ERA,
    transports=("http",),
    listens=(Kind.REQUEST,),
    sender="client",
)
def method_header_matches(check: Check) -> Watching:
    """`Mcp-Method` is on each request and equals its `method`, in the same case."""
    while step := (yield):
        if _is_posted(step) and step.method != "initialize":
            _compare_header(check, step, "Mcp-Method", step.method)


@session_rule(
    "HTTP-012",
    "Mcp-Name matches the body",
    category="http",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec=_SPEC,
    window=STATELESS_ERA,
    transports=("http",),
    listens=(Kind.REQUEST,),
    methods=tuple(NAMED_BY),
    sender="client",
)
def name_header_matches(check: Check) -> Watching:
    """`Mcp-Name` repeats the name of the tool or prompt, the URI of the resource, the task's id.

    A value that HTTP can't carry is base64 between `=?base64?` and `?=`; it is decoded before it
    is compared.
    """
    while step := (yield):
        name = step.params.get(NAMED_BY[step.method])
        if _is_posted(step) and isinstance(name, str):
            _compare_header(check, step, "Mcp-Name", name)


_STATUS_OF = {-32020: 400, -32021: 400, -32022: 400, -32601: 404}


@session_rule(
    "HTTP-013",
    "errors travel with their HTTP status",
    category="http",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=STATELESS_ERA,
    transports=("http",),
    listens=(Kind.ERROR,),
    sender="server",
)
def errors_have_their_status(check: Check) -> Watching:
    """-32020, -32021 and -32022 come with status 400, an unknown method (-32601) with 404.

    Proxies and clients that look at the status alone then still see the right thing.
    """
    while step := (yield):
        error = step.error
        code = error.get("code") if isinstance(error, dict) else None
        response = step.stream.response if step.stream is not None else None
        expected = _STATUS_OF.get(code) if type(code) is int else None
        if response is None or expected is None:
            continue
        check.saw(step)
        if response.status != expected:
            check.violated(
                step,
                f"error {code} with status {response.status}",
                expected=str(expected),
                actual=str(response.status),
            )


@session_rule(
    "HTTP-014",
    "the client uses POST only and no session",
    category="http",
    severity=Severity.SHOULD,
    side=Side.CLIENT,
    spec=_SPEC,
    window=STATELESS_ERA,
    transports=("http",),
    listens=(HttpRequest, Kind.REQUEST),
    sender="client",
)
def client_uses_post_only(check: Check) -> Watching:
    """In the stateless era there is nothing to GET or DELETE, and no session to name.

    Servers answer 405 to other methods and ignore the session header.
    """
    while step := (yield):
        if isinstance(step.record, HttpRequest):
            if step.record.method == "POST":
                continue  # judged with its body, which tells the era
            check.violated(step, f"{step.record.method} is used", expected="POST")
        elif _is_posted(step) and step.stream is not None:
            check.saw(step)
            if step.stream.sent_header("mcp-session-id") is not None:
                check.violated(step, "a request with Mcp-Session-Id", expected="no session header")


@session_rule(
    "HTTP-015",
    "the server gives out no session id",
    category="http",
    severity=Severity.SHOULD,
    side=Side.SERVER,
    spec=_SPEC,
    window=STATELESS_ERA,
    transports=("http",),
    listens=(HttpResponse,),
)
def server_mints_no_session(check: Check) -> Watching:
    """Answers to stateless requests have no `Mcp-Session-Id` header.

    There is no session to name, and a client might send it back. Servers that speak both eras
    sometimes add one by mistake.
    """
    while step := (yield):
        posted = step.stream.posted if step.stream is not None else None
        revision = posted.revision if posted is not None else None
        if revision is None or revision.era is not Era.STATELESS:
            continue
        response = step.record
        check.saw(step)
        if isinstance(response, HttpResponse) and response.header("mcp-session-id") is not None:
            check.violated(step, "an answer with Mcp-Session-Id", expected="no session header")
