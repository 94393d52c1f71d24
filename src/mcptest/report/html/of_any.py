"""Any stored report as a source of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcptest.explore.lint.finding import LintReport
from mcptest.model.audit import AuditReport
from mcptest.model.compliance import ComplianceReport
from mcptest.model.conformance import ConformanceReport
from mcptest.model.doctor import DoctorReport
from mcptest.model.fuzz import FuzzReport
from mcptest.model.property import PropertyReport
from mcptest.model.results import RunReport
from mcptest.report.html.facts import Source
from mcptest.report.html.of_attack import source_of_fuzz, source_of_property
from mcptest.report.html.of_audit import source_of_audit, source_of_lint
from mcptest.report.html.of_compliance import source_of_compliance
from mcptest.report.html.of_conformance import source_of_conformance
from mcptest.report.html.of_doctor import source_of_doctor
from mcptest.report.html.of_run import source_of_run
from mcptest.report.html.of_session import source_of_sessions
from mcptest.report.html.places import Places
from mcptest.report.stored import Stored

_MAKERS: Mapping[type, Callable[[Any, str, int, Places], Source]] = {
    RunReport: source_of_run,
    ComplianceReport: source_of_compliance,
    ConformanceReport: source_of_conformance,
    AuditReport: source_of_audit,
    LintReport: source_of_lint,
    FuzzReport: source_of_fuzz,
    PropertyReport: source_of_property,
    DoctorReport: source_of_doctor,
}
"""Another kind of report is one line here, and one in what reads it (`report.stored`)."""


def source_of(stored: Stored, places: Places) -> Source:
    make = _MAKERS.get(type(stored.report), source_of_sessions)
    return make(stored.report, stored.file, int(stored.exit_code), places)
