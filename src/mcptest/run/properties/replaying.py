"""One counterexample as a test: what a written pytest file calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcptest.model.property import Counterexample
from mcptest.run.naming import ServerWords, target_of
from mcptest.run.properties.engine import replay_example
from mcptest.run.properties.examples import example_of
from mcptest.run.properties.order import PropertyOrder
from mcptest.transport.target import Target

_ANY = ("*",)


def assert_holds(
    example: Mapping[str, Any],
    *,
    server: str | Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 5.0,
) -> None:
    """Play the example on a fresh server. Raises AssertionError when the server still breaks it.

    `server` is what `--server` takes, or the words of a command.
    """
    __tracebackhide__ = True
    command = [] if isinstance(server, str) else list(server)
    words = ServerWords(
        server=server if isinstance(server, str) else None,
        command=command,
        way=None,
        headers=dict(headers or {}),
        env=dict(env or {}),
        cwd=cwd,
        config=None,
    )
    assert_example_holds(example, target_of(words), timeout=timeout)


def assert_example_holds(
    example: Mapping[str, Any], target: Target, *, timeout: float = 5.0, startup: float = 30.0
) -> None:
    """The same for a server that is named already."""
    __tracebackhide__ = True
    order = PropertyOrder(
        target=target, allow_tools=_ANY, timeout=timeout, startup=startup, strict=True
    )
    report = replay_example(order, example_of(dict(example), "the example"))
    if report.counterexamples:
        raise AssertionError(_words(report.counterexamples[0]))


def _words(found: Counterexample) -> str:
    rule = f"{found.rule}: " if found.rule else ""
    said = [f"{line.sender or 'note'}: {line.text}" for line in found.lines]
    steps = [f"{number}. {words}" for number, words in enumerate(found.words, 1)]
    return "\n".join([f"{rule}{found.title}: {found.message}", *steps, *said])
