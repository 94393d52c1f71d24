"""A fuzz run over the tools of a server: the inputs follow from the seed, whatever runs when.

The inputs of a tool go out in slices, many calls at once where the tool is quick; a failure is
looked at again alone, and made as small as it gets.
"""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from mcptest.commands.fuzz.fuzz_verdict import FuzzFinding, judged_call
from mcptest.commands.fuzz.inputs import Inputs, given_input, inputs_for
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.masking import Masker
from mcptest.core.message import ABSENT
from mcptest.core.safe_text import in_one_line, show
from mcptest.probe.live_server import Subject, head_of, judged_reply
from mcptest.probe.shrink import Shrinker, simpler_json
from mcptest.report.audit import ONLY_AS_TASK
from mcptest.report.fuzz import FuzzedTool, FuzzFailure, FuzzReport, FuzzVerdict, SkippedTool
from mcptest.schema.tool_inputs import InputCase, judged_again, params_of
from mcptest.session.client import Client, Reply
from mcptest.session.connection import Pending, Stopped
from mcptest.session.pages import named_items
from mcptest.session.tool_safety import may_call, runs_only_as_task, why_not
from mcptest.transport.base import NO_HEADERS

# -- How many calls are under way at once and how long silence may last, learned from the tool ---

_FIRST = 16
_WIDEST = 256
_WIDEST_OVER_HTTP = 64
_QUICK = 0.25
"""Answered within this many seconds, the next may be twice as many."""
_SLOW = 2.0
"""Beyond it they are half as many: when one spoils the rest, all of them are sent again."""
_PATIENCE = 3.0
_SPREAD = 4
"""A tool may take so many times longer than it ever did before its silence means something."""


class Pace:
    """One tool's."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._longest = 0.0
        self.width = _FIRST

    @property
    def patience(self) -> float:
        """How long no answer at all may come while calls are under way."""
        return min(self._timeout, _PATIENCE + _SPREAD * self._longest)

    def answered(self, seconds: float, *, over_http: bool) -> None:
        """What was sent together was answered within that time."""
        if seconds < _QUICK:
            self.width = min(2 * self.width, _WIDEST_OVER_HTTP if over_http else _WIDEST)
        elif seconds > _SLOW:
            self.width = max(2, self.width // 2)

    def waited(self, seconds: float) -> None:
        """So long there was nothing, and then an answer."""
        self._longest = max(self._longest, seconds)

    def broken(self) -> None:
        """An answer is missing: fewer at once, at last one by one."""
        self.width = max(1, self.width // 4)


# -- Calls in an unbroken stream -----------------------------------------------------------------

_BURST = 64
_RECENT = 64
_CLOSING = 0.3
_FAULT = 400


class End(msgspec.Struct, frozen=True):
    """How a stream ended."""

    doubtful: tuple[int, ...] = ()
    """Sent without a message in answer, in the order of the numbers."""
    recent: tuple[int, ...] = ()
    """Answered last: if the server died, perhaps of one of these."""
    died: bool = False
    """Whether the server is gone; else it was slow, or silent, or refused calls over HTTP."""
    reason: str = ""
    """Why the first of the doubtful ones has no answer."""


class _Call(msgspec.Struct):
    number: int
    pending: Pending
    params: Mapping[str, Any]
    since: float = 0.0
    """When its burst was sent, if it is the last of it."""


class _SilentError(Exception):
    """No answer came for as long as patience lasts."""


class Stream:
    """The calls of one tool that are under way on one server."""

    def __init__(
        self, subject: Subject, tool: str, pace: Pace, take: Callable[[int, Reply], None]
    ) -> None:
        """`take` is given each answer, in the order of the numbers."""
        self._subject = subject
        self._tool = tool
        self._pace = pace
        self._take = take
        self._waiting: deque[_Call] = deque()
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._unsent: range = range(0)
        self._doubtful: list[int] = []
        self.next = 0
        """The number after the last that was sent."""

    def run(self, start: int, more: Callable[[int, int], Sequence[InputCase]]) -> End:
        """Until all were answered, or one is missing. Never raises for what the server does.

        `more(n, count)`: up to so many cases from number n on; none at the end.
        """
        self.next = start
        if self._subject.is_gone:
            self._subject.drop()
        try:
            client = self._subject.client
        except PeerError:
            self.next += len(more(start, 1))
            return End(tuple(range(start, self.next)), died=True)
        try:
            self._flow(client, more)
        except _SilentError:
            silent = self._waiting[0].pending
            why = client.connection.why_unanswered(silent, self._pace.patience)
            return self._broken(client, why.message)
        except PeerError as error:
            return self._broken(client, error.message)
        return End(tuple(self._doubtful), tuple(self._recent))

    def _flow(self, client: Client, more: Callable[[int, int], Sequence[InputCase]]) -> None:
        at_end = False
        while True:
            room = self._pace.width - len(self._waiting)
            # The server has something to do while the next are made.
            if not at_end and (room >= _BURST or 2 * room >= self._pace.width):
                wanted = min(room, _BURST)
                cases = more(self.next, wanted)
                at_end = len(cases) < wanted
                self._send(client, cases)
            if not self._waiting:
                return
            if not self._waiting[0].pending.done:
                self._settle(client, self._waiting[0].pending)
            # Hand on what was answered, up to the first that was not.
            waiting, limit = self._waiting, Deadline.after(self._pace.patience)
            while waiting and waiting[0].pending.done:
                call = waiting.popleft()
                try:
                    self._hand_on(client, call, limit)
                except PeerError as error:
                    self._doubtful.append(call.number)
                    if error.kind is not ErrorKind.HTTP_STATUS and not _is_refused(call.pending):
                        raise
                if call.since:
                    took = time.monotonic() - call.since
                    self._pace.answered(took, over_http=_is_over_http(client))

    def _send(self, client: Client, cases: Sequence[InputCase]) -> None:
        if not cases:
            return
        params = [params_of(self._tool, case.arguments) for case in cases]
        numbers = range(self.next, self.next + len(cases))
        self.next, self._unsent = numbers.stop, numbers
        begun = time.monotonic()
        started = self._start(client, params, Deadline.after(self._pace.patience))
        self._unsent = range(0)
        self._waiting.extend(map(_Call, numbers, started, params))
        self._waiting[-1].since = begun

    def _start(
        self, client: Client, params: Sequence[Mapping[str, Any]], deadline: Deadline
    ) -> list[Pending]:
        if _is_over_http(client):  # where the arguments may have to travel as headers, too
            return [client.start("tools/call", one, deadline) for one in params]
        prepare = client.lifecycle.prepare
        calls = [("tools/call", prepare(one), NO_HEADERS) for one in params]
        return client.connection.burst(calls, deadline)

    def _settle(self, client: Client, first: Pending) -> None:
        """Wait for the first. Answers to others are a sign of life, whatever else comes is not."""
        begun, answered = time.monotonic(), self._answered()
        deadline = Deadline.after(self._pace.patience)
        while True:
            client.connection.pump(deadline)
            if first.done:
                self._pace.waited(time.monotonic() - begun)
                return
            if deadline.expired:
                before, answered = answered, self._answered()
                if answered == before:
                    raise _SilentError
                deadline = Deadline.after(self._pace.patience)

    def _answered(self) -> int:
        return sum(call.pending.done for call in self._waiting)

    def _hand_on(self, client: Client, call: _Call, limit: Deadline) -> None:
        pending = call.pending
        if pending.answer is None:
            assert pending.failure is not None
            raise pending.failure
        reply = Reply(pending.method, pending.answer, pending.status)
        self._take(call.number, client.complete_call(reply, call.params, limit))
        self._recent.append(call.number)

    def _broken(self, client: Client, reason: str) -> End:
        """Keep what was answered; the rest is doubtful, and the session is over."""
        limit = Deadline.after(self._pace.patience)
        for call in self._waiting:
            if call.pending.answer is None:
                self._doubtful.append(call.number)
                continue
            try:
                self._hand_on(client, call, limit)
            except PeerError:
                self._doubtful.append(call.number)
        died = self._subject.is_gone
        self._subject.drop(_CLOSING)
        doubtful = (*self._doubtful, *self._unsent)
        return End(doubtful, tuple(self._recent), died, in_one_line(reason))


def _is_over_http(client: Client) -> bool:
    return client.connection.transport.name != "stdio"


def _is_refused(pending: Pending) -> bool:
    """Whether the status of its own response says no, which is no matter of the others."""
    return pending.status is not None and pending.status >= _FAULT


# -- One call with nothing else under way --------------------------------------------------------


class Alone:
    """Calls of one tool on one server, one at a time."""

    def __init__(self, subject: Subject, tool: str, timeout: float) -> None:
        self.subject = subject
        self._tool = tool
        self._timeout = timeout
        self.pace = Pace(timeout)
        self.calls = 0

    def call(self, arguments: Any) -> FuzzFinding:
        """The verdict with its proof. A server that dies after its answer crashed too."""
        params = params_of(self._tool, arguments)
        outcome = self.subject.ask("tools/call", params, timeout=self._timeout)
        self.calls += 1
        if outcome.reply is not None:
            self.pace.waited(outcome.duration_ms / 1000)
            self.subject.remark(outcome.reply, f"tools/call {self._tool}")
        mask = self.subject.given
        finding = judged_call(outcome.kind, outcome.detail, outcome.reply, arguments, mask)
        if finding.verdict is FuzzVerdict.PASSED:
            aftermath = self.subject.aftermath(self._timeout)
            if aftermath is not None:
                detail = f"it answered, and then: {aftermath.detail}"
                verdict = judged_call(aftermath.kind, detail, None, arguments, mask).verdict
                proof = replace(aftermath, sent=outcome.sent, received=outcome.received, reply=None)
                return FuzzFinding(verdict, detail, outcome=proof, afterwards=True)
        return replace(finding, outcome=outcome)


# -- A slice of a tool's inputs on one server ----------------------------------------------------

MOST_HANGS = 3
"""After so many a tool is left: each costs the whole time-out."""
_TOGETHER = "the server died during parallel calls, but with none of them alone"


class SliceFuzzer:
    """Inputs from one number up to another. Call `run`, then see what came of them."""

    def __init__(
        self, subject: Subject, tool: str, inputs: Inputs, numbers: range, timeout: float
    ) -> None:
        self._subject = subject
        self._tool = tool
        self._inputs = inputs
        self._numbers = numbers
        self._timeout = timeout
        self._alone = Alone(subject, tool, timeout)
        self.found: dict[int, FuzzFinding] = {}
        self.sent = 0
        """How many got a verdict."""
        self.wrong_codes = 0
        self.lost = False
        """The server did not come back: the rest was not sent."""
        self.stopped = False
        self.doubt = ""
        """Why inputs sent among others got no answer, where they were to be tried alone."""
        self._hangs = 0
        self._known: set[tuple[FuzzVerdict, bool, str]] = set()
        self._unproven: list[int] = []
        """Failures seen among others, the first of their kind."""
        self._streamed_calls = 0

    @property
    def calls(self) -> int:
        return self._streamed_calls + self._alone.calls

    def run(self) -> SliceFuzzer:
        """Send them all. Being stopped ends it early; what was found until then counts."""
        try:
            place, pace = self._numbers.start, self._alone.pace
            recent: tuple[int, ...] = ()
            while self._some(place, 1) and not self._is_over:
                if pace.width == 1:
                    recent, before = (place,), len(self.found)
                    self._one_by_one(recent)
                    pace.width += len(self.found) == before
                    place += 1
                else:
                    end, place = self._stream_from(place)
                    recent = end.recent
            if recent and not self._is_over and self._subject.aftermath(self._timeout) is not None:
                self._one_by_one(recent, again=True)
        except Stopped:
            self.stopped = True
        self.lost = self._subject.given_up
        return self

    def _some(self, start: int, count: int) -> Sequence[InputCase]:
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
            self.doubt = self._subject.masker.text(end.reason)
            self._alone.pace.broken()
        self._prove()
        before = len(self.found)
        if end.died:  # perhaps of one that it had answered
            self._one_by_one(end.recent, again=True)
        self._one_by_one(end.doubtful)
        if end.died and end.doubtful and len(self.found) == before and not self._is_over:
            self._keep(end.doubtful[0], FuzzFinding(FuzzVerdict.CRASH, _TOGETHER))
        return end, stream.next

    def _one_by_one(self, numbers: Sequence[int], *, again: bool = False) -> None:
        """Each alone, and then whether the server is still well. `again`: they were counted."""
        for number in numbers:
            if self._is_over:
                return
            finding = self._alone.call(self._inputs.arguments(number))
            if not again:
                self._take(number, finding)
            elif finding.verdict is not FuzzVerdict.PASSED and number not in self.found:
                self._keep(number, finding)

    def _take_reply(self, number: int, reply: Reply) -> None:
        arguments = self._inputs.arguments(number)
        kind, detail = judged_reply(reply)
        self._subject.remark(reply, f"tools/call {self._tool}")
        finding = judged_call(kind, detail, reply, arguments, self._subject.given)
        if finding.verdict is not FuzzVerdict.PASSED and finding.signature not in self._known:
            self._unproven.append(number)
        self._take(number, finding)

    def _take(self, number: int, finding: FuzzFinding) -> None:
        self.sent += 1
        self.wrong_codes += finding.wrong_code
        if finding.verdict is not FuzzVerdict.PASSED:
            self._keep(number, finding)

    def _keep(self, number: int, finding: FuzzFinding) -> None:
        self.found[number] = finding
        self._known.add(finding.signature)
        self._hangs += finding.was_waited_for

    def _prove(self) -> None:
        """The first failure of its kind is looked at again alone."""
        unproven, self._unproven = self._unproven, []
        for number in unproven:
            if self._is_over:
                return
            alone = self._alone.call(self._inputs.arguments(number))
            if alone.verdict is not FuzzVerdict.PASSED:
                self._keep(number, alone)


# -- Fuzzing one tool ----------------------------------------------------------------------------

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
        self._timeout = timeout
        self._left = [range(n, min(n + SLICE, runs)) for n in range(0, runs, SLICE)][::-1]
        self._under_way = 0
        self._slices: list[SliceFuzzer] = []
        self._begun = time.monotonic()
        self._found: dict[int, FuzzFinding] = {}
        self._sent = 0
        self.calls = 0
        self.stopped = False

    # -- sending ---------------------------------------------------------------------------

    def hand_out(self) -> range | None:
        """The numbers that are to be sent next; None when there are none, or no point in it.

        They go out in order: before a slice that ends it all every other one is finished.
        """
        if not self._left:
            return None
        self._under_way += 1
        return self._left.pop()

    def sliced(self, subject: Subject, numbers: range) -> SliceFuzzer:
        """Send these. The one method that several threads may be in."""
        return SliceFuzzer(subject, self._name, self._inputs, numbers, self._timeout).run()

    def take(self, sliced: SliceFuzzer) -> bool:
        """Keep what came of a slice; whether it was the last that is waited for."""
        self._under_way -= 1
        self._slices.append(sliced)
        self.calls += sliced.calls
        self.stopped |= sliced.stopped
        found = (finding for one in self._slices for finding in one.found.values())
        if sliced.stopped or sum(one.was_waited_for for one in found) >= MOST_HANGS:
            self._left = []
        return not self._left and not self._under_way

    # -- what was found --------------------------------------------------------------------

    def report(self, subject: Subject) -> FuzzedTool:
        """Put the slices together, and make what failed small on that server."""
        for one in self._slices:
            self._found |= one.found
            self._sent += one.sent
        notes, form = self._notes_on_sending(), self._inputs.form
        alone = Alone(subject, self._name, self._timeout)
        groups: dict[tuple[FuzzVerdict, bool, str], list[int]] = {}
        for number in sorted(self._found):
            groups.setdefault(self._found[number].signature, []).append(number)
        failures = tuple(
            self._failure(numbers, alone if place < _MOST_SHRUNK else None, alone.subject.masker)
            for place, numbers in enumerate(groups.values())
        )
        self.calls += alone.calls
        return FuzzedTool(
            name=self._name,
            runs=self._sent,
            passed=self._sent - len(self._found),
            failures=failures,
            notes=(*notes, *self._notes_on_inputs()),
            refuses_as_internal=any(one.wrong_codes for one in self._slices),
            unchecked=f"its inputSchema can't be checked: {form.unusable}"
            if form.unchecked
            else "",
            categories=Counter(one.category.value for one in self._inputs.cases[: self._sent]),
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
            words = f"{MOST_HANGS} inputs got no response in time; {left} more were not sent"
            return [words] if left else []
        left = self._inputs.total - self._sent
        if self.stopped and left:
            doubt = next((f"; {one.doubt}" for one in self._slices if one.doubt), "")
            return [f"stopped: {left} inputs got no verdict{doubt}"]
        if any(one.lost for one in self._slices):
            return [f"the server could not be restarted; {left} inputs were not sent"]
        return []

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
            arguments=UNSET if case.arguments is ABSENT else case.arguments,
            minimal=UNSET if minimal is ABSENT else minimal,
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

    def _shrunk(self, case: InputCase, finding: FuzzFinding, alone: Alone) -> tuple[Any, int]:
        wanted = finding.signature
        tries = _TRIES_ALIVE
        if finding.verdict is FuzzVerdict.HANG:
            tries = _TRIES_HUNG
        elif finding.outcome is not None and finding.outcome.reply is None:
            tries = _TRIES_DEAD

        def proof(arguments: Any) -> FuzzFinding | None:
            if alone.subject.given_up:
                return None
            found = alone.call(arguments)
            return found if found.signature == wanted else None

        def simpler(arguments: Any) -> Iterator[Any]:
            """A valid input stays one: that such a one fails says more."""
            for one in simpler_json(arguments):
                if not case.valid or self._inputs.form.misfit(one) is None:
                    yield one

        if self.stopped:
            return case.arguments, 0
        shrinker = Shrinker(proof, most=tries)
        try:
            return shrinker.smallest(case.arguments, simpler), shrinker.tries
        except Stopped:
            self.stopped = True
            return case.arguments, 0

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
            notes.append("no input was found that matches its schema")
        return notes


# -- A run over all tools of a server -------------------------------------------------------------

_LONGEST_COMMAND = 1_500
_PARTING = 0.3
_REFUSES_AS_INTERNAL = (
    "malformed requests (arguments that are not an object) get error -32603 instead of "
    "-32602; this does not count as a crash"
)

_Slot: TypeAlias = tuple[ToolFuzzer, range, int]
"""Whose inputs, which of them, and the number of the tool."""


class FuzzOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be fuzzed and how."""

    runs: int = 50
    seed: int = 0
    tools: tuple[str, ...] = ()
    include_writes: bool = False
    allow_tools: frozenset[str] = frozenset()
    timeout: float = 15.0
    given: Any = ABSENT
    """Only this input."""
    repeat: str = ""
    """The command that fuzzes this server again."""
    worth_a_server: int = 1
    """A further server is started for so many inputs each."""


class Fuzz:
    """One run. Call `meet`, then `run`, then ask for the report."""

    def __init__(self, subjects: Sequence[Subject], order: FuzzOrder) -> None:
        """`subjects`: the same server so many times; the inputs are shared out among them."""
        self._subjects = subjects
        self._order = order
        self._done: dict[int, FuzzedTool] = {}
        self._skipped: tuple[SkippedTool, ...] = ()
        self._wanted: list[Mapping[str, Any]] = []
        self._begun = time.monotonic()
        self._calls = 0
        self._lock = threading.Lock()
        self.interrupted = False
        self.tools: tuple[Mapping[str, Any], ...] = ()
        self._problem = ""
        self._nameless = 0
        self._notes: list[str] = []
        self._slots = self._slot_by_slot()

    def meet(self) -> int:
        """Read the list of tools; how many there are to fuzz. Raises PeerError."""
        subject = self._subjects[0]
        client = subject.client
        self._facts = client.server.info
        self._met = client.met
        offer = subject.offer(
            without={"prompts/list", "resources/list", "resources/templates/list"}
        )
        self._problem = offer.problems.get("tools/list", "")
        if not offer.tools:  # what it said of itself may be why
            self._problem = self._problem or next(iter(offer.problems.values()), "")
        others = (pair for pair in offer.problems.items() if pair[0] != "tools/list")
        mask = subject.masker.text
        self._notes += (f"{method}: {mask(problem)}" for method, problem in others)
        self.tools = tuple(named_items(offer.tools))
        self._nameless = len(offer.tools) - len(self.tools)
        names = self._order.tools
        named = [tool for tool in self.tools if not names or tool["name"] in names]
        reasons = [(tool, self._why_skipped(tool)) for tool in named]
        self._wanted = [tool for tool, why in reasons if not why]
        left = ((tool["name"], why) for tool, why in reasons if why)
        self._skipped = tuple(SkippedTool(name=name, reason=why) for name, why in left)
        return len(self._wanted)

    def run(self, tell: Callable[[FuzzedTool], None] = lambda _: None) -> None:
        """Fuzz them all. Being stopped ends it early, and the report says so."""
        tools, runs = len(self._wanted), self._order.runs
        servers = min(tools * -(-runs // SLICE), tools * runs // self._order.worth_a_server)

        def work(subject: Subject) -> None:
            try:
                self._work(subject, tell)
            except Stopped:
                self.interrupted = True

        at_work = self._subjects[: max(1, servers)]
        with ThreadPoolExecutor(len(at_work)) as threads:
            ended = [threads.submit(work, subject) for subject in at_work]
        for subject in self._subjects:
            subject.drop(_PARTING)  # nothing is left to say that would be worth waiting for
        for one in ended:
            one.result()

    def _work(self, subject: Subject, tell: Callable[[FuzzedTool], None]) -> None:
        """Take one slice of inputs after the other, until there are none."""
        if subject is not self._subjects[0]:
            try:
                subject.client  # noqa: B018 - it is begun
            except PeerError as error:  # a server that can't be there twice is no reason to fail
                with self._lock:
                    reason = subject.masker.text(error.message.partition("\n")[0])
                    self._notes.append(f"a further server for --jobs did not start: {reason}")
                return
        while (slot := self._next_slot()) is not None:
            fuzzer, numbers, number = slot
            sliced = fuzzer.sliced(subject, numbers)
            with self._lock:
                self.interrupted |= sliced.stopped
                is_last = fuzzer.take(sliced)
            if is_last:
                fuzzed = fuzzer.report(subject)
                failures = [
                    replace(one, repeat=self._repeat(one, subject)) for one in fuzzed.failures
                ]
                fuzzed = replace(fuzzed, failures=tuple(failures))
                with self._lock:
                    self._calls += fuzzer.calls
                    self.interrupted |= fuzzer.stopped
                    self._done[number] = fuzzed
                    tell(fuzzed)

    def _next_slot(self) -> _Slot | None:
        """Inputs that nobody has sent yet."""
        with self._lock:
            return None if self.interrupted else next(self._slots, None)

    def _slot_by_slot(self) -> Iterator[_Slot]:
        for number, tool in enumerate(self._wanted):
            fuzzer = self._fuzzer(tool)
            while (numbers := fuzzer.hand_out()) is not None:
                yield fuzzer, numbers, number

    def _why_skipped(self, tool: Mapping[str, Any]) -> str:
        if runs_only_as_task(tool):
            return ONLY_AS_TASK
        may = self._order.include_writes or may_call(tool, self._order.allow_tools)
        return "" if may else why_not(tool)

    def _fuzzer(self, tool: Mapping[str, Any]) -> ToolFuzzer:
        order, runs = self._order, self._order.runs
        if order.given is not ABSENT:
            runs, inputs = 1, given_input(tool, order.given)
        else:
            inputs = inputs_for(tool, runs, order.seed, writes=bool(why_not(tool)))
        return ToolFuzzer(tool["name"], inputs, runs, order.timeout)

    def _repeat(self, failure: FuzzFailure, subject: Subject) -> str:
        """Just this input again; by its seed where it is too long for a command line."""
        if not self._order.repeat:
            return ""
        start = f"{self._order.repeat} --tool {shlex.quote(failure.tool)}"
        if failure.again and failure.minimal is not UNSET:
            text = shlex.quote(json.dumps(failure.minimal))
            if len(text) <= _LONGEST_COMMAND:
                return subject.masker.text(f"{start} --input {text}")
        return f"{start} --seed {self._order.seed} --runs {self._order.runs}"

    def report(self, out_of_time: str = "") -> FuzzReport:
        """`out_of_time`: that this is why it was stopped, in words."""
        first = self._subjects[0]
        tools = [self._done[number] for number in sorted(self._done)]
        wanted = len(self._wanted)
        unreached = wanted - sum(bool(tool.runs) for tool in tools) if out_of_time else 0
        notes = [note for subject in self._subjects for note in subject.notes]
        notes += self._notes
        if out_of_time:
            notes.append(f"{out_of_time}: {unreached} of {wanted} tools not reached")
        if self._nameless:
            notes.append(f"{self._nameless} tools have no name and could not be called")
        if any(tool.refuses_as_internal for tool in self._done.values()):
            notes.append(_REFUSES_AS_INTERNAL)
        return FuzzReport(
            **head_of(first.target, self._facts, self._met, self._begun),
            seed=self._order.seed,
            runs_per_tool=self._order.runs,
            tools=tuple(tools),
            skipped=self._skipped,
            unreached=unreached,
            problem=first.masker.text(self._problem),
            notes=tuple(notes),
            restarts=sum(subject.restarts for subject in self._subjects),
            calls=self._calls,
            interrupted=self.interrupted and not out_of_time,
        )
