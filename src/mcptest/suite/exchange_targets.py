"""What a rule of a corpus looks at: one exchange, the steps of a probe, and what a probe found.

`result.tools[0].name`, `error.code`, `http.status`, `http.header.allow`, `asked[*].method`,
`steps.second.error.code`, `probe.differing`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from mcptest.model.message import ABSENT
from mcptest.suite.failure import Evaluation, Failure, evaluation_of
from mcptest.suite.go_format import quote
from mcptest.suite.matchers import match

_ROOT = re.compile(r"[a-z_]+")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_HEADER = re.compile(r"header\.([a-z0-9-]+)")


class Expectation(msgspec.Struct, frozen=True):
    """One row of `expect`: a part of the exchange, and what must hold of it."""

    target: str
    matcher: Mapping[str, Any]


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
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
    steps: Mapping[str, Exchange] = msgspec.field(default_factory=dict)
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


class ExchangeTarget(msgspec.Struct, frozen=True):
    about: str
    value: Callable[[Exchange], tuple[Any, str]]
    has_parts: bool = False


EXCHANGE_TARGETS: Mapping[str, ExchangeTarget] = {
    "answer": ExchangeTarget(
        "`result`, `error`, or `none` when nothing came in time", lambda e: (e.answer, "")
    ),
    "result": ExchangeTarget(
        "the result; a path may follow", lambda e: (e.result, "there is no result"), True
    ),
    "error": ExchangeTarget(
        "the JSON-RPC error; a path may follow: `error.code`",
        lambda e: (e.error, "it was not answered with an error"),
        True,
    ),
    "exchange": ExchangeTarget(
        "all of it as one object (`answer`, `result`, `error`, `http`, `asked`, `transport`), for "
        "a schema with alternatives",
        lambda e: (e.whole, ""),
        True,
    ),
    "notifications": ExchangeTarget(
        "the notifications that came meanwhile, as a list",
        lambda e: (list(e.notifications), ""),
        True,
    ),
    "asked": ExchangeTarget(
        "what the server asked of the client, by a request or in an input-required result",
        lambda e: (list(e.asked), ""),
        True,
    ),
    "transport_observation": ExchangeTarget(
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
    root, rest = _split(target)
    if root == "http":
        return None if _http_part(rest) else f"{quote(target)}: {SPECIAL_TARGETS['http']}"
    if root in {"steps", "probe"}:
        return _named_problem(target, root, rest, steps, facts)
    known = EXCHANGE_TARGETS.get(root)
    if known is None or (rest and rest[0] not in ".["):
        names = (*EXCHANGE_TARGETS, *SPECIAL_TARGETS)
        near = difflib.get_close_matches(root, names, 1)
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


def _split(target: str) -> tuple[str, str]:
    found = _ROOT.match(target)
    root = found.group() if found else ""
    return root, target[len(root) :]


def _http_part(rest: str) -> str:
    part = rest.removeprefix(".")
    return part if part in {"status", "body"} or _HEADER.fullmatch(part) else ""


def resolve_exchange(target: str, seen: Exchange) -> tuple[Any, str]:
    """The value under test, or ABSENT and why there is none."""
    root, rest = _split(target)
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
    from mcptest.suite.jsonpath import PathError, compile_path, lookup, query

    try:
        compiled = compile_path("$" + path)
        return (lookup if compiled.singular else query)(value, compiled), ""
    except PathError as error:
        return ABSENT, str(error)


def judge_exchange(expect: Collection[Expectation], seen: Exchange) -> Evaluation:
    """Every expectation against what was seen; all that do not hold are told."""
    return evaluation_of((_outcome(one, seen) for one in expect), all_failures=True)


def _outcome(one: Expectation, seen: Exchange) -> Failure | None:
    value, missing = resolve_exchange(one.target, seen)
    return failure_of(one, value, missing)


def failure_of(one: Expectation, value: Any, missing: str = "") -> Failure | None:
    """Why this value is not what is expected, or None."""
    mismatch = match(one.matcher, value, missing)
    if mismatch is None:
        return None
    actual = None if mismatch.actual is ABSENT else mismatch.actual
    return Failure(
        one.target, f"{one.target}: {mismatch.reason}", mismatch.expected, actual, mismatch.pointer
    )
