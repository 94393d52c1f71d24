"""One search for a counterexample: Hypothesis generates and shrinks, a trial tries on a server.

Hypothesis does no more than that. Its own output, its database, its deadlines and its health checks
are off: what an example takes is the server's time, what is kept is kept by us, and reports are
ours.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterator
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
from mcptest.probe.properties.steps import Steps
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
