"""PROG, CANCEL and PAGE: what is said about a request while it runs, and lists page by page."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import ABSENT, Kind, a_json_type, id_key, json_type
from mcptest.core.revision import STATELESS_ERA, Revision
from mcptest.core.verdict import Severity, Side
from mcptest.rules.declaration import (
    ANSWERS,
    MESSAGES,
    Check,
    Watching,
    WrongShape,
    server_rule,
    session_rule,
)
from mcptest.rules.session import Step, other_side
from mcptest.session.pages import LIST_MEMBERS
from mcptest.wire.correlation import IdSet

_PROGRESS = "notifications/progress"
_CANCELLED = "notifications/cancelled"
_TOKEN = "/params/_meta/progressToken"


def _token(request: Step | None) -> Any:
    """The progress token that a request asks with, or ABSENT."""
    return request.meta.get("progressToken", ABSENT) if request is not None else ABSENT


_both_rule = partial(session_rule, side=Side.BOTH, listens=(Kind.NOTIFICATION,))
_progress_rule = partial(
    _both_rule, category="progress", page="basic/utilities/progress#behavior-requirements"
)
_cancellation_rule = partial(
    _both_rule, category="cancellation", page="basic/utilities/cancellation#behavior-requirements"
)


@_progress_rule(
    "PROG-001",
    "progress increases",
    listens=(Kind.NOTIFICATION, *ANSWERS),
    reports_shapes=(WrongShape(Kind.NOTIFICATION, ("/params", "/params/progress"), (_PROGRESS,)),),
)
def progress_increases(check: Check) -> Watching:
    """Each progress notification of a request has a larger `progress` than the one before.

    A progress bar that stands still or goes back tells a person that something is wrong. A client
    that extends its timeout on progress may give up. After the response, the token is free again.

    Fix: Send a `progress` number that is larger than the last one for the same token, and send
    nothing when there is no progress.
    """
    latest: dict[Any, float] = {}
    while step := (yield):
        if step.kind is not Kind.NOTIFICATION:
            if latest:
                latest.pop((step.sender, id_key(_token(step.request))), None)
            continue
        if step.method != _PROGRESS:
            continue
        check.saw(step)
        value = step.params.get("progress")
        if isinstance(value, bool) or not isinstance(value, int | float):
            told = f"the {step.sender} sent a progress that is {a_json_type(value)}"
            check.violated(step, told, "a number")
            continue
        key = (step.sender, id_key(step.params.get("progressToken")))
        if key in latest and value <= latest[key]:
            told = f"the {step.sender} sent progress that does not increase"
            expected = f"more than {latest[key]}"
            check.violated(step, told, expected, actual=str(value), pointer="/params/progress")
        latest[key] = value


@_progress_rule(
    "PROG-002",
    "progress names a request that asked for it",
    listens=(Kind.NOTIFICATION, Kind.REQUEST),
    reports="/params/progressToken",
)
def progress_was_asked_for(check: Check) -> Watching:
    """The `progressToken` of a notification comes from a request of the other side.

    A client cannot show progress for an unknown token. PROG-003 judges progress for a request that
    was already answered.

    Fix: Copy `progressToken` from the request's `_meta` unchanged, and send no progress for
    requests without a token.
    """
    asked = {"client": IdSet(), "server": IdSet()}
    while step := (yield):
        if step.kind is Kind.REQUEST:
            token = _token(step)
            if token is not ABSENT:
                asked[other_side(step.sender)].add(token)
        elif step.method == _PROGRESS:
            check.saw(step)
            token = step.params.get("progressToken", ABSENT)
            if token not in asked[step.sender]:
                told = f"the {step.sender} sent progress for token {token!r}, which no request has"
                check.violated(
                    step, told, "the progressToken of a request", pointer="/params/progressToken"
                )


@_progress_rule("PROG-003", "progress stops with the response", listens=MESSAGES)
def progress_stops_with_the_response(check: Check) -> Watching:
    """No progress is sent for a request after its response.

    By then, the receiver has dropped the token or uses it again. A request that became a task keeps
    its token until the task ends.

    Fix: Stop progress reporting before you send the response. Look for a background timer or thread
    that outlives the handler.
    """
    open_tokens: set[Any] = set()
    finished = {"client": IdSet(), "server": IdSet()}
    while step := (yield):
        if step.kind is Kind.NOTIFICATION:
            token = step.params.get("progressToken", ABSENT)
            if step.method != _PROGRESS:
                continue
            if (step.sender, id_key(token)) in open_tokens:
                check.saw(step)
            elif token in finished[step.sender]:
                told = f"the {step.sender} sent progress for token {token!r} after the response"
                check.violated(step, told, "no progress after the response")
            continue
        request = step if step.kind is Kind.REQUEST else step.request
        if request is None or "progressToken" not in request.meta:
            continue
        token = request.meta["progressToken"]
        key = (other_side(request.sender), id_key(token))
        if step is request or _became_task(step.result):
            open_tokens.add(key)
        else:
            open_tokens.discard(key)
            finished[key[0]].add(token)


def _became_task(result: Any) -> bool:
    """A token lives on in a task (2025-11-25, or the tasks extension)."""
    return type(result) is dict and ("task" in result or result.get("resultType") == "task")


@_progress_rule(
    "PROG-004",
    "progress tokens are strings or integers, unique among open requests",
    listens=(Kind.REQUEST, *ANSWERS),
    reports=_TOKEN,
)
def progress_tokens_are_unique(check: Check) -> Watching:
    """A `progressToken` is a string or an integer that no other open request of the sender uses.

    If two requests share a token, nobody can tell whose progress it is.

    Fix: Give each request its own token. The request id is a good choice.
    """
    open_tokens: dict[Any, Any] = {}
    while step := (yield):
        if step.kind is not Kind.REQUEST:
            token = _token(step.request)
            if step.request is not None and token is not ABSENT:
                open_tokens.pop((step.request.sender, id_key(token)), None)
            continue
        token = _token(step)
        if token is ABSENT:
            continue
        check.saw(step)
        key = (step.sender, id_key(token))
        if type(token) is not int and type(token) is not str:
            told = f"the {step.sender} sent a progressToken of type {json_type(token)}"
            expected = "a string or an integer"
            check.violated(step, told, expected, actual=repr(token), pointer=_TOKEN)
        elif key in open_tokens:
            user = f"the open request with id {open_tokens[key]!r}"
            told = f"the {step.sender} reused progressToken {token!r} of {user}"
            check.violated(step, told, "a separate token for each open request", pointer=_TOKEN)
        open_tokens[key] = step.id


@_cancellation_rule(
    "CANCEL-001",
    "a cancellation names a request of its sender",
    methods=(_CANCELLED,),
    probe="cancel_slow_call",
    reports="/params/requestId",
)
def cancellations_name_own_requests(check: Check, step: Step) -> None:
    """`notifications/cancelled` has the id of a request that the same side sent.

    A cancellation may cross with the response, because its sender cannot know about it. A
    cancellation with an id that was never used, or with another JSON type, cancels nothing. In
    2025-11-25, the id may be omitted.

    Fix: Send the id of your own open request as `requestId`, with the same JSON type.
    """
    identifier = step.params.get("requestId", ABSENT)
    if identifier is ABSENT and step.revision is Revision.V2025_11_25:
        return
    check.saw(step)
    if identifier not in check.session.in_flight[step.sender].seen:
        told = f"the {step.sender} cancelled request {identifier!r}, which it never sent"
        expected = "the id of an open request from the same side"
        check.violated(step, told, expected, pointer="/params/requestId")


RACE = 0.05
"""Seconds in which an answer may already have been on its way."""


@_cancellation_rule(
    "CANCEL-002",
    "a cancelled request gets no response",
    severity=Severity.SHOULD,
    listens=(Kind.NOTIFICATION, *ANSWERS),
    shown_by="silence",
    probe="cancel_slow_call",
)
def cancelled_requests_are_not_answered(check: Check) -> Watching:
    """The receiver of a cancellation stops and sends no response to the cancelled request.

    The sender ignores the response anyway. A response within 50 ms of the cancellation may have
    been on its way, and on a busy machine so may a later one. The rule therefore fails only if the
    receiver has answered a request that was sent after the cancellation: then it had read the
    cancellation too. In all other cases, and without timestamps (in the public form), a response
    proves nothing in either direction.

    Fix: Stop the work when `notifications/cancelled` arrives, and drop the response of that
    request.
    """
    read_until: dict[str, float] = {}  # by who answers: when the latest that was answered was asked
    unanswered: dict[int, Step] = {}
    while step := (yield):
        if step.kind is Kind.NOTIFICATION:
            if step.method == "notifications/cancelled" and step.request is not None:
                unanswered[step.place] = step
            continue
        if step.request is None:
            continue
        cancelled = step.request.cancelled
        if cancelled is None:
            read_until[step.sender] = max(step.request.t, read_until.get(step.sender, 0.0))
            continue
        unanswered.pop(cancelled.place, None)
        knew = read_until.get(step.sender, 0.0) > cancelled.t
        if check.session.form == "full" and knew and step.t - cancelled.t > RACE:
            late = f"{step.t - cancelled.t:.3f}s after its cancellation"
            told = f"the {step.sender} answered a cancelled request {late}"
            check.violated(step, told, "no response")
        else:
            check.inconclusive("the response may have crossed with the cancellation")
    for cancelled in unanswered.values():
        check.saw(cancelled)


@_cancellation_rule(
    "CANCEL-003",
    "the server cancels only subscriptions",
    side=Side.SERVER,
    window=STATELESS_ERA,
    methods=(_CANCELLED,),
    sender="server",
)
def server_cancels_subscriptions_only(check: Check, step: Step) -> None:
    """In the stateless era, a server cancels only `subscriptions/listen` requests.

    It sends no requests of its own there, and only the client cancels the client's requests.

    Fix: Send `notifications/cancelled` only with the id of an open `subscriptions/listen`. Return
    an error to end any other request.
    """
    check.saw(step)
    identifier = step.params.get("requestId", ABSENT)
    request = check.session.in_flight["client"].find(identifier)
    if request is None or request.method != "subscriptions/listen":
        what = f"a {request.method} request" if request else f"the unknown request {identifier!r}"
        told = f"the server cancelled {what}"
        check.violated(
            step, told, "the id of an open subscriptions/listen", pointer="/params/requestId"
        )


_pagination_rule = partial(
    server_rule,
    category="pagination",
    page="server/utilities/pagination",
    listens=(Kind.RESULT,),
    methods=tuple(LIST_MEMBERS),
)


@_pagination_rule(
    "PAGE-001",
    "a cursor is sent back unchanged",
    side=Side.CLIENT,
    listens=(Kind.REQUEST, Kind.RESULT),
    sender="",
    reports="/params/cursor",
)
def cursors_come_from_the_server(check: Check) -> Watching:
    """A client requests the next page with a cursor that the server returned for that list.

    Only the server knows what a cursor means. A client that parses, changes or invents cursors
    works until the server changes their format.

    Fix: Send `nextCursor` of the previous page back as `cursor`, unchanged, and only to the same
    list.
    """
    given: dict[str, set[str]] = {}
    while step := (yield):
        if step.kind is Kind.RESULT:
            cursor = step.in_result("nextCursor")
            known = given.setdefault(step.method, set())
            if isinstance(cursor, str) and len(known) < DEFAULT_LIMITS.items:
                known.add(cursor)
            continue
        cursor = step.params.get("cursor", ABSENT)
        if cursor is ABSENT or len(given.get(step.method, ())) >= DEFAULT_LIMITS.items:
            continue
        check.saw(step)
        if not isinstance(cursor, str) or cursor not in given.get(step.method, ()):
            told = f"the client sent cursor {cursor!r}, which {step.method} did not return"
            check.violated(step, told, "nextCursor of an earlier result", pointer="/params/cursor")


@_pagination_rule("PAGE-002", "nextCursor is a string", reports="/result/nextCursor")
def next_cursors_are_strings(check: Check, step: Step) -> None:
    """`nextCursor` is a string, or absent on the last page. It is never null.

    Clients check whether the member is present. With null, some clients request the page "null" and
    others stop.

    Fix: Omit `nextCursor` on the last page instead of sending null, and send it as a string on all
    others.
    """
    check.saw(step)
    cursor = step.in_result("nextCursor")
    if cursor is not ABSENT and not isinstance(cursor, str):
        told = f"the server returned a nextCursor of type {json_type(cursor)}"
        check.violated(step, told, "a string, or no nextCursor", pointer="/result/nextCursor")


@_pagination_rule("PAGE-003", "pagination ends", conversations="tour")
def paging_ends(check: Check) -> Watching:
    """On one walk through a list, no cursor appears twice.

    A server whose last page points to an earlier one keeps a client in a loop. A walk begins with a
    request without a cursor.

    Fix: Return a new `nextCursor` for each page, and omit it on the last page.
    """
    walks: dict[str, set[str]] = {}
    while step := (yield):
        used = step.in_request("cursor")
        if used is ABSENT:
            walks[step.method] = set()
        walk = walks.setdefault(step.method, set())
        if isinstance(used, str) and len(walk) < DEFAULT_LIMITS.items:
            walk.add(used)
        check.saw(step)
        cursor = step.in_result("nextCursor")
        if isinstance(cursor, str) and cursor in walk:
            told = f"the server returned nextCursor {cursor!r}, which leads back to an earlier page"
            check.violated(
                step, told, "a new cursor, or none on the last page", pointer="/result/nextCursor"
            )
        elif isinstance(cursor, str) and len(walk) + 1 == DEFAULT_LIMITS.pages:
            check.unchecked(f"{step.method} did not end after {DEFAULT_LIMITS.pages} pages")


@_pagination_rule(
    "PAGE-004",
    "all pages of a list have the same cacheScope",
    "server/utilities/caching",
    window=STATELESS_ERA,
)
def pages_share_their_scope(check: Check) -> Watching:
    """The `cacheScope` of a list is the same on every page.

    If a list is half public and half private, a cache shares part of it.

    Fix: Return the same `cacheScope` on every page of a list. Use `private` if any page is private.
    """
    scopes: dict[str, Any] = {}
    while step := (yield):
        scope = step.in_result("cacheScope")
        if step.in_request("cursor") is ABSENT:
            scopes[step.method] = scope
            continue
        check.saw(step)
        first = scopes.setdefault(step.method, scope)
        if scope != first:
            told = f"the server changed cacheScope to {scope!r} on a later page"
            check.violated(
                step, told, repr(first), actual=repr(scope), pointer="/result/cacheScope"
            )
