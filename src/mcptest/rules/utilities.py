"""PROG, CANCEL and PAGE: what is said about a request while it runs, and lists page by page."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import ABSENT, Kind, id_key, json_type
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
from mcptest.rules.session import Step
from mcptest.session.pages import LIST_MEMBERS
from mcptest.wire.correlation import IdSet

_PROGRESS = "notifications/progress"
_CANCELLED = "notifications/cancelled"
_TOKEN = "/params/_meta/progressToken"


def _token(request: Step | None) -> Any:
    """The progress token that a request asks with, or ABSENT."""
    return request.meta.get("progressToken", ABSENT) if request is not None else ABSENT


def _other(sender: str) -> str:
    return "server" if sender == "client" else "client"


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

    A bar that stands still or goes back tells a person that something is wrong, and clients that
    use progress to put off a timeout may give up. After the response the token is free again.
    """
    latest: dict[Any, float] = {}
    while step := (yield):
        if step.kind is not Kind.NOTIFICATION:
            latest.pop((step.sender, id_key(_token(step.request))), None)
            continue
        if step.method != _PROGRESS:
            continue
        check.saw(step)
        value = step.params.get("progress")
        if isinstance(value, bool) or not isinstance(value, int | float):
            check.violated(step, f"progress is {json_type(value)}", "a number")
            continue
        key = (step.sender, id_key(step.params.get("progressToken")))
        if key in latest and value <= latest[key]:
            told, expected = "progress does not increase", f"more than {latest[key]}"
            check.violated(step, told, expected, actual=str(value), pointer="/params/progress")
        latest[key] = value


@_progress_rule(
    "PROG-002",
    "progress names a request that asked for it",
    listens=(Kind.NOTIFICATION, Kind.REQUEST),
    reports="/params/progressToken",
)
def progress_was_asked_for(check: Check) -> Watching:
    """The `progressToken` of a notification was given in a request of the other side.

    Progress for an unknown token can't be shown anywhere. Progress for a request that was already
    answered is judged by PROG-003.
    """
    asked = {"client": IdSet(), "server": IdSet()}
    while step := (yield):
        if step.kind is Kind.REQUEST:
            token = _token(step)
            if token is not ABSENT:
                asked[_other(step.sender)].add(token)
        elif step.method == _PROGRESS:
            check.saw(step)
            token = step.params.get("progressToken", ABSENT)
            if token not in asked[step.sender]:
                told = f"progress for the token {token!r}, which no request gave"
                check.violated(
                    step, told, "the progressToken of a request", pointer="/params/progressToken"
                )


@_progress_rule("PROG-003", "progress stops with the response", listens=MESSAGES)
def progress_stops_with_the_response(check: Check) -> Watching:
    """No progress is sent for a request that has been answered.

    The receiver has dropped the token by then, or uses it again. A request that became a task
    keeps its token for the life of the task.
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
                told = f"progress for the token {token!r} after the response"
                check.violated(step, told, "no progress after the response")
            continue
        request = step if step.kind is Kind.REQUEST else step.request
        token = _token(request)
        if request is None or token is ABSENT:
            continue
        key = (_other(request.sender), id_key(token))
        # A token lives on in a task (2025-11-25, or the tasks extension).
        is_task = step.in_result("task") is not ABSENT or step.in_result("resultType") == "task"
        if step.kind is Kind.REQUEST or is_task:
            open_tokens.add(key)
        else:
            open_tokens.discard(key)
            finished[key[0]].add(token)


@_progress_rule(
    "PROG-004",
    "progress tokens are strings or integers, unique among open requests",
    listens=(Kind.REQUEST, *ANSWERS),
    reports=_TOKEN,
)
def progress_tokens_are_unique(check: Check) -> Watching:
    """A `progressToken` is a string or an integer that no other open request of the sender uses.

    With one token for two requests nobody can tell whose progress it is.
    """
    open_tokens: dict[Any, Any] = {}
    while step := (yield):
        if step.kind is not Kind.REQUEST:
            if step.request is not None:
                open_tokens.pop((step.request.sender, id_key(_token(step.request))), None)
            continue
        token = _token(step)
        if token is ABSENT:
            continue
        check.saw(step)
        key = (step.sender, id_key(token))
        if type(token) is not int and type(token) is not str:
            told, expected = f"progressToken is {json_type(token)}", "a string or an integer"
            check.violated(step, told, expected, actual=repr(token), pointer=_TOKEN)
        elif key in open_tokens:
            told = f"progressToken {token!r} is in use by the open request {open_tokens[key]!r}"
            check.violated(step, told, "a token of its own for each open request", pointer=_TOKEN)
        open_tokens[key] = step.id


@_cancellation_rule(
    "CANCEL-001",
    "a cancellation names a request of its sender",
    methods=(_CANCELLED,),
    probe="cancel_slow_call",
    reports="/params/requestId",
)
def cancellations_name_own_requests(check: Check, step: Step) -> None:
    """`notifications/cancelled` carries the id of a request that the same side made.

    A cancellation that crosses the response on its way is fine: its sender could not know. One
    for an id that was never used, or that is of another JSON type, cancels nothing. In 2025-11-25
    the id may be left out.
    """
    identifier = step.params.get("requestId", ABSENT)
    if identifier is ABSENT and step.revision is Revision.V2025_11_25:
        return
    check.saw(step)
    if identifier not in check.session.in_flight[step.sender].seen:
        told = f"requestId {identifier!r} is not the id of a request that the {step.sender} made"
        check.violated(
            step, told, "the id of an own request in flight", pointer="/params/requestId"
        )


RACE = 0.05
"""Seconds in which an answer may already have been on its way."""


@_cancellation_rule(
    "CANCEL-002",
    "a cancelled request is not answered",
    severity=Severity.SHOULD,
    listens=(Kind.NOTIFICATION, *ANSWERS),
    shown_by="silence",
    probe="cancel_slow_call",
)
def cancelled_requests_are_not_answered(check: Check) -> Watching:
    """The receiver of a cancellation stops, and sends no response to the cancelled request.

    The sender ignores it anyway. A response within 50 ms of the cancellation may have been on its
    way, and on a busy machine also a later one: it is held against a receiver that has answered
    something that was asked after the cancellation, and so has read that too. Otherwise, and
    without times (in the public form), a response proves nothing in either direction.
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
            told = f"a response {step.t - cancelled.t:.3f} s after the request was cancelled"
            check.violated(step, told, "no response")
        else:
            check.inconclusive("a response may have been on its way when its request was cancelled")
    for cancelled in unanswered.values():
        check.saw(cancelled)


@_cancellation_rule(
    "CANCEL-003",
    "the server cancels nothing but a subscription",
    side=Side.SERVER,
    window=STATELESS_ERA,
    methods=(_CANCELLED,),
    sender="server",
)
def server_cancels_subscriptions_only(check: Check, step: Step) -> None:
    """In the stateless era a server may end a `subscriptions/listen`, and cancels nothing else.

    It makes no requests of its own there, and the client's requests are the client's to cancel.
    """
    check.saw(step)
    identifier = step.params.get("requestId", ABSENT)
    request = check.session.in_flight["client"].find(identifier)
    if request is None or request.method != "subscriptions/listen":
        told = f"the server cancels {request.method if request else repr(identifier)}"
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
    """A client asks for the next page with a cursor that the server gave for that list.

    Cursors mean something to the server only. A client that parses, changes or makes them up
    works until the server changes how it writes them.
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
            told = f"the cursor {cursor!r} was not given by the server for {step.method}"
            check.violated(
                step, told, "a nextCursor of an earlier answer", pointer="/params/cursor"
            )


@_pagination_rule("PAGE-002", "nextCursor is a string", reports="/result/nextCursor")
def next_cursors_are_strings(check: Check, step: Step) -> None:
    """`nextCursor` is a string, or is left out on the last page. It is never null.

    Clients look whether the member is there. With null some of them ask for the page "null", and
    others stop.
    """
    check.saw(step)
    cursor = step.in_result("nextCursor")
    if cursor is not ABSENT and not isinstance(cursor, str):
        told = f"nextCursor is {json_type(cursor)}"
        check.violated(
            step, told, "a string, or no nextCursor at all", pointer="/result/nextCursor"
        )


@_pagination_rule("PAGE-003", "walking the pages comes to an end", conversations="tour")
def paging_ends(check: Check) -> Watching:
    """On one walk through a list no cursor comes back a second time.

    A server whose last page points to an earlier one keeps a client in a circle for ever. A walk
    begins with a request without a cursor.
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
            told = f"the nextCursor {cursor!r} leads back to a page of this walk"
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
    """The `cacheScope` of a list does not change from page to page.

    A list that is half public and half private would be shared by a cache in part.
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
            told = f"cacheScope changes to {scope!r} on a later page"
            check.violated(
                step, told, repr(first), actual=repr(scope), pointer="/result/cacheScope"
            )
