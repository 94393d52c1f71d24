"""CAP: neither side uses what the other did not declare."""

from __future__ import annotations

from mcptest.model.message import Kind
from mcptest.model.revision import HANDSHAKE_ERA, Revision
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.protocol import (
    CHANGE_NOTIFICATIONS,
    CLIENT_CAPABILITY,
    SERVER_CAPABILITY,
    declares,
)

_NEGOTIATED = "basic/lifecycle#capability-negotiation"


@session_rule(
    "CAP-001",
    "the client uses only what the server declared",
    category="capability",
    severity=Severity.MUST,
    should_until=Revision.V2025_06_18,
    side=Side.CLIENT,
    spec=_NEGOTIATED,
    window=HANDSHAKE_ERA,
    listens=(Kind.REQUEST,),
    methods=tuple(SERVER_CAPABILITY),
    sender="client",
)
def client_uses_declared_capabilities(check: Check) -> Watching:
    """A client calls a method only if the server declared the capability it belongs to.

    `resources/subscribe` also needs `resources.subscribe`. The capability for completions exists
    since 2025-03-26, so `completion/complete` is not judged in 2024-11-05.
    """
    while step := (yield):
        session = check.session
        if not session.initialize_answered and session.form == "full":
            continue  # nothing is declared yet; INV-001 and LIFE-001 speak of that
        if session.server_capabilities is None and session.form == "exchanges":
            check.inconclusive("the capture does not say what the server declared")
            continue
        name = SERVER_CAPABILITY[step.method]
        if name == "completions" and step.revision in {Revision.V2024_11_05, None}:
            continue
        member = "subscribe" if step.method.endswith("subscribe") else ""
        check.saw(step)
        if not declares(session.server_capabilities, name, member):
            check.violated(
                step,
                f"{step.method!r} is called, but the server did not declare "
                f"{name + '.' + member if member else name!r}",
                expected="calls to declared capabilities only",
            )


@session_rule(
    "CAP-002",
    "the server asks only for what the client declared",
    category="capability",
    severity=Severity.MUST,
    should_until=Revision.V2025_06_18,
    side=Side.SERVER,
    spec=_NEGOTIATED,
    window=HANDSHAKE_ERA,
    listens=(Kind.REQUEST,),
    methods=tuple(CLIENT_CAPABILITY),
    sender="server",
)
def server_uses_declared_capabilities(check: Check) -> Watching:
    """A server asks for sampling, roots or elicitation only if the client declared it.

    A client without the capability has nothing that could answer; the tool that asks then fails
    for its user.
    """
    while step := (yield):
        check.saw(step)
        name = CLIENT_CAPABILITY[step.method]
        if not declares(check.session.client_capabilities, name):
            check.violated(
                step,
                f"the server asks {step.method!r}, but the client did not declare {name!r}",
                expected="requests for declared capabilities only",
            )


@session_rule(
    "CAP-003",
    "the server announces changes only if it declared so",
    category="capability",
    severity=Severity.MUST,
    should_until=Revision.V2025_06_18,
    side=Side.SERVER,
    spec=_NEGOTIATED,
    window=HANDSHAKE_ERA,
    listens=(Kind.NOTIFICATION,),
    methods=tuple(CHANGE_NOTIFICATIONS),
    sender="server",
)
def announced_changes_were_declared(check: Check) -> Watching:
    """`list_changed` needs the capability's `listChanged`, `resources/updated` its `subscribe`.

    Clients that rely on the declaration poll where nothing was declared: an announcement that
    they do not expect is lost.
    """
    while step := (yield):
        check.saw(step)
        name, member = CHANGE_NOTIFICATIONS[step.method]
        if not declares(check.session.server_capabilities, name, member):
            check.violated(
                step,
                f"{step.method!r} without the capability {name}.{member}",
                expected=f"{name}.{member} declared as true",
            )


@session_rule(
    "CAP-004",
    "the client announces root changes only if it declared so",
    category="capability",
    severity=Severity.MUST,
    should_until=Revision.V2025_06_18,
    side=Side.CLIENT,
    spec="client/roots#capabilities",
    window=HANDSHAKE_ERA,
    listens=(Kind.NOTIFICATION,),
    methods=("notifications/roots/list_changed",),
    sender="client",
)
def root_changes_were_declared(check: Check) -> Watching:
    """`notifications/roots/list_changed` needs `roots.listChanged` of the client.

    A server that was not told to expect changes may keep the roots that it read first.
    """
    while step := (yield):
        check.saw(step)
        if not declares(check.session.client_capabilities, "roots", "listChanged"):
            check.violated(
                step,
                "root changes are announced without the capability roots.listChanged",
                expected="roots.listChanged declared as true",
            )
