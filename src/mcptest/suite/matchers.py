"""The registry of matchers: the one engine that both forms of `expect` end in.

A value that is ABSENT fails every matcher but `exists: false`, so nothing passes because there
was nothing to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mcptest.model.message import ABSENT
from mcptest.suite import argument_kinds as kinds
from mcptest.suite import matching
from mcptest.suite.argument_kinds import ArgumentKind
from mcptest.suite.go_format import quote
from mcptest.suite.matching import Mismatch

__all__ = ["MATCHERS", "Matcher", "Mismatch", "match", "matcher_problem"]


class Matcher(msgspec.Struct, frozen=True):
    """One matcher: `check` judges a value by an argument, `argument` says what may be asked."""

    name: str
    check: Callable[[Any, Any], Mismatch | None]
    argument: ArgumentKind

    @property
    def about(self) -> str:
        """What it does, in a sentence or two."""
        return " ".join((self.check.__doc__ or "").split())


_ALL = (
    Matcher("exact", matching.exact, kinds.ANYTHING),
    Matcher("not_exact", matching.not_exact, kinds.ANYTHING),
    Matcher("one_of", matching.one_of, kinds.SEVERAL),
    Matcher("equals_trimmed", matching.equals_trimmed, kinds.TEXT),
    Matcher("contains", matching.contains, kinds.SOME),
    Matcher("contains_any", matching.contains_any, kinds.SEVERAL),
    Matcher("not_contains", matching.not_contains, kinds.SOME),
    Matcher("icontains", matching.icontains, kinds.TEXTS),
    Matcher("in_order", matching.in_order, kinds.SEVERAL),
    Matcher("regex", matching.regex, kinds.PATTERN),
    Matcher("not_regex", matching.not_regex, kinds.PATTERN),
    Matcher("schema", matching.schema, kinds.SCHEMA),
    Matcher("type", matching.type_, kinds.TYPE),
    Matcher("exists", matching.exists, kinds.FLAG),
    Matcher("not_empty", matching.not_empty, kinds.YES),
    Matcher("minimum", matching.minimum, kinds.NUMBER),
    Matcher("maximum", matching.maximum, kinds.NUMBER),
    Matcher("min_length", matching.min_length, kinds.COUNT),
    Matcher("max_length", matching.max_length, kinds.COUNT),
)

MATCHERS: Mapping[str, Matcher] = {matcher.name: matcher for matcher in _ALL}


def match(matcher: Mapping[str, Any], value: Any, missing: str = "") -> Mismatch | None:
    """The first reason why `value` does not match; every key of `matcher` has to hold.

    `missing` says why the value is ABSENT, when it is.
    """
    for name, argument in matcher.items():
        if value is ABSENT and name != "exists":
            reason = missing or "there is no value"
            return Mismatch(f"{name}: {reason}", argument, ABSENT)
        mismatch = MATCHERS[name].check(value, argument)
        if mismatch is not None:
            return mismatch
    return None


def matcher_problem(matcher: Mapping[str, Any]) -> str | None:
    """Why the matcher can't be used, or None: for the moment when a suite is loaded."""
    if not matcher:
        return "a matcher without a name checks nothing"
    for name, argument in matcher.items():
        known = MATCHERS.get(name)
        if known is None:
            import difflib

            near = difflib.get_close_matches(name, MATCHERS, 1)
            hint = f", did you mean {near[0]}?" if near else f"; there are {', '.join(MATCHERS)}"
            return f"unknown matcher {quote(name)}{hint}"
        problem = known.argument.problem(argument)
        if problem is not None:
            return f"{name}: {problem}"
    return None
