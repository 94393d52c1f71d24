"""Every field of a suite, read as it was meant."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from mcptest.suite import model
from mcptest.suite.fields import DECLARED
from mcptest.suite.load import Given
from mcptest.suite.model import (
    ClientCapabilities,
    CompletionArgument,
    CompletionBlock,
    CompletionReference,
    ElicitationMock,
    Expect,
    Expectation,
    ListRequest,
    LoggingBlock,
    LoggingExpect,
    NotificationExpect,
    NotificationsBlock,
    PromptRequest,
    PromptsBlock,
    ResourcesBlock,
    SamplingBlock,
    SamplingMock,
    ServerSpec,
    ToolBlock,
    TraceEntry,
    TrajectoryBlock,
    TrajectoryCheck,
)
from tests.support.suites import problems_in, understood

SERVER = "server: {command: s}\n"
HOLDS = "{not_error: true}"


def one(text: str, given: Given | None = None) -> model.Test:
    (test,) = understood(text, given)
    return test


def block(text: str) -> object:
    return bare(one(SERVER + text).block)


def bare(value: object) -> object:
    """Without places, which have tests of their own."""
    if isinstance(value, tuple):
        return tuple(map(bare, value))
    if not isinstance(value, msgspec.Struct):
        return value
    fields = {f.name: bare(getattr(value, f.name)) for f in msgspec.structs.fields(value)}
    return type(value)(**{**fields, **({"place": None} if "place" in fields else {})})


def expect(text: str) -> object:
    found = block(f"assert:\n  tool: t\n  expect:\n    {text}\n")
    assert isinstance(found, ToolBlock)
    return found.expect


def test_one_test_in_a_file_as_mcp_assert_has_it() -> None:
    test = one(
        """
name: read_file returns file contents
server:
  command: npx
  args: ["@modelcontextprotocol/server-filesystem", "{{fixture}}"]
setup:
  - tool: create
    args: {name: x, deep: [1, {a: null}]}
    capture: {item_id: "$.id"}
  - tool: touch
timeout: 1m30s
skip: yes
skip_unless_env: TOKEN
assert:
  tool: read_file
  args:
    path: "{{fixture}}/{{item_id}}"
  capture_progress: on
  expect:
    not_error: true
    contains: ["Hello, world!"]
""",
        Given(fixture=True),
    )

    assert test.name == "read_file returns file contents"
    assert (test.timeout, test.skip, test.skip_unless_env) == (90.0, True, "TOKEN")
    assert [step.tool for step in test.setup] == ["create", "touch"]
    assert test.setup[0].args == {"name": "x", "deep": [1, {"a": None}]}
    assert test.setup[0].capture == {"item_id": "$.id"}
    assert str(test.setup[1].place) == "suite.yaml:10:5"
    assert bare(test.block) == ToolBlock(
        tool="read_file",
        args={"path": "{{fixture}}/{{item_id}}"},
        expect=Expect(not_error=True, contains=("Hello, world!",)),
        capture_progress=True,
    )
    assert str(test.place) == "suite.yaml:2:1"


def test_a_test_without_a_name_is_named_after_its_file() -> None:
    assert one(SERVER + f"assert: {{tool: t, expect: {HOLDS}}}").name == "suite.yaml"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{contains: [a, 1, true, 1.50]}", Expect(contains=("a", "1", "true", "1.50"))),
        ("{contains_any: [a]}", Expect(contains_any=("a",))),
        ("{not_contains: [a]}", Expect(not_contains=("a",))),
        ("{equals: 42}", Expect(equals="42")),
        ("{equals: ''}", Expect(equals="")),
        ("{equals: ~, not_error: true}", Expect(not_error=True)),
        ("{json_path: {$.a: 1, b.c: yes}}", Expect(json_path={"$.a": 1, "b.c": "yes"})),
        ("{min_results: 0}", Expect(min_results=0)),
        ("{max_results: 0x10}", Expect(max_results=16)),
        ("{min_results: 2.0}", Expect(min_results=2)),
        ("{not_empty: true}", Expect(not_empty=True)),
        ("{not_error: yes}", Expect(not_error=True)),
        ("{is_error: true}", Expect(is_error=True)),
        ("{is_error: false, not_error: true}", Expect(not_error=True)),
        ("{matches_regex: ['^a+$']}", Expect(matches_regex=("^a+$",))),
        ("{file_contains: {a.txt: x}}", Expect(file_contains={"a.txt": "x"})),
        ("{file_contains: {a.txt: }}", Expect(file_contains={"a.txt": ""})),
        ("{file_not_contains: {a.txt: 5}}", Expect(file_not_contains={"a.txt": "5"})),
        ("{file_not_exists: [a.txt]}", Expect(file_not_exists=("a.txt",))),
        ("{file_unchanged: [a.txt]}", Expect(file_unchanged=("a.txt",))),
        ("{net_delta: -3}", Expect(net_delta=-3)),
        ("{in_order: [a, b]}", Expect(in_order=("a", "b"))),
        ("{schema: {type: object}}", Expect(schema={"type": "object"})),
        ("{schema: true}", Expect(schema=True)),
        ("{max_duration: 250ms}", Expect(max_duration=0.25)),
        ("{error_code: -32602}", Expect(error_code=-32602)),
        (
            "{checks: [{target: text, matcher: {contains: x}}]}",
            Expect(checks=(Expectation("text", {"contains": "x"}),)),
        ),
        (
            "[{target: is_error, matcher: {exact: false}}]",
            Expect(checks=(Expectation("is_error", {"exact": False}),)),
        ),
    ],
)
def test_every_expectation(written: str, meant: Expect) -> None:
    assert expect(written) == meant


def test_asking_for_progress_turns_the_counting_on() -> None:
    found = block("assert: {tool: t, expect: {min_progress: 2}}")

    assert found == ToolBlock("t", {}, expect=Expect(min_progress=2), capture_progress=True)


NOT_EMPTY = Expect(not_empty=True)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            "assert_resources: {list: , expect: E}",
            ResourcesBlock(list=ListRequest(), expect=NOT_EMPTY),
        ),
        (
            "assert_resources: {list: {cursor: c}, expect: E}",
            ResourcesBlock(list=ListRequest("c"), expect=NOT_EMPTY),
        ),
        (
            "assert_resources: {templates: {cursor: c}, expect: E}",
            ResourcesBlock(templates=ListRequest("c"), expect=NOT_EMPTY),
        ),
        (
            "assert_resources: {read: x://y, expect: E}",
            ResourcesBlock(read="x://y", expect=NOT_EMPTY),
        ),
        (
            "assert_resources: {subscribe: a, unsubscribe: b, expect_notification: true}",
            ResourcesBlock(subscribe="a", unsubscribe="b", expect_notification=True),
        ),
        (
            "assert_resources: {subscribe: a, expect: {}, expect_notification: true}",
            ResourcesBlock(subscribe="a", expect=Expect(), expect_notification=True),
        ),
        ("assert_prompts: {list: , expect: E}", PromptsBlock(list=ListRequest(), expect=NOT_EMPTY)),
        (
            "assert_prompts: {list: {cursor: c}, expect: E}",
            PromptsBlock(list=ListRequest("c"), expect=NOT_EMPTY),
        ),
        (
            "assert_prompts: {get: {name: p, arguments: {a: 1}}, expect: E}",
            PromptsBlock(get=PromptRequest("p", {"a": "1"}), expect=NOT_EMPTY),
        ),
        (
            "assert_completion: {ref: {type: ref/prompt, name: p}, argument: {name: a}, expect: E}",
            CompletionBlock(
                CompletionReference("ref/prompt", "p"), CompletionArgument("a"), NOT_EMPTY
            ),
        ),
        (
            "assert_sampling: {tool: t, args: {q: 1}, mock_text: m, mock_model: g, expect: E}",
            SamplingBlock("t", {"q": 1}, "m", "g", NOT_EMPTY),
        ),
        ("assert_sampling: {tool: t, expect: E}", SamplingBlock("t", expect=NOT_EMPTY)),
        (
            "assert_logging: {set_level: debug, tool: t, args: {a: 1}, expect: {min_messages: 0}}",
            LoggingBlock("debug", "t", {"a": 1}, LoggingExpect(0)),
        ),
        (
            "assert_logging: {set_level: x, tool: t, expect: {contains_level: [i]}}",
            LoggingBlock("x", "t", {}, LoggingExpect(contains_level=("i",))),
        ),
        (
            "assert_logging: {set_level: x, expect: {contains_data: [d]}}",
            LoggingBlock("x", "", {}, LoggingExpect(contains_data=("d",))),
        ),
        (
            "assert_notifications: {tool: t, args: {a: 1}, expect: {min_count: 1, max_count: 2}}",
            NotificationsBlock("t", {"a": 1}, NotificationExpect(1, 2)),
        ),
        (
            "assert_notifications: {tool: t, expect: {methods: [m], not_methods: [n]}}",
            NotificationsBlock("t", {}, NotificationExpect(None, None, ("m",), ("n",))),
        ),
        (
            "assert_notifications: {tool: t, expect: {contains_data: [c], not_contains_data: [d]}}",
            NotificationsBlock(
                "t", {}, NotificationExpect(contains_data=("c",), not_contains_data=("d",))
            ),
        ),
    ],
)
def test_every_block(written: str, meant: object) -> None:
    assert block(written.replace("expect: E", "expect: {not_empty: true}")) == meant


def test_a_trajectory_needs_no_server() -> None:
    test = one(
        """
trace:
  - tool: a
    args: {x: 1}
  - tool: b
trajectory:
  - {type: order, tools: [a, b]}
  - {type: presence, tools: [a]}
  - {type: absence, tools: [c]}
  - {type: args_contain, tool: a, args: {x: 1}}
"""
    )

    assert test.server is None
    assert bare(test.block) == TrajectoryBlock(
        trajectory=(
            TrajectoryCheck("order", ("a", "b")),
            TrajectoryCheck("presence", ("a",)),
            TrajectoryCheck("absence", ("c",)),
            TrajectoryCheck("args_contain", tool="a", args={"x": 1}),
        ),
        trace=(TraceEntry("a", {"x": 1}), TraceEntry("b")),
    )


def test_a_trajectory_may_take_its_calls_from_a_log_or_a_live_session() -> None:
    checks = "trajectory: [{type: absence, tools: [c]}]\n"

    from_log = one(checks + "audit_log: '{{fixture}}/a.jsonl'", Given(fixture=True)).block
    live = one(checks, Given(trace=True)).block

    assert isinstance(from_log, TrajectoryBlock)
    assert from_log.audit_log == "{{fixture}}/a.jsonl"
    assert isinstance(live, TrajectoryBlock)
    assert live.trace == ()


def server(text: str, given: Given | None = None) -> ServerSpec:
    found = one(f"server: {text}\nassert: {{tool: t, expect: {HOLDS}}}", given).server
    assert found is not None
    return msgspec.structs.replace(found, place=None)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            "{command: s, args: [a, 1, ''], env: {A: 1, B: '${C:-d}', E: }, cwd: /x, docker: i}",
            ServerSpec(
                command="s",
                args=("a", "1", ""),
                env={"A": "1", "B": "${C:-d}", "E": ""},
                cwd="/x",
                docker="i",
            ),
        ),
        ("{command: s, transport: STDIO}", ServerSpec(command="s")),
        (
            "{url: 'http://h/mcp', headers: {X: y}}",
            ServerSpec(url="http://h/mcp", transport="http", headers={"X": "y"}),
        ),
        ("{url: 'http://h/sse'}", ServerSpec(url="http://h/sse", transport="sse")),
        (
            "{url: 'http://h/sse', transport: http}",
            ServerSpec(url="http://h/sse", transport="http"),
        ),
        ("{command: s, spec_version: v2025-06-18}", ServerSpec("s", spec_version="2025-06-18")),
        ("{command: s, spec_version: draft}", ServerSpec("s", spec_version="draft")),
        ("{command: s, spec_version: auto}", ServerSpec("s")),
    ],
)
def test_every_way_to_name_a_server(written: str, meant: ServerSpec) -> None:
    assert server(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{roots: [/a, /b]}", ClientCapabilities(roots=("/a", "/b"))),
        ("{sampling: }", ClientCapabilities(sampling=SamplingMock())),
        (
            "{sampling: {text: t, model: m, stop_reason: s}}",
            ClientCapabilities(sampling=SamplingMock("t", "m", "s")),
        ),
        (
            "{elicitation: {name: x, age: 3}}",
            ClientCapabilities(elicitation=ElicitationMock("accept", {"name": "x", "age": 3})),
        ),
        (
            "{elicitation: {action: decline}}",
            ClientCapabilities(elicitation=ElicitationMock("decline", {})),
        ),
        (
            "{elicitation: {action: accept, content: {a: 1}}}",
            ClientCapabilities(elicitation=ElicitationMock("accept", {"a": 1})),
        ),
        ("{elicitation: {}}", ClientCapabilities()),
    ],
)
def test_what_the_client_can_declare(written: str, meant: ClientCapabilities) -> None:
    assert server(f"{{command: s, client_capabilities: {written}}}").client_capabilities == meant


def test_a_server_on_the_command_line_makes_up_for_one_in_the_file() -> None:
    assert one(f"assert: {{tool: t, expect: {HOLDS}}}", Given(server=True)).server is None
    assert server("{env: {A: b}}", Given(server=True)).env == {"A": "b"}


@pytest.mark.parametrize(
    ("written", "warned"),
    [
        ("{command: s, headers: {A: b}}", "headers has no effect with transport stdio"),
        ("{url: 'http://h', transport: http, env: {A: b}}", "env has no effect with transport"),
    ],
)
def test_what_a_transport_has_no_use_for_is_a_warning(written: str, warned: str) -> None:
    said = problems_in(f"server: {written}\nassert: {{tool: t, expect: {HOLDS}}}")

    assert f"warning: {warned}" in said


SUITE = """
server: {command: shared}
isolation: shared
defaults:
  timeout: 5s
  tags: [all]
  setup: [{tool: login, capture: {token: $.t}}]
  skip_unless_env: CI
tests:
  - name: first
    tags: [own, all]
    setup: [{tool: own, args: {t: "{{token}}"}}]
    assert: {tool: t, args: {t: "{{token}}"}, expect: {not_error: true}}
  - name: second
    server: {url: "http://h/mcp"}
    timeout: 1s
    isolation: fresh
    skip_unless_env: OTHER
    skip: true
    assert_prompts: {list: {}, expect: {not_empty: true}}
"""


def test_tests_of_a_suite_share_what_they_do_not_say_themselves() -> None:
    first, second = understood(SUITE)

    assert [first.name, second.name] == ["first", "second"]
    assert first.server is not None
    assert first.server.command == "shared"
    assert (first.timeout, first.tags, first.isolation) == (5.0, ("all", "own"), "shared")
    assert [step.tool for step in first.setup] == ["login", "own"]
    assert first.skip_unless_env == "CI"
    assert str(first.place) == "suite.yaml:10:5"


def test_a_test_of_a_suite_may_say_otherwise() -> None:
    _, second = understood(SUITE)

    assert second.server is not None
    assert (second.server.command, second.server.url) == ("", "http://h/mcp")
    assert (second.timeout, second.isolation, second.skip) == (1.0, "fresh", True)
    assert second.skip_unless_env == "OTHER"


def test_isolation_may_stand_in_the_defaults() -> None:
    text = SUITE.replace("isolation: shared\ndefaults:", "defaults:\n  isolation: shared")

    assert understood(text)[0].isolation == "shared"


def test_a_skipped_test_needs_no_fixture() -> None:
    test = one(
        SERVER + "skip: true\nassert:\n  tool: t\n  args: {p: '{{fixture}}'}\n"
        f"  expect: {HOLDS}"
    )

    assert test.skip


def test_braces_that_are_no_template_stay_as_they_are() -> None:
    text = "{{#if x}} {{/if}} {{ jinja }} {{}} {x} {{1}}"
    found = block(f"assert: {{tool: t, args: {{a: '{text}'}}, expect: {HOLDS}}}")

    assert isinstance(found, ToolBlock)
    assert found.args == {"a": text}


def test_a_template_in_what_is_looked_for_is_a_text_like_any_other() -> None:
    assert expect("{contains: ['{{name}}']}") == Expect(contains=("{{name}}",))


def test_shared_pieces_by_anchor_and_merge() -> None:
    found = block(
        "setup:\n  - &call {tool: t, args: &args {a: 1}}\n"
        "assert:\n  <<: *call\n  args: {<<: *args, b: 2}\n  expect: {not_error: true}"
    )

    assert found == ToolBlock("t", {"b": 2, "a": 1}, expect=Expect(not_error=True))


PLACES = {"place", "fixture_places"}


@pytest.mark.parametrize("value", list(DECLARED), ids=lambda value: value.__name__)
def test_every_field_of_the_model_is_declared(value: type) -> None:
    assert set(DECLARED[value].by_name) == set(inspect.signature(value).parameters) - PLACES
