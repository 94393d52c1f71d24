"""A run of property tests: every property that was asked for, and one report of them all.

For each property kept examples come first, then a search for each way to break it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import shlex
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from mcptest.core.capture import AnyRecord, Exited, Frame, HttpResponse, Trouble
from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import Deadline, cancellation
from mcptest.core.redaction import redaction
from mcptest.core.revision import revision_of_wire
from mcptest.core.safe_text import show
from mcptest.core.verdict import Severity
from mcptest.probe.counterexamples import Examples, SavedExample
from mcptest.probe.live_server import head_of
from mcptest.probe.properties.bench import PlayBench, RelationBench, Violation
from mcptest.probe.properties.message_strategies import EXAMPLES, NothingToTry, Strand
from mcptest.probe.properties.player import ExampleServer
from mcptest.probe.properties.property_catalogue import PROPERTIES, Property, PropertyOrder
from mcptest.probe.properties.search import (
    Bench,
    CarriedOver,
    Enough,
    Shortening,
    Trial,
    plain_ask,
    search,
)
from mcptest.probe.properties.steps import AskStep, Relate, Steps
from mcptest.report.property import Counterexample, Line, PropertyReport, PropertyResult, Way
from mcptest.schema.tool_inputs import unchecked_schemas
from mcptest.session.connection import Stopped
from mcptest.session.tape import Tape
from mcptest.transport.recorder import Recorder
from mcptest.wire.envelope import decode

_MOST_FOUND = 12
_TRIES = 300
"""With which a counterexample may become small: a number, so that the same comes of it again."""
_TRIES_OF_ADVICE = 100
"""The same for one that only breaks advice."""
_SHRINKING = 60.0
"""Seconds after which that ends all the same, whatever time is left."""
_SHRINKING_ADVICE = 20.0
_ONE_MESSAGE = 2
"""Steps: it is sent when we are connected."""
_FEWEST = 5
_ROUNDS = 50
"""Searches in one strand, at the most."""


class PropertyRun:
    """The run of one property. What was found so far is there also when it ends early."""

    def __init__(self, one: Property, stage: ExampleServer, examples: Examples) -> None:
        self.property = one
        self.stage = stage
        self.order = stage.order
        self._examples = examples
        self._begun = time.monotonic()
        self._trial: Trial | None = None
        self._found: list[Counterexample] = []
        self._notes: list[str] = []
        self._replayed = 0
        self._ended_early = ""
        self._searching = 0.0

    # -- what came of it -------------------------------------------------------------------

    def result(self, seed: int, seconds: float) -> PropertyResult:
        """Try it for so long. Raises PeerError when the server is gone for good."""
        try:
            strands = EXAMPLES[self.property.name](self.stage.ground)
        except NothingToTry as why:
            if self.order.is_over():  # it was not looked for to the end
                return self.so_far()
            return PropertyResult(
                name=self.property.name, about=self.property.about, skipped=str(why)
            )
        with contextlib.closing(self._bench()) as bench:
            self.stage.drop()
            self.stage.begin_counting()
            if not self.property.relation:
                self.stage.open()  # how long that takes is no matter of the property
            trial = self._trial = Trial(bench, until=self._in(seconds), about=self._about)
            self._replay_kept(trial)
            self._search_all(strands, trial, seed)
        return self.so_far()

    def replayed(self, example: SavedExample) -> PropertyResult:
        """Try this one example, whatever else there may be."""
        with contextlib.closing(self._bench()) as bench:
            trial = self._trial = Trial(bench, until=self._in(_SHRINKING), about=self._about)
            self.stage.drop()
            self._replayed = 1
            found = trial.tried(example.all_steps)
            if found is not None:
                self._note(example.all_steps, found, known=True, after=example.after)
        return self.so_far()

    def so_far(self) -> PropertyResult:
        trial = self._trial
        spent = time.monotonic() - self._begun
        return PropertyResult(
            name=self.property.name,
            about=self.property.about,
            examples=trial.examples if trial is not None else 0,
            replayed=self._replayed,
            counterexamples=tuple(self._found),
            notes=tuple(self._notes),
            ended_early=self._ended_early,
            duration_ms=round(spent * 1000),
            generating_ms=round((self._searching - trial.seconds) * 1000, 3) if trial else 0.0,
        )

    def _in(self, seconds: float) -> float:
        """So many seconds from now on the monotonic clock, but not after the limit of the run."""
        limit = self.order.limit
        return min(time.monotonic() + seconds, limit.at if limit is not None else math.inf)

    def _bench(self) -> Bench:
        if self.property.relation:
            return RelationBench(self.stage)
        return PlayBench(self.stage, rude=self.property.rude)

    def _about(self, steps: Steps) -> str:
        """The tool that is called, where each may fail by itself."""
        if not self.property.by_tool:
            return ""
        for step in steps:
            if isinstance(step, Relate):
                return step.tool
            if isinstance(step, AskStep) and step.method == "tools/call":
                return str(step.params.get("name"))
        return ""

    # -- trying ----------------------------------------------------------------------------

    def _replay_kept(self, trial: Trial) -> None:
        kept = self._examples.of(
            self.property.name, self.stage.ground.revision.value, self.stage.ground.transport
        )
        for example in kept:
            if self.order.is_out_of_time:
                raise Stopped
            self._replayed += 1
            trial.renew()
            found = trial.tried(example.all_steps)
            if found is None:
                self._examples.forget(example)
                self._notes.append(f"{example.name} passes now and was removed")
                continue
            trial.known.add(trial.key(found, example.all_steps))
            self._note(example.all_steps, found, known=True, after=example.after)
            trial.renew()

    def _search_all(self, strands: Sequence[Strand], trial: Trial, seed: int) -> None:
        """Every strand has its share of the examples, and of the time that is left."""
        wanted = max(_FEWEST, self.order.examples // self.property.share)
        if self.property.name == "same-lists":
            wanted = 1
        until = trial.until
        weight = sum(one.weight for one in strands)
        cut_short: list[tuple[Strand, int, int]] = []
        for place, one in enumerate(strands):
            if self._has_enough:
                break
            share = -(-wanted * one.weight // weight)
            heavy = one.weight / sum(other.weight for other in strands[place:])
            left = max(0.0, until - time.monotonic()) * heavy
            trial.until = time.monotonic() + left
            before, tried = time.monotonic(), trial.examples
            done = self._search(one, trial, seed + place * _ROUNDS, share)
            # What it takes to make a find small is not taken from the strands that are left, as
            # long as there is time for the run.
            until = min(until + max(0.0, time.monotonic() - before - left), self._in(math.inf))
            if not done:
                cut_short.append((one, place, share - (trial.examples - tried)))
        for one, place, share in cut_short:  # what the others did not need is theirs
            if self._has_enough:
                break
            trial.until = until
            if not self._search(one, trial, seed + (len(strands) + place) * _ROUNDS, share):
                self._ended_early = f"time ran out after {trial.examples} examples"
                break

    @property
    def _has_enough(self) -> bool:
        return len(self._found) >= (1 if self.order.fail_fast else _MOST_FOUND)

    def _search(self, strand: Strand, trial: Trial, seed: int, wanted: int) -> bool:
        """One search after the other, until nothing new is found or the examples are used up.

        False when the time was up before.
        """
        until, last = trial.until, trial.examples + wanted
        for number in range(_ROUNDS):
            if trial.examples >= last or self._has_enough:
                break
            trial.begin_search()
            noted = len(self._found)
            try:
                found = self._searched(strand, trial, seed + number, last - trial.examples)
                if found and trial.smallest is not None:
                    self._note_smallest(trial)
            except Enough:
                return False
            except Stopped:
                if len(self._found) == noted:
                    self._note_as_it_is(trial)
                raise
            trial.until = until
            if not found:
                break
        return True

    def _searched(self, strand: Strand, trial: Trial, seed: int, examples: int) -> bool:
        """Whether something was found. Raises Enough when the time was up before."""
        begun, until = time.monotonic(), trial.until
        try:
            return search(
                strand.strategy,
                lambda steps: self._with_patience(trial, steps, until),
                seed=seed,
                examples=examples,
            )
        except Enough:
            if trial.smallest is None:
                raise
        except CarriedOver as carried:
            trial.until = self._in(_SHRINKING)
            self._carried_over(trial, carried)
        finally:
            self._searching += time.monotonic() - begun
        return True

    def _note_as_it_is(self, trial: Trial) -> None:
        """The time is up: what was confirmed counts, small or not; nothing else does."""
        if trial.smallest is not None and trial.wanted is not None:
            trial.known.add(trial.wanted)
            self._note(*trial.smallest)
        elif trial.suspected is not None:
            message = trial.suspected.message
            self._notes.append(f"no time to confirm this on a fresh server: {message}")

    def _with_patience(self, trial: Trial, steps: Steps, until: float) -> None:
        if trial.wanted is not None:
            found = trial.smallest[1] if trial.smallest is not None else None
            advice = found is not None and found.severity is not Severity.MUST
            if trial.until == until:
                trial.until = self._in(_SHRINKING_ADVICE if advice else _SHRINKING)
            # Of many steps most are needless, which leaving out finds in far fewer tries.
            if len(trial.first) > _ONE_MESSAGE:
                raise Enough
            if trial.shrinking >= (_TRIES_OF_ADVICE if advice else _TRIES):
                raise Enough
        trial(steps)

    def _note_smallest(self, trial: Trial) -> None:
        assert trial.smallest is not None  # it was found
        assert trial.wanted is not None  # as above
        steps, found = trial.smallest
        tries = trial.shrinking
        if len(steps) > _ONE_MESSAGE:  # one is as small as Hypothesis could make it
            trial.until = self._in(_SHRINKING)
            short = self._shortening(trial, trial.wanted)
            steps = short.plainer(steps)
            tries += short.shrinker.tries
        trial.known.add(trial.wanted)
        again = trial.tried_alone(steps, trial.wanted) if not self.property.relation else found
        if again is None and steps != trial.first:  # it was small only in a session that goes on
            steps = trial.first
            again = trial.tried_alone(steps, trial.wanted)
        if again is None and found.is_silence:
            self._silent_once(trial, trial.wanted, found)
        else:
            self._note(steps, again or found, again=again is not None, tries=tries)
        trial.renew()

    def _silent_once(self, trial: Trial, key: tuple[str, ...], found: Violation) -> None:
        """What does not happen again may have been the machine: it may show for certain later."""
        trial.known.discard(key)
        self._notes.append(f"the server once did not answer in time: {found.message}")

    def _shortening(self, trial: Trial, wanted: tuple[str, ...]) -> Shortening:
        return Shortening(trial, wanted, functools.partial(plain_ask, self.stage.ground))

    def _carried_over(self, trial: Trial, carried: CarriedOver) -> None:
        """It failed after others and not alone: which of them does it take?"""
        trial.suspected = carried.found
        if self.property.relation:  # a claim holds in every state: once is no proof
            self._notes.append(f"it happened once but not again: {carried.found.message}")
            return
        key = trial.key(carried.found, carried.steps)
        trial.known.add(key)
        known, trial.known = trial.known, set()
        short = self._shortening(trial, key)
        try:
            takes = short.of_examples(carried.before, carried.steps)
        finally:
            trial.known = known
        if takes is not None:
            tries = short.shrinker.tries
            self._note(takes.steps, takes.found, after=takes.after, tries=tries)
        elif carried.found.is_silence:
            self._silent_once(trial, key, carried.found)
        else:
            self._note(carried.steps, carried.found, again=False)
        trial.renew()

    # -- telling ---------------------------------------------------------------------------

    def _note(
        self,
        steps: Steps,
        found: Violation,
        *,
        again: bool = True,
        known: bool = False,
        after: int = 0,
        tries: int = 0,
    ) -> None:
        """The last that was played is what is told of."""
        trial = self._trial
        assert trial is not None  # something was tried
        example = SavedExample(
            of_property=self.property.name,
            rule=found.rule,
            title=found.title,
            way=found.way.value,
            revision=self.stage.ground.revision.value,
            transport=self.stage.ground.transport,
            after=after,
            steps=list(steps),
        )
        self._examples.keep(example)
        trial.bench.learn(steps, found)
        self._capture(example.name, found)
        repeat = self.order.repeat
        self._found.append(
            replace(
                told(self.stage, steps, found),
                of_property=self.property.name,
                first=len(trial.first) or len(steps),
                tries=tries or trial.shrinking,
                after=after,
                again=again,
                known=known,
                repeat=f"{repeat} --replay {shlex.quote(example.name)}" if repeat else "",
                example=example.name,
            )
        )

    def _capture(self, name: str, found: Violation) -> None:
        """The session that shows it, as a file."""
        if self.order.captures is None or self.property.relation:
            return
        tape, target = found.tape or self.stage.tape, self.order.target
        recorder = Recorder(self.order.captures / f"{name}.jsonl", masker=redaction.masker)
        recorder.begin(
            label=target.label,
            transport=tape.transport or target.way,
            peer=target.peer,
            spec_version=self.stage.ground.revision.value,
        )
        for record in tape.records:
            recorder(record)
        recorder.close()


# -- A counterexample as people read it: what was said, and where the fault is -------------------

_SHOWN = 400
_MOST_LINES = 60
_REFUSED = 400


def told(stage: ExampleServer, steps: Steps, found: Violation) -> Counterexample:
    """What the steps broke on that server, without secrets."""
    mask, tape = redaction.masker.text, found.tape or stage.tape
    return Counterexample(
        of_property="",
        way=found.way,
        rule=found.rule,
        title=found.title,
        severity=found.severity,
        message=show(mask(found.message), 400),
        expected=show(mask(found.expected), 300),
        actual=show(mask(found.actual), 300),
        steps=tuple(msgspec.to_builtins(list(steps))),
        words=tuple(show(mask(step.words), 400) for step in steps),
        lines=_session_lines(stage, found, tape),
        stderr=tuple(show(mask(line), 300) for line in tape.stderr),
    )


def _session_lines(stage: ExampleServer, found: Violation, tape: Tape) -> tuple[Line, ...]:
    """The session that shows it. Its beginning is left out where the fault is not in it."""
    first = tape.marked
    if found.record is not None and found.record < first:
        first = 0
    placed = list(enumerate(tape.records))[first:]
    lines = list(_lines(_without_fences(placed, stage, found), found.record))
    if first:
        lines.insert(0, Line("", "(normal start of the session)"))
    if len(lines) > _MOST_LINES:
        left = len(lines) - _MOST_LINES
        lines = [*lines[:10], Line("", f"({left} more)"), *lines[10 - _MOST_LINES :]]
    return tuple(lines)


def _without_fences(
    placed: list[tuple[int, AnyRecord]], stage: ExampleServer, found: Violation
) -> list[tuple[int, AnyRecord]]:
    """Fences are ours, and say something only where they are not answered."""
    if found.way is Way.HANG:
        return placed
    kept, fences = [], set()
    for place, record in placed:
        if isinstance(record, Frame):
            message = decode(record.raw)
            if record.sender == "client" and message.method == stage.alive_method:
                fences |= {message.id} if stage.is_fence(message.id) else set()
            if type(message.id) is int and message.id in fences and place != found.record:
                continue
        kept.append((place, record))
    return kept


def _lines(records: Sequence[tuple[int, AnyRecord]], fault: int | None) -> Iterator[Line]:
    masker = redaction.masker
    for place, record in records:
        if isinstance(record, Frame):
            text = show(masker.message(record.raw), _SHOWN)
            yield Line(record.sender, text, at_fault=place == fault)
        elif isinstance(record, HttpResponse) and record.status >= _REFUSED:
            yield Line("server", f"(HTTP status {record.status})", at_fault=place == fault)
        elif isinstance(record, Exited):
            how = f"code {record.code}" if record.code is not None else f"signal {record.signal}"
            if not record.after:
                yield Line("server", f"(the process ended with {how})", at_fault=True)
        elif isinstance(record, Trouble):
            text = show(masker.text(record.detail), _SHOWN)
            yield Line("", f"({text})", at_fault=place == fault)


# -- Properties on one server, one after the other, and the time that each of them may take ------

Tell = Callable[[str], None]
_LARGEST_SEED = 2**63
_INTERRUPTED = "interrupted"


class Done(msgspec.Struct, frozen=True):
    """What came of several properties, and what else is to be said."""

    results: tuple[PropertyResult, ...] = ()
    slow_tools: Mapping[str, str] = {}
    troubles: tuple[str, ...] = ()
    starts: int = 0
    interrupted: bool = False
    no_server: str = ""
    """Of a worker: why it can't work at all: a server that can't be there twice, perhaps."""
    defect: str = ""
    """Of a worker: what it failed over, as a traceback."""


class OneAfterTheOther:
    """One server that serves one property after the other."""

    def __init__(self, stage: ExampleServer) -> None:
        self.order = stage.order
        self.stage = stage
        self.examples = Examples(stage.order.database, stage.order.target)
        self.interrupted = False
        self.tried = 0
        """How many properties the server was there for."""
        self.lost = ""
        """Why the server did not come back, if it did not."""

    def done(self, results: Sequence[PropertyResult]) -> Done:
        stage = self.stage
        troubles = tuple(self.examples.troubles)
        return Done(
            tuple(results), dict(stage.slow_tools), troubles, stage.live.sessions, self.interrupted
        )

    def all_of(self, names: Sequence[str], begins: Tell, ends: Tell) -> Done:
        """Try them all; being interrupted ends it early, with what was found until then."""
        results = []
        for place, name in enumerate(names):
            begins(name)
            results.append(self.one(name, is_last=place == len(names) - 1))
            ends(name)
            if self.interrupted:
                break
        return self.done(results)

    def replayed(self, example: SavedExample) -> Done:
        run = self._run_of(example.of_property)
        try:
            return self.done([run.replayed(example)])
        except Stopped:
            return self.done([self._cut_short(run)])

    def one(self, name: str, *, is_last: bool) -> PropertyResult:
        """A property has half of the time that is left: most of them need far less."""
        if self.order.is_out_of_time:
            about, why = PROPERTIES[name].about, self.order.out_of_time
            return PropertyResult(name=name, about=about, ended_early=f"not run: {why}")
        left = self.order.limit.remaining() if self.order.limit is not None else math.inf
        share = left if is_last else left / 2
        seed = zlib.crc32(name.encode()) * _LARGEST_SEED // 2**32 ^ self.order.seed
        run = self._run_of(name)
        try:
            result = run.result(seed % _LARGEST_SEED, share)
            self.tried += 1
            return result
        except PeerError as error:
            mask = redaction.text
            self.lost = show(mask(error.message.partition("\n")[0]), 300)
            why = f"the server did not restart: {mask(error.message)}"
            return msgspec.structs.replace(run.so_far(), ended_early=show(why, 300))
        except Stopped:
            return self._cut_short(run)

    def _cut_short(self, run: PropertyRun) -> PropertyResult:
        self.interrupted = self.order.is_interrupted
        why = _INTERRUPTED if self.interrupted else self.order.out_of_time
        return msgspec.structs.replace(run.so_far(), ended_early=why)

    def _run_of(self, name: str) -> PropertyRun:
        return PropertyRun(PROPERTIES[name], self.stage, self.examples)


# -- A run of property tests ---------------------------------------------------------------------


def run_properties(
    order: PropertyOrder, begins: Tell = lambda name: None, ends: Tell = lambda name: None
) -> PropertyReport:
    """Try every property that was asked for. Raises PeerError when the server can't be reached.

    `begins` hears the name of each property before it is tried, `ends` afterwards.
    """

    def try_all(alone: OneAfterTheOther) -> Done:
        names = order.properties or tuple(PROPERTIES)
        workers = min(order.jobs, len(names)) if order.target.way == "stdio" else 1
        if workers > 1 and hasattr(os, "fork"):
            from mcptest.probe.properties.parallel import Team

            return Team(alone, names, begins, ends).done(workers)
        return alone.all_of(names, begins, ends)

    return _report(order, try_all)


def replay_example(order: PropertyOrder, example: SavedExample) -> PropertyReport:
    """Try one counterexample again. Raises PeerError when the server can't be reached."""
    if example.of_property not in PROPERTIES:
        raise UsageError(f"unknown property {show(example.of_property, 60)}")
    relates = [isinstance(step, Relate) for step in example.steps]
    if relates != [True] if PROPERTIES[example.of_property].relation else any(relates):
        raise UsageError(f"its steps do not belong to {example.of_property!r}")
    asked = order.revision or revision_of_wire(example.revision)
    order = msgspec.structs.replace(order, revision=asked)
    return _report(order, lambda alone: alone.replayed(example))


def _report(order: PropertyOrder, carry_out: Callable[[OneAfterTheOther], Done]) -> PropertyReport:
    limit = order.limit or Deadline.after(order.max_time)
    order = msgspec.structs.replace(order, limit=limit)
    begun = time.monotonic()
    stage = ExampleServer(order)
    try:
        try:
            stage.open()
        except Stopped:
            if order.is_interrupted:
                raise
            message = f"{order.out_of_time}: the server was not ready by then"
            raise PeerError(
                ErrorKind.TIMEOUT, message, hint="allow more time with --max-time"
            ) from None
        with cancellation.heeding(order.is_over):
            done = carry_out(OneAfterTheOther(stage))
    finally:
        stage.close()
    mask = redaction.text
    listed = stage.offer.tools if stage.offer is not None else ()
    problems = (*stage.endless.values(), *unchecked_schemas(listed))
    head = head_of(order.target, stage.info, stage.met, begun)
    return PropertyReport(
        **{**head, "revision": stage.revision.value},
        seed=order.seed,
        wanted=order.examples,
        properties=done.results,
        notes=(
            *(
                f"{show(tool, 80)} {how} and was not called again; allow more time with --timeout"
                for tool, how in done.slow_tools.items()
            ),
            *done.troubles,
        ),
        problems=tuple(map(mask, problems)),
        restarts=max(0, done.starts - 1),
        strict=order.strict,
        interrupted=done.interrupted,
    )
