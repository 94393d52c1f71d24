"""SHAPE: every message has the members, of the types, that its revision gives it."""

from __future__ import annotations

import re
from functools import cache

from mcptest.core.message import ABSENT, Kind
from mcptest.core.revision import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE, Revision, revision_of_wire
from mcptest.core.verdict import Side
from mcptest.rules.declaration import RULES, Check, Conversations, Rule, WrongShape, session_rule
from mcptest.rules.session import Step
from mcptest.schema.shapes.checker import ShapeProblem, problems_if_known


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
    return problems_if_known(step.message.value, step.kind, step.sender, revision, asked)


def _is_abridged(step: Step, check: Check) -> bool:
    """Captures of the public form often leave out what nobody asked them to keep."""
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
            how = "missing" if problem.actual == "absent" else "wrong"
            told = f"{_title(step)}: {problem.pointer} is {how}"
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
        f"the {by}'s {kind.value}s have the shape of the revision",
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
    """A result has the members that its method demands, and known members are of their type.

    Clients in typed languages refuse a whole result for one member of the wrong type. What a
    revision does not know may be there all the same: all objects are open, so a member of a later
    revision is no fault. From 2026-07-28 on `resultType` says which shape a result has. Members
    that another rule is about are left to it.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-002", "server", Kind.NOTIFICATION)
def server_notifications_have_their_shape(check: Check, step: Step) -> None:
    """The params of a notification have the members that it demands, of their types.

    Nobody answers a notification, so a client that can't read one drops it without a word.
    Notifications that the revision does not have are not judged here.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-003", "server", Kind.REQUEST)
def server_requests_have_their_shape(check: Check, step: Step) -> None:
    """What a server asks of a client, sampling, elicitation or roots, has the params it demands.

    The schema of an elicitation is a flat object of strings, numbers, booleans and choices: clients
    build a form from it and have no field for anything else. In the stateless era these requests
    travel within results and are judged by SHAPE-001.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-004", "server", Kind.ERROR, conversations="any")
def server_errors_have_their_shape(check: Check, step: Step) -> None:
    """The codes that come with data have it in the shape that a client can act on.

    That is -32042 with its `elicitations` in 2025-11-25, and from 2026-07-28 on -32021 with
    `requiredCapabilities` and -32022 with `supported` and `requested`. The `data` of other codes
    is anyone's.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-005", "client", Kind.REQUEST)
def client_requests_have_their_shape(check: Check, step: Step) -> None:
    """The params of a request have the members that its method demands, of their types.

    A server may answer -32602 to anything else. The arguments of a tool are an object; those of a
    prompt are strings.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-006", "client", Kind.NOTIFICATION)
def client_notifications_have_their_shape(check: Check, step: Step) -> None:
    """The params of a notification have the members that it demands, of their types.

    A server that can't read a notification drops it, and a request that should have been cancelled
    runs on.
    """
    _judge_shape(check, step)


@_shape_rule("SHAPE-007", "client", Kind.RESULT)
def client_results_have_their_shape(check: Check, step: Step) -> None:
    """What a client answers to sampling, elicitation or roots has the members that it must have.

    A tool waits for the answer in the middle of its work, and what it can't read ends the call.
    """
    _judge_shape(check, step)
