"""The whole gallery through `mcptest record`, and what the rules then say of each capture.

Whatever a server does, the command ends in time with a clear message, leaves no process behind, and
a capture of a server that died, hung or broke the protocol is never judged green.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.driving import Done, mcptest
from tests.rogues.gallery import CASES, Case, command

LIMIT = 1.5
"""Seconds that each request may take. The command itself may take the time of a few of them."""
PATIENT = 15
"""For those that answer, some of them after much else, on a machine that does other things too."""
BOUND = 90.0
AT_ONCE = 4
SMALL = {case.name: case for case in CASES if not case.large}
NAMES = list(SMALL)

HARMLESS = frozenset(
    {
        # slow, or noisy where noise is allowed
        "answers-byte-by-byte",
        "stderr-garbage",
        "stderr-closed",
        "secrets-on-stderr",
        # white space that a reader of lines does not notice
        "blank-lines",
        "carriage-returns",
        # floods us with requests, but that is allowed, and answers ours
        "server-request-flood",
        # bad ends and bad families: ended by us, and no fault of the protocol
        "ignores-eof",
        "ignores-sigterm",
        "fails-at-the-end",
        "exits-on-sigterm-only",
        "grandchild-in-its-own-session",
        "grandchild-ignores-sigterm",
        "grandchild-in-its-own-group",
        "daemon",
        "daemon-without-environment",
        "family-of-four-generations",
        "zombie-children",
        "forks-when-terminated",
        "behaves",
        # a SHOULD of RFC 8259: a warning
        "duplicate-keys",
    }
)
BEFORE_THE_MESSAGES = frozenset(
    {
        "forgets-to-flush",  # answers when its stdin is closed
        "stdin-closed-but-alive",  # nothing could be sent to it at all
        "answers-half-a-line",  # the answer was on its way when we gave up
        "writes-one-byte-and-hangs",
    }
)
"""Nothing is wrong with the messages: the recording itself failed, and says so."""


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


class Seen(NamedTuple):
    """What the two commands said of one rogue, and which of its processes were left."""

    recorded: Done
    judged: Done
    seconds: float
    left: tuple[int, ...]


def look_at(case: Case, folder: Path) -> Seen:
    capture, pids = folder / f"{case.name}.jsonl", folder / f"{case.name}.pids"
    limit = PATIENT if case.name in HARMLESS else LIMIT
    begin = time.monotonic()
    recorded = mcptest(
        *("record", "--out", str(capture), "--timeout", f"{limit}s", "--env", f"ROGUE_PIDS={pids}"),
        *("--", *command(case)),
    )
    seconds = time.monotonic() - begin
    left = tuple(pid for pid in map(int, pids.read_text().split()) if not is_gone(pid))
    judged = mcptest("compliance", "invariants", "--capture", str(capture), "--json")
    return Seen(recorded, judged, seconds, left)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Case], Seen]]:
    """What is seen of each rogue. Most are silent or won't leave: those are waited for together."""
    folder = tmp_path_factory.mktemp("gallery")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        looks: dict[str, Future[Seen]] = {}

        def of(case: Case) -> Seen:
            ahead = NAMES[NAMES.index(case.name) :][: 2 * AT_ONCE]
            for name in ahead:
                if name not in looks:
                    looks[name] = pool.submit(look_at, SMALL[name], folder)
            return looks[case.name].result()

        yield of


@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL)
def test_every_rogue_gets_a_clear_end_and_an_honest_verdict(
    case: Case, seen: Callable[[Case], Seen]
) -> None:
    recorded, judged, seconds, left = seen(case)
    assert seconds < BOUND
    assert recorded.code in {0, 1, 3}
    assert "internal error" not in recorded.err
    assert "Traceback" not in "".join(
        line for line in recorded.err.splitlines() if "stderr:" not in line
    )
    if recorded.code:
        assert "mcptest: " in recorded.err or "✗" in recorded.err
    assert left == ()

    fine = case.name in HARMLESS
    assert (recorded.code == 0 and judged.code == 0) == fine, (
        recorded.code,
        recorded.err,
        _failures(judged),
    )
    if not fine and case.name not in BEFORE_THE_MESSAGES:
        assert judged.code == 1, recorded.err
        assert _failures(judged)


def _failures(judged: Done) -> list[str]:
    report = json.loads(judged.out)
    return [
        f"{verdict['rule']}: {finding['message']}"
        for session in report["sessions"]
        for verdict in session["verdicts"]
        if verdict["outcome"] == "fail"
        for finding in verdict["findings"]
    ]
