"""A mutant: which rule it breaks, how, and where that can be seen."""

from __future__ import annotations

TYPE_CHECKING = False  # a mutant starts as often as the demo does
if TYPE_CHECKING:
    from tests.mutants.seams import Fault

OFFERED = ("--offer", "fixtures,tasks")
TOKEN = "mcptest-demo-token"
MUTANTS: dict[str, Mutant] = {}
IMPOSSIBLE: dict[str, str] = {}
"""Rules that no mutant can break, with the reason."""


class Mutant:
    """One fault in the demo server."""

    def __init__(
        self,
        rule: str,
        about: str,
        fault: Fault,
        over: str = "",
        since: str = "",
        options: tuple[str, ...] = (),
        also: str = "",
    ) -> None:
        self.rule = rule
        self.about = about
        """What is wrong with it, in a few words."""
        self.fault = fault
        self.over = over
        """The transport; empty: the first on which the rule can be seen."""
        self.since = since
        """The revision; empty: the first that has the rule."""
        self.options = options
        self.also = also
        """Why other rules can't but see it too."""


def mutant(rule: str, about: str, fault: Fault, **more: str | tuple[str, ...]) -> None:
    if rule in MUTANTS:
        raise ValueError(f"{rule} has a mutant already")
    MUTANTS[rule] = Mutant(rule, about, fault, **more)  # type: ignore[arg-type]  # checked by use


def impossible(rule: str, reason: str) -> None:
    IMPOSSIBLE[rule] = reason


def every_mutant() -> dict[str, Mutant]:
    """The whole table."""
    if not MUTANTS:
        import importlib

        for table in TABLES:
            importlib.import_module(f"tests.mutants.table_{table}")
    return MUTANTS


TABLES = ("messages", "lifecycle", "server", "client", "stateless", "http", "tasks")
