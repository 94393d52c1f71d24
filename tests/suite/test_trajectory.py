"""Traces of tool calls, and audit logs read as traces."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.suite.expectations import AuditLogError, check_trajectory, read_audit_log
from mcptest.suite.model import TraceEntry, TrajectoryCheck

TRACE = (
    TraceEntry("a", {"x": 1, "deep": {"k": 1, "j": [1, 2]}, "big": 1234567}),
    TraceEntry("b"),
    TraceEntry("a", {"x": 2, "s": "3"}),
)


def order(*tools: str) -> TrajectoryCheck:
    return TrajectoryCheck("order", tools)


def args_contain(tool: str, **args: Any) -> TrajectoryCheck:
    return TrajectoryCheck("args_contain", tool=tool, args=args)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (order("a", "b", "a"), None),
        (order("a", "a"), None),
        (order("c", "a"), 'order: "c" not found in trace'),
        (order("b", "b"), 'order: found "b" but "b" did not follow (got: [a, b, a])'),
        (order("a", "b", "z"), 'order: found "b" but "z" did not follow (got: [a, b, a])'),
        (TrajectoryCheck("presence", ("a", "b")), None),
        (
            TrajectoryCheck("presence", ("a", "c")),
            'presence: "c" not found in trace (got: [a, b, a])',
        ),
        (TrajectoryCheck("absence", ("c", "d")), None),
        (
            TrajectoryCheck("absence", ("c", "b")),
            'absence: "b" appeared in trace but should not have',
        ),
        (args_contain("a", x=1), None),
        (args_contain("a", x=2), None),
        (args_contain("a", x=2, s=3), None),
        (args_contain("a", big=1234567), None),
        (args_contain("a", deep={"j": [1, 2], "k": 1}), None),
        (args_contain("a"), None),
        (
            args_contain("a", x=3),
            'args_contain: "a" arg "x": want 3, got 1 (and no other of its 2 calls has them)',
        ),
        (
            args_contain("a", x=1, s="3"),
            'args_contain: "a" called without arg "s" (and no other of its 2 calls has them)',
        ),
        (args_contain("b", x=1), 'args_contain: "b" called without arg "x"'),
        (args_contain("q", x=1), 'args_contain: "q" not found in trace (got: [a, b, a])'),
    ],
)
def test_a_trace_meets_a_check_or_the_message_says_why(
    check: TrajectoryCheck, message: str | None
) -> None:
    failures = check_trajectory([check], TRACE).failures
    assert [failure.message for failure in failures] == ([] if message is None else [message])


def test_nested_arguments_have_to_be_equal_not_contained() -> None:
    found = check_trajectory([args_contain("a", deep={"k": 1})], TRACE[:1])
    assert found.failures[0].message == (
        'args_contain: "a" arg "deep": want map[k:1], got map[j:[1 2] k:1]'
    )


@pytest.mark.parametrize("kind", ["order", "presence", "absence"])
def test_a_check_that_names_no_tool_does_not_pass(kind: Any) -> None:
    assert not check_trajectory([TrajectoryCheck(kind)], TRACE).passed


def test_the_first_failure_is_told_unless_all_are_asked_for() -> None:
    checks = [TrajectoryCheck("presence", ("x", "a", "y")), order("z")]
    assert len(check_trajectory(checks, TRACE).failures) == 1
    found = check_trajectory(checks, TRACE, all_failures=True)
    assert [failure.check for failure in found.failures] == ["presence", "presence", "order"]
    assert found.checked == 4


def test_a_long_trace_is_cut_in_messages() -> None:
    trace = [TraceEntry("tool")] * 10_000
    message = check_trajectory([TrajectoryCheck("presence", ("x",))], trace).failures[0].message
    assert len(message) < 2000
    assert "and 9800 more" in message


def test_an_audit_log_is_read_line_by_line() -> None:
    lines: list[str | bytes] = [
        '{"tool":"a","args":{"x":1}}\n',
        "\n",
        b'{"tool":"b","arguments":{"y":2}}',
    ]
    others = ['{"event":"start"}', '{"tool":5}', '{"tool":"c","args":null}']
    assert read_audit_log([*lines, *others]) == (
        TraceEntry("a", {"x": 1}),
        TraceEntry("b", {"y": 2}),
        TraceEntry("c", {}),
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"tool":"a"}', "nope"], "audit log line 2: invalid JSON: "),
        (["[1]"], "audit log line 1: invalid JSON: expected an object, got array"),
        (["", '{"tool":'], "audit log line 2: invalid JSON: unexpected end of JSON input"),
        (
            ['{"call":"a"}', '{"tool":1}'],
            "none of its 2 events has a tool, so nothing was observed",
        ),
        (["", "  "], "it has no events, so nothing was observed"),
        ([], "it has no events, so nothing was observed"),
    ],
)
def test_an_audit_log_that_is_none_is_refused(lines: list[str], message: str) -> None:
    with pytest.raises(AuditLogError) as raised:
        read_audit_log(lines)
    assert str(raised.value).startswith(message)


@given(st.lists(st.binary(max_size=20) | st.text(max_size=20)))
def test_no_log_raises_anything_else(lines: list[bytes | str]) -> None:
    with contextlib.suppress(AuditLogError):
        read_audit_log(lines)


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), min_size=1))
def test_order_is_a_subsequence(called: list[str], wanted: list[str]) -> None:
    calls = iter(called)
    expected = all(tool in calls for tool in wanted)
    trace = [TraceEntry(tool) for tool in called]
    assert check_trajectory([order(*wanted)], trace).passed is expected
