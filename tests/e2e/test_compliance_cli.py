"""`mcptest compliance`, `explain` and `schema` as a person or a CI job runs them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.e2e import driving
from tests.e2e.driving import Done
from tests.rules.captures import full, handshake, initialize
from tests.support.records import encode_record

SAMPLE = {
    "server_label": "stdio://my-server",
    "server_capabilities": {"tools": {}},
    "exchanges": [
        {
            "request": {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
            "response": {"jsonrpc": "2.0", "id": 1, "result": {}},
        },
        {
            "request": {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
            "response": {"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "add"}]}},
        },
    ],
}
INITIALIZED = {"request": {"jsonrpc": "2.0", "method": "notifications/initialized"}}


def mcptest(*arguments: str, **environment: str) -> Done:
    clean = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR", "TERM"}}
    return driving.mcptest(*arguments, env={**clean, **environment})


def good(label: str = "good", tool: str = "add") -> dict[str, Any]:
    first, second = SAMPLE["exchanges"]
    tools = [{"name": tool, "inputSchema": {"type": "object"}}]
    answered = {**second["response"], "result": {"tools": tools}}
    exchanges = [first, INITIALIZED, {**second, "response": answered}]
    return {**SAMPLE, "server_label": label, "exchanges": exchanges}


def store(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value))
    return str(path)


@pytest.fixture
def sample(tmp_path: Path) -> str:
    sample = {**SAMPLE, "exchanges": [*SAMPLE["exchanges"]]}
    sample["exchanges"][1] = {**SAMPLE["exchanges"][1]}
    sample["exchanges"][1]["response"] = {"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}
    return store(tmp_path / "session.json", sample)


def test_the_sample_fails_by_inv_002_and_says_why(sample: str) -> None:
    done = mcptest("compliance", "invariants", "--capture", sample)
    assert done.code == 1
    assert "✗ INV-002" in done.out
    assert "✓ INV-001" in done.out
    assert "exchange 1, from the client" in done.out
    assert "mcptest explain INV-002" in done.out
    assert "1 failed" in done.out
    assert done.err == ""


def test_quiet_shows_what_failed_alone(sample: str, tmp_path: Path) -> None:
    done = mcptest("compliance", "invariants", "--capture", sample, "--quiet")
    assert done.code == 1
    assert "✗ INV-002" in done.out
    assert "✓" not in done.out
    good_one = store(tmp_path / "good.json", good())
    passed = mcptest("compliance", "invariants", "--capture", good_one, "--quiet")
    assert (passed.code, passed.out.count("\n")) == (0, 1)


def test_a_good_capture_passes(tmp_path: Path) -> None:
    done = mcptest("compliance", "invariants", "--capture", store(tmp_path / "a.json", good()))
    assert (done.code, done.err) == (0, "")
    assert "0 failed" in done.out


def test_the_json_report_follows_its_schema_and_is_all_of_stdout(sample: str) -> None:
    done = mcptest("compliance", "invariants", "--capture", sample, "--format", "json")
    report = json.loads(done.out)
    assert report["format"] == "mcptest.report/1"
    assert report["exit_code"] == done.code == 1
    schema = json.loads(mcptest("schema", "report").out)
    jsonschema_rs.Draft202012Validator(schema).validate(report)
    [session] = report["sessions"]
    broken = [v for v in session["verdicts"] if v["outcome"] == "fail"]
    assert [v["rule"] for v in broken] == ["INV-002"]
    assert broken[0]["findings"][0]["record"] == 1
    assert report["summary"]["fail"] == 1
    assert len(session["verdicts"]) > 80
    short = json.loads(mcptest("compliance", "invariants", "--capture", sample, "--json").out)
    assert {**short, "invocation": {}} == {**report, "invocation": {}}


def test_the_report_file_is_written_beside_the_text(sample: str, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    done = mcptest("compliance", "invariants", "--capture", sample, "--json-file", str(target))
    assert done.code == 1
    assert "INV-002" in done.out
    assert json.loads(target.read_bytes())["summary"]["fail"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "session.json"]


def test_a_report_that_can_not_be_written_is_said_and_the_verdicts_stand(tmp_path: Path) -> None:
    capture = store(tmp_path / "a.json", good())
    target = str(tmp_path / "a.json" / "report.json")
    command = ("compliance", "invariants", "--capture", capture, "--json-file", target)
    done = mcptest(*command)
    assert (done.code, "report.json" in done.err) == (0, True)
    assert "0 failed" in done.out
    assert mcptest(*command, "--strict-reports").code == 1


def test_several_captures_are_judged_alone_and_together(tmp_path: Path) -> None:
    one = store(tmp_path / "one.json", good("one"))
    two = store(tmp_path / "two.json", [good("two"), good("three", "sub")])
    done = mcptest("compliance", "invariants", "--capture", one, "--capture", two)
    assert done.code == 1
    assert "COMP-001" in done.out
    assert "'add' is offered by one and two" in done.out
    assert "COMP-002" in done.out
    separate = mcptest(
        "compliance", "invariants", "--capture", one, "--capture", two, "--separate-transports"
    )
    assert "COMP-002" not in separate.out
    assert separate.code == 1


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"", "empty"),
        (b"\x00\x01", "not a capture"),
        (b'{"exchanges": [', "ends at offset"),
        (b'{"exchanges": [{"request": ' + b"[" * 100_000, "512 levels"),
        (b'{"kind":"note"}\nnonsense\n', "not a record"),
    ],
)
def test_a_file_that_is_no_capture_is_exit_2_with_one_message(
    tmp_path: Path, content: bytes, phrase: str
) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    done = mcptest("compliance", "invariants", "--capture", str(path))
    assert done.code == 2
    assert phrase in done.err
    assert str(path) in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


@pytest.mark.parametrize("value", [{"exchanges": []}, [{"exchanges": []}, {"exchanges": []}]])
def test_a_capture_with_nothing_in_it_is_never_green(tmp_path: Path, value: Any) -> None:
    done = mcptest("compliance", "invariants", "--capture", store(tmp_path / "a.json", value))
    assert done.code == 4
    assert "nothing to judge" in done.err


def test_one_empty_session_among_good_ones_is_not_green(tmp_path: Path) -> None:
    path = store(tmp_path / "a.json", [good(), {"exchanges": []}])
    assert mcptest("compliance", "invariants", "--capture", path).code == 4


def test_a_broken_should_is_a_warning_unless_strict(tmp_path: Path) -> None:
    early, agreed = initialize()
    asked = b'{"jsonrpc":"2.0","id":9,"method":"ping","method":"ping"}'
    frames = [early, agreed, *handshake()[2:], type(early)(sender="client", raw=asked)]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(encode_record(record) for _, record in full(frames).records))
    loose = mcptest("compliance", "invariants", "--capture", str(path))
    assert (loose.code, "! MSG-003" in loose.out) == (0, True)
    assert "1 warning" in loose.out
    strict = mcptest("compliance", "invariants", "--capture", str(path), "--strict")
    assert strict.code == 1


def test_one_rule_can_be_chosen_and_a_typo_names_the_nearest(sample: str) -> None:
    one = mcptest("compliance", "invariants", "--capture", sample, "--rule", "inv-001", "--json")
    assert [v["rule"] for v in json.loads(one.out)["sessions"][0]["verdicts"]] == ["INV-001"]
    assert one.code == 0
    unseen = mcptest("compliance", "invariants", "--capture", sample, "--rule", "INV-006")
    assert unseen.code == 4
    typo = mcptest("compliance", "invariants", "--capture", sample, "--rule", "INV-01")
    assert (typo.code, "INV-001" in typo.err) == (2, True)


def test_a_revision_can_be_named(sample: str) -> None:
    done = mcptest(
        "compliance", "invariants", "--capture", sample, "--spec-version", "v2025-06-18", "--json"
    )
    assert json.loads(done.out)["sessions"][0]["revision"] == "2025-06-18"
    bad = mcptest("compliance", "invariants", "--capture", sample, "--spec-version", "2025-06-19")
    assert (bad.code, "2025-06-18" in bad.err) == (2, True)


def test_colour_is_for_those_who_want_it(sample: str) -> None:
    command = ("compliance", "invariants", "--capture", sample)
    assert "\x1b[" not in mcptest(*command).out
    assert "\x1b[" in mcptest(*command, FORCE_COLOR="1").out
    assert "\x1b[" not in mcptest(*command, FORCE_COLOR="1", NO_COLOR="1").out
    assert "\x1b[" not in mcptest(*command, "--no-color", FORCE_COLOR="1").out


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}])
def test_symbols_become_plain_where_they_must(sample: str, environment: dict[str, str]) -> None:
    done = mcptest("compliance", "invariants", "--capture", sample, **environment)
    assert done.code == 1
    assert done.out.isascii()
    assert "x INV-002" in done.out


def test_the_json_report_is_utf_8_whatever_the_terminal_speaks(tmp_path: Path) -> None:
    path = store(tmp_path / "a.json", good("Überwachung"))
    done = mcptest(
        "compliance", "invariants", "--capture", path, "--json", PYTHONIOENCODING="ascii"
    )
    assert json.loads(done.out)["sessions"][0]["label"] == "Überwachung"


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    path = store(tmp_path / "a.json", good())
    done = mcptest("compliance", "invariants", "--capture", path, "--json-file", "/dev/full")
    assert (done.code, "not written" in done.err) == (0, True)


def test_verbose_says_why_a_rule_was_not_judged(sample: str) -> None:
    quiet = mcptest("compliance", "invariants", "--capture", sample).out
    verbose = mcptest("compliance", "invariants", "--capture", sample, "--verbose").out
    assert "INV-006" not in quiet
    assert "INV-006" in verbose
    assert "applies to 2026-07-28 and later; the session uses" in verbose


def test_hostile_labels_and_names_do_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    evil = "\x1b[2J::error::\u202e"
    path = store(tmp_path / "a.json", [good(evil, evil), good(evil, evil)])
    done = mcptest("compliance", "invariants", "--capture", path)
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert not any(line.startswith(("::", "##")) for line in done.out.splitlines())


def test_the_rules_can_be_listed_and_filtered() -> None:
    everything = json.loads(mcptest("compliance", "rules", "--json").out)
    modern = json.loads(
        mcptest("compliance", "rules", "--json", "--spec-version", "2026-07-28").out
    )
    client = json.loads(mcptest("compliance", "rules", "--json", "--side", "client").out)
    assert len(everything["rules"]) > len(modern["rules"]) > 30
    assert {rule["side"] for rule in client["rules"]} == {"client", "both"}
    assert "INV-007" in mcptest("compliance", "rules").out


def test_explain_shows_one_rule_in_full() -> None:
    done = mcptest("explain", "inv-003")
    assert done.code == 0
    assert "What to do" in done.out
    assert "https://modelcontextprotocol.io/specification/" in done.out
    assert mcptest("explain", "COMP-002").code == 0
    assert json.loads(mcptest("explain", "INV-003", "--json").out)["rules"][0]["id"] == "INV-003"
    unknown = mcptest("explain", "INV-03")
    assert (unknown.code, "did you mean INV-003" in unknown.err) == (2, True)


def test_the_capture_schemas_accept_real_captures_and_refuse_others() -> None:
    line = jsonschema_rs.Draft202012Validator(json.loads(mcptest("schema", "capture").out))
    for _, record in full(handshake()).records:
        line.validate(json.loads(encode_record(record)))
    assert not line.is_valid({"kind": "banana"})
    assert not line.is_valid({"kind": "message", "message": {}})
    form = jsonschema_rs.Draft202012Validator(json.loads(mcptest("schema", "exchanges").out))
    form.validate(SAMPLE)
    form.validate([SAMPLE, good()])
    assert not form.is_valid({"exchanges": [{"response": {}}]})


def test_no_capture_at_all_is_a_usage_error() -> None:
    done = mcptest("compliance", "invariants")
    assert (done.code, "--capture" in done.err) == (2, True)
    assert mcptest("compliance").code == 2
