"""What audit, fuzz, lint, property and doctor stored, read back into what they had found.

Their JSON has the members that people know from elsewhere; here they are turned round again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.explore.lint.finding import (
    LINT_FORMAT,
    OWN_PROFILE,
    Finding,
    LintReport,
    Severity,
    Suggestion,
)
from mcptest.model.audit import AUDIT_FORMAT, AuditItem, AuditReport, Claim, Health, ItemKind
from mcptest.model.doctor import DOCTOR_FORMAT, Diagnosis, DoctorReport, RulesOnTheWay
from mcptest.model.errors import ExitCode
from mcptest.model.fuzz import FUZZ_FORMAT, FuzzedTool, FuzzFailure, FuzzReport, Verdict
from mcptest.model.message import ABSENT
from mcptest.model.property import PROPERTY_FORMAT, PropertyReport, PropertyResult
from mcptest.model.results import RunReport
from mcptest.model.revision import Revision
from mcptest.model.verdict import Severity as Keyword
from mcptest.report.results_json import decode

ExploredReport: TypeAlias = AuditReport | FuzzReport | LintReport | PropertyReport | DoctorReport


class _Head(msgspec.Struct, kw_only=True):
    """What all of them begin with."""

    tool: str = ""
    server: str = ""
    server_version: str = ""
    peer: str = ""
    transport: str = ""
    spec_version: str = ""
    spec_version_reason: str = ""
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    generated_at: str = ""
    duration_ms: int = 0
    restarts: int = 0

    def known(self) -> dict[str, Any]:
        """As the reports call it."""
        return {
            "tool": self.tool,
            "server": self.peer or self.server,
            "server_name": self.server,
            "server_version": self.server_version,
            "transport": self.transport,
            "revision": self.spec_version,
            "revision_reason": self.spec_version_reason,
            "notes": self.notes,
            "interrupted": self.interrupted,
            "started": self.generated_at,
            "duration_ms": self.duration_ms,
            "restarts": self.restarts,
        }


# -- audit ---------------------------------------------------------------------------------------


class _Audited(msgspec.Struct):
    status: Health
    tool: str = ""
    prompt: str = ""
    uri: str = ""
    uri_template: str = ""
    description: str = ""
    detail: str = ""
    is_error: bool = False
    worked: bool | None = None
    has_content: bool = False
    duration_ms: int = 0
    input: Mapping[str, Any] = {}
    claims: tuple[Claim, ...] = ()
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sent: str = ""
    received: str = ""
    stderr: tuple[str, ...] = ()
    repeat: str = ""

    def item(self, kind: ItemKind) -> AuditItem:
        found = AuditItem(
            kind=kind,
            name=self.tool or self.prompt or self.uri or self.uri_template,
            description=self.description,
            health=self.status,
            detail=self.detail,
            input=self.input,
            is_error=self.is_error,
            refuses_made_up=self.worked is False and not self.is_error,
            has_content=self.has_content,
            duration_ms=self.duration_ms,
            claims=self.claims,
            notes=self.notes,
            sent=self.sent,
            received=self.received,
            stderr=self.stderr,
            repeat=self.repeat,
        )
        # The output schema is the only finding that no claim gives.
        others = [one for one in self.findings if one not in found.findings]
        return replace(found, structured="; ".join(others))


class _Audit(_Head, kw_only=True):
    results: tuple[_Audited, ...] = ()
    prompts: tuple[_Audited, ...] = ()
    resources: tuple[_Audited, ...] = ()
    templates: tuple[_Audited, ...] = ()
    min_score: int | None = None
    problems: Mapping[str, str] = {}
    unreached: int = 0


def _audit(data: bytes, source: str) -> AuditReport:
    stored: _Audit = decode(data, _Audit, source)
    return AuditReport(
        **stored.known(),
        items=(
            *(one.item("tool") for one in stored.results),
            *(one.item("prompt") for one in stored.prompts),
            *(one.item("resource") for one in stored.resources),
            *(one.item("template") for one in stored.templates),
        ),
        problems=stored.problems,
        min_score=stored.min_score,
        unreached=stored.unreached,
    )


# -- fuzz ----------------------------------------------------------------------------------------


class _Failed(msgspec.Struct):
    label: str
    status: Verdict
    detail: str = ""
    duration_ms: int = 0
    category: str = ""
    valid: bool | None = None
    misfit: str = ""
    also: tuple[str, ...] = ()
    reproduced: bool = True
    tries: int = 0
    arguments: Any = ABSENT
    minimal: Any = ABSENT
    sent: str = ""
    received: str = ""
    stderr: tuple[str, ...] = ()
    repeat: str = ""

    def failure(self, tool: str) -> FuzzFailure:
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        told["verdict"] = told.pop("status")
        told["others"] = told.pop("also")
        told["again"] = told.pop("reproduced")
        return FuzzFailure(tool=tool, **told)


class _Tool(msgspec.Struct):
    tool: str
    runs: int = 0
    passed: int = 0
    failures: tuple[_Failed, ...] = ()
    categories: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()
    unchecked: str = ""
    duration_ms: int = 0
    reason: str = ""
    """Of one that was skipped."""

    def fuzzed(self) -> FuzzedTool:
        return FuzzedTool(
            name=self.tool,
            skipped=self.reason,
            runs=self.runs,
            passed=self.passed,
            failures=tuple(one.failure(self.tool) for one in self.failures),
            categories=self.categories,
            notes=self.notes,
            unchecked=self.unchecked,
            duration_ms=self.duration_ms,
        )


class _Fuzz(_Head, kw_only=True):
    seed: int = 0
    runs_per_tool: int = 0
    tools: tuple[_Tool, ...] = ()
    skipped: tuple[_Tool, ...] = ()
    problem: str = ""
    calls: int = 0
    unreached: int = 0


def _fuzz(data: bytes, source: str) -> FuzzReport:
    stored: _Fuzz = decode(data, _Fuzz, source)
    return FuzzReport(
        **stored.known(),
        seed=stored.seed,
        runs_per_tool=stored.runs_per_tool,
        tools=tuple(one.fuzzed() for one in (*stored.tools, *stored.skipped)),
        problem=stored.problem,
        calls=stored.calls,
        unreached=stored.unreached,
    )


# -- lint ----------------------------------------------------------------------------------------


class _Found(msgspec.Struct):
    tool: str
    code: str
    severity: Severity
    kind: str = "tool"
    title: str = ""
    message: str = ""
    field: str = ""
    fix: str = ""
    suggestion: Suggestion | None = None

    def finding(self) -> Finding:
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        return Finding(item=told.pop("tool"), **told)


class _Lint(_Head, kw_only=True):
    tools: int = 0
    prompts: int = 0
    resources: int = 0
    templates: int = 0
    tokens: int = 0
    findings: tuple[_Found, ...] = ()
    strict: bool = False
    profile: str = OWN_PROFILE
    threshold: int | None = None
    problems: Mapping[str, str] = {}


def _lint(data: bytes, source: str) -> LintReport:
    stored: _Lint = decode(data, _Lint, source)
    counts = {one: getattr(stored, one) for one in ("tools", "prompts", "resources", "templates")}
    return LintReport(
        server=stored.server,
        server_version=stored.server_version,
        peer=stored.peer,
        counts=counts,
        findings=tuple(one.finding() for one in stored.findings),
        problems=stored.problems,
        notes=stored.notes,
        strict=stored.strict,
        profile=stored.profile,
        threshold=stored.threshold,
        tokens=stored.tokens,
        interrupted=stored.interrupted,
        started=stored.generated_at,
        duration_ms=stored.duration_ms,
        tool=stored.tool,
    )


# -- property and doctor ---------------------------------------------------------------------------


class _Counted(msgspec.Struct):
    severity: Keyword
    counts: bool = False


class _Weighed(msgspec.Struct):
    counterexamples: tuple[_Counted, ...] = ()


class _Weights(msgspec.Struct):
    """Whether broken advice counted is stored with what it made count."""

    properties: tuple[_Weighed, ...] = ()

    def counted(self) -> Iterator[_Counted]:
        return (found for one in self.properties for found in one.counterexamples if found.counts)


class _Properties(_Head, kw_only=True):
    seed: int = 0
    properties: tuple[PropertyResult, ...] = ()


def _property(data: bytes, source: str) -> PropertyReport:
    stored: _Properties = decode(data, _Properties, source)
    weights: _Weights = decode(data, _Weights, source)
    return PropertyReport(
        **stored.known(),
        seed=stored.seed,
        properties=stored.properties,
        strict=any(one.severity is Keyword.SHOULD for one in weights.counted()),
    )


class _Named(msgspec.Struct, frozen=True):
    name: str = ""
    version: str = ""


class _Doctor(msgspec.Struct, rename={"older": "from", "newer": "to"}):
    older: Revision
    newer: Revision
    examined_in: Revision
    items: tuple[Diagnosis, ...]
    revision_reason: str = ""
    server: str = ""
    server_info: _Named = _Named()
    transport: str = ""
    tool: str = ""
    rules_on_the_way: RulesOnTheWay | None = None
    notes: tuple[str, ...] = ()
    requests: int = 0
    duration_ms: int = 0


def _doctor(data: bytes, source: str) -> DoctorReport:
    stored: _Doctor = decode(data, _Doctor, source)
    return DoctorReport(
        server=stored.server,
        transport=stored.transport,
        older=stored.older,
        newer=stored.newer,
        spoken=stored.examined_in,
        revision_reason=stored.revision_reason,
        items=stored.items,
        rules=stored.rules_on_the_way,
        server_name=stored.server_info.name,
        server_version=stored.server_info.version,
        tool=stored.tool,
        requests=stored.requests,
        duration_ms=stored.duration_ms,
        notes=stored.notes,
    )


READERS: Mapping[str, Callable[[bytes, str], ExploredReport]] = {
    AUDIT_FORMAT: _audit,
    FUZZ_FORMAT: _fuzz,
    LINT_FORMAT: _lint,
    PROPERTY_FORMAT: _property,
    DOCTOR_FORMAT: _doctor,
}
"""By what a file says it is. UsageError, with the place, for one that is not."""


def code_of_explored(report: ExploredReport) -> ExitCode:
    """The exit code that goes with what was found."""
    if isinstance(report, DoctorReport):
        return ExitCode.FAILED if report.breaks else ExitCode.OK
    if report.interrupted:
        return ExitCode.INTERRUPTED
    looked_at = _looked_at(report)
    if report.failed and (looked_at or not isinstance(report, AuditReport)):
        return ExitCode.FAILED
    return ExitCode.OK if looked_at else ExitCode.NOTHING_MATCHED


def _looked_at(report: AuditReport | FuzzReport | LintReport | PropertyReport) -> bool:
    if isinstance(report, AuditReport):
        return bool(report.tested or report.problems)
    if isinstance(report, FuzzReport):
        return bool(report.runs)
    if isinstance(report, LintReport):
        return bool(any(report.counts.values()) or report.problems)
    return bool(report.examples)


def explored_as_run(report: ExploredReport) -> RunReport:
    """As the results of tests, for the reports that know nothing else."""
    from mcptest.report.audit_run import audit_as_run
    from mcptest.report.doctor_run import doctor_as_run
    from mcptest.report.fuzz_run import fuzz_as_run
    from mcptest.report.lint_run import lint_as_run
    from mcptest.report.property_run import property_as_run

    if isinstance(report, AuditReport):
        return audit_as_run(report)
    if isinstance(report, FuzzReport):
        return fuzz_as_run(report)
    if isinstance(report, LintReport):
        return lint_as_run(report)
    if isinstance(report, PropertyReport):
        return property_as_run(report)
    return doctor_as_run(report)
