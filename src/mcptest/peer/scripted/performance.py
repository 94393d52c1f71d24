"""A script being played: what it is told of, what it does later, and what becomes of its defects.

A defect in a script ends the scenario and is said as ours. It never counts against the client, and
never for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mcptest.peer.demo.loop import Loop
from mcptest.peer.scripted.recording import Tape
from mcptest.peer.scripted.script import Script

P = ParamSpec("P")
T = TypeVar("T")


class Performance:
    """One script, one client, one tape, one loop."""

    def __init__(self, script: Script, tape: Tape, loop: Loop) -> None:
        self.script = script
        self.tape = tape
        self.loop = loop
        self.over = False
        """The scenario has ended: nothing is told to the script any more."""
        self.defect = ""
        """What went wrong in the script itself; empty when nothing did."""
        self.on_settled: Callable[[], None] | None = None
        """Called once, when the script has seen all that it waits for."""

    def play(self, action: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | None:
        """Let the script act. None, too, when it is over or has failed."""
        if self.over:
            return None
        try:
            outcome = action(*arguments, **named)
            self._see_whether_it_is_settled()
        except Exception as error:  # noqa: BLE001 - said as a defect of ours, and ends the scenario
            self._fail(error)
            return None
        return outcome

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        self.loop.after(seconds, lambda: self.play(action))

    def end(self) -> None:
        self.over = True
        self.on_settled = None

    def _see_whether_it_is_settled(self) -> None:
        tell = self.on_settled
        if tell is not None and self.script.settled():
            self.on_settled = None
            tell()

    def _fail(self, error: Exception) -> None:
        import traceback

        place = traceback.extract_tb(error.__traceback__)[-1]
        self.defect = (
            f"{type(self.script).__name__} failed: {type(error).__name__}: {error} "
            f"({place.name}, line {place.lineno})"
        )
        self.tape.note(f"a defect of mcptest: {self.defect}")
        self.over = True
        self.loop.stop()
