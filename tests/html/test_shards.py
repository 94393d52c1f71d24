"""Shards of a run: the one that is missing is named, and nothing is green without it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from mcptest.commands import app
from mcptest.core.results import RunReport, Shard
from mcptest.report.codec import as_json, decode
from mcptest.report.json_schemas import schema_of
from mcptest.report.stored import missing_shards
from tests.e2e.driving import mcptest
from tests.support.sample_run import READ, SUM


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def save(index: int, count: int, name: str = "") -> str:
    name = name or f"{index}.json"
    run = RunReport(results=(READ,), shard=Shard(index, count))
    Path(name).write_bytes(as_json(run))
    return name


def test_the_shard_is_stored_as_the_schema_says() -> None:
    written = as_json(RunReport(results=(READ,), shard=Shard(2, 3)))
    assert json.loads(written)["shard"] == {"index": 2, "count": 3}
    jsonschema_rs.Draft202012Validator(schema_of("run")).validate(json.loads(written))
    assert decode(written, RunReport, "run").shard == Shard(2, 3)
    assert "shard" not in json.loads(as_json(RunReport(results=(READ,))))


def test_all_shards_together_are_green(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["report", save(1, 2), save(2, 2), "--json-file", "all.json"]) == 0
    assert "shard" not in capsys.readouterr().out
    assert decode(Path("all.json").read_bytes(), RunReport, "run").shard is None


def test_a_missing_shard_is_named_and_fails_in_every_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    forms = ("--html", "r.html", "--junit", "r.xml", "--tap", "r.tap", "--json-file", "all.json")
    assert app.run(["report", save(1, 3), save(3, 3), *forms]) == 1
    assert "shard 2 of 3 is missing" in capsys.readouterr().out
    for name in ("r.html", "r.xml", "r.tap"):
        assert "shard 2 of 3" in Path(name).read_text(), name
    assert app.run(["report", "all.json"]) == 1, "merged once, it is still missing"


def test_one_shard_alone_is_never_green(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["report", save(1, 4)]) == 1
    out = capsys.readouterr().out
    assert all(f"shard {number} of 4" in out for number in (2, 3, 4))


def test_a_shard_that_is_given_twice_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["report", save(1, 2), save(2, 2), save(2, 2, "again.json")]) == 0
    assert "shard 2 of 2 is given 2 times: 2.json, again.json" in capsys.readouterr().out


def test_shards_of_different_divisions_are_said_to_be_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert app.run(["report", save(1, 2), save(2, 3)]) == 1
    out = capsys.readouterr().out
    assert "divided differently: into 2, 3" in out
    assert "shard 3 of 3" in out


def test_a_file_that_claims_to_be_one_of_a_billion_costs_no_memory() -> None:
    lost = missing_shards([("x", RunReport(results=(SUM,), shard=Shard(5, 10**9)))])
    assert lost is not None
    assert len(lost.results) == 1_001
    assert "999998999 more" in lost.results[-1].name


def test_a_run_says_which_shard_it_was() -> None:
    test = "  assert: {tool: add, args: {a: 1, b: 1}, expect: {not_error: true}}\n"
    tests = "".join(f"- name: t{number}\n{test}" for number in range(3))
    Path("s.yaml").write_text(f"tests:\n{tests}")
    here = Path.cwd()
    for index in (1, 2):
        wanted = ("--shard", f"{index}/2", "--json-file", f"{index}.json")
        assert mcptest("run", "s.yaml", "--server", "demo", *wanted, cwd=here).code == 0
    assert decode(Path("2.json").read_bytes(), RunReport, "run").shard == Shard(2, 2)
    assert app.run(["report", "1.json", "2.json"]) == 0
    assert app.run(["report", "1.json"]) == 1
