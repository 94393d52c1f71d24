"""Lists of expected failures: read with places, and held against a run.

The form is the official suite's: `server:` and `client:` lists of `scenario` or
`scenario:check-id`. Beyond it an entry may be a mapping with a reason and `flaky`, and a name that
nobody has is an error instead of silence.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Table
from importlib.resources import files
from pathlib import Path

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import (
    CheckResult,
    CheckStatus,
    Compared,
    ExpectedFailure,
    ScenarioResult,
)
from mcptest.core.verdict import Side
from mcptest.suite.fields import Declaration, Field, Flag, Text, read_object
from mcptest.suite.reading import (
    ListNode,
    MappingNode,
    Node,
    ScalarNode,
    SuiteError,
    SuiteSource,
    did_you_mean,
    nearest,
    read_yaml,
)

Known = Table[Side, Table[str, frozenset[str]]]
"""For each side the scenarios by name, each with the ids of its checks."""

ENTRY = Declaration(
    "an expected failure",
    "A scenario, or one of its checks, that is known to fail.",
    (
        Field("scenario", Text(), "`scenario` or `scenario:check-id`.", required=True),
        Field("reason", Text(), "Why it fails, and why that is accepted."),
        Field("flaky", Flag(), "It fails sometimes: both outcomes are accepted."),
    ),
)
_WORST_FIRST = {CheckStatus.FAILURE: 0, CheckStatus.WARNING: 1, CheckStatus.SUCCESS: 2}


def load_expected_failures(path: Path, known: Known) -> tuple[ExpectedFailure, ...]:
    """Every entry of the file. SuiteError, with every place, when anything is wrong with it."""
    root, source = read_yaml(path)
    reader = _BaselineReader(source, known)
    if isinstance(root, MappingNode):
        reader.read(root)
    elif root is not None:
        source.report(f"expected `server:` and `client:`, not {root.described}", 1, 1)
    if source.errors:
        raise SuiteError(source.finish())
    return tuple(reader.entries)


class _BaselineReader:
    def __init__(self, source: SuiteSource, known: Known) -> None:
        self._source = source
        self._known = known
        self.entries: list[ExpectedFailure] = []

    def read(self, root: MappingNode) -> None:
        sides = {side.value: side for side in (Side.SERVER, Side.CLIENT)}
        for name, (key, node) in root.entries.items():
            if name not in sides:
                message = f"unknown key {show(name, 60)}"
                self._source.report_at(key, message, did_you_mean(name, sides))
            elif isinstance(node, ListNode):
                for item in node.items:
                    self._read_item(item, sides[name])
            elif isinstance(node, MappingNode) or not node.is_nothing:
                self._source.misfit(name, "a list", node)

    def _read_item(self, node: Node, side: Side) -> None:
        if isinstance(node, ScalarNode) and not node.is_nothing and node.text.strip():
            self._keep(node.text, side, node)
        elif (
            isinstance(node, MappingNode)
            and len(node.entries) == 1
            and "scenario" not in node.entries
        ):
            (key,) = node.entries  # `scenario: check-id`, which YAML takes for a mapping
            hint = f"write {key}:<check-id> without a space after the colon"
            self._source.report_at(node, "expected a scenario, got a mapping", hint)
        elif isinstance(node, MappingNode):
            read = read_object(ENTRY, node, self._source)
            if read.sound:
                where = node.entries["scenario"][1]
                reason = " ".join(read.get("reason", "").split())
                self._keep(read.get("scenario"), side, where, reason, read.get("flaky", False))
        else:
            self._source.report_at(node, "an entry must be `scenario` or `scenario:check-id`")

    def _keep(
        self, text: str, side: Side, where: Node, reason: str = "", flaky: bool = False
    ) -> None:
        scenario, _, check = text.partition(":")
        entry = ExpectedFailure(
            side, scenario, check, reason, flaky, f"{self._source.file}:{where.line}"
        )
        problem, hint = self._problem_with(entry)
        if problem:
            self._source.report_at(where, problem, hint)
        self.entries.append(entry)

    def _problem_with(self, entry: ExpectedFailure) -> tuple[str, str]:
        scenarios = self._known.get(entry.side, {})
        same = [one for one in self.entries if one.side is entry.side]
        if entry.scenario not in scenarios:
            near = nearest(entry.scenario, tuple(scenarios))
            listing = "`mcptest conformance list` shows all scenarios"
            hint = f"did you mean {near}?" if near else listing
            return f"unknown {entry.side.value} scenario {show(entry.scenario, 60)}", hint
        checks = scenarios[entry.scenario]
        if entry.check and checks and entry.check not in checks and not _is_rule(entry.check):
            hint = did_you_mean(entry.check, checks)
            return f"{entry.scenario} has no check {show(entry.check, 60)}", hint
        if any(one.name == entry.name for one in same):
            return f"{show(entry.name, 80)} is listed twice", ""
        if any(one.scenario == entry.scenario and not (one.check and entry.check) for one in same):
            return f"{entry.scenario} is listed as a whole and by check", "keep one of them"
        return "", ""


def _is_rule(name: str) -> bool:
    """Rules of the registry may be broken in any scenario."""
    letters, _, digits = name.rpartition("-")
    return name == "client-exit" or (letters.isupper() and digits.isdigit())


# -- holding a run against it ----------------------------------------------------------------------


def compared_with(
    expected: Iterable[ExpectedFailure], results: Sequence[ScenarioResult]
) -> Compared:
    """What is new, stale, expected or tolerated. Scenarios that were not run are left alone."""
    whole: dict[tuple[Side, str], ExpectedFailure] = {}
    single: dict[tuple[Side, str], dict[str, ExpectedFailure]] = {}
    for entry in expected:
        if entry.check:
            single.setdefault((entry.side, entry.scenario), {})[entry.check] = entry
        else:
            whole[entry.side, entry.scenario] = entry
    found: dict[str, list[str]] = {"expected": [], "new": [], "stale": [], "tolerated": []}
    for result in results:
        key = result.side, result.scenario
        listed = single.get(key, {})
        for kind, name in _whole(result, whole[key]) if key in whole else _by_check(result, listed):
            found[kind].append(name)
    return Compared(**{kind: tuple(dict.fromkeys(names)) for kind, names in found.items()})


def _whole(result: ScenarioResult, entry: ExpectedFailure) -> Iterator[tuple[str, str]]:
    bad = bool(result.cause) or any(check.status.is_bad for check in result.checks)
    if entry.flaky:
        yield "tolerated", entry.name
    elif bad:
        yield "expected", entry.name
    elif any(check.status is CheckStatus.SUCCESS for check in result.checks):
        yield "stale", f"{entry.name} ({entry.place})"
    else:
        yield "tolerated", entry.name


def _by_check(
    result: ScenarioResult, listed: Table[str, ExpectedFailure]
) -> Iterator[tuple[str, str]]:
    if result.cause:
        yield "new", f"{result.scenario}: {result.cause}"
    worst = _worst(result.checks)
    for check, status in worst.items():
        entry = listed.get(check)
        if entry is None:
            if status.is_bad:
                yield "new", f"{result.scenario}:{check}"
        elif entry.flaky or (not status.is_bad and status is not CheckStatus.SUCCESS):
            yield "tolerated", entry.name
        elif status.is_bad:
            yield "expected", entry.name
        else:
            yield "stale", f"{entry.name} ({entry.place})"
    for check, entry in listed.items():
        if check not in worst:
            # A rule's row is there only when it is broken, so its absence is its passing.
            stale = _is_rule(check) and not entry.flaky and not result.cause
            yield ("stale", f"{entry.name} ({entry.place})") if stale else ("tolerated", entry.name)


def _worst(checks: Iterable[CheckResult]) -> dict[str, CheckStatus]:
    """By check id, over all rows that share it."""
    found: dict[str, CheckStatus] = {}
    for check in checks:
        known = (check.status, found.get(check.id, check.status))
        found[check.id] = min(known, key=lambda one: _WORST_FIRST.get(one, len(_WORST_FIRST)))
    return found


# -- What a server or a client has to pass to conform to a revision ------------------------------

REVISIONS = (Revision.V2025_11_25, Revision.V2026_07_28)


class NotScored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run and shown, never counted, with the reason."""

    side: Side
    scenario: str
    reason: str


class RequirementSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scenarios by name, in the order in which they are run."""

    server: tuple[str, ...]
    client: tuple[str, ...]
    not_scored: tuple[NotScored, ...] = ()

    def scored(self, side: Side) -> tuple[str, ...]:
        return self.server if side is Side.SERVER else self.client

    def shown(self, side: Side) -> tuple[str, ...]:
        """All that is run: what counts first, then the rest."""
        rest = tuple(one.scenario for one in self.not_scored if one.side is side)
        return (*self.scored(side), *rest)


@functools.cache
def requirement_set(revision: Revision) -> RequirementSet:
    if revision not in REVISIONS:
        known = " and ".join(one.value for one in REVISIONS)
        message = f"no requirement set for {revision}"
        raise UsageError(message, hint=f"choose one of {known}")
    file = files("mcptest").joinpath(f"conformance/requirements/{revision.value}.yml")
    return msgspec.yaml.decode(file.read_bytes(), type=RequirementSet)
