"""The eight blocks, from what was read to values; with the checks that fields can't make."""

from __future__ import annotations

from collections.abc import Callable

from mcptest.suite.expect_forms import expect_of, logging_expect_of, notification_expect_of
from mcptest.suite.model import (
    Block,
    CompletionBlock,
    Expect,
    LoggingBlock,
    NotificationsBlock,
    PromptsBlock,
    ResourcesBlock,
    SamplingBlock,
    SamplingMock,
    ToolBlock,
    TraceEntry,
    TrajectoryBlock,
    TrajectoryCheck,
)
from mcptest.suite.reading import Reading, complain_of_nothing_asked


def block_of(name: str, read: Reading) -> Block:
    """The block that was read under that name. Only for a sound reading."""
    return _BLOCKS[name](read)


def _tool(read: Reading) -> ToolBlock:
    expect = expect_of(read.get("expect"))
    counts = expect.min_progress is not None or _counts_progress(expect)
    return ToolBlock(
        tool=read.get("tool"),
        args=read.get("args", {}),
        expect=expect,
        capture_progress=read.get("capture_progress", False) or counts,
    )


def _without_progress(read: Reading) -> Expect:
    asked = read.get("expect")
    if isinstance(asked, Reading) and "min_progress" in asked:
        asked.complain("min_progress is only counted in assert", "min_progress")
    expect = expect_of(asked)
    if _counts_progress(expect):
        read.complain("progress is only counted in assert", "expect")
    return expect


def _counts_progress(expect: Expect) -> bool:
    return any(row.target == "progress" for row in expect.checks)


def _resources(read: Reading) -> ResourcesBlock:
    asked = [name for name in ("list", "templates", "read") if name in read]
    if len(asked) > 1:
        read.complain(f"{' and '.join(asked)} in one block", asked[1], hint="write two tests")
    if not asked and "subscribe" not in read and "unsubscribe" not in read:
        read.complain("assert_resources needs list, read, templates or subscribe")
    awaits = read.get("expect_notification", False)
    if awaits and "subscribe" not in read:
        read.complain("expect_notification needs subscribe", "expect_notification")
    asked = read.get("expect")
    if "expect" not in read and not awaits:
        read.complain("expect is missing from assert_resources")
    elif isinstance(asked, Reading) and not asked.node_entries and not awaits:
        complain_of_nothing_asked(asked)
    page: Reading | None = read.get("list") or read.get("templates")
    return ResourcesBlock(
        expect=_without_progress(read),
        list="list" in read,
        templates="templates" in read,
        cursor=None if page is None else page.get("cursor"),
        read=read.get("read"),
        subscribe=read.get("subscribe"),
        unsubscribe=read.get("unsubscribe"),
        expect_notification=awaits,
    )


def _prompts(read: Reading) -> PromptsBlock:
    if ("list" in read) == ("get" in read):
        name = "get" if "get" in read else None
        read.complain("assert_prompts needs either list or get", name)
    page: Reading | None = read.get("list")
    prompt: Reading | None = read.get("get")
    return PromptsBlock(
        expect=_without_progress(read),
        list=page is not None,
        cursor=None if page is None else page.get("cursor"),
        get=None if prompt is None else prompt.get("name"),
        arguments={} if prompt is None else prompt.get("arguments", {}),
    )


def _completion(read: Reading) -> CompletionBlock:
    argument = read.get("argument")
    return CompletionBlock(
        ref=dict(read.get("ref").values),
        argument={"name": argument.get("name"), "value": argument.get("value", "")},
        expect=_without_progress(read),
    )


def _sampling(read: Reading) -> SamplingBlock:
    return SamplingBlock(
        tool=read.get("tool"),
        args=read.get("args", {}),
        mock=SamplingMock(text=read.get("mock_text", ""), model=read.get("mock_model", "mock")),
        expect=_without_progress(read),
    )


def _logging(read: Reading) -> LoggingBlock:
    return LoggingBlock(
        set_level=read.get("set_level"),
        tool=read.get("tool", ""),
        args=read.get("args", {}),
        expect=logging_expect_of(read.get("expect")),
    )


def _notifications(read: Reading) -> NotificationsBlock:
    return NotificationsBlock(
        tool=read.get("tool"),
        args=read.get("args", {}),
        expect=notification_expect_of(read.get("expect")),
    )


def trajectory_of(test: Reading, *, live: bool) -> TrajectoryBlock:
    """`trajectory` with its source; `live`: the calls come from a session, not from the file."""
    if "trace" in test and "audit_log" in test:
        test.complain("trace and audit_log in one test", "audit_log", hint="keep one of them")
    if "trace" not in test and "audit_log" not in test and not live:
        test.complain("a trajectory needs trace or audit_log", "trajectory")
    if test.get("setup"):
        test.complain("a trajectory starts no server, so setup would not be run", "setup")
    return TrajectoryBlock(
        checks=tuple(map(_trajectory_check, test.get("trajectory"))),
        trace=tuple(TraceEntry(e.get("tool"), e.get("args", {})) for e in test.get("trace", ())),
        audit_log=test.get("audit_log", ""),
    )


def _trajectory_check(read: Reading) -> TrajectoryCheck:
    kind = read.get("type")
    over_one = kind == "args_contain"
    needed, unused = (("tool", "args"), ("tools",)) if over_one else (("tools",), ("tool", "args"))
    for name in needed:
        if not read.get(name):
            read.complain(f"{kind} needs {name}", name)
    for name in unused:
        if read.get(name):
            read.complain(f"{name} has no meaning for {kind}", name)
    return TrajectoryCheck(
        type=kind,
        tools=read.get("tools", ()),
        tool=read.get("tool", ""),
        args=read.get("args", {}),
        place=read.place,
    )


_BLOCKS: dict[str, Callable[[Reading], Block]] = {
    "assert": _tool,
    "assert_resources": _resources,
    "assert_prompts": _prompts,
    "assert_completion": _completion,
    "assert_sampling": _sampling,
    "assert_logging": _logging,
    "assert_notifications": _notifications,
}
