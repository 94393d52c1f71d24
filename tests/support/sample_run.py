"""Runs that the tests of reports share, and the worst text that a peer could send."""

from __future__ import annotations

from mcptest.core.results import FailedCheck, Proof, Regression, RunReport, Status
from mcptest.core.results import TestResult as Result

READ = Result(
    name="read_file returns file contents",
    status=Status.PASS,
    duration_ms=39,
    file="evals/read_file.yaml",
    line=1,
    server="secure-filesystem-server 0.2.0",
    revision="2025-11-25",
)
SUM = Result(
    name="get-sum adds two numbers",
    status=Status.FAIL,
    detail="expected exact match:\n  want: The sum of 2 and 3 is 5.\n"
    "  got:  The sum of 2 and 3 is 6.",
    duration_ms=1240,
    file="evals/math.yaml",
    line=14,
    kind="check",
    failures=(
        FailedCheck(
            "equals",
            "expected exact match:\n  want: The sum of 2 and 3 is 5.\n"
            "  got:  The sum of 2 and 3 is 6.",
            expected="The sum of 2 and 3 is 5.",
            actual="The sum of 2 and 3 is 6.",
        ),
        FailedCheck("max_duration", "took 1.24s", expected="at most 1s", actual="1.24s"),
    ),
    proof=Proof(
        request='{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get-sum",'
        '"arguments":{"a":2,"b":3}}}',
        response='{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text",'
        '"text":"The sum of 2 and 3 is 6."}]}}',
        stderr=("Starting default (STDIO) server...", "warning: sum is slow today"),
        repeat="mcptest run evals/math.yaml -k 'get-sum adds two numbers'",
    ),
    server="everything 2.0.0",
    revision="2025-11-25",
)
CRASH = Result(
    name="echo survives an empty message",
    status=Status.FAIL,
    detail="tool call echo failed: the server exited with code 1 before it answered",
    duration_ms=212,
    file="evals/echo.yaml",
    line=3,
    kind="crash",
    proof=Proof(
        request='{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo",'
        '"arguments":{"message":""}}}',
        stderr=("Traceback (most recent call last):", "ValueError: empty message"),
        exit="code 1",
        repeat="mcptest run evals/echo.yaml",
    ),
)
SKIPPED = Result(
    name="search finds the issue",
    status=Status.SKIP,
    detail="GITHUB_TOKEN is not set",
    file="evals/search.yaml",
    line=1,
)

RUN = RunReport(
    results=(READ, SUM, CRASH, SKIPPED),
    tool="mcptest 0.1.0",
    started="2026-11-15T09:30:00Z",
    duration_ms=1530,
)


def trial(name: str, number: int, status: Status, **more: str) -> Result:
    detail = 'expected response to contain "ok"' if status is Status.FAIL else ""
    return Result(name=name, status=status, trial=number, detail=detail, duration_ms=20, **more)


TRIALS = RunReport(
    results=tuple(
        trial(name, number, Status.PASS if passes else Status.FAIL, file="evals/trials.yaml")
        for name, outcomes in {"steady": "++++", "wobbly": "+-+-", "broken": "----"}.items()
        for number, passes in enumerate((outcome == "+" for outcome in outcomes), 1)
    ),
    tool="mcptest 0.1.0",
    started="2026-11-15T09:30:00Z",
    duration_ms=240,
    trials=4,
    regressions=(Regression("wobbly", "PASS", "FAIL"),),
    notes=("baseline: no test named 'gone' (save the baseline again)",),
)

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m\x85\x00\x7f",
    "::error file=x::owned",
    "a\n::set-output name=x::y\n  ##[error]owned\r::warning::z",
    "##vso[task.setvariable variable=x]y ##teamcity[buildStop]",
    "\u202eevil\u2066\u200b\u200d\u2028::error::x\u2029::error::y",
    "]]> --> -- <!-- <script>alert(1)</script> &amp; &#0; <![CDATA[",
    "\ud800 lone \udfff surrogates \ufffe\uffff\U0001fffe",
    "| a | b |\\| `` ``` ```` ` ~~~",
    "@octocat #1 ![x](http://evil/i.png) [x](javascript:1) www.evil.com a@b.co $x$ :tada:",
    "</code></details>\n\n# owned\n```\n| x |",
    "%0A::error::x %25 ,:=",
    "e\u0301\u0301\u0301 漢字 \U0001f600 \uff46\uff55",
    "\\\\| \\u0041 \\x1b",
    "",
    "   ",
    "x" * 1_000_000,
    "::" * 500_000,
    "\n" * 1_000_000,
    "\x1b" * 1_000_000,
    "`" * 100_000,
)


def hostile_result(text: str, status: Status = Status.FAIL, number: int = 1) -> Result:
    """A result in which every text is the peer's."""
    return Result(
        name=text,
        status=status,
        detail=text,
        duration_ms=5,
        language=text[:2_000],
        trial=number,
        file=text,
        line=3,
        kind=text[:2_000],
        failures=(
            FailedCheck(text, text, expected=text, actual=text, pointer=text),
            FailedCheck("b", text + "b", expected="x", actual=text),
        ),
        proof=Proof(text, text, (text, "tail", text), text, text, text),
        tags=(text[:100],),
        server=text,
        revision=text,
        note=text,
    )


def hostile_run(text: str, *, trials: int = 1, interrupted: bool = False) -> RunReport:
    return RunReport(
        results=tuple(
            hostile_result(text, status, number + 1)
            for number in range(trials)
            for status in Status
        ),
        tool=text[:2_000],
        started=text[:2_000],
        duration_ms=7,
        trials=trials,
        interrupted=interrupted,
        regressions=(Regression(text, text[:2_000], text[:2_000], text[:2_000]),),
        notes=(text, "second"),
    )
