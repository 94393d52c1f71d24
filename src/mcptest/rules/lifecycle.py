"""LIFE and CAP: how a session begins, what both sides agree on, and that they keep to it."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcptest.core.message import ABSENT, Kind, a_json_type
from mcptest.core.revision import HANDSHAKE_ERA, HANDSHAKE_REVISIONS, Revision, Window
from mcptest.core.verdict import Severity, Side
from mcptest.rules.declaration import ANSWERS, Check, Watching, once_declared, session_rule
from mcptest.rules.protocol import (
    CHANGE_NOTIFICATIONS,
    CLIENT_CAPABILITY,
    SERVER_CAPABILITY,
    declares,
    member_at,
)
from mcptest.rules.session import Step

_KNOWN = tuple(revision.value for revision in HANDSHAKE_REVISIONS)


_lifecycle_rule = partial(
    session_rule, category="lifecycle", page="basic/lifecycle#initialization", window=HANDSHAKE_ERA
)
_client_rule = partial(_lifecycle_rule, side=Side.CLIENT, listens=(Kind.REQUEST,), sender="client")
_server_rule = partial(_lifecycle_rule, side=Side.SERVER, sender="server")
_result_rule = partial(_server_rule, listens=(Kind.RESULT,), methods=("initialize",))
_capability_rule = partial(
    session_rule,
    category="capability",
    page="basic/lifecycle#capability-negotiation",
    window=HANDSHAKE_ERA,
    should_until=Revision.V2025_06_18,
)
_client_capability_rule = partial(
    _capability_rule, side=Side.CLIENT, listens=(Kind.REQUEST,), sender="client"
)
_server_capability_rule = partial(_capability_rule, side=Side.SERVER, sender="server")


@_client_rule("LIFE-001", "the client waits for the initialize response", severity=Severity.SHOULD)
def client_waits_for_initialize(check: Check, step: Step) -> None:
    """Until the `initialize` response arrives, the client sends no request except `ping`.

    Before the response, the client cannot know what the server offers or which revision it speaks.

    Fix: Wait for the `initialize` response before you send the next request.
    """
    session = check.session
    if step.method == "initialize" or not session.initialize_sent:
        return
    if session.initialize_answered:
        check.saw(step)
    elif step.method != "ping":
        told = f"the client sent {step.method!r} before the initialize response"
        check.violated(step, told, "the initialize response first")


@_server_rule(
    "LIFE-002",
    "the server waits for notifications/initialized",
    severity=Severity.SHOULD,
    listens=(Kind.REQUEST,),
)
def server_waits_for_initialized(check: Check, step: Step) -> None:
    """Until `notifications/initialized` arrives, the only request the server sends is `ping`.

    A client that has not finished its side of the handshake may drop or reject the request. The
    server may send log messages.

    Fix: Start server requests (sampling, roots, elicitation) only after you have received
    `notifications/initialized`.
    """
    if check.session.initialized:
        check.saw(step)
    elif step.method != "ping":
        told = f"the server sent {step.method!r} before notifications/initialized"
        check.violated(step, told, "notifications/initialized first")


def _missing(value: Any, info: str) -> str:
    """What is missing of what each side of the handshake sends, and in `info` about itself."""
    needed = (("protocolVersion",), str), (("capabilities",), dict), ((info,), dict)
    for path, kind in (*needed, ((info, "name"), str), ((info, "version"), str)):
        found = member_at(value, *path)
        if not isinstance(found, kind):
            wanted = "a string" if kind is str else "an object"
            return f"{path[-1]} is {a_json_type(found)}, not {wanted}"
    return ""


@_client_rule(
    "LIFE-003",
    "the initialize request has a version, capabilities and client info",
    methods=("initialize",),
    reports="/params{,/protocolVersion,/capabilities,/clientInfo,/clientInfo/name,/clientInfo/version}",
)
def initialize_is_complete(check: Check, step: Step) -> None:
    """The params of `initialize` have `protocolVersion`, `capabilities` and `clientInfo`.

    `clientInfo` has a `name` and a `version`. Captures in the public form are often abridged, so an
    `initialize` without any params is not judged there.

    Fix: Send `protocolVersion`, `capabilities` (`{}` for none) and `clientInfo` with `name` and
    `version` in the params of `initialize`.
    """
    params = step.message.member("params")
    if params is ABSENT and check.session.form == "exchanges":
        return
    check.saw(step)
    if fault := _missing(params, "clientInfo"):
        check.violated(step, f"the client sent initialize, but {fault}", pointer="/params")


@_result_rule(
    "LIFE-004",
    "the initialize result has a version, capabilities and server info",
    reports="/result/{protocolVersion,capabilities,serverInfo,serverInfo/name,serverInfo/version}",
)
def initialize_result_is_complete(check: Check, step: Step) -> None:
    """The result of `initialize` has `protocolVersion`, `capabilities` and `serverInfo`.

    `serverInfo` has a `name` and a `version`. Captures in the public form are often abridged, so an
    empty result is not judged there.

    Fix: Return `protocolVersion`, `capabilities` (`{}` for none) and `serverInfo` with `name` and
    `version` from `initialize`.
    """
    if step.result == {} and check.session.form == "exchanges":
        return
    check.saw(step)
    if fault := _missing(step.result, "serverInfo"):
        check.violated(step, f"the server answered initialize, but {fault}", pointer="/result")


@_result_rule("LIFE-005", "the server agrees to a revision that exists", "#version-negotiation")
def agreed_revision_exists(check: Check, step: Step) -> None:
    """The server returns the offered `protocolVersion`, or another version that it supports.

    Either way, it names a published revision that has a handshake. With anything else, the client
    has nothing to agree to.

    Fix: Return the client's `protocolVersion` if you support it, otherwise the newest published
    revision that you support.
    """
    version = step.in_result("protocolVersion")
    if not isinstance(version, str):
        return
    check.saw(step)
    if version not in _KNOWN and version != step.in_request("protocolVersion"):
        told = f"the server returned protocolVersion {version!r}, which is not a revision"
        expected = "the offered version, or one of " + ", ".join(_KNOWN)
        pointer = "/result/protocolVersion"
        check.violated(step, told, expected, actual=version, pointer=pointer)


@_client_rule(
    "LIFE-006",
    "initialize is never cancelled",
    "basic/utilities/cancellation#behavior-requirements",
    listens=(Kind.NOTIFICATION,),
    methods=("notifications/cancelled",),
)
def initialize_is_not_cancelled(check: Check, step: Step) -> None:
    """A client does not cancel its `initialize` request.

    There is no session to return to. A client that no longer wants the session closes the
    connection.

    Fix: Close the connection instead of cancelling `initialize`.
    """
    check.saw(step)
    if step.request is not None and step.request.method == "initialize":
        check.violated(step, "the client cancelled its initialize request", "no cancellation")


@_lifecycle_rule(
    "LIFE-007",
    "initialize is not part of a batch",
    side=Side.CLIENT,
    window=Window(Revision.V2025_03_26, Revision.V2025_06_18),
    listens=ANSWERS,
    methods=("initialize",),
)
def initialize_is_not_batched(check: Check, step: Step) -> None:
    """In 2025-03-26, which has batches, `initialize` is still sent alone.

    Nothing else can be sent before the response, and older peers do not understand batches.

    Fix: Send `initialize` as a single message, outside any batch.
    """
    check.saw(step)
    if step.request is not None and step.request.in_batch:
        check.violated(step.request, "the client sent initialize in a batch", "a single message")


@_lifecycle_rule(
    "LIFE-008",
    "a ping gets an empty result",
    "basic/utilities/ping#behavior-requirements",
    side=Side.BOTH,
    listens=ANSWERS,
    methods=("ping",),
)
def pings_are_answered(check: Check, step: Step) -> None:
    """The receiver of a `ping` returns `{}`.

    Either side may ping at any time to check that the other is still there. An error says that
    `ping` is not supported, and nobody reads members other than `_meta`.

    Fix: Answer `ping` with the result `{}`.
    """
    check.saw(step)
    if step.kind is Kind.ERROR:
        check.violated(step, f"the {step.sender} answered ping with an error", "an empty result")
    elif not isinstance(step.result, dict) or set(step.result) - {"_meta"}:
        told = f"the {step.sender} answered ping with content"
        check.violated(step, told, "{}", pointer="/result")


@_client_capability_rule(
    "CAP-001", "the client uses only declared server capabilities", methods=tuple(SERVER_CAPABILITY)
)
def client_uses_declared_capabilities(check: Check, step: Step) -> None:
    """A client calls a method only if the server declared the capability it belongs to.

    `resources/subscribe` also needs `resources.subscribe`. The completions capability exists since
    2025-03-26, so `completion/complete` is not judged in 2024-11-05.

    Fix: Check the capabilities in the `initialize` result before you call a method.
    """
    session = check.session
    if not session.initialize_answered and session.form == "full":
        return  # nothing is declared yet; INV-001 and LIFE-001 report that
    if session.server_capabilities is None and session.form == "exchanges":
        check.inconclusive("the capture does not contain the server's capabilities")
        return
    name = SERVER_CAPABILITY[step.method]
    if name == "completions" and step.revision in {Revision.V2024_11_05, None}:
        return
    member = "subscribe" if step.method.endswith("subscribe") else ""
    check.saw(step)
    if not declares(session.server_capabilities, name, member):
        needed = f"{name}.{member}" if member else name
        told = f"the client called {step.method!r}, but the server did not declare {needed!r}"
        check.violated(step, told, "only methods of declared capabilities")


@_server_capability_rule(
    "CAP-002",
    "the server uses only declared client capabilities",
    listens=(Kind.REQUEST,),
    methods=tuple(CLIENT_CAPABILITY),
)
def server_uses_declared_capabilities(check: Check, step: Step) -> None:
    """A server requests sampling, roots or elicitation only if the client declared that capability.

    A client without the capability cannot answer, so the tool that asks fails for its user.

    Fix: Check the client's capabilities from `initialize` before you send the request, and let the
    tool work without it.
    """
    check.saw(step)
    name = CLIENT_CAPABILITY[step.method]
    if not declares(check.session.client_capabilities, name):
        told = f"the server sent {step.method!r}, but the client did not declare {name!r}"
        check.violated(step, told, "only methods of declared capabilities")


@_server_capability_rule(
    "CAP-003",
    "the server sends change notifications only if it declared them",
    listens=(Kind.NOTIFICATION,),
    methods=tuple(CHANGE_NOTIFICATIONS),
    conversations="any",
)
def announced_changes_were_declared(check: Check) -> Watching:
    """`list_changed` needs the capability's `listChanged`, `resources/updated` its `subscribe`.

    Clients rely on the declaration and poll where nothing is declared, so an undeclared
    notification is lost.

    Fix: Declare `listChanged: true` (or `resources.subscribe: true`) in your capabilities, or stop
    sending the notification.
    """

    def judge(step: Step) -> None:
        check.saw(step)
        name, member, _ = CHANGE_NOTIFICATIONS[step.method]
        if not declares(check.session.server_capabilities, name, member):
            told = f"the server sent {step.method!r} without the capability {name}.{member}"
            check.violated(step, told, f"{name}.{member} declared as true")

    yield from once_declared(check, judge)


@_client_capability_rule(
    "CAP-004",
    "the client sends root change notifications only if it declared them",
    "client/roots#capabilities",
    listens=(Kind.NOTIFICATION,),
    methods=("notifications/roots/list_changed",),
)
def root_changes_were_declared(check: Check, step: Step) -> None:
    """`notifications/roots/list_changed` needs the client capability `roots.listChanged`.

    A server that does not expect changes may keep the roots it read first.

    Fix: Declare `roots: {"listChanged": true}` in the client's capabilities, or stop sending the
    notification.
    """
    check.saw(step)
    if not declares(check.session.client_capabilities, "roots", "listChanged"):
        told = f"the client sent {step.method!r} without the capability roots.listChanged"
        check.violated(step, told, "roots.listChanged declared as true")
