"""Loading suites: every file that was named, all tests in their order, and all problems at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from mcptest.model.show import show
from mcptest.suite.discover import discover
from mcptest.suite.file_forms import FileContent, Given, content_of
from mcptest.suite.fingerprint import Fingerprint
from mcptest.suite.model import Place, Suite, Test
from mcptest.suite.problems import Problem, Source, SuiteError
from mcptest.suite.yaml_nodes import LARGEST_FILE, Scalar, YamlError, decode, read_nodes
from mcptest.transport.input_file import read_bounded

if TYPE_CHECKING:
    from mcptest.suite.lanes import Lanes

PROBLEMS_KEPT = 1_000


class LoadedSuite(msgspec.Struct, frozen=True):
    """The tests that can be run; with `keep_going` also the problems of those that can't."""

    suite: Suite
    problems: tuple[Problem, ...] = ()
    """What makes the run fail, whatever the tests say."""
    warnings: tuple[Problem, ...] = ()
    lanes: tuple[Lanes, ...] = ()
    """What files ask for besides their tests."""


def load_suites(
    paths: Sequence[str],
    *,
    fixture: str | None = None,
    keep_going: bool = False,
    server_given: bool = False,
    trace_given: bool = False,
    seen_by: Fingerprint | None = None,
) -> LoadedSuite:
    """Load everything that was named. SuiteError unless all of it is sound or `keep_going`.

    `server_given`: --server names the server, so a test need not. `trace_given`: the calls of a
    trajectory come from a live session. `seen_by` is told of everything that was looked at.
    """
    given = Given(fixture=bool(fixture), server=server_given, trace=trace_given)
    collected = _Collected(seen_by)
    for found in discover(paths, fixture, seen_by):
        if isinstance(found, Problem):
            collected.add([found])
        else:
            collected.file(found, given)
    return collected.finish(keep_going)


def load_text(data: bytes, file: str, given: Given | None = None) -> tuple[list[Test], Source]:
    """The tests of one file's bytes, and the source with its problems."""
    content, source = load_content(data, file, given or Given())
    return list(content.tests), source


def load_content(data: bytes, file: str, given: Given) -> tuple[FileContent, Source]:
    """Everything that one file's bytes say, and the source with its problems."""
    try:
        text = decode(data)
    except YamlError as error:
        source = Source(file, "" if error.whole_file else data.decode("utf-8", "replace"))
        _report(source, error)
        return FileContent(), source
    source = Source(file, text)
    try:
        root = read_nodes(text)
    except YamlError as error:
        _report(source, error)
        return FileContent(), source
    if root is None or (isinstance(root, Scalar) and root.plain and not root.text):
        source.report("the file is empty" if not text.strip() else "the file holds no test", 1, 1)
        return FileContent(), source
    return content_of(root, source, os.path.basename(file), given), source  # noqa: PTH119 - a file's


def _report(source: Source, error: YamlError) -> None:
    source.report(error.message, error.line, error.column, hint=error.hint, width=error.width)


class _Collected:
    def __init__(self, seen_by: Fingerprint | None) -> None:
        self.seen_by = seen_by
        self.tests: list[Test] = []
        self.lanes: list[Lanes] = []
        self.files: list[str] = []
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.left_out = 0

    def add(self, problems: list[Problem]) -> None:
        for problem in problems:
            kept = self.warnings if problem.severity == "warning" else self.problems
            if len(kept) < PROBLEMS_KEPT:
                kept.append(problem)
            elif kept is self.problems:
                self.left_out += 1

    def file(self, path: str, given: Given) -> None:
        try:
            data = read_bounded(path, LARGEST_FILE, pipes=False, cut=True)
        except OSError as error:
            reason = error.strerror or str(error)
            self.add([Problem(Place(path), f"can't be read: {reason}")])
            return
        self.files.append(path)
        if self.seen_by is not None:
            self.seen_by.file(path, data)
        content, source = load_content(data, path, given)
        self.tests.extend(content.tests)
        if content.lanes is not None:
            self.lanes.append(content.lanes)
        if source.problems:
            self.add(source.finish())

    def finish(self, keep_going: bool) -> LoadedSuite:
        self._warn_of_equal_names()
        if self.left_out:
            more = f"{self.left_out} more problems in this and other files"
            self.problems.append(Problem(self.problems[-1].place, more))
        if self.problems and not (keep_going and (self.tests or self.lanes)):
            raise SuiteError(self.problems)
        suite = Suite(tuple(self.tests), tuple(self.files))
        return LoadedSuite(suite, tuple(self.problems), tuple(self.warnings), tuple(self.lanes))

    def _warn_of_equal_names(self) -> None:
        """Allowed, as in mcp-assert; but baselines and reports know tests by their names."""
        first: dict[str, Test] = {}
        for test in self.tests:
            earlier = first.setdefault(test.name, test)
            if earlier is not test:
                message = f"another test is named {show(test.name, 80)!r} too"
                hint = f"it is at {show(str(earlier.place), 400)}"
                self.add([Problem(test.place, message, hint, severity="warning")])
