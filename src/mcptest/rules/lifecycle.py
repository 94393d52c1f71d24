"""LIFE: how a session begins, what is agreed, and that it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcptest.model.message import ABSENT, Kind, json_type
from mcptest.model.revision import HANDSHAKE_ERA, HANDSHAKE_REVISIONS, Revision, Window
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule

_KNOWN = tuple(revision.value for revision in HANDSHAKE_REVISIONS)


@session_rule(
    "LIFE-001",
    "the client waits for the initialize response",
    category="lifecycle",
    severity=Severity.SHOULD,
    side=Side.CLIENT,
    spec="basic/lifecycle#initialization",
    window=HANDSHAKE_ERA,
    listens=(Kind.REQUEST,),
    sender="client",
)
def client_waits_for_initialize(check: Check) -> Watching:
    """Until `initialize` is answered the client makes no other request than `ping`.

    Before the answer it can't know what the server offers, nor in which revision.
    """
    while step := (yield):
        session = check.session
        if step.method == "initialize" or not session.initialize_sent:
            continue
        if session.initialize_answered:
            check.saw(step)
        elif step.method != "ping":
            check.violated(
                step,
                f"{step.method!r} is sent before the initialize response",
                expected="the initialize response first",
            )


@session_rule(
    "LIFE-002",
    "the server waits for notifications/initialized",
    category="lifecycle",
    severity=Severity.SHOULD,
    side=Side.SERVER,
    spec="basic/lifecycle#initialization",
    window=HANDSHAKE_ERA,
    listens=(Kind.REQUEST,),
    sender="server",
)
def server_waits_for_initialized(check: Check) -> Watching:
    """Until `notifications/initialized` the server makes no request but `ping`; it may log.

    A client that has not finished its side of the handshake may drop or refuse the request.
    """
    while step := (yield):
        if check.session.initialized:
            check.saw(step)
        elif step.method != "ping":
            check.violated(
                step,
                f"the server asks {step.method!r} before notifications/initialized",
                expected="notifications/initialized first",
            )


def _missing(value: Any, members: Mapping[str, type]) -> str:
    for name, kind in members.items():
        found = value.get(name, ABSENT) if isinstance(value, dict) else ABSENT
        if not isinstance(found, kind):
            wanted = "a string" if kind is str else "an object"
            return f"{name} is {json_type(found)}, not {wanted}"
    return ""


@session_rule(
    "LIFE-003",
    "initialize names version, capabilities and client",
    category="lifecycle",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec="basic/lifecycle#initialization",
    window=HANDSHAKE_ERA,
    listens=(Kind.REQUEST,),
    methods=("initialize",),
    sender="client",
)
def initialize_is_complete(check: Check) -> Watching:
    """The params of `initialize` hold `protocolVersion`, `capabilities` and `clientInfo`.

    `clientInfo` has a `name` and a `version`. Captures of the public form are often abridged, so
    an `initialize` without any params is not judged there.
    """
    while step := (yield):
        params = step.message.member("params")
        if params is ABSENT and check.session.form == "exchanges":
            continue
        check.saw(step)
        needed = {"protocolVersion": str, "capabilities": dict, "clientInfo": dict}
        fault = _missing(params, needed) or _missing(
            params.get("clientInfo"), {"name": str, "version": str}
        )
        if fault:
            check.violated(step, f"in the params of initialize, {fault}", pointer="/params")


@session_rule(
    "LIFE-004",
    "the initialize result names version, capabilities and server",
    category="lifecycle",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic/lifecycle#initialization",
    window=HANDSHAKE_ERA,
    listens=(Kind.RESULT,),
    methods=("initialize",),
    sender="server",
)
def initialize_result_is_complete(check: Check) -> Watching:
    """The result of `initialize` holds `protocolVersion`, `capabilities` and `serverInfo`.

    `serverInfo` has a `name` and a `version`. Captures of the public form are often abridged, so
    an empty result is not judged there.
    """
    while step := (yield):
        if step.result == {} and check.session.form == "exchanges":
            continue
        check.saw(step)
        needed = {"protocolVersion": str, "capabilities": dict, "serverInfo": dict}
        fault = _missing(step.result, needed) or _missing(
            step.result.get("serverInfo"), {"name": str, "version": str}
        )
        if fault:
            check.violated(step, f"in the initialize result, {fault}", pointer="/result")


@session_rule(
    "LIFE-005",
    "the server agrees to a revision that exists",
    category="lifecycle",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic/lifecycle#version-negotiation",
    window=HANDSHAKE_ERA,
    listens=(Kind.RESULT,),
    methods=("initialize",),
    sender="server",
)
def agreed_revision_exists(check: Check) -> Watching:
    """The server echoes the offered `protocolVersion`, or offers another one that it supports.

    Either way it names a revision with a handshake that was published. Anything else leaves the
    client nothing to agree to.
    """
    while step := (yield):
        version = step.result.get("protocolVersion") if isinstance(step.result, dict) else None
        if not isinstance(version, str):
            continue
        check.saw(step)
        offered = step.request.params.get("protocolVersion") if step.request else None
        if version not in _KNOWN and version != offered:
            check.violated(
                step,
                f"the server offers the protocol version {version!r}",
                expected="the offered version, or one of " + ", ".join(_KNOWN),
                actual=version,
                pointer="/result/protocolVersion",
            )


@session_rule(
    "LIFE-006",
    "initialize is never cancelled",
    category="lifecycle",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec="basic/utilities/cancellation#behavior-requirements",
    window=HANDSHAKE_ERA,
    listens=(Kind.NOTIFICATION,),
    methods=("notifications/cancelled",),
    sender="client",
)
def initialize_is_not_cancelled(check: Check) -> Watching:
    """A client does not cancel its `initialize` request.

    There is no session to go back to; a client that has lost interest closes the connection.
    """
    while step := (yield):
        check.saw(step)
        if step.request is not None and step.request.method == "initialize":
            check.violated(step, "the initialize request is cancelled", expected="no cancellation")


@session_rule(
    "LIFE-007",
    "initialize is not part of a batch",
    category="lifecycle",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec="basic/lifecycle#initialization",
    window=Window(Revision.V2025_03_26, Revision.V2025_06_18),
    listens=(Kind.RESULT, Kind.ERROR),
    methods=("initialize",),
)
def initialize_is_not_batched(check: Check) -> Watching:
    """In 2025-03-26, which has batches, `initialize` still travels alone.

    Nothing else can be sent until it was answered, and older peers don't understand batches.
    """
    while step := (yield):
        check.saw(step)
        if step.request is not None and step.request.in_batch:
            check.violated(step.request, "initialize is in a batch", expected="a message alone")


@session_rule(
    "LIFE-008",
    "a ping is answered with an empty result",
    category="lifecycle",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic/utilities/ping#behavior-requirements",
    window=HANDSHAKE_ERA,
    listens=(Kind.RESULT, Kind.ERROR),
    methods=("ping",),
)
def pings_are_answered(check: Check) -> Watching:
    """The receiver of a `ping` answers with `{}`.

    Either side may ask at any time whether the other is still there. An error says that it is not
    understood; members other than `_meta` say something that nobody reads.
    """
    while step := (yield):
        check.saw(step)
        if step.kind is Kind.ERROR:
            check.violated(step, "ping is answered with an error", expected="an empty result")
        elif not isinstance(step.result, dict) or set(step.result) - {"_meta"}:
            check.violated(step, "ping is answered with content", expected="{}", pointer="/result")
