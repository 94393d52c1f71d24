"""One search for a counterexample: Hypothesis generates and shrinks, a trial tries on a server.

Hypothesis does no more than that. Its own output, its database, its deadlines and its health checks
are off: what an example takes is the server's time, what is kept is kept by us, and reports are
ours. A failure that an example shows only after others is made of several examples, of which it
knows nothing; and a step that is plainer but longer written is none that it would prefer. Such
conversations are made short and plain here.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import hypothesis
import msgspec
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.errors import Flaky, HypothesisWarning, Unsatisfiable
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from mcptest.core.errors import PeerError
from mcptest.probe.properties.bench import PlayBench, RelationBench, Violation
from mcptest.probe.properties.message_strategies import params_of_offer
from mcptest.probe.properties.property_catalogue import KnownServer
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
from mcptest.session.connection import Stopped

# -- Draws that hang on the seed alone, whatever else is loaded in this process ------------------

_CONSTANTS = "_get_local_constants"
_CACHE = "CONSTANTS_CACHE"


def _ours() -> dict[str, Any]:
    """In place of the parts of Hypothesis that are meant; empty where it has none of that name."""
    everything = getattr(providers, "GLOBAL_CONSTANTS", None)
    cache = getattr(providers, _CACHE, None)
    if everything is None or cache is None or not hasattr(providers, _CONSTANTS):
        return {}
    none = type(everything)()
    return {_CONSTANTS: lambda: none, _CACHE: type(cache)(cache.max_size)}


_OURS = _ours()


@contextlib.contextmanager
def steady_draws() -> Iterator[None]:
    """Local constants are left out until it ends: the tests of our users have theirs."""
    theirs = {name: getattr(providers, name) for name in _OURS}
    vars(providers).update(_OURS)
    try:
        yield
    finally:
        vars(providers).update(theirs)


# -- One search by Hypothesis --------------------------------------------------------------------


def keep_nothing_here() -> None:
    """Hypothesis writes a cache into the current folder; a command of ours leaves nothing there.

    For our own process only: in somebody's test run that folder is theirs.
    """
    set_hypothesis_home_dir(Path(os.devnull, "hypothesis"))


class Enough(BaseException):
    """The search is to end at once."""


class RunEnded(BaseException):
    """What ends the whole run came up in an example, where Hypothesis would take it for a find."""

    def __init__(self, why: Exception) -> None:
        super().__init__()
        self.why = why


class Broken(Exception):  # noqa: N818 - it is what is looked for
    """The example breaks the property."""


def search(
    strategy: SearchStrategy[Any], body: Callable[[Any], None], *, seed: int, examples: int
) -> bool:
    """Run `body` on up to so many examples, and on smaller ones once it has raised Broken.

    True when that happened. The same seed gives the same examples. `Enough` comes through.
    """
    options = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
    )

    @hypothesis.seed(seed)
    @options
    @hypothesis.given(strategy)
    def check(example: Any) -> None:
        try:
            body(example)
        except (PeerError, Stopped) as error:
            raise RunEnded(error) from None

    try:
        with steady_draws(), warnings.catch_warnings():
            warnings.simplefilter("ignore", HypothesisWarning)
            check()
    except RunEnded as ended:
        raise ended.why from None
    except (Broken, Flaky):
        return True
    except Unsatisfiable:
        return False
    return False


# -- Trying examples on a server -----------------------------------------------------------------

_MOST_IN_A_SESSION = 2_000
"""Then a fresh one begins: what is remembered of a session is bounded."""
_encode = msgspec.json.Encoder().encode


Bench: TypeAlias = PlayBench | RelationBench
"""Where examples are tried."""


class Trial:
    """The examples of one property on one server: many in one session, and on a fresh one as soon
    as one fails.

    Whatever fails is tried again on a server that nothing was done to before. So a failure is about
    the example; and where it is not, it is about what earlier examples left behind.
    """

    def __init__(
        self, bench: Bench, *, until: float, about: Callable[[Steps], str] = lambda steps: ""
    ) -> None:
        """`about` tells two failures apart that break the same rule: by the tool that is called.

        `until` is when it has to end, on the monotonic clock.
        """
        self.bench = bench
        self.known: set[tuple[str, ...]] = set()
        """What was found already."""
        self.examples = 0
        self.seconds = 0.0
        """Spent on playing and judging."""
        self.until = until
        self._about = about
        self.before: list[Steps] = []
        """What was played in this session before."""
        self.begin_search()

    def begin_search(self) -> None:
        """Look for one more that is not known yet."""
        self.wanted: tuple[str, ...] | None = None
        """What every smaller example has to break as well, once there is one."""
        self.smallest: tuple[Steps, Violation] | None = None
        self.suspected: Violation | None = None
        """What was seen and is not confirmed."""
        self.first: Steps = ()
        self.shrinking = 0
        self._seen: dict[bytes, Violation | None] = {}

    # -- what Hypothesis calls -------------------------------------------------------------

    def __call__(self, steps: Steps) -> None:
        begun = time.monotonic()
        if begun >= self.until:
            raise Enough
        try:
            found = self._larger(steps) if self.wanted is None else self._smaller(steps)
        finally:
            self.seconds += time.monotonic() - begun
        if found is not None:
            raise Broken

    def _larger(self, steps: Steps) -> Violation | None:
        """One more example, in the session that is there."""
        self.examples += 1
        if self.bench.skips(steps):
            return None
        if len(self.before) >= _MOST_IN_A_SESSION:
            self.renew()
        before = self.before
        found = self.tried(steps)
        if found is None:
            self.before.append(steps)
            return None
        self.first, self.suspected = steps, found
        again = self.tried_alone(steps, self.key(found, steps), patient=found.is_silence)
        if again is None:
            raise CarriedOver(before, steps, found)
        self.suspected = None
        self.wanted = self.key(again, steps)
        self.smallest = (steps, again)
        return again

    def _smaller(self, steps: Steps) -> Violation | None:
        mark = _encode(steps)
        if mark not in self._seen:
            self.shrinking += 1
            assert self.wanted is not None  # whoever calls has looked
            found = self.tried_alone(steps, self.wanted)
            smallest = self.smallest
            if found is not None and (smallest is None or _size(steps) <= _size(smallest[0])):
                self.smallest = (steps, found)
            # Of the others the session is let go: of a server that floods, each is large.
            self._seen[mark] = replace(found, tape=None) if found is not None else None
        return self._seen[mark]

    # -- trying ----------------------------------------------------------------------------

    def key(self, found: Violation, steps: Steps) -> tuple[str, ...]:
        return (*found.key, self._about(steps))

    def tried(self, steps: Steps, wanted: tuple[str, ...] | None = None) -> Violation | None:
        """None when it holds, or breaks what is known already or not wanted."""
        found = self.bench.judged(steps)
        if self.bench.is_fresh or self.bench.began_anew:
            self.before = []
        for one in found:
            key = self.key(one, steps)
            if key == wanted if wanted is not None else key not in self.known:
                return one
        return None

    def tried_alone(
        self, steps: Steps, wanted: tuple[str, ...], *, patient: bool = False
    ) -> Violation | None:
        """The same on a server that nothing was done to before."""
        self.renew(patient=patient)
        found = self.tried(steps, wanted)
        if patient:
            self.renew()
        return None if found is None or found.carried_over else found

    def renew(self, *, patient: bool = False) -> None:
        self.before = []
        self.bench.renew(patient=patient)


class CarriedOver(BaseException):
    """It fails after earlier examples, and not alone."""

    def __init__(self, before: list[Steps], steps: Steps, found: Violation) -> None:
        super().__init__()
        self.before = before
        self.steps = steps
        self.found = found


def _size(steps: Steps) -> tuple[int, int]:
    return len(steps), len(_encode(steps))


# -- What is left out of a conversation, or made plainer -----------------------------------------

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
