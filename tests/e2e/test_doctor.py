"""`mcptest doctor` on live servers: old ones, new ones, and new ones with one thing wrong."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mcptest import __version__
from mcptest.commands.doctor.run import examine
from mcptest.core.revision import Revision
from mcptest.probe.compliance.site import Order
from mcptest.transport.target import Target
from tests.e2e.driving import NPM, PYTHON_SDK, START, Done, free_port, listening, mcptest
from tests.peers.warm_peers import warm_peer
from tests.rogues.gallery import CASES, command
from tests.safety import hostile

EXAMPLE = Path(__file__).parents[2] / "examples" / "migration-doctor"
OLD = (sys.executable, str(EXAMPLE / "old_server.py"))
MODERN = Path(__file__).with_name("modern_server.py")
DEMO = (sys.executable, "-m", "mcptest.servers.demo")
E = "2026-07-28"


def doctor(*argv: str, server: tuple[str, ...] = (), to: str = E, **options: Any) -> Done:
    tail = ("--", *server) if server else ()
    return mcptest("doctor", "--to", to, "--timeout", "10s", *argv, *tail, **options)


def items_of(done: Done) -> dict[str, dict[str, Any]]:
    assert done.code in {0, 1}, done.said
    return {item["id"]: item for item in json.loads(done.out)["items"]}


def verdicts(done: Done) -> dict[str, str]:
    return {name: item["verdict"] for name, item in items_of(done).items()}


def broken(done: Done) -> set[str]:
    return {name for name, verdict in verdicts(done).items() if verdict == "breaks"}


# -- the example ---------------------------------------------------------------------------


def test_the_example_says_what_its_readme_says() -> None:
    done = doctor("--no-color", server=("python", "old_server.py"), cwd=EXAMPLE)
    assert done.code == 1, done.said
    expected = (EXAMPLE / "expected.txt").read_text(encoding="utf-8")
    shown = done.out.replace(f'"version":"{__version__}"', '"version":"…"')
    # How many rules move is for the corpora to say, and not what the example is about.
    counts = re.compile(r"\d+ changed, \d+ added, \d+ removed")
    assert counts.sub("…", shown) == counts.sub("…", expected)


def test_an_old_server_breaks_at_everything_it_relies_on() -> None:
    found = broken(doctor("--json", server=OLD))
    assert found == {
        *("discover", "request-meta", "version-error", "ping", "logging", "subscriptions"),
        *("server-requests", "result-type", "cache-hints", "missing-resource"),
    }


def test_the_code_of_a_missing_resource_is_judged_end_to_end() -> None:
    item = items_of(doctor("--json", server=OLD))["missing-resource"]
    assert (
        item["detail"]
        == "the server answers a missing resource with -32002; 2026-07-28 requires -32602"
    )
    assert '"code":-32002' in item["evidence"][0]["received"]
    assert {"id": "RES-102", "bucket": "changed"} in item["rules"]


def test_a_report_is_written_in_three_forms(tmp_path: Path) -> None:
    page, file = tmp_path / "page.md", tmp_path / "report.json"
    argv = ("--format", "markdown", "--markdown", str(page), "--json-file", str(file))
    done = doctor(*argv, server=OLD)
    assert done.code == 1, done.said
    assert page.read_text() == done.out
    assert "- [ ] no handshake: Answer server/discover" in done.out
    assert json.loads(file.read_bytes())["summary"]["breaks"] == 10


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict-reports",), 1)])
def test_a_report_that_cannot_be_written_is_said(
    tmp_path: Path, strict: tuple[str, ...], code: int
) -> None:
    (tmp_path / "file").write_text("no folder")
    done = doctor("--json-file", str(tmp_path / "file" / "x.json"), *strict, server=DEMO)
    assert done.code == code
    assert "report not written" in done.err


# -- a server that speaks it ---------------------------------------------------------------


def modern(wrong: str, *more: str) -> tuple[str, ...]:
    return (sys.executable, str(MODERN), wrong, *more)


@pytest.mark.parametrize(
    ("wrong", "item"),
    [
        ("request-meta", "request-meta"),
        ("version-error", "version-error"),
        ("ping", "ping"),
        ("logging/setLevel", "logging"),
        ("log-messages", "logging"),
        ("resources/subscribe", "subscriptions"),
        ("subscriptions", "subscriptions"),
        ("server-requests", "server-requests"),
        ("result-type", "result-type"),
        ("cache-hints", "cache-hints"),
        ("missing-resource", "missing-resource"),
        ("empty-contents", "missing-resource"),
        ("tasks", "tasks"),
        ("tasks/list", "tasks"),
        ("stable-lists", "stable-lists"),
        ("dies", "request-meta"),
    ],
)
def test_one_thing_that_is_wrong_breaks_one_item(wrong: str, item: str) -> None:
    done = doctor("--json", server=modern(wrong))
    assert done.code == 1, done.said
    assert broken(done) == {item}


def test_a_server_that_does_everything_right_breaks_nothing() -> None:
    done = doctor("--json", server=modern("nothing"))
    assert done.code == 0, done.said
    found = verdicts(done)
    assert {name for name, verdict in found.items() if verdict == "unknown"} == {"server-requests"}


def test_reserved_codes_are_found() -> None:
    assert "error-codes" in broken(doctor("--json", server=modern("error-codes")))


def test_a_discovery_without_the_revision_is_no_readiness() -> None:
    done = doctor("--json", server=modern("discover"))
    assert done.code == 3
    assert "offered 2025-11-25: the newest that server/discover lists" in done.err


def test_an_unrelated_code_says_nothing_about_the_move() -> None:
    done = doctor("--json", server=modern("odd-code"))
    assert done.code == 0, done.said
    item = items_of(done)["missing-resource"]
    assert item["verdict"] == "unknown"
    assert "-32602" in item["advice"]


def test_a_process_that_outlives_its_input_is_advised() -> None:
    done = doctor("--json", server=modern("exit-on-eof"))
    assert done.code == 0, done.said
    assert "SIGTERM" in items_of(done)["exit-on-eof"]["advice"]


def test_a_server_that_is_lost_is_said_and_nothing_is_green_for_it() -> None:
    done = doctor("--json", server=modern("dies"))
    assert "it was all too much" in " ".join(json.loads(done.out)["notes"])
    found = verdicts(done)
    assert {found[one] for one in ("server-requests", "tasks", "stable-lists")} == {"unknown"}


# -- safety --------------------------------------------------------------------------------


def test_only_tools_that_read_are_called(tmp_path: Path) -> None:
    called = tmp_path / "called"
    doctor("--json", server=modern("nothing", str(called)))
    assert {*called.read_text().split()} == {"look"}


def test_a_tool_that_is_allowed_is_called_too(tmp_path: Path) -> None:
    called = tmp_path / "called"
    done = doctor("--json", "--allow-tool", "wipe", server=modern("nothing", str(called)))
    assert {*called.read_text().split()} == {"look", "wipe"}
    assert verdicts(done)["server-requests"] == "not used"


def test_secrets_of_the_environment_are_masked() -> None:
    argv = ("--json", "--env", "API_KEY=secret-of-the-environment")
    done = doctor(*argv, server=modern("log-messages"))
    assert broken(done) == {"logging"}
    assert "secret-of" not in done.said
    assert "*** was used" in done.out


# -- the demo, both eras -------------------------------------------------------------------


def test_the_demo_is_ready() -> None:
    done = doctor("--json", server=DEMO)
    assert done.code == 0, done.said
    assert "unknown" not in verdicts(done).values()
    report = json.loads(done.out)
    assert (report["from"], report["examined_in"]) == ("2025-11-25", E)


@pytest.mark.parametrize("way", ["http", "old http"])
def test_the_demo_over_http(way: str) -> None:
    port = free_port()
    old = ("--spec-version", "2025-06-18") if way == "old http" else ()
    with listening((*DEMO, "--transport", "http", "--port", str(port), *old), "listening"):
        done = doctor("--json", "--server", f"http://127.0.0.1:{port}/mcp")
    found = verdicts(done)
    needs_http = ("sessions", "protocol-headers", "http-status")
    if way == "http":
        assert done.code == 0, done.said
        assert {found[one] for one in (*needs_http, "http-methods", "transport")} == {"ready"}
    else:
        assert {found[one] for one in needs_http} == {"breaks"}
        assert found["origin"] == "ready"


def test_an_old_step_is_looked_at_in_the_revision_that_is_spoken() -> None:
    done = doctor("--json", server=(*DEMO, "--spec-version", "2024-11-05"), to="2025-03-26")
    assert broken(done) == {"agreement", "batches-received", "completions"}


def test_batches_have_to_go() -> None:
    done = doctor("--json", server=(*DEMO, "--spec-version", "2025-03-26"), to="2025-06-18")
    assert broken(done) == {"agreement", "batches"}


@pytest.mark.parametrize(
    ("older", "newer"),
    [("2024-11-05", "2025-03-26"), ("2025-03-26", "2025-06-18"), ("2024-11-05", "2025-11-25")],
)
def test_a_step_that_the_demo_has_behind_it_breaks_nothing(older: str, newer: str) -> None:
    done = doctor("--json", "--from", older, server=DEMO, to=newer)
    assert done.code == 0, done.said
    assert json.loads(done.out)["examined_in"] == newer


def test_nothing_changes_on_the_way_to_the_draft() -> None:
    done = doctor(server=DEMO, to="draft")
    assert done.code == 0, done.said
    assert "nothing changes for servers from 2026-07-28 to draft" in done.out


# -- ways that do not exist ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "to", "code", "phrase"),
    [
        ((), "2026-7-28", 2, "did you mean 2026-07-28?"),
        ((), "2025-06-18", 2, "the server speaks 2026-07-28, which is newer than 2025-06-18"),
        (("--from", "2025-06-18"), "2025-06-18", 2, "is not older than"),
        (("--from", "someday"), E, 2, "unknown spec version: 'someday'"),
    ],
)
def test_a_way_that_does_not_exist_is_a_usage_error(
    argv: tuple[str, ...], to: str, code: int, phrase: str
) -> None:
    done = doctor(*argv, server=DEMO, to=to)
    assert done.code == code
    assert phrase in done.err
    assert done.out == ""


def test_a_server_that_does_not_start_is_unreachable() -> None:
    done = doctor(server=("mcptest-no-such-command",))
    assert done.code == 3
    assert "command not found" in done.err


ROGUES = (
    ("never-answers", 3, "did not answer initialize"),
    ("exits-at-once-with-code", 3, "exited with code 3"),
    ("dies-after-handshake", 1, "out of cheese"),
    ("server-request-flood", 1, ""),
    ("deep-json", 1, ""),
    ("banner-on-stdout", 1, ""),
    ("grandchild-holds-the-pipes", 1, ""),
)


@pytest.mark.parametrize(("name", "code", "phrase"), ROGUES, ids=[one[0] for one in ROGUES])
def test_a_hostile_server_ends_in_a_named_outcome(name: str, code: int, phrase: str) -> None:
    case = next(case for case in CASES if case.name == name)
    start = () if name == "never-answers" else START
    done = mcptest("doctor", "--to", E, "--timeout", "2s", *start, "--", *command(case))
    assert done.code == code, done.said
    assert phrase in done.said
    assert "internal error" not in done.err


def test_a_call_that_is_not_answered_is_no_clean_bill() -> None:
    server = (sys.executable, "-I", "-S", str(Path(hostile.__file__)), "call-never-answered")
    done = mcptest(
        "doctor", "--to", "2026-07-28", "--timeout", "1s", *START, "--json", "--", *server
    )
    report = json.loads(done.out)
    assert done.code == 1
    assert "the server did not answer tools/call" in report["notes"]


def test_what_breaks_and_could_not_be_looked_at_again_is_not_taken_for_mended() -> None:
    over = threading.Event()

    def tell(done: int, total: int, doing: str) -> None:
        if doing == "confirming what breaks":
            over.set()

    target = Target(way="stdio", label="old", command=OLD)
    order = Order(target=target, timeout=20, startup=20, should_stop=over.is_set)
    report = examine(order, Revision.V2026_07_28, tell=tell)
    assert over.is_set()
    assert not report.breaks
    assert report.unreached > 0
    assert not report.is_whole


# -- servers of others ---------------------------------------------------------------------


@pytest.mark.peer
def test_the_python_sdk_is_ready_but_drops_batches() -> None:
    server = warm_peer(*PYTHON_SDK)
    done = doctor("--json", server=server)
    assert done.code == 0, done.said
    done = doctor("--json", "--from", "2024-11-05", server=server, to="2025-03-26")
    assert broken(done) == {"batches-received"}


@pytest.mark.npm
def test_server_everything_breaks_at_what_it_declares() -> None:
    server = ("node", str(NPM / "server-everything" / "dist" / "index.js"), "stdio")
    # One of its tools takes ten seconds: no reason to wait for it to the end.
    hurried = ("--timeout", "3s", "--startup-timeout", "10s")
    found = verdicts(doctor("--json", *hurried, server=server))
    wanted = ("discover", "ping", "logging", "subscriptions", "server-requests", "tasks")
    assert {found[one] for one in wanted} == {"breaks"}
    assert found["missing-resource"] == "ready"
