"""MSG: the messages themselves, by JSON and JSON-RPC 2.0 and what MCP adds to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from mcptest.core.capture import FORCED
from mcptest.core.message import ABSENT, Flaw, Kind, json_type
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
from mcptest.rules.session import Session, Step
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
    """A sender gives each request an id of its own.

    With the handshake an id is used once in a session, which begins with `initialize`: another
    session, connection or process may use it again. In the stateless era it must only differ from
    those that are still in flight; over HTTP a request with the same id on another stream is taken
    for one of another client. A reused id makes a late answer look like the answer to another
    request.
    """
    if type(step.id) not in {int, str}:
        return
    check.saw(step)
    if step.id_was_waiting or (step.id_was_used and not step.stateless):
        when = "is still waiting for its answer" if step.id_was_waiting else "was used before"
        told = f"id {step.id!r} of {step.method!r} {when}"
        check.violated(step, told, "an id that was not used", pointer="/id")


@_whatever_was_sent(
    "MSG-006",
    "every response answers a request",
    "#responses",
    listens=ANSWERS,
    yields_to={"JSONRPC-004": "id", "MSG-008": "message"},
)
def responses_answer_requests(check: Check, step: Step) -> None:
    """A response carries the id of a request that the other side made, in the same JSON type.

    1 and "1" are two ids; 1 and 1.0 are one, as JSON has a single type of number. A response that
    matches nothing leaves its request unanswered, and the caller waits until it gives up.

    An error for a request whose id could not be read has no id, or null, and is not judged here. An
    id that was made up for it, like "server-error", is the id of nothing: JSON-RPC 2.0 asks for the
    id of the request, or null. An error with the id of a message that is no request is an answer to
    that message.
    """
    if step.kind is Kind.ERROR and step.id in (ABSENT, None):
        return
    check.saw(step)
    if step.mismatch is None or step.mismatch.name == "AGAIN":
        return
    told = f"a response with id {shown_id(step.id)}: {step.mismatch.value}"
    expected = "the id of a request that waits for its answer, in the same type"
    check.violated(step, told, expected, actual=shown_id(step.id), pointer="/id")


@_message_rule("MSG-007", "a request is answered once", "#responses", listens=ANSWERS)
def requests_are_answered_once(check: Check, step: Step) -> None:
    """There is one response to each request.

    A second one is at best ignored. At worst it is taken for the answer to a later request.
    """
    if step.request is not None:
        check.saw(step)
    elif step.mismatch is not None and step.mismatch.name == "AGAIN":
        told = f"a second response with id {shown_id(step.id)}"
        check.violated(step, told, "one response to each request", pointer="/id")


@_message_rule(
    "MSG-008",
    "a notification is not answered",
    "#notifications",
    listens=(Kind.NOTIFICATION, *ANSWERS),
    on_routine="skip",
    shown_by="silence",
)
def notifications_are_not_answered(check: Check) -> Watching:
    """Nothing answers a notification, not even an unknown one.

    A notification has no id, so its sender has no place to put an answer. Seen here are results
    without an id, and answers that arrive on the HTTP exchange (or in the entry of a public
    capture) that carried a notification. An HTTP error status with an error body is allowed: that
    is how HTTP refuses one. A result without an id on the exchange of a request answers that one;
    elsewhere, while a request stays unanswered, it may answer either, and the rule is inconclusive.
    That its id is missing is what MSG-001 and MSG-006 tell.
    """
    without_id: list[Step] = []
    while step := (yield):
        stream = step.stream if step.sender == "server" else None
        carried = stream.posted if stream else None
        is_bare = step.kind is Kind.RESULT and step.id in (ABSENT, None)
        if step.kind is Kind.NOTIFICATION:
            check.saw(step)
        elif stream is None or carried is None:
            without_id += [step] if is_bare and len(without_id) < _MOST_WITHOUT_ID else []
        elif carried.kind is Kind.NOTIFICATION and (is_bare or not stream.was_refused):
            message = f"an answer to the notification {carried.method!r}"
            check.violated(step, message, "no answer to a notification")
    forgotten = sum(  # requests without an answer that nobody cancelled
        request.cancelled is None and request.method != "subscriptions/listen"
        for in_flight in check.session.in_flight.values()
        for request in in_flight.waiting.values()
    )
    if len(without_id) > forgotten:
        for step in without_id:
            check.violated(step, "a result without an id", "no answer to a notification")
    elif without_id:
        check.doubtful("a result without an id answers a notification, or a request that waits")


_MOST_WITHOUT_ID = 100
"""A server may send as many of them as it likes; they are kept until the session is over."""


@_message_rule(
    "MSG-009",
    "every request is answered",
    "#responses",
    listens=ANSWERS,
    shown_by="missing answer",
    yields_to={"MSG-006": "id", "JSONRPC-004": "id"},
    absorbs="silence",
)
def every_request_is_answered(check: Check) -> Watching:
    """Each request gets a response, unless it was cancelled or the session ended first.

    A request that is still open when later ones have been answered was forgotten. So was one that
    the server left behind by exiting, or that the client waited for in vain. Other requests at the
    very end of a capture, and all open ones of a capture that was cut short, can't be judged; nor
    can those whose answer was cut off when the server was ended by a signal or the connection was
    closed on it. A subscription stays open by design.
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
                told = f"{request.method!r} with id {shown_id(request.id)} got no response{why}"
                check.violated(request, told, "a response to each request")
            else:
                check.inconclusive("the capture ends while requests are waiting")


def _why_forgotten(request: Step, sender: str, session: Session) -> str:
    """What shows that no answer would have come; empty when nothing does."""
    if request.place in session.cut_off:
        return ""
    if sender == "client" and session.exited is not None and not session.exited.after:
        return ": the server exited by itself"
    if sender == "client" and session.gave_up is not None:
        return f": {session.gave_up.detail}"
    was_ended = session.exited is not None and session.exited.after in FORCED
    if session.ends_whole and not was_ended and request.place < session.last_answered[sender]:
        return ", though later ones were answered"
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

    A request has a string `method` and an id, a notification a `method` and no id, a response the
    id of its request and either `result` or `error`, never both. `params` is an object or array.

    A peer may drop anything else without a word, and the session hangs. Bytes that are no JSON at
    all are judged by MSG-002.
    """
    value = step.message.value
    if value is ABSENT:
        return
    check.saw(step)
    if step.kind is Kind.BATCH:
        if not value:
            check.violated(step, "an empty batch", "at least one message")
        return
    for problem in envelope_problems(value):
        if problem.flaw not in _JUDGED_ELSEWHERE:
            check.violated(step, problem.reason, pointer=problem.pointer)


@_whatever_was_sent(
    "MSG-002",
    "every message is JSON text in UTF-8",
    "basic/transports",
    yields_to={"STDIO-001": "message"},
)
def every_message_is_json_text(check: Check, step: Step) -> None:
    """What is sent parses as JSON: UTF-8, no byte order mark, no NaN or Infinity, sane numbers.

    JSON libraries differ in what they forgive. Text that one of them reads and another refuses
    makes a session work with one peer and hang with the next. Nesting deeper than 512 levels is
    reported too: common parsers give up there.

    To fix it, use a strict encoder and write numbers that are not finite as null or strings.
    """
    problems = step.message.problems
    if step.in_batch or any(one.flaw is Flaw.TOO_MANY_VALUES for one in problems):
        return  # how many values we read is a limit of ours
    check.saw(step)
    for problem in problems:
        reason = problem.reason
        if problem.flaw is Flaw.NOT_JSON:
            known = diagnose((step.message.raw,), lines=step.stream is None)
            reason = f"{known}: {reason}" if known else reason
        check.violated(step, reason, "JSON text", pointer=problem.pointer)


@_whatever_was_sent(
    "MSG-003",
    "no object has the same key twice",
    "#messages",
    severity=Severity.SHOULD,
    on_routine="send",
)
def keys_are_unique(check: Check, step: Step) -> None:
    """The members of each JSON object have different names.

    Which of two equal keys counts is up to the parser, so a proxy and a server can read two
    different messages from the same bytes: a way around checks. RFC 8259 says SHOULD.
    """
    message = step.message
    if step.in_batch or message.value is ABSENT:
        return
    check.saw(step)
    repeated = duplicate_keys(message.raw, message.value)
    if repeated:
        told = f"the key {repeated[0]!r} occurs twice in one object"
        check.violated(step, told, "each key once", actual=", ".join(repeated[:5]))


@_message_rule(
    "MSG-004", "a request id is a string or an integer", "#requests", listens=(Kind.REQUEST,)
)
def request_ids_are_strings_or_integers(check: Check, step: Step) -> None:
    """The id of a request is a string or an integer, and never null.

    An answer is matched by its id alone. null stands for "unknown" in JSON-RPC, and a fraction or
    an object does not survive every peer. 2.0 is the integer 2. An integer beyond 2^53 is legal
    but changes in peers that read numbers as doubles.
    """
    identifier = step.id
    check.saw(step)
    if not is_request_id(identifier):
        told = f"the id of {step.method!r} is {json_type(identifier)}"
        check.violated(step, told, "a string or an integer", actual=repr(identifier), pointer="/id")


@_whatever_was_sent(
    "MSG-010",
    "an error for an unreadable request leaves out the id",
    "#responses",
    severity=Severity.SHOULD,
    window=SINCE_NOVEMBER_2025,
    listens=(Kind.ERROR,),
)
def errors_without_id_leave_it_out(check: Check, step: Step) -> None:
    """When the id of a request could not be read, the error has no `id` member; null is not one.

    The schema of MCP does not allow null there, while JSON-RPC 2.0 asks for it and real servers
    send it. So this is a warning: clients do well to accept both.
    """
    if step.id is None:
        check.violated(step, "the error has id null", "no id member", pointer="/id")
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
    """From 2025-06-18 on a line or body holds one message, not an array of them.

    Batches existed in 2025-03-26 only. A peer of a later revision need not understand them.
    """
    if step.in_batch:
        return
    check.saw(step)
    if step.kind is Kind.BATCH:
        check.violated(step, f"a batch of {len(step.message.items)} messages", "one message")


@_whatever_was_sent(
    "MSG-012",
    "a result is an object",
    "#responses",
    listens=(Kind.RESULT,),
    yields_to={"MSG-008": "message"},
    reports="/result",
)
def results_are_objects(check: Check, step: Step) -> None:
    """`result` is a JSON object, also when there is nothing to say: `{}`.

    JSON-RPC allows any value, MCP does not: `_meta` and later additions need a place.
    """
    check.saw(step)
    if not isinstance(step.result, dict):
        told = f"the result of {step.method!r} is {json_type(step.result)}"
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
    "the keys of _meta follow their grammar",
    "#_meta",
    window=SINCE_JUNE_2025,
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT),
    on_routine="send",
)
def meta_keys_follow_the_grammar(check: Check, step: Step) -> None:
    """A key of `_meta` is a name, with a prefix of dotted labels and a slash before it if any.

    Labels begin with a letter, labels and names end with a letter or digit. The grammar keeps the
    keys of the protocol and those of others apart. Looked at are params, results and the items of
    lists.
    """
    if b'"_meta"' not in step.message.raw and not step.in_batch:
        return  # few messages have one
    holder = step.result if step.kind is Kind.RESULT else step.params
    for pointer, meta in _metas(holder):
        check.saw(step)
        for key in meta if isinstance(meta, dict) else ():
            if not is_meta_key(key):
                told = f"the key {key!r} of _meta"
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
    """A message whose method begins with `notifications/` carries no `id` member.

    With an id it is a request by its shape, and the receiver owes an answer that nobody waits for.
    """
    if step.kind is Kind.NOTIFICATION:
        check.saw(step)
    elif step.method.startswith("notifications/"):
        told = f"{step.method!r} with an id"
        check.violated(step, told, "no id member", actual=shown_id(step.id), pointer="/id")


@_error_rule("MSG-013", "error codes are those the revision allows")
def error_codes_are_allowed(check: Check, step: Step) -> None:
    """From 2026-07-28 on -32020 to -32099 is reserved: only three of these codes have a meaning.

    -32020 is a header that does not match, -32021 a missing client capability, -32022 an
    unsupported version. -32002 (resource not found) and -32042 (URL elicitation required) of
    earlier revisions are not sent any more. An unknown code there will mean something else in a
    later revision.
    """
    code = step.error_code
    if code is None:
        return
    check.saw(step)
    if code == -32002 or (-32099 <= code <= -32020 and code not in STATELESS_CODES):
        retired = " any more" if code in {-32002, -32042} else ""
        told = f"code {code} is not used{retired} in {step.revision}"
        expected = "a code outside the reserved range, or a defined one"
        check.violated(step, told, expected, actual=str(code), pointer="/error/code")


@_error_rule(
    "MSG-014", "the old implementation-defined codes are not used", severity=Severity.SHOULD
)
def old_codes_are_avoided(check: Check, step: Step) -> None:
    """New code stays away from -32000 to -32019.

    Implementations gave these codes meanings of their own, so that a receiver can't rely on any.
    Of these, -32001, -32003 and -32004 were in the release candidate of 2026-07-28: a peer that
    sends them was built to that draft. -32002 is judged by MSG-013.
    """
    code = step.error_code
    if code is None or code == -32002:
        return
    check.saw(step)
    if -32019 <= code <= -32000:
        told = f"code {code} is in the range that has no agreed meaning"
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
    "the defined error codes carry their data",
    side=Side.SERVER,
    sender="server",
    reports_shapes=(
        _lacks_data(-32021, "requiredCapabilities"),
        _lacks_data(-32022, "supported,requested"),
    ),
)
def defined_codes_carry_their_data(check: Check, step: Step) -> None:
    """-32021 names the `requiredCapabilities`, -32022 the `supported` versions and the `requested`.

    A client uses the data to try again with a version or a capability that works; without it the
    error is a dead end.
    """
    code = step.error_code
    if code not in _DATA_OF:
        return
    check.saw(step)
    for name, kind in _DATA_OF[code].items():
        if not isinstance(member_at(step.error, "data", name), kind):
            check.violated(step, f"{code} without data.{name}", pointer="/error/data")
            break
