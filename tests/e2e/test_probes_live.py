"""Every probe against the demo: on the sound one no rule fails, on a faulty one each does."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome
from mcptest.probe.compliance.probing import prepare_probes, run_probe
from mcptest.rules.corpus.probes import all_probes
from mcptest.transport.target import Way
from tests.e2e.faulty_demo import FAULTS
from tests.e2e.probing import FAULTY, OFFERED, SOUND, demo, judged, site_of

A, B, C, D, E = (
    Revision.V2024_11_05,
    Revision.V2025_03_26,
    Revision.V2025_06_18,
    Revision.V2025_11_25,
    Revision.V2026_07_28,
)
TOKEN = "mcptest-probes"
PLACES: list[tuple[Way, Revision]] = [
    *(("stdio", revision) for revision in (A, B, C, D, E)),
    *(("http", revision) for revision in (B, C, D, E)),
    ("sse", A),
]
FAULTY_AT: dict[str, tuple[Way, Revision]] = {
    "offer_versions": ("stdio", D),
    "cursor_twice": ("stdio", D),
    "batch_of_two": ("stdio", B),
    "ended_session": ("http", D),
    "two_sessions": ("http", D),
    "streamed_answer": ("http", D),
    "reconnection": ("http", D),
    "events_by_name": ("sse", A),
    "change_of_tools": ("stdio", D),
    "change_of_prompts": ("stdio", D),
    "number_in_header": ("http", E),
    "logging_beside_silence": ("http", E),
    "sampling_with_tools": ("stdio", D),
    "declined_elicitation": ("stdio", D),
    "url_elicitation": ("stdio", D),
    "task_lifecycle": ("stdio", D),
    "protected_resource_metadata": ("http", D),
}
"""Where a fault is looked for; over stdio in the newest revision where nothing else is said."""


@pytest.mark.parametrize(("way", "revision"), PLACES, ids=str)
def test_on_the_sound_demo_every_probe_is_seen_and_no_rule_fails(
    way: Way, revision: Revision, tmp_path: Path
) -> None:
    token = TOKEN if way == "http" else ""
    words = (*SOUND, *OFFERED, *(("--token", token) if token else ()))
    with demo(way, words, tmp_path, token) as target:
        results = judged(target, revision)
    unexpected = {
        name: (one.outcome.value, one.reason, [each.message for each in one.findings])
        for name, one in results.items()
        if one.outcome is not Outcome.PASS
    }
    assert results
    assert not unexpected


@pytest.mark.parametrize("probe", all_probes())
def test_a_server_with_the_fault_that_a_probe_looks_for_fails_its_rule(
    probe: str, tmp_path: Path
) -> None:
    way, revision = FAULTY_AT.get(probe, ("stdio", E))
    token = TOKEN if probe == "protected_resource_metadata" else ""
    words = [str(FAULTY), probe, *OFFERED]
    words += ["--response", "sse"] if probe == "streamed_answer" else []
    words += ["--token", token] if token else []
    with demo(way, words, tmp_path, token) as target:
        results = judged(target, revision, probe, 0.3 if probe == "close_stdin" else 1.0)
    assert any(one.failed for one in results.values()), results


def test_every_probe_has_a_fault() -> None:
    assert set(all_probes()) == FAULTS


def test_a_server_that_a_probe_kills_is_started_again_for_the_next(tmp_path: Path) -> None:
    words = (str(FAULTY), "garbage_line", *OFFERED)
    with demo("stdio", words, tmp_path) as target, site_of(target, D) as site:
        killed = run_probe(all_probes()["garbage_line"], site).exchange
        assert killed.steps["after"].answer == "none"
        assert (
            run_probe(all_probes()["empty_line"], site).exchange.steps["after"].answer == "result"
        )


def test_slow_probes_are_taken_while_others_are(tmp_path: Path) -> None:
    with demo("stdio", (*SOUND, *OFFERED), tmp_path) as target, site_of(target, D) as site:
        site.known = {**site.known, "task_tool": "task_tool"}
        prepare_probes([all_probes()["task_lifecycle"], all_probes()["ids_of_all_kinds"]], site)
        assert run_probe(all_probes()["ids_of_all_kinds"], site).exchange.facts["differing"] == []
        assert (
            run_probe(all_probes()["task_lifecycle"], site).exchange.facts["ids_are_distinct"]
            is True
        )


def test_probes_that_do_no_harm_share_their_connection(tmp_path: Path) -> None:
    with demo("stdio", SOUND, tmp_path) as target, site_of(target, E) as site:
        met = len(site.conversations)
        for probe in ("ids_of_all_kinds", "list_tools_twice", "garbage_line", "empty_line"):
            run_probe(all_probes()[probe], site)
        assert len(site.conversations) == met + 2
        assert [one.polite for one in site.conversations[met:]] == [True, False]
