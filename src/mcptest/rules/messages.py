"""MSG: the messages themselves, by JSON and JSON-RPC 2.0 and what MCP adds to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcptest.model.message import ABSENT, Flaw, Kind, json_type
from mcptest.model.revision import STATELESS_ERA, Revision, Window
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.session import Step
from mcptest.wire.envelope import envelope_problems
from mcptest.wire.jsontext import duplicate_keys

# These have rules of their own, or depend on what the message answers.
_JUDGED_ELSEWHERE = frozenset({Flaw.ID_NULL, Flaw.ID_TYPE, Flaw.ERROR_TYPE})


def _is_plain(value: Any) -> bool:
    """The usual message, recognised without building a list of problems."""
    if type(value) is not dict or value.get("jsonrpc") != "2.0":
        return False
    if "method" in value:
        return (
            type(value["method"]) is str
            and "result" not in value
            and "error" not in value
            and type(value.get("params", _NOTHING)) is dict
        )
    return "id" in value and ("result" in value) != ("error" in value)


_NOTHING: dict[str, Any] = {}


@session_rule(
    "MSG-001",
    "every message is JSON-RPC 2.0",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#messages",
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT, Kind.ERROR, Kind.INVALID, Kind.BATCH),
)
def every_message_is_jsonrpc(check: Check) -> Watching:
    """Each message has `jsonrpc: "2.0"` and is a request, a notification or a response.

    A request has a string `method` and an id, a notification a `method` and no id, a response the
    id of its request and either `result` or `error`, never both. `params` is an object or array.

    A peer may drop anything else without a word, and the session hangs. Bytes that are no JSON at
    all are judged by MSG-002.
    """
    while step := (yield):
        value = step.message.value
        if value is ABSENT:
            continue
        check.saw(step)
        if step.kind is Kind.BATCH:
            if not value:
                check.violated(step, "an empty batch", expected="at least one message")
            continue
        if _is_plain(value):
            continue
        for problem in envelope_problems(value):
            if problem.flaw not in _JUDGED_ELSEWHERE:
                check.violated(step, problem.reason, pointer=problem.pointer)


@session_rule(
    "MSG-002",
    "every message is JSON text in UTF-8",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic/transports",
)
def every_message_is_json_text(check: Check) -> Watching:
    """What is sent parses as JSON: UTF-8, no byte order mark, no NaN or Infinity, sane numbers.

    JSON libraries differ in what they forgive. Text that one of them reads and another refuses
    makes a session work with one peer and hang with the next. Nesting deeper than 512 levels is
    reported too: common parsers give up there.

    To fix it, use a strict encoder and write numbers that are not finite as null or strings.
    """
    while step := (yield):
        if step.in_batch:
            continue
        check.saw(step)
        for problem in step.message.problems:
            check.violated(step, problem.reason, expected="JSON text", pointer=problem.pointer)


@session_rule(
    "MSG-003",
    "no object has the same key twice",
    category="json-rpc",
    severity=Severity.SHOULD,
    side=Side.BOTH,
    spec="basic#messages",
)
def keys_are_unique(check: Check) -> Watching:
    """The members of each JSON object have different names.

    Which of two equal keys counts is up to the parser, so a proxy and a server can read two
    different messages from the same bytes: a way around checks. RFC 8259 says SHOULD.
    """
    while step := (yield):
        message = step.message
        if step.in_batch or message.value is ABSENT:
            continue
        check.saw(step)
        repeated = duplicate_keys(message.raw, message.value)
        if repeated:
            check.violated(
                step,
                f"the key {repeated[0]!r} occurs twice in one object",
                expected="each key once",
                actual=", ".join(repeated[:5]),
            )


@session_rule(
    "MSG-004",
    "a request id is a string or an integer",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#requests",
    listens=(Kind.REQUEST,),
)
def request_ids_are_strings_or_integers(check: Check) -> Watching:
    """The id of a request is a string or an integer, and never null.

    An answer is matched by its id alone. null stands for "unknown" in JSON-RPC, and a fraction or
    an object does not survive every peer. An integer beyond 2^53 is legal but changes in peers
    that read numbers as doubles.
    """
    while step := (yield):
        identifier = step.id
        check.saw(step)
        if type(identifier) is not int and type(identifier) is not str:
            check.violated(
                step,
                f"the id of {step.method!r} is {json_type(identifier)}",
                expected="a string or an integer",
                actual=repr(identifier),
                pointer="/id",
            )


@session_rule(
    "MSG-005",
    "request ids are not reused",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#requests",
    listens=(Kind.REQUEST,),
)
def request_ids_are_not_reused(check: Check) -> Watching:
    """A sender gives each request an id of its own.

    With the handshake an id is used once in a session. In the stateless era it must only differ
    from those that are still in flight. A reused id makes a late answer look like the answer to
    another request.
    """
    while step := (yield):
        if type(step.id) not in {int, str}:
            continue
        check.saw(step)
        stateless = step.stateless
        if step.id_was_waiting or (step.id_was_used and not stateless):
            when = "is still waiting for its answer" if step.id_was_waiting else "was used before"
            check.violated(
                step,
                f"id {step.id!r} of {step.method!r} {when}",
                expected="an id that was not used",
                pointer="/id",
            )


@session_rule(
    "MSG-006",
    "every response answers a request",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#responses",
    listens=(Kind.RESULT, Kind.ERROR),
)
def responses_answer_requests(check: Check) -> Watching:
    """A response carries the id of a request that the other side made, in the same JSON type.

    1 and "1" are two ids. A response that matches nothing leaves its request unanswered, and the
    caller waits until it gives up. An error that could not be matched to a request because that
    was unreadable has no id, and is not judged here.
    """
    while step := (yield):
        if step.kind is Kind.ERROR and step.id in (ABSENT, None):
            continue
        check.saw(step)
        if step.mismatch is None or step.mismatch.name == "AGAIN":
            continue
        check.violated(
            step,
            f"a response with id {_shown(step.id)}: {step.mismatch.value}",
            expected="the id of a request that waits for its answer, in the same type",
            actual=_shown(step.id),
            pointer="/id",
        )


@session_rule(
    "MSG-007",
    "a request is answered once",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#responses",
    listens=(Kind.RESULT, Kind.ERROR),
)
def requests_are_answered_once(check: Check) -> Watching:
    """There is one response to each request.

    A second one is at best ignored. At worst it is taken for the answer to a later request.
    """
    while step := (yield):
        if step.request is not None:
            check.saw(step)
        elif step.mismatch is not None and step.mismatch.name == "AGAIN":
            check.violated(
                step,
                f"a second response with id {_shown(step.id)}",
                expected="one response to each request",
                pointer="/id",
            )


@session_rule(
    "MSG-008",
    "a notification is not answered",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#notifications",
    listens=(Kind.NOTIFICATION, Kind.RESULT, Kind.ERROR),
)
def notifications_are_not_answered(check: Check) -> Watching:
    """Nothing answers a notification, not even an unknown one.

    A notification has no id, so its sender has no place to put an answer. Seen here are results
    without an id, and answers that arrive on the HTTP exchange (or in the entry of a public
    capture) that carried a notification. An HTTP error status with an error body is allowed: that
    is how HTTP refuses one.
    """
    while step := (yield):
        if step.kind is Kind.NOTIFICATION:
            check.saw(step)
        elif step.kind is Kind.RESULT and step.id in (ABSENT, None):
            check.violated(step, "a result without an id", expected="no answer to a notification")
        elif _answers_a_notification(step):
            check.violated(
                step,
                f"an answer to the notification {_posted_method(step)!r}",
                expected="no answer to a notification",
            )


def _answers_a_notification(step: Step) -> bool:
    stream = step.stream
    if stream is None or stream.posted is None or step.sender != "server":
        return False
    if stream.posted.kind is not Kind.NOTIFICATION:
        return False
    return stream.response is None or stream.response.status < 400


def _posted_method(step: Step) -> str:
    return step.stream.posted.method if step.stream and step.stream.posted else ""


@session_rule(
    "MSG-009",
    "every request is answered",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#responses",
    listens=(Kind.REQUEST, Kind.RESULT, Kind.ERROR),
)
def every_request_is_answered(check: Check) -> Watching:
    """Each request gets a response, unless it was cancelled or the session ended first.

    A request that is still open when later ones have been answered was forgotten. Requests at the
    very end of a capture, and all open ones of a capture that was cut short, can't be judged. A
    subscription stays open by design.
    """
    last_answered = {"client": -1, "server": -1}
    while step := (yield):
        if step.request is not None and step.kind is not Kind.REQUEST:
            check.saw(step)
            asker = step.request.sender
            last_answered[asker] = max(last_answered[asker], step.request.place)
    session = check.session
    for sender, in_flight in session.in_flight.items():
        for request in in_flight.waiting.values():
            if request.cancelled or request.method == "subscriptions/listen":
                continue
            if session.ends_whole and request.place < last_answered[sender]:
                check.violated(
                    request,
                    f"{request.method!r} with id {_shown(request.id)} got no response",
                    expected="a response to each request",
                )
            else:
                check.inconclusive("the capture ends while requests are waiting")


@session_rule(
    "MSG-010",
    "an error for an unreadable request leaves out the id",
    category="json-rpc",
    severity=Severity.SHOULD,
    side=Side.BOTH,
    spec="basic#responses",
    window=Window(since=Revision.V2025_11_25),
    listens=(Kind.ERROR,),
)
def errors_without_id_leave_it_out(check: Check) -> Watching:
    """When the id of a request could not be read, the error has no `id` member; null is not one.

    The schema of MCP does not allow null there, while JSON-RPC 2.0 asks for it and real servers
    send it. So this is a warning: clients do well to accept both.
    """
    while step := (yield):
        if step.id is None:
            check.violated(step, "the error has id null", expected="no id member", pointer="/id")
        elif step.id is ABSENT:
            check.saw(step)


@session_rule(
    "MSG-011",
    "messages are not batched",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic/transports",
    window=Window(since=Revision.V2025_06_18),
)
def messages_are_not_batched(check: Check) -> Watching:
    """From 2025-06-18 on a line or body holds one message, not an array of them.

    Batches existed in 2025-03-26 only. A peer of a later revision need not understand them.
    """
    while step := (yield):
        if step.in_batch:
            continue
        check.saw(step)
        if step.kind is Kind.BATCH:
            check.violated(
                step,
                f"a batch of {len(step.message.items)} messages",
                expected="one message",
            )


@session_rule(
    "MSG-012",
    "a result is an object",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#responses",
    listens=(Kind.RESULT,),
)
def results_are_objects(check: Check) -> Watching:
    """`result` is a JSON object, also when there is nothing to say: `{}`.

    JSON-RPC allows any value, MCP does not: `_meta` and later additions need a place.
    """
    while step := (yield):
        check.saw(step)
        if not isinstance(step.result, dict):
            check.violated(
                step,
                f"the result of {step.method!r} is {json_type(step.result)}",
                expected="an object",
                pointer="/result",
            )


_DEFINED = {-32020: "", -32021: "requiredCapabilities", -32022: "supported"}


def _code_of(step: Step) -> int | None:
    error = step.error
    code = error.get("code") if isinstance(error, dict) else None
    return code if type(code) is int else None


@session_rule(
    "MSG-013",
    "error codes are those the revision allows",
    category="error-envelope",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#error-codes",
    window=STATELESS_ERA,
    listens=(Kind.ERROR,),
)
def error_codes_are_allowed(check: Check) -> Watching:
    """From 2026-07-28 on -32020 to -32099 is reserved: only three of these codes have a meaning.

    -32020 is a header that does not match, -32021 a missing client capability, -32022 an
    unsupported version. -32002 (resource not found) and -32042 (URL elicitation required) of
    earlier revisions are not sent any more. An unknown code there will mean something else in a
    later revision.
    """
    while step := (yield):
        code = _code_of(step)
        if code is None:
            continue
        check.saw(step)
        if code == -32002 or (-32099 <= code <= -32020 and code not in _DEFINED):
            retired = " any more" if code in {-32002, -32042} else ""
            check.violated(
                step,
                f"code {code} is not used{retired} in {step.revision}",
                expected="a code outside the reserved range, or a defined one",
                actual=str(code),
                pointer="/error/code",
            )


@session_rule(
    "MSG-014",
    "the old implementation-defined codes are not used",
    category="error-envelope",
    severity=Severity.SHOULD,
    side=Side.BOTH,
    spec="basic#error-codes",
    window=STATELESS_ERA,
    listens=(Kind.ERROR,),
)
def old_codes_are_avoided(check: Check) -> Watching:
    """New code stays away from -32000 to -32019.

    Implementations gave these codes meanings of their own, so that a receiver can't rely on any.
    Of these, -32001, -32003 and -32004 were in the release candidate of 2026-07-28: a peer that
    sends them was built to that draft. -32002 is judged by MSG-013.
    """
    while step := (yield):
        code = _code_of(step)
        if code is None or code == -32002:
            continue
        check.saw(step)
        if -32019 <= code <= -32000:
            check.violated(
                step,
                f"code {code} is in the range that has no agreed meaning",
                expected="a standard code, or one outside -32000 to -32019",
                actual=str(code),
                pointer="/error/code",
            )


@session_rule(
    "MSG-015",
    "the defined error codes carry their data",
    category="error-envelope",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic#error-codes",
    window=STATELESS_ERA,
    listens=(Kind.ERROR,),
    sender="server",
)
def defined_codes_carry_their_data(check: Check) -> Watching:
    """-32021 names the `requiredCapabilities`, -32022 the `supported` versions and the `requested`.

    A client uses the data to try again with a version or a capability that works; without it the
    error is a dead end.
    """
    while step := (yield):
        code = _code_of(step)
        if code not in {-32021, -32022}:
            continue
        check.saw(step)
        data = step.error.get("data")
        data = data if isinstance(data, dict) else {}
        if code == -32021 and not isinstance(data.get("requiredCapabilities"), dict):
            check.violated(step, "-32021 without data.requiredCapabilities", pointer="/error/data")
        elif code == -32022 and not isinstance(data.get("supported"), list):
            check.violated(step, "-32022 without data.supported", pointer="/error/data")
        elif code == -32022 and not isinstance(data.get("requested"), str):
            check.violated(step, "-32022 without data.requested", pointer="/error/data")


_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY = re.compile(
    rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)


@session_rule(
    "MSG-016",
    "the keys of _meta follow their grammar",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#_meta",
    window=Window(since=Revision.V2025_06_18),
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT),
)
def meta_keys_follow_the_grammar(check: Check) -> Watching:
    """A key of `_meta` is a name, with a prefix of dotted labels and a slash before it if any.

    Labels begin with a letter, labels and names end with a letter or digit. The grammar keeps the
    keys of the protocol and those of others apart. Looked at are params, results and the items of
    lists.
    """
    while step := (yield):
        holder = step.result if step.kind is Kind.RESULT else step.message.member("params")
        for pointer, meta in _metas(holder):
            check.saw(step)
            for key in meta if isinstance(meta, dict) else ():
                if not _META_KEY.fullmatch(key):
                    check.violated(
                        step,
                        f"the key {key!r} of _meta",
                        expected="[prefix.labels/]name",
                        actual=key,
                        pointer=pointer,
                    )


def _metas(holder: Any) -> Iterator[tuple[str, Any]]:
    if type(holder) is not dict:
        return
    if "_meta" in holder:
        yield "/_meta", holder["_meta"]
    for name, value in holder.items():
        if type(value) is list:
            for place, item in enumerate(value):
                if type(item) is dict and "_meta" in item:
                    yield f"/{name}/{place}/_meta", item["_meta"]


@session_rule(
    "MSG-017",
    "a notification has no id",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#notifications",
    listens=(Kind.REQUEST, Kind.NOTIFICATION),
)
def notifications_have_no_id(check: Check) -> Watching:
    """A message whose method begins with `notifications/` carries no `id` member.

    With an id it is a request by its shape, and the receiver owes an answer that nobody waits for.
    """
    while step := (yield):
        if step.kind is Kind.NOTIFICATION:
            check.saw(step)
        elif step.method.startswith("notifications/"):
            check.violated(
                step,
                f"{step.method!r} with an id",
                expected="no id member",
                actual=_shown(step.id),
                pointer="/id",
            )


def _shown(identifier: Any) -> str:
    return "absent" if identifier is ABSENT else f"{identifier!r} ({json_type(identifier)})"
