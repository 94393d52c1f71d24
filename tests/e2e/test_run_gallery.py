"""Every misbehaving server, through `mcptest run`: the verdict, the cause, and nothing left."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcptest.core.errors import ErrorKind
from tests.e2e.suite_runs import Site
from tests.rogues.gallery import CASES, Case, command
from tests.rogues.http_script import Script, Wire, always, reply, serving

TIMEOUT = 3.0
"""For those that talk without end."""
SILENT = 12.0
"""For those that come to a point and then hang: a busy machine takes its time until they have."""
ANSWERING = 40.0
"""For those that answer or end: eight at a time, on a machine that does other things too."""
PATIENT = 600.0
"""For those that move very many bytes and then answer, on a machine that does other things too."""
ENDING = 120.0
"""To end a server that does not want to, and to say so."""
GROUPS = 2

FAILS_ALL_THE_SAME = {
    "result-and-error": "to initialize is malformed: both result and error are present",
    "no-jsonrpc-member": 'the response is malformed: jsonrpc: "2.0" is missing',
}
CAUSES = {
    # what the transport says at the very end is told to someone who waits in another way
    "answers-half-a-line": "in the middle of a line, after 20 bytes",
    "writes-one-byte-and-hangs": "in the middle of a line, after 1 bytes",
    "stops-itself": "the server process is stopped",
    "stdin-never-read": "did not answer server/discover or initialize",
    "echoes-the-client": "initialize within",
    "wrong-id": "it sent only a response with the unknown id 999",
    "id-as-string": "a string; the request has ",
    "batch-where-none-belongs": "the response is malformed: it stands in an array of messages",
    "id-is-null": "it sent only a response with the unknown id null",
    "pretty-printed": "it is JSON over several lines",
    "content-length-framing": "it is framed by headers, as LSP messages are",
    "utf16": "it is UTF-16",
    "endless-notifications": " notifications",
    "endless-line": "a line on stdout is longer than 16777216 bytes",
    "stderr-endless": "stderr: spam",
}


def expected(case: Case) -> str:
    if case.name in FAILS_ALL_THE_SAME:
        return "FAIL"
    return "PASS" if case.outcome == "answered" else "FAIL"


def cause(case: Case) -> str:
    if case.name in CAUSES or case.name in FAILS_ALL_THE_SAME:
        return CAUSES.get(case.name) or FAILS_ALL_THE_SAME[case.name]
    if isinstance(case.outcome, ErrorKind) and case.phrase:
        return case.phrase
    return "initialize within"


def as_test(case: Case, site: Site) -> dict[str, Any]:
    program, *arguments = command(case)
    env = {"ROGUE_PIDS": str(site.pids)}
    return {
        "name": case.name,
        "server": {"command": program, "args": arguments, "env": env},
        "assert": {"tool": "echo", "args": {"text": "x"}, "expect": {"contains": ["hello"]}},
        "timeout": f"{limit(case)}s",
    }


def limit(case: Case) -> float:
    if case.large and case.outcome != "silence":
        return PATIENT
    if case.outcome in ("silence", ErrorKind.TIMEOUT):
        return TIMEOUT if case.large else SILENT
    return ANSWERING


def assert_judged(site: Site, cases: list[Case], jobs: int) -> None:
    suite = site.suite([as_test(case, site) for case in cases])
    began = time.monotonic()
    done = site.run(suite, "--json", "--jobs", str(jobs), bound=2 * PATIENT)
    lasted = time.monotonic() - began
    results = site.results(done)
    assert {name: each["status"] for name, each in results.items()} == {
        case.name: expected(case) for case in cases
    }
    for case in cases:
        if expected(case) == "FAIL":
            assert cause(case) in results[case.name]["detail"], case.name
        took = results[case.name]["duration_ms"] / 1000
        assert took < limit(case) + ENDING, f"{case.name} hung"
    assert list(results) == [case.name for case in cases], "the order of the suite"
    assert done.code == 1
    assert "internal error" not in done.said
    site.assert_nothing_is_left()
    # so many at a time
    assert lasted < sum(limit(case) + ENDING for case in cases) / jobs + ENDING


@pytest.mark.parametrize("part", range(GROUPS))
def test_a_misbehaving_server_is_judged_and_leaves_nothing(site: Site, part: int) -> None:
    small = [case for case in CASES if not case.large]
    assert_judged(site, small[part::GROUPS], jobs=8)


def test_a_server_that_says_too_much_is_judged_and_leaves_nothing(site: Site) -> None:
    assert_judged(site, [case for case in CASES if case.large], jobs=2)


def test_a_shared_server_of_every_kind_is_judged_too(site: Site) -> None:
    """One rogue after the other in one job: what one does must not reach the next."""
    cases = [case for case in CASES if case.family in {"exit", "noise", "end"} and not case.large]
    cases = [case for case in cases if case.outcome != "silence"]
    suite = site.suite([as_test(case, site) for case in cases], isolation="shared")
    done = site.run(suite, "--json", "--jobs", "2")
    judged = {name: each["status"] for name, each in site.results(done).items()}
    assert judged == {case.name: expected(case) for case in cases}
    site.assert_nothing_is_left()


# -- HTTP ------------------------------------------------------------------------------------


def hangs(wire: Wire) -> None:
    wire.request()
    wire.wait_for_hang_up()


def hangs_up(wire: Wire) -> None:
    wire.request()
    wire.reset()


def endless_headers(wire: Wire) -> None:
    wire.request()
    wire.send(b"HTTP/1.1 200 OK\r\n")
    wire.send_for_ever(b"X-More: and more\r\n" * 1000)


def endless_body(wire: Wire) -> None:
    wire.request()
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    wire.send_for_ever(b" " * 65536)


HTML = b"<!doctype html><h1>It broke</h1>"
HTTP_CASES: dict[str, tuple[Script, str]] = {
    "is silent": (hangs, "did not answer"),
    "resets the connection": (hangs_up, "connection"),
    "answers with HTML": (always(reply(HTML, kind="text/html")), "text/html"),
    "answers 500": (always(reply(b"oops", status="500 Internal Server Error")), "500"),
    "answers no JSON": (always(reply(b"{")), "is not a message"),
    "sends headers without end": (endless_headers, "headers"),
    "sends a body without end": (endless_body, "larger than"),
}


ENDS = HTTP_CASES.keys() - {"is silent"}


@pytest.mark.parametrize("name", HTTP_CASES)
def test_a_misbehaving_http_server_fails_its_test_in_time(site: Site, name: str) -> None:
    script, phrase = HTTP_CASES[name]
    with serving(script) as server:
        suite = site.suite(
            [
                {
                    "name": name,
                    "server": {"transport": "http", "url": server.url},
                    "assert": {"tool": "echo", "args": {}, "expect": {"not_error": True}},
                }
            ]
        )
        done = site.run(suite, "--json", "--timeout", "40s" if name in ENDS else "2s")
        server.hang_up()
    result = site.results(done)[name]
    assert (result["status"], done.code) == ("FAIL", 1)
    assert phrase in result["detail"]
    site.assert_nothing_is_left()


def test_a_server_that_nobody_answers_for_fails_its_test(site: Site) -> None:
    suite = site.suite(
        [
            {
                "name": "refused",
                "server": {"transport": "http", "url": "http://127.0.0.1:1/mcp"},
                "assert": {"tool": "echo", "args": {}, "expect": {"not_error": True}},
            }
        ]
    )
    done = site.run(suite, "--json")
    assert done.code == 1
    assert "refused" in site.results(done)["refused"]["detail"]
