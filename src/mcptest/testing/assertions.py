"""What tests in Python assert: a property of the protocol, a counterexample, a whole session.

Properties need Hypothesis: `pip install 'mcptest[property]'`. Nothing of it is imported until it is
used.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from mcptest.core.errors import UsageError
from mcptest.core.revision import Revision, parse_revision
from mcptest.core.verdict import Outcome, Severity, Side
from mcptest.probe.compliance.rule_results import about_the_server
from mcptest.probe.properties import need_hypothesis
from mcptest.report.property import Counterexample, PropertyReport, counterexample_lines
from mcptest.report.terminal import Style
from mcptest.report.verdicts import build_report, is_failure
from mcptest.rules.catalogue import all_rules
from mcptest.rules.judge import JudgedSession, judge
from mcptest.session.client import Client
from mcptest.session.pages import Offer
from mcptest.testing.serving import AsyncClient, Server, capture_of
from mcptest.transport.capture_file import open_capture

if TYPE_CHECKING:
    from mcptest.probe.properties.bench import PlayBench
    from mcptest.probe.properties.property_catalogue import PropertyOrder
    from mcptest.probe.properties.steps import Crafted, Step, Steps

    Drawn: TypeAlias = Crafted | Sequence[Step]

Named: TypeAlias = Server | str | Sequence[str]


def check_property(
    server: Named,
    *names: str,
    examples: int = 100,
    seed: int = 0,
    max_time: float = 120.0,
    timeout: float = 5.0,
    allow_tools: Sequence[str] = (),
    strict: bool = False,
    database: Path | None = None,
    may_be_skipped: bool = False,
) -> PropertyReport:
    """AssertionError, with each counterexample made small, unless the properties hold.

    Names are those of `mcptest property --list`; without any, all are tried. Where none of them has
    anything to say about the server, that is no success, unless it `may_be_skipped`. The same seed
    gives the same examples. `allow_tools` may be called beside those that say that they only read;
    `timeout` is for each request. Counterexamples are kept in `database`, and tried first the next
    time.
    """
    __tracebackhide__ = True
    need_hypothesis()
    from mcptest.probe.properties.engine import run_properties

    order = replace(
        _order(Server.of(server), names),
        examples=examples,
        seed=seed,
        max_time=max_time,
        timeout=timeout,
        allow_tools=tuple(allow_tools),
        strict=strict,
        database=database,
    )
    report = run_properties(order)
    if report.failed:
        raise _broken(report.failures, report.in_words(), report.heading())
    if not report.examples and not may_be_skipped:
        raise AssertionError(f"nothing was tried: {why_not(report)}")
    return report


def assert_holds(example: Mapping[str, Any], server: Named, *, timeout: float = 5.0) -> None:
    """AssertionError as long as the server breaks its property by this counterexample.

    It is what `mcptest property --output DIR` writes, and what such a pytest file calls.
    """
    __tracebackhide__ = True
    need_hypothesis()
    from mcptest.probe.counterexamples import example_of
    from mcptest.probe.properties.engine import replay_example

    order = replace(_order(Server.of(server), ()), timeout=timeout, allow_tools=("*",), strict=True)
    report = replay_example(order, example_of(dict(example), "the example"))
    for found in report.counterexamples:
        head = ": ".join(filter(None, (found.rule, found.title, found.message)))
        raise _broken([found], head)


def _broken(failures: Sequence[Counterexample], *head: str) -> AssertionError:
    """As `mcptest property` says it."""
    lines = [*head]
    for found in failures:
        lines += ["", f"{found.of_property}:"] if found.of_property else []
        lines += counterexample_lines(found, Style(unicode=False, verbose=True))
    return AssertionError("\n".join(lines))


def why_not(report: PropertyReport) -> str:
    """Why nothing was tried."""
    return "; ".join(f"{one.name}: {one.skipped}" for one in report.properties if one.skipped)


def _order(server: Server, names: Sequence[str]) -> PropertyOrder:
    from mcptest.probe.properties.property_catalogue import PROPERTIES, PropertyOrder

    for name in names:
        if name not in PROPERTIES:
            hint = f"there are {', '.join(PROPERTIES)}"
            raise UsageError(f"unknown property {name}", hint=hint)
    return PropertyOrder(
        target=server.target,
        revision=server.wanted,
        properties=tuple(dict.fromkeys(names)),
        startup=server.timeout,
    )


class Player:
    """One server on which examples are played. It is started again when one of them ends it."""

    def __init__(
        self, server: Named, *, allow_tools: Sequence[str] = (), timeout: float = 5.0
    ) -> None:
        """`allow_tools` are in the offer beside those that say that they only read; '*' is all.

        `timeout` is for each request, in seconds.
        """
        need_hypothesis()
        from mcptest.probe.properties.player import ExampleServer

        order = _order(Server.of(server), ())
        order = replace(order, timeout=timeout, allow_tools=tuple(allow_tools))
        self._stage = ExampleServer(order)
        self._bench: PlayBench | None = None
        self._rude = False

    def __enter__(self) -> Player:
        self._stage.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._stage.close()

    @property
    def revision(self) -> Revision:
        return self._stage.revision

    @property
    def transport(self) -> str:
        return self._stage.met.transport

    @property
    def offer(self) -> Offer:
        """What the server lists, without the tools that must not be called."""
        if self._stage.offer is None:
            self._stage.open()
        return self._stage.ground.offer

    def play(self, drawn: Drawn, *, strict: bool = False, fresh: bool = False) -> None:
        """AssertionError, with the rule and what was said, when the server breaks one.

        `drawn` is a message (`requests`, `invalid_messages`, …) or a conversation. A session goes
        on from example to example, unless it is to be a `fresh` one. `strict` counts a SHOULD.
        """
        __tracebackhide__ = True
        from mcptest.probe.properties.steps import Crafted, send_of

        steps: Steps = (send_of(drawn),) if isinstance(drawn, Crafted) else tuple(drawn)
        # Whether something in them is what no client may send.
        bench = self._bench_for(rude=isinstance(drawn, Crafted) and not drawn.valid)
        if fresh:
            bench.renew()
        counted = (Severity.MUST, Severity.SHOULD) if strict else (Severity.MUST,)
        broken = [one for one in bench.judged(steps) if one.severity in counted]
        if broken:
            from mcptest.probe.properties.engine import told

            found = told(self._stage, steps, broken[0])
            error = _broken([found], f"{found.rule} {found.title}".strip())
            bench.renew()  # what it left behind is no matter of the next example
            raise error

    def _bench_for(self, *, rude: bool) -> PlayBench:
        """Who was rude once is judged by fewer rules, so politeness begins with a new session."""
        from mcptest.probe.properties.bench import PlayBench

        if self._bench is None or self._rude is not rude:
            if self._bench is not None:
                self._bench.renew()
            self._rude = rude
            self._bench = PlayBench(self._stage, rude=rude)
        return self._bench


# -- A session held against the rules -------------------------------------------------------------

Document: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Subject: TypeAlias = str | os.PathLike[str] | Client | AsyncClient | Document


def assert_conforms(
    subject: Subject, revision: str | Revision | None = None, *, strict: bool = False
) -> tuple[JudgedSession, ...]:
    """AssertionError, with every finding and its proof, unless the session keeps to the rules.

    `subject` is the path of a capture, one that was read already (`{"exchanges": […]}`), or a
    client, whose session is judged as far as it went. Of a client only the server is judged: what
    a test sends on purpose is no fault. `revision` overrides what the session says that it speaks;
    `strict` counts a SHOULD as well. Whoever wants more than the assertion gets the verdicts.
    """
    __tracebackhide__ = True
    wanted = parse_revision(revision) if isinstance(revision, str) else revision
    if isinstance(subject, AsyncClient):
        subject = subject.client
    if isinstance(subject, Client):
        sessions = _judged_servers(subject, wanted)
    else:
        sessions = _judged(subject, wanted)
    broken = [one for one in sessions if any(is_failure(v, one, strict) for v in one.verdicts)]
    count, lines = 0, [""]
    for session in broken:  # as `mcptest compliance invariants` says it, without what is in order
        failures = tuple(one for one in session.verdicts if is_failure(one, session, strict))
        count += len(failures)
        shown = replace(session, verdicts=failures)
        lines += list(build_report([shown], (), "").lines(Style(unicode=False)))[:-1]
    if broken:
        head = f"{count} rule is broken" if count == 1 else f"{count} rules are broken"
        raise AssertionError("\n".join((head, *lines)).rstrip())
    decided = {Outcome.PASS, Outcome.FAIL}
    if not any(v.outcome in decided for one in sessions for v in one.verdicts):
        raise AssertionError("nothing was judged: the session exercised none of the rules")
    return sessions


def _judged(subject: Any, revision: Revision | None) -> tuple[JudgedSession, ...]:
    if isinstance(subject, str | os.PathLike):
        path = os.fspath(subject)
        return tuple(judge(source, all_rules(), revision) for source in open_capture(path))
    # Captures are read from files, and so is one that stands in memory.
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="mcptest-") as file:
        json.dump(subject, file)
        file.flush()
        judged = _judged(file.name, revision)
    return tuple(replace(session, file="in memory") for session in judged)


def _judged_servers(client: Client, revision: Revision | None) -> tuple[JudgedSession, ...]:
    # The client knows what was settled, also where a slow start left both eras in the capture.
    if revision is None and client.has_begun:
        revision = client.revision
    # Some rules conclude from all that a client asked for, as only a tour of ours asks.
    ours = (rule for rule in all_rules() if rule.side is not Side.CLIENT)
    rules = [rule for rule in ours if rule.conversations != "tour"]
    sessions = []
    for source in open_capture(str(capture_of(client))):
        session = judge(source, rules, revision)
        verdicts = (about_the_server(one, session.of_server[one.rule]) for one in session.verdicts)
        sessions.append(replace(session, verdicts=tuple(verdicts)))
    return tuple(sessions)
