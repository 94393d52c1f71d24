"""What counts as a leak in an answer, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.commands.fuzz.fuzz_verdict import leak_in, may_leak
from mcptest.core.masking import Masker

NOBODY = Masker().text


def reported(text: str) -> dict[str, Any]:
    return {"result": {"isError": True, "content": [{"type": "text", "text": text}]}}


def said(text: str) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": text}]}}


TRACES = {
    "Python": 'Traceback (most recent call last):\n  File "/srv/a.py", line 3, in run\nKeyError',
    "JavaScript": "TypeError: x\n    at run (/srv/app/index.js:3:14)\n    at main",
    "JavaScript modules": "Error\n    at async file:///srv/app/index.js:3:14",
    "Go": "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.main()",
    "Rust": "thread 'main' panicked at src/main.rs:3:5",
    "Java": "java.lang.Error\n\tat com.example.Tool.run(Tool.java:12)",
    "Ruby": "tool.rb:3:in `run': undefined method",
    "a library": "File name too long: '/srv/.venv/lib/python3.11/site-packages/tz/x'",
    "a null": "Cannot read properties of undefined (reading 'length')",
}


@pytest.mark.parametrize("text", TRACES.values(), ids=TRACES)
def test_a_trace_in_a_reported_failure_is_a_leak(text: str) -> None:
    assert leak_in(reported(text), {}, NOBODY) is not None
    assert leak_in({"error": {"code": -32602, "message": text}}, {}, NOBODY) is not None


@pytest.mark.parametrize("text", TRACES.values(), ids=TRACES)
def test_what_a_tool_reads_to_order_may_hold_anything(text: str) -> None:
    assert leak_in(said(text), {}, NOBODY) is None


@pytest.mark.parametrize("text", TRACES.values(), ids=TRACES)
def test_what_was_sent_and_comes_back_is_no_leak(text: str) -> None:
    assert leak_in(reported(f"I do not know {text}"), {"q": text}, NOBODY) is None


@pytest.mark.parametrize(
    "text", ["root:x:0:0:root:/root:/bin/sh", "mcptest-42", "-----BEGIN RSA PRIVATE KEY-----"]
)
def test_what_was_stolen_is_a_leak_in_any_answer(text: str) -> None:
    leak = leak_in(said(text), {"path": "../etc/passwd; echo mcptest-$((6*7))"}, NOBODY)
    assert leak is not None
    assert may_leak(text.encode(), failed=False)


@pytest.mark.parametrize(
    "answer",
    [
        reported("1 validation error for addArguments"),
        reported("ENOENT: no such file or directory, open '/data/x'"),
        reported("Access denied - path outside allowed directories"),
        {"error": {"code": -32603, "message": "Internal error"}},
        {"error": {"code": -32602, "message": "MCP error -32602: Invalid arguments"}},
        said("internal error codes are listed in chapter 5"),
    ],
)
def test_an_ordinary_answer_is_no_leak(answer: dict[str, Any]) -> None:
    assert leak_in(answer, {}, NOBODY) is None


def test_a_secret_of_the_server_is_a_leak_and_is_not_shown() -> None:
    mask = Masker(["hunter2-hunter2"]).text
    leak = leak_in(said("the key is hunter2-hunter2"), {}, mask)
    assert leak is not None
    assert "hunter2" not in repr(leak)
    assert leak_in(said("hunter2-hunter2"), {"q": "hunter2-hunter2"}, mask) is None
