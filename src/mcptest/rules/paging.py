"""PAGE: cursors are the server's own, and walking from page to page comes to an end."""

from __future__ import annotations

from typing import Any

from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.message import ABSENT, Kind, json_type
from mcptest.model.revision import STATELESS_ERA
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.protocol import LISTS
from mcptest.rules.session import Step

_SPEC = "server/utilities/pagination"


def _next_cursor(step: Step) -> Any:
    return step.result.get("nextCursor", ABSENT) if isinstance(step.result, dict) else ABSENT


def _cursor(step: Step | None) -> Any:
    return step.params.get("cursor", ABSENT) if step is not None else ABSENT


@session_rule(
    "PAGE-001",
    "a cursor is sent back unchanged",
    category="pagination",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec=_SPEC,
    listens=(Kind.REQUEST, Kind.RESULT),
    methods=tuple(LISTS),
)
def cursors_come_from_the_server(check: Check) -> Watching:
    """A client asks for the next page with a cursor that the server gave for that list.

    Cursors mean something to the server only. A client that parses, changes or makes them up
    works until the server changes how it writes them.
    """
    given: dict[str, set[str]] = {}
    while step := (yield):
        if step.kind is Kind.RESULT:
            cursor = _next_cursor(step)
            known = given.setdefault(step.method, set())
            if isinstance(cursor, str) and len(known) < DEFAULT_LIMITS.items:
                known.add(cursor)
            continue
        cursor = _cursor(step)
        if cursor is ABSENT or len(given.get(step.method, ())) >= DEFAULT_LIMITS.items:
            continue
        check.saw(step)
        if not isinstance(cursor, str) or cursor not in given.get(step.method, ()):
            check.violated(
                step,
                f"the cursor {cursor!r} was not given by the server for {step.method}",
                expected="a nextCursor of an earlier answer",
                pointer="/params/cursor",
            )


@session_rule(
    "PAGE-002",
    "nextCursor is a string",
    category="pagination",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    listens=(Kind.RESULT,),
    methods=tuple(LISTS),
    sender="server",
)
def next_cursors_are_strings(check: Check) -> Watching:
    """`nextCursor` is a string, or is left out on the last page. It is never null.

    Clients look whether the member is there. With null some of them ask for the page "null", and
    others stop.
    """
    while step := (yield):
        check.saw(step)
        cursor = _next_cursor(step)
        if cursor is not ABSENT and not isinstance(cursor, str):
            check.violated(
                step,
                f"nextCursor is {json_type(cursor)}",
                expected="a string, or no nextCursor at all",
                pointer="/result/nextCursor",
            )


@session_rule(
    "PAGE-003",
    "walking the pages comes to an end",
    category="pagination",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    listens=(Kind.RESULT,),
    methods=tuple(LISTS),
    sender="server",
)
def paging_ends(check: Check) -> Watching:
    """On one walk through a list no cursor comes back a second time.

    A server whose last page points to an earlier one keeps a client in a circle for ever. A walk
    begins with a request without a cursor.
    """
    walks: dict[str, set[str]] = {}
    while step := (yield):
        used = _cursor(step.request)
        if used is ABSENT:
            walks[step.method] = set()
        walk = walks.setdefault(step.method, set())
        if isinstance(used, str) and len(walk) < DEFAULT_LIMITS.items:
            walk.add(used)
        check.saw(step)
        cursor = _next_cursor(step)
        if isinstance(cursor, str) and cursor in walk:
            check.violated(
                step,
                f"the nextCursor {cursor!r} leads back to a page of this walk",
                expected="a new cursor, or none on the last page",
                pointer="/result/nextCursor",
            )
        elif isinstance(cursor, str) and len(walk) + 1 == DEFAULT_LIMITS.pages:
            check.unchecked(f"{step.method} did not end after {DEFAULT_LIMITS.pages} pages")


@session_rule(
    "PAGE-004",
    "all pages of a list have the same cacheScope",
    category="pagination",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/utilities/caching",
    window=STATELESS_ERA,
    listens=(Kind.RESULT,),
    methods=tuple(LISTS),
    sender="server",
)
def pages_share_their_scope(check: Check) -> Watching:
    """The `cacheScope` of a list does not change from page to page.

    A list that is half public and half private would be shared by a cache in part.
    """
    scopes: dict[str, Any] = {}
    while step := (yield):
        scope = step.result.get("cacheScope", ABSENT) if isinstance(step.result, dict) else ABSENT
        if _cursor(step.request) is ABSENT:
            scopes[step.method] = scope
            continue
        check.saw(step)
        first = scopes.setdefault(step.method, scope)
        if scope != first:
            check.violated(
                step,
                f"cacheScope changes to {scope!r} on a later page",
                expected=repr(first),
                actual=repr(scope),
                pointer="/result/cacheScope",
            )
