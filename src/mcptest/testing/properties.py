"""`check_property`: a property of the protocol tried on a server, for tests in Python.

Needs Hypothesis: `pip install 'mcptest[property]'`. Nothing of it is imported until it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from mcptest.core.errors import UsageError
from mcptest.core.redaction import redaction
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.core.verdict import Severity
from mcptest.report.property import PropertyReport
from mcptest.testing.serving import Server

if TYPE_CHECKING:
    from mcptest.probe.properties.crafted import Crafted
    from mcptest.probe.properties.example_judge import PlayBench, Violation
    from mcptest.probe.properties.example_player import Steps
    from mcptest.probe.properties.property_order import PropertyOrder
    from mcptest.probe.properties.steps import Offer, Step

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
        from mcptest.report.property import counterexample_lines
        from mcptest.report.terminal import Style

        lines = [report.in_words(), report.heading()]  # as `mcptest property` says it
        for found in report.failures:
            lines += ["", f"{found.of_property}:"]
            lines += counterexample_lines(found, Style(unicode=False), verbose=True)
        raise AssertionError("\n".join(lines))
    if not report.examples and not may_be_skipped:
        raise AssertionError(f"nothing was tried: {why_not(report)}")
    return report


def assert_holds(example: Mapping[str, Any], server: Named, *, timeout: float = 5.0) -> None:
    """AssertionError as long as the server breaks its property by this counterexample.

    It is what `mcptest property --output DIR` writes, and what such a pytest file calls.
    """
    __tracebackhide__ = True
    need_hypothesis()
    from mcptest.probe.properties.engine import assert_example_holds

    named = Server.of(server)
    assert_example_holds(example, named.target, timeout=timeout, startup=named.timeout)


def why_not(report: PropertyReport) -> str:
    """Why nothing was tried."""
    return "; ".join(f"{one.name}: {one.skipped}" for one in report.properties if one.skipped)


def need_hypothesis() -> None:
    if find_spec("hypothesis") is None:
        message = "properties need Hypothesis, which is not installed"
        raise UsageError(message, hint="pip install 'mcptest[property]'")


def _order(server: Server, names: Sequence[str]) -> PropertyOrder:
    from mcptest.probe.properties.property_catalogue import PROPERTIES
    from mcptest.probe.properties.property_order import PropertyOrder

    for name in names:
        if name not in PROPERTIES:
            hint = f"there are {', '.join(PROPERTIES)}"
            raise UsageError(f"there is no property {name!r}", hint=hint)
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
        from mcptest.probe.properties.example_server import ExampleServer

        self._allowed = tuple(allow_tools)
        self._masker = redaction.masker
        self._stage = ExampleServer(replace(_order(Server.of(server), ()), timeout=timeout))
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
        return self._stage.transport

    @property
    def offer(self) -> Offer:
        """What the server lists, without the tools that must not be called."""
        from mcptest.probe.properties.property_catalogue import ground_of

        if self._stage.facts is None:
            self._stage.open()
        facts = self._stage.facts
        assert facts is not None  # the server was met
        return ground_of(self.revision, self.transport, facts.offer, self._allowed).offer

    def play(self, drawn: Drawn, *, strict: bool = False, fresh: bool = False) -> None:
        """AssertionError, with the rule and what was said, when the server breaks one.

        `drawn` is a message (`requests`, `invalid_messages`, …) or a conversation. A session goes
        on from example to example, unless it is to be a `fresh` one. `strict` counts a SHOULD.
        """
        __tracebackhide__ = True
        from mcptest.probe.properties.crafted import Crafted
        from mcptest.probe.properties.raw_steps import send_of

        steps: Steps = (send_of(drawn),) if isinstance(drawn, Crafted) else tuple(drawn)
        # Whether something in them is what no client may send.
        bench = self._bench_for(rude=isinstance(drawn, Crafted) and not drawn.valid)
        if fresh:
            bench.renew()
        counted = (Severity.MUST, Severity.SHOULD) if strict else (Severity.MUST,)
        broken = [one for one in bench.judged(steps) if one.severity in counted]
        if broken:
            text = "\n".join(self._violation_lines(steps, broken[0]))
            bench.renew()  # what it left behind is no matter of the next example
            raise AssertionError(text)

    def _bench_for(self, *, rude: bool) -> PlayBench:
        """Who was rude once is judged by fewer rules, so politeness begins with a new session."""
        from mcptest.probe.properties.example_judge import Judge, PlayBench

        if self._bench is None or self._rude is not rude:
            if self._bench is not None:
                self._bench.renew()
            self._rude = rude
            judge = Judge(self.revision, self.transport, rude=rude)
            self._bench = PlayBench(self._stage, judge)
        return self._bench

    def _violation_lines(self, steps: Steps, found: Violation) -> Iterator[str]:
        from mcptest.probe.properties.property_run import lines_of

        mask = self._masker.text
        rule = f"{found.rule} " if found.rule else ""
        yield f"{rule}{found.title} ({found.severity.value}): {show(mask(found.message), 400)}"
        if found.expected:
            yield f"expected {show(mask(found.expected), 300)}"
        yield from (f"{n}. {show(mask(one.words), 400)}" for n, one in enumerate(steps, 1))
        for line in lines_of(self._stage, found, self._masker):
            here = " <== here" if line.at_fault else ""
            yield f"   {line.sender or 'note'}: {line.text}{here}"
