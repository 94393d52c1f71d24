"""SHAPE: every message has the members and types that its revision defines."""

from __future__ import annotations

import re
from functools import cache

from mcptest.core.message import ABSENT, Kind
from mcptest.core.revision import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE, Revision, revision_of_wire
from mcptest.core.verdict import Side
from mcptest.rules.declaration import RULES, Check, Conversations, Rule, WrongShape, session_rule
from mcptest.rules.session import Step
from mcptest.schema.message_shapes import ShapeProblem, shape_problems


@cache
def left_to_others() -> tuple[tuple[str, WrongShape], ...]:
    """What rules declare that they report, with the id of each. All rules have to be there."""
    return tuple((rule.id, shape) for rule in RULES.values() for shape in rule.reports_shapes)


def is_left_to_another(step: Step, problem: ShapeProblem) -> bool:
    """Whether another rule reports it, so that one fault is one finding."""
    pointer = problem.pointer
    parts = pointer.split("/")[1:]
    return any(
        row.kind is step.kind
        and (not row.methods or step.method in row.methods)
        and (step.revision or NEWEST_HANDSHAKE) in row.window
        and _matching(row.patterns).fullmatch(pointer) is not None
        and (row.when is None or row.when(step, parts))
        for _, row in left_to_others()
    )


@cache
def _matching(patterns: tuple[str, ...]) -> re.Pattern[str]:
    known = {"/**": "(?:/.*)?", "/*": "/[^/]*"}
    each = (
        "".join(known.get(part) or re.escape(part) for part in re.findall(r"/[^/]*", pattern))
        for pattern in patterns
    )
    return re.compile("|".join(f"(?:{one})" for one in each), re.DOTALL)


def _problems(step: Step, revision: Revision) -> list[ShapeProblem] | None:
    """None: nothing is known about such a message."""
    asked = step.method if step.kind is Kind.RESULT else None
    return shape_problems(step.message.value, step.kind, step.sender, revision, asked)


def _is_abridged(step: Step, check: Check) -> bool:
    """Captures in the public form often omit members."""
    is_bare = step.message.member("params") is ABSENT
    empty = bool(step.result == {}) if step.kind is Kind.RESULT else is_bare
    return check.session.form == "exchanges" and empty


def _judge_shape(check: Check, step: Step) -> None:
    revision = step.revision
    if revision is None and step.method == "initialize" and step.kind is Kind.REQUEST:
        # The first message of a handshake speaks the version that it offers.
        offered = revision_of_wire(step.params.get("protocolVersion"))
        revision = offered if offered in HANDSHAKE_REVISIONS else None
    problems = _problems(step, revision or NEWEST_HANDSHAKE)
    for older in HANDSHAKE_REVISIONS[-2::-1] if revision is None else ():
        # Where the revision is not known, what is wrong is what is wrong in all it could be.
        if not problems:
            break
        wrong = {problem.pointer for problem in _problems(step, older) or ()}
        problems = [problem for problem in problems if problem.pointer in wrong]
    if problems is None or (problems and _is_abridged(step, check)):
        return
    check.saw(step)
    for problem in problems:
        if not is_left_to_another(step, problem):
            how = "without" if problem.actual == "absent" else "with a wrong value at"
            told = f"the {step.sender} sent {_title(step)} {how} {problem.pointer}"
            check.violated(
                step, told, problem.expected, actual=problem.actual, pointer=problem.pointer
            )


def _title(step: Step) -> str:
    if step.kind is Kind.ERROR:
        return "an error"
    return f"{'the result of ' if step.kind is Kind.RESULT else ''}{step.method!r}"


_SECTIONS = {Kind.REQUEST: "#requests", Kind.NOTIFICATION: "#notifications"}


def _shape_rule(name: str, by: str, kind: Kind, conversations: Conversations = "polite") -> Rule:
    return session_rule(
        name,
        f"{by} {kind.value}s match the schema of the revision",
        _SECTIONS.get(kind, "#responses"),
        category="message-shape",
        side=Side(by),
        page="basic",
        listens=(kind,),
        sender=by,
        conversations=conversations,
    )


@_shape_rule("SHAPE-001", "server", Kind.RESULT)
def server_results_have_their_shape(check: Check, step: Step) -> None:
    """A result has the members that its method requires, and known members have the right type.

    Clients in typed languages reject a whole result if one member has the wrong type. Unknown
    members are allowed: all objects are open, so a member of a later revision is not a violation.
    From 2026-07-28 on, `resultType` says which shape a result has. Members that another rule covers
    are left to that rule.

    Fix: Add the missing member, or change the type of the member that the finding names.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-002", "server", Kind.NOTIFICATION)
def server_notifications_have_their_shape(check: Check, step: Step) -> None:
    """The params of a notification have the required members, with the right types.

    A notification gets no response, so a client that cannot read one drops it silently.
    Notifications that the revision does not define are not judged here.

    Fix: Add the missing member to `params`, or change the type of the member that the finding
    names.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-003", "server", Kind.REQUEST)
def server_requests_have_their_shape(check: Check, step: Step) -> None:
    """A server's sampling, elicitation and roots requests have the required params.

    The schema of an elicitation is a flat object of strings, numbers, booleans and choices. Clients
    build a form from it and have no field for anything else. In the stateless era, these requests
    travel within results, and SHAPE-001 judges them.

    Fix: Add the missing member to `params`, or change the type of the member that the finding
    names. Keep `requestedSchema` flat.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-004", "server", Kind.ERROR, conversations="any")
def server_errors_have_their_shape(check: Check, step: Step) -> None:
    """Error codes that come with data have it in a shape that a client can act on.

    These are -32042 with its `elicitations` in 2025-11-25, and from 2026-07-28 on -32021 with
    `requiredCapabilities` and -32022 with `supported` and `requested`. The `data` of other codes is
    free.

    Fix: Fill `error.data` with the members that the code requires.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-005", "client", Kind.REQUEST)
def client_requests_have_their_shape(check: Check, step: Step) -> None:
    """The params of a request have the members that its method requires, with the right types.

    A server may answer anything else with error -32602. The arguments of a tool are an object;
    those of a prompt are strings.

    Fix: Add the missing member to `params`, or change the type of the member that the finding
    names.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-006", "client", Kind.NOTIFICATION)
def client_notifications_have_their_shape(check: Check, step: Step) -> None:
    """The params of a notification have the required members, with the right types.

    A server that cannot read a notification drops it, and a request that should have been cancelled
    keeps running.

    Fix: Add the missing member to `params`, or change the type of the member that the finding
    names.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-007", "client", Kind.RESULT)
def client_results_have_their_shape(check: Check, step: Step) -> None:
    """A client's sampling, elicitation and roots results have the required members.

    A tool waits for the response in the middle of its work. A result that it cannot read ends the
    call.

    Fix: Add the missing member to `result`, or change the type of the member that the finding
    names.
    """
    _judge_shape(check, step)
