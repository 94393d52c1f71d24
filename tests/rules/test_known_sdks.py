"""A failure is put down to an SDK only where the server shows its signs and its very answer."""

from __future__ import annotations

import json
import re

import pytest

from mcptest.core.judgement import Commonness, Evidence, FromSdk, Judgement, RuleResult
from mcptest.core.verdict import Outcome, Severity
from mcptest.report.codec import as_json
from mcptest.report.compliance.facts import failures_first
from mcptest.report.compliance.text import compliance_lines
from mcptest.report.html.building import page_of
from mcptest.report.rules import corpus_rules, described_rule, find_any_rule, rule_page
from mcptest.report.stored import read_stored
from mcptest.report.terminal import Style
from mcptest.rules.known_sdks import (
    Behaviour,
    KnownSdk,
    KnownSdks,
    Sign,
    known_sdks,
    with_known_behaviour,
)
from tests.published.readings import load_verdicts
from tests.published.table import HERE, minimal_servers, published_servers
from tests.support.sample_compliance import judgement, report_of, rule_result

UNKNOWN = "mcptest/no_such_method"
BUILT_ON = {
    "mcp-framework 0": ("TypeScript SDK",),
    "FastMCP 2": ("Python SDK 1.x",),
    "FastMCP 3": ("Python SDK 1.x",),
    "FastMCP 4": ("Python SDK 2.x",),
    "fastmcp (TypeScript) 3": ("TypeScript SDK",),
    "fastmcp (TypeScript) 4": ("TypeScript SDK",),
}
"""Frameworks that bring an SDK along: a server with one is a server with the other too."""
TYPESCRIPT = [
    (UNKNOWN, b'{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found"}}'),
    ("initialize", b'{"result":{"protocolVersion":"2025-11-25"},"jsonrpc":"2.0","id":1}'),
]
KNOWN = KnownSdks(
    when="2026-11",
    common={"JSONRPC-002": (31, 38)},
    sdks=(
        KnownSdk(
            "Sample SDK 1.x",
            ("1.2.0", "1.4.0"),
            (Sign("ping", '"pong"'), Sign(UNKNOWN, "nobody knows")),
            (
                Behaviour("JSONRPC-002", ("stdio",), ""),
                Behaviour("PAGE-101", ("stdio", "http"), '"result":'),
            ),
        ),
    ),
)
SHOWN = [("ping", b'{"result":"pong"}'), (UNKNOWN, b'{"error":"nobody knows it"}')]


def failed(rule: str, *received: str, severity: Severity = Severity.SHOULD) -> RuleResult:
    proof = tuple(Evidence("sent", text) for text in received)
    return rule_result(rule, Outcome.FAIL, severity=severity, evidence=proof)


def test_an_sdk_is_recognised_by_all_of_its_signs_and_not_by_some() -> None:
    sdk = KNOWN.recognise(SHOWN)
    assert sdk is not None
    assert sdk.behind(failed("JSONRPC-002", ""), "stdio") == FromSdk(
        "Sample SDK 1.x", "1.2.0 to 1.4.0"
    )
    for sign in SHOWN:
        assert KNOWN.recognise([sign]) is None
    assert KNOWN.recognise([("ping", SHOWN[1][1]), (UNKNOWN, SHOWN[0][1])]) is None


def test_what_some_versions_do_is_put_down_to_those() -> None:
    behaviour = Behaviour("JSONRPC-002", ("stdio",), "", ("1.4.0",))
    sdk = KnownSdk("Sample SDK 1.x", ("1.2.0", "1.4.0"), (), (behaviour,))
    assert sdk.behind(failed("JSONRPC-002", ""), "stdio") == FromSdk("Sample SDK 1.x", "1.4.0")
    assert sdk.behind(failed("JSONRPC-002", ""), "http") is None


@pytest.mark.parametrize(
    ("result", "transport", "is_explained"),
    [
        (failed("JSONRPC-002", ""), "stdio", True),
        (failed("JSONRPC-002", '{"result":{}}'), "stdio", False),
        (failed("JSONRPC-002", ""), "http", False),
        (failed("PAGE-101", '{"result":{}}'), "http", True),
        (failed("PAGE-101", '{"error":{}}'), "http", False),
        (failed("PAGE-102", '{"result":{}}'), "stdio", False),
        (failed("PAGE-101"), "stdio", False),
        (failed("JSONRPC-002"), "stdio", False),
    ],
)
def test_a_failure_comes_from_the_sdk_when_the_answer_is_the_one_that_was_measured(
    result: RuleResult, transport: str, is_explained: bool
) -> None:
    does = KNOWN.sdks[0].does
    assert any(one.explains(result, transport) for one in does) is is_explained


def judged(monkeypatch: pytest.MonkeyPatch, *results: RuleResult) -> Judgement:
    monkeypatch.setattr("mcptest.rules.known_sdks.known_sdks", lambda: KNOWN)
    return with_known_behaviour(judgement(results=results), SHOWN)


def test_failures_say_how_common_they_are_and_where_they_come_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = judged(monkeypatch, failed("JSONRPC-002", ""), failed("RES-102", "x"))
    first, second = found.results
    assert found.sdk == "Sample SDK 1.x"
    assert first.common == Commonness(31, 38, "2026-11")
    assert first.from_sdk == FromSdk("Sample SDK 1.x", "1.2.0 to 1.4.0")
    assert (second.common, second.from_sdk) == (None, None)


def test_what_is_the_servers_own_comes_first_in_every_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = failed("PAGE-101", '{"result":{}}', severity=Severity.MUST)
    found = judged(monkeypatch, known, failed("RES-102", "x"), failed("JSONRPC-002", ""))
    assert [one.id for one in failures_first(found)] == ["RES-102", "PAGE-101", "JSONRPC-002"]
    report = report_of(found)
    text = "\n".join(compliance_lines(report, Style()))
    assert "Failing  1 SHOULD" in text
    assert "From the Sample SDK 1.x  1 MUST, 1 SHOULD" in text
    assert text.index("RES-102") < text.index("From the Sample SDK") < text.index("PAGE-101")
    assert "31 of 38 published servers break this (2026-11)" in text
    assert "the Sample SDK 1.x, not your code" in text
    for rendered in (report.as_markdown(), page_of(report).decode()):
        assert "31 of 38 published servers break this (2026-11)" in rendered
        assert "the Sample SDK 1.x, not your code" in rendered
    first = json.loads(as_json(report))["judgements"][0]["results"][0]
    assert first["from_sdk"] == {"name": "Sample SDK 1.x", "measured": "1.2.0 to 1.4.0"}
    assert read_stored(as_json(report), "r.json").report == report


def test_explain_shows_how_common_it_is_to_break_a_rule() -> None:
    rule = find_any_rule("JSONRPC-002")
    common = known_sdks().commonness("JSONRPC-002")
    assert common is not None
    said = f"{common.broken} of {common.of} published servers break this ({common.when})"
    assert any(said in line for line in rule_page(rule, Style()))
    assert described_rule(rule).common == common  # type: ignore[arg-type]  # no composition


# -- the file ----------------------------------------------------------------------------------


def test_every_behaviour_in_the_file_was_measured_with_every_version_it_names() -> None:
    measured = load_verdicts("minimal.json").configurations
    by_sdk = {server.sdk: server for server in minimal_servers()}
    for sdk in known_sdks().sdks:
        assert all(set(one.measured) <= set(sdk.measured) for one in sdk.does)
        family = re.sub(r" (\d\.x|\(McpServer\)|\d\.x \(McpServer\))$", "", sdk.name)
        for version in sdk.measured:
            server = by_sdk[f"{family} {version}"]
            for one in sdk.does:
                if one.measured and version not in one.measured:
                    continue
                assert one.rule in corpus_rules()
                for transport in set(one.transports) & set(server.ways):
                    ((revision, found),) = measured[f"{server.name} {transport}"].items()
                    broken = found["failing"]
                    assert isinstance(broken, dict)
                    # A version whose newest revision is older than the rule can't break it.
                    holds = one.rule in broken or not _is_in(one.rule, revision)
                    assert holds, (sdk.name, version, one.rule, transport)


def _is_in(rule: str, revision: str) -> bool:
    return any(one.value == revision for one in corpus_rules()[rule].by_revision)


@pytest.mark.parametrize("file", ["verdicts.json", "minimal.json"])
def test_no_server_was_taken_for_one_of_another_sdk(file: str) -> None:
    servers = {one.name: one for one in [*published_servers(), *minimal_servers()]}
    recognised = 0
    for name, found in load_verdicts(file).configurations.items():
        sdk = servers[name.rpartition(" ")[0]].sdk
        for verdicts in found.values():
            claimed = str(verdicts["sdk"]).partition(" (")[0]
            recognised += bool(claimed)
            family, _, major = claimed.rpartition(" ")
            wanted = f"{family} {major[0]}." if major.endswith(".x") else claimed
            stands_on = BUILT_ON.get(servers[name.rpartition(" ")[0]].family, ())
            assert sdk.startswith(wanted) or claimed in stands_on, (name, sdk, claimed)
    assert recognised >= 10, HERE
