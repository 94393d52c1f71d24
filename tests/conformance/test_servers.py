"""The demo passes every scenario; a server with one fault fails the check that is made for it."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckStatus, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.conformance.scenario_catalogue import (
    not_offered,
    scenario_named,
    scenario_table,
    scenarios,
)
from mcptest.probe.conformance.server.server_suite import ConformanceOrder, run_server_scenarios
from mcptest.transport.target import Target
from tests.conformance.broken_servers import every_broken_server
from tests.conformance.served import DEMO, OFFERED, ROOT, rows_of, run_all, served

BROKEN = every_broken_server()
FINE = {CheckStatus.SUCCESS, CheckStatus.INFO}
D, E = Revision.V2025_11_25, Revision.V2026_07_28
OFFICIAL = {"2025-03-26": 1, "2025-06-18": 27, "2025-11-25": 33, "2026-07-28": 40}
"""How many scenarios for servers the official suite has, without its extensions."""


def bad(results: list[ScenarioResult]) -> set[str]:
    return {row.id for row in rows_of(results) if row.status.is_bad}


# -- the table


@pytest.mark.parametrize("revision", OFFICIAL)
def test_every_scenario_of_the_official_suite_is_there(revision: str) -> None:
    assert len(scenarios(Side.SERVER, "all", Revision(revision))) == OFFICIAL[revision]


def test_every_broken_server_is_about_a_check_that_there_is() -> None:
    for name, broken in BROKEN.items():
        checks = {
            check.id
            for scenario in scenarios(Side.SERVER, "all", Revision(broken.revision), broken.over)
            for check in scenario.checks_in(Revision(broken.revision), broken.over)
        }
        assert {broken.check, *broken.also} - {"wire-schema-valid"} <= checks, name


def test_every_scenario_has_a_broken_server() -> None:
    broken = {one.check for one in BROKEN.values()}
    without = [
        name
        for name, scenario in scenario_table(Side.SERVER).items()
        if not broken & {check.id for check in scenario.checks}
    ]
    assert without == []


def test_an_unknown_scenario_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="unknown scenario") as caught:
        scenario_named(Side.SERVER, "tool-list")
    assert "tools-list" in (caught.value.hint or "")


@pytest.mark.parametrize("name", not_offered(Side.SERVER))
def test_a_scenario_that_is_not_offered_says_why(name: str) -> None:
    with pytest.raises(UsageError, match="not supported yet"):
        scenario_named(Side.SERVER, name)


# -- the demo


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("revision", [Revision.V2025_06_18, D, E], ids=str)
def test_the_demo_passes_everything(revision: Revision, over: str) -> None:
    with served((*DEMO, *OFFERED), over) as target:
        results = run_all(target, revision)
    assert [(row.id, row.message) for row in rows_of(results) if row.status not in FINE] == []
    assert all(result.checks for result in results)


def test_the_demo_ends_sessions_as_2025_03_26_has_it() -> None:
    with served((*DEMO, *OFFERED), "http") as target:
        (result,) = run_all(target, Revision.V2025_03_26)
    assert {row.status for row in result.checks} == {CheckStatus.SUCCESS}


def test_scenarios_side_by_side_give_the_same_results_in_the_same_order() -> None:
    with served((*DEMO, *OFFERED, "--response", "sse"), "http") as target:
        one, four = run_all(target, E), run_all(target, E, jobs=4)
    assert [result.scenario for result in one] == [result.scenario for result in four]
    told = [[(row.id, row.name, row.status) for row in rows_of(results)] for results in (one, four)]
    assert told[0] == told[1]
    assert bad(one) == set()


# -- what is missing


def test_without_fixtures_nothing_fails_and_every_row_says_what_would_unlock_it() -> None:
    with served(DEMO, "stdio") as target:
        results = run_all(target, D)
    assert bad(results) == set()
    untestable = [row for row in rows_of(results) if row.status is CheckStatus.UNTESTABLE]
    assert len(untestable) > 20
    assert all("--map" in row.message for row in untestable)
    assert not any(result.failed for result in results)


def test_what_is_missing_fails_where_fixtures_are_strict() -> None:
    names = ("tools-call-simple-text", "resources-read-text", "prompts-get-simple")
    with served(DEMO, "stdio") as target:
        results = run_all(target, D, names=names, strict=True)
    assert bad(results) >= set(names)


def test_a_capability_that_is_not_declared_makes_its_scenarios_untestable() -> None:
    command = (*DEMO, *OFFERED, "--hide", "logging,completions,subscribe")
    names = ("logging-set-level", "completion-complete", "resources-subscribe", "ping")
    with served(command, "stdio") as target:
        results = run_all(target, D, names=names)
    statuses = [result.checks[0].status for result in results]
    assert statuses == [CheckStatus.UNTESTABLE] * 3 + [CheckStatus.SUCCESS]
    assert "does not declare logging" in results[0].checks[0].message


def test_a_fixture_may_have_the_users_own_name() -> None:
    order = ConformanceOrder(
        target=Target(way="stdio", label="it", command=DEMO, cwd=str(ROOT)),
        revision=D,
        scenarios=("tools-call-image", "resources-read-text", "resources-templates-read"),
        fixtures={
            "test_image_content": "image",
            "test://static-text": "demo://greeting",
            "test://template/{id}/data": "demo://notes/{id}",
        },
    )
    results = run_server_scenarios(order, tell=lambda result: None)
    assert {row.status for row in rows_of(results)} == {CheckStatus.SUCCESS}


STRICT = """
import json, sys
TEXT = {"content": [{"type": "text", "text": "done"}]}
TOOL = {"name": "greet", "description": "Greets", "inputSchema": {
    "type": "object", "additionalProperties": False, "required": ["who", "times"],
    "properties": {"who": {"type": "string", "minLength": 3}, "times": {"type": "integer"}}}}
PROMPT = {"name": "letter", "description": "A letter", "arguments": [
    {"name": "to", "required": True}, {"name": "about", "required": True},
    {"name": "tone", "required": True}, {"name": "length"}]}
def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}}
    if method == "tools/list": return {"tools": [TOOL]}
    if method == "prompts/list": return {"prompts": [PROMPT]}
    if method == "resources/list": return {"resources": []}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"name": "t", "uriTemplate": "notes://{note}/text"}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": params["uri"]}]} \
            if "{" not in params["uri"] else None
    arguments = params.get("arguments", {})
    if method == "tools/call":
        return TEXT if set(arguments) == {"who", "times"} and len(arguments["who"]) > 2 else None
    if method == "prompts/get":
        text = {"type": "text", "text": json.dumps(arguments)}
        return {"messages": [{"role": "user", "content": text}]} \
            if {"to", "about", "tone"} <= set(arguments) else None
    if method == "completion/complete":
        return {"completion": {"values": []}} if params["argument"]["name"] == "to" else None
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params", {}))
        end = {"result": result} if result else {"error": {"code": -32602, "message": "invalid"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **end}), flush=True)
"""


def test_a_fixture_of_the_users_own_gets_what_it_requires() -> None:
    order = ConformanceOrder(
        target=Target(way="stdio", label="it", command=(sys.executable, "-c", STRICT)),
        revision=D,
        scenarios=(
            *("tools-call-simple-text", "prompts-get-simple", "prompts-get-with-args"),
            *("completion-complete", "resources-templates-read"),
        ),
        fixtures={
            "test_simple_text": "greet",
            "test_simple_prompt": "letter",
            "test_prompt_with_arguments": "letter",
            "test://template/{id}/data": "notes://{note}/text",
        },
    )
    results = run_server_scenarios(order, tell=lambda result: None)
    assert [(row.id, row.message) for row in rows_of(results) if row.status.is_bad] == []
    assert {row.status for row in rows_of(results)} == {CheckStatus.SUCCESS}


def test_a_scenario_outside_of_its_revision_or_transport_is_skipped() -> None:
    names = ("server-stateless", "dns-rebinding-protection")
    with served((*DEMO, *OFFERED), "stdio") as target:
        results = run_all(target, D, names=names)
    assert {row.status for row in rows_of(results)} == {CheckStatus.SKIPPED}
    assert "does not exist in 2025-11-25" in results[0].checks[0].message
    assert "does not apply to stdio" in results[1].checks[0].message


# -- servers that are not there


def test_a_dead_server_has_one_cause_and_nothing_green() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    results = run_all(Target(way="http", label="it", url=f"http://127.0.0.1:{port}/mcp"), E)
    assert len({result.cause for result in results}) == 1
    assert results[0].cause
    assert {row.status for row in rows_of(results)} == {CheckStatus.FAILURE}
    assert all(result.failed for result in results)


def test_a_server_of_another_revision_says_so_as_the_cause() -> None:
    command = (*DEMO, *OFFERED, "--spec-version", "2025-06-18")
    with served(command, "stdio") as target:
        results = run_all(target, D, names=("ping", "tools-list"))
    assert all("does not support 2025-11-25" in result.cause for result in results)


CRASHING = """
import sys
from mcptest.servers.demo import jsonrpc
from mcptest.servers.demo.__main__ import run
from mcptest.servers.demo.start_options import parse_options
decode = jsonrpc._decode
def hear(text):
    if "test_image_content" in text:
        sys.stderr.write("out of memory, token=very-secret-value\\n")
        sys.stderr.flush()
        sys.exit(3)
    return decode(text)
jsonrpc._decode = hear
run(parse_options(sys.argv[1:]))
"""


def test_a_server_that_dies_is_started_again_and_the_suite_goes_on() -> None:
    command = (sys.executable, "-c", CRASHING, *OFFERED)
    names = ("tools-call-simple-text", "tools-call-image", "tools-call-audio")
    with served(command, "stdio") as target:
        before, died, after = run_all(target, D, names=names)
    assert bad([before, after]) == set()
    assert bad([died]) == {"tools-call-image"}
    assert "out of memory" in died.stderr
    assert "exit" in died.checks[0].message


MUTE = "import sys\nfor line in sys.stdin: pass\n"


def test_a_server_that_says_nothing_is_given_up_in_bounded_time() -> None:
    target = Target(way="stdio", label="it", command=(sys.executable, "-c", MUTE))
    order = ConformanceOrder(
        target=target, revision=D, scenarios=("ping",), startup=0.3, timeout=0.3
    )
    (result,) = run_server_scenarios(order, tell=lambda result: None)
    assert "did not answer initialize" in result.cause


CONFUSED = """
import json, sys
from tests.mutants.seams import on_answer, remember_requests
from mcptest.servers.demo.__main__ import run
from mcptest.servers.demo.start_options import parse_options
other, depth = json.loads(sys.argv[1]), int(sys.argv[2])
def confused(value, left):
    if left == 0:
        return other
    if isinstance(value, dict):
        return {name: confused(one, left - 1) for name, one in value.items()}
    if isinstance(value, list):
        return [confused(one, left - 1) for one in value]
    return value
def change(message, request):
    for part in ("result", "error"):
        if part in message:
            message[part] = confused(message[part], depth)
    return message
remember_requests()
known = {"initialize", "server/discover"}
on_answer(lambda request: request["method"] not in known, change)()
run(parse_options(sys.argv[3:]))
"""


@pytest.mark.parametrize("revision", [D, E], ids=str)
@pytest.mark.parametrize(
    ("other", "depth"), [("null", 1), ("7", 2), ("[[]]", 3), ('{"a": {}}', 1), ('"?"', 2)]
)
def test_whatever_a_server_answers_every_scenario_has_its_result(
    revision: Revision, other: str, depth: int
) -> None:
    command = (sys.executable, "-c", CONFUSED, other, str(depth), *OFFERED)
    with served(command, "stdio") as target:
        results = run_all(target, revision, strict=True, timeout=1.0)
    assert all(result.checks for result in results)
    assert bad(results)


def test_who_is_told_to_stop_leaves_the_rest_with_that_cause() -> None:
    told: list[str] = []
    with served((*DEMO, *OFFERED), "stdio") as target:
        results = run_server_scenarios(
            ConformanceOrder(target=target, revision=D, scenarios=("ping", "tools-list")),
            tell=lambda result: told.append(result.scenario),
            should_stop=lambda: bool(told),
        )
    assert told == ["ping"]
    assert "stopped" in results[1].cause


def test_captures_hold_what_was_done_under_its_label(tmp_path: Path) -> None:
    with served((*DEMO, *OFFERED), "stdio") as target:
        results = run_all(target, D, names=("ping", "tools-list"), captures=tmp_path)
    assert results[0].capture == results[1].capture
    assert results[0].repeat == "mcptest conformance server --scenario ping"
    text = Path(results[0].capture).read_text(encoding="utf-8")
    assert "ping: asked" in text
    assert "tools-list: first" in text


# -- the gallery


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_server_fails_its_check_and_no_other(name: str) -> None:
    broken = BROKEN[name]
    command = (sys.executable, "-m", "tests.conformance.serve_broken", name)
    with served(command, broken.over) as target:
        results = run_all(target, Revision(broken.revision))
    assert [result.cause for result in results if result.cause] == []
    assert bad(results) == {broken.check, *broken.also}, broken.about
