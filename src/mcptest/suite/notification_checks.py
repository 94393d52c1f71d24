"""Expectations of `assert_notifications`, and the params of a notification as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcptest.suite.failure import Evaluation, Failure, Outcome, evaluation_of
from mcptest.suite.go_format import quote
from mcptest.suite.model import NotificationExpect
from mcptest.suite.text_under_test import compact_json


def check_notifications(
    expect: NotificationExpect,
    notifications: Sequence[Mapping[str, Any]],
    *,
    all_failures: bool = False,
) -> Evaluation:
    """Judge every notification that came during a call."""
    return evaluation_of(_outcomes(expect, notifications), all_failures=all_failures)


def _outcomes(
    expect: NotificationExpect, notifications: Sequence[Mapping[str, Any]]
) -> Iterator[Outcome]:
    yield from _counts(expect, len(notifications))
    methods = (sent.get("method") for sent in notifications)
    yield from _methods(expect, {method for method in methods if isinstance(method, str)})
    if expect.contains_data or expect.not_contains_data:
        yield from _data(expect, [params_text(sent) for sent in notifications])


def _counts(expect: NotificationExpect, count: int) -> Iterator[Outcome]:
    least, most = expect.min_count, expect.max_count
    if least is not None:
        message = f"expected at least {least} notification(s), got {count}"
        yield None if count >= least else Failure("min_count", message, least, count)
    if most is not None:
        message = f"expected at most {most} notification(s), got {count}"
        yield None if count <= most else Failure("max_count", message, most, count)


def _methods(expect: NotificationExpect, came: set[str]) -> Iterator[Outcome]:
    for method in expect.methods:
        message = f"expected notification method {quote(method)} but it was not received"
        yield None if method in came else Failure("methods", message, method, sorted(came))
    for method in expect.not_methods:
        message = f"notification method {quote(method)} was received but should not have been"
        yield Failure("not_methods", message, method, sorted(came)) if method in came else None


def _data(expect: NotificationExpect, texts: Sequence[str]) -> Iterator[Outcome]:
    for wanted in expect.contains_data:
        message = f"no notification params contain {quote(wanted)}"
        found = any(wanted in text for text in texts)
        yield None if found else Failure("contains_data", message, wanted, None)
    for unwanted in expect.not_contains_data:
        message = f"notification params contain {quote(unwanted)} but should not"
        bad = next((text for text in texts if unwanted in text), None)
        yield None if bad is None else Failure("not_contains_data", message, unwanted, bad)


def params_text(notification: Mapping[str, Any]) -> str:
    """Compact JSON with sorted keys, `_meta` left out; `null` when there are no params."""
    params = notification.get("params")
    if isinstance(params, dict):
        params = {name: value for name, value in params.items() if name != "_meta"}
    return compact_json(params, sort_keys=True)
