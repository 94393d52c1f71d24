"""What every kind of report is and can do, declared once.

A report is a type: its JSON is the encoding of its fields, `mcptest report` decodes the same type,
and its JSON Schema is generated from it. What renders reports (JUnit, SARIF, TAP, agent lines …)
knows results: `as_run` gives those of any kind.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from mcptest.core.errors import ExitCode
from mcptest.core.results import Count, Invocation, RunReport, Status, TestResult, derive
from mcptest.core.safe_text import show
from mcptest.report import markdown
from mcptest.report.problems import Problems, ReportedProblem, problems_in_run
from mcptest.report.terminal import Style, remark_lines, why_revision

ItemKind: TypeAlias = Literal["tool", "prompt", "resource", "template"]
ITEM_KINDS: Mapping[ItemKind, str] = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "template": "resource templates",
}
"""What a server offers, and the word for several."""
Percent: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=100)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=100)]


class Report(msgspec.Struct, frozen=True, kw_only=True, tag_field="format"):
    """One kind of report. The tag of its type is the name of its format."""

    invocation: Invocation | UnsetType = UNSET
    """How it came about; a report of an earlier version does not say."""

    @property
    def kind(self) -> str:
        """`audit` of `mcptest.audit/1`."""
        return str(self.__struct_config__.tag).removeprefix("mcptest.").partition("/")[0]

    @property
    def code(self) -> ExitCode:
        """The exit code that goes with it, as far as its results agree with what it states."""
        raise NotImplementedError

    @property
    def failed(self) -> bool:
        return self.code is not ExitCode.OK

    def as_run(self) -> RunReport:
        """As the results of tests."""
        raise NotImplementedError

    def run_of(self, results: Iterable[TestResult], notes: Iterable[str] = ()) -> RunReport:
        """Results as those of a run, with what is known of our own; `notes` stand before ours."""
        return RunReport(
            results=tuple(results),
            tool=getattr(self, "tool", ""),
            started=getattr(self, "started", ""),
            duration_ms=round(getattr(self, "duration_ms", 0)),
            interrupted=getattr(self, "interrupted", False),
            invocation=self.invocation or None,
            notes=(*notes, *getattr(self, "notes", ())),
        )

    def in_words(self) -> str:
        """One line."""
        raise NotImplementedError

    def lines(self, style: Style) -> Iterator[str]:
        """For a terminal, line by line."""
        raise NotImplementedError

    def as_markdown(self) -> str:
        """For a step summary or a comment."""
        return "".join(f"{line}\n" for line in self.markdown_lines())

    def markdown_lines(self) -> Iterator[str]:
        raise NotImplementedError

    def found_problems(self, run: RunReport) -> Iterator[ReportedProblem]:
        """What is wrong; unless a kind says more, the failures of `run`."""
        return problems_in_run(run)

    def as_problems(self) -> Problems:
        run = self.as_run()
        return Problems(self.kind, run, tuple(self.found_problems(run)))

    def run_and_excuses(self) -> tuple[RunReport, Mapping[str, str]]:
        """For forms that know expected failures: these by the name of their result, with the
        reason."""
        return self.as_run(), {}

    def headline(self) -> str:
        """What the first line for an agent says before the counts, such as a grade."""
        return ""


class RunView(Report, frozen=True, tag="mcptest.run/1"):
    """A run of tests as a report like the others."""

    run: RunReport

    @property
    def code(self) -> ExitCode:
        return self.run.code

    def as_run(self) -> RunReport:
        return self.run

    def as_markdown(self) -> str:
        return markdown.render(self.run)


AnyReport: TypeAlias = RunReport | Report


class ReportHead(
    Report,
    frozen=True,
    rename={
        "server": "peer",
        "server_name": "server",
        "revision": "spec_version",
        "revision_reason": "spec_version_reason",
        "started": "generated_at",
    },
):
    """Who was looked at, how and when."""

    title: ClassVar[str]
    """What the page says that this is of a server."""
    tool: str = ""
    """The version of mcptest that wrote it."""
    server_name: str = ""
    """As it calls itself; where it says nothing, how it was reached."""
    server_version: str = ""
    server: str = ""
    """How the server was reached, with secrets masked."""
    transport: str = ""
    revision: str = ""
    revision_reason: str = ""
    """Why this revision was spoken."""
    started: str = ""
    duration_ms: Count = 0
    interrupted: bool = False
    failed: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        derive(self, server_name=self.server_name or self.server)

    @property
    def looked_at(self) -> bool:
        """Whether there was anything to look at."""
        raise NotImplementedError

    @property
    def code(self) -> ExitCode:
        return code_of(self.looked_at, failed=self.failed, interrupted=self.interrupted)

    def heading(self) -> str:
        """The server, and how it was spoken to."""
        name = show(self.server_name, 80)
        version = f" {show(self.server_version, 40)}" if self.server_version else ""
        return f"{name}{version} over {self.transport}, {self.revision}"

    @property
    def unread(self) -> Mapping[str, str]:
        """Lists that could not be read, by their method."""
        return {}

    def totals(self) -> str:
        """The summary below the heading."""
        return self.in_words()

    def next_steps(self) -> list[str]:
        """What somebody who reads this can do about it."""
        return []

    def lines(self, style: Style) -> Iterator[str]:
        """The server and why its revision was spoken, what was found, what to do about it."""
        yield style.paint(self.heading(), "bold")
        if self.revision_reason:
            yield style.paint(why_revision(self.revision, self.revision_reason), "dim")
        yield from self.found_lines(style)
        yield ""
        yield from self.closing_lines(style)
        steps = self.next_steps()
        if steps:
            yield from ("", "Next steps:")
            yield from (f"  {number}. {step}" for number, step in enumerate(steps, 1))

    def found_lines(self, style: Style) -> Iterator[str]:
        """What was found, for a terminal."""
        raise NotImplementedError

    def closing_lines(self, style: Style) -> Iterator[str]:
        """The lists that could not be read, the notes, the summary."""
        for method, reason in self.unread.items():
            yield f"{style.cross} {method} could not be read: {show(reason, 300)}"
        yield from remark_lines(style.warning, self.notes, "")
        yield style.paint(self.totals(), "bold")

    def markdown_lines(self) -> Iterator[str]:
        yield from markdown.opening(self.title, self.heading(), self.totals())
        yield from self.found_markdown()
        yield from markdown.closing(self.unread, self.notes, self.next_steps())

    def found_markdown(self) -> Iterator[str]:
        raise NotImplementedError

    def unread_results(self) -> list[TestResult]:
        """A failed result for each list that could not be read."""
        return [
            TestResult(name=method, status=Status.FAIL, detail=reason, kind="call")
            for method, reason in self.unread.items()
        ]


def code_of(looked_at: bool, *, failed: bool, interrupted: bool) -> ExitCode:
    """What a report comes to that says these three of itself."""
    if interrupted:
        return ExitCode.INTERRUPTED
    if failed:
        return ExitCode.FAILED
    return ExitCode.OK if looked_at else ExitCode.NOTHING_MATCHED


def stated_code(code: int) -> ExitCode:
    """What a file says that it ended with; anything unknown is a failure."""
    return ExitCode(code) if code in set(ExitCode) else ExitCode.FAILED


# -- How a report came about: the command line, the commit, the platform ------------------------

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_LONGEST = 1_000_000
"""Bytes of a file below `.git`."""


def stamped(report: Any) -> Any:
    """The report with how this process was called, unless it already says."""
    if report.invocation:
        return report
    made = Invocation(command_line(), checked_out_commit(), platform_name())
    return msgspec.structs.replace(report, invocation=made)


def command_line() -> str:
    """As a person would type it; empty in a process that is not a command of ours."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return shlex.join(["mcptest", *sys.argv[1:]]) if name == "mcptest" else ""


def platform_name() -> str:
    """`Linux x86_64, Python 3.12.1`"""
    system = os.uname()
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{system.sysname} {system.machine}, Python {version}"


def checked_out_commit() -> str:
    """Of the repository around this folder, in short; empty where there is none."""
    try:
        here = Path.cwd()
        git = next((one / ".git" for one in (here, *here.parents) if (one / ".git").exists()), None)
        found = _COMMIT.fullmatch(_head_of(git)) if git is not None else None
    except (OSError, ValueError):
        return ""
    return found[0][:12] if found is not None else ""


def _head_of(git: Path) -> str:
    if git.is_file():  # a worktree or a submodule
        git = git.parent / _text(git).removeprefix("gitdir:").strip()
    head = _text(git / "HEAD")
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    common = git / "commondir"
    shared = git / _text(common) if common.is_file() else git
    for folder in (git, shared):
        if (folder / name).is_file():
            return _text(folder / name)
    packed = (line.partition(" ") for line in _text(shared / "packed-refs").splitlines())
    return next((commit for commit, _, ref in packed if ref == name), "")


def _text(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_LONGEST).strip()
