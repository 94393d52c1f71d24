"""Expectations on files, through a view that has no disk behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mcptest.suite.model import Expect
from mcptest.suite.observed import Observed
from tests.support.suites import check


class Shelf:
    """Files by path; None for a folder."""

    def __init__(self, files: Mapping[str, bytes | None]) -> None:
        self.files = files

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool:
        return path in self.files


SHELF = Shelf(
    {"/a": b"hello \xff w\xc3\xb6rld", "/folder": None, "/kept": b"same", "/edited": b"2"}
)
BEFORE = {"/kept": b"same", "/edited": b"1", "/gone": b"x", "/new": None}


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"file_contains": {"/a": "hello"}}, None),
        ({"file_contains": {"/a": "wörld"}}, None),
        ({"file_contains": {"/a": "z\n"}}, r'file_contains: /a does not contain "z\n"'),
        (
            {"file_contains": {"/nope": "x"}},
            "file_contains: cannot read /nope: open /nope: no such file or directory",
        ),
        (
            {"file_contains": {"/folder": "x"}},
            "file_contains: cannot read /folder: open /folder: not readable as a file",
        ),
        (
            {"file_contains": {"/a": "hello", "/kept": "x"}},
            'file_contains: /kept does not contain "x"',
        ),
        ({"file_not_contains": {"/a": "z"}}, None),
        ({"file_not_contains": {"/a": "hello"}}, 'file_not_contains: /a contains "hello"'),
        (
            {"file_not_contains": {"/nope": "x"}},
            "file_not_contains: cannot read /nope: open /nope: no such file or directory",
        ),
        ({"file_not_exists": ("/nope",)}, None),
        ({"file_not_exists": ("/a",)}, "file_not_exists: expected /a not to exist, but it does"),
        (
            {"file_not_exists": ("/folder",)},
            "file_not_exists: expected /folder not to exist, but it does",
        ),
        ({"file_unchanged": ("/kept",)}, None),
        ({"file_unchanged": ("/kept", "/edited")}, "file_unchanged: /edited was modified"),
        ({"file_unchanged": ("/a",)}, "file_unchanged: no snapshot for /a"),
        ({"file_unchanged": ("/new",)}, "file_unchanged: no snapshot for /new"),
        (
            {"file_unchanged": ("/gone",)},
            "file_unchanged: cannot read /gone: open /gone: no such file or directory",
        ),
    ],
)
def test_files_are_as_expected_or_the_message_says_why(
    expected: dict[str, Any], message: str | None
) -> None:
    observed = Observed("tools/call", result={"content": []}, files=SHELF, snapshots=BEFORE)
    failures = check(Expect(**expected), observed)
    assert [failure.message for failure in failures] == ([] if message is None else [message])


@pytest.mark.parametrize(
    "expected",
    [
        {"file_not_exists": ("/a",)},
        {"file_contains": {"/a": ""}},
        {"file_not_contains": {"/a": "x"}},
        {"file_unchanged": ("/a",)},
    ],
)
def test_where_nobody_looked_at_the_disk_no_expectation_on_a_file_holds(
    expected: dict[str, Any],
) -> None:
    observed = Observed("tools/call", result={"content": []}, snapshots={"/a": b""})
    assert check(Expect(**expected), observed) != []
