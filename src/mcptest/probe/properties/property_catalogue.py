"""The properties by name: what each says of a server, and how it is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from mcptest.core.limits import Deadline
from mcptest.core.revision import Revision
from mcptest.session.pages import Offer
from mcptest.transport.target import Target


class KnownServer(msgspec.Struct, frozen=True):
    """What is known of the server when examples are made."""

    revision: Revision
    transport: str
    offer: Offer
    """Without the tools that must not be called."""


class Property(msgspec.Struct, frozen=True):
    """One statement about all examples of a kind, which `message_strategies` makes."""

    name: str
    about: str
    rude: bool = False
    """The examples hold what no client may send."""
    by_tool: bool = False
    """Every tool may break it by itself."""
    relation: bool = False
    """Two observations are compared: it is no conversation that is judged."""
    share: int = 1
    """An example takes about so many requests, so there are fewer of them."""


_ALL: Final = (
    Property("messages-valid", "every valid message gets a valid response"),
    Property(
        "messages-invalid",
        "every invalid message is rejected by the rules and does no harm",
        rude=True,
    ),
    Property(
        "arguments",
        "a tool accepts every input that its schema allows, and its output matches its schema",
        by_tool=True,
    ),
    Property(
        "arguments-almost-valid", "a tool survives input that its schema just rejects", by_tool=True
    ),
    Property("conversations", "every session follows the session rules", share=8),
    Property(
        "idempotent",
        "a tool with idempotentHint changes nothing when called again",
        by_tool=True,
        relation=True,
        share=10,
    ),
    Property(
        "read-only",
        "a tool with readOnlyHint changes no list and no resource",
        by_tool=True,
        relation=True,
        share=10,
    ),
    Property(
        "argument-order",
        "the order of arguments does not change a tool's response",
        by_tool=True,
        relation=True,
        share=3,
    ),
    Property("same-lists", "two connections get the same lists", relation=True, share=100),
)
PROPERTIES: Final[Mapping[str, Property]] = {one.name: one for one in _ALL}


# -- What is to be tried on which server, and how far it may go -----------------------------------


class PropertyOrder(msgspec.Struct, frozen=True, kw_only=True):
    target: Target
    revision: Revision | None = None
    """None: the newest that the server speaks."""
    properties: tuple[str, ...] = ()
    """Empty: all of them."""
    examples: int = 100
    seed: int = 0
    max_time: float = 120.0
    """For all of it together, in seconds: starts, calls, and making counterexamples small."""
    limit: Deadline | None = None
    """When that time is up; set where the run begins."""
    tools: frozenset[str] = frozenset()
    """Only these are called; empty: all that may be."""
    allow_tools: tuple[str, ...] = ()
    """Tools that may be called beside those that say they only read; `*` is every tool."""
    database: Path | None = None
    """Where counterexamples are kept; None: nowhere."""
    captures: Path | None = None
    timeout: float = 5.0
    startup: float = 30.0
    strict: bool = False
    fail_fast: bool = False
    """One counterexample to a property is enough."""
    jobs: int = 1
    """So many properties at once, each on a server of its own; of a URL there is only one."""
    repeat: str = ""
    """The command that runs this again; ` --replay NAME` is added."""
    should_stop: Callable[[], bool] | None = None
    """Whether somebody interrupts us."""

    @property
    def is_interrupted(self) -> bool:
        return self.should_stop is not None and self.should_stop()

    @property
    def is_out_of_time(self) -> bool:
        return self.limit is not None and self.limit.expired

    def is_over(self) -> bool:
        """Whether to end at once, whatever is under way."""
        return self.is_interrupted or self.is_out_of_time

    @property
    def out_of_time(self) -> str:
        """Why it ended, in words."""
        return f"stopped after {self.max_time:g}s of --max-time"
