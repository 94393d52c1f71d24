"""Making a conversation small by leaving out: what Hypothesis can't, or has not done.

A failure that an example shows only after others is made of several examples, of which Hypothesis
knows nothing; and a step that is plainer but longer written is none that it would prefer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeAlias, TypeVar

import msgspec

from mcptest.explore.property.steps import Ask, AskAtOnce, Connect, Disconnect, Page
from mcptest.run.properties.judging import Violation
from mcptest.run.properties.playing import AnyStep, Steps
from mcptest.run.properties.trial import Trial

T = TypeVar("T")
Plain: TypeAlias = Callable[[Ask], Ask]
"""The plainest request of the same kind."""
_TRIES = 200
_encode = msgspec.json.Encoder().encode


class Carried(msgspec.Struct, frozen=True):
    """The shortest sequence that was found, and how it breaks the property."""

    steps: Steps
    found: Violation
    after: int
    """How many of the steps only lead up to it."""
    tries: int


def what_it_takes(
    trial: Trial, before: list[Steps], steps: Steps, wanted: tuple[str, ...], plain: Plain
) -> Carried | None:
    """None when it does not happen again even after everything that came before."""
    return _Shortening(trial, wanted, plain).of_examples(before, steps)


def plainest(
    trial: Trial, steps: Steps, wanted: tuple[str, ...], plain: Plain
) -> tuple[Steps, int]:
    """The same with plainer steps, as far as it still fails; and how many tries that took."""
    short = _Shortening(trial, wanted, plain)
    return short.plainer(steps), short.tries


class _Shortening:
    def __init__(self, trial: Trial, wanted: tuple[str, ...], plain: Plain) -> None:
        self.trial = trial
        self.wanted = wanted
        self.plain = plain
        self.tries = 0
        self._seen: dict[bytes, Violation | None] = {}

    def of_examples(self, before: list[Steps], last: Steps) -> Carried | None:
        before = [one for one in before if not self.trial.bench.skips(one)]
        near = self._near(before, last)
        if near is None:
            return None
        before, found = near
        examples = self._without_needless(before, lambda kept: _joined([*kept, last]))
        short = self.plainer(_joined([*examples, last]))
        sent = sum(not isinstance(one, Connect) for one in short)
        found = self._played(short) or found  # once more: what was played last is what is told
        return Carried(short, found, max(1, sent - 1), self.tries)

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
        flat = _clean(list(chain.from_iterable(map(_one_by_one, steps))))
        if self._fails(flat) is not None:  # as mostly: what was done at once needs no looking at
            steps = flat
        short = list(_clean(self._without_needless(list(steps), _clean)))
        short = self._alike(self._asking_plainly(short))
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

    def _asking_plainly(self, steps: list[AnyStep]) -> list[AnyStep]:
        """With the plainest that can be asked of the same method and tool; all at once, or each."""
        places = [place for place, one in enumerate(steps) if isinstance(one, Ask) and one.params]
        for some in (places, *([place] for place in places)):
            plain = [self._plain(one) if place in some else one for place, one in enumerate(steps)]
            if plain != steps and self._fails(_clean(plain)) is not None:
                steps = plain
        return steps

    def _plain(self, step: AnyStep) -> AnyStep:
        return self.plain(step) if isinstance(step, Ask) else step

    def _alike(self, steps: list[AnyStep]) -> list[AnyStep]:
        """Where a request is made many times, the shortest of them each time."""
        for method in dict.fromkeys(one.method for one in steps if isinstance(one, Ask)):
            asked = [one for one in steps if isinstance(one, Ask) and one.method == method]
            least = min(asked, key=lambda one: len(_encode(one)))
            alike = [least if one in asked else one for one in steps]
            if alike != steps and self._fails(_clean(alike)) is not None:
                steps = list(_clean(alike))
        return steps

    def _without_needless(self, parts: list[T], made: Callable[[list[T]], Steps]) -> list[T]:
        """Leave out ever smaller runs, as long as it still fails. Steps and examples alike."""
        size = max(1, len(parts) // 2)
        while True:
            place, before = 0, len(parts)
            while place < len(parts):
                less = parts[:place] + parts[place + size :]
                if self._fails(made(less)) is not None:
                    parts = less
                else:
                    place += size
            if size == 1 and len(parts) == before:  # each alone is needed
                return parts
            size = max(1, size // 2)

    def _fails(self, steps: Steps) -> Violation | None:
        mark = _encode(steps)
        if mark not in self._seen:
            if not steps or self.tries >= _TRIES or time.monotonic() >= self.trial.until:
                return None
            self.tries += 1
            self._seen[mark] = self._played(steps)
        return self._seen[mark]

    def _played(self, steps: Steps) -> Violation | None:
        self.trial.renew()
        return self.trial.tried(steps, self.wanted)


def _one_by_one(step: AnyStep) -> tuple[AnyStep, ...]:
    """The same requests, bare, each when the one before is answered."""
    if isinstance(step, AskAtOnce):
        return tuple(Ask(one.method, one.params) for one in step.many)
    if isinstance(step, Page):
        return (Ask(step.method),)
    return (Ask(step.method, step.params),) if isinstance(step, Ask) else (step,)


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
