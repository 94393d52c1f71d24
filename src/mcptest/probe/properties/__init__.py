"""Property tests of the protocol: examples are drawn, played on a server, judged and shrunk.

An example is a sequence of steps (`steps`). `message_strategies` draws examples with Hypothesis,
which is imported here and by whoever runs these, and by nothing else. `example_player` plays one
on a server that many examples share, `example_judge` holds the rules against it, and what fails is
tried again on a fresh server and made small there.
"""

from __future__ import annotations

from importlib.util import find_spec

from mcptest.core.errors import UsageError


def need_hypothesis() -> None:
    """It is an extra: a third of our size, which nothing else needs. Raises UsageError."""
    if find_spec("hypothesis") is None:
        raise UsageError(
            "property tests need Hypothesis, which is not installed",
            hint="pip install 'mcptest[property]'",
        )
