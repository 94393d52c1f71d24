"""What a server must change on its way to a revision, decided by plain comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from mcptest.model.revision import Revision

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
        return Skipped(f"{code!r} is not about a missing resource")
    if code == wanted:
        return Pass(code)
    reason = f"a missing resource is answered with {code}; {target} asks for {wanted}"
    return Fail(code, wanted, reason)
