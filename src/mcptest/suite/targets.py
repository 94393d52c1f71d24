"""What a row of the list form looks at: `target: result.content[0].text`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mcptest.model.message import ABSENT
from mcptest.suite.go_format import quote
from mcptest.suite.observed import Observed
from mcptest.suite.text_as_json import text_or_first_line

_ROOT = r"\$|[a-z_]+"


class Subject:
    """An answer under test; its text is read as JSON at most once."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed

    @functools.cached_property
    def document(self) -> tuple[Any, str]:
        """The text as JSON, or ABSENT and why it is not."""
        return text_or_first_line(self.observed.text)


class Target(msgspec.Struct, frozen=True):
    """A root that targets begin with. `value` gives it, and why there is none when it is ABSENT."""

    about: str
    value: Callable[[Subject], tuple[Any, str]]
    has_parts: bool = False
    """Whether a path may follow."""


def _document(subject: Subject) -> tuple[Any, str]:
    value, reason = subject.document
    return value, f"the text is not valid JSON: {reason}" if reason else ""


def _progress(subject: Subject) -> tuple[Any, str]:
    counted = subject.observed.progress
    return (ABSENT, "progress was not captured") if counted is None else (counted, "")


def _error(subject: Subject) -> tuple[Any, str]:
    error = subject.observed.error
    return (ABSENT, "the call was not answered with an error") if error is None else (error, "")


TARGETS: Mapping[str, Target] = {
    "text": Target("the text under test", lambda s: (s.observed.text, "")),
    "$": Target("the text read as JSON; a path may follow, as in json_path", _document, True),
    "result": Target(
        "the result as it came; a path may follow: `result.content[0].type`",
        lambda s: (s.observed.result, "there is no result"),
        True,
    ),
    "structured": Target(
        "the `structuredContent`; a path may follow",
        lambda s: (s.observed.structured, "there is no structuredContent"),
        True,
    ),
    "is_error": Target("the `isError` flag", lambda s: (s.observed.is_error, "")),
    "error": Target(
        "the JSON-RPC error that the call was answered with; `error.code`, `error.message`",
        _error,
        True,
    ),
    "duration": Target(
        "seconds from the request to its answer", lambda s: (s.observed.duration, "")
    ),
    "progress": Target("how many progress notifications came; only in `assert`", _progress),
    "notifications": Target(
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
    if not path:
        return None
    from mcptest.suite.jsonpath import path_problem

    problem = path_problem("$" + path)
    return None if problem is None else f"{quote(target)}: {problem}"


def known_target(target: str) -> bool:
    """Whether a row of the list form may look at this."""
    return target_problem(target) is None


def nearest_targets(target: str) -> list[str]:
    """Roots that could have been meant, the likeliest first."""
    import difflib

    root = re.split(r"[.\[]", target, maxsplit=1)[0]
    return difflib.get_close_matches(root, TARGETS, 3)


def resolve(target: str, subject: Subject) -> tuple[Any, str]:
    """The value under test, or ABSENT and why there is none.

    A path that may lead to several values gives the list of all of them.
    """
    root, path = split_target(target)
    value, missing = TARGETS[root].value(subject)
    if value is ABSENT or not path:
        return value, missing
    from mcptest.suite.jsonpath import PathError, compile_path, lookup, query

    try:
        compiled = compile_path("$" + path)
        return (lookup if compiled.singular else query)(value, compiled), ""
    except PathError as error:
        return ABSENT, str(error)
