"""LOG: what a server may log, to whom, and at which level."""

from __future__ import annotations

from collections import Counter

from mcptest.model.message import ABSENT, Kind
from mcptest.model.revision import HANDSHAKE_ERA, STATELESS_ERA
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.protocol import LOG_LEVEL, LOG_LEVELS, declares
from mcptest.rules.session import Step

_MESSAGE = "notifications/message"
_SPEC = "server/utilities/logging"


@session_rule(
    "LOG-001",
    "a server that logs declared logging",
    category="logging",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=f"{_SPEC}#capabilities",
    listens=(Kind.NOTIFICATION,),
    methods=(_MESSAGE,),
    sender="server",
)
def logging_was_declared(check: Check) -> Watching:
    """A server that sends `notifications/message` has `logging` among its capabilities.

    Clients show a level switch, and keep a place for the lines, only where it was declared. In
    the stateless era a capture without `server/discover` can't show a violation.
    """
    while step := (yield):
        capabilities = check.session.server_capabilities
        stateless = step.stateless
        if capabilities is None and stateless:
            check.inconclusive("the capture has no server/discover result")
            continue
        check.saw(step)
        if not declares(capabilities, "logging"):
            check.violated(
                step, "a log message without the capability logging", expected="logging declared"
            )


@session_rule(
    "LOG-002",
    "a log message has a known level and data",
    category="logging",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=f"{_SPEC}#log-message-notifications",
    listens=(Kind.NOTIFICATION,),
    methods=(_MESSAGE,),
    sender="server",
)
def log_messages_are_whole(check: Check) -> Watching:
    """`level` is one of the eight names of syslog, in lower case, and `data` is there."""
    while step := (yield):
        check.saw(step)
        level = step.params.get("level", ABSENT)
        if level not in LOG_LEVELS:
            check.violated(
                step,
                f"the level is {level!r}",
                expected=", ".join(LOG_LEVELS),
                pointer="/params/level",
            )
        elif "data" not in step.params:
            check.violated(step, "a log message without data", expected="data")


@session_rule(
    "LOG-003",
    "nothing below the level that was set is logged",
    category="logging",
    severity=Severity.SHOULD,
    side=Side.SERVER,
    spec=f"{_SPEC}#setting-log-level",
    window=HANDSHAKE_ERA,
    listens=(Kind.NOTIFICATION, Kind.RESULT),
    methods=(_MESSAGE, "logging/setLevel"),
    sender="server",
)
def log_level_is_respected(check: Check) -> Watching:
    """After `logging/setLevel` the server sends only messages of that level and above.

    The specification shows this without a keyword, so it is a warning.
    """
    lowest: int | None = None
    while step := (yield):
        if step.kind is Kind.RESULT:
            level = step.request.params.get("level") if step.request else None
            lowest = LOG_LEVELS.index(level) if level in LOG_LEVELS else lowest
            continue
        level = step.params.get("level")
        if lowest is None or level not in LOG_LEVELS:
            continue
        check.saw(step)
        if LOG_LEVELS.index(level) < lowest:
            check.violated(
                step,
                f"a message of level {level!r}",
                expected=f"{LOG_LEVELS[lowest]} or above",
                actual=str(level),
            )


@session_rule(
    "LOG-004",
    "nothing is logged for a request that did not ask",
    category="logging",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=STATELESS_ERA,
    listens=(Kind.NOTIFICATION, Kind.REQUEST, Kind.RESULT, Kind.ERROR),
)
def log_messages_were_asked_for(check: Check) -> Watching:
    """In the stateless era a server logs only for requests whose `_meta` has a `logLevel`.

    Over HTTP it is the request of the same stream that counts; on stdio some open request must
    have asked. Messages below the level that was asked for are not asked for either.
    """
    open_levels: Counter[int] = Counter()
    while step := (yield):
        if step.kind is Kind.REQUEST:
            open_levels[_level_asked(step)] += 1
        elif step.kind is not Kind.NOTIFICATION:
            if step.request is not None:
                open_levels[_level_asked(step.request)] -= 1
        elif step.method == _MESSAGE and step.sender == "server":
            check.saw(step)
            fault = _unasked(step, open_levels)
            if fault:
                check.violated(
                    step, fault, expected=f"{LOG_LEVEL} in the _meta of the request, and no less"
                )


_NOT_ASKED = -1


def _level_asked(request: Step) -> int:
    level = request.meta.get(LOG_LEVEL)
    return LOG_LEVELS.index(level) if level in LOG_LEVELS else _NOT_ASKED


def _unasked(step: Step, open_levels: Counter[int]) -> str:
    posted = step.stream.posted if step.stream is not None else None
    if posted is not None and posted.kind is Kind.REQUEST:
        asked = {_level_asked(posted)}
    else:
        asked = {level for level, count in open_levels.items() if count > 0}
    asked.discard(_NOT_ASKED)
    if not asked:
        return "a log message, but no open request has a logLevel"
    level = step.params.get("level")
    if level in LOG_LEVELS and LOG_LEVELS.index(level) < min(asked):
        return f"a message of level {level!r}, but only {LOG_LEVELS[min(asked)]!r} was asked for"
    return ""
