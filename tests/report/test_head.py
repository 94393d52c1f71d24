"""How a report came about: the command line and the commit, read without running anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcptest.core.results import Invocation, RunReport
from mcptest.report.head import checked_out_commit, command_line, stamped

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def loose(git: Path) -> None:
    write(git / "HEAD", "ref: refs/heads/main\n")
    write(git / "refs/heads/main", f"{COMMIT}\n")


def packed(git: Path) -> None:
    write(git / "HEAD", "ref: refs/heads/main\n")
    write(
        git / "packed-refs", f"# pack-refs\n{'f' * 40} refs/heads/other\n{COMMIT} refs/heads/main\n"
    )


def detached(git: Path) -> None:
    write(git / "HEAD", f"{COMMIT}\n")


def worktree(git: Path) -> None:
    own = git.parent.parent / "main.git/worktrees/w"
    write(git, f"gitdir: {own}\n")
    write(own / "HEAD", "ref: refs/heads/main\n")
    write(own / "commondir", "../..\n")
    write(git.parent.parent / "main.git/refs/heads/main", f"{COMMIT}\n")


@pytest.mark.parametrize("repository", [loose, packed, detached, worktree])
def test_the_commit_is_that_of_the_repository_around_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: object
) -> None:
    inside = tmp_path / "repository/deep/inside"
    inside.mkdir(parents=True)
    assert callable(repository)
    repository(tmp_path / "repository/.git")
    monkeypatch.chdir(inside)
    assert checked_out_commit() == COMMIT[:12]


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "<script>", "\0", "ref: " + "/" * 99])
def test_what_is_not_a_commit_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    write(tmp_path / ".git/HEAD", head)
    monkeypatch.chdir(tmp_path)
    assert checked_out_commit() == ""


@pytest.mark.parametrize("program", ["/usr/bin/mcptest", "/lib/mcptest/__main__.py"])
def test_the_command_line_is_one_that_can_be_pasted(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(sys, "argv", [program, "run", "my suite.yaml"])
    assert command_line() == "mcptest run 'my suite.yaml'"


def test_the_command_line_of_another_program_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/lib/pytest/__main__.py", "tests"])
    assert command_line() == ""


def test_a_report_that_says_how_it_came_about_keeps_it() -> None:
    report = RunReport(invocation=Invocation("mcptest run x"))
    assert stamped(report) is report
    assert stamped(RunReport()).invocation.platform
