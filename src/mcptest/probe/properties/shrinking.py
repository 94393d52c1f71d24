"""What is left out of a conversation, or made plainer: what Hypothesis can't, or has not done.

A failure that an example shows only after others is made of several examples, of which Hypothesis
knows nothing; and a step that is plainer but longer written is none that it would prefer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.probe.properties.bench import Violation
from mcptest.probe.properties.message_strategies import params_of_offer
from mcptest.probe.properties.property_catalogue import KnownServer
from mcptest.probe.properties.search import Enough, Trial, search
from mcptest.probe.properties.steps import (
    AnyStep,
    AskAtOnce,
    AskStep,
    Connect,
    Disconnect,
    PageStep,
    Steps,
)
from mcptest.probe.shrink import Shrinker

Plain: TypeAlias = Callable[[AskStep], AskStep]
"""The plainest request of the same kind."""
_TRIES = 200
_encode = msgspec.json.Encoder().encode


class Carried(msgspec.Struct, frozen=True):
    """The shortest sequence that was found, and how it breaks the property."""

    steps: Steps
    found: Violation
    after: int
    """How many of the steps only lead up to it."""


class Shortening:
    """A conversation that breaks a property in the way that is wanted is made short and plain."""

    def __init__(self, trial: Trial, wanted: tuple[str, ...], plain: Plain) -> None:
        self.trial = trial
        self.wanted = wanted
        self.plain = plain
        self.shrinker = Shrinker(self._played, most=_TRIES, until=trial.until, spell=_encode)

    def of_examples(self, before: list[Steps], last: Steps) -> Carried | None:
        """None when it does not happen again even after everything that came before."""
        before = [one for one in before if not self.trial.bench.skips(one)]
        # The trouble is mostly near: the shortest run of neighbours that does it.
        near, found = 1, None
        while found is None:
            if near >= 2 * len(before):
                return None
            some = before[-near:]
            found = self.shrinker.proof(_joined([*some, last]))
            near *= 2
        examples = self.shrinker.without_needless(some, lambda some: _joined([*some, last]))
        short = self.plainer(_joined([*examples, last]))
        sent = sum(not isinstance(one, Connect) for one in short)
        found = self._played(short) or found  # once more: what was played last is what is told
        return Carried(short, found, max(1, sent - 1))

    def plainer(self, steps: Steps) -> Steps:
        """Without needless steps, and with plainer ones in place of what is left, as far as it
        still fails."""
        flat = _clean(chain.from_iterable(map(_one_by_one, steps)))
        if self._fails(flat):  # as mostly: what was done at once needs no looking at
            steps = flat
        short = self._alike(self._asking_plainly(self._without_needless(steps)))
        return self.shrinker.smallest(short, _plainer_conversations, self._without_needless)

    def _asking_plainly(self, steps: Steps) -> Steps:
        """With the plainest that can be asked of the same method and tool; all at once, or each."""
        places = [
            place for place, one in enumerate(steps) if isinstance(one, AskStep) and one.params
        ]
        for some in (places, *([place] for place in places)):
            plain = _clean(
                self.plain(one) if place in some and isinstance(one, AskStep) else one
                for place, one in enumerate(steps)
            )
            if plain != steps and self._fails(plain):
                steps = plain
        return steps

    def _alike(self, steps: Steps) -> Steps:
        """Where a request is made many times, the shortest of them each time."""
        for method in dict.fromkeys(one.method for one in steps if isinstance(one, AskStep)):
            asked = [one for one in steps if isinstance(one, AskStep) and one.method == method]
            least = min(asked, key=lambda one: len(_encode(one)))
            alike = _clean(least if one in asked else one for one in steps)
            if alike != steps and self._fails(alike):
                steps = alike
        return steps

    def _without_needless(self, steps: Steps) -> Steps:
        return _clean(self.shrinker.without_needless(list(steps), _clean))

    def _fails(self, steps: Steps) -> bool:
        return self.shrinker.proof(steps) is not None

    def _played(self, steps: Steps) -> Violation | None:
        if not steps:
            return None
        self.trial.renew()
        return self.trial.tried(steps, self.wanted)


def _plainer_conversations(steps: Steps) -> Iterator[Steps]:
    for place, step in enumerate(steps):
        for other in _plainer_than(step):
            yield _clean((*steps[:place], *other, *steps[place + 1 :]))


def _one_by_one(step: AnyStep) -> tuple[AnyStep, ...]:
    """The same requests, bare, each when the one before is answered."""
    if isinstance(step, AskAtOnce):
        return tuple(AskStep(one.method, one.params) for one in step.many)
    if isinstance(step, PageStep):
        return (AskStep(step.method),)
    return (AskStep(step.method, step.params),) if isinstance(step, AskStep) else (step,)


def _plainer_than(step: AnyStep) -> Iterator[tuple[AnyStep, ...]]:
    """What may stand in its place and says less: the plainest first."""
    if isinstance(step, AskAtOnce):
        for place in range(len(step.many)):
            yield (step.many[place],)
        yield step.many
        for place in range(len(step.many)):
            fewer = step.many[:place] + step.many[place + 1 :]
            if len(fewer) > 1:
                moved = tuple(one - (one > place) for one in step.cancelled if one != place)
                yield (AskAtOnce(fewer, moved),)
    elif isinstance(step, AskStep) and step.progress:
        yield (AskStep(step.method, step.params),)
    elif isinstance(step, PageStep):
        yield (AskStep(step.method),)
        if step.pages > 1:
            yield (PageStep(step.method, 1),)


def _joined(examples: list[Steps]) -> Steps:
    return _clean(chain.from_iterable(examples))


def _clean(steps: Iterable[AnyStep]) -> Steps:
    """As one conversation: connected once, and left only where it is taken up again."""
    found: list[AnyStep] = []
    for step in steps:
        opening = isinstance(step, Connect)
        if opening and found and not isinstance(found[-1], Disconnect):
            continue
        found.append(step)
    if found and not isinstance(found[0], Connect):
        found.insert(0, Connect())
    return tuple(found)


# -- The plainest request of a kind --------------------------------------------------------------


def plain_ask(ground: KnownServer, ask: AskStep) -> AskStep:
    """The same method, and the same tool or prompt, with the simplest that can be drawn for it."""
    offer, name = ground.offer, ask.params.get("name")
    if name is not None:
        tools, prompts = (
            tuple(one for one in part if isinstance(one, Mapping) and one.get("name") == name)
            for part in (offer.tools, offer.prompts)
        )
        offer = replace(offer, tools=tools, prompts=prompts)
    strategy = params_of_offer(ground.revision, offer, with_meta=False).get(ask.method)
    if strategy is None or strategy.is_empty:
        return ask
    drawn: list[Any] = []

    def take(first: Any) -> None:
        drawn.append(first)
        raise Enough

    try:
        search(strategy, take, seed=0, examples=1)  # Hypothesis begins with the simplest
    except Enough:
        return AskStep(ask.method, drawn[0], ask.progress)
    return ask
