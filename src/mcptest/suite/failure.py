"""What checking an answer gives: failures, and how much was really checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec


class Failure(msgspec.Struct, frozen=True):
    """One expectation that does not hold. The message holds a peer's text as it came."""

    check: str
    """The name of the expectation, as a suite writes it."""
    message: str
    expected: Any = None
    actual: Any = None
    pointer: str = ""
    """Where: a path into the result, a file, a target."""


class Evaluation(msgspec.Struct, frozen=True):
    """`checked` counts the checks that were asked for and made; what passes made at least one."""

    failures: tuple[Failure, ...]
    checked: int

    @property
    def passed(self) -> bool:
        return not self.failures


Outcome: TypeAlias = Failure | None
"""One check that was made: None when it holds."""


def evaluation_of(
    outcomes: Iterable[Outcome], *, all_failures: bool, unasked: Iterable[Outcome] = ()
) -> Evaluation:
    """Take outcomes until the first failure, or all of them.

    `unasked` are checks that are made without being asked for: they can fail a test, but do not
    count as having checked something.
    """
    failures: list[Failure] = []
    checked = 0
    for outcome in outcomes:
        checked += 1
        if outcome is not None:
            failures.append(outcome)
            if not all_failures:
                return Evaluation(tuple(failures), checked)
    if not checked:
        failures.append(Failure("expect", "nothing was checked"))
    if not failures or all_failures:
        failures.extend(outcome for outcome in unasked if outcome is not None)
    return Evaluation(tuple(failures), checked)
