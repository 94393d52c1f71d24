"""A slice of a tool's inputs on one server: a stream while all is well, then one at a time.

What comes of a slice depends on nothing but its inputs and the server, so that slices can be sent
to several servers at once and put together afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from mcptest.explore.fuzz.case import Case
from mcptest.explore.fuzz.inputs import Inputs
from mcptest.model.fuzz import Verdict
from mcptest.peer.client import Reply
from mcptest.peer.connection import Stopped
from mcptest.run.exploring.fuzzing_alone import Alone
from mcptest.run.exploring.fuzzing_stream import End, Stream
from mcptest.run.exploring.fuzzing_verdict import Finding, judged_call
from mcptest.run.exploring.outcome import judged_reply
from mcptest.run.exploring.subject import Subject

MOST_HANGS = 3
"""After so many a tool is left: each costs the whole time-out."""
_TOGETHER = "the server died with many calls under way, and with none of them alone"


class Sliced(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a slice."""

    start: int
    found: dict[int, Finding]
    sent: int
    """How many got a verdict."""
    calls: int
    wrong_codes: int = 0
    lost: bool = False
    """The server did not come back: the rest was not sent."""
    stopped: bool = False


class SharedInputs:
    """The inputs of a tool, of which several threads may ask."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._making = threading.Lock()

    def some(self, start: int, count: int) -> Sequence[Case]:
        with self._making:
            return self._inputs.some(start, count)

    def arguments(self, number: int) -> Any:
        """What is sent with the one of that number, which was handed out before."""
        return self._inputs.cases[number].arguments


class SliceFuzzer:
    """Inputs from one number up to another. Call `run`."""

    def __init__(
        self, subject: Subject, tool: str, inputs: SharedInputs, numbers: range, timeout: float
    ) -> None:
        self._subject = subject
        self._tool = tool
        self._inputs = inputs
        self._numbers = numbers
        self._timeout = timeout
        self._alone = Alone(subject, tool, timeout)
        self._found: dict[int, Finding] = {}
        self._hangs = 0
        self._known: set[tuple[Verdict, bool, str]] = set()
        self._unproven: list[int] = []
        """Failures seen among others, the first of their kind."""
        self._sent = 0
        self._streamed_calls = 0
        self._wrong_codes = 0

    def run(self) -> Sliced:
        """Send them all. Being stopped ends it early; what was found until then counts."""
        stopped = False
        try:
            self._send_all()
        except Stopped:
            stopped = True
        return Sliced(
            start=self._numbers.start,
            found=self._found,
            sent=self._sent,
            calls=self._streamed_calls + self._alone.calls,
            wrong_codes=self._wrong_codes,
            lost=self._subject.given_up,
            stopped=stopped,
        )

    def _send_all(self) -> None:
        place, pace = self._numbers.start, self._alone.pace
        recent: tuple[int, ...] = ()
        while self._some(place, 1) and not self._is_over:
            if pace.width == 1:
                recent, before = (place,), len(self._found)
                self._one_by_one(recent)
                pace.width += len(self._found) == before
                place += 1
            else:
                end, place = self._stream_from(place)
                recent = end.recent
        if recent and not self._is_over and self._subject.aftermath(self._timeout) is not None:
            self._one_by_one(recent, again=True)

    def _some(self, start: int, count: int) -> Sequence[Case]:
        return self._inputs.some(start, min(count, self._numbers.stop - start))

    @property
    def _is_over(self) -> bool:
        return self._hangs >= MOST_HANGS or self._subject.given_up

    def _stream_from(self, place: int) -> tuple[End, int]:
        """Many at once, until one is missing. Returns the place after the last."""
        stream = Stream(self._subject, self._tool, self._alone.pace, self._take_reply)
        try:
            end = stream.run(place, self._some)
        finally:
            self._streamed_calls += stream.next - place
        if end.doubtful:
            self._alone.pace.broken()
        self._prove()
        before = len(self._found)
        if end.died:  # perhaps of one that it had answered
            self._one_by_one(end.recent, again=True)
        self._one_by_one(end.doubtful)
        if end.died and end.doubtful and len(self._found) == before and not self._is_over:
            self._keep(end.doubtful[0], Finding(Verdict.CRASH, _TOGETHER))
        return end, stream.next

    def _one_by_one(self, numbers: Sequence[int], *, again: bool = False) -> None:
        """Each alone, and then whether the server is still well. `again`: they were counted."""
        for number in numbers:
            if self._is_over:
                return
            finding = self._alone.call(self._inputs.arguments(number))
            if not again:
                self._take(number, finding)
            elif finding.verdict is not Verdict.PASSED and number not in self._found:
                self._keep(number, finding)

    def _take_reply(self, number: int, reply: Reply) -> None:
        arguments = self._inputs.arguments(number)
        kind, detail = judged_reply(reply)
        self._subject.remark(reply, f"tools/call {self._tool}")
        finding = judged_call(kind, detail, reply, arguments, self._subject.given)
        if finding.verdict is not Verdict.PASSED and finding.signature not in self._known:
            self._unproven.append(number)
        self._take(number, finding)

    def _take(self, number: int, finding: Finding) -> None:
        self._sent += 1
        self._wrong_codes += finding.wrong_code
        if finding.verdict is not Verdict.PASSED:
            self._keep(number, finding)

    def _keep(self, number: int, finding: Finding) -> None:
        self._found[number] = finding
        self._known.add(finding.signature)
        self._hangs += finding.was_waited_for

    def _prove(self) -> None:
        """The first failure of its kind is looked at again alone."""
        unproven, self._unproven = self._unproven, []
        for number in unproven:
            if self._is_over:
                return
            alone = self._alone.call(self._inputs.arguments(number))
            if alone.verdict is not Verdict.PASSED:
                self._keep(number, alone)
