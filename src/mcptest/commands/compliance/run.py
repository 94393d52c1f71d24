"""What `mcptest compliance run` does: what is judged, and what it is held against."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from mcptest.commands.command_line import options_again, repeat_line, server_options
from mcptest.commands.live_display import live_progress
from mcptest.commands.options import (
    check_grade,
    duration,
    limit_of,
    named_target,
    pairs,
    startup_of,
    wanted_revision,
)
from mcptest.commands.reporting import captures_for_html, conclude, page_of
from mcptest.commands.server_options import ended_before_meeting, ending_for_people, out_of_time
from mcptest.commands.suite_command import choice_of
from mcptest.core.errors import ExitCode, PeerError, UsageError
from mcptest.core.judgement import (
    CUT_SHORT,
    SCORECARD_FORMAT,
    GateResult,
    Judgement,
    PastRun,
    Scorecard,
)
from mcptest.core.redaction import redaction
from mcptest.core.results import made_since
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.probe.compliance.judging import Tell, spoken_revisions
from mcptest.probe.compliance.site import Order
from mcptest.probe.lanes import (
    JudgedBlock,
    SuiteServer,
    check_names,
    check_rules,
    judge_block,
    narrowed,
    server_of_suite,
)
from mcptest.probe.suites.settings import ServerChoice
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.compliance.text import JudgingProgress
from mcptest.report.scorecards import (
    earlier_scorecard,
    history_beside,
    read_history,
    refuse_other_file,
    save_history,
    save_scorecard,
)
from mcptest.rules.corpus.known_failures import (
    KnownFailures,
    hold_against,
    known_failures_from,
    load_known_failures,
)
from mcptest.rules.corpus.probes import known_fixtures
from mcptest.rules.grading import exit_code_for, min_grade_gate
from mcptest.session.connection import Stopped
from mcptest.suite.lane_blocks import ComplianceBlock, Lanes
from mcptest.suite.load import load_suites
from mcptest.suite.reading import did_you_mean
from mcptest.suite.reading import render as render_problem
from mcptest.transport.files import replace_file
from mcptest.transport.interrupt import Stop, stopping_on_signals

_INTERRUPTED = "interrupted: the report is incomplete"


def judge_live(arguments: argparse.Namespace) -> int:
    check(arguments)
    with captures_for_html(arguments) as lent:
        case = case_of(arguments, corpora_of(arguments))
        standards = standards_of(arguments, case)
        # Until the reports are written: a signal must not cost them.
        with stopping_on_signals() as stop:
            stop.limit = limit_of(arguments)
            with ending_for_people(arguments, stop):
                report, graded = _judge(arguments, case, standards, stop)
            lost = [] if _is_cut_short(report.judgements) else [*standards.keep(report, graded)]
            shown = report
            if lent:  # the captures are gone at the end, and only the page shows what is in them
                uncaptured = (replace(one, captures=()) for one in report.judgements)
                shown = replace(report, judgements=tuple(uncaptured))
            nothing = "nothing was judged: no rule was observed and no gate was set"
            page = partial(_as_html, report)
            return conclude(arguments, shown, nothing=nothing, page=page, lost=lost)


def _as_html(report: ComplianceReport) -> bytes:
    captures = (path for one in report.judgements for path in one.captures)
    return page_of(report, captures, name="mcptest compliance run", by_rules=False)


def _judge(
    arguments: argparse.Namespace, case: ComplianceCase, standards: Standards, stop: Stop
) -> tuple[ComplianceReport, Judgement | None]:
    began = time.monotonic()
    with live_progress(arguments, 0) as progress:
        found, notes = _judge_all(case, standards, stop, JudgingProgress(progress))
    judgements = tuple(one for block in found for one in block.judgements)
    cut_short = stop.is_set() or _is_cut_short(judgements)
    if stop.is_out_of_time and not judgements and case.order is not None:
        raise ended_before_meeting(arguments, stop)
    graded = next((block.graded for block in found if block.graded is not None), None)
    gates = tuple(gate for one in found for gate in one.gates)
    if not cut_short:  # half a run is not held against anything
        gates += tuple(standards.gates(judgements, graded))
    code = exit_code_for(
        judgements, gates, strict=arguments.strict, excused=standards.baseline is not None
    )
    if stop.is_set():
        code, notes = ExitCode.INTERRUPTED, [*notes, _INTERRUPTED]
    elif cut_short:
        code, notes = ExitCode.FAILED, [*notes, out_of_time(arguments)]
    report = ComplianceReport(
        server=case.label,
        judgements=judgements,
        gates=gates,
        notes=(*case.notes, *notes, *(note for one in found for note in one.notes)),
        exit_code=code,
        suite=str(arguments.from_suite or ""),
        strict=arguments.strict,
        **made_since(began),
    )
    return report, graded


def _is_cut_short(judgements: Sequence[Judgement]) -> bool:
    return any(CUT_SHORT in one.notes for one in judgements)


def _judge_all(
    case: ComplianceCase, standards: Standards, stop: Stop, tell: Tell
) -> tuple[list[JudgedBlock], list[str]]:
    """Once for every revision that was asked for. One that fails leaves what was found before."""
    found: list[JudgedBlock] = []
    notes: list[str] = []
    unreachable: PeerError | None = None
    judge = partial(
        judge_block,
        corpora=case.corpora,
        before=standards.before,
        needs_grade=standards.needs_grade,
    )
    with contextlib.suppress(Stopped):  # what was found before it is told
        for order in case.orders(stop.is_over):
            try:
                found.append(judge(case.block, order, tell))
            except PeerError as error:
                unreachable = unreachable or error
                revision = order.revision if order is not None else None
                whom = revision.label if revision is not None else "the server"
                notes.append(f"{whom} was not judged: {error.message}")
    if unreachable is not None and not any(one.judgements for one in found):
        raise unreachable
    return found, notes


def check(arguments: argparse.Namespace) -> None:
    """UsageError for options that don't go together. Nothing was run."""
    names_server = arguments.server is not None or bool(arguments.server_command)
    if arguments.from_suite is None and not names_server:
        raise UsageError(
            "no server is named",
            hint='name one: demo, "npx my-server", http://…/mcp, --from-suite FILE, '
            "or the command after --",
        )
    if arguments.update_baseline and arguments.baseline is None:
        raise UsageError("--update-baseline requires --baseline")
    check_grade(arguments.min_grade)
    for option in ("min_grade", "save_scorecard") if arguments.rule else ():
        if getattr(arguments, option):
            word = option.replace("_", "-")
            raise UsageError(f"--{word} requires all rules: remove --rule")


def corpora_of(arguments: argparse.Namespace) -> Path | None:
    """The folder of the registry that was named."""
    if arguments.registry is None:
        return None
    path = Path(arguments.registry)
    folder = path if path.is_dir() else path.parent
    if not (folder / "registry.yml").is_file():
        raise UsageError(f"no such registry: {show(str(path), 200)}")
    return folder


def fixtures_of(arguments: argparse.Namespace) -> dict[str, str]:
    given = pairs(arguments.map, "--map")
    for name in given:
        if name not in known_fixtures():
            hint = did_you_mean(name, sorted(known_fixtures()))
            raise UsageError(f"--map: unknown fixture {show(name, 60)}", hint=hint)
    return given


_ASKED_AGAIN = ("allow_tool", "map", "registry", "timeout", "startup_timeout")


def repeat_command(arguments: argparse.Namespace, revision: str = "") -> str:
    """This command line again, without secrets, to which ` --rule ID` can be appended."""
    words = ["mcptest", "compliance", "run", *options_again(arguments, "from_suite")]
    words += server_options(arguments)
    words += ["--spec-version", revision] if revision else []
    words += options_again(arguments, *_ASKED_AGAIN)
    return redaction.masker.text(repeat_line(words, arguments))


_ALL = "all"


@dataclass(frozen=True, slots=True)
class ComplianceCase:
    arguments: argparse.Namespace
    block: ComplianceBlock
    label: str
    """How the server is called, without secrets."""
    order: Order | None = None
    """None when nothing is asked of a server."""
    corpora: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def every_revision(self) -> bool:
        return bool(self.arguments.spec_version == _ALL)

    def orders(self, should_stop: Callable[[], bool]) -> Iterator[Order | None]:
        """One for each revision; the server is asked which it speaks, where all are wanted."""
        if self.order is None:
            yield None
            return
        order = replace(self.order, should_stop=should_stop)
        if not self.every_revision:
            yield order
            return
        for revision in spoken_revisions(order):
            repeat = repeat_command(self.arguments, revision.value)
            because = "one that the server speaks"
            yield replace(order, revision=revision, because=because, repeat=repeat)


def case_of(arguments: argparse.Namespace, corpora: Path | None) -> ComplianceCase:
    """UsageError for whatever can't be understood. Nothing is started here."""
    if arguments.from_suite is not None:
        return _from_suite(arguments, corpora)
    version = arguments.spec_version
    revision = None if version == _ALL else wanted_revision(version)
    check_rules(arguments.rule, revision, corpora)
    server = SuiteServer(named_target(arguments), revision)
    return _case(arguments, corpora, ComplianceBlock(), server)


def _case(
    arguments: argparse.Namespace, corpora: Path | None, block: ComplianceBlock, server: SuiteServer
) -> ComplianceCase:
    asked = server.revision.value if server.revision and arguments.from_suite is None else ""
    captures: Path | None = arguments.save_capture
    if captures is not None:
        try:
            captures.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write captures to {captures}: {error.strerror}") from None

    order = Order(
        target=server.target,
        revision=server.revision,
        rules=tuple(arguments.rule) if block.tests is None else (),
        allow_tools=tuple(arguments.allow_tool),
        fixtures={**block.fixtures, **fixtures_of(arguments)},
        timeout=duration(arguments.timeout, "--timeout"),
        startup=startup_of(arguments),
        corpora=corpora,
        captures=captures,
        repeat=repeat_command(arguments, asked),
    )
    label = arguments.server_label or show(redaction.masker.text(server.target.label), 120)
    return ComplianceCase(arguments, block, label, order if block.needs_server else None, corpora)


def _from_suite(arguments: argparse.Namespace, corpora: Path | None) -> ComplianceCase:
    file = str(arguments.from_suite)
    if Path(file).is_dir():
        raise UsageError(f"--from-suite takes a file, not a folder: {file}")
    given = arguments.server is not None or bool(arguments.server_command)
    # What its tests need is not asked here, so a fixture counts as given.
    loaded = load_suites([file], fixture=file, server_given=given)
    for problem in loaded.warnings:
        sys.stderr.write(render_problem(problem) + "\n")
    lanes = loaded.lanes[0] if loaded.lanes else Lanes(file)
    block = lanes.compliance
    if block is None:
        raise UsageError(
            f"{arguments.from_suite} has no compliance block",
            hint="add compliance: to the suite, or judge a server without a suite",
        )
    check_names([lanes], corpora)
    _check_wishes(arguments, block, corpora)
    asked = bool(arguments.rule)
    block = narrowed(block, arguments.rule)
    if not block.needs_server:
        label = arguments.server_label or show(file, 200)
        return ComplianceCase(arguments, block, label, corpora=corpora)
    server = server_of_suite(lanes.server, _choice(arguments), "")
    server = SuiteServer(server.target, block.spec_version or server.revision)
    case = _case(arguments, corpora, block, server)
    note = "only the tests named by --rule ran; gates did not"
    return dataclasses.replace(case, notes=(*case.notes, note)) if asked else case


def _choice(arguments: argparse.Namespace) -> ServerChoice:
    asked = "" if arguments.spec_version in {"auto", _ALL} else arguments.spec_version
    others = {"docker": "", "save_capture": None, "spec_version": asked}
    named = argparse.Namespace(**{**vars(arguments), **others})
    return choice_of(named, arguments.server, tuple(arguments.server_command))


def _check_wishes(
    arguments: argparse.Namespace, block: ComplianceBlock, corpora: Path | None
) -> None:
    """What the command line asks must fit what the suite says."""
    pinned, version = block.spec_version, arguments.spec_version
    if pinned is not None and version != "auto":
        wanted: Revision | None = None if version == _ALL else wanted_revision(version)
        if wanted is not pinned:
            raise UsageError(
                f"the suite pins {pinned.label}, and --spec-version says {show(version, 40)}",
                hint="change compliance.spec_version, or remove --spec-version",
            )
    if block.tests is None:
        check_rules(arguments.rule, pinned, corpora)
        return
    names = [test.name for test in block.tests]
    for name in arguments.rule:
        if name not in names:
            raise UsageError(
                f"--rule: the suite has no test {show(name, 60)}", hint=did_you_mean(name, names)
            )


@dataclass(frozen=True, slots=True)
class BaselineInUse:
    path: Path
    known: KnownFailures
    history: tuple[PastRun, ...] = ()
    is_written_anew: bool = False

    def keep(self, judgements: Sequence[Judgement]) -> None:
        if self.is_written_anew:
            replace_file(self.path, known_failures_from(judgements, self.known).encode())
        history = self.history
        for judgement in judgements:
            history = save_history(history_beside(self.path), self.known, judgement, history)


@dataclass(frozen=True, slots=True)
class Standards:
    """Everything that was read before the server was started, so that a mistake costs nothing."""

    arguments: argparse.Namespace
    before: Scorecard | None
    baseline: BaselineInUse | None

    @property
    def needs_grade(self) -> bool:
        return bool(self.arguments.save_scorecard or self.arguments.min_grade)

    def gates(
        self, judgements: Sequence[Judgement], graded: Judgement | None
    ) -> Iterator[GateResult]:
        several = len(judgements) > 1
        for one in judgements:
            if self.baseline is not None:
                used = self.baseline
                gate = GateResult("baseline", True, f"written anew: {used.path}")
                if not used.is_written_anew:
                    gate = hold_against(used.known, one, used.history)
                yield _with_revision(gate, one, several=several)
        for one in judgements if several or graded is None else [graded]:
            if wanted := self.arguments.min_grade:
                yield _with_revision(min_grade_gate(wanted, one), one, several=several)

    def keep(self, report: ComplianceReport, graded: Judgement | None) -> Iterator[str]:
        """Write what later runs are held against; gives a sentence for what can't be written."""
        path, label = self.arguments.save_scorecard, report.server
        if path is not None and graded is not None:
            yield from _write_or_say_why("scorecard", lambda: save_scorecard(path, graded, label))
        if self.baseline is not None and report.judgements:
            used = self.baseline
            yield from _write_or_say_why("baseline", lambda: used.keep(report.judgements))


def _write_or_say_why(what: str, write: Callable[[], None]) -> Iterator[str]:
    try:
        write()
    except (UsageError, OSError) as error:
        yield f"the {what} was not written: {error}"


def _with_revision(gate: GateResult, judgement: Judgement, *, several: bool) -> GateResult:
    return replace(gate, name=f"{gate.name} {judgement.revision.label}") if several else gate


def standards_of(arguments: argparse.Namespace, case: ComplianceCase) -> Standards:
    """UsageError when one of the files can't be used."""
    delta = case.block.grade_delta
    if case.every_revision and (delta is not None or arguments.save_scorecard is not None):
        raise UsageError(
            "--save-scorecard takes one grade, and --spec-version all gives several",
            hint="name one revision",
        )
    if arguments.save_scorecard is not None:
        if case.order is None:
            raise UsageError("no grade to save: the suite does not test a server")
        refuse_other_file(arguments.save_scorecard, SCORECARD_FORMAT, "a scorecard")
    path: Path | None = arguments.baseline
    anew, used = arguments.update_baseline, None
    if path is not None and anew and not path.exists():
        used = BaselineInUse(path, KnownFailures(), is_written_anew=True)
    elif path is not None:
        own = [test.name for test in case.block.tests or () if not test.runs_corpus_rule]
        known = load_known_failures(path, corpora=case.corpora, also=own)
        used = BaselineInUse(path, known, read_history(history_beside(path)), anew)
    before = earlier_scorecard(delta.against) if delta is not None else None
    return Standards(arguments, before, used)
