"""What strategies draw, played on a server and judged by the rules: for tests with `@given`.

Needs Hypothesis: `pip install 'mcptest[property]'`. Nothing of it is imported until it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from mcptest.model.redaction import redaction
from mcptest.model.revision import Revision, parse_revision
from mcptest.model.show import show
from mcptest.model.verdict import Severity
from mcptest.testing.properties import Named, need_hypothesis
from mcptest.testing.serving import Server

if TYPE_CHECKING:
    from mcptest.explore.property.crafted import Crafted
    from mcptest.explore.property.offer import Offer
    from mcptest.explore.property.steps import Step
    from mcptest.run.properties.bench import PlayBench
    from mcptest.run.properties.judging import Violation
    from mcptest.run.properties.playing import Steps

    Drawn: TypeAlias = Crafted | Sequence[Step]

_COUNTED = {False: (Severity.MUST,), True: (Severity.MUST, Severity.SHOULD)}


class Player:
    """One server on which examples are played. It is started again when one of them ends it."""

    def __init__(
        self, server: Named, *, allow_tools: Sequence[str] = (), timeout: float = 5.0
    ) -> None:
        """`allow_tools` are in the offer beside those that say that they only read; '*' is all.

        `timeout` is for each request, in seconds.
        """
        need_hypothesis()
        from mcptest.run.properties.stage import Stage, Whom

        named = Server.of(server)
        wanted = None if named.revision in {None, "auto"} else parse_revision(str(named.revision))
        self._allowed = tuple(allow_tools)
        self._masker = redaction.masker
        self._stage = Stage(
            Whom(target=named.target, revision=wanted, timeout=timeout, startup=named.timeout)
        )
        self._bench: PlayBench | None = None
        self._rude = False

    def __enter__(self) -> Player:
        self._stage.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stage.close()

    # -- what strategies need to know ----------------------------------------------------------

    @property
    def revision(self) -> Revision:
        return self._stage.revision

    @property
    def transport(self) -> str:
        return self._stage.transport

    @property
    def offer(self) -> Offer:
        """What the server lists, without the tools that must not be called."""
        from mcptest.run.properties.catalogue import ground_of

        if self._stage.facts is None:
            self._stage.open()
        facts = self._stage.facts
        assert facts is not None  # the server was met
        return ground_of(self.revision, self.transport, facts.offer, self._allowed).offer

    # -- playing -------------------------------------------------------------------------------

    def play(self, drawn: Drawn, *, strict: bool = False, fresh: bool = False) -> None:
        """AssertionError, with the rule and what was said, when the server breaks one.

        `drawn` is a message (`requests`, `invalid_messages`, …) or a conversation. A session goes
        on from example to example, unless it is to be a `fresh` one. `strict` counts a SHOULD.
        """
        __tracebackhide__ = True
        steps, rude = _steps_of(drawn)
        bench = self._bench_for(rude=rude)
        if fresh:
            bench.renew()
        broken = [one for one in bench.judged(steps) if one.severity in _COUNTED[strict]]
        if broken:
            told = "\n".join(self._told(steps, broken[0]))
            bench.renew()  # what it left behind is no matter of the next example
            raise AssertionError(told)

    def _bench_for(self, *, rude: bool) -> PlayBench:
        """Who was rude once is judged by fewer rules, so politeness begins with a new session."""
        from mcptest.run.properties.bench import PlayBench
        from mcptest.run.properties.judging import Judge

        if self._bench is None or self._rude is not rude:
            if self._bench is not None:
                self._bench.renew()
            self._rude = rude
            judge = Judge(self.revision, self.transport, rude=rude)
            self._bench = PlayBench(self._stage, judge)
        return self._bench

    def _told(self, steps: Steps, found: Violation) -> Iterator[str]:
        from mcptest.run.properties.telling import lines_of

        mask = self._masker.text
        rule = f"{found.rule} " if found.rule else ""
        yield f"{rule}{found.title} ({found.severity.value}): {show(mask(found.message), 400)}"
        if found.expected:
            yield f"expected {show(mask(found.expected), 300)}"
        yield from (f"{n}. {show(mask(one.words), 400)}" for n, one in enumerate(steps, 1))
        for line in lines_of(self._stage, found, self._masker):
            here = " <== here" if line.at_fault else ""
            yield f"   {line.sender or 'note'}: {line.text}{here}"


def _steps_of(drawn: Any) -> tuple[Steps, bool]:
    """As steps, and whether something in them is what no client may send."""
    from mcptest.explore.property.crafted import Crafted
    from mcptest.run.properties.sends import send_of

    if isinstance(drawn, Crafted):
        return (send_of(drawn),), not drawn.valid
    return tuple(drawn), False
