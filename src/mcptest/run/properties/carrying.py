"""Making a conversation small by leaving out: what Hypothesis can't, or has not done.

A failure that an example shows only after others is made of several examples, of which Hypothesis
knows nothing; and a step that is plainer but longer written is none that it would prefer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeVar

import msgspec

from mcptest.explore.property.steps import Ask, AskAtOnce, Connect, Disconnect, Page
from mcptest.run.properties.judging import Violation
from mcptest.run.properties.playing import AnyStep, Steps
from mcptest.run.properties.trial import Trial

T = TypeVar("T")
_TRIES = 200


class Carried(msgspec.Struct, frozen=True):
    """The shortest sequence that was found, and how it breaks the property."""

    steps: Steps
    found: Violation
    after: int
    """How many of the steps are of earlier examples."""
    tries: int


def what_it_takes(
    trial: Trial, before: list[Steps], steps: Steps, wanted: tuple[str, ...]
) -> Carried | None:
    """None when it does not happen again even after everything that came before."""
    return _Shortening(trial, wanted).of_examples(before, steps)


def plainest(trial: Trial, steps: Steps, wanted: tuple[str, ...]) -> tuple[Steps, int]:
    """The same with plainer steps, as far as it still fails; and how many tries that took."""
    short = _Shortening(trial, wanted)
    return short.plainer(steps), short.tries


class _Shortening:
    def __init__(self, trial: Trial, wanted: tuple[str, ...]) -> None:
        self.trial = trial
        self.wanted = wanted
        self.tries = 0

    def of_examples(self, before: list[Steps], last: Steps) -> Carried | None:
        before = [one for one in before if not self.trial.bench.skips(one)]
        near = self._near(before, last)
        if near is None:
            return None
        before, found = near
        examples = self._without_needless(before, lambda kept: _joined([*kept, last]))
        short = self.plainer(_joined([*examples, last]))
        mine = sum(not isinstance(one, Connect) for one in last)
        sent = sum(not isinstance(one, Connect) for one in short)
        found = self._fails(short) or found
        return Carried(short, found, max(1, sent - mine), self.tries)

    def _near(self, before: list[Steps], last: Steps) -> tuple[list[Steps], Violation] | None:
        """The trouble is mostly near: the shortest run of neighbours that does it."""
        near = 1
        while near < 2 * len(before):
            kept = before[-near:]
            found = self._fails(_joined([*kept, last]))
            if found is not None:
                return kept, found
            near *= 2
        return None

    def plainer(self, steps: Steps) -> Steps:
        """Without needless steps, and with plainer ones in place of what is left."""
        short = list(_clean(self._without_needless(list(steps), _clean)))
        changed = True
        while changed:
            changed = False
            for place, step in enumerate(short):
                for other in _plainer_than(step):
                    candidate = [*short[:place], *other, *short[place + 1 :]]
                    if self._fails(_clean(candidate)) is not None:
                        short = list(_clean(self._without_needless(candidate, _clean)))
                        changed = True
                        break
                if changed:
                    break
        return tuple(short)

    def _without_needless(self, parts: list[T], made: Callable[[list[T]], Steps]) -> list[T]:
        """Leave out ever smaller runs, as long as it still fails. Steps and examples alike."""
        size = max(1, len(parts) // 2)
        while True:
            place = 0
            while place < len(parts):
                less = parts[:place] + parts[place + size :]
                if self._fails(made(less)) is not None:
                    parts = less
                else:
                    place += size
            if size == 1:
                return parts
            size //= 2

    def _fails(self, steps: Steps) -> Violation | None:
        if not steps or self.tries >= _TRIES or time.monotonic() >= self.trial.until:
            return None
        self.tries += 1
        self.trial.renew()
        return self.trial.tried(steps, self.wanted)


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
    elif isinstance(step, Ask) and step.progress:
        yield (Ask(step.method, step.params),)
    elif isinstance(step, Page):
        yield (Ask(step.method),)
        if step.pages > 1:
            yield (Page(step.method, 1),)


def _joined(examples: list[Steps]) -> Steps:
    return _clean(list(chain.from_iterable(examples)))


def _clean(steps: list[AnyStep]) -> Steps:
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
