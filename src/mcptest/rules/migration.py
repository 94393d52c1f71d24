"""What a server must change on its way to a revision: `migration.yml`, and what decides an item."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from mcptest.core.loading import loaded_once
from mcptest.core.revision import Revision

RESOURCE_NOT_FOUND: Final = -32002
INVALID_PARAMS: Final = -32602


@dataclass(frozen=True, slots=True)
class Pass:
    """The code is the one that the target requires."""

    code: int


@dataclass(frozen=True, slots=True)
class Fail:
    """The code is that of the other side of the change."""

    code: int
    replacement: int
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The code says nothing about this change."""

    reason: str


ResourceCodeCheck: TypeAlias = Pass | Fail | Skipped


def missing_resource_code(target: Revision) -> int:
    """The code for `resources/read` of a resource that is not there."""
    return INVALID_PARAMS if target >= Revision.V2026_07_28 else RESOURCE_NOT_FOUND


def check_resource_error_code(
    code: object, target: Revision = Revision.V2026_07_28
) -> ResourceCodeCheck:
    """Judge the code that a server gave for a missing resource, by the revision it moves to."""
    wanted = missing_resource_code(target)
    if type(code) is not int or code not in {RESOURCE_NOT_FOUND, INVALID_PARAMS}:
        return Skipped(f"{code!r} does not report a missing resource")
    if code == wanted:
        return Pass(code)
    reason = f"the server answers a missing resource with {code}; {target} requires {wanted}"
    return Fail(code, wanted, reason)


_URI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*"
)


def is_uri(text: str) -> bool:
    """A scheme, and only characters that RFC 3986 lets stand as they are."""
    return _URI.fullmatch(text) is not None


class MigrationItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that a revision changed."""

    id: str
    since: Revision
    title: str
    change: str
    """What was, and what is now."""
    looks_for: str
    """What the probe sends and which answer means what."""
    fix: str
    until: Revision | None = None
    """The revision that took it back."""
    standing: bool = False
    """Looked at on every way to a revision that has it: deployments lag behind their revision."""
    rests_on: str = ""
    """The list that it is judged by: without it nothing is known, whatever else was seen."""

    def is_on_the_way(self, older: Revision, newer: Revision) -> bool:
        if newer < self.since or (self.until is not None and newer >= self.until):
            return False
        return self.standing or older < self.since


@loaded_once
def migration_items() -> tuple[MigrationItem, ...]:
    """Everything that may break a server on its way from revision to revision."""
    raw = Path(__file__).with_name("migration.yml").read_bytes()
    return msgspec.yaml.decode(raw, type=tuple[MigrationItem, ...])


def items_between(older: Revision, newer: Revision) -> Iterator[MigrationItem]:
    """What changes on the way, in the order of the table: the newest step first."""
    return (item for item in migration_items() if item.is_on_the_way(older, newer))
