"""What the fixtures for properties give: a function that tries them, a player for what is drawn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from mcptest.model.property import PropertyReport
from mcptest.pytest_plugin.clients import failing_without_traceback, server_of
from mcptest.testing.playing import Player
from mcptest.testing.properties import check_property, why_not

_KEPT = "mcptest-examples"


class CheckProperty(Protocol):
    """What `mcp_property` gives."""

    def __call__(
        self,
        *names: str,
        examples: int = 100,
        seed: int = 0,
        max_time: float = 120.0,
        timeout: float = 5.0,
        allow_tools: Sequence[str] = (),
        strict: bool = False,
    ) -> PropertyReport: ...


def checking(given: Any, config: pytest.Config) -> CheckProperty:
    """On whatever the fixture `mcp_server` gave. Counterexamples are kept in pytest's cache."""
    with failing_without_traceback():
        server = server_of(given, config)

    def check(*names: str, **wanted: Any) -> PropertyReport:
        __tracebackhide__ = True
        with failing_without_traceback():
            report = check_property(
                server, *names, **wanted, database=_kept(config), may_be_skipped=True
            )
        if not report.examples:
            pytest.skip(why_not(report))
        return report

    return check


@contextlib.contextmanager
def playing(given: Any, config: pytest.Config) -> Iterator[Player]:
    with contextlib.ExitStack() as session:
        with failing_without_traceback():
            player = session.enter_context(Player(server_of(given, config)))
        yield player


def _kept(config: pytest.Config) -> Path | None:
    """None where pytest keeps nothing: `-p no:cacheprovider`."""
    cache = getattr(config, "cache", None)
    return None if cache is None else Path(cache.mkdir(_KEPT))
