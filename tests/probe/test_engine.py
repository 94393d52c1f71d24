"""The engine of property tests against the demo and against bugs that were put into it."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from mcptest.core.errors import PeerError, UsageError
from mcptest.core.revision import Revision
from mcptest.probe.counterexamples import Examples, SavedExample, example_of, read_example
from mcptest.probe.properties.engine import replay_example, run_properties
from mcptest.probe.properties.property_catalogue import PropertyOrder
from mcptest.report.property import PropertyReport, Way
from mcptest.transport.target import DEMO, Target
from tests.properties.every_fault import BUGS
from tests.properties.mutants import hunt

ROOT = Path(__file__).parents[2]


def faulty(name: str) -> Target:
    command = (sys.executable, "-m", "tests.properties.faulty", name)
    return Target(way="stdio", label=name, command=command, cwd=str(ROOT))


def tried(target: Target, *properties: str, **more: object) -> PropertyReport:
    order = PropertyOrder(
        target=target,
        revision=Revision.V2025_11_25,
        properties=properties,
        **{"examples": 60, "seed": 1, "timeout": 2.0, **more},  # type: ignore[arg-type]  # as given
    )
    return run_properties(order)


@pytest.mark.parametrize("revision", [Revision.V2025_03_26, Revision.V2026_07_28])
def test_the_demo_keeps_to_every_property(revision: Revision) -> None:
    order = PropertyOrder(
        target=DEMO,
        revision=revision,
        properties=(
            "messages-valid",
            "messages-invalid",
            "arguments-almost-valid",
            "conversations",
            "read-only",
            "same-lists",
        ),
        examples=50,
        seed=3,
    )
    report = run_properties(order)
    assert report.counterexamples == ()
    assert not report.failed
    assert report.examples > 150


@pytest.mark.parametrize(
    "name",
    [
        "array-kills",
        "invalid-request-code",
        "id-empty-lost",
        "meta-refused",
        "sum-as-text",
        "reading-writes",
        "lists-differ",
    ],
)
def test_a_seeded_bug_is_found_and_made_as_small_as_it_can_be(name: str) -> None:
    found = hunt(BUGS[name], examples=150)
    assert found.found is not None
    assert found.is_small


def test_a_bug_that_takes_four_messages_is_shrunk_to_those_four() -> None:
    found = hunt(BUGS["fourth-read-empty"])
    assert found.found is not None
    assert found.messages == 4
    assert [step["step"] for step in found.found.steps] == ["connect", *["ask"] * 4]


def test_the_same_seed_gives_the_same_examples_and_the_same_verdict() -> None:
    first = tried(faulty("invalid-request-code"), "messages-invalid")
    again = tried(faulty("invalid-request-code"), "messages-invalid")
    assert [one.steps for one in first.counterexamples] == [
        one.steps for one in again.counterexamples
    ]
    assert [one.rule for one in first.counterexamples] == ["JSONRPC-003"]
    assert first.examples == again.examples


def test_a_dead_server_is_started_again_and_counted_once() -> None:
    report = tried(faulty("surrogate-kills"), "messages-invalid", examples=200)
    crashes = [one for one in report.counterexamples if one.way is Way.CRASH]
    assert len(crashes) == 1
    assert crashes[0].rule == "PROTO-008"
    assert report.properties[0].examples >= 200
    assert report.restarts > 0


def test_a_counterexample_is_kept_and_tried_first_until_it_holds(tmp_path: Path) -> None:
    target = faulty("invalid-request-code")
    first = tried(target, "messages-invalid", database=tmp_path)
    assert not first.counterexamples[0].known
    again = tried(target, "messages-invalid", database=tmp_path, examples=5)
    assert again.counterexamples[0].known
    assert again.properties[0].replayed == 1
    kept = Examples(tmp_path, target)
    assert kept.folder is not None
    healthy = msgspec.structs.replace(DEMO, label="mended")
    (tmp_path / Examples(tmp_path, healthy).folder.name).mkdir()  # type: ignore[union-attr]  # as above
    for file in kept.folder.iterdir():
        (Examples(tmp_path, healthy).folder / file.name).write_bytes(file.read_bytes())  # type: ignore[operator]  # as above
    mended = tried(healthy, "messages-invalid", database=tmp_path, examples=5)
    assert mended.counterexamples == ()
    assert "passes now" in mended.properties[0].notes[0]
    assert list(Examples(tmp_path, healthy).folder.iterdir()) == []  # type: ignore[union-attr]  # as above


def test_a_kept_example_is_replayed_on_its_own() -> None:
    report = tried(faulty("invalid-request-code"), "messages-invalid")
    found = report.counterexamples[0]
    example = example_of(
        {
            "format": "mcptest.example/1",
            "property": found.of_property,
            "rule": found.rule,
            "revision": report.revision,
            "transport": "stdio",
            "steps": list(found.steps),
        },
        "a test",
    )
    again = replay_example(PropertyOrder(target=faulty("invalid-request-code")), example)
    assert [one.rule for one in again.counterexamples] == ["JSONRPC-003"]
    healthy = replay_example(PropertyOrder(target=DEMO), example)
    assert healthy.counterexamples == ()
    assert not healthy.failed


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("conversations", [{"step": "connect"}, {"step": "relate", "relation": "same-lists"}]),
        ("same-lists", [{"step": "connect"}]),
        ("same-lists", []),
    ],
)
def test_an_example_with_steps_of_another_property_is_refused(
    name: str, steps: list[dict[str, str]]
) -> None:
    example = example_of({"format": "mcptest.example/1", "property": name, "steps": steps}, "it")
    with pytest.raises(UsageError, match=f"do not belong to '{name}'"):
        replay_example(PropertyOrder(target=DEMO), example)


def test_tools_that_do_not_say_that_they_only_read_are_not_called() -> None:
    order = PropertyOrder(
        target=DEMO, revision=Revision.V2024_11_05, properties=("arguments",), examples=5
    )
    skipped = run_properties(order).properties[0]
    assert "--allow-tool" in skipped.skipped
    allowed = run_properties(msgspec.structs.replace(order, allow_tools=("add",))).properties[0]
    assert allowed.examples == 5


def test_a_property_without_time_is_no_success() -> None:
    with pytest.raises(PeerError, match="not ready by then"):
        tried(DEMO, "messages-invalid", max_time=0.0)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"property": 1}', '{"format": "other"}', "\x00"])
def test_a_file_that_is_no_example_is_said(text: str, tmp_path: Path) -> None:
    path = tmp_path / "example.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="example"):
        read_example(path)


def test_examples_of_another_revision_are_not_tried(tmp_path: Path) -> None:
    kept = Examples(tmp_path, DEMO)
    kept.keep(
        SavedExample(
            of_property="conversations", revision="2025-06-18", transport="stdio", steps=[]
        )
    )
    assert kept.of("conversations", "2025-06-18", "stdio")
    assert not kept.of("conversations", "2025-11-25", "stdio")
    assert not kept.of("messages-valid", "2025-06-18", "stdio")
