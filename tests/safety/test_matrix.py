"""A sample of the matrix in every run of the tests, and the page that shows all of it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.safety import hostile, hostile_answers, hostile_client, hostile_offers
from tests.safety.cases import CASES, CLIENT_CASES, Case
from tests.safety.cell import run_cell
from tests.safety.commands import CLIENT_COMMAND, COMMANDS
from tests.safety.matrix import RESULTS, Cell, all_cells, chosen, golden_files, name_of
from tests.safety.page import PAGE, rendered

LEAST = 5
"""So often each command is in the sample."""
PAIRS = 130
"""So many commands meet so many families of peers: one of each at least."""
OFTEN = 3
"""A command that was taken so often costs twice as much."""
SELF_EVIDENT = 0.3
"""Seconds that any cell costs."""
PATIENCE = 30.0
"""Seconds beyond its limit after which a command hangs, however busy the machine is."""

MARGIN_MB = 130
HELD_ONCE = (
    "init/call-answer-is-almost-too-large@stdio",
    "fuzz/many-choices@stdio",
    "compliance run/many-choices@stdio",
    "doctor/large-cursor@stdio",
    "doctor/huge-description@stdio",
    "doctor/grandchild-goes-on-writing@stdio",
    "compliance run/grandchild-goes-on-writing@stdio",
    "doctor/wide-meta@stdio",
    "compliance run/huge-const@stdio",
    "property/long-property-names@stdio",
)
"""Each was beyond 150 MB once, or almost."""
RED_ONCE = (
    "audit/unevaluated-bomb@stdio",
    "generate/unevaluated-bomb@http",
    "lint/choices-of-objects@stdio",
    "lint/long-property-names@stdio",
    "fuzz/long-property-names@stdio",
    "audit/wide-and-shallow@stdio",
    "compliance run/names-for-files@stdio",
    "run/error-flag-is-a-text@stdio",
    "audit/stopped-in-a-call@stdio",
    "compliance run/many-capabilities@stdio",
    "compliance run/wide-meta@stdio",
    "fleet/wide-meta@stdio",
    "fleet/wider-meta@stdio",
    "fleet/long-property-names@stdio",
)
"""Each hanged, took too much, or was green or without a cause once."""


def sample() -> list[Cell]:
    """Each case once, with the command that the case costs little and that had few like it.

    What a cell costs was stored by the last run of the whole matrix.
    """
    stored = json.loads(RESULTS.read_text())["busy 0"]["cells"]
    commands: Counter[str] = Counter()
    families: Counter[tuple[str, str]] = Counter()

    def price(cell: Cell) -> float:
        command, case, _ = cell
        seconds: float = stored.get(name_of(cell), {}).get("seconds", 0.0)
        often = 1 + commands[command.name] / OFTEN
        return (seconds + SELF_EVIDENT) * often * (1 + families[command.name, case.family])

    of_case: dict[Case, list[Cell]] = defaultdict(list)
    for cell in all_cells():
        of_case[cell[1]].append(cell)
    taken: list[Cell] = []
    for cells in sorted(of_case.values(), key=len):  # those with little choice first
        command, case, _ = best = min(cells, key=price)
        taken.append(best)
        commands[command.name] += 1
        families[command.name, case.family] += 1
    return taken


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden_files(tmp_path_factory.mktemp("golden") / "files")


@pytest.mark.parametrize("cell", sample(), ids=name_of)
def test_a_command_is_unhurt_by_a_misbehaving_peer(
    cell: Cell, tmp_path: Path, golden: Path
) -> None:
    outcome = run_cell(*cell, tmp_path / "cell", golden, grace=PATIENCE)
    assert not outcome.wrong, outcome.said


@pytest.mark.parametrize("name", RED_ONCE)
def test_what_was_red_once_is_green(name: str, tmp_path: Path, golden: Path) -> None:
    (cell,) = chosen([name])
    outcome = run_cell(*cell, tmp_path / "cell", golden, grace=PATIENCE)
    assert not outcome.wrong, outcome.said


@pytest.mark.parametrize("name", HELD_ONCE)
def test_a_large_answer_is_held_few_times(name: str, tmp_path: Path, golden: Path) -> None:
    """With a margin: what is held once more than it need be is seen before the limit is."""
    (cell,) = chosen([name])
    outcome = run_cell(*cell, tmp_path / "cell", golden, grace=PATIENCE)
    assert not outcome.wrong, outcome.said
    assert outcome.peak_mb < MARGIN_MB


def test_the_sample_has_each_case_once_and_each_command_with_many_families() -> None:
    cells = sample()
    names = [(case.name, case.program) for _, case, _ in cells]
    assert sorted(names) == sorted((case.name, case.program) for case in (*CASES, *CLIENT_CASES))
    assert len({(command.name, case.family) for command, case, _ in cells}) >= PAIRS
    count = Counter(command.name for command, _, _ in cells)
    assert min(count[command.name] for command in (*COMMANDS, CLIENT_COMMAND)) >= LEAST


def test_every_hostile_peer_is_in_the_table() -> None:
    programs = {"hostile": hostile, "offers": hostile_offers, "answers": hostile_answers}
    for program, module in programs.items():
        used = {case.argument or case.name for case in CASES if case.program == program}
        assert used == set(module.CASES)
    assert {case.name for case in CLIENT_CASES} == set(hostile_client.CASES)
    assert len(CASES) >= 40


def test_the_page_is_made_of_the_stored_results() -> None:
    assert PAGE.read_text() == rendered(json.loads(RESULTS.read_text())), (
        "python -m tests.safety.matrix --page writes it; of a new command: --only NAME/ --store"
    )


def test_what_is_stored_is_of_cells_that_there_are() -> None:
    names = set(map(name_of, all_cells()))
    for run in json.loads(RESULTS.read_text()).values():
        assert set(run["cells"]) <= names
