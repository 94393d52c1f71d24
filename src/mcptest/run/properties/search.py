"""One search for a counterexample by Hypothesis, which generates and shrinks and does no more.

Its own output, its database, its deadlines and its health checks are off: what an example takes is
the server's time, what is kept is kept by us, and reports are ours.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.errors import Flaky, HypothesisWarning, Unsatisfiable
from hypothesis.strategies import SearchStrategy

from mcptest.model.errors import PeerError
from mcptest.peer.connection import Stopped
from mcptest.run.properties.steady import steady_draws


def keep_nothing_here() -> None:
    """Hypothesis writes a cache into the current folder; a command of ours leaves nothing there.

    For our own process only: in somebody's test run that folder is theirs.
    """
    set_hypothesis_home_dir(Path(os.devnull, "hypothesis"))


class Enough(BaseException):
    """The search is to end at once."""


class Ended(BaseException):
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
            raise Ended(error) from None

    try:
        with steady_draws(), warnings.catch_warnings():
            warnings.simplefilter("ignore", HypothesisWarning)
            check()
    except Ended as ended:
        raise ended.why from None
    except (Broken, Flaky):
        return True
    except Unsatisfiable:
        return False
    return False
