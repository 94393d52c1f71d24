"""What became of each test, and what counts as a flip."""

from __future__ import annotations

import pytest

from mcptest.commands.watch.run import Ledger
from mcptest.commands.watch.view import Flip, WatchTotals
from mcptest.core.results import Proof, RunReport, Status
from mcptest.core.results import TestResult as Result
from mcptest.suite.model import Test as Case
from mcptest.suite.model import TrajectoryBlock
from mcptest.suite.reading import Place

PASS, FAIL, SKIP = Status.PASS, Status.FAIL, Status.SKIP


def case(name: str, file: str = "a.yaml") -> Case:
    return Case(name, TrajectoryBlock(()), Place(file))


def result(name: str, status: Status, detail: str = "", **more: object) -> Result:
    return Result(name, status, detail=detail, file="a.yaml", **more)  # type: ignore[arg-type]  # as given


def ledger(*names: str) -> Ledger:
    made = Ledger()
    made.expect(map(case, names), ())
    return made


def entered(book: Ledger, *results: Result) -> list[Flip]:
    return book.enter(results, {f"a.yaml::{one.name}" for one in results})


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (None, result("t", PASS), None),
        (None, result("t", FAIL, "why"), (None, FAIL)),
        (result("t", PASS), result("t", FAIL, "why"), (PASS, FAIL)),
        (result("t", FAIL, "why"), result("t", PASS), (FAIL, PASS)),
        (result("t", PASS), result("t", SKIP), (PASS, SKIP)),
        (result("t", PASS), result("t", PASS), None),
        (result("t", FAIL, "port 17"), result("t", FAIL, "port 39"), None),
        (result("t", FAIL, "this"), result("t", FAIL, "that"), (FAIL, FAIL)),
    ],
)
def test_a_flip_is_another_outcome_or_another_reason(
    before: Result | None, now: Result, expected: tuple[Status | None, Status] | None
) -> None:
    book = ledger("t")
    if before is not None:
        entered(book, before)
    flips = entered(book, now)
    told = [(one.before.status if one.before else None, one.now.status) for one in flips]
    assert told == ([expected] if expected else [])


def test_one_trial_that_fails_is_a_failure() -> None:
    book = ledger("t")
    entered(book, result("t", PASS, trial=1), result("t", PASS, trial=2))
    (flip,) = entered(book, result("t", PASS, trial=1), result("t", FAIL, "now", trial=2))
    assert flip.is_worse
    assert book.standing() == WatchTotals(failed=1)


def test_tests_that_are_gone_do_not_count_and_are_compared_when_they_are_back() -> None:
    book = ledger("t", "u")
    entered(book, result("t", PASS), result("u", FAIL, "why"))
    book.expect([case("u")], ())
    assert book.standing(problems=1) == WatchTotals(failed=1, problems=1)
    book.expect(map(case, "tu"), ())
    (flip,) = entered(book, result("t", FAIL, "broken now"))
    assert flip.before is not None
    assert flip.before.status is PASS


def test_what_was_not_run_is_not_good() -> None:
    book = ledger("t", "u")
    entered(book, result("t", PASS))
    assert book.standing() == WatchTotals(passed=1, not_run=1)
    assert not book.standing().is_good
    entered(book, result("u", SKIP))
    assert book.standing().is_good
    assert not WatchTotals().is_good


def test_where_all_tests_are_skipped_nothing_is_good() -> None:
    book = ledger("t", "u")
    entered(book, result("t", SKIP), result("u", SKIP))
    assert book.standing().is_undecided
    assert not book.standing().is_good
    assert not book.standing().is_nothing, "they are counted"
    assert WatchTotals().is_undecided
    for one in ("passed", "failed", "not_run", "problems"):
        assert not WatchTotals(**{one: 1}).is_undecided


def test_a_report_holds_the_latest_of_all_tests_in_their_order() -> None:
    book = ledger("t", "u")
    entered(book, result("u", PASS))
    entered(book, result("t", FAIL, "why"))
    report = book.report(RunReport(tool="mcptest"))
    assert [one.name for one in report.results] == ["t", "u"]


def test_results_of_a_lane_are_replaced_by_those_of_its_next_run() -> None:
    book = Ledger()
    book.expect([case("t")], ["a.yaml"])
    lane = [result("compliance INV-1", FAIL, "x"), result("compliance INV-2", PASS)]
    book.enter([result("t", PASS), *lane], {"a.yaml::t"}, {"a.yaml"})
    assert book.standing() == WatchTotals(passed=2, failed=1)
    book.enter([result("compliance INV-2", PASS)], set(), {"a.yaml"})
    assert book.standing() == WatchTotals(passed=2)
    book.expect([case("t")], [])
    assert book.standing() == WatchTotals(passed=1)


def test_of_a_pass_only_the_answer_is_kept() -> None:
    proof = Proof(request="asked", response="said", stderr=("x",) * 100)
    book = ledger("t")
    entered(book, result("t", PASS, proof=proof))
    (kept,) = book.report(RunReport()).results
    assert kept.proof == Proof(response="said")
    (flip,) = entered(book, result("t", FAIL, "why", proof=proof))
    assert flip.now.proof == proof
