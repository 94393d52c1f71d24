"""Golden answers: each answer of a run is held against its file, or put into it.

This is the second opinion of a run, so everything that comes before an answer is what `run` does:
fixtures, setup, isolation. A test whose server gives no answer never gets here, and so its golden
file stays as it is.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from mcptest.core.errors import UsageError
from mcptest.core.limits import Deadline
from mcptest.core.results import RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.probe.snapshot_folder import (
    SavedAnswers,
    SnapshotFileError,
    SnapshotFolder,
    nearest,
    texts_of,
)
from mcptest.probe.suites.server_session import ServerSession
from mcptest.probe.suites.settings import Numbered
from mcptest.suite.golden import (
    FILE_TROUBLE,
    MANY,
    SUFFIX,
    Golden,
    KeptSnapshot,
    Masks,
    SnapshotOutcome,
    SnapshotReport,
    agree,
    base_of,
    golden_files,
    golden_text,
    is_all_volatile,
    mask_problem,
    names_in,
    unified,
    with_the_same_volatile_lines,
    with_volatile_lines,
)
from mcptest.suite.matching import Failure
from mcptest.suite.model import (
    LoggingBlock,
    NotificationsBlock,
    ResourcesBlock,
    Test,
    TrajectoryBlock,
)
from mcptest.suite.observed import Evaluation, Observed

# -- What is said of each snapshot ---------------------------------------------------------------

_DIFF_LINES = 200
_CONTENT_LINES = 20
_WITHOUT_AN_ANSWER = (LoggingBlock, NotificationsBlock, TrajectoryBlock)


def with_answers(tests: Sequence[Test]) -> tuple[list[Test], list[Test]]:
    """Tests whose answer can be kept, as they are run for it; and those that have none."""
    kept, others = [], []
    for test in tests:
        if isinstance(test.block, _WITHOUT_AN_ANSWER):
            others.append(test)
        elif isinstance(test.block, ResourcesBlock) and test.block.expect_notification:
            kept.append(replace(test, block=replace(test.block, expect_notification=False)))
        else:
            kept.append(test)
    return kept, others


def unusable(observed: Observed, own: Evaluation) -> Failure | None:
    """An answer that is not worth keeping: no result at all, or an error nobody asked for."""
    if not observed.problem and observed.error is None:
        return None
    return next((one for one in own.failures if one.check in {"result", "error"}), None)


def changed(expected: str, actual: str, path: str) -> Failure:
    lines = unified(expected, actual)
    more = len(lines) - _DIFF_LINES
    cut = [f"(and {more} more lines of the diff)"] if more > 0 else []
    head = "the response changed: - is the golden file, + is the response"
    return Failure("changed", "\n".join([head, *lines[:_DIFF_LINES], *cut]), pointer=path)


def new(text: str, path: str) -> Failure:
    lines = text.removesuffix("\n").split("\n")
    more = len(lines) - _CONTENT_LINES
    cut = [f"(and {more} more lines)"] if more > 0 else []
    shown = [f"+{line[:500]}" for line in lines[:_CONTENT_LINES]]
    head = "there is no golden file yet; --update would write"
    return Failure("new", "\n".join([head, *shown, *cut]), pointer=path)


def as_snapshot_result(result: TestResult, kept: KeptSnapshot) -> TestResult:
    note = "; ".join(filter(None, (result.note, kept.note)))
    if kept.outcome is SnapshotOutcome.SKIPPED and result.status is Status.PASS:
        detail = f"not compared: {show(kept.golden, 300)} marks the whole response volatile"
        return replace(result, status=Status.SKIP, detail=detail, note=note)
    is_ours = kept.outcome.is_bad and result.kind == "check"
    return replace(result, kind=kept.outcome.value if is_ours else result.kind, note=note)


# -- Golden answers ------------------------------------------------------------------------------

MASKS_FILE = "masks.txt"
_MASKS_HEAD = """\
# Patterns (RE2) of what differs in every run, one in each line. What a named group matches, as in
# session=(?P<session>\\w+), stands as <session> in the golden files; without one, all of the match
# stands as <masked>.
"""
_PASSED = Evaluation((), 1)
_Key = tuple[str, int, str, int]


class SnapshotOrder(msgspec.Struct, frozen=True):
    """What was asked for."""

    update: bool = False
    masks: Masks = Masks()
    settle: bool = False
    """What differs from a golden file that is there becomes volatile in it, and nothing else."""


class Snapshots:
    """The golden files of the tests of one run. Answers come from several threads at once."""

    def __init__(
        self,
        tests: Sequence[Test],
        order: SnapshotOrder,
        saved: Mapping[str, SavedAnswers] | None = None,
        named: Sequence[str] = (),
    ) -> None:
        """`tests` are all tests of the suites; a run may be one of some of them.

        `named` are the paths of the suites: of a folder, all suites are here.
        """
        self._order = order
        self._saved = saved or {}
        self._named = [_home(path) for path in named if os.path.isdir(path)]  # noqa: PTH112 - texts, as they were given
        self._goldens = golden_files(tests)
        self._folders: dict[str, SnapshotFolder] = {}
        self._patterns: dict[str, tuple[str, ...]] = {}
        self._kept: dict[_Key, KeptSnapshot] = {}

    # -- around a run --------------------------------------------------------------------------

    @contextlib.contextmanager
    def opened(self, tests: Iterable[Test], patience: Deadline) -> Iterator[Snapshots]:
        """With the folders of these tests, which nobody else changes meanwhile."""
        with contextlib.ExitStack() as stack:
            for beside in sorted({self._goldens[test.place].beside for test in tests}):
                home = _home(beside)
                if home in self._folders:  # a lock of ours would keep ourselves out
                    continue
                folder = SnapshotFolder(beside, update=self._order.update or self._order.settle)
                stack.callback(folder.close)
                folder.open(patience)
                self._folders[home] = folder
                self._patterns[home] = self._patterns_for(folder)
            yield self

    def _patterns_for(self, folder: SnapshotFolder) -> tuple[str, ...]:
        """The masks of the folder and of the command line; an update keeps the latter too."""
        try:
            text = folder.read(MASKS_FILE) or ""
            lines = (line.strip() for line in text.splitlines())
            known = [line for line in lines if line and not line.startswith("#")]
            for pattern in known:
                problem = mask_problem(pattern)
                if problem is not None:
                    raise UsageError(f"{show(f'{folder.path}/{MASKS_FILE}', 500)}: {problem}")
            added = [one for one in self._order.masks.patterns if one not in known]
            if added and self._order.update:
                head = text if text.endswith("\n") or not text else text + "\n"
                lasting = "".join(f"{pattern}\n" for pattern in added)
                folder.write(MASKS_FILE, (head or _MASKS_HEAD) + lasting)
        except SnapshotFileError as error:
            raise UsageError(str(error)) from None
        return (*known, *added)

    # -- one answer ----------------------------------------------------------------------------

    def judge(
        self, item: Numbered, session: ServerSession, observed: Observed, own: Evaluation
    ) -> Evaluation:
        """The second opinion on an answer."""
        golden = self._goldens[item.test.place]
        refused = unusable(observed, own)
        if refused is not None:
            return self._told(item, golden, SnapshotOutcome.FAILED, refused)
        patterns = self._patterns[_home(golden.beside)]
        paths = (session.fixture,) if session.fixture else ()
        masks = replace(self._order.masks, patterns=patterns, paths=paths)
        note = ""
        if own.failures:
            first = session.masker.cut_text(own.failures[0].message.partition("\n")[0])
            note = f"its own expectation fails: {show(first, 200)}"
        try:
            outcome, failure = self._held_against(item.test, golden, observed, masks, session)
        except SnapshotFileError as error:
            outcome, failure = SnapshotOutcome.FAILED, Failure(FILE_TROUBLE, str(error))
        return self._told(item, golden, outcome, failure, note)

    def _told(
        self,
        item: Numbered,
        golden: Golden,
        outcome: SnapshotOutcome,
        failure: Failure | None = None,
        note: str = "",
    ) -> Evaluation:
        place = item.test.place
        key = (place.file, place.line, item.test.name, item.trial)
        self._kept[key] = KeptSnapshot(outcome, golden.path, note)
        return _PASSED if failure is None else Evaluation((failure,), 1)

    def _held_against(
        self, test: Test, golden: Golden, observed: Observed, masks: Masks, session: ServerSession
    ) -> tuple[SnapshotOutcome, Failure | None]:
        folder = self._folders[_home(golden.beside)]

        def text(masks: Masks) -> str:
            return session.masker.text(golden_text(observed, masks))

        stored = folder.read(golden.name)
        if stored is None:
            return self._without_a_file(test, golden, observed, masks, text(masks))
        stored = stored if stored.endswith("\n") else stored + "\n"
        if is_all_volatile(stored):
            return SnapshotOutcome.SKIPPED, None
        # Only what the golden file itself shows as hidden is hidden: it says all there is to know.
        in_use = replace(masks, built_in=names_in(stored))
        expected, actual = in_use.apply(stored), text(in_use)
        same = agree(expected, actual)
        if self._order.settle and not same:
            folder.write(golden.name, with_volatile_lines(expected, actual))
            return SnapshotOutcome.UPDATED, None
        if not self._order.update:
            if same:
                return SnapshotOutcome.MATCHED, None
            return SnapshotOutcome.CHANGED, changed(expected, actual, golden.path)
        shows_its_masks = replace(masks, built_in=frozenset()).apply(stored) == stored
        if same and shows_its_masks:
            return SnapshotOutcome.UNCHANGED, None
        # What the file shows as it is goes on to be shown.
        hides = {
            name for name in masks.built_in if Masks(frozenset({name})).apply(stored) != stored
        }
        renewed = text(replace(masks, built_in=masks.built_in - hides))
        folder.write(golden.name, with_the_same_volatile_lines(stored, renewed))
        return SnapshotOutcome.UPDATED, None

    def _without_a_file(
        self, test: Test, golden: Golden, observed: Observed, masks: Masks, text: str
    ) -> tuple[SnapshotOutcome, Failure | None]:
        if self._order.update:
            self._folders[_home(golden.beside)].write(golden.name, text)
            return SnapshotOutcome.CREATED, None
        saved = nearest(test.place.file, self._saved)
        answer = saved.answers.get(test.name) if saved is not None else None
        if saved is None or answer is None:
            return SnapshotOutcome.NEW, new(text, golden.path)
        expected, actual = texts_of(answer, observed, masks)
        if agree(expected, actual):
            return SnapshotOutcome.MATCHED, None
        return SnapshotOutcome.CHANGED, changed(expected, actual, saved.path)

    # -- the report ----------------------------------------------------------------------------

    def report(self, run: RunReport, left_out: Sequence[Test], *, whole: bool) -> SnapshotReport:
        """`left_out` have no answer to keep; `whole`: all tests were to be run."""
        results, kept = [], []
        for result in run.results:
            # What never came to an answer was not held against anything.
            skipped = result.status is Status.SKIP
            one = KeptSnapshot(SnapshotOutcome.SKIPPED if skipped else SnapshotOutcome.FAILED)
            if result.kind in {"", "check"}:
                key = (result.file, result.line, result.name, result.trial)
                one = self._kept.get(key, one)
            results.append(as_snapshot_result(result, one))
            kept.append(one)
        for test in left_out:
            word = type(test.block).__name__.removesuffix("Block").lower()
            detail = f"a test of {word} has no response to keep"
            file, line = test.place.file, test.place.line
            skip = TestResult(test.name, Status.SKIP, detail, file=file, line=line, tags=test.tags)
            results.append(skip)
            kept.append(KeptSnapshot(SnapshotOutcome.SKIPPED))
        missing = SnapshotOutcome.MISSING
        for path in self._missing() if whole and not run.interrupted else ():
            detail = "no test uses this golden file: restore the test, or delete the file"
            status = Status.SKIP if self._order.update else Status.FAIL
            results.append(TestResult(path, status, detail, file=path, kind=missing.value))
            kept.append(KeptSnapshot(missing, path))
        run = replace(run, results=tuple(results))
        return SnapshotReport(run, tuple(kept), update=self._order.update)

    def _missing(self) -> Iterator[str]:
        """Golden files whose suite is here, and whose test is not."""
        expected = {(_home(one.beside), one.name) for one in self._goldens.values()}
        bases: dict[str, set[str]] = {}
        for place, golden in self._goldens.items():
            bases.setdefault(_home(golden.beside), set()).add(base_of(place.file))
        for home, folder in self._folders.items():
            whole = any(os.path.commonpath([home, path]) == path for path in self._named)
            for name in folder.names():
                of_suite = name.partition("/")[0].removesuffix(MANY).removesuffix(SUFFIX)
                is_ours = whole or of_suite in bases[home]
                if is_ours and (home, name) not in expected:
                    yield f"{folder.path}/{name}"


@functools.lru_cache(maxsize=10_000)
def _home(folder: str) -> str:
    """A folder under its one name, however it was spelled."""
    return os.path.realpath(folder)
