"""One page of the manual: what `--help` says beside the options."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

MET = {2: "bad options", 3: "the server could not be reached or started", 130: "interrupted"}
"""Exit codes that mean the same wherever a server is talked to."""


class Page(msgspec.Struct, frozen=True):
    about: str
    """What it is for and when to use it; an empty line begins a new paragraph."""
    examples: tuple[str, ...]
    """Command lines that work; one too long for a line is broken where a shell would take it."""
    exits: Mapping[int, str]
    see: str
    """The page that tells more."""
    others: tuple[str, ...] = ()
    """Commands that go with it, or are for what this one is not."""
    more: str = ""
    """Lines that are shown as they are: keys, a table."""
