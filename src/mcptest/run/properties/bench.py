"""The bench for examples that are conversations: played on a stage, judged by the rules."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mcptest.explore.property.steps import Ask, Connect
from mcptest.model.errors import PeerError
from mcptest.model.property import Way
from mcptest.run.compliance.sessions import ABOUT_SILENCE
from mcptest.run.properties.judging import Judge, Violation
from mcptest.run.properties.playing import Played, Steps, play, tools_called
from mcptest.run.properties.sends import Send
from mcptest.run.properties.stage import Stage

_VAIN_STARTS = 3
_PATIENCE = 4
"""So many times longer a server may take that fell silent, before that is believed."""
_SLOW = 1.0
"""Seconds that a call may take before its tool is called no more."""


class PlayBench:
    """One server and the rules for it."""

    def __init__(self, stage: Stage, judge: Judge) -> None:
        self.stage = stage
        self.judge = judge
        self._fresh = True
        self.began_anew = False
        """Whether the last example left its session for another."""
        self._avoided: set[str] = set()
        """Mutations that are known to end the server, which is not ended once more for each."""

    @property
    def is_fresh(self) -> bool:
        return self._fresh

    def learn(self, steps: Steps, found: Violation) -> None:
        """This is known now: it need not cost time again."""
        self.judge.tell(found.rule)
        if found.way is not Way.RULE:
            self._avoided |= {one.mutation for one in steps if isinstance(one, Send)} - {""}

    def renew(self, *, patient: bool = False) -> None:
        self.stage.drop()
        self.stage.patience = _PATIENCE if patient else 1
        self._fresh = True

    def skips(self, steps: Steps) -> bool:
        """Whether trying it would only cost time."""
        if self._avoided and any(
            isinstance(one, Send) and one.mutation in self._avoided for one in steps
        ):
            return True
        slow = self.stage.slow_tools
        return bool(slow) and not slow.keys().isdisjoint(tools_called(steps))

    def judged(self, steps: Steps) -> Sequence[Violation]:
        """Raises PeerError when no server can be had any more."""
        played = self._played(steps)
        found = self.judge.broken(self.stage, played)
        cut_off = bool(self.stage.reel.dropped)
        self._fresh = played.ended is not None or not self.stage.is_open or cut_off
        self.began_anew = bool(played.scenes)
        if self._fresh:
            self.stage.drop(deaf=played.ended is Way.HANG)
        seconds, tool = played.slowest
        if seconds > _SLOW:
            self.stage.note_slow(tool, seconds)
        if played.silent and played.ended is None:
            found = self._without_the_slow(found, played)
        shown = self.stage.reel  # also when something else was played since
        return [one if one.reel is not None else replace(one, reel=shown) for one in found]

    def _without_the_slow(self, found: list[Violation], played: Played) -> list[Violation]:
        """A call that gets no answer all by itself takes its time; that is for the user to judge.

        One that gets its answer alone was forgotten because of what was around it.
        """
        reel = self.stage.reel
        forgotten = False
        for ask in played.silent:
            self.stage.drop()
            alone = self._played((Connect(), Ask(ask.method, ask.params)))
            forgotten = forgotten or not alone.silent
        self.renew()
        self.stage.reel = reel  # it is what shows the failure, if it is one
        return found if forgotten else [one for one in found if one.rule not in ABOUT_SILENCE]

    def _played(self, steps: Steps) -> Played:
        for _ in range(_VAIN_STARTS - 1):
            try:
                return play(self.stage, steps, self.judge.owed)
            except PeerError:
                self.stage.drop()
        return play(self.stage, steps, self.judge.owed)
