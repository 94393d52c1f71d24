"""MSG-005 to MSG-009: ids, and which message answers which."""

from __future__ import annotations

from typing import Any

from mcptest.model.capture import FORCED
from mcptest.model.message import ABSENT, Kind, json_type
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.session import Session, Step


def shown_id(identifier: Any) -> str:
    return "absent" if identifier is ABSENT else f"{identifier!r} ({json_type(identifier)})"


@session_rule(
    "MSG-005",
    "request ids are not reused",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#requests",
    listens=(Kind.REQUEST,),
    on_routine="count",
)
def request_ids_are_not_reused(check: Check) -> Watching:
    """A sender gives each request an id of its own.

    With the handshake an id is used once in a session, which begins with `initialize`: another
    session, connection or process may use it again. In the stateless era it must only differ from
    those that are still in flight; over HTTP a request with the same id on another stream is taken
    for one of another client. A reused id makes a late answer look like the answer to another
    request.
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
    on_routine="count",
)
def responses_answer_requests(check: Check) -> Watching:
    """A response carries the id of a request that the other side made, in the same JSON type.

    1 and "1" are two ids; 1 and 1.0 are one, as JSON has a single type of number. A response that
    matches nothing leaves its request unanswered, and the caller waits until it gives up.

    An error for a request whose id could not be read has no id, or null, and is not judged here. An
    id that was made up for it, like "server-error", is the id of nothing: JSON-RPC 2.0 asks for the
    id of the request, or null. An error with the id of a message that is no request is an answer to
    that message.
    """
    while step := (yield):
        if step.kind is Kind.ERROR and step.id in (ABSENT, None):
            continue
        check.saw(step)
        if step.mismatch is None or step.mismatch.name == "AGAIN":
            continue
        check.violated(
            step,
            f"a response with id {shown_id(step.id)}: {step.mismatch.value}",
            expected="the id of a request that waits for its answer, in the same type",
            actual=shown_id(step.id),
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
    on_routine="count",
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
                f"a second response with id {shown_id(step.id)}",
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
    on_routine="skip",
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
    return stream.posted.kind is Kind.NOTIFICATION and not stream.was_refused


def _posted_method(step: Step) -> str:
    return step.stream.posted.method if step.stream and step.stream.posted else ""


@session_rule(
    "MSG-009",
    "every request is answered",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#responses",
    listens=(Kind.RESULT, Kind.ERROR),
    on_routine="count",
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
            if request.method == "subscriptions/listen" or _was_dropped(request, session):
                continue
            why = _why_forgotten(request, sender, session)
            if why:
                check.violated(
                    request,
                    f"{request.method!r} with id {shown_id(request.id)} got no response{why}",
                    expected="a response to each request",
                )
            else:
                check.inconclusive("the capture ends while requests are waiting")


def _was_dropped(request: Step, session: Session) -> bool:
    """Cancelled, and not because the client had waited in vain."""
    return request.cancelled is not None and session.gave_up is None


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
