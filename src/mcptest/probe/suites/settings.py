"""How a run is to be done, as values: which tests, on which servers, and what failed the last time.

On the way to the first server, so it imports little.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.redaction import redaction
from mcptest.core.results import Status
from mcptest.core.safe_text import show
from mcptest.session.server_spec import ServerWords
from mcptest.suite.model import ServerSpec, Test
from mcptest.transport.files import replace_file
from mcptest.transport.target import KeptAlive

if TYPE_CHECKING:
    from threading import Event

    from mcptest.probe.suites.server_session import ServerSession
    from mcptest.probe.suites.server_start import HeadStart, Shortcut
    from mcptest.session.meeting import Met
    from mcptest.suite.observed import Evaluation, Observed

ServerKey: TypeAlias = tuple[object, ...]


class ServerChoice(ServerWords, frozen=True):
    """What the command line says about servers, over what the suite says."""

    docker: str = ""
    captures: Path | None = None
    """The folder in which to keep what went over the wire."""
    spec_version: str = ""
    """Empty: as the suite says."""

    @property
    def is_given(self) -> bool:
        return self.server is not None or bool(self.command)


class RunOptions(msgspec.Struct, frozen=True):
    """How a suite is run, beside how each test is."""

    trials: int = 1
    jobs: int | None = None
    """None chooses: the number of cores, and one at a time for a URL."""
    single_file_order: bool = False
    """Tests that are a file each, as in mcp-assert, run one at a time, as they do there."""
    shared: bool = False
    in_flight: int = 1
    fail_fast: bool = False
    languages: tuple[tuple[str, ServerChoice], ...] = ()
    """For a matrix: each test is run once for every one of these servers."""


class RunMemory(msgspec.Struct):
    """What is learned about servers during a run and holds for all of their tests.

    Workers write it at the same time. Each entry is written whole and never changed, so the worst
    that happens is that two find out the same thing.
    """

    met: dict[ServerKey, Met] = {}
    """What each server speaks, and why."""
    meetings: dict[ServerKey, Event] = {}
    """Servers that somebody is meeting for the first time; set when that is over."""
    output_schemas: dict[ServerKey, dict[str, Any]] = {}
    shortcuts: dict[ServerKey, Shortcut | None] = {}
    """How servers are started without their launchers (`warm_start`); None: not to be known."""
    warnings: dict[str, None] = {}

    def warn(self, *sentences: str) -> None:
        self.warnings.update(dict.fromkeys(sentences))


class Numbered(msgspec.Struct, frozen=True):
    """A test with its place in the report and its trial."""

    number: int
    test: Test
    trial: int = 1
    language: str = ""
    choice: ServerChoice | None = None


class Settings(msgspec.Struct, frozen=True):
    """How tests are run, whatever they test."""

    timeout: float = 30.0
    startup: float | None = None
    """For start and handshake; None: they are part of the time of the test."""
    fixture: str | Path | None = None
    choice: ServerChoice = ServerChoice()
    all_failures: bool = False
    lenient: bool = False
    """A malformed answer is a warning, and is used as far as it can be read."""
    quick_end: bool = False
    """Servers are ended right after their last answer, instead of being waited for."""
    warm_start: bool = False
    """Fresh servers are started in quicker ways, which they can notice."""
    proof_of_passes: bool = False
    """A pass keeps its exchange as well: `watch` shows what changed when it fails later."""
    repeat: Callable[[Numbered], str] = lambda item: ""
    """The command that runs just this test again."""
    on_begin: Callable[[Numbered], None] = lambda item: None
    """Told of each test that begins, by the thread that runs it."""
    should_stop: Callable[[], bool] = lambda: False
    memory: RunMemory = msgspec.field(default_factory=RunMemory)
    head_start: HeadStart | None = None
    """The server that was started before anything else was ready."""
    kept: KeptAlive | None = None
    """What tests that follow one another on servers over HTTP leave to the next one."""
    second_opinion: Callable[[Numbered, ServerSession, Observed, Evaluation], Evaluation] | None = (
        None
    )
    """Judges each answer in place of the test's own expectations, whose verdict it is told."""


def server_key(spec: ServerSpec, choice: ServerChoice) -> ServerKey:
    """The same for all tests whose server is started in the same way, wherever its fixture is."""
    env, headers = (dict(sorted(table.items())) for table in (spec.env, spec.headers))
    return repr(choice), repr(msgspec.structs.replace(spec, place=None, env=env, headers=headers))


def skip_reason(test: Test, choice: ServerChoice | None = None) -> str | None:
    """Why the test is not run. What `--env` sets for its server counts as set."""
    if test.skip:
        return "skip: true"
    wanted = test.skip_unless_env
    given = choice.env if choice is not None else {}
    if wanted and not given.get(wanted, os.environ.get(wanted)):
        return f"skipped: env var {wanted} not set"
    return None


def cores() -> int:
    """Those that this process was given, where the system tells (Linux); else all there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Selection(msgspec.Struct, frozen=True):
    """What was asked for. Everything that is set must hold."""

    pattern: str = ""
    tags: tuple[str, ...] = ()
    shard: tuple[int, int] | None = None
    only: Collection[str] | None = None
    """Identities of tests, as `identity` gives them."""


def identity(test: Test) -> str:
    """What names a test across runs: its file and its name."""
    return f"{test.place.file}::{test.name}"


def select(tests: Sequence[Test], selection: Selection) -> list[Test]:
    chosen = [test for test in tests if _wanted(test, selection)]
    if selection.shard is None:
        return chosen
    index, count = selection.shard
    return chosen[index - 1 :: count]  # in turn, so that no shard is much larger than another


def _wanted(test: Test, selection: Selection) -> bool:
    """A pattern is a part of the name, `*` as a wildcard, words joined by `and`, `or`, `not`.

    Behind `=` stands the whole name, whatever it holds.
    """
    if selection.only is not None and identity(test) not in selection.only:
        return False
    if selection.tags and not set(selection.tags) & set(test.tags):
        return False
    pattern = selection.pattern
    if not pattern or pattern.startswith("="):
        return not pattern or test.name == pattern[1:]
    alternatives = re.split(r"\s+or\s+", pattern.strip(), flags=re.IGNORECASE)
    return any(
        all(_term(test, term) for term in re.split(r"\s+and\s+", part, flags=re.IGNORECASE))
        for part in alternatives
    )


def _term(test: Test, term: str) -> bool:
    negated = re.match(r"not\s+", term, flags=re.IGNORECASE)
    if negated:
        return not _term(test, term[negated.end() :])
    wanted = term.strip().lower()
    name = test.name.lower()
    if any(character in wanted for character in "*?["):
        return fnmatch.fnmatchcase(name, wanted)
    return wanted in name


def only_this(test: Test, others: Sequence[Test]) -> str:
    """A pattern that chooses this test and, if it can be done, none of the others in its file."""
    pattern = Selection(pattern=test.name)
    chosen = [each for each in others if each is test or _wanted(each, pattern)]
    is_pattern = not test.name.startswith("=") and _misplaced(test.name) is None
    plain = is_pattern and test.name.strip() and _wanted(test, pattern)
    return test.name if plain and chosen == [test] else f"={test.name}"


def parse_pattern(text: str) -> str:
    """The pattern as it is. UsageError, with its place, for one that can't be understood."""
    wrong = None if text.startswith("=") or not text else _misplaced(text)
    if wrong is None:
        return text
    at, message = wrong
    shown = show(text, 200)
    caret = " " * min(len(show(text[:at], 200)), len(shown))
    hint = "join names with and, or, not; =NAME is the exact name of one test"
    raise UsageError(f"-k: {message}\n  {shown}\n  {caret}^", hint=hint)


def _misplaced(text: str) -> tuple[int, str] | None:
    """Where a name is missing, and what is said about it."""
    before = ""
    wants_name = True
    for word in re.finditer(r"\S+", text):
        joins = word[0].lower() if word[0].lower() in ("and", "or") else ""
        if joins and wants_name:
            return word.start(), f"expected a name before {joins!r}"
        if joins or (wants_name and word[0].lower() == "not"):
            wants_name, before = True, word[0]
        else:
            wants_name = False
    if not wants_name:
        return None
    return len(text.rstrip()), f"expected a name after {before!r}" if before else "it is blank"


def parse_shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if match:
        index, count = int(match.group(1)), int(match.group(2))
        if 1 <= index <= count:
            return index, count
    raise UsageError(f"invalid shard: {text!r}", hint="write it as 1/4, the first of four")


# -- What failed the last time -------------------------------------------------------------------

FOLDER = ".mcptest"
_FILE = Path(FOLDER, "last-run.jsonl")
_KEPT_OUT = Path(FOLDER, ".gitignore")
_RUN_BEGINS = {"run": "begins"}


class LastRun(msgspec.Struct):
    """The state of the run that is going on. Where it can't be kept, the run goes on without.

    The file begins with what failed in earlier runs, so a run of a few tests does not make the
    others forgotten. After the line that marks a new run, each result is added as it comes.
    """

    _file: int | None = None

    def begin(self) -> None:
        """Mark the beginning of a run. This waits for the disk, so servers may start meanwhile."""
        try:
            _FILE.parent.mkdir(exist_ok=True)
            if not _KEPT_OUT.exists():
                replace_file(_KEPT_OUT, b"*\n")
            earlier = sorted(_known_failures()) if _FILE.exists() else []
            failed = [{"test": test, "status": Status.FAIL.value} for test in earlier]
            replace_file(_FILE, _lines([*failed, _RUN_BEGINS]))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(_FILE, flags)
        except (OSError, UsageError):
            self._file = None  # a read-only folder: --last-failed has nothing to go by, and says so

    def add(self, test: Test, status: Status) -> None:
        if self._file is None:
            return
        try:
            os.write(self._file, _lines([{"test": identity(test), "status": status.value}]))
        except OSError:  # the disk is full: the results are not affected
            self.close()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def failed_last_time() -> set[str]:
    """The identities of the tests that failed when they were last run here."""
    try:
        return _known_failures()
    except OSError:
        raise UsageError("--last-failed: no earlier run in this folder") from None


def _known_failures() -> set[str]:
    """In a run, one trial that failed is enough; a later run that passes clears the test."""
    from mcptest.wire.json_text import read_json  # not needed before the first server is started

    failed: set[str] = set()
    in_this_run: set[str] = set()
    for line in _FILE.read_bytes().splitlines():
        try:
            entry, _ = read_json(line)
            if entry == _RUN_BEGINS:
                in_this_run.clear()
                continue
            test, status = str(entry["test"]), entry["status"]
        except (KeyError, TypeError):
            continue  # the last line of a run that was killed
        if status == Status.FAIL.value:
            failed.add(test)
            in_this_run.add(test)
        elif status == Status.PASS.value and test not in in_this_run:
            failed.discard(test)
    return failed


def _lines(entries: Iterable[dict[str, str]]) -> bytes:
    from mcptest.wire.json_text import write_json  # as above

    return redaction.document(b"".join(write_json(entry) + b"\n" for entry in entries))
