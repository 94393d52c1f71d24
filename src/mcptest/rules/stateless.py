"""META: what every request and result carries in the stateless era, and what nobody sends."""

from __future__ import annotations

from typing import Any

from mcptest.model.message import ABSENT, Kind, json_type
from mcptest.model.revision import STATELESS_ERA
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.protocol import (
    CACHEABLE,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROTOCOL_VERSION,
    SERVER_INFO,
    meta_of,
)


@session_rule(
    "META-001",
    "every request carries its version and capabilities",
    category="stateless",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec="basic#_meta",
    window=STATELESS_ERA,
    listens=(Kind.REQUEST,),
    sender="client",
)
def requests_carry_version_and_capabilities(check: Check) -> Watching:
    """The `_meta` of each request has the protocol version and the client's capabilities.

    Nothing is remembered between requests, so each one says in which revision it speaks
    (`io.modelcontextprotocol/protocolVersion`, a string) and what its sender can do
    (`io.modelcontextprotocol/clientCapabilities`, an object). A server refuses others.
    """
    while step := (yield):
        if step.method == "initialize":
            continue  # belongs to the other era
        check.saw(step)
        meta = step.meta
        for key, kind in ((PROTOCOL_VERSION, str), (CLIENT_CAPABILITIES, dict)):
            if not isinstance(meta.get(key, ABSENT), kind):
                check.violated(
                    step,
                    f"{step.method!r} without {key} in _meta",
                    expected=f"{key} on every request",
                    actual=json_type(meta.get(key, ABSENT)),
                    pointer="/params/_meta",
                )


@session_rule(
    "META-002",
    "requests name the client, results name the server",
    category="stateless",
    severity=Severity.SHOULD,
    side=Side.BOTH,
    spec="basic#_meta",
    window=STATELESS_ERA,
    listens=(Kind.REQUEST, Kind.RESULT),
)
def both_sides_name_themselves(check: Check) -> Watching:
    """`_meta` of a request has `clientInfo`, that of a result has `serverInfo`.

    Without a handshake this is the only place where either side says what it is; logs and bug
    reports live on it.
    """
    while step := (yield):
        is_request = step.kind is Kind.REQUEST
        if step.sender != ("client" if is_request else "server") or step.method == "initialize":
            continue
        check.saw(step)
        key = CLIENT_INFO if is_request else SERVER_INFO
        holder = step.message.member("params") if is_request else step.result
        if not isinstance(meta_of(holder).get(key), dict):
            what = "a request" if is_request else f"the result of {step.method!r}"
            check.violated(step, f"{what} without {key} in _meta", expected=key)


@session_rule(
    "META-003",
    "every result has a resultType",
    category="stateless",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic#responses",
    window=STATELESS_ERA,
    listens=(Kind.RESULT,),
    sender="server",
)
def results_have_a_type(check: Check) -> Watching:
    """`resultType` is a string on every result: `complete`, `input_required`, or an extension's.

    It tells a final answer from a question back to the client. Clients take a result without it
    for one of an older server.
    """
    while step := (yield):
        check.saw(step)
        kind = step.result.get("resultType", ABSENT) if isinstance(step.result, dict) else ABSENT
        if not isinstance(kind, str) or not kind:
            check.violated(
                step,
                f"the resultType of {step.method!r} is {json_type(kind)}",
                expected="complete or input_required",
                pointer="/result/resultType",
            )


@session_rule(
    "META-004",
    "cacheable results say for how long and for whom",
    category="stateless",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/utilities/caching",
    window=STATELESS_ERA,
    listens=(Kind.RESULT,),
    methods=tuple(sorted(CACHEABLE)),
    sender="server",
)
def cacheable_results_have_hints(check: Check) -> Watching:
    """Complete results of the four lists, `resources/read` and `server/discover` carry two hints.

    `ttlMs` is an integer of at least 0, `cacheScope` is `public` or `private`. Without them a
    client either asks again each time or serves one user's data to another.
    """
    while step := (yield):
        result = step.result
        if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
            continue
        check.saw(step)
        fault = _hint_fault(result)
        if fault:
            check.violated(
                step,
                f"{step.method!r}: {fault}",
                expected="ttlMs of at least 0 and cacheScope public or private",
                pointer="/result",
            )


def _hint_fault(result: dict[str, Any]) -> str:
    ttl = result.get("ttlMs", ABSENT)
    if type(ttl) is not int:
        return f"ttlMs is {json_type(ttl)}, not an integer"
    if ttl < 0:
        return f"ttlMs is {ttl}"
    scope = result.get("cacheScope", ABSENT)
    return "" if scope in ("public", "private") else f"cacheScope is {scope!r}"


@session_rule(
    "META-005",
    "the server makes no requests",
    category="stateless",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic#messages",
    window=STATELESS_ERA,
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT, Kind.ERROR),
    sender="server",
)
def server_makes_no_requests(check: Check) -> Watching:
    """In the stateless era a server never sends a message with both a method and an id.

    What it needs from the client it asks for with an `input_required` result. A client of this
    era has no code to answer requests.
    """
    while step := (yield):
        check.saw(step)
        if step.kind is Kind.REQUEST:
            check.violated(
                step,
                f"the server sends the request {step.method!r}",
                expected="an input_required result instead",
            )


@session_rule(
    "META-006",
    "the client sends no responses",
    category="stateless",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec="basic#messages",
    window=STATELESS_ERA,
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT, Kind.ERROR),
    sender="client",
)
def client_sends_no_responses(check: Check) -> Watching:
    """In the stateless era there is nothing that a client could answer.

    Its answers to an `input_required` result travel as `inputResponses` in a new request.
    """
    while step := (yield):
        check.saw(step)
        if step.kind is Kind.RESULT or step.kind is Kind.ERROR:
            check.violated(step, "the client sends a response", expected="requests only")


@session_rule(
    "META-007",
    "server/discover tells versions and capabilities",
    category="stateless",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/discover",
    window=STATELESS_ERA,
    listens=(Kind.RESULT, Kind.ERROR),
    methods=("server/discover",),
    sender="server",
)
def discover_is_complete(check: Check) -> Watching:
    """`server/discover` exists, and its result has `supportedVersions` and `capabilities`.

    The versions are a list of strings that is not empty. A server of this era answers it; being
    refused for an unsupported version or a missing capability is an answer too.
    """
    while step := (yield):
        if step.kind is Kind.ERROR:
            error = step.error
            code = error.get("code") if isinstance(error, dict) else None
            if code == -32601 and check.session.stateless_answers:
                check.violated(step, "server/discover is not implemented", expected="a result")
            continue
        check.saw(step)
        result = step.result if isinstance(step.result, dict) else {}
        versions = result.get("supportedVersions")
        whole = (
            isinstance(versions, list) and versions and all(isinstance(v, str) for v in versions)
        )
        if not whole:
            check.violated(
                step,
                "supportedVersions is not a list of versions",
                expected="a list of strings",
                pointer="/result/supportedVersions",
            )
        if not isinstance(result.get("capabilities"), dict):
            check.violated(
                step,
                "capabilities is not an object",
                expected="an object",
                pointer="/result/capabilities",
            )
