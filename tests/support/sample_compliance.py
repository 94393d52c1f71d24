"""Judged servers that the tests of compliance reports share."""

from __future__ import annotations

from typing import Any

from mcptest.core.judgement import (
    Evidence,
    GateResult,
    Grade,
    Judgement,
    Profile,
    RootCause,
    RuleResult,
    SectionScore,
)
from mcptest.core.revision import Revision
from mcptest.core.verdict import Finding, Outcome, Severity
from mcptest.report.compliance.compliance_report import ComplianceReport

NEWEST = Revision.V2025_11_25
URL = "https://modelcontextprotocol.io/specification/2025-11-25/server/tools#structured-content"
COMMAND = "mcptest compliance run --server 'npx my-server /data'"


def rule_result(
    name: str, outcome: Outcome = Outcome.PASS, *, section: str = "tools", **more: Any
) -> RuleResult:
    """One judged rule; whatever is not given is plausible."""
    given: dict[str, Any] = {
        "title": f"what {name} asks for holds",
        "severity": Severity.MUST,
        "observed": int(outcome in {Outcome.PASS, Outcome.FAIL}),
        "requirement": f"The server does what {name} asks for.",
        "url": URL,
        "repeat": f"{COMMAND} --rule {name}",
    }
    return RuleResult(id=name, section=section, outcome=outcome, **{**given, **more})


STRUCTURED = rule_result(
    "TOOLS-004",
    Outcome.FAIL,
    title="structuredContent is an object",
    requirement="In these revisions structuredContent is a JSON object and nothing else, so "
    "that every client can read it.",
    fix="Wrap a list or a number in an object.",
    findings=(
        Finding(
            "result.structuredContent: it is an array",
            expected="of type object",
            actual="[21]",
            pointer="/result/structuredContent",
        ),
    ),
    evidence=(
        Evidence(
            '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"weather"}}',
            '{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":[21]}}',
        ),
    ),
)
SOFT = rule_result(
    "PROTO-005",
    Outcome.FAIL,
    section="lifecycle",
    severity=Severity.SHOULD,
    title="the counter-offer is the newest version of the server",
    requirement="The version in the counter-offer is the newest that the server has.",
    url="https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle"
    "#version-negotiation",
    fix="Sort your versions and offer the last.",
    findings=(Finding("probe.counter_offer_is_newest: expected true, got false"),),
    evidence=(
        Evidence(
            '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01"}}',
            '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}',
        ),
    ),
)
RESULTS = (
    rule_result("PROTO-002", section="lifecycle"),
    SOFT,
    rule_result("TOOLS-001"),
    STRUCTURED,
    rule_result(
        "TOOLS-009",
        Outcome.NOT_OBSERVED,
        reason="no tool could be called",
        unlocked_by="a tool that says it is read-only, or one named with --allow-tool",
    ),
    rule_result("TOOLS-012", Outcome.NOT_OBSERVED, unlocked_by="the fixture embedding_tool"),
    rule_result(
        "PROMPT-103",
        Outcome.NOT_APPLICABLE,
        section="prompts",
        reason="the server does not declare prompts",
    ),
    rule_result(
        "RES-105",
        Outcome.INCONCLUSIVE,
        section="resources",
        reason="the server was gone",
        cause="exited",
    ),
)
GRADE = Grade(
    "B+",
    87.31,
    (
        SectionScore("lifecycle", "A", 92.0, passed=1, failed=1),
        SectionScore("resources", "", 0.0),
        SectionScore("tools", "D", 61.25, passed=1, failed=1, not_observed=2),
    ),
    ("a broken MUST keeps it below A",),
)
EXITED = RootCause(
    "exited",
    "the server exited with code 1 after resources/read",
    hint="Run it by hand and read its stderr.",
    evidence=(Evidence('{"jsonrpc":"2.0","id":9,"method":"resources/read"}', ""),),
    kept_from_judging=1,
)


def judgement(revision: Revision = NEWEST, **more: Any) -> Judgement:
    given: dict[str, Any] = {
        "transport": "stdio",
        "results": RESULTS,
        "profile": Profile("0.1.0", "3f9ab2c1", revision),
        "server_name": "weather",
        "server_version": "2.1.0",
        "causes": (EXITED,),
        "grade": GRADE,
        "requests": 311,
        "duration_ms": 1_420,
    }
    return Judgement(revision=revision, **{**given, **more})


def report_of(*judgements: Judgement, **more: Any) -> ComplianceReport:
    given: dict[str, Any] = {
        "server": "npx my-server /data",
        "tool": "mcptest 0.1.0",
        "started": "2026-11-15T09:30:00Z",
        "duration_ms": 1_500,
        "exit_code": 1,
    }
    return ComplianceReport(judgements=judgements or (judgement(),), **{**given, **more})


GATES = (
    GateResult("spec_version_check", True, "v2025-11-25 -> v2026-07-28: 0 changed"),
    GateResult(
        "grade_delta", False, "the grade fell from A- to B+", ("tools: A -> D", "RES-105 is new")
    ),
)
SAMPLE = report_of(gates=GATES, notes=("TOOLS-009 needs a tool that may be called",))
HEALTHY = report_of(
    judgement(
        results=tuple(rule_result(f"TOOLS-{number:03}") for number in range(1, 6)),
        causes=(),
        grade=Grade("A+", 100.0, (SectionScore("tools", "A+", 100.0, passed=5),)),
    ),
    exit_code=0,
)
ONE_RULE = report_of(judgement(results=(STRUCTURED,), causes=(), grade=None, whole_corpus=False))


def several_revisions() -> ComplianceReport:
    """TOOLS-004 is new in 2025-06-18 and fails there; TOOLS-001 moves; PROTO-002 never does."""
    first = judgement(
        Revision.V2024_11_05,
        results=(
            rule_result("PROTO-002", section="lifecycle"),
            rule_result("TOOLS-001", Outcome.NOT_OBSERVED, unlocked_by="a tool"),
        ),
        causes=(),
        grade=Grade("A+", 100.0),
    )
    second = judgement(
        Revision.V2025_06_18,
        results=(rule_result("PROTO-002", section="lifecycle"), SOFT, STRUCTURED),
        causes=(),
    )
    return report_of(first, second, judgement(), gates=GATES)


def hostile_report(text: str, *, revisions: int = 1) -> ComplianceReport:
    """A report in which every text is the peer's."""
    evidence = (Evidence(text, text),) * 3
    finding = Finding(text, 3, text, text + "e", text + "a", text, text)
    results = tuple(
        RuleResult(
            id=text,
            title=text,
            section=text,
            severity=severity,
            outcome=outcome,
            reason=text,
            findings=(finding,) * 4,
            evidence=evidence,
            observed=1,
            requirement=text,
            url=text,
            fix=text,
            unlocked_by=text,
            cause=text if outcome is Outcome.INCONCLUSIVE else "",
            repeat=text,
        )
        for outcome in Outcome
        for severity in (Severity if outcome is Outcome.FAIL else [Severity.MUST])
    )
    judged = tuple(
        Judgement(
            revision=revision,
            transport=text,
            results=results,
            profile=Profile(text, text, revision),
            server_name=text,
            server_version=text,
            causes=(RootCause(text, text, text, evidence, 7),),
            grade=Grade(text, 50.0, (SectionScore(text, text, 50.0, 1, 1, 1),), (text,)),
            requests=3,
            duration_ms=3,
            notes=(text,),
            captures=(text,),
        )
        for revision in list(Revision)[-revisions:]
    )
    gate = GateResult(text, passed=False, detail=text, lines=(text, text))
    return ComplianceReport(
        server=text, judgements=judged, gates=(gate,), tool=text, started=text, notes=(text,)
    )
