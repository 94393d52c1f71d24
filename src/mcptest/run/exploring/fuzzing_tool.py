"""Fuzzing one tool: its slices are put together, and each failure is made as small as it gets."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from mcptest.explore.fuzz.case import Case
from mcptest.explore.fuzz.inputs import Inputs
from mcptest.explore.fuzz.near_valid import judged_again
from mcptest.explore.fuzz.shrinking import shrunk
from mcptest.model.fuzz import FuzzedTool, FuzzFailure, Verdict
from mcptest.model.masking import Masker
from mcptest.model.show import show
from mcptest.peer.connection import Stopped
from mcptest.run.exploring.fuzzing_alone import Alone
from mcptest.run.exploring.fuzzing_slice import MOST_HANGS, SharedInputs, Sliced, SliceFuzzer
from mcptest.run.exploring.fuzzing_verdict import Finding
from mcptest.run.exploring.subject import Subject

SLICE = 2_000
"""Inputs that one server is given at a time."""
_MOST_SHRUNK = 10
_TRIES_ALIVE = 80
_TRIES_DEAD = 30
_TRIES_HUNG = 6
_BYTES = 1_000


class ToolFuzzer:
    """One tool, on one server or several at once. One thread at a time may hand out and take."""

    def __init__(self, name: str, inputs: Inputs, runs: int, timeout: float) -> None:
        """`runs`: there are no more inputs than that."""
        self._name = name
        self._inputs = inputs
        self._shared = SharedInputs(inputs)
        self._timeout = timeout
        self._left = [range(n, min(n + SLICE, runs)) for n in range(0, runs, SLICE)][::-1]
        self._under_way = 0
        self._slices: list[Sliced] = []
        self._hangs = 0
        self._begun = time.monotonic()
        self._found: dict[int, Finding] = {}
        self._sent = 0
        self.calls = 0
        self.stopped = False

    # -- sending ---------------------------------------------------------------------------

    def hand_out(self) -> range | None:
        """The numbers that are to be sent next; None when there are none, or no point in it.

        They go out in order: before a slice that ends it all every other one is finished.
        """
        if not self._left or self._hangs >= MOST_HANGS:
            self._left = []
            return None
        self._under_way += 1
        return self._left.pop()

    def sliced(self, subject: Subject, numbers: range) -> Sliced:
        """Send these. The one method that several threads may be in."""
        return SliceFuzzer(subject, self._name, self._shared, numbers, self._timeout).run()

    def take(self, sliced: Sliced) -> bool:
        """Keep what came of a slice; whether it was the last that is waited for."""
        self._under_way -= 1
        self._slices.append(sliced)
        self._hangs += sum(one.was_waited_for for one in sliced.found.values())
        self.calls += sliced.calls
        self.stopped |= sliced.stopped
        if sliced.stopped or self._hangs >= MOST_HANGS:
            self._left = []
        return not self._left and not self._under_way

    # -- what was found --------------------------------------------------------------------

    def report(self, subject: Subject) -> FuzzedTool:
        """Put the slices together, and make what failed small on that server."""
        for one in self._slices:
            self._found |= one.found
            self._sent += one.sent
        notes = self._notes_on_sending()
        alone = Alone(subject, self._name, self._timeout)
        failures = self._failures(alone)
        self.calls += alone.calls
        return FuzzedTool(
            name=self._name,
            runs=self._sent,
            passed=self._sent - len(self._found),
            failures=failures,
            notes=(*notes, *self._notes_on_inputs()),
            refuses_as_internal=any(one.wrong_codes for one in self._slices),
            unchecked=self._unchecked(),
            categories=self._categories(),
            duration_ms=round((time.monotonic() - self._begun) * 1000),
        )

    def _notes_on_sending(self) -> list[str]:
        """Say what was left out, and why. Cuts off what is beyond the last hang that counts."""
        hangs = sorted(n for n, finding in self._found.items() if finding.was_waited_for)
        if len(hangs) >= MOST_HANGS:
            # How many more were under way is chance, and the report does not depend on it.
            last = hangs[MOST_HANGS - 1]
            self._found = {number: one for number, one in self._found.items() if number <= last}
            self._sent = last + 1
            left = self._inputs.total - self._sent
            words = f"{MOST_HANGS} inputs got no answer in time: {left} more left out"
            return [words] if left else []
        left = self._inputs.total - self._sent
        if self.stopped and left:
            return [f"it was stopped: {left} inputs were not sent"]
        if any(one.lost for one in self._slices):
            return [f"the server did not come back: {left} inputs were not sent"]
        return []

    def _categories(self) -> dict[str, int]:
        """Of what was sent, as far as it was sent in order."""
        return dict(Counter(case.category.value for case in self._inputs.cases[: self._sent]))

    def _failures(self, alone: Alone) -> tuple[FuzzFailure, ...]:
        groups: dict[tuple[Verdict, bool, str], list[int]] = {}
        for number in sorted(self._found):
            groups.setdefault(self._found[number].signature, []).append(number)
        return tuple(
            self._failure(numbers, alone if place < _MOST_SHRUNK else None, alone.subject.masker)
            for place, numbers in enumerate(groups.values())
        )

    def _failure(self, numbers: list[int], alone: Alone | None, mask: Masker) -> FuzzFailure:
        cases = self._inputs.cases
        case = judged_again(self._inputs.form, cases[numbers[0]])
        finding = self._found[numbers[0]]
        again = finding.outcome is not None
        minimal, tries = case.arguments, 0
        if again and alone is not None and isinstance(case.arguments, Mapping):
            minimal, tries = self._shrunk(case, finding, alone)
        misfit = self._inputs.form.misfit(minimal)
        outcome = finding.outcome
        return FuzzFailure(
            tool=self._name,
            verdict=finding.verdict,
            label=case.label,
            category=case.category.value,
            detail=mask.text(finding.detail),
            arguments=case.arguments,
            minimal=minimal,
            tries=tries,
            valid=None if case.valid is None else misfit is None,
            misfit=misfit or "",
            others=tuple(cases[number].label for number in numbers[1:]),
            again=again,
            afterwards=finding.afterwards,
            pattern=finding.pattern,
            duration_ms=round(outcome.duration_ms) if outcome is not None else 0,
            sent=show(mask.message(outcome.sent), _BYTES) if outcome is not None else "",
            received=show(mask.message(outcome.received), _BYTES) if outcome is not None else "",
            stderr=tuple(show(mask.text(line), 300) for line in outcome.stderr) if outcome else (),
        )

    def _shrunk(self, case: Case, finding: Finding, alone: Alone) -> tuple[Any, int]:
        wanted = finding.signature
        tries = _TRIES_ALIVE
        if finding.verdict is Verdict.HANG:
            tries = _TRIES_HUNG
        elif finding.outcome is not None and finding.outcome.reply is None:
            tries = _TRIES_DEAD

        def still_fails(arguments: Any) -> bool:
            return not alone.subject.given_up and alone.call(arguments).signature == wanted

        def may_be(arguments: Any) -> bool:
            """A valid input stays one: that such a one fails says more."""
            return not case.valid or self._inputs.form.misfit(arguments) is None

        if self.stopped:
            return case.arguments, 0
        try:
            return shrunk(case.arguments, still_fails, tries=tries, may_be=may_be)
        except Stopped:
            self.stopped = True
            return case.arguments, 0

    def _unchecked(self) -> str:
        form = self._inputs.form
        return f"its input schema can't be checked: {form.unusable}" if form.unchecked else ""

    def _notes_on_inputs(self) -> list[str]:
        notes = []
        if self._inputs.left_out:
            total = self._inputs.total + self._inputs.left_out
            notes.append(
                f"{self._inputs.left_out} of {total} near-valid inputs were left out: "
                f"--runs {total} sends them all"
            )
        form = self._inputs.form
        if form.compiled is None and not form.unchecked:
            notes.append(
                f"its input schema can't be used, so no input can be called valid: {form.unusable}"
            )
        elif form.compiled is not None and form.base is None:
            notes.append("no input was found that its schema accepts")
        return notes
