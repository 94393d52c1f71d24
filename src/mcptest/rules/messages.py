"""MSG: the messages themselves, by JSON and JSON-RPC 2.0 and what MCP adds to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from mcptest.core.capture import FORCED
from mcptest.core.message import ABSENT, Flaw, Kind, a_json_type, json_type
from mcptest.core.revision import HANDSHAKE_ERA, SINCE_JUNE_2025, SINCE_NOVEMBER_2025, STATELESS_ERA
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
from mcptest.rules.protocol import STATELESS_CODES, member_at
from mcptest.rules.session import NO_STREAM, Session, Step, other_side
from mcptest.wire.diagnosis import diagnose
from mcptest.wire.envelope import envelope_problems, is_request_id
from mcptest.wire.json_text import duplicate_keys


def shown_id(identifier: Any) -> str:
    return "absent" if identifier is ABSENT else f"{identifier!r} ({json_type(identifier)})"


def _has_scalar_params(step: Step, parts: list[str]) -> bool:
    params = step.message.member("params")
    return params is not ABSENT and not isinstance(params, list)


_message_rule = partial(
    session_rule, category="json-rpc", side=Side.BOTH, page="basic", on_routine="count"
)
_whatever_was_sent = partial(_message_rule, conversations="any")
_error_rule = partial(
    session_rule,
    category="error-envelope",
    side=Side.BOTH,
    page="basic#error-codes",
    window=STATELESS_ERA,
    listens=(Kind.ERROR,),
)


@_message_rule("MSG-005", "request ids are not reused", "#requests", listens=(Kind.REQUEST,))
def request_ids_are_not_reused(check: Check, step: Step) -> None:
    """A sender gives each request its own id.

    With the handshake, an id is used once per session. A session begins with `initialize`, so
    another session, connection or process may use the id again. In the stateless era, an id must
    only differ from those still in flight. Over HTTP, a request with the same id on another stream
    counts as a request of another client. A reused id makes a late response look like the response
    to another request.

    Fix: Take request ids from a counter that never goes back within a session.
    """
    if type(step.id) not in {int, str}:
        return
    check.saw(step)
    if step.id_was_waiting or (step.id_was_used and not step.stateless):
        when = "while it was still open" if step.id_was_waiting else "in the same session"
        told = f"the {step.sender} used request id {step.id!r} again, for {step.method!r}, {when}"
        check.violated(step, told, "a new id", pointer="/id")


@_whatever_was_sent(
    "MSG-006",
    "every response matches a request",
    "#responses",
    listens=ANSWERS,
    yields_to={"JSONRPC-004": "id", "MSG-008": "message"},
)
def responses_answer_requests(check: Check, step: Step) -> None:
    """A response has the id of a request from the other side, in the same JSON type.

    1 and "1" are different ids. 1 and 1.0 are the same id, because JSON has a single number type. A
    response that matches nothing leaves its request unanswered, and the caller waits until it times
    out.

    An error for a request whose id could not be read has no id, or null, and is not judged here. A
    made-up id such as "server-error" is a violation: JSON-RPC 2.0 asks for the id of the request,
    or null. An error with the id of a message that is not a request counts as a response to that
    message.

    Fix: Copy the `id` of the request into its response unchanged, with the same JSON type.
    """
    if step.kind is Kind.ERROR and step.id in (ABSENT, None):
        return
    check.saw(step)
    if step.mismatch is None or step.mismatch.name == "AGAIN":
        return
    told = f"the {step.sender} sent a response with id {shown_id(step.id)}: {step.mismatch.value}"
    expected = "the id of an open request, with the same JSON type"
    check.violated(step, told, expected, actual=shown_id(step.id), pointer="/id")


@_message_rule("MSG-007", "a request gets only one response", "#responses", listens=ANSWERS)
def requests_are_answered_once(check: Check, step: Step) -> None:
    """Each request gets exactly one response.

    At best, the receiver ignores a second response. At worst, it takes it for the response to a
    later request.

    Fix: Send one response per request. Look for a handler that both returns a result and reports an
    error.
    """
    if step.request is not None:
        check.saw(step)
    elif step.mismatch is not None and step.mismatch.name == "AGAIN":
        told = f"the {step.sender} sent a second response with id {shown_id(step.id)}"
        check.violated(step, told, "one response to each request", pointer="/id")


@_message_rule(
    "MSG-008",
    "a notification gets no response",
    "#notifications",
    listens=(Kind.NOTIFICATION, *ANSWERS),
    on_routine="skip",
    shown_by="silence",
)
def notifications_are_not_answered(check: Check) -> Watching:
    """The receiver of a notification sends no response, not even to an unknown notification.

    A notification has no id, so its sender cannot match a response to it. The rule sees results
    without an id, and responses that arrive on the HTTP exchange (or in the entry of a public
    capture) that carried a notification. HTTP may reject a notification with an error status and an
    error body.

    A result without an id on the exchange of a request answers that request. Elsewhere, while a
    request is still open, such a result may answer either one, and the rule is inconclusive.
    MSG-001 and MSG-006 report the missing id.

    Fix: Send nothing back for a message without an `id`, even if you do not know its method. Over
    HTTP, return 202 with an empty body.
    """
    without_id: list[Step] = []
    while step := (yield):
        carried = step.stream.posted if step.sender == "server" else None
        is_bare = step.kind is Kind.RESULT and step.id in (ABSENT, None)
        if step.kind is Kind.NOTIFICATION:
            check.saw(step)
        elif carried is None:
            without_id += [step] if is_bare and len(without_id) < _MOST_WITHOUT_ID else []
        elif carried.kind is Kind.NOTIFICATION and (is_bare or not step.stream.was_refused):
            message = f"the server answered the notification {carried.method!r}"
            check.violated(step, message, "no response to a notification")
    forgotten = sum(  # requests without an answer that nobody cancelled
        request.cancelled is None and request.method != "subscriptions/listen"
        for in_flight in check.session.in_flight.values()
        for request in in_flight.waiting.values()
    )
    if len(without_id) > forgotten:
        for step in without_id:
            message = f"the {step.sender} sent a result without an id"
            check.violated(step, message, "no response to a notification")
    elif without_id:
        check.doubtful("a result without an id answers either a notification or an open request")


_MOST_WITHOUT_ID = 100
"""A server may send as many of them as it likes; they are kept until the session is over."""


@_message_rule(
    "MSG-009",
    "every request gets a response",
    "#responses",
    listens=ANSWERS,
    shown_by="missing answer",
    yields_to={"MSG-006": "id", "JSONRPC-004": "id"},
    absorbs="silence",
)
def every_request_is_answered(check: Check) -> Watching:
    """Each request gets a response, unless it was cancelled or the session ended first.

    A request that is still open when later ones have been answered was forgotten. So was a request
    that the server left open when it exited, and one that the client waited for until it timed out.

    Some open requests cannot be judged: other requests at the very end of a capture, and all open
    requests of a capture that was cut short. The same goes for a response that was cut off because
    a signal ended the server or the connection was closed. A subscription stays open by design.

    Fix: Answer every request that has an `id`: with a result, or with an error when the handler
    fails. Catch exceptions around each handler and return error -32603.
    """
    while step := (yield):
        if step.request is not None:
            check.saw(step)
    session = check.session
    for sender, in_flight in session.in_flight.items():
        for request in in_flight.waiting.values():
            # What was cancelled because the client had waited in vain is judged all the same.
            was_dropped = request.cancelled is not None and session.gave_up is None
            if request.method == "subscriptions/listen" or was_dropped:
                continue
            why = _why_forgotten(request, sender, session)
            if why:
                asked = f"{request.method!r} with id {shown_id(request.id)}"
                told = f"the {other_side(sender)} did not answer {asked}{why}"
                check.violated(request, told, "a response to each request")
            else:
                check.inconclusive("the capture ends with open requests")


def _why_forgotten(request: Step, sender: str, session: Session) -> str:
    """What shows that no answer would have come; empty when nothing does."""
    if request.place in session.cut_off:
        return ""
    if sender == "client" and session.exited is not None and not session.exited.after:
        return ": it exited"
    if sender == "client" and session.gave_up is not None:
        return f": {session.gave_up.detail}"
    was_ended = session.exited is not None and session.exited.after in FORCED
    if session.ends_whole and not was_ended and request.place < session.last_answered[sender]:
        return ", but answered later requests"
    return ""


# These have rules of their own, or depend on what the message answers.
_JUDGED_ELSEWHERE = frozenset({Flaw.ID_NULL, Flaw.ID_TYPE, Flaw.ERROR_TYPE})


@_whatever_was_sent(
    "MSG-001",
    "every message is JSON-RPC 2.0",
    "#messages",
    listens=(*MESSAGES, Kind.INVALID, Kind.BATCH),
    yields_to={"STDIO-001": "message", "MSG-008": "message"},
    reports_shapes=(
        WrongShape(Kind.REQUEST, ("/params",), when=_has_scalar_params, window=HANDSHAKE_ERA),
        WrongShape(Kind.NOTIFICATION, ("/params",), when=_has_scalar_params),
    ),
)
def every_message_is_jsonrpc(check: Check, step: Step) -> None:
    """Each message has `jsonrpc: "2.0"` and is a request, a notification or a response.

    A request has a string `method` and an id. A notification has a `method` and no id. A response
    has the id of its request and either `result` or `error`, never both. `params` is an object or
    array.

    A peer may silently drop anything else, and then the session hangs. MSG-002 judges bytes that
    are not JSON at all.

    Fix: Send each message with `"jsonrpc": "2.0"` and exactly the members of a request, a
    notification or a response. A JSON-RPC library does this for you.
    """
    value = step.message.value
    if value is ABSENT:
        return
    check.saw(step)
    if step.kind is Kind.BATCH:
        if not value:
            check.violated(step, f"the {step.sender} sent an empty batch", "at least one message")
        return
    for problem in envelope_problems(value):
        if problem.flaw not in _JUDGED_ELSEWHERE:
            told = f"the {step.sender} sent an invalid message: {problem.reason}"
            check.violated(step, told, pointer=problem.pointer)


@_whatever_was_sent(
    "MSG-002",
    "every message is JSON text in UTF-8",
    "basic/transports",
    yields_to={"STDIO-001": "message"},
)
def every_message_is_json_text(check: Check, step: Step) -> None:
    """Every message parses as JSON: UTF-8, no byte order mark, no NaN or Infinity, sane numbers.

    JSON libraries differ in what they accept. Text that one library reads and another rejects makes
    a session work with one peer and hang with the next. Nesting deeper than 512 levels is reported
    too, because common parsers give up there.

    Fix: Use a strict JSON encoder, write UTF-8 without a byte order mark, and encode NaN and
    Infinity as null or strings.
    """
    problems = step.message.problems
    if step.in_batch or any(one.flaw is Flaw.TOO_MANY_VALUES for one in problems):
        return  # how many values we read is a limit of ours
    check.saw(step)
    for problem in problems:
        reason = problem.reason
        if problem.flaw is Flaw.NOT_JSON:
            known = diagnose((step.message.raw,), lines=step.stream is NO_STREAM)
            reason = f"{known}: {reason}" if known else reason
        is_read = step.message.value is not ABSENT
        sent = "non-standard JSON" if is_read else "invalid JSON"
        told = f"the {step.sender} sent {sent}: {reason}"
        check.violated(step, told, "JSON text", pointer=problem.pointer)


@_whatever_was_sent(
    "MSG-003",
    "no object has the same key twice",
    "#messages",
    severity=Severity.SHOULD,
    on_routine="send",
)
def keys_are_unique(check: Check, step: Step) -> None:
    """The members of each JSON object have different names.

    When a key appears twice, the parser decides which value counts. A proxy and a server can then
    read two different messages from the same bytes, which is a way around security checks. RFC 8259
    says SHOULD.

    Fix: Build messages with a JSON encoder from a map, so that each key appears once.
    """
    message = step.message
    if step.in_batch or message.value is ABSENT:
        return
    check.saw(step)
    repeated = duplicate_keys(message.raw, message.value)
    if repeated:
        told = f"the {step.sender} sent the key {repeated[0]!r} twice in one object"
        check.violated(step, told, "each key once", actual=", ".join(repeated[:5]))


@_message_rule(
    "MSG-004", "a request id is a string or an integer", "#requests", listens=(Kind.REQUEST,)
)
def request_ids_are_strings_or_integers(check: Check, step: Step) -> None:
    """The id of a request is a string or an integer, and never null.

    Responses are matched by id alone. In JSON-RPC, null stands for "unknown", and not every peer
    preserves a fraction or an object. 2.0 is the integer 2. An integer beyond 2^53 is legal, but it
    changes in peers that read numbers as doubles.

    Fix: Give each request an integer from a counter, or a string, as its id.
    """
    identifier = step.id
    check.saw(step)
    if not is_request_id(identifier):
        told = f"the {step.sender} sent {step.method!r} with an id of type {json_type(identifier)}"
        check.violated(step, told, "a string or an integer", actual=repr(identifier), pointer="/id")


@_whatever_was_sent(
    "MSG-010",
    "an error for an unreadable request omits the id",
    "#responses",
    severity=Severity.SHOULD,
    window=SINCE_NOVEMBER_2025,
    listens=(Kind.ERROR,),
)
def errors_without_id_leave_it_out(check: Check, step: Step) -> None:
    """If the id of a request could not be read, the error has no `id` member; null does not count.

    The MCP schema does not allow null there, while JSON-RPC 2.0 requires it and real servers send
    it. The rule is therefore a warning, and clients should accept both.

    Fix: Omit `id` from an error response when you could not read the id of the request.
    """
    if step.id is None:
        told = f"the {step.sender} sent an error with id null"
        check.violated(step, told, "no id member", pointer="/id")
    elif step.id is ABSENT:
        check.saw(step)


@_message_rule(
    "MSG-011",
    "messages are not batched",
    "basic/transports",
    window=SINCE_JUNE_2025,
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.BATCH),
)
def messages_are_not_batched(check: Check, step: Step) -> None:
    """From 2025-06-18 on, a line or body holds one message, not an array of messages.

    Batches exist in 2025-03-26 only. A peer of a later revision need not understand them.

    Fix: Send each message on its own line or in its own POST.
    """
    if step.in_batch:
        return
    check.saw(step)
    if step.kind is Kind.BATCH:
        told = f"the {step.sender} sent a batch of {len(step.message.items)} messages"
        check.violated(step, told, "one message")


@_whatever_was_sent(
    "MSG-012",
    "a result is an object",
    "#responses",
    listens=(Kind.RESULT,),
    yields_to={"MSG-008": "message"},
    reports="/result",
)
def results_are_objects(check: Check, step: Step) -> None:
    """`result` is a JSON object. An empty result is `{}`.

    JSON-RPC allows any value, but MCP does not: `_meta` and later additions need a place.

    Fix: Wrap the value in an object, and return `{}` when there is nothing to return.
    """
    check.saw(step)
    if not isinstance(step.result, dict):
        told = f"the {step.sender} answered {step.method!r} with {a_json_type(step.result)}"
        check.violated(step, told, "an object", pointer="/result")


_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY = re.compile(
    rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)


def is_meta_key(key: str) -> bool:
    """An optional prefix of dotted labels with a slash, and a name."""
    return _META_KEY.fullmatch(key) is not None


@_whatever_was_sent(
    "MSG-016",
    "the keys of _meta follow the grammar",
    "#_meta",
    window=SINCE_JUNE_2025,
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT),
    on_routine="send",
)
def meta_keys_follow_the_grammar(check: Check, step: Step) -> None:
    """A key of `_meta` is a name, optionally after a prefix of dotted labels and a slash.

    Labels begin with a letter. Labels and names end with a letter or digit. The grammar keeps the
    keys of the protocol and other keys apart. The rule checks params, results and the items of
    lists.

    Fix: Name keys like `com.example/key`, with letters or digits at both ends of each part.
    """
    if b'"_meta"' not in step.message.raw and not step.in_batch:
        return  # few messages have one
    holder = step.result if step.kind is Kind.RESULT else step.params
    for pointer, meta in _metas(holder):
        check.saw(step)
        for key in meta if isinstance(meta, dict) else ():
            if not is_meta_key(key):
                told = f"the {step.sender} sent the invalid key {key!r} in _meta"
                check.violated(step, told, "[prefix.labels/]name", actual=key, pointer=pointer)


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


@_message_rule(
    "MSG-017",
    "a notification has no id",
    "#notifications",
    listens=(Kind.REQUEST, Kind.NOTIFICATION),
    on_routine="skip",
)
def notifications_have_no_id(check: Check, step: Step) -> None:
    """A message whose method begins with `notifications/` has no `id` member.

    With an id, the message is a request. The receiver then owes a response that nobody waits for.

    Fix: Remove `id` from notifications, or send them with your library's notification function
    instead of its request function.
    """
    if step.kind is Kind.NOTIFICATION:
        check.saw(step)
    elif step.method.startswith("notifications/"):
        told = f"the {step.sender} sent the notification {step.method!r} with an id"
        check.violated(step, told, "no id member", actual=shown_id(step.id), pointer="/id")


@_error_rule("MSG-013", "error codes are allowed by the revision")
def error_codes_are_allowed(check: Check, step: Step) -> None:
    """From 2026-07-28 on, -32020 to -32099 is reserved, and only three of these codes are defined.

    -32020 means a header mismatch, -32021 a missing client capability, -32022 an unsupported
    version. -32002 (resource not found) and -32042 (URL elicitation required) of earlier revisions
    are no longer used. A later revision may give any other code in this range a meaning.

    Fix: Move your own codes out of -32020 to -32099, and stop sending -32002 and -32042.
    """
    code = step.error_code
    if code is None:
        return
    check.saw(step)
    if code == -32002 or (-32099 <= code <= -32020 and code not in STATELESS_CODES):
        fault = "is no longer used" if code in {-32002, -32042} else "is reserved"
        told = f"the {step.sender} sent error code {code}, which {fault} in {step.revision}"
        expected = "a defined code, or one outside the reserved range"
        check.violated(step, told, expected, actual=str(code), pointer="/error/code")


@_error_rule(
    "MSG-014", "the old implementation-defined codes are not used", severity=Severity.SHOULD
)
def old_codes_are_avoided(check: Check, step: Step) -> None:
    """New code does not use -32000 to -32019.

    Implementations gave these codes different meanings, so a receiver cannot rely on any of them.
    -32001, -32003 and -32004 were in the release candidate of 2026-07-28: a peer that sends them
    was built to that draft. MSG-013 judges -32002.

    Fix: Use a standard code such as -32602 or -32603, or move your own codes out of -32000 to
    -32019.
    """
    code = step.error_code
    if code is None or code == -32002:
        return
    check.saw(step)
    if -32019 <= code <= -32000:
        told = f"the {step.sender} sent error code {code}, which has no agreed meaning"
        expected = "a standard code, or one outside -32000 to -32019"
        check.violated(step, told, expected, actual=str(code), pointer="/error/code")


_DATA_OF: dict[int | None, dict[str, type]] = {
    -32021: {"requiredCapabilities": dict},
    -32022: {"supported": list, "requested": str},
}


def _lacks_data(code: int, members: str) -> WrongShape:
    return WrongShape(
        Kind.ERROR,
        spelled_out(f"/error/data /error/data/{{{members}}}"),
        when=lambda step, parts: member_at(step.error, "code") == code,
        window=STATELESS_ERA,
    )


@_error_rule(
    "MSG-015",
    "defined error codes carry their data",
    side=Side.SERVER,
    sender="server",
    reports_shapes=(
        _lacks_data(-32021, "requiredCapabilities"),
        _lacks_data(-32022, "supported,requested"),
    ),
)
def defined_codes_carry_their_data(check: Check, step: Step) -> None:
    """-32021 carries `requiredCapabilities`; -32022 carries `supported` and `requested`.

    The data tells a client which version or capability to retry with. Without it, the client cannot
    recover.

    Fix: Fill `error.data`: `requiredCapabilities` (an object) for -32021, `supported` (an array)
    and `requested` (a string) for -32022.
    """
    code = step.error_code
    if code not in _DATA_OF:
        return
    check.saw(step)
    for name, kind in _DATA_OF[code].items():
        if not isinstance(member_at(step.error, "data", name), kind):
            told = f"the server sent error {code} without a valid data.{name}"
            check.violated(step, told, pointer="/error/data")
            break
