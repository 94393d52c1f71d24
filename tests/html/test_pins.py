"""Failures of stored runs are pinned to the message that shows them, when its capture is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from mcptest.core.capture import Frame, Opened
from mcptest.core.errors import ExitCode
from mcptest.core.results import RunReport
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckResult, ScenarioResult
from mcptest.core.scenario_outcome import CheckStatus as Checked
from mcptest.core.verdict import Side
from mcptest.report.conformance import ConformanceReport
from mcptest.report.html.building import page_of_run, pictured
from mcptest.report.stored import AnyReport, Stored
from tests.support.records import encode_record
from tests.support.sample_compliance import SAMPLE, STRUCTURED
from tests.support.sample_run import SUM


def capture_of(path: Path, *messages: str) -> str:
    frames = [Frame(sender="server", raw=text.encode()) for text in messages]
    path.write_bytes(b"".join(map(encode_record, (Opened(server_label="x"), *frames))))
    return str(path)


def block(content: bytes, name: str) -> Any:
    return json.loads(content.partition(f'id="{name}">'.encode())[2].partition(b"</script>")[0])


def pins_in(content: bytes) -> dict[str, int]:
    """By what is pinned, the row; what the session rules found apart."""
    return {pin["rule"]: pin["row"] for pin in block(content, "sessions")[0]["pins"]}


def page_of(report: AnyReport, capture: str) -> bytes:
    return pictured([capture]).page([Stored("r.json", report)], ExitCode.FAILED)


OTHER = '{"jsonrpc":"2.0","id":1,"result":{}}'


def test_a_failed_test_is_pinned_to_the_answer(tmp_path: Path) -> None:
    assert SUM.proof is not None
    path = capture_of(tmp_path / "sum.jsonl", OTHER, SUM.proof.response)
    moved = msgspec.structs.replace(SUM.proof, capture="elsewhere/sum.jsonl")
    run = RunReport(results=(msgspec.structs.replace(SUM, proof=moved),))
    assert pins_in(page_of(run, path))[SUM.name] == 2


def test_a_failed_rule_is_pinned_to_what_was_received(tmp_path: Path) -> None:
    path = capture_of(tmp_path / "c.jsonl", OTHER, STRUCTURED.evidence[0].received)
    judgement = msgspec.structs.replace(SAMPLE.judgements[0], captures=(path,))
    report = msgspec.structs.replace(SAMPLE, judgements=(judgement,))
    assert pins_in(page_of(report, path))["TOOLS-004"] == 2


def test_a_failed_check_is_pinned_to_its_record(tmp_path: Path) -> None:
    path = capture_of(tmp_path / "s.jsonl", OTHER, OTHER)
    check = CheckResult("c", "c", "it answers", Checked.FAILURE, "no", record=2)
    scenario = ScenarioResult(
        "ping", Side.SERVER, Revision.V2025_11_25, "stdio", (check,), capture=path
    )
    report = ConformanceReport(Side.SERVER, "demo", (scenario,))
    assert pins_in(page_of(report, path))["ping"] == 2


def test_the_page_of_a_run_shows_the_captures_that_it_wrote(tmp_path: Path) -> None:
    assert SUM.proof is not None
    path = capture_of(tmp_path / "sum.jsonl", SUM.proof.response)
    kept = msgspec.structs.replace(SUM.proof, capture=path)
    lost = msgspec.structs.replace(SUM.proof, capture=str(tmp_path / "lost.jsonl"))
    results = tuple(msgspec.structs.replace(SUM, proof=proof) for proof in (kept, lost))
    content = page_of_run(RunReport(results=results))
    assert pins_in(content)[SUM.name] == 1
    assert "lost.jsonl" in block(content, "page")["notes"][0]


def test_a_name_that_two_files_share_leads_to_neither(tmp_path: Path) -> None:
    assert SUM.proof is not None
    names = ("a/x.jsonl", "b/x.jsonl")
    for name in names:
        (tmp_path / name).parent.mkdir()
        capture_of(tmp_path / name, SUM.proof.response)
    proof = msgspec.structs.replace(SUM.proof, capture="x.jsonl")
    run = RunReport(results=(msgspec.structs.replace(SUM, proof=proof),))
    pictures = pictured([str(tmp_path / name) for name in names])
    content = pictures.page([Stored("r.json", run)], ExitCode.FAILED)
    assert SUM.name not in pins_in(content)
