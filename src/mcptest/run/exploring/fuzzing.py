"""A fuzz run over the tools of a server: the inputs follow from the seed, whatever runs when."""

from __future__ import annotations

import datetime
import json
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest import __version__
from mcptest.explore.fuzz.inputs import Inputs, given_input, inputs_for
from mcptest.model.audit import ONLY_AS_TASK
from mcptest.model.fuzz import FuzzedTool, FuzzFailure, FuzzReport
from mcptest.model.message import ABSENT
from mcptest.model.show import show
from mcptest.peer.connection import Stopped
from mcptest.run.exploring.fuzzing_tool import ToolFuzzer
from mcptest.run.exploring.safety import runs_only_as_task, why_not
from mcptest.run.exploring.subject import Subject

_LONGEST_COMMAND = 1_500
_PARTING = 0.3
_REFUSES_AS_INTERNAL = (
    "malformed requests (arguments that are no object) are refused with the code for internal "
    "errors, -32603, where -32602 is meant; that is no crash"
)


class FuzzOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be fuzzed and how."""

    runs: int = 50
    seed: int = 0
    tools: tuple[str, ...] = ()
    include_writes: bool = False
    timeout: float = 15.0
    given: Any = ABSENT
    """Only this input."""
    repeat: str = ""
    """The command that fuzzes this server again."""


class Fuzz:
    """One run. Call `meet`, then `run`, then ask for the report."""

    def __init__(self, subjects: Sequence[Subject], order: FuzzOrder) -> None:
        """`subjects`: the same server so many times; the tools are shared out among them."""
        self._subjects = subjects
        self._order = order
        self._done: dict[int, FuzzedTool] = {}
        self._begun = time.monotonic()
        self._started = datetime.datetime.now(datetime.UTC)
        self._calls = 0
        self._lock = threading.Lock()
        self.interrupted = False
        self.tools: tuple[Mapping[str, Any], ...] = ()
        self._problem = ""
        self._nameless = 0

    def meet(self) -> int:
        """Read the list of tools; how many there are to fuzz. Raises PeerError."""
        subject = self._subjects[0]
        client = subject.client
        self._facts = client.server.info
        self._revision = client.revision.value
        self._transport = client.connection.transport.name
        offer = subject.offer(
            without={"prompts/list", "resources/list", "resources/templates/list"}
        )
        self._problem = offer.problems.get("tools/list", "")
        named = [
            one for one in offer.tools if isinstance(one, dict) and isinstance(one.get("name"), str)
        ]
        self._nameless = len(offer.tools) - len(named)
        self.tools = tuple(named)
        return sum(not self._why_skipped(tool) for tool in self._wanted())

    def run(self, tell: Callable[[FuzzedTool], None] = lambda _: None) -> None:
        """Fuzz them all. Being stopped ends it early, and the report says so."""
        todo = list(enumerate(self._wanted()))[::-1]
        troubles: list[BaseException] = []

        def work(subject: Subject) -> None:
            try:
                while True:
                    with self._lock:
                        if not todo or self.interrupted:
                            return
                        number, tool = todo.pop()
                    fuzzed = self._fuzzed(subject, tool)
                    with self._lock:
                        self._done[number] = fuzzed
                        tell(fuzzed)
            except Stopped:
                self.interrupted = True
            except BaseException as error:  # noqa: BLE001 - it is raised again where it can be told
                troubles.append(error)

        others = [
            threading.Thread(target=work, args=(subject,), daemon=True)
            for subject in self._subjects[1:]
        ]
        for thread in others:
            thread.start()
        work(self._subjects[0])
        for thread in others:
            thread.join()
        for subject in self._subjects:
            subject.drop(_PARTING)  # nothing is left to say that would be worth waiting for
        if troubles:
            raise troubles[0]

    def _wanted(self) -> list[Mapping[str, Any]]:
        names = self._order.tools
        return [tool for tool in self.tools if not names or tool["name"] in names]

    def _why_skipped(self, tool: Mapping[str, Any]) -> str:
        if runs_only_as_task(tool):
            return ONLY_AS_TASK
        return "" if self._order.include_writes else why_not(tool)

    def _fuzzed(self, subject: Subject, tool: Mapping[str, Any]) -> FuzzedTool:
        reason = self._why_skipped(tool)
        if reason:
            return FuzzedTool(name=tool["name"], skipped=reason)
        fuzzer = ToolFuzzer(subject, tool["name"], self._inputs(tool), self._order.timeout)
        fuzzed = fuzzer.run()
        with self._lock:
            self._calls += fuzzer.calls
            self.interrupted |= fuzzer.stopped
        failures = tuple(replace(one, repeat=self._repeat(one, subject)) for one in fuzzed.failures)
        return replace(fuzzed, failures=failures)

    def _inputs(self, tool: Mapping[str, Any]) -> Inputs:
        order = self._order
        if order.given is not ABSENT:
            return given_input(tool, order.given)
        return inputs_for(tool, order.runs, order.seed, writes=bool(why_not(tool)))

    def _repeat(self, failure: FuzzFailure, subject: Subject) -> str:
        """Just this input again; by its seed where it is too long for a command line."""
        if not self._order.repeat:
            return ""
        start = f"{self._order.repeat} --tool {shlex.quote(failure.tool)}"
        if failure.again and failure.minimal is not ABSENT:
            text = shlex.quote(json.dumps(failure.minimal))
            if len(text) <= _LONGEST_COMMAND:
                return subject.masker.text(f"{start} --input {text}")
        return f"{start} --seed {self._order.seed} --runs {self._order.runs}"

    def report(self) -> FuzzReport:
        first = self._subjects[0]
        notes = [note for subject in self._subjects for note in subject.capture_troubles]
        if self._nameless:
            notes.append(f"{self._nameless} tools have no name and could not be called")
        if any(tool.refuses_as_internal for tool in self._done.values()):
            notes.append(_REFUSES_AS_INTERNAL)
        return FuzzReport(
            server=first.masker.text(first.target.label),
            server_name=show(str(self._facts.get("name") or ""), 120),
            server_version=show(str(self._facts.get("version") or ""), 60),
            transport=self._transport,
            revision=self._revision,
            seed=self._order.seed,
            runs_per_tool=self._order.runs,
            tools=tuple(self._done[number] for number in sorted(self._done)),
            problem=first.masker.text(self._problem),
            notes=tuple(notes),
            restarts=sum(subject.restarts for subject in self._subjects),
            started=self._started.isoformat(timespec="seconds"),
            duration_ms=round((time.monotonic() - self._begun) * 1000),
            calls=self._calls,
            interrupted=self.interrupted,
            tool=f"mcptest {__version__}",
        )
