"""A fuzz run over the tools of a server: the inputs follow from the seed, whatever runs when."""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from mcptest.commands.fuzz.calls import SLICE, ToolFuzzer
from mcptest.commands.fuzz.inputs import given_input, inputs_for
from mcptest.core.errors import PeerError
from mcptest.core.message import ABSENT
from mcptest.probe.live_server import Subject, head_of
from mcptest.report.audit import ONLY_AS_TASK
from mcptest.report.fuzz import FuzzedTool, FuzzFailure, FuzzReport, SkippedTool
from mcptest.session.connection import Stopped
from mcptest.session.pages import named_items
from mcptest.session.tool_safety import may_call, runs_only_as_task, why_not

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
