"""Expectations of `assert_logging`, on the log messages that a server sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcptest.suite.failure import Evaluation, Failure, Outcome, evaluation_of
from mcptest.suite.go_format import quote, value_text
from mcptest.suite.model import LoggingExpect
from mcptest.suite.text_under_test import compact_json

LOG_METHOD = "notifications/message"


def check_logging(
    expect: LoggingExpect,
    notifications: Sequence[Mapping[str, Any]],
    *,
    all_failures: bool = False,
) -> Evaluation:
    """Judge the log messages among all notifications of a call."""
    messages = [_params(sent) for sent in notifications if sent.get("method") == LOG_METHOD]
    return evaluation_of(_outcomes(expect, messages), all_failures=all_failures)


def _params(notification: Mapping[str, Any]) -> Mapping[str, Any]:
    params = notification.get("params")
    return params if isinstance(params, dict) else {}


def _outcomes(expect: LoggingExpect, messages: Sequence[Mapping[str, Any]]) -> Iterator[Outcome]:
    count, least = len(messages), expect.min_messages
    if least is not None:
        message = f"expected at least {least} log message(s), got {count}"
        yield None if count >= least else Failure("min_messages", message, least, count)
    levels = {level for sent in messages if isinstance(level := sent.get("level"), str)}
    for level in expect.contains_level:
        message = f"expected log message at level {quote(level)}, not found"
        found = level in levels
        yield None if found else Failure("contains_level", message, level, sorted(levels))
    if expect.contains_data:
        texts = [data_texts(sent["data"]) for sent in messages if "data" in sent]
        for wanted in expect.contains_data:
            message = f"expected log data containing {quote(wanted)}, not found"
            found = any(wanted in text for spellings in texts for text in spellings)
            yield None if found else Failure("contains_data", message, wanted, None)


def data_texts(data: Any) -> tuple[str, ...]:
    """How the data of a log message may be spelled in a suite: as Go prints it, and as JSON."""
    if isinstance(data, str):
        return (data,)
    return value_text(data), value_text(data, numbers_as_doubles=True), compact_json(data)
