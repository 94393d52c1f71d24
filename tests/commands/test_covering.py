"""Coverage counts what a test asserts on: no setup, nothing that is skipped."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.commands.coverage.run import coverage_of
from mcptest.report.coverage import CoverageReport
from mcptest.session.pages import Offer
from mcptest.suite.load import Given
from tests.support.suites import load_text

SUITE_OF_ONE = b"name: t\nassert_resources: {read: 'x://%s', expect: {not_error: true}}"
OFFER = Offer(
    tools=({"name": "echo"}, {"name": "add"}, "rubbish", {"name": 5}),
    prompts=({"name": "greet"},),
    resources=({"uri": "note://all"},),
    templates=({"uriTemplate": "note://{id}/{part}"}, {"uriTemplate": "x://{a}{b}"}),
)


def covered(suite: str, **options: Any) -> CoverageReport:
    tests, source = load_text(suite.encode(), "s.yaml", Given(server=True))
    assert source.finish() == []
    return coverage_of(OFFER, tests, server="s", **options)


def counts(report: CoverageReport) -> dict[str, tuple[int, int]]:
    return {item.name: (item.assertions, item.skipped) for _, item in report.items}


def test_setup_calls_and_skipped_tests_do_not_count() -> None:
    report = covered("""
tests:
  - name: one
    setup: [{tool: add, args: {a: 1}}]
    assert: {tool: echo, expect: {not_error: true}}
  - name: two
    assert: {tool: echo, expect: {not_error: true}}
  - name: three
    skip: true
    assert: {tool: add, expect: {not_error: true}}
""")
    found = counts(report)
    assert found["echo"] == (2, 0)
    assert found["add"] == (0, 1)
    assert report.overall == 16.6


def test_every_kind_of_block_counts_for_what_it_asserts_on() -> None:
    report = covered("""
tests:
  - name: prompt
    assert_prompts: {get: {name: greet}, expect: {not_error: true}}
  - name: resource
    assert_resources: {read: "note://all", expect: {not_error: true}}
  - name: of a template
    assert_resources: {read: "note://7/title", expect: {not_error: true}}
  - name: notifications
    assert_notifications: {tool: add, expect: {min_count: 0}}
  - name: completion
    assert_completion:
      ref: {type: ref/prompt, name: greet}
      argument: {name: a, value: b}
      expect: {not_error: true}
  - name: a list is no item
    assert_prompts: {list: {}, expect: {not_error: true}}
""")
    assert counts(report) == {
        "echo": (0, 0),
        "add": (1, 0),
        "greet": (2, 0),
        "note://all": (1, 0),
        "note://{id}/{part}": (1, 0),
        "x://{a}{b}": (0, 0),
    }


def test_what_the_server_does_not_offer_is_named_with_its_place() -> None:
    report = covered("name: t\nassert: {tool: gone, expect: {not_error: true}}")
    (unknown,) = report.unknown
    assert (unknown.name, unknown.place) == ("gone", "s.yaml:1:1")
    assert report.overall == 0


@pytest.mark.parametrize(("threshold", "failed"), [(None, False), (50, False), (50.1, True)])
def test_the_threshold_is_a_gate(threshold: float | None, failed: bool) -> None:
    suite = "name: t\nassert: {tool: echo, expect: {not_error: true}}"
    report = covered(suite, kinds=("tool",), threshold=threshold)
    assert report.overall == 50
    assert report.failed is failed


def test_a_hostile_template_takes_no_time() -> None:
    template = "x://" + "{a}" * 2_000 + "!"
    tests, _ = load_text(
        b"name: t\nassert_resources: {read: 'x://"
        + b"a" * 3_900
        + b"', expect: {not_error: true}}",
        "s.yaml",
        Given(server=True),
    )
    offer = Offer(templates=({"uriTemplate": template},))
    report = coverage_of(offer, tests, server="s")
    assert counts(report)[template] == (0, 0)
