"""Conversations are made small by leaving out, plainly and without trying anything twice."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest

from mcptest.core.revision import Revision
from mcptest.probe.counterexamples import Examples
from mcptest.probe.properties.bench import Violation
from mcptest.probe.properties.engine import PropertyRun
from mcptest.probe.properties.player import ExampleServer
from mcptest.probe.properties.property_catalogue import PROPERTIES, KnownServer, PropertyOrder
from mcptest.probe.properties.search import Broken, CarriedOver, Shortening, Trial, plain_ask
from mcptest.probe.properties.steps import (
    AskAtOnce,
    AskStep,
    Connect,
    Notify,
    PageStep,
    Relate,
    Steps,
)
from mcptest.report.property import Way
from mcptest.session.pages import Offer
from mcptest.transport.target import DEMO

FOUND = Violation(way=Way.RULE, rule="MSG-009")
READ = "resources/read"


class Scripted:
    """A trial on a server that fails whenever it is told to, and the bench of it."""

    def __init__(self, fails: Callable[[list[AskStep]], bool]) -> None:
        self.fails = fails
        self.until = math.inf
        self.played: list[Steps] = []
        self.bench = self

    def skips(self, steps: Steps) -> bool:
        return False

    def renew(self) -> None:
        """Every try is on a fresh server here."""

    def tried(self, steps: Steps, wanted: tuple[str, ...]) -> Violation | None:
        self.played.append(steps)
        asked: list[AskStep] = []
        for step in steps:
            asked += step.many if isinstance(step, AskAtOnce) else ()
            asked += [step] if isinstance(step, AskStep) else ()
            asked += [AskStep(step.method)] * step.pages if isinstance(step, PageStep) else ()
        return FOUND if self.fails(asked) else None


def read(uri: str, *, progress: bool = False) -> AskStep:
    return AskStep(READ, {"uri": uri}, progress)


def same(ask: AskStep) -> AskStep:
    return ask


def reads(count: int) -> Callable[[list[AskStep]], bool]:
    return lambda asked: sum(one.method == READ for one in asked) >= count


NOISE = (Notify("notifications/roots/list_changed"), AskStep("ping"), PageStep("tools/list", 3))


def test_what_is_needless_goes_and_what_was_at_once_comes_one_by_one() -> None:
    steps = (
        Connect(),
        *NOISE,
        AskAtOnce((AskStep("ping"), read("a"), read("b", progress=True))),
        *NOISE,
        read("c"),
        *NOISE,
    )
    trial = Scripted(reads(3))
    shortening = Shortening(trial, (), same)  # type: ignore[arg-type]  # it is enough of one
    short, tries = shortening.plainer(steps), shortening.shrinker.tries
    assert short == (Connect(), read("a"), read("a"), read("a"))
    assert tries == len(trial.played)
    assert len({msgspec.json.encode(one) for one in trial.played}) == tries, (
        "nothing is tried twice"
    )
    assert tries < 25


def test_what_only_fails_at_once_stays_at_once() -> None:
    trial = Scripted(reads(2))
    at_once = AskAtOnce((read("a"), AskStep("ping"), read("b")))
    judged = trial.tried

    def only_at_once(steps: Steps, wanted: tuple[str, ...]) -> Violation | None:
        found = judged(steps, wanted)
        return found if any(isinstance(one, AskAtOnce) for one in steps) else None

    trial.tried = only_at_once  # type: ignore[method-assign]  # a server with another bug
    short = Shortening(trial, (), same).plainer((Connect(), *NOISE, at_once))  # type: ignore[arg-type]  # as above
    assert short == (Connect(), AskAtOnce((read("a"), read("b"))))


def test_the_values_are_the_plainest_as_far_as_nothing_hangs_on_them() -> None:
    def needs_b(asked: list[AskStep]) -> bool:
        return reads(2)(asked) and any(one.params.get("uri") == "b" for one in asked)

    trial = Scripted(needs_b)
    steps = (Connect(), read("long"), read("b"))
    short = Shortening(trial, (), lambda ask: read("plain")).plainer(steps)  # type: ignore[arg-type]  # as above
    assert short == (Connect(), read("b"), read("b"))


def test_what_is_told_of_several_examples_was_played_last() -> None:
    trial = Scripted(reads(2))
    before: list[Steps] = [(Connect(), *NOISE), (Connect(), read("a"), *NOISE), (Connect(), *NOISE)]
    takes = Shortening(trial, (), same).of_examples(before, (Connect(), read("b")))  # type: ignore[arg-type]  # as above
    assert takes is not None
    assert takes.steps == (Connect(), read("a"), read("a"))
    assert takes.after == 1
    assert trial.played[-1] == takes.steps


def test_there_is_an_end_to_trying() -> None:
    trial = Scripted(reads(250))
    steps = (Connect(), *(read(str(number)) for number in range(500)))
    Shortening(trial, (), same).plainer(steps)  # type: ignore[arg-type]  # as above
    assert len(trial.played) == 200


TOOL = {
    "name": "add",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
    },
}
GROUND = KnownServer(
    Revision.V2025_11_25, "stdio", Offer(tools=(TOOL,), capabilities={"tools": {}})
)


@pytest.mark.parametrize(
    ("ask", "plain"),
    [
        (
            AskStep("tools/call", {"name": "add", "arguments": {"a": 77, "b": -5}}, progress=True),
            AskStep("tools/call", {"name": "add", "arguments": {"a": 0}}, progress=True),
        ),
        (AskStep("tools/call", {"name": "gone", "arguments": {}}), None),
        (AskStep("resources/read", {"uri": "gone://"}), None),
    ],
    ids=["tool", "no such tool", "no resources"],
)
def test_the_plainest_request_is_of_the_same_tool(ask: AskStep, plain: AskStep | None) -> None:
    assert plain_ask(GROUND, ask) == (plain or ask)


def test_a_difference_that_does_not_come_again_is_noted_and_is_no_counterexample() -> None:
    stage = ExampleServer(PropertyOrder(target=DEMO))
    run = PropertyRun(PROPERTIES["read-only"], stage, Examples(None, DEMO))
    step = Relate("read-only", "add", {"a": 1})
    once = Violation(way=Way.RELATION, title="it changes nothing", message="the counter changed")
    trial = Scripted(lambda asked: False)
    run._carried_over(trial, CarriedOver([(step,), (step,)], (step,), once))  # type: ignore[arg-type]  # as above
    result = run.so_far()
    assert result.counterexamples == ()
    assert result.notes == ("it happened once but not again: the counter changed",)
    assert not trial.played


class Silent:
    """A bench on a server that is late, or says nothing at all."""

    is_fresh = began_anew = False

    def __init__(self, *, late: bool) -> None:
        self.late = late
        self.patient = False
        self.asked_patiently: list[bool] = []

    def judged(self, steps: Steps) -> list[Violation]:
        self.asked_patiently.append(self.patient)
        return [] if self.late and self.patient else [Violation(way=Way.HANG, rule="PROTO-008")]

    def skips(self, steps: Steps) -> bool:
        return False

    def learn(self, steps: Steps, found: Violation) -> None:
        """Nothing is told here."""

    def renew(self, *, patient: bool = False) -> None:
        self.patient = patient


def test_a_server_that_is_late_once_is_not_taken_for_one_that_hangs() -> None:
    bench = Silent(late=True)
    with pytest.raises(CarriedOver):
        Trial(bench, until=math.inf)((read("a"),))
    assert bench.asked_patiently == [False, True]
    assert not bench.patient, "whatever comes next has the usual time"


def test_silence_that_is_waited_out_in_vain_is_found() -> None:
    bench = Silent(late=False)
    trial = Trial(bench, until=math.inf)
    with pytest.raises(Broken):
        trial((read("a"),))
    assert trial.smallest is not None
    assert trial.smallest[1].way is Way.HANG
