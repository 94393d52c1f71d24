"""Expectations on files, seen through the view that the runner gives."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.suite.failure import Failure, Outcome
from mcptest.suite.go_format import quote
from mcptest.suite.model import Expect
from mcptest.suite.observed import FileView
from mcptest.suite.targets import Subject


class _Unseen:
    """The disk, when nobody looked at it: whatever is asked of it fails."""

    def read(self, path: str) -> bytes | None:
        return None

    def exists(self, path: str) -> bool:
        return True


def _files(subject: Subject) -> FileView:
    return subject.observed.files or _Unseen()


def file_contains(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    for path, wanted in expect.file_contains.items():
        content = _files(subject).read(path)
        message = f"file_contains: {path} does not contain {quote(wanted)}"
        if content is None:
            yield _unreadable("file_contains", path, _files(subject))
        elif _bytes(wanted) in content:
            yield None
        else:
            yield Failure("file_contains", message, wanted, _shown(content), path)


def file_not_contains(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    for path, unwanted in expect.file_not_contains.items():
        content = _files(subject).read(path)
        message = f"file_not_contains: {path} contains {quote(unwanted)}"
        if content is None:
            yield _unreadable("file_not_contains", path, _files(subject))
        elif _bytes(unwanted) in content:
            yield Failure("file_not_contains", message, unwanted, _shown(content), path)
        else:
            yield None


def file_not_exists(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    for path in expect.file_not_exists:
        message = f"file_not_exists: expected {path} not to exist, but it does"
        there = _files(subject).exists(path)
        yield Failure("file_not_exists", message, False, True, path) if there else None


def file_unchanged(expect: Expect, subject: Subject) -> Iterator[Outcome]:
    for path in expect.file_unchanged:
        before = subject.observed.snapshots.get(path)
        if before is None:
            yield Failure("file_unchanged", f"file_unchanged: no snapshot for {path}", pointer=path)
            continue
        after = _files(subject).read(path)
        message = f"file_unchanged: {path} was modified"
        if after is None:
            yield _unreadable("file_unchanged", path, _files(subject))
        elif after == before:
            yield None
        else:
            yield Failure("file_unchanged", message, _shown(before), _shown(after), path)


def _unreadable(check: str, path: str, files: FileView) -> Failure:
    why = "it can't be read as a file" if files.exists(path) else "no such file or directory"
    return Failure(check, f"{check}: cannot read {path}: open {path}: {why}", pointer=path)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _shown(content: bytes) -> str:
    return content[:2000].decode("utf-8", "replace")
