"""Fuzzing one tool: volleys while all is well, one at a time to find out who is to blame."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mcptest.explore.fuzz.case import Case, params_of
from mcptest.explore.fuzz.inputs import Inputs
from mcptest.explore.fuzz.near_valid import judged_again
from mcptest.explore.fuzz.shrinking import shrunk
from mcptest.model.fuzz import FuzzedTool, FuzzFailure, Verdict
from mcptest.model.show import show
from mcptest.peer.connection import Stopped
from mcptest.run.exploring.fuzzing_verdict import Finding, judged_call
from mcptest.run.exploring.fuzzing_volley import fire
from mcptest.run.exploring.outcome import judged_reply
from mcptest.run.exploring.subject import Subject

_WIDEST = 64
_FIRST = 16
_MOST_HANGS = 3
"""After so many a tool is left: each costs the whole time-out."""
_MOST_SHRUNK = 10
_TRIES_ALIVE = 80
_TRIES_DEAD = 30
_TRIES_HUNG = 6
_BYTES = 1_000


class ToolFuzzer:
    """One tool on one server."""

    def __init__(self, subject: Subject, name: str, inputs: Inputs, timeout: float) -> None:
        self._subject = subject
        self._name = name
        self._inputs = inputs
        self._timeout = timeout
        self._found: dict[int, Finding] = {}
        self._confirmed: set[tuple[Verdict, bool, str]] = set()
        self._passed = 0
        self._sent = 0
        self._wrong_codes = 0
        self._notes: list[str] = []
        self.calls = 0
        self.stopped = False

    def run(self) -> FuzzedTool:
        """Send everything. Being stopped ends it early; what was found until then counts."""
        begun = time.monotonic()
        try:
            self._send_all()
        except Stopped:
            self.stopped = True
        failures = self._failures()
        return FuzzedTool(
            name=self._name,
            runs=self._sent,
            passed=self._sent - len(self._found),
            failures=failures,
            notes=tuple(self._all_notes()),
            refuses_as_internal=self._wrong_codes > 0,
            categories=self._categories(),
            duration_ms=round((time.monotonic() - begun) * 1000),
        )

    def _send_all(self) -> None:
        cases = self._inputs.cases
        place, width, last = 0, _FIRST, 0
        while place < len(cases) and not self._is_lost(len(cases) - place):
            numbers = range(place, min(place + width, len(cases)))
            whole = self._volley(numbers) if width > 1 else self._one_by_one(numbers)
            width = min(width * 2, _WIDEST) if whole else max(1, width // 4)
            last, place = place, numbers.stop
        if place and self._is_unwell():
            self._one_by_one(range(last, place), again=True)

    def _categories(self) -> dict[str, int]:
        """Of what was sent, as far as it was sent in order."""
        return dict(Counter(case.category.value for case in self._inputs.cases[: self._sent]))

    # -- sending ---------------------------------------------------------------------------

    def _is_lost(self, left: int) -> bool:
        """Whether there is no point in going on; said when it is so."""
        hangs = self._hangs
        if self._subject.given_up:
            self._notes.append(f"the server did not come back: {left} inputs were not sent")
        elif hangs >= _MOST_HANGS:
            self._notes.append(f"{hangs} inputs got no answer in time: {left} more were not sent")
        else:
            return False
        return True

    def _volley(self, numbers: range) -> bool:
        """Send many at once; whether all were answered."""
        cases = self._inputs.cases
        params = [params_of(self._name, cases[number].arguments) for number in numbers]
        volley = fire(self._subject, params, self._timeout)
        self.calls += len(params)
        silent = [n for n, reply in zip(numbers, volley.replies, strict=True) if reply is None]
        answered = [n for n in numbers if n not in silent]
        for number, reply in zip(numbers, volley.replies, strict=True):
            if reply is not None:
                arguments = cases[number].arguments
                self._take(number, self._judged(*judged_reply(reply), reply, arguments))
        before = len(self._found)
        if volley.died:  # perhaps of one that it had answered
            self._one_by_one(answered, again=True)
        self._one_by_one(silent)
        if volley.died and len(self._found) == before:
            self._blame_all(numbers)
        return not silent

    def _one_by_one(self, numbers: Sequence[int], *, again: bool = False) -> bool:
        """Each alone, and then whether the server is still well. `again`: they were counted."""
        for place, number in enumerate(numbers):
            if self._subject.given_up or self._hangs >= _MOST_HANGS:
                if not again:
                    left = len(numbers) - place
                    self._notes.append(f"{left} inputs got no answer and were not sent again")
                return False
            finding = self._alone(self._inputs.cases[number].arguments)
            if again:
                if finding.verdict is not Verdict.PASSED:
                    self._found.setdefault(number, finding)
                    self._confirmed.add(finding.signature)
            else:
                self._take(number, finding)
        return True

    @property
    def _hangs(self) -> int:
        """Failures that took the whole time-out."""
        return sum(one.was_waited_for for one in self._found.values())

    def _alone(self, arguments: Any) -> Finding:
        """One call with nothing else under way. A server that dies after its answer crashed too."""
        params = params_of(self._name, arguments)
        outcome = self._subject.ask("tools/call", params, timeout=self._timeout)
        self.calls += 1
        finding = self._judged(outcome.kind, outcome.detail, outcome.reply, arguments)
        if finding.verdict is Verdict.PASSED:
            aftermath = self._subject.aftermath(self._timeout)
            if aftermath is not None:
                detail = f"it answered, and then: {aftermath.detail}"
                verdict = self._judged(aftermath.kind, detail, None, arguments).verdict
                proof = replace(aftermath, sent=outcome.sent, received=outcome.received, reply=None)
                return Finding(verdict, detail, outcome=proof, afterwards=True)
        return replace(finding, outcome=outcome)

    def _judged(self, kind: Any, detail: str, reply: Any, arguments: Any) -> Finding:
        return judged_call(kind, detail, reply, arguments, self._subject.masker)

    def _take(self, number: int, finding: Finding) -> None:
        """Count it. The first failure of its kind is looked at again alone, for its proof."""
        self._sent += 1
        self._wrong_codes += finding.wrong_code
        if finding.verdict is Verdict.PASSED:
            return
        if finding.outcome is None and finding.signature not in self._confirmed:
            alone = self._alone(self._inputs.cases[number].arguments)
            if alone.verdict is not Verdict.PASSED:
                finding = alone
        self._confirmed.add(finding.signature)
        self._found[number] = finding

    def _blame_all(self, numbers: range) -> None:
        """It died of these together, and of none of them alone."""
        detail = f"the server died with {len(numbers)} calls under way, and with none of them alone"
        self._found[numbers[-1]] = Finding(Verdict.CRASH, detail)

    def _is_unwell(self) -> bool:
        return self._subject.aftermath(self._timeout) is not None

    # -- what was found --------------------------------------------------------------------

    def _failures(self) -> tuple[FuzzFailure, ...]:
        groups: dict[tuple[Verdict, bool, str], list[int]] = {}
        for number in sorted(self._found):
            groups.setdefault(self._found[number].signature, []).append(number)
        return tuple(
            self._failure(numbers, shrink=place < _MOST_SHRUNK)
            for place, numbers in enumerate(groups.values())
        )

    def _failure(self, numbers: list[int], *, shrink: bool) -> FuzzFailure:
        cases = self._inputs.cases
        case = judged_again(self._inputs.form, cases[numbers[0]])
        finding = self._found[numbers[0]]
        again = finding.outcome is not None
        minimal, tries = case.arguments, 0
        if again and shrink and isinstance(case.arguments, Mapping):
            minimal, tries = self._shrunk(case, finding)
        misfit = self._inputs.form.misfit(minimal)
        outcome = finding.outcome
        mask = self._subject.masker
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

    def _shrunk(self, case: Case, finding: Finding) -> tuple[Any, int]:
        wanted = finding.signature
        tries = _TRIES_ALIVE
        if finding.verdict is Verdict.HANG:
            tries = _TRIES_HUNG
        elif finding.outcome is not None and finding.outcome.reply is None:
            tries = _TRIES_DEAD

        def still_fails(arguments: Any) -> bool:
            return not self._subject.given_up and self._alone(arguments).signature == wanted

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

    def _all_notes(self) -> list[str]:
        notes = list(self._notes)
        left = len(self._inputs.cases) - self._sent
        if self.stopped and left:
            notes.append(f"it was stopped: {left} inputs were not sent")
        if self._inputs.left_out:
            total = len(self._inputs.cases) + self._inputs.left_out
            notes.append(
                f"{self._inputs.left_out} of {total} near-valid inputs were left out: "
                f"--runs {total} sends them all"
            )
        form = self._inputs.form
        if form.compiled is None:
            notes.append("its input schema can't be used, so no input can be called valid")
        elif form.base is None:
            notes.append("no input was found that its schema accepts")
        return notes
