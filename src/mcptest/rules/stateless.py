"""META, MRTR and SUBS: what is specific to the stateless era.

The members of every request and result, and messages that nobody may send. Results that ask for
input, and their retries. `subscriptions/listen`, the only long-lived stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from mcptest.core.message import ABSENT, Kind, a_json_type, id_key, json_type
from mcptest.core.revision import STATELESS_ERA
from mcptest.core.verdict import Severity, Side
from mcptest.rules.declaration import (
    ANSWERS,
    MESSAGES,
    Check,
    Watching,
    WrongShape,
    session_rule,
    spelled_out,
)
from mcptest.rules.protocol import (
    CACHEABLE,
    CHANGE_NOTIFICATIONS,
    CLIENT_CAPABILITIES,
    CLIENT_CAPABILITY,
    CLIENT_INFO,
    MAY_ASK_FOR_INPUT,
    PROTOCOL_VERSION,
    SERVER_INFO,
    SUBSCRIPTION_ID,
    declares,
    meta_pointer,
    object_at,
)
from mcptest.rules.session import Step

_stateless_rule = partial(session_rule, category="stateless", page="basic", window=STATELESS_ERA)
_client_rule = partial(_stateless_rule, side=Side.CLIENT, sender="client")
_server_rule = partial(_stateless_rule, side=Side.SERVER, sender="server")
_result_rule = partial(_server_rule, listens=(Kind.RESULT,))


@_client_rule(
    "META-001",
    "every request has a protocol version and client capabilities",
    "#_meta",
    listens=(Kind.REQUEST,),
    reports=f"/params{{,/_meta}} {meta_pointer(PROTOCOL_VERSION)} "
    f"{meta_pointer(CLIENT_CAPABILITIES)}",
)
def requests_carry_version_and_capabilities(check: Check, step: Step) -> None:
    """The `_meta` of each request has the protocol version and the client's capabilities.

    The server keeps nothing between requests. Each request therefore names its revision
    (`io.modelcontextprotocol/protocolVersion`, a string) and what its sender supports
    (`io.modelcontextprotocol/clientCapabilities`, an object). A server rejects requests without
    them.

    Fix: Add `io.modelcontextprotocol/protocolVersion` and
    `io.modelcontextprotocol/clientCapabilities` to the `_meta` of every request.
    """
    if step.method == "initialize":
        return  # belongs to the other era
    check.saw(step)
    for key, kind in ((PROTOCOL_VERSION, str), (CLIENT_CAPABILITIES, dict)):
        found = step.meta.get(key, ABSENT)
        if not isinstance(found, kind):
            told = f"the client sent {step.method!r} without a valid {key} in _meta"
            expected = f"{key} on every request"
            check.violated(step, told, expected, actual=json_type(found), pointer="/params/_meta")


@_stateless_rule(
    "META-002",
    "requests name the client, results name the server",
    "#_meta",
    severity=Severity.SHOULD,
    side=Side.BOTH,
    listens=(Kind.REQUEST, Kind.RESULT),
)
def both_sides_name_themselves(check: Check, step: Step) -> None:
    """`_meta` of a request has `clientInfo`, that of a result has `serverInfo`.

    Without a handshake, this is the only place where either side identifies itself. Logs and bug
    reports depend on it.

    Fix: As a server, add `io.modelcontextprotocol/serverInfo` to the `_meta` of every result. As a
    client, add `io.modelcontextprotocol/clientInfo` to the `_meta` of every request.
    """
    is_request = step.kind is Kind.REQUEST
    if step.sender != ("client" if is_request else "server") or step.method == "initialize":
        return
    check.saw(step)
    key = CLIENT_INFO if is_request else SERVER_INFO
    holder = step.message.member("params") if is_request else step.result
    if not isinstance(object_at(holder, "_meta").get(key), dict):
        what = repr(step.method) if is_request else f"the result of {step.method!r}"
        check.violated(step, f"the {step.sender} sent {what} without {key} in _meta", key)


@_result_rule(
    "META-003", "every result has a resultType", "#responses", reports="/result/resultType"
)
def results_have_a_type(check: Check, step: Step) -> None:
    """`resultType` is a string on every result: `complete`, `input_required`, or an extension's.

    It tells a final result from a request for input. Clients take a result without it for the
    result of an older server.

    Fix: Add `"resultType": "complete"` to every final result.
    """
    check.saw(step)
    kind = step.in_result("resultType")
    if not isinstance(kind, str) or not kind:
        missing = "without" if kind in (ABSENT, "") else f"with {a_json_type(kind)} as"
        told = f"the server answered {step.method!r} {missing} resultType"
        check.violated(step, told, "complete or input_required", pointer="/result/resultType")


@_result_rule(
    "META-004",
    "cacheable results have ttlMs and cacheScope",
    "server/utilities/caching",
    methods=tuple(sorted(CACHEABLE)),
    reports="/result/{ttlMs,cacheScope}",
)
def cacheable_results_have_hints(check: Check, step: Step) -> None:
    """Complete results of lists, `resources/read` and `server/discover` have two cache hints.

    `ttlMs` is an integer of at least 0, `cacheScope` is `public` or `private`. Without them, a
    client either asks again each time or serves one user's data to another.

    Fix: Add `ttlMs` (0 if the result must not be cached) and `cacheScope` to the six cacheable
    results.
    """
    result = step.result
    if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
        return
    check.saw(step)
    if fault := hint_fault(result):
        expected = "ttlMs of at least 0 and cacheScope public or private"
        told = f"the server answered {step.method!r}, but {fault}"
        check.violated(step, told, expected, pointer="/result")


def hint_fault(result: Mapping[str, Any]) -> str:
    """What is wrong with the cache hints of a result, or an empty string."""
    ttl = result.get("ttlMs", ABSENT)
    if type(ttl) is not int:
        return f"ttlMs is {a_json_type(ttl)}, not an integer"
    if ttl < 0:
        return f"ttlMs is {ttl}"
    scope = result.get("cacheScope", ABSENT)
    return "" if scope in ("public", "private") else f"cacheScope is {scope!r}"


@_server_rule("META-005", "the server sends no requests", "#messages", listens=MESSAGES)
def server_makes_no_requests(check: Check, step: Step) -> None:
    """In the stateless era, a server never sends a message with both a method and an id.

    It asks the client for input with an `input_required` result. A client of this era has no code
    to answer requests.

    Fix: Return a result with `resultType: "input_required"` and put each request into its
    `inputRequests`.
    """
    check.saw(step)
    if step.kind is Kind.REQUEST:
        told = f"the server sent the request {step.method!r}"
        check.violated(step, told, "an input_required result instead")


@_client_rule("META-006", "the client sends no responses", "#messages", listens=MESSAGES)
def client_sends_no_responses(check: Check, step: Step) -> None:
    """In the stateless era, a client has nothing to respond to.

    Its answers to an `input_required` result travel as `inputResponses` in a new request.

    Fix: Send the request again with your answers in `inputResponses` instead of sending a response.
    """
    check.saw(step)
    if step.kind is Kind.RESULT or step.kind is Kind.ERROR:
        check.violated(step, "the client sent a response", "only requests")


@_result_rule(
    "META-007",
    "server/discover returns versions and capabilities",
    "server/discover",
    listens=ANSWERS,
    methods=("server/discover",),
    reports="/result/supportedVersions{,/*} /result/capabilities",
)
def discover_is_complete(check: Check, step: Step) -> None:
    """`server/discover` exists, and its result has `supportedVersions` and `capabilities`.

    The versions are a non-empty list of strings. Every server of this era answers the request. An
    error for an unsupported version or a missing capability counts as an answer too.

    Fix: Implement `server/discover` and return `supportedVersions`, `capabilities`, `ttlMs` and
    `cacheScope`.
    """
    if step.kind is Kind.ERROR:
        if step.error_code == -32601 and check.session.stateless_answers:
            check.violated(step, "the server does not implement server/discover", "a result")
        return
    check.saw(step)
    versions = step.in_result("supportedVersions")
    is_list = isinstance(versions, list) and bool(versions)
    if not is_list or not all(isinstance(one, str) for one in versions):
        told = "the server returned supportedVersions that is not a list of versions"
        check.violated(step, told, "a list of strings", pointer="/result/supportedVersions")
    if not isinstance(step.in_result("capabilities"), dict):
        told = "the server returned capabilities that is not an object"
        check.violated(step, told, "an object", pointer="/result/capabilities")


_MOST_OPEN = 10_000


def _asks(step: Step) -> bool:
    return bool(step.in_result("resultType") == "input_required")


_input_rule = partial(_result_rule, category="input-required", page="basic/patterns/mrtr")


@_input_rule("MRTR-001", "only tools/call, prompts/get and resources/read ask for input")
def few_methods_ask_for_input(check: Check, step: Step) -> None:
    """`input_required` is a result of `tools/call`, `prompts/get` and `resources/read` only.

    Clients cannot answer it anywhere else, so a list that asks for input is never shown.

    Fix: Return a complete result here, and ask for input in `tools/call`, `prompts/get` or
    `resources/read`.
    """
    if not _asks(step):
        return
    check.saw(step)
    if step.method not in MAY_ASK_FOR_INPUT:
        told = f"the server answered {step.method!r} with input_required"
        check.violated(
            step, told, ", ".join(sorted(MAY_ASK_FOR_INPUT)), pointer="/result/resultType"
        )


@_input_rule(
    "MRTR-002",
    "an input_required result says what it asks for",
    reports="/result/inputRequests{,/*,/*/method}",
)
def asking_says_for_what(check: Check, step: Step) -> None:
    """An `input_required` result has `inputRequests`, a `requestState`, or both.

    With neither, the client has nothing to collect and nothing to send back. Each of the
    `inputRequests` is an `elicitation/create`, a `sampling/createMessage` or a `roots/list`.

    Fix: Add `inputRequests` (an object of `elicitation/create`, `sampling/createMessage` or
    `roots/list` requests), a `requestState` string, or both.
    """
    if not _asks(step):
        return
    check.saw(step)
    asked = step.result.get("inputRequests", ABSENT)
    if asked is ABSENT and not isinstance(step.result.get("requestState"), str):
        told = "the server asked for input without inputRequests or requestState"
        check.violated(step, told, "at least one of them", pointer="/result")
    elif asked is not ABSENT and not isinstance(asked, dict):
        told = f"the server returned inputRequests of type {json_type(asked)}"
        check.violated(step, told, "an object")
    for key, request in asked.items() if isinstance(asked, dict) else ():
        method = request.get("method") if isinstance(request, dict) else None
        if not isinstance(method, str) or method not in CLIENT_CAPABILITY:
            told = f"the server sent the input request {key!r} with the method {method!r}"
            check.violated(
                step, told, ", ".join(CLIENT_CAPABILITY), pointer=f"/result/inputRequests/{key}"
            )


@_input_rule("MRTR-003", "the server asks for input only if the request declared the capability")
def input_is_asked_as_declared(check: Check, step: Step) -> None:
    """Each input request needs a capability that this very request of the client declared.

    Capabilities do not carry over from earlier requests. Without the capability, the server returns
    error -32021.

    Fix: Check `io.modelcontextprotocol/clientCapabilities` in the request's `_meta`, and return
    error -32021 if the capability is missing.
    """
    asked = step.result.get("inputRequests") if _asks(step) else None
    if not isinstance(asked, dict) or step.request is None:
        return
    declared = step.request.meta.get(CLIENT_CAPABILITIES)
    for key, request in asked.items():
        method = request.get("method") if isinstance(request, dict) else None
        needed = CLIENT_CAPABILITY.get(method) if isinstance(method, str) else None
        if needed is None:
            continue
        check.saw(step)
        if not declares(declared, needed):
            told = f"the server asked for {method!r}, but the request did not declare {needed!r}"
            expected = "error -32021, or only input that the client supports"
            check.violated(step, told, expected, pointer=f"/result/inputRequests/{key}")


@_input_rule(
    "MRTR-004",
    "a retry repeats the request and adds the requested input",
    side=Side.CLIENT,
    sender="",
    listens=(Kind.REQUEST, Kind.RESULT),
    methods=tuple(sorted(MAY_ASK_FOR_INPUT)),
    reports="/params/inputResponses",
)
def retries_repeat_the_request(check: Check) -> Watching:
    """A retry has a new id, the same params, an answer to each input request and the same state.

    `inputResponses` has exactly the keys of `inputRequests`. `requestState` comes back byte for
    byte, and only if the server sent one. The server keeps nothing, so it loses whatever the retry
    omits. A request counts as a retry if it has `inputResponses` or `requestState`.

    Fix: Send the same method and params with a new id, one entry in `inputResponses` per input
    request, and `requestState` unchanged.
    """
    asked: dict[Any, list[Step]] = {}
    while step := (yield):
        if step.kind is Kind.RESULT:
            if _asks(step) and step.request is not None and len(asked) < _MOST_OPEN:
                asked.setdefault(_same(step.request), []).append(step)
            continue
        params = step.params
        if step.sender != "client" or not ({"inputResponses", "requestState"} & params.keys()):
            continue
        if check.session.crowded:
            check.inconclusive("too many requests were open at once")
            continue
        check.saw(step)
        questions = asked.get(_same(step), [])
        if not questions:
            told = f"the client sent answers with {step.method!r}, which did not ask for input"
            check.violated(step, told, "the method and params of the request that asked for input")
            continue
        state = params.get("requestState", ABSENT)
        fitting = (one for one in questions if one.in_result("requestState") == state)
        question = next(fitting, questions[0])
        if fault := _retry_fault(question, step):
            told = f"the client sent a retry {fault}"
            check.violated(step, told, "a retry as the input_required result asks for")
        questions.remove(question)
        if not questions:
            asked.pop(_same(step), None)


def _same(request: Step) -> bytes:
    """Method and params without what a retry adds; a key to find the question by."""
    left_out = {"inputResponses", "requestState", "_meta"}
    kept = {key: value for key, value in request.params.items() if key not in left_out}
    return msgspec.json.encode([request.method, kept], order="sorted")


def _retry_fault(question: Step, retry: Step) -> str:
    result, params = question.result, retry.params
    given, wanted = params.get("requestState", ABSENT), result.get("requestState", ABSENT)
    if given != wanted:
        if wanted is ABSENT:
            return "with a requestState that the server never sent"
        return "with another requestState than the server sent"
    questions = result.get("inputRequests")
    answers = params.get("inputResponses", {})
    if not isinstance(answers, dict):
        return f"whose inputResponses is {a_json_type(answers)}, not an object"
    expected = set(questions) if isinstance(questions, dict) else set()
    if set(answers) != expected:
        return f"with answers for {sorted(answers)}; the server asked for {sorted(expected)}"
    first = question.request
    if first is not None and id_key(first.id) == id_key(retry.id):
        return "with the id of the first request"
    return ""


_LISTEN = "subscriptions/listen"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_NAMED_IN = f"/params{{,/_meta}} {meta_pointer(SUBSCRIPTION_ID)}"


def _subscription(step: Step) -> Any:
    return step.meta.get(SUBSCRIPTION_ID, ABSENT)


def _wants(listen: Step, step: Step) -> bool:
    """Did this listen request ask for the notification?"""
    asked = listen.params.get("notifications")
    wanted = asked.get(CHANGE_NOTIFICATIONS[step.method][2]) if isinstance(asked, dict) else None
    if step.method == "notifications/resources/updated":
        # An update may be for a part of a subscribed resource, so the URIs are not compared.
        return isinstance(wanted, list) and bool(wanted)
    return wanted is True


_subscription_rule = partial(
    _server_rule,
    category="subscriptions",
    page="basic/patterns/subscriptions",
    listens=(Kind.NOTIFICATION,),
)


@_subscription_rule(
    "SUBS-001",
    "a subscription begins with its acknowledgment",
    methods=(_ACKNOWLEDGED, *CHANGE_NOTIFICATIONS),
    reports_shapes=(WrongShape(Kind.NOTIFICATION, spelled_out(_NAMED_IN), (_ACKNOWLEDGED,)),),
)
def acknowledgement_comes_first(check: Check) -> Watching:
    """The first message of a subscription is `notifications/subscriptions/acknowledged`.

    It carries the subscription id, which is the id of the listen request in its JSON type. Nothing
    else comes on the subscription before it. Until then, the client does not know which
    notifications it will get.

    Fix: Send `notifications/subscriptions/acknowledged` first, with the id of the listen request as
    `io.modelcontextprotocol/subscriptionId` in `_meta`.
    """
    acknowledged: set[Any] = set()
    while step := (yield):
        name = _subscription(step)
        listen = check.session.in_flight["client"].find(name)
        known = listen is not None and listen.method == _LISTEN
        if step.method == _ACKNOWLEDGED:
            check.saw(step)
            acknowledged.add(id_key(name))
            if not known:
                told = f"the server acknowledged {name!r}, which is not an open subscription"
                expected = f"the id of the listen request as {SUBSCRIPTION_ID}"
                check.violated(step, told, expected, pointer="/params/_meta")
        elif known and id_key(name) not in acknowledged:
            told = f"the server sent {step.method!r} before it acknowledged the subscription"
            check.violated(step, told, _ACKNOWLEDGED)


@_subscription_rule(
    "SUBS-002",
    "change notifications go only to subscriptions that asked for them",
    methods=tuple(CHANGE_NOTIFICATIONS),
    reports=_NAMED_IN,
)
def changes_belong_to_a_subscription(check: Check, step: Step) -> None:
    """`list_changed` and `resources/updated` have the id of a subscription that asked for them.

    In the stateless era, they have no other stream. Without the id, a client with two subscriptions
    cannot tell them apart. 1 and "1" are different ids.

    Fix: Send each change notification only to subscriptions that asked for it, with
    `io.modelcontextprotocol/subscriptionId` in `_meta`.
    """
    check.saw(step)
    name = _subscription(step)
    listen = check.session.in_flight["client"].find(name)
    if name is ABSENT:
        told = f"the server sent {step.method!r} without {SUBSCRIPTION_ID}"
        check.violated(step, told, "the id of the listen request in _meta", pointer="/params/_meta")
    elif listen is None or listen.method != _LISTEN:
        told = f"the server sent {step.method!r} for {name!r}, which is not an open subscription"
        check.violated(step, told, "the id of an open listen request, with the same JSON type")
    elif not _wants(listen, step):
        told = f"the server sent {step.method!r} to a subscription that did not ask for it"
        check.violated(step, told, f"{CHANGE_NOTIFICATIONS[step.method][2]} in the listen request")


@_subscription_rule("SUBS-003", "progress and log messages stay off subscriptions")
def subscriptions_carry_changes_only(check: Check, step: Step) -> None:
    """`notifications/progress` and `notifications/message` belong to the request they are about.

    On a subscription's stream, or with its id, nobody can tell which request that is.

    Fix: Send progress and log messages on the stream of the request they belong to, without a
    subscription id.
    """
    posted = step.stream.posted
    on_listen = posted is not None and posted.method == _LISTEN
    if not on_listen and _subscription(step) is ABSENT:
        return
    check.saw(step)
    if step.method in {"notifications/progress", "notifications/message"}:
        told = f"the server sent {step.method!r} on a subscription"
        check.violated(step, told, "the stream of the request it belongs to")
