"""The reports of a doctor say everything, in a safe way, and can be read back."""

from __future__ import annotations

import io
import json

import msgspec

from mcptest.core.judgement import Evidence
from mcptest.core.revision import Revision
from mcptest.report.codec import as_json
from mcptest.report.doctor import (
    Diagnosis,
    DoctorReport,
    DoctorVerdict,
    MovedRule,
    RulesOnTheWay,
    ServerInfo,
)
from mcptest.report.terminal import Style

E = Revision.V2026_07_28
BROKEN = Diagnosis(
    id="ping",
    title="ping",
    since=E,
    change="it is gone",
    verdict=DoctorVerdict.BREAKS,
    detail="ping is answered",
    evidence=(Evidence('{"method":"ping"}', '{"result":{}}'), Evidence("asked", "")),
    rules=(MovedRule("PROTO-021", "added"),),
    fix="Drop it.",
)
READY = Diagnosis(
    id="tasks",
    title="tasks",
    since=E,
    change="gone",
    verdict=DoctorVerdict.READY,
    detail="none seen",
)
ADVISED = msgspec.structs.replace(READY, id="http-methods", advice="405 is better", fix="Use 405.")
UNKNOWN = msgspec.structs.replace(READY, id="sessions", verdict=DoctorVerdict.UNKNOWN, fix="Look.")
UNUSED = msgspec.structs.replace(READY, id="logging", verdict=DoctorVerdict.NOT_USED)
REPORT = DoctorReport(
    server="my server",
    transport="stdio",
    older=Revision.V2025_11_25,
    newer=E,
    spoken=Revision.V2025_11_25,
    items=(BROKEN, READY, ADVISED, UNKNOWN, UNUSED),
    rules=RulesOnTheWay(3, 81, 45),
    server_info=ServerInfo("old | *notes*", "1.0"),
    notes=("the server was lost <b>once</b>",),
)


def text(report: DoctorReport, *, verbose: bool = False) -> str:
    return "\n".join(report.lines(Style(unicode=False, verbose=verbose)))


def test_what_breaks_is_shown_with_proof_fix_and_rules() -> None:
    shown = text(REPORT)
    for part in (
        "x breaks    ping",
        "ping is answered",
        '{"method":"ping"}',
        "received: (no response)",
        "Drop it.",
        "PROTO-021 (added)",
        "3 changed, 81 added, 45 removed",
        "the server does not speak 2026-07-28",
    ):
        assert part in shown


def test_the_checklist_has_a_box_for_everything_but_what_is_not_used() -> None:
    boxes = [line.strip() for line in text(REPORT).splitlines() if line.startswith("  [")]
    assert boxes == [
        "[ ] ping: Drop it.",
        "[x] tasks",
        "[ ] tasks (recommended): Use 405.",
        "[?] tasks: check this yourself. Look.",
    ]


def test_the_counts_come_last() -> None:
    assert text(REPORT).splitlines()[-1] == (
        "1 breaking, 1 unknown, 2 ready, 1 not used, 1 with a recommendation"
    )


def test_more_is_said_when_asked_for() -> None:
    assert "none seen" not in text(msgspec.structs.replace(REPORT, items=(UNUSED,)))
    assert "none seen" in text(msgspec.structs.replace(REPORT, items=(UNUSED,)), verbose=True)


def test_nothing_changes_between_equal_revisions() -> None:
    same = msgspec.structs.replace(REPORT, older=E, newer=Revision.DRAFT, spoken=E, items=())
    assert same.speaks_newer
    assert same.in_words() == "nothing changes for servers from 2026-07-28 to draft"
    assert "Checklist" not in text(same)
    assert same.as_markdown().count("\n") < 8


def test_the_json_holds_every_item_and_the_counts() -> None:
    value = json.loads(as_json(REPORT))
    assert value["format"] == "mcptest.doctor/1"
    assert value["breaks"] is True
    assert value["summary"] == {"breaks": 1, "ready": 2, "not_used": 1, "unknown": 1}
    assert (value["from"], value["to"], value["speaks_target"]) == (
        "2025-11-25",
        "2026-07-28",
        False,
    )
    assert [item["verdict"] for item in value["items"]] == [
        *("breaks", "ready", "ready", "unknown", "not used")
    ]
    first = value["items"][0]
    assert first["rules"] == [{"id": "PROTO-021", "bucket": "added"}]
    assert first["evidence"][0] == {"sent": '{"method":"ping"}', "received": '{"result":{}}'}
    assert value["rules_on_the_way"] == {"changed": 3, "added": 81, "removed": 45}


def test_the_markdown_has_a_table_and_boxes_and_escapes_the_peer() -> None:
    page = REPORT.as_markdown()
    assert page.startswith("# old \\| \\*notes\\*: 2025-11-25 → 2026-07-28\n")
    assert "| ping | breaks | ping is answered |" in page
    assert "- [ ] ping: Drop it." in page
    assert "- [x] tasks" in page
    assert "<b>" not in page.replace("\\<b\\>", "")


def test_a_peer_that_writes_control_codes_steers_nothing() -> None:
    evil = "\x1b[2J\n::error::x\u202e"
    item = msgspec.structs.replace(BROKEN, detail=evil)
    report = msgspec.structs.replace(
        REPORT, items=(item,), server_info=ServerInfo(evil), notes=(evil,)
    )
    for shown in (text(report), report.as_markdown()):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


def test_a_stream_without_colours_gets_none() -> None:
    assert "\x1b" not in "\n".join(REPORT.lines(Style.of(io.StringIO(), environment={})))
