"""Expectations on notifications and on log messages."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.suite.expectations import check_logging, check_notifications, params_text
from mcptest.suite.model import LoggingExpect, NotificationExpect

PROGRESS = {
    "method": "notifications/progress",
    "params": {"progressToken": 1, "progress": 5, "message": "<b>", "_meta": {"secret": 1}},
}
CHANGED = {"method": "notifications/tools/list_changed"}
SENT: list[dict[str, Any]] = [PROGRESS, CHANGED, PROGRESS]


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"min_count": 3, "max_count": 3}, None),
        ({"min_count": 4}, "expected at least 4 notification(s), got 3"),
        ({"max_count": 2}, "expected at most 2 notification(s), got 3"),
        ({"methods": ("notifications/progress", "notifications/tools/list_changed")}, None),
        (
            {"methods": ("notifications/message",)},
            'expected notification method "notifications/message" but it was not received',
        ),
        ({"not_methods": ("notifications/message",)}, None),
        (
            {"not_methods": ("notifications/progress",)},
            'notification method "notifications/progress" was received but should not have been',
        ),
        ({"contains_data": ('"message":"<b>","progress":5', "null")}, None),
        ({"contains_data": ("zzz",)}, 'no notification params contain "zzz"'),
        ({"not_contains_data": ("secret", "zzz")}, None),
        ({"not_contains_data": ("<b>",)}, 'notification params contain "<b>" but should not'),
        ({}, "nothing was checked"),
    ],
)
def test_notifications_are_as_expected_or_the_message_says_why(
    expected: dict[str, Any], message: str | None
) -> None:
    failures = check_notifications(NotificationExpect(**expected), SENT).failures
    assert [failure.message for failure in failures] == ([] if message is None else [message])


def test_silence_is_judged_too() -> None:
    assert check_notifications(NotificationExpect(max_count=0), []).passed
    assert not check_notifications(NotificationExpect(min_count=1), []).passed
    assert not check_notifications(NotificationExpect(contains_data=("",)), []).passed


def test_notifications_of_the_wrong_shape_do_not_crash() -> None:
    odd: list[dict[str, Any]] = [{"method": ["x"]}, {}, {"method": "m", "params": [1]}]
    assert check_notifications(
        NotificationExpect(methods=("m",), contains_data=("[1]",)), odd
    ).passed


def test_params_are_compact_sorted_json() -> None:
    assert params_text(PROGRESS) == '{"message":"<b>","progress":5,"progressToken":1}'
    assert params_text(CHANGED) == "null"


def log(level: str, data: Any) -> dict[str, Any]:
    return {"method": "notifications/message", "params": {"level": level, "data": data}}


LOGGED = [
    log("debug", "starting"),
    PROGRESS,
    log("warning", {"b": [1, "x"], "a": 1234567}),
    {"method": "notifications/message", "params": {"level": 5}},
]


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"min_messages": 3}, None),
        ({"min_messages": 0}, None),
        ({"min_messages": 4}, "expected at least 4 log message(s), got 3"),
        ({"contains_level": ("debug", "warning")}, None),
        ({"contains_level": ("error",)}, 'expected log message at level "error", not found'),
        ({"contains_data": ("start", "b:[1 x]", "a:1234567", "1.234567e+06", '"b":[1,"x"]')}, None),
        ({"contains_data": ("zzz",)}, 'expected log data containing "zzz", not found'),
        (
            {"contains_data": ("progressToken",)},
            'expected log data containing "progressToken", not found',
        ),
        ({}, "nothing was checked"),
    ],
)
def test_log_messages_are_as_expected_or_the_message_says_why(
    expected: dict[str, Any], message: str | None
) -> None:
    failures = check_logging(LoggingExpect(**expected), LOGGED).failures
    assert [failure.message for failure in failures] == ([] if message is None else [message])


def test_all_failures_are_told_when_asked_for() -> None:
    logging = LoggingExpect(min_messages=9, contains_level=("x",), contains_data=("y",))
    found = check_logging(logging, LOGGED, all_failures=True)
    assert [failure.check for failure in found.failures] == [
        "min_messages",
        "contains_level",
        "contains_data",
    ]
