"""What a row of the list form looks at: `target: result.content[0].text`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from mcptest.core.message import ABSENT
from mcptest.core.spelling import close_matches
from mcptest.suite.go_format import quote
from mcptest.suite.matching import match
from mcptest.suite.observed import Evaluation, Failure, Observed, evaluation_of, text_or_first_line
from mcptest.suite.regex import as_bytes

_ROOT = r"\$|[a-z_]+"


class AnswerUnderTest:
    """An answer under test; its text is read as JSON at most once."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed

    @functools.cached_property
    def document(self) -> tuple[Any, str]:
        """The text as JSON, or ABSENT and why it is not."""
        return text_or_first_line(self.observed.text)

    @functools.cached_property
    def encoded(self) -> bytes:
        return as_bytes(self.observed.text)


class TargetRoot(msgspec.Struct, frozen=True):
    """A root that targets begin with."""

    about: str
    value: Callable[[Any], tuple[Any, str]]
    """Gives it, of an answer or of an exchange, and why there is none when it is ABSENT."""
    has_parts: bool = False
    """Whether a path may follow."""


def _unless_none(value: Any, missing: str) -> tuple[Any, str]:
    return (ABSENT, missing) if value is None else (value, "")


def _document(subject: AnswerUnderTest) -> tuple[Any, str]:
    value, reason = subject.document
    return value, f"the text is not valid JSON: {reason}" if reason else ""


TARGETS: Mapping[str, TargetRoot] = {
    "text": TargetRoot("the text under test", lambda s: (s.observed.text, "")),
    "$": TargetRoot("the text read as JSON; a path may follow, as in json_path", _document, True),
    "result": TargetRoot(
        "the result as it came; a path may follow: `result.content[0].type`",
        lambda s: (s.observed.result, "there is no result"),
        True,
    ),
    "structured": TargetRoot(
        "the `structuredContent`; a path may follow",
        lambda s: (s.observed.structured, "there is no structuredContent"),
        True,
    ),
    "is_error": TargetRoot("the `isError` flag", lambda s: (s.observed.is_error, "")),
    "error": TargetRoot(
        "the JSON-RPC error that the call was answered with; `error.code`, `error.message`",
        lambda s: _unless_none(s.observed.error, "the call was not answered with an error"),
        True,
    ),
    "duration": TargetRoot(
        "seconds from the request to its answer", lambda s: (s.observed.duration, "")
    ),
    "progress": TargetRoot(
        "how many progress notifications came; only in `assert`",
        lambda s: _unless_none(s.observed.progress, "progress was not captured"),
    ),
    "notifications": TargetRoot(
        "the notifications that came, as a list; `notifications[*].method`",
        lambda s: (list(s.observed.notifications), ""),
        True,
    ),
}


def split_target(target: str) -> tuple[str, str]:
    """The root and the path behind it, which is empty when there is none."""
    found = re.match(_ROOT, target)
    root = found.group() if found else ""
    return root, target[len(root) :]


def target_problem(target: str) -> str | None:
    """Why nothing can be looked at under this name, or None: for when a suite is loaded."""
    root, path = split_target(target)
    known = TARGETS.get(root)
    if known is None or (path and path[0] not in ".["):
        near = nearest_targets(target)
        hint = f", did you mean {near[0]}?" if near else f"; there are {', '.join(TARGETS)}"
        return f"unknown target {quote(target)}{hint}"
    if path and not known.has_parts:
        return f"{root} has no parts that {quote(path)} could lead to"
    return _path_problem(target, path)


def nearest_targets(target: str) -> list[str]:
    """Roots that could have been meant, the likeliest first."""
    root = re.split(r"[.\[]", target, maxsplit=1)[0]
    return close_matches(root, TARGETS, 3)


def resolve(target: str, subject: AnswerUnderTest) -> tuple[Any, str]:
    """The value under test, or ABSENT and why there is none.

    A path that may lead to several values gives the list of all of them.
    """
    root, path = split_target(target)
    value, missing = TARGETS[root].value(subject)
    return _follow(value, path, missing)


# -- What a rule of a corpus looks at ------------------------------------------------------------

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_HEADER = re.compile(r"header\.([a-z0-9-]+)")


class Expectation(msgspec.Struct, frozen=True):
    """One row of `expect`: a part of the exchange, and what must hold of it."""

    target: str
    matcher: Mapping[str, Any]


class SeenExchange(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen after something was sent. Whoever drives the server fills it in."""

    result: Any = ABSENT
    error: Any = ABSENT
    http: Mapping[str, Any] | None = None
    """`status`, `headers` by lower-case name, and `body` as text; None where there is no HTTP."""
    notifications: tuple[Any, ...] = ()
    asked: tuple[Any, ...] = ()
    """What the server asked of the client, by request or inside an input-required result:
    objects with `method` and `params`."""
    transport: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """`transport`, `alive`, `unusable`: how the connection fared."""
    steps: Mapping[str, SeenExchange] = msgspec.field(default_factory=dict)
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def answer(self) -> str:
        if self.error is not ABSENT:
            return "error"
        return "none" if self.result is ABSENT else "result"

    @property
    def whole(self) -> dict[str, Any]:
        """As one object, for a schema that allows one thing or another."""
        parts = {"result": self.result, "error": self.error, "http": self.http or ABSENT}
        seen = {name: part for name, part in parts.items() if part is not ABSENT}
        transport = self.transport.get("transport", "")
        return {"answer": self.answer, "asked": list(self.asked), "transport": transport, **seen}


EXCHANGE_TARGETS: Mapping[str, TargetRoot] = {
    "answer": TargetRoot(
        "`result`, `error`, or `none` when nothing came in time", lambda e: (e.answer, "")
    ),
    "result": TargetRoot(
        "the result; a path may follow", lambda e: (e.result, "there is no result"), True
    ),
    "error": TargetRoot(
        "the JSON-RPC error; a path may follow: `error.code`",
        lambda e: (e.error, "it was not answered with an error"),
        True,
    ),
    "exchange": TargetRoot(
        "all of it as one object (`answer`, `result`, `error`, `http`, `asked`, `transport`), for "
        "a schema with alternatives",
        lambda e: (e.whole, ""),
        True,
    ),
    "notifications": TargetRoot(
        "the notifications that came meanwhile, as a list",
        lambda e: (list(e.notifications), ""),
        True,
    ),
    "asked": TargetRoot(
        "what the server asked of the client, by a request or in an input-required result",
        lambda e: (list(e.asked), ""),
        True,
    ),
    "transport_observation": TargetRoot(
        "how the connection fared: `transport`, `alive`, `unusable`",
        lambda e: (dict(e.transport) or ABSENT, "the transport was not observed"),
        True,
    ),
}
SPECIAL_TARGETS: Mapping[str, str] = {
    "http": "`http.status`, `http.body`, `http.header.NAME`",
    "steps": "`steps.NAME.` and any target: what came after that step of the probe",
    "probe": "`probe.FACT`: what the probe found out; a path may follow",
}


def exchange_target_problem(
    target: str, steps: Collection[str] = (), facts: Collection[str] = ()
) -> str | None:
    """Why nothing can be looked at under this name, or None."""
    root, rest = split_target(target)
    if root == "http":
        return None if _http_part(rest) else f"{quote(target)}: {SPECIAL_TARGETS['http']}"
    if root in {"steps", "probe"}:
        return _named_problem(target, root, rest, steps, facts)
    known = EXCHANGE_TARGETS.get(root)
    if known is None or (rest and rest[0] not in ".["):
        names = (*EXCHANGE_TARGETS, *SPECIAL_TARGETS)
        near = close_matches(root, names, 1)
        hint = f", did you mean {near[0]}?" if near else f"; there are {', '.join(names)}"
        return f"unknown target {quote(target)}{hint}"
    if rest and not known.has_parts:
        return f"{root} has no parts that {quote(rest)} could lead to"
    return _path_problem(target, rest)


def _named_problem(
    target: str, root: str, rest: str, steps: Collection[str], facts: Collection[str]
) -> str | None:
    known = steps if root == "steps" else facts
    found = _NAME.match(rest[1:]) if rest.startswith(".") else None
    name = found.group() if found else ""
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "the check has none"
        word = "step" if root == "steps" else "fact"
        return f"{quote(target)} names no {word} of the check: {there}"
    after = rest[1 + len(name) :]
    if root == "probe":
        return _path_problem(target, after)
    if not after.startswith("."):
        return f"{quote(target)} does not say what of the step is meant"
    return exchange_target_problem(after[1:])


def _path_problem(target: str, path: str) -> str | None:
    if not path:
        return None
    from mcptest.suite.jsonpath import path_problem

    problem = path_problem("$" + path)
    return None if problem is None else f"{quote(target)}: {problem}"


def _http_part(rest: str) -> str:
    part = rest.removeprefix(".")
    return part if part in {"status", "body"} or _HEADER.fullmatch(part) else ""


def resolve_exchange(target: str, seen: SeenExchange) -> tuple[Any, str]:
    """The value under test, or ABSENT and why there is none."""
    root, rest = split_target(target)
    if root == "http":
        return _http_value(_http_part(rest), seen.http)
    if root == "steps":
        name, _, inner = rest[1:].partition(".")
        step = seen.steps.get(name)
        if step is None:
            return ABSENT, f"the step {name} was not taken"
        return resolve_exchange(inner, step)
    if root == "probe":
        found = _NAME.match(rest[1:])
        name = found.group() if found else ""
        value = seen.facts.get(name, ABSENT)
        return _follow(value, rest[1 + len(name) :], f"the probe did not find out {name}")
    value, missing = EXCHANGE_TARGETS[root].value(seen)
    return _follow(value, rest, missing)


def _http_value(part: str, http: Mapping[str, Any] | None) -> tuple[Any, str]:
    if http is None:
        return ABSENT, "it did not travel over HTTP"
    if part in {"status", "body"}:
        return http.get(part, ABSENT), f"there is no {part}"
    name = part.removeprefix("header.")
    headers = http.get("headers") or {}
    return headers.get(name, ABSENT), f"there is no header {name}"


def _follow(value: Any, path: str, missing: str) -> tuple[Any, str]:
    if value is ABSENT or not path:
        return value, missing
    from mcptest.suite.jsonpath import PathError, value_at

    try:
        return value_at(value, "$" + path), ""
    except PathError as error:
        return ABSENT, str(error)


def judge_exchange(expect: Collection[Expectation], seen: SeenExchange) -> Evaluation:
    """Every expectation against what was seen; all that do not hold are told."""
    outcomes = (failure_of(one, *resolve_exchange(one.target, seen)) for one in expect)
    return evaluation_of(outcomes, all_failures=True)


def failure_of(one: Expectation, value: Any, missing: str = "") -> Failure | None:
    """Why this value is not what is expected, or None."""
    mismatch = match(one.matcher, value, missing)
    if mismatch is None:
        return None
    actual = None if mismatch.actual is ABSENT else mismatch.actual
    return Failure(
        one.target, f"{one.target}: {mismatch.reason}", mismatch.expected, actual, mismatch.pointer
    )
