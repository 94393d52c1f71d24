"""LIFE: how a session begins, what is agreed, and that it is kept."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcptest.core.message import ABSENT, Kind, json_type
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
    """Until `initialize` is answered the client makes no other request than `ping`.

    Before the answer it can't know what the server offers, nor in which revision.
    """
    session = check.session
    if step.method == "initialize" or not session.initialize_sent:
        return
    if session.initialize_answered:
        check.saw(step)
    elif step.method != "ping":
        told = f"{step.method!r} is sent before the initialize response"
        check.violated(step, told, "the initialize response first")


@_server_rule(
    "LIFE-002",
    "the server waits for notifications/initialized",
    severity=Severity.SHOULD,
    listens=(Kind.REQUEST,),
)
def server_waits_for_initialized(check: Check, step: Step) -> None:
    """Until `notifications/initialized` the server makes no request but `ping`; it may log.

    A client that has not finished its side of the handshake may drop or refuse the request.
    """
    if check.session.initialized:
        check.saw(step)
    elif step.method != "ping":
        told = f"the server asks {step.method!r} before notifications/initialized"
        check.violated(step, told, "notifications/initialized first")


def _missing(value: Any, info: str) -> str:
    """What both sides of the handshake have to say, and in `info` of themselves."""
    needed = (("protocolVersion",), str), (("capabilities",), dict), ((info,), dict)
    for path, kind in (*needed, ((info, "name"), str), ((info, "version"), str)):
        found = member_at(value, *path)
        if not isinstance(found, kind):
            wanted = "a string" if kind is str else "an object"
            return f"{path[-1]} is {json_type(found)}, not {wanted}"
    return ""


@_client_rule(
    "LIFE-003",
    "initialize names version, capabilities and client",
    methods=("initialize",),
    reports="/params{,/protocolVersion,/capabilities,/clientInfo,/clientInfo/name,/clientInfo/version}",
)
def initialize_is_complete(check: Check, step: Step) -> None:
    """The params of `initialize` hold `protocolVersion`, `capabilities` and `clientInfo`.

    `clientInfo` has a `name` and a `version`. Captures of the public form are often abridged, so
    an `initialize` without any params is not judged there.
    """
    params = step.message.member("params")
    if params is ABSENT and check.session.form == "exchanges":
        return
    check.saw(step)
    if fault := _missing(params, "clientInfo"):
        check.violated(step, f"in the params of initialize, {fault}", pointer="/params")


@_result_rule(
    "LIFE-004",
    "the initialize result names version, capabilities and server",
    reports="/result/{protocolVersion,capabilities,serverInfo,serverInfo/name,serverInfo/version}",
)
def initialize_result_is_complete(check: Check, step: Step) -> None:
    """The result of `initialize` holds `protocolVersion`, `capabilities` and `serverInfo`.

    `serverInfo` has a `name` and a `version`. Captures of the public form are often abridged, so
    an empty result is not judged there.
    """
    if step.result == {} and check.session.form == "exchanges":
        return
    check.saw(step)
    if fault := _missing(step.result, "serverInfo"):
        check.violated(step, f"in the initialize result, {fault}", pointer="/result")


@_result_rule("LIFE-005", "the server agrees to a revision that exists", "#version-negotiation")
def agreed_revision_exists(check: Check, step: Step) -> None:
    """The server echoes the offered `protocolVersion`, or offers another one that it supports.

    Either way it names a revision with a handshake that was published. Anything else leaves the
    client nothing to agree to.
    """
    version = step.in_result("protocolVersion")
    if not isinstance(version, str):
        return
    check.saw(step)
    if version not in _KNOWN and version != step.in_request("protocolVersion"):
        told = f"the server offers the protocol version {version!r}"
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

    There is no session to go back to; a client that has lost interest closes the connection.
    """
    check.saw(step)
    if step.request is not None and step.request.method == "initialize":
        check.violated(step, "the initialize request is cancelled", "no cancellation")


@_lifecycle_rule(
    "LIFE-007",
    "initialize is not part of a batch",
    side=Side.CLIENT,
    window=Window(Revision.V2025_03_26, Revision.V2025_06_18),
    listens=ANSWERS,
    methods=("initialize",),
)
def initialize_is_not_batched(check: Check, step: Step) -> None:
    """In 2025-03-26, which has batches, `initialize` still travels alone.

    Nothing else can be sent until it was answered, and older peers don't understand batches.
    """
    check.saw(step)
    if step.request is not None and step.request.in_batch:
        check.violated(step.request, "initialize is in a batch", "a message alone")


@_lifecycle_rule(
    "LIFE-008",
    "a ping is answered with an empty result",
    "basic/utilities/ping#behavior-requirements",
    side=Side.BOTH,
    listens=ANSWERS,
    methods=("ping",),
)
def pings_are_answered(check: Check, step: Step) -> None:
    """The receiver of a `ping` answers with `{}`.

    Either side may ask at any time whether the other is still there. An error says that it is not
    understood; members other than `_meta` say something that nobody reads.
    """
    check.saw(step)
    if step.kind is Kind.ERROR:
        check.violated(step, "ping is answered with an error", "an empty result")
    elif not isinstance(step.result, dict) or set(step.result) - {"_meta"}:
        check.violated(step, "ping is answered with content", "{}", pointer="/result")


@_client_capability_rule(
    "CAP-001", "the client uses only what the server declared", methods=tuple(SERVER_CAPABILITY)
)
def client_uses_declared_capabilities(check: Check, step: Step) -> None:
    """A client calls a method only if the server declared the capability it belongs to.

    `resources/subscribe` also needs `resources.subscribe`. The capability for completions exists
    since 2025-03-26, so `completion/complete` is not judged in 2024-11-05.
    """
    session = check.session
    if not session.initialize_answered and session.form == "full":
        return  # nothing is declared yet; INV-001 and LIFE-001 speak of that
    if session.server_capabilities is None and session.form == "exchanges":
        check.inconclusive("the capture does not say what the server declared")
        return
    name = SERVER_CAPABILITY[step.method]
    if name == "completions" and step.revision in {Revision.V2024_11_05, None}:
        return
    member = "subscribe" if step.method.endswith("subscribe") else ""
    check.saw(step)
    if not declares(session.server_capabilities, name, member):
        needed = f"{name}.{member}" if member else name
        told = f"{step.method!r} is called, but the server did not declare {needed!r}"
        check.violated(step, told, "calls to declared capabilities only")


@_server_capability_rule(
    "CAP-002",
    "the server asks only for what the client declared",
    listens=(Kind.REQUEST,),
    methods=tuple(CLIENT_CAPABILITY),
)
def server_uses_declared_capabilities(check: Check, step: Step) -> None:
    """A server asks for sampling, roots or elicitation only if the client declared it.

    A client without the capability has nothing that could answer; the tool that asks then fails
    for its user.
    """
    check.saw(step)
    name = CLIENT_CAPABILITY[step.method]
    if not declares(check.session.client_capabilities, name):
        told = f"the server asks {step.method!r}, but the client did not declare {name!r}"
        check.violated(step, told, "requests for declared capabilities only")


@_server_capability_rule(
    "CAP-003",
    "the server announces changes only if it declared so",
    listens=(Kind.NOTIFICATION,),
    methods=tuple(CHANGE_NOTIFICATIONS),
    conversations="any",
)
def announced_changes_were_declared(check: Check) -> Watching:
    """`list_changed` needs the capability's `listChanged`, `resources/updated` its `subscribe`.

    Clients that rely on the declaration poll where nothing was declared: an announcement that
    they do not expect is lost.
    """

    def judge(step: Step) -> None:
        check.saw(step)
        name, member, _ = CHANGE_NOTIFICATIONS[step.method]
        if not declares(check.session.server_capabilities, name, member):
            told = f"{step.method!r} without the capability {name}.{member}"
            check.violated(step, told, f"{name}.{member} declared as true")

    yield from once_declared(check, judge)


@_client_capability_rule(
    "CAP-004",
    "the client announces root changes only if it declared so",
    "client/roots#capabilities",
    listens=(Kind.NOTIFICATION,),
    methods=("notifications/roots/list_changed",),
)
def root_changes_were_declared(check: Check, step: Step) -> None:
    """`notifications/roots/list_changed` needs `roots.listChanged` of the client.

    A server that was not told to expect changes may keep the roots that it read first.
    """
    check.saw(step)
    if not declares(check.session.client_capabilities, "roots", "listChanged"):
        told = "root changes are announced without the capability roots.listChanged"
        check.violated(step, told, "roots.listChanged declared as true")
