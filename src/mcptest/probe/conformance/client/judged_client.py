"""From what was captured of a client to rows: the scenario's checks, the rules, and how it ended.

All but reading is pure: a capture that was kept is judged again by the same functions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from mcptest.core.capture import (
    AnyRecord,
    Closed,
    Frame,
    HttpRequest,
    Opened,
    TransportName,
    Trouble,
)
from mcptest.core.message import Kind
from mcptest.core.revision import Era, Revision, revision_of_wire
from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import (
    WIRE_SCHEMA,
    CheckResult,
    CheckStatus,
    Ended,
    Reference,
    ScenarioResult,
)
from mcptest.core.verdict import Finding, Outcome, Severity, Side
from mcptest.probe.conformance.client.seen import SeenMessage, SeenSession, offered_revisions
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Scenario,
    ScenarioCheck,
    bad,
    every_check,
    info,
    inside,
    judged,
    warned,
    worst,
)
from mcptest.rules.catalogue import all_rules
from mcptest.rules.declaration import Rule
from mcptest.rules.judge import judge
from mcptest.rules.protocol import PROTOCOL_VERSION
from mcptest.servers.scripted.recording import origins_of, spoken_in
from mcptest.transport.capture_file import open_capture
from mcptest.transport.process import signal_name
from mcptest.wire.capture_forms import SessionSource

CLIENT_EXIT = "client-exit"
_TAIL = 3
"""Lines of a client's stderr that are told where it never got to the point."""


class JudgedClient(msgspec.Struct, frozen=True):
    """Every row on a client in a scenario, and why it never got there, if it did not."""

    rows: tuple[CheckResult, ...]
    unreached: str = ""


def judge_client(
    scenario: Scenario[SeenSession], seen: SeenSession, timeout: float
) -> JudgedClient:
    why = speaks_only(seen)
    if why:
        failed = seen.is_demanded and not was_denied(seen)
        status = CheckStatus.FAILURE if failed else CheckStatus.UNTESTABLE
        finding = CheckFinding(status, why, unseen=True)
        rows = tuple(every_check(scenario, seen.revision, seen.transport, finding))
        return JudgedClient(rows, why if failed else "")
    own = tuple(judged(scenario, seen, seen.revision, seen.transport))
    how = partial(_exit, scenario.client_may_fail, timeout)
    about = "the client exits on its own, in time, and with code 0"
    on_any = [
        check.row(finding)
        for check in (*_ON_ANY_CLIENT, ScenarioCheck(CLIENT_EXIT, about, judge=how))
        for finding in check.findings(seen)
    ]
    ends = (row.status for row in on_any if row.id == CLIENT_EXIT)
    broke_off = CheckStatus.FAILURE in ends
    rows = (*own, *_rows_by_rules(seen), *on_any)
    return JudgedClient(rows, _unreached(own, seen, timeout, broke_off=broke_off))


def _unreached(
    own: Sequence[CheckResult], seen: SeenSession, timeout: float, *, broke_off: bool
) -> str:
    """One cause instead of a list of what was not seen."""
    unseen = [row for row in own if row.unseen and row.status is CheckStatus.FAILURE]
    got_there = any(row.status is CheckStatus.SUCCESS for row in own)
    if not unseen or (got_there and not broke_off):
        return ""
    sent = [one.method for one in seen.sent if one.method]
    if not seen.launched:
        parts = ["the client did not start the server"]
    elif not sent:
        trouble = next((one for one in seen.records if isinstance(one, Trouble)), None)
        instead = "" if trouble is None else show(trouble.detail, 200)
        parts = [f"the client sent no message: {instead}" if trouble else "the client sent nothing"]
    else:
        parts = [unseen[0].message, f"its last message was {show(sent[-1], 80)}"]
    if seen.ended is not None:
        parts.append(_how_it_ended(seen, timeout) or "it exited with code 0")
    lines = [line.strip() for line in seen.stderr.splitlines() if any(map(str.isalpha, line))]
    parts += [f"its stderr ends: {show(' | '.join(lines[-_TAIL:]), 400)}"] if lines else []
    return "; ".join(parts)


def _rows_by_rules(seen: SeenSession) -> Iterator[CheckResult]:
    """By session: a client that launches its server twice uses its ids twice."""
    records = seen.records
    begins = [place for place, record in enumerate(records) if isinstance(record, Opened)]
    begins = begins if len(begins) > 1 else [0]
    told: dict[tuple[str, str], list[CheckResult]] = {}
    for begin, end in pairwise([*begins, len(records)]):
        for row in rows_by_rules(replace(seen, records=records[begin:end])):
            placed = row if row.record is None else replace(row, record=row.record + begin)
            told.setdefault((row.id, row.name), []).append(placed)
    yield from filter(None, map(worst, told.values()))


def judged_capture(
    scenario: Scenario[SeenSession],
    captures: Sequence[str],
    revision: Revision | None = None,
    *,
    mode: str = "probe",
    claims: frozenset[str] = frozenset(),
) -> ScenarioResult:
    """Judge what was kept, in one file or several. How the client ended is not known, so it is not
    judged. With several files a row says which one its place is in."""
    records: list[AnyRecord] = []
    begins: list[int] = []
    transport, spoken = "stdio", ""
    for capture in captures:
        begins.append(len(records))
        for session in open_capture(capture):
            records += (record for _, record in session.records)
            transport, spoken = session.transport or transport, session.spec_version or spoken
    asked_for = revision_of_wire(spoken)
    offered = offered_revisions(scenario, revision or asked_for)
    speaks = revision or spoken_in(records) or asked_for or max(offered)
    seen = SeenSession(
        records=records,
        revision=speaks,
        transport=transport,
        urls=origins_of(records),
        endpoint=scenario.path or "/",
        mode=mode,
        claims=claims,
        offered=offered,
        is_demanded=revision is not None or asked_for is not None,
    )
    judged = judge_client(scenario, seen, 0.0)
    rows = judged.rows
    if len(captures) > 1:
        rows = tuple(_placed(row, captures, begins) for row in rows)
    return ScenarioResult(
        scenario=scenario.name,
        side=Side.CLIENT,
        revision=speaks,
        transport=transport,
        checks=rows,
        unreached=judged.unreached,
        capture=captures[0] if len(captures) == 1 else "",
    )


def _placed(row: CheckResult, captures: Sequence[str], begins: Sequence[int]) -> CheckResult:
    """With its place in the one capture that it is in."""
    if row.record is None:
        return row
    number = bisect_right(begins, row.record) - 1
    details = {**row.details, "capture": captures[number]}
    return replace(row, record=row.record - begins[number], details=details)


# -- Checks on any client, whatever its scenario is about ----------------------------------------


def _launched(seen: SeenSession) -> CheckFinding | None:
    why = (
        "the client did not start the server; its command is in the last arguments and, "
        "as a JSON array, in MCP_CONFORMANCE_SERVER_COMMAND"
    )
    return None if seen.launched else bad(why)


def _spoke(seen: SeenSession) -> CheckFinding | None:
    spoke = any(
        isinstance(one, HttpRequest) or (isinstance(one, Frame) and one.sender == "client")
        for one in seen.records
    )
    if spoke or not seen.launched:
        return None
    over_stdio = seen.transport == "stdio"
    did = "started the server and sent nothing" if over_stdio else "sent no request"
    return bad(f"the client {did}: nothing could be observed")


def _complete(seen: SeenSession) -> CheckFinding | None:
    """What was not kept was not judged: that is never passed over."""
    dropped = sum(record.dropped for record in seen.records if isinstance(record, Closed))
    if dropped:
        return bad(f"{dropped} records exceeded the limit and were not judged")
    return warned(f"the capture could not be written: {seen.unwritten}") if seen.unwritten else None


def _exit(may_fail: bool, timeout: float, seen: SeenSession) -> CheckFinding | None:
    """How the client ended. The official suite counts that only for a single scenario."""
    ended, message = seen.ended, _how_it_ended(seen, timeout)
    if ended is None:
        return None
    if seen.was_settled and not ended.timed_out:
        return info(message)
    if ended.signal is not None or ended.timed_out or (ended.code != 0 and not may_fail):
        return bad(message)
    fine = f"exit code {ended.code} is correct here, because the client had to give up"
    return CheckFinding(CheckStatus.SUCCESS, fine if ended.code != 0 else "")


_ON_ANY_CLIENT = (
    ScenarioCheck("server-launched", "the client starts the given server", judge=_launched),
    ScenarioCheck("client-spoke", "the client talks to the server", judge=_spoke),
    ScenarioCheck("capture-complete", "the capture is complete", judge=_complete),
)


def _how_it_ended(seen: SeenSession, timeout: float) -> str:
    """Empty for a client that ended by itself with exit code 0."""
    ended = seen.ended or Ended()
    if ended.timed_out:
        return (
            f"the client did not end within {timeout:g}s, and its whole process group was ended; "
            "--timeout gives it longer"
        )
    if seen.was_settled:
        return "the client kept running after the scenario and was stopped"
    if ended.signal is not None:
        return f"the client was killed by {signal_name(ended.signal)}"
    return "" if ended.code == 0 else f"the client exited with code {ended.code}"


# -- The registry's own rules about clients -----------------------------------------------------
#
# They come for free: whatever a scenario is about, a client keeps to the protocol in it.

_ABOUT_SHAPES = ("SHAPE-", "MSG-")
_MOST_PROBLEMS = 3
_TURNED_AWAY = frozenset({401, 403})


def rows_by_rules(seen: SeenSession) -> Iterator[CheckResult]:
    """One row on the shape of all that the client sent, and one for each rule that it broke."""
    if not seen.sent:
        return
    # Which answers a client owes in a scenario is for its own checks to say, since a script may
    # ask for what nobody has to answer.
    rules = [
        rule
        for rule in all_rules()
        if rule.side is not Side.SERVER and rule.shown_by != "missing answer"
    ]
    transport: TransportName = "stdio" if seen.transport == "stdio" else "http"
    session = SessionSource(
        label="client",
        file="",
        form="full",
        records=_records_of_mcp(seen),
        transport=transport,
        spec_version=seen.revision.wire_version,
    )
    broken: list[tuple[Rule, Finding]] = []
    verdicts = judge(session, rules, seen.revision).verdicts
    for rule, verdict in zip(rules, verdicts, strict=True):
        if verdict.outcome is Outcome.FAIL:
            about = [one for one in verdict.findings if one.sender != "server"]
            broken += [(rule, one) for one in about[:1]]
    yield _shape_row([pair for pair in broken if pair[0].id.startswith(_ABOUT_SHAPES)])
    for rule, finding in broken:
        yield _rule_row(rule, finding, seen)


def _records_of_mcp(seen: SeenSession) -> Iterator[tuple[int, AnyRecord]]:
    """Without what went to other origins, such as an authorization server, and to other pages.

    What was turned away for want of a token and sent again as it was is one request, not two.
    """
    mcp = seen.urls.get("mcp")
    last = {(one.path, one.body): one.stream for one in seen.visits if one.body}
    left_out = {
        one.stream
        for one in seen.visits
        if (mcp is not None and (one.origin != mcp or one.path != seen.endpoint))
        or (one.status in _TURNED_AWAY and last.get((one.path, one.body), one.stream) != one.stream)
    }
    for place, record in enumerate(seen.records):
        if getattr(record, "stream", None) not in left_out:
            yield place, record


def _shape_row(broken: list[tuple[Rule, Finding]]) -> CheckResult:
    failed = [pair for pair in broken if pair[0].severity is Severity.MUST]
    message = "; ".join(
        f"{rule.id}: {finding.message}" for rule, finding in failed[:_MOST_PROBLEMS]
    )
    first = failed[0][1] if failed else None
    return CheckResult(
        id=WIRE_SCHEMA,
        name="WireSchemaValid",
        description="every message of the client conforms to the revision",
        status=CheckStatus.FAILURE if failed else CheckStatus.SUCCESS,
        message=show(message, 600),
        record=first.record if first else None,
        excerpt=(first.excerpt or "") if first else "",
    )


def _rule_row(rule: Rule, finding: Finding, seen: SeenSession) -> CheckResult:
    must = rule.severity_in(seen.revision) is Severity.MUST
    wanted = f"; expected {finding.expected}" if finding.expected else ""
    return CheckResult(
        id=rule.id,
        name=rule.id,
        description=rule.title,
        status=CheckStatus.FAILURE if must else CheckStatus.WARNING,
        message=show(f"{finding.message}{wanted}", 600),
        record=finding.record,
        excerpt=finding.excerpt or "",
        references=(Reference(rule.id, rule.url(seen.revision)),),
    )


def speaks_only(seen: SeenSession) -> str:
    """Why nothing came of it, if the reason is the revision; empty if it is not."""
    eras = {revision.era for revision in seen.offered}
    first = seen.requests("initialize")
    on_their_own = [
        one
        for one in seen.requests()
        if one.method == "server/discover" or PROTOCOL_VERSION in one.meta
    ]
    if not eras or not seen.requests():
        return ""
    why = ""
    if Era.HANDSHAKE not in eras and first and not on_their_own:
        proposed = show(str(first[0].params.get("protocolVersion")), 40)
        why = f"the client supports only {proposed}: it starts with initialize"
    elif Era.STATELESS not in eras and on_their_own and not first:
        spoken = show(str(on_their_own[0].meta.get(PROTOCOL_VERSION, Revision.V2026_07_28)), 40)
        why = f"the client supports only {spoken}: it does not fall back to initialize"
    elif first:
        why = _left(seen, first[-1])
    offered = ", ".join(one.value for one in seen.offered)
    return f"{why}. The server uses {offered} here" if why else ""


def was_denied(seen: SeenSession) -> bool:
    """The server speaks what the client proposed, and answered with something else on purpose."""
    proposed = (one.params.get("protocolVersion") for one in seen.requests("initialize"))
    return any(revision_of_wire(one) in seen.offered for one in proposed)


def _left(seen: SeenSession, first: SeenMessage) -> str:
    """It was answered with a revision that it did not propose, and said nothing after that."""
    proposed = first.params.get("protocolVersion")
    later = [one for one in seen.said if one.place > first.place]
    for answer in later:
        answers = answer.sender == "server" and answer.message.kind is Kind.RESULT
        if answers and answer.value.get("id") == first.value.get("id"):
            agreed = inside(answer.value, "result", "protocolVersion")
            goes_on = any(one.place > answer.place and one.method for one in seen.sent)
            if agreed == proposed or revision_of_wire(agreed) is None or goes_on:
                return ""
            why = f"it proposed that, got {agreed}, and disconnected"
            return f"the client supports only {show(str(proposed), 40)}: {why}"
    return ""
