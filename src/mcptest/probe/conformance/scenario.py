"""One scenario, whichever side it tests: a script that acts, and checks over what was captured.

The script only acts. Whether the peer did well is decided afterwards by the checks, which are pure
functions over what was seen: a capture that was kept can be judged again. Scenarios for clients and
for servers are of one type; what their checks look at differs: a `SeenSession` or a `Scene`.
Names, check ids and titles are those of the official suite where it has them. What is said of a
scenario and its checks is in the files that `scenario_catalogue` reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec.structs import asdict, force_setattr, replace

from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import CheckResult, CheckStatus, Reference

Seen = TypeVar("Seen")
BOTH = frozenset({"http", "stdio"})
Judged = TypeVar("Judged", "CheckFinding", CheckResult)


class CheckFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a check found. Without a name it has that of its check."""

    status: CheckStatus
    message: str = ""
    name: str = ""
    record: int | None = None
    excerpt: str = ""
    details: Mapping[str, Any] = {}
    unseen: bool = False
    """The peer never got to what the check is about."""


Findings: TypeAlias = Iterator[CheckFinding]
Judgement: TypeAlias = CheckFinding | Iterable[CheckFinding] | None
Judge: TypeAlias = Callable[[Seen], Judgement]


class Decided(Exception):  # noqa: N818 - nothing went wrong
    """Raised where a judge asks for something that is not there: the finding is all it can say."""

    def __init__(self, finding: CheckFinding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def findings_of(judgement: Judgement) -> list[CheckFinding]:
    return [judgement] if isinstance(judgement, CheckFinding) else list(judgement or ())


class ScenarioCheck(msgspec.Struct, Generic[Seen], frozen=True, forbid_unknown_fields=True):
    """One requirement on the peer. A judge gives one finding or several; one that gives none saw
    nothing: that is a failure.

    `silence` says what it means when nothing was seen: FAILURE (the interaction was expected, the
    default), or SKIPPED for what a peer may leave out.
    """

    id: str
    description: str
    judge: Judge[Seen]
    title: str = ""
    """The name of its row; without one, that of the id: `sep-2549-ttl-non-negative` is
    `TtlNonNegative`."""
    references: tuple[Reference, ...] = ()
    revisions: frozenset[Revision] | None = None
    """Only in these; None: in all revisions of its scenario."""
    transports: frozenset[str] = BOTH
    silence: CheckStatus = CheckStatus.FAILURE
    rows: tuple[str, ...] = ()
    """The names of its rows, where it always has several."""

    def __post_init__(self) -> None:
        if not self.title:
            words = re.sub(r"^sep-\d+-", "", self.id).split("-")
            name = "".join(word[:1].upper() + word[1:] for word in words)
            force_setattr(self, "title", self.rows[0] if self.rows else name)

    def findings(self, seen: Seen) -> list[CheckFinding]:
        try:
            return findings_of(self.judge(seen))
        except Decided as decided:
            return [decided.finding]

    def row(self, finding: CheckFinding) -> CheckResult:
        own = {"id": self.id, "description": self.description, "references": self.references}
        return CheckResult(**{**asdict(finding), **own, "name": finding.name or self.title})


class ScenarioNeeds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server must have so that the scenario can say anything about it."""

    capabilities: tuple[str, ...] = ()
    """Declared by the server: `tools`, `resources.subscribe`."""
    tools: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    """Official names of fixtures. A resource need not be listed, only be readable."""


class Scenario(msgspec.Struct, Generic[Seen], frozen=True, forbid_unknown_fields=True):
    name: str
    """As the official suite has it, where it has it: `tools_call`, `auth/metadata-default`."""
    title: str
    description: str
    """For the docs page: what we do, what the peer is expected to do."""
    script: Callable[..., Any]
    """For a client it makes the `Script` of one server; for a server it acts on a stage."""
    checks: tuple[ScenarioCheck[Seen], ...]
    suites: frozenset[str]
    revisions: frozenset[Revision]
    transports: frozenset[str] = BOTH
    context: Mapping[str, Any] = {}
    """Given to a client in `MCP_CONFORMANCE_CONTEXT`, besides the name."""
    client_may_fail: bool = False
    """The right thing for the client is to give up, so its exit code does not count."""
    path: str = "/mcp"
    """What is added to the origin to make the URL that a client gets."""

    needs: ScenarioNeeds = ScenarioNeeds()
    isolated: bool = False
    """It needs a connection to the server of its own."""
    disturbs: bool = False
    """It changes what the server offers to everybody, so nothing else runs beside it."""

    def checks_in(self, revision: Revision, transport: str) -> Iterator[ScenarioCheck[Seen]]:
        for check in self.checks:
            if transport in check.transports and (
                check.revisions is None or revision in check.revisions
            ):
                yield check


def judged(
    scenario: Scenario[Seen], seen: Seen, revision: Revision, transport: str, strict: bool = False
) -> Iterator[CheckResult]:
    """Every check over what was seen; none is left out. With `strict`, what can't be tested
    fails."""
    for one in scenario.checks_in(revision, transport):
        unseen = CheckFinding(one.silence, f"not observed: {one.description}", unseen=True)
        for finding in one.findings(seen) or [unseen]:
            fails = strict and finding.status is CheckStatus.UNTESTABLE
            yield one.row(replace(finding, status=CheckStatus.FAILURE) if fails else finding)


def every_check(
    scenario: Scenario[Any], revision: Revision, transport: str, finding: CheckFinding
) -> Iterator[CheckResult]:
    """The same for every check, under each of its names: nothing could be looked at."""
    for one in scenario.checks_in(revision, transport):
        for name in one.rows or (one.title,):
            yield one.row(replace(finding, name=name))


# -- Short ways for a check to say what it found -------------------------------------------------


class Located(Protocol):
    """Something of the capture that shows what was found."""

    @property
    def place(self) -> int: ...
    @property
    def excerpt(self) -> str: ...


def _finding(
    status: CheckStatus, message: str, where: Located | None, name: str, **details: Any
) -> CheckFinding:
    if where is None:
        return CheckFinding(status, message, name, details=details)
    return CheckFinding(status, message, name, where.place, where.excerpt, details)


def good(where: Located | None = None, name: str = "", **details: Any) -> CheckFinding:
    return replace(info("", where, name, **details), status=CheckStatus.SUCCESS)


def info(
    message: str, where: Located | None = None, name: str = "", **details: Any
) -> CheckFinding:
    """Worth a word, and nothing that fails: the place is told, and not the bytes."""
    place = None if where is None else where.place
    return CheckFinding(CheckStatus.INFO, message, name, place, details=details)


def bad(message: str, where: Located | None = None, name: str = "", **details: Any) -> CheckFinding:
    return _finding(CheckStatus.FAILURE, message, where, name, **details)


def warned(message: str, where: Located | None = None, name: str = "") -> CheckFinding:
    """What the specification only recommends was not done."""
    return _finding(CheckStatus.WARNING, message, where, name)


def missing(message: str, where: Located | None = None, name: str = "") -> CheckFinding:
    """The peer did not get to what the check is about."""
    return replace(bad(message, where, name), unseen=True)


def skipped(message: str, name: str = "") -> CheckFinding:
    """About something that the peer does not have, and does not need to have."""
    return CheckFinding(CheckStatus.SKIPPED, message, name)


def untestable(message: str, where: Located | None = None, name: str = "") -> CheckFinding:
    """It can't be seen on this peer; the message says what would unlock it."""
    return _finding(CheckStatus.UNTESTABLE, message, where, name)


def verdict(
    problems: Iterable[str] | str,
    where: Located | None = None,
    name: str = "",
    *,
    mild: bool = False,
    **details: Any,
) -> CheckFinding:
    """Good without problems; with them bad, or a warning where it is only advice."""
    said = problems if isinstance(problems, str) else "; ".join(filter(None, problems))
    if not said:
        return good(where, name, **details)
    return _finding(
        CheckStatus.WARNING if mild else CheckStatus.FAILURE, said, where, name, **details
    )


def expect(
    holds: object, fault: str, where: Located | None = None, name: str = "", **more: Any
) -> CheckFinding:
    """Good if it holds, else its fault; `more` is what `verdict` takes besides."""
    return verdict("" if holds else fault, where, name, **more)


_WORST_FIRST = (
    CheckStatus.FAILURE,
    CheckStatus.WARNING,
    CheckStatus.SUCCESS,
    CheckStatus.SKIPPED,
    CheckStatus.INFO,
)


def worst(findings: Iterable[Judged]) -> Judged | None:
    """Of many about the same, the worst one alone."""
    known = [one for one in findings if one.status in _WORST_FIRST]
    return min(known, key=lambda one: _WORST_FIRST.index(one.status), default=None)


def inside(value: Any, *path: str) -> Any:
    """What stands at the end of a path through objects; None where it does not lead on."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def object_in(value: Any, *path: str) -> dict[str, Any]:
    """The object at the end of the path; an empty one where there is none."""
    found = inside(value, *path)
    return found if isinstance(found, dict) else {}


def shown(value: Any) -> str:
    """A value of the peer's in a message: as JSON, safe and short."""
    return show(json.dumps(value, ensure_ascii=False, default=repr), 120)
