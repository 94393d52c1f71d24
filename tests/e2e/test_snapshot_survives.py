"""Golden files outlive kills and runs beside each other: each is whole, old or new."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.driving import mcptest, wait_until
from tests.e2e.explored import __file__ as explored
from tests.e2e.suite_runs import Site, call, server

TESTS = 16
LENGTH = 20_000


def suite_of(site: Site, word: str) -> str:
    """A suite whose answers are long, and say this word."""
    text = f"{word} " * (LENGTH // (len(word) + 1))
    tests = [{"name": f"t{n}", "assert": call(text=f"{n} {text}")} for n in range(TESTS)]
    return site.suite(tests, server=server())


def goldens(site: Site) -> dict[str, str]:
    folder = site.folder / ".snapshots/suite.snaps"
    return {path.stem: path.read_text() for path in folder.glob("*.snap")}


def words_of(kept: dict[str, str]) -> set[str]:
    """The words that stand in golden files. A file that is not whole fails here."""
    found = set()
    for name, text in kept.items():
        number, word, *others = text.split()
        assert f"t{number}" == name
        assert set(others) == {word}
        assert len(others) == LENGTH // (len(word) + 1) - 1
        found.add(word)
    return found


def update(site: Site) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "mcptest", "snapshot", "suite.yaml", "--update"],
        cwd=site.folder,
        env=site.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_kill_at_any_moment_leaves_whole_files(site: Site) -> None:
    chance = random.Random(11)
    suite_of(site, "first")
    assert update(site).communicate(timeout=240)
    before = goldens(site)
    assert len(before) == TESTS
    for word, how in (
        ("second", signal.SIGKILL),
        ("third", signal.SIGKILL),
        ("4th", signal.SIGTERM),
    ):
        suite_of(site, word)
        last, wanted = goldens(site), chance.randrange(1, TESTS // 2)
        process = update(site)
        wait_until(
            lambda last=last, wanted=wanted: (
                sum(last[name] != text for name, text in goldens(site).items()) >= wanted
            ),
            f"{wanted} files that were updated",
        )
        process.send_signal(how)
        process.communicate(timeout=240)
        assert process.returncode == (130 if how == signal.SIGTERM else -how)
        kept = goldens(site)
        assert kept.keys() == before.keys()
        assert word in words_of(kept)
    suite_of(site, "last")
    done = update(site)
    said = done.communicate(timeout=240)
    assert done.returncode == 0, said
    assert words_of(goldens(site)) == {"last"}
    assert not list(site.folder.rglob(".writing-*"))


def test_two_updates_at_once_both_end_well(site: Site) -> None:
    suite_of(site, "word")
    runs = [update(site), update(site)]
    said = [run.communicate(timeout=240) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert words_of(goldens(site)) == {"word"}
    assert len(goldens(site)) == TESTS
    assert {path.name for path in (site.folder / ".snapshots").iterdir()} == {"suite.snaps"}


@pytest.mark.parametrize("option", [(), ("--no-snapshots",)])
def test_init_keeps_answers_that_match_at_once(option: tuple[str, ...], tmp_path: Path) -> None:
    words = (sys.executable, explored, "only=echo,complain,structured,clock,wipe")
    done = mcptest("init", "evals", *option, "--", *words, cwd=tmp_path)
    assert done.code == 0, done.said
    golden = tmp_path / "evals/.snapshots"
    if option:
        assert not golden.exists()
        return
    assert {path.stem for path in golden.iterdir()} == {"echo", "complain", "structured", "clock"}
    assert "mcptest snapshot evals" in done.out
    verify = mcptest("snapshot", "evals", "--json", cwd=tmp_path)
    assert verify.code == 0, verify.said
    outcomes = {one["name"]: one["outcome"] for one in json.loads(verify.out)}
    assert outcomes["echo answers"] == "matched"
    assert outcomes["wipe answers"] == "skipped"
