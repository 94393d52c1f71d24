"""The revisions of the MCP specification, in order, and half-open windows over them.

Revisions are compared by their place in the timeline, never as strings: `draft` has no date,
and a date is only a name.
"""

from __future__ import annotations

import enum

import msgspec

from mcptest.core.errors import UsageError, close_matches


class Era(enum.Enum):
    """The two ways a session lives: a handshake first, or every request on its own."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class Revision(enum.Enum):
    """One revision of the specification. The order of the members is the timeline."""

    V2024_11_05 = "2024-11-05"
    V2025_03_26 = "2025-03-26"
    V2025_06_18 = "2025-06-18"
    V2025_11_25 = "2025-11-25"
    V2026_07_28 = "2026-07-28"
    DRAFT = "draft"

    @property
    def place(self) -> int:
        return _PLACE[self]

    @property
    def era(self) -> Era:
        return Era.HANDSHAKE if self.place < _FIRST_STATELESS else Era.STATELESS

    @property
    def wire_version(self) -> str:
        """What travels as `protocolVersion`. The draft still speaks as the newest dated one."""
        return Revision.V2026_07_28.value if self is Revision.DRAFT else self.value

    @property
    def label(self) -> str:
        """How suites and the folders of the corpora name it: `v2025-06-18`, `draft`."""
        return self.value if self is Revision.DRAFT else f"v{self.value}"

    def __str__(self) -> str:
        return self.value

    def __lt__(self, other: Revision) -> bool:
        return self.place < other.place

    def __le__(self, other: Revision) -> bool:
        return self.place <= other.place

    def __gt__(self, other: Revision) -> bool:
        return self.place > other.place

    def __ge__(self, other: Revision) -> bool:
        return self.place >= other.place


TIMELINE: tuple[Revision, ...] = tuple(Revision)
_PLACE = {revision: place for place, revision in enumerate(TIMELINE)}
_FIRST_STATELESS = _PLACE[Revision.V2026_07_28]

HANDSHAKE_REVISIONS = tuple(r for r in TIMELINE if r.era is Era.HANDSHAKE)
STATELESS_REVISIONS = tuple(r for r in TIMELINE if r.era is Era.STATELESS)
NEWEST_HANDSHAKE = HANDSHAKE_REVISIONS[-1]
NEWEST_STATELESS = Revision.V2026_07_28


class Window(msgspec.Struct, frozen=True):
    """Half-open: holds from `since` up to, but not including, `until`."""

    since: Revision = Revision.V2024_11_05
    until: Revision | None = None

    def __contains__(self, revision: Revision) -> bool:
        return self.since <= revision and (self.until is None or revision < self.until)

    def __str__(self) -> str:
        covered = [r for r in TIMELINE if r in self]
        if not covered:
            return "no revision"
        if covered[-1] is TIMELINE[-1]:
            return "every revision" if len(covered) == len(TIMELINE) else f"{covered[0]} and later"
        if len(covered) == 1:
            return str(covered[0])
        return f"{covered[0]} to {covered[-1]}"


EVERY_REVISION = Window()
SINCE_MARCH_2025 = Window(since=Revision.V2025_03_26)
SINCE_JUNE_2025 = Window(since=Revision.V2025_06_18)
SINCE_NOVEMBER_2025 = Window(since=Revision.V2025_11_25)
HANDSHAKE_ERA = Window(until=Revision.V2026_07_28)
STATELESS_ERA = Window(since=Revision.V2026_07_28)


def parse_revision(text: str) -> Revision:
    """Read `2025-06-18`, `v2025-06-18` or `draft`; the error for a typo names what is accepted."""
    revision = revision_of_wire(text.removeprefix("v"))
    if revision is not None:
        return revision
    names = [r.value for r in TIMELINE]
    near = close_matches(text.removeprefix("v"), names, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"unknown spec version: {text!r}", hint=f"{hint}accepted: {', '.join(names)}")


def revision_of_wire(version: object) -> Revision | None:
    """The revision a peer named on the wire, or None when it named none that exists."""
    if not isinstance(version, str):
        return None
    try:
        return Revision(version)
    except ValueError:
        return None


def revision_of_label(label: str) -> Revision | None:
    """The revision that a suite or a folder names, or None: only the exact label counts."""
    return next((revision for revision in TIMELINE if revision.label == label), None)
