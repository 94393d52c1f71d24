"""Printing and writing what `compliance run` found: one path that is bad costs one report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from mcptest.cli.options import FORMS
from mcptest.cli.report_forms import Told, form, say_form
from mcptest.cli.unwritten import code_with_reports, say_unwritten
from mcptest.model.compliance import ComplianceReport, Judgement
from mcptest.model.errors import ExitCode
from mcptest.model.results import RunReport
from mcptest.model.show import in_one_line, show
from mcptest.report.terminal import Style, columns, say, say_json
from mcptest.report.write import write_all
from mcptest.run.lanes_results import COMPLIANCE, result_of_gate, results_of_judgement
from mcptest.suite.model import Place


def publish(
    arguments: argparse.Namespace,
    report: ComplianceReport,
    lost: Sequence[str] = (),
    *,
    captures_lent: bool = False,
) -> int:
    """Print and write everything that was asked for; gives the exit code.

    `lost` says what else could not be written. `captures_lent`: they are gone at the end, and only
    the page shows what is in them.
    """
    shown = _without_captures(report) if captures_lent else report
    unwritten = [*lost, *_write_files(arguments, report, shown)]
    code = code_with_reports(arguments, report.exit_code, unwritten)
    printed = report if arguments.format == "html" else shown
    notes = (*printed.notes, *unwritten)
    _print(arguments, replace(printed, notes=notes, exit_code=code))
    say_unwritten(unwritten)
    return code


def _without_captures(report: ComplianceReport) -> ComplianceReport:
    judgements = tuple(replace(one, captures=()) for one in report.judgements)
    return replace(report, judgements=judgements)


def _write_files(
    arguments: argparse.Namespace, report: ComplianceReport, shown: ComplianceReport
) -> list[str]:
    return write_all(
        (getattr(arguments, name), partial(render, report if name == "html" else shown, arguments))
        for name, render in _RENDERERS.items()
    )


def _print(arguments: argparse.Namespace, report: ComplianceReport) -> None:
    wanted = "json" if arguments.json else arguments.format
    if wanted == "text":
        _print_text(arguments, report)
    elif wanted in ("agent", "tap"):
        code = report.exit_code
        say_form(arguments, _told(report, arguments), failed=bool(code), code=code)
    else:
        name = {"json": "json_file", "md": "markdown"}.get(wanted, wanted)
        say_json(sys.stdout, _RENDERERS[name](report, arguments))
    sys.stdout.flush()


def _print_text(arguments: argparse.Namespace, report: ComplianceReport) -> None:
    from mcptest.report.compliance_text import compliance_lines

    style = Style.of(sys.stdout, no_color=arguments.no_color)
    width = columns(100)
    lines = (
        _brief_lines(report)
        if arguments.quiet
        else compliance_lines(report, style, verbose=arguments.verbose, width=width)
    )
    for line in lines:
        say(sys.stdout, line + "\n")


def _brief_lines(report: ComplianceReport) -> Iterator[str]:
    """With --quiet: the grade, what is broken, the gates."""
    from mcptest.report.compliance_facts import counted, gate_line, letter_of

    for judgement in report.judgements:
        letter = f"{letter_of(judgement.grade)}, " if judgement.grade is not None else ""
        broken = [result.id for result in judgement.failures]
        told = f": {', '.join(broken)}" if broken else ""
        yield f"{judgement.revision.label}: {letter}{counted(len(broken), 'rule')} failed{told}"
        for cause in filter(lambda one: one.kept_from_judging, judgement.causes):
            yield f"{show(cause.id, 60)}: {in_one_line(cause.message, 300)}"
    yield from map(gate_line, report.gates)


def _as_json(report: ComplianceReport, _arguments: argparse.Namespace) -> bytes:
    from mcptest.report.compliance_json import compliance_as_json

    return compliance_as_json(report)


def _as_markdown(report: ComplianceReport, _arguments: argparse.Namespace) -> bytes:
    from mcptest.report.compliance_markdown import compliance_as_markdown

    return compliance_as_markdown(report).encode("utf-8", "backslashreplace")


def _as_html(report: ComplianceReport, _arguments: argparse.Namespace) -> bytes:
    from mcptest.report.html.making import page_of

    captures = (path for one in report.judgements for path in one.captures)
    return page_of(
        report, captures, code=report.exit_code, name="mcptest compliance run", by_rules=False
    )


def _as_junit(report: ComplianceReport, arguments: argparse.Namespace) -> bytes:
    from mcptest.report import junit

    return junit.render(as_run(report, str(arguments.from_suite or ""), strict=arguments.strict))


def _lane(judgement: Judgement, *, several: bool) -> str:
    return f"{COMPLIANCE} {judgement.revision.label}" if several else COMPLIANCE


def as_run(report: ComplianceReport, file: str, *, strict: bool) -> RunReport:
    """The same verdicts as results of tests."""
    several = len(report.judgements) > 1
    results = [
        result
        for one in report.judgements
        for result in results_of_judgement(
            one,
            Place(file),
            lane=_lane(one, several=several),
            strict=strict,
            server=report.server,
        )
    ]
    results += [result_of_gate(gate, Place(file)) for gate in report.gates]
    return RunReport(
        results=tuple(results),
        tool=report.tool,
        started=report.started,
        duration_ms=report.duration_ms,
        interrupted=report.exit_code == ExitCode.INTERRUPTED,
        notes=report.notes,
    )


def _told(report: ComplianceReport, arguments: argparse.Namespace) -> Told:
    from mcptest.report.compliance_facts import letter_of
    from mcptest.report.problems_compliance import excused_in, problems_of_compliance

    file = str(arguments.from_suite or "")
    several = len(report.judgements) > 1
    grades = [
        f"{one.revision.label} grade {letter_of(one.grade)}"
        for one in report.judgements
        if one.grade is not None
    ]
    return Told(
        run=lambda: as_run(report, file, strict=arguments.strict),
        problems=lambda: problems_of_compliance(report, file),
        excused={
            f"{_lane(one, several=several)} {name}": why
            for one in report.judgements
            for name, why in excused_in(one, report).items()
        },
        headline=", ".join(grades),
    )


def _as_form(name: str) -> Callable[[ComplianceReport, argparse.Namespace], bytes]:
    return lambda report, arguments: form(name, _told(report, arguments))


_RENDERERS: Mapping[str, Callable[[ComplianceReport, argparse.Namespace], bytes]] = {
    "json_file": _as_json,
    "markdown": _as_markdown,
    "html": _as_html,
    "junit": _as_junit,
    **{name: _as_form(name) for name in FORMS},
}
