"""Scorecards on disk: what comes back, what is refused, what is never overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.judgement import SCORECARD_FORMAT, Scorecard
from mcptest.report.scorecards import LARGEST_SCORECARD, read_scorecard, save_scorecard
from tests.support.compliance_results import FAIL, PASS, UNSEEN, judgement, result, results


def saved(path: Path) -> dict[str, object]:
    save_scorecard(
        path, judgement(*results(40), result("A-1", FAIL), result("A-2", UNSEEN)), "my server"
    )
    document: dict[str, object] = json.loads(path.read_text())
    return document


def refused(path: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_scorecard(path)
    assert caught.value.exit_code is ExitCode.USAGE
    assert "--save-scorecard" in caught.value.hint
    return caught.value


def test_a_scorecard_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "new" / "card.json"
    judged = judgement(*results(40), result("A-1", FAIL), result("A-2", UNSEEN))
    save_scorecard(path, judged, "my server")
    card = read_scorecard(path)
    assert isinstance(card, Scorecard)
    assert judged.grade is not None
    assert (card.grade, card.score, card.sections) == (
        judged.grade.letter,
        judged.grade.score,
        judged.grade.sections,
    )
    assert card.profile == judged.profile
    assert (card.server, card.transport) == ("my server", "stdio")
    assert card.rules["A-1"] is FAIL
    assert card.rules["A-2"] is UNSEEN
    assert card.rules["PASMUS-000"] is PASS


def test_the_same_judgement_gives_the_same_bytes(tmp_path: Path) -> None:
    saved(tmp_path / "a.json")
    saved(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_the_file_is_plain_to_read(tmp_path: Path) -> None:
    document = saved(tmp_path / "card.json")
    assert document["format"] == SCORECARD_FORMAT
    assert document["grade"] == "B+"
    assert document["profile"] == {
        "tool": "1.0",
        "corpus": "c0ffee",
        "revision": "2025-11-25",
        "id": "1.0/v2025-11-25/c0ffee",
    }


def test_a_label_can_not_steer_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    save_scorecard(path, judgement(*results(30)), "\x1b[31m\u202e\x9b")
    assert not set(path.read_text()) & {"\x1b", "\u202e", "\x9b"}
    card = read_scorecard(path)
    assert card is not None
    assert card.server == "\x1b[31m\u202e\x9b"


def test_no_file_means_the_first_run(tmp_path: Path) -> None:
    assert read_scorecard(tmp_path / "none.json") is None
    assert read_scorecard(tmp_path / "no folder" / "none.json") is None


def test_broken_json_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text('{\n  "format": oh\n}')
    assert f"{path}:2:13: " in str(refused(path))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file is empty"),
        ("[]", "it names no format"),
        ("{}", "it names no format"),
        ('{"format": 3}', "it names no format"),
        ('{"format": "mcptest.scorecard/9"}', "its format is mcptest.scorecard/9"),
        ('{"format": "mcptest.run/1"}', "its format is mcptest.run/1"),
        ('{"format": "mcptest.scorecard/1"}', "missing required field `server`"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_what_is_no_scorecard_is_an_error_and_not_a_first_run(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "card.json"
    path.write_text(text)
    assert why in str(refused(path))


@pytest.mark.parametrize(
    "member", [{"score": "high"}, {"rules": {"A-1": "perhaps"}}, {"profile": {}}, {"grade": None}]
)
def test_a_member_of_the_wrong_kind_is_an_error(tmp_path: Path, member: dict[str, object]) -> None:
    path = tmp_path / "card.json"
    path.write_text(json.dumps({**saved(path), **member}))
    refused(path)


def test_a_folder_or_a_pipe_is_no_scorecard(tmp_path: Path) -> None:
    assert "it is a folder, not a file" in str(refused(tmp_path))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "it is a pipe, not a file" in str(refused(pipe))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    with path.open("wb") as file:
        file.truncate(LARGEST_SCORECARD + 1)
    assert "larger than 16 MiB" in str(refused(path))


@pytest.mark.parametrize("text", ["# my notes", "{}", '{"format": "mcptest.run/1"}', "[1]"])
def test_another_file_is_never_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "precious"
    path.write_text(text)
    with pytest.raises(UsageError, match="is not a scorecard and is not overwritten"):
        save_scorecard(path, judgement(*results(30)), "s")
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["", '{"format": "mcptest.scorecard/0"}'])
def test_an_empty_file_or_another_scorecard_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(text)
    saved(path)
    assert read_scorecard(path) is not None
    assert [one.name for one in tmp_path.iterdir()] == ["card.json"]


def test_a_run_of_some_rules_has_no_scorecard(tmp_path: Path) -> None:
    some = msgspec.structs.replace(judgement(*results(3)), grade=None, whole_corpus=False)
    with pytest.raises(UsageError, match="no grade to save"):
        save_scorecard(tmp_path / "card.json", some, "s")
    assert list(tmp_path.iterdir()) == []
