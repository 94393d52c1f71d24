"""One search for a counterexample by Hypothesis, which generates and shrinks and does no more.

Its own output, its database, its deadlines and its health checks are off: what an example takes is
the server's time, what is kept is kept by us, and reports are ours.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.errors import Flaky, HypothesisWarning, Unsatisfiable
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import SearchStrategy

from mcptest.core.errors import PeerError
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
    _put(_OURS)
    try:
        yield
    finally:
        _put(theirs)


def _put(parts: dict[str, Any]) -> None:
    for name, part in parts.items():
        setattr(providers, name, part)


# -- One search for a counterexample by Hypothesis, which generates and shrinks and does no ------


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
