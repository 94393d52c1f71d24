"""Servers that nobody here wrote: nothing is held against them that is not theirs."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mcptest.commands.doctor.run import examine
from mcptest.core.capture import TransportName
from mcptest.core.errors import PeerError
from mcptest.core.judgement import Judgement, RuleResult
from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome, Severity
from mcptest.probe.compliance.judging import judge_server
from mcptest.probe.compliance.site import Order
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.doctor import DoctorReport, DoctorVerdict
from mcptest.report.html.judged_sources import source_of_compliance
from mcptest.report.html.wire_rows import Places
from mcptest.transport.target import Target
from tests.e2e.demo_peer import BOUND

STRANGER = Path(__file__).with_name("stranger_server.py")
OLD, NEW = Revision.V2025_11_25, Revision.V2026_07_28
OF_ONE_QUESTION = ("PROTO-011", "PROTO-013", "PROTO-016")


def judged(
    *words: str,
    revision: Revision | None = OLD,
    rules: tuple[str, ...] = (),
    timeout: float = BOUND,
    startup: float = BOUND,
) -> Judgement:
    command = (sys.executable, "-S", str(STRANGER), *words)
    target = Target(way="stdio", label=words[0], command=command)
    order = Order(target=target, revision=revision, rules=rules, timeout=timeout, startup=startup)
    return judge_server(order, lambda event: None)


def result(judgement: Judgement, rule: str) -> RuleResult:
    return next(one for one in judgement.results if one.id == rule)


def failing(judgement: Judgement) -> list[tuple[str, str]]:
    return [(one.id, one.findings[0].message) for one in judgement.failures]


def test_a_server_of_both_eras_is_not_pinned_to_one_by_what_is_asked_of_it() -> None:
    judgement = judged("dual-era", revision=None)
    assert judgement.revision is NEW
    assert failing(judgement) == []
    assert judgement.count(Outcome.INCONCLUSIVE) == 0
    for rule in (*OF_ONE_QUESTION, "PROTO-012", "PROTO-014", "JSONRPC-007", "STDIO-102"):
        assert result(judgement, rule).outcome is Outcome.PASS, rule


def test_a_line_that_pins_a_server_to_an_era_breaks_the_rules_about_such_lines_only() -> None:
    judgement = judged("dual-era-by-line", revision=None)
    assert [rule for rule, _ in failing(judgement)] == ["STDIO-102", "STDIO-103"]
    assert judgement.count(Outcome.INCONCLUSIVE) == 0


def test_a_fault_of_every_result_is_one_finding_with_a_count_and_one_whole_proof() -> None:
    (broken,) = judged("dual-era-untyped", revision=None).failures
    assert broken.id == "META-003"
    first, *others = (one.message for one in broken.findings)
    counted = re.search(r"\(([0-9]+) times in total\)", first)
    assert counted is not None
    assert int(counted[1]) > len(broken.findings)
    assert not any("in total" in message for message in others)
    assert broken.evidence[1:]
    for proof in broken.evidence[1:]:
        assert len(proof.sent) <= 300
        assert len(proof.received) <= 300


@pytest.mark.parametrize("rules", [(), ("JSONRPC-005", "CANCEL-101", "CANCEL-102", "CANCEL-103")])
def test_a_notification_is_no_first_word_to_a_server_of_both_eras(rules: tuple[str, ...]) -> None:
    judgement = judged("dual-era-at-first", revision=None, rules=rules)
    assert judgement.revision is NEW
    assert failing(judgement) == []
    for rule in ("JSONRPC-005", "CANCEL-101", "CANCEL-102", "CANCEL-103"):
        assert result(judgement, rule).outcome is Outcome.PASS, rule


def test_the_answer_to_a_notification_is_shown_with_its_bytes() -> None:
    judgement = judged("answers-notifications", rules=("JSONRPC-005",))
    (broken,) = judgement.failures
    assert "mcptest_unknown" in broken.evidence[0].sent
    assert "Method not found" in broken.evidence[0].received


def test_a_log_message_that_only_a_broken_line_brings_out_needs_its_capability_too() -> None:
    judgement = judged("logs-what-it-can-not-read")
    (broken,) = [one for one in judgement.failures if one.severity is Severity.MUST]
    assert broken.id == "LOG-001"
    assert "Internal Server Error" in broken.evidence[0].received


def test_a_list_that_fails_inside_was_not_seen() -> None:
    judgement = judged("lists-away")
    for rule in ("TOOLS-001", "RES-101", "PROMPT-101"):
        assert result(judgement, rule).outcome is Outcome.NOT_OBSERVED, rule
        assert "backend is unavailable" in result(judgement, rule).reason
    for rule in ("PAGE-101", "PAGE-102", "PAGE-103"):
        assert result(judgement, rule).outcome is Outcome.NOT_OBSERVED, rule
    broken = [one.id for one in judgement.failures if one.severity is Severity.MUST]
    assert broken == ["INV-004"], "that every call fails is arguable, and the rule says so"


@pytest.mark.parametrize("rule", ["PROTO-013", "STDIO-103"])
def test_the_command_that_repeats_a_rule_comes_to_the_same(rule: str) -> None:
    judgement = judged("dual-era", revision=None, rules=(rule,))
    assert [one.outcome for one in judgement.results] == [Outcome.PASS]


def test_a_failure_that_does_not_repeat_is_inconclusive_with_both_transcripts(
    tmp_path: Path,
) -> None:
    judgement = judged("flaky", str(tmp_path / "failed"))
    assert failing(judgement) == []
    once = result(judgement, "PAGE-101")
    assert once.outcome is Outcome.INCONCLUSIVE
    assert once.failed_once
    assert once.reason.startswith("it failed once but not when repeated")
    assert '"result"' in once.evidence[0].received
    assert "-32602" in once.again[0].received
    assert "mcptest-no-such-cursor" in once.again[0].sent


def test_both_transcripts_are_on_the_page_too(tmp_path: Path) -> None:
    report = ComplianceReport(
        server="flaky", judgements=(judged("flaky", str(tmp_path / "failed")),)
    )
    source = source_of_compliance(report, Places())
    (entry,) = [one for one in source.entries if one.id == "PAGE-101"]
    titles = [one.label for one in entry.facts]
    assert {"Received", "Received when retried"} <= set(titles)


def test_a_line_that_came_once_does_not_fail_a_whole_session(tmp_path: Path) -> None:
    judgement = judged("flaky-session", str(tmp_path / "written"))
    assert failing(judgement) == []
    assert result(judgement, "STDIO-001").failed_once


def test_a_refusal_means_nothing_where_everything_is_refused() -> None:
    judgement = judged("backend-away")
    assert failing(judgement) == []
    any_refusal = ("TOOLS-007", "TOOLS-008", "TOOLS-009", "TOOLS-010", "PROMPT-105", "RES-104")
    its_words = ("TOOLS-005", "PROMPT-102", "PROMPT-103", "RES-102")
    for rule in (*any_refusal, *its_words):
        assert result(judgement, rule).outcome is Outcome.NOT_OBSERVED, rule
        assert result(judgement, rule).unlocked_by
        assert "backend unreachable" in result(judgement, rule).reason
        assert len(result(judgement, rule).evidence) == 2, "with the request beside it"


def test_a_refusal_means_something_where_right_arguments_work() -> None:
    judgement = judged("sound")
    assert failing(judgement) == []
    for rule in ("TOOLS-005", "TOOLS-007", "TOOLS-008", "TOOLS-009", "TOOLS-010"):
        assert result(judgement, rule).outcome is Outcome.PASS, rule


def test_a_server_that_says_the_same_of_every_uri_has_read_no_file() -> None:
    judgement = judged("reads-anything", revision=NEW, rules=("RES-104", "RES-105"))
    for rule in ("RES-104", "RES-105"):
        found = result(judgement, rule)
        assert found.outcome is Outcome.INCONCLUSIVE, rule
        assert "for a resource that does not exist" in found.reason
        assert "nothing is known of …" in found.reason
        assert len(found.evidence) == 2, "with the answer for what is not there"


def test_a_server_that_serves_a_file_outside_of_its_root_fails() -> None:
    judgement = judged("reads-files", revision=NEW, rules=("RES-105",))
    assert [one.id for one in judgement.failures] == ["RES-105"]


class _RefusesTheHost(BaseHTTPRequestHandler):
    """What a server with a guard against DNS rebinding answers to whoever it does not know."""

    content_type = "application/json"
    body = b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"Invalid Host header"},"id":null}'

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = self.body
        self.send_response(403)
        if self.content_type:
            self.send_header("content-type", self.content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815 - the name that http.server looks for

    def log_message(self, *words: object) -> None:
        """Nobody reads it."""


class _RefusesTheAddress(_RefusesTheHost):
    """The same in words of its own, as a server does that brings its own guard."""

    content_type = ""
    body = b"Access is only allowed at localhost:3000"


@pytest.mark.parametrize("guard", [_RefusesTheHost, _RefusesTheAddress])
@pytest.mark.parametrize(
    ("way", "revision"), [("http", None), ("http", OLD), ("http", NEW), ("sse", None), ("sse", OLD)]
)
def test_a_refused_host_is_told_as_one_and_not_as_a_missing_token(
    way: TransportName, revision: Revision | None, guard: type[_RefusesTheHost]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), guard) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        target = Target(way=way, label="guarded", url=url)
        with pytest.raises(PeerError, match="HTTP 403 and does not ask for a token") as refused:
            judge_server(Order(target=target, revision=revision, timeout=BOUND), lambda event: None)
        server.shutdown()
    assert "DNS rebinding" in (refused.value.hint or "")
    assert guard.body[-12:].decode() in refused.value.message


class _AsksForAToken(_RefusesTheHost):
    """A token of its own, and no metadata that says where to get one."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(401)
        self.send_header("www-authenticate", "Bearer")
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_error(404)


def test_metadata_that_is_not_there_is_shown_with_its_status() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _AsksForAToken) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        target = Target(way="http", label="guarded", url=url)
        order = Order(target=target, revision=OLD, rules=("AUTH-003",), timeout=BOUND)
        judgement = judge_server(order, lambda event: None)
        server.shutdown()
    received = [one.received for one in result(judgement, "AUTH-003").evidence]
    assert [one[:8] for one in received] == ["HTTP 401", "HTTP 404", "HTTP 404"]


class _WantsASessionFirst(_AsksForAToken):
    """Who has a token and no session is told about the session, whatever the token is worth."""

    takes_any_token = False

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        begins, trusted = asked["method"] == "initialize", self.takes_any_token
        if self.headers.get("authorization") is None or (begins and not trusted):
            self.send_response(401)
            self.send_header("www-authenticate", "Bearer")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        info = {"name": "guarded", "version": "1"}
        agreed = {"protocolVersion": str(OLD), "capabilities": {}, "serverInfo": info}
        error = {"code": -32600, "message": "Bad Request: Missing session ID"}
        outcome = {"result": agreed} if begins else {"error": error}
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **outcome}).encode()
        self.send_response(200 if begins else 400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _TakesAnyToken(_WantsASessionFirst):
    takes_any_token = True


@pytest.mark.parametrize(
    ("guard", "broken"), [(_WantsASessionFirst, []), (_TakesAnyToken, ["AUTH-004"])]
)
def test_a_token_is_judged_by_a_request_that_needs_no_session(
    guard: type[_WantsASessionFirst], broken: list[str]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), guard) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        target = Target(way="http", label="guarded", url=url)
        rules = ("AUTH-001", "AUTH-004")
        order = Order(target=target, revision=OLD, rules=rules, timeout=BOUND)
        judgement = judge_server(order, lambda event: None)
        server.shutdown()
    assert [one.id for one in judgement.failures] == broken


class _RefusesInJson(_AsksForAToken):
    """What is not there is told in JSON; the document lies at the root."""

    at_root = False

    def do_GET(self) -> None:
        found = self.at_root and self.path == "/.well-known/oauth-protected-resource"
        document = {"authorization_servers": ["https://issuer.invalid"]}
        body = json.dumps(document if found else {"error": "Not found"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _HasItAtTheRoot(_RefusesInJson):
    at_root = True


@pytest.mark.parametrize(
    ("guard", "broken"), [(_RefusesInJson, ["AUTH-002"]), (_HasItAtTheRoot, [])]
)
def test_a_refusal_in_json_is_no_metadata(guard: type[_RefusesInJson], broken: list[str]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), guard) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        target = Target(way="http", label="guarded", url=url)
        rules = ("AUTH-002", "AUTH-003")
        order = Order(target=target, revision=OLD, rules=rules, timeout=BOUND)
        judgement = judge_server(order, lambda event: None)
        server.shutdown()
    assert [one.id for one in judgement.failures] == broken


class _AsksForATokenOnTheStream(_AsksForAToken):
    """The same of a server whose conversation begins with a GET."""

    do_GET = _AsksForAToken.do_POST  # noqa: N815 - the name that http.server looks for


def test_a_token_that_is_asked_for_on_the_event_stream_is_the_one_cause() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _AsksForATokenOnTheStream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/sse"
        target = Target(way="sse", label="guarded", url=url)
        judgement = judge_server(Order(target=target, timeout=BOUND), lambda event: None)
        server.shutdown()
    assert [one.id for one in judgement.causes] == ["unauthorized"]
    assert failing(judgement) == []


class _SharesItsAnswers(BaseHTTPRequestHandler):
    """HTTP+SSE before one server object: each answer goes to every stream that is open."""

    streams: ClassVar[list[Any]] = []
    telling: ClassVar[threading.Lock] = threading.Lock()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        with self.telling:  # who has read the endpoint may ask at once, and is answered here
            self.wfile.write(b"event: endpoint\ndata: /message\n\n")
            self.streams.append(self.wfile)
        self.rfile.read(1)  # nothing comes: until the client leaves
        self.streams.remove(self.wfile)
        self.close_connection = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"null")
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()
        if isinstance(body, dict) and "method" in body and "id" in body:
            answer = {"jsonrpc": "2.0", "id": body["id"], **_answered(body["method"])}
            with self.telling:
                for stream in [*self.streams]:
                    with contextlib.suppress(OSError):
                        stream.write(b"data: " + json.dumps(answer).encode() + b"\n\n")

    def log_message(self, *words: object) -> None:
        """Nobody reads it."""


def _answered(method: str) -> dict[str, Any]:
    info = {"name": "sharing", "version": "1"}
    known: dict[str, Any] = {
        "initialize": {"protocolVersion": OLD.value, "capabilities": {"tools": {}}},
        "ping": {},
        "tools/list": {"tools": []},
    }
    if method not in known:
        return {"error": {"code": -32601, "message": "Method not found"}}
    return {"result": {**known[method], **({"serverInfo": info} if method == "initialize" else {})}}


def test_answers_that_reach_another_connection_are_confirmed_with_one_beside() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _SharesItsAnswers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/sse"
        target = Target(way="sse", label="sharing", url=url)
        judgement = judge_server(Order(target=target, timeout=BOUND), lambda event: None)
        server.shutdown()
    stray = result(judgement, "MSG-006")
    assert stray.outcome is Outcome.FAIL
    assert "seen only while two connections were open" in stray.findings[0].message


class _TakesOneStream(_SharesItsAnswers):
    """A server of one client: whoever comes while that one is there is turned away."""

    streams: ClassVar[list[Any]] = []

    def do_GET(self) -> None:
        if self.streams:
            self.send_error(500)
        else:
            super().do_GET()


def test_a_server_that_takes_one_connection_is_not_told_to_be_away() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _TakesOneStream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/sse"
        target = Target(way="sse", label="of one client", url=url)
        judgement = judge_server(Order(target=target, timeout=BOUND), lambda event: None)
        server.shutdown()
    (cause,) = judgement.causes
    assert "a second connection fails while another one is open: " in cause.message
    assert "HTTP 500" in cause.message
    assert [one.id for one in judgement.failures if one.severity is Severity.MUST] == []


# -- the doctor ------------------------------------------------------------------------------------


def examined(*words: str, newer: Revision = NEW) -> DoctorReport:
    command = (sys.executable, "-S", str(STRANGER), *words)
    target = Target(way="stdio", label=words[0], command=command)
    return examine(Order(target=target, timeout=BOUND), newer)


def test_a_server_of_both_eras_is_ready() -> None:
    report = examined("dual-era")
    broken = [(one.id, one.detail) for one in report.items if one.verdict is DoctorVerdict.BREAKS]
    assert broken == []


def test_a_request_that_the_older_half_of_a_server_serves_breaks_nothing() -> None:
    report = examined("dual-era-unbegun")
    broken = [(one.id, one.detail) for one in report.items if one.verdict is DoctorVerdict.BREAKS]
    assert broken == []
    assert report.older is Revision.V2025_06_18
    assert report.notes == ()


def test_what_breaks_is_looked_at_again(tmp_path: Path) -> None:
    report = examined("dual-era-flaky", str(tmp_path / "refused"))
    (item,) = [one for one in report.items if one.id == "version-error"]
    assert item.verdict is DoctorVerdict.UNKNOWN
    assert item.detail.startswith("broke once and not again")
    assert len(item.evidence) == 2


def test_no_question_is_to_blame_for_a_server_that_ends_when_nothing_is_asked() -> None:
    judgement = judged("gives-up", rules=("JSONRPC-001", "COMPL-001", "TOOLS-001"))
    assert failing(judgement) == []
    assert judgement.count(Outcome.INCONCLUSIVE) > 0
    [cause] = [one for one in judgement.causes if one.id == "exited"]
    assert cause.message.startswith("after a plain request, the server exited")
    assert "--env" in cause.hint


OF_THE_FIRST_WORD = ("PROTO-002", "PROTO-003", "PROTO-004")


@pytest.mark.parametrize("startup", [BOUND, 1.0])
def test_a_machine_that_grows_slow_makes_no_server_silent(tmp_path: Path, startup: float) -> None:
    started = str(tmp_path / "started")
    judgement = judged(
        "slow-from-then-on", started, rules=OF_THE_FIRST_WORD, timeout=0.5, startup=startup
    )
    assert failing(judgement) == []


def test_a_version_that_silences_a_server_is_a_failure() -> None:
    judgement = judged("hangs-on-version", rules=OF_THE_FIRST_WORD, timeout=3.0, startup=BOUND)
    silent = "the server did not answer; expected a protocolVersion that exists, or an error"
    assert failing(judgement) == [("PROTO-004", silent)]


@pytest.mark.parametrize(
    "rules", [(), ("CANCEL-101", "CANCEL-102", "CANCEL-103", "STDIO-102", "STDIO-103")]
)
def test_a_server_without_ping_breaks_the_rule_about_ping_and_no_other(
    rules: tuple[str, ...],
) -> None:
    found = [rule for rule, _ in failing(judged("refuses-ping", revision=None, rules=rules))]
    assert found == ([] if rules else ["LIFE-008"])


def test_a_server_without_ping_survives_what_the_doctor_says_to_it() -> None:
    report = examined("refuses-ping", newer=Revision.V2025_11_25)
    found = {one.id: one.verdict for one in report.items}
    assert found["notifications"] is DoctorVerdict.READY
