"""Golden answers: each answer of a run is held against its file, or put into it.

This is the second opinion of a run, so everything that comes before an answer is what `run` does:
fixtures, setup, isolation. A test whose server gives no answer never gets here, and so its golden
file stays as it is.

The files are in the `.snapshots` folder beside a suite: whole files, no links followed, one writer
at a time. A file is there whole or as it was before: it is written under another name, brought to
the disk, and then renamed. The folder itself is what is locked, so no lock can be left behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Event

import msgspec
from msgspec.structs import replace

from mcptest.core.errors import UsageError
from mcptest.core.limits import Deadline
from mcptest.core.results import RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.probe.suites.attempt import LARGEST_FILE
from mcptest.probe.suites.server_session import ServerSession
from mcptest.probe.suites.settings import Numbered
from mcptest.suite.golden import (
    FILE_TROUBLE,
    FIXTURE,
    FOLDER,
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
from mcptest.transport.files import UNFINISHED, put_file, read_bounded

_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF})
_PAUSE = 0.05
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WITH_A_NAME = frozenset({errno.ELOOP, errno.ENOTDIR})


class SnapshotFileError(Exception):
    """A golden file can't be read or written; the text says which and why."""


class SnapshotFolder:
    """Opened for a run: shared by those that verify, alone for the one that updates."""

    def __init__(self, beside: str, *, update: bool) -> None:
        self.path = os.path.join(beside, FOLDER)  # noqa: PTH118 - as the suite was named
        self._beside = beside or os.curdir
        self._update = update
        self._folder: int | None = None
        self._created = False

    # -- opening and closing -------------------------------------------------------------------

    def open(self, patience: Deadline) -> None:
        """UsageError when it is no folder of ours, or when another run does not let go of it."""
        try:
            self._open(patience)
        except OSError as error:
            why = "it is not a folder" if error.errno in _WITH_A_NAME else error.strerror
            raise UsageError(f"can't use {show(self.path, 500)}: {why}") from None
        if self._update:
            self._remove_unfinished()

    def _open(self, patience: Deadline) -> None:
        beside = os.open(self._beside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            while self._folder is None:
                if self._update:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(FOLDER, dir_fd=beside)
                        self._created = True
                try:
                    folder = os.open(FOLDER, _DIRECTORY, dir_fd=beside)
                except FileNotFoundError:
                    if self._update:
                        continue  # another run took it away a moment ago, because it was empty
                    return
                self._folder = self._locked(folder, beside, patience)
        finally:
            os.close(beside)

    def _locked(self, folder: int, beside: int, patience: Deadline) -> int | None:
        """The folder once it is ours; None when it is not the one at that place any more."""
        how = fcntl.LOCK_EX if self._update else fcntl.LOCK_SH
        with contextlib.ExitStack() as closing:
            closing.callback(os.close, folder)
            while True:
                try:
                    fcntl.flock(folder, how | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if patience.expired:
                        message = f"another mcptest is using {show(self.path, 500)}"
                        hint = "run this again after it has ended"
                        raise UsageError(message, hint=hint) from None
                    # There is no lock that one can wait for with a limit.
                    Event().wait(min(_PAUSE, patience.remaining()))
                except OSError as error:
                    if error.errno not in _NO_LOCKS:
                        raise
                    break  # a file system without locks: each file is still whole
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(FOLDER, dir_fd=beside, follow_symlinks=False)
                if os.path.samestat(os.fstat(folder), there):
                    closing.pop_all()
                    return folder
        return None

    def close(self) -> None:
        """Bring what was written to the disk, and let others in."""
        if self._folder is None:
            return
        folder, self._folder = self._folder, None
        try:
            if self._update:
                os.fsync(folder)
            if self._created:
                with contextlib.suppress(OSError):  # something was written into it
                    os.rmdir(self.path)  # noqa: PTH106 - paths are texts here
        finally:
            os.close(folder)

    # -- files ---------------------------------------------------------------------------------

    def names(self) -> Iterator[str]:
        """All golden files that there are."""
        if self._folder is None:
            return
        for name, is_folder in _entries(self._folder):
            if is_folder and name.endswith(MANY):
                with self._inner(name) as inner:
                    files = [] if inner is None else _entries(inner)
                yield from (f"{name}/{one}" for one, _ in files if one.endswith(SUFFIX))
            elif not is_folder and name.endswith(SUFFIX):
                yield name

    def read(self, name: str) -> str | None:
        """The text of a file, or None when there is none. SnapshotFileError otherwise."""
        outer, _, leaf = name.rpartition("/")
        try:
            with self._inner(outer) as folder:
                return None if folder is None else _text(folder, leaf)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error("can't read", name, error) from None

    def write(self, name: str, text: str) -> None:
        """Put a whole file in its place, or leave what is there as it is and say why."""
        outer, _, leaf = name.rpartition("/")
        try:
            with self._inner(outer, create=True) as folder:
                if folder is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
                    if not stat.S_ISREG(status.st_mode):
                        raise OSError(errno.EINVAL, "it is not a file")
                content = text.encode("utf-8", "backslashreplace")
                put_file(folder, leaf, content, overwrite=True)
        except OSError as error:
            raise self._error("can't write", name, error) from None

    @contextlib.contextmanager
    def _inner(self, name: str, *, create: bool = False) -> Iterator[int | None]:
        """The folder that holds a file; it is never reached through a link."""
        if not name or self._folder is None:
            yield self._folder
            return
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._folder)
        inner = os.open(name, _DIRECTORY, dir_fd=self._folder)
        try:
            yield inner
        finally:
            os.close(inner)

    def _remove_unfinished(self) -> None:
        """What a run that was killed had begun to write. Nobody else writes now."""
        assert self._folder is not None
        for name, is_folder in _entries(self._folder):
            with contextlib.suppress(OSError):
                if is_folder and name.endswith(MANY):
                    with self._inner(name) as inner:
                        assert inner is not None
                        for one, _ in _entries(inner):
                            _remove_if_unfinished(inner, one)
                else:
                    _remove_if_unfinished(self._folder, name)

    def _error(self, what: str, name: str, error: OSError) -> SnapshotFileError:
        why = "a link is not followed" if error.errno in _WITH_A_NAME else error.strerror
        return SnapshotFileError(f"{what} {show(f'{self.path}/{name}', 500)}: {why}")


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Names in their order, with whether each is a folder."""
    with os.scandir(folder) as found:
        return sorted((one.name, one.is_dir(follow_symlinks=False)) for one in found)


def _text(folder: int, name: str) -> str:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - it was opened within the folder
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size > LARGEST_FILE:
            raise OSError(errno.EFBIG, f"larger than {LARGEST_FILE} bytes")
        data = file.read(status.st_size)
    # We never write a carriage return: it comes from a checkout that changes line ends.
    return data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")


def _remove_if_unfinished(folder: int, name: str) -> None:
    if name.startswith(UNFINISHED):
        os.unlink(name, dir_fd=folder)


# -- Golden answers that mcp-assert wrote --------------------------------------------------------

FILE = ".snapshots.json"
_COPY = r"[^\s\"'<>]*/mcp-assert-fixture-\d+/"


class SavedAnswer(msgspec.Struct, frozen=True):
    name: str
    text: str = ""
    is_error: bool = False


class _File(msgspec.Struct, frozen=True):
    snapshots: list[SavedAnswer] | None = None


class SavedAnswers(msgspec.Struct, frozen=True):
    """What one such file holds, by the name of the test."""

    path: str
    answers: Mapping[str, SavedAnswer] = {}


def saved_answers(paths: Sequence[str]) -> dict[str, SavedAnswers]:
    """By folder, for the folders that were named and those of the files that were."""
    found: dict[str, SavedAnswers] = {}
    for path in paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)  # noqa: PTH112, PTH120 - texts, as they were given
        file = os.path.join(folder, FILE)  # noqa: PTH118 - as above
        if os.path.lexists(file):
            found[os.path.abspath(folder)] = SavedAnswers(file, _read(file))  # noqa: PTH100 - as above
    return found


def nearest(file: str, saved: Mapping[str, SavedAnswers]) -> SavedAnswers | None:
    """What was saved for a suite file: in its folder, or in one above it that was named."""
    folder = os.path.dirname(os.path.abspath(file)) if saved else ""  # noqa: PTH100, PTH120 - as above
    while folder:
        if folder in saved:
            return saved[folder]
        above = os.path.dirname(folder)  # noqa: PTH120 - as above
        folder = "" if above == folder else above
    return None


def texts_of(saved: SavedAnswer, observed: Observed, masks: Masks) -> tuple[str, str]:
    """What was saved and what came, in one form: all that mcp-assert keeps of an answer."""
    old = saved.text
    # Its copies of the fixture lie elsewhere each time, under the fixture's own name.
    for base in {os.path.basename(path) for path in masks.paths if path}:  # noqa: PTH119 - as above
        old = re.sub(_COPY + re.escape(base), f"<{FIXTURE}>", old)
    return (_as_text(old, saved.is_error, masks), _as_text(observed.text, observed.is_error, masks))


def _as_text(text: str, is_error: bool, masks: Masks) -> str:
    # Half a surrogate pair is U+FFFD for mcp-assert, which is written in Go.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return f"{'=== isError' + chr(10) if is_error else ''}{masks.apply(text)}\n"


def _read(file: str) -> dict[str, SavedAnswer]:
    try:
        data = read_bounded(file, LARGEST_FILE, pipes=False)
        answers = msgspec.json.decode(data, type=_File).snapshots
    except OSError as error:
        raise UsageError(f"can't read {show(file, 500)}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{show(file, 500)} is not what mcp-assert writes: {show(str(error), 300)}",
            hint="remove it, and write new golden files with mcptest snapshot --update",
        ) from None
    return {answer.name: answer for answer in answers or ()}


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
        paths = (session.ground.folder,) if session.ground.folder else ()
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
