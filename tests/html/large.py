"""A page of a size that nobody reads and everybody searches: for tests, and for measuring."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.core.capture import AnyRecord, Closed, Frame, Opened, Stderr
from mcptest.core.errors import ExitCode
from mcptest.core.results import FailedCheck, Proof, RunReport, Status
from mcptest.core.results import TestResult as Result
from mcptest.report.html.building import Pictures
from mcptest.report.stored import Stored
from mcptest.wire.capture_forms import SessionSource

RESULTS = 10_000
MESSAGES = 100_000
FILE = "large.jsonl"


def large_page(results: int = RESULTS, messages: int = MESSAGES) -> bytes:
    """The session rules are judged elsewhere, and take longer than the page."""
    pictures = Pictures()
    source = SessionSource("large", FILE, "full", records(messages), transport="stdio")
    pictures.add(source, by_rules=False)
    run = RunReport(results=tuple(map(result, range(results))), started="2026-11-16T00:00:00Z")
    return pictures.page([Stored("run.json", run)], ExitCode.FAILED)


def records(messages: int) -> Iterator[tuple[int, AnyRecord]]:
    yield 0, Opened(server_label="large", transport="stdio")
    yield 1, Stderr(t=0.0, text="hello")
    for number in range(messages // 2):
        t = number / 1000
        asked = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number
        answer = b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number
        yield 2 * number + 2, Frame(t=t, sender="client", raw=asked)
        yield 2 * number + 3, Frame(t=t + 0.0005, sender="server", raw=answer)
    yield messages + 2, Closed(t=100.0)


def result(number: int) -> Result:
    if number % 10:
        return Result(f"test {number}", Status.PASS, duration_ms=number % 90, file="evals/a.yaml")
    check = FailedCheck("equals", "not equal", '{"a":1,"b":2}', '{"a":1,"b":3}')
    return Result(
        f"test {number}",
        Status.FAIL,
        detail=f"not equal: {number}",
        file="evals/b.yaml",
        failures=(check,),
        proof=Proof(request='{"id":1}', capture=FILE),
    )
