"""Every field of a suite, once: what it is called, what it takes, and what it is for."""

from __future__ import annotations

from typing import Any

from mcptest.suite.declared_expectations import (
    EXPECT,
    EXPECT_DOC,
    EXPECTATION,
    LOGGING_EXPECT,
    NOTIFICATIONS_EXPECT,
    ROW,
)
from mcptest.suite.declared_server import SERVER
from mcptest.suite.fields import (
    Choice,
    Declaration,
    Duration,
    Elsewhere,
    Expectations,
    Field,
    Flag,
    JsonTable,
    ListOf,
    ObjectOf,
    Reserved,
    Text,
    Texts,
    TextTable,
)

BLOCKS = (
    "trajectory",
    "assert_resources",
    "assert_prompts",
    "assert_completion",
    "assert_sampling",
    "assert_logging",
    "assert_notifications",
    "assert",
)
LANES = ("compliance", "invariants", "properties")
"""What a file may ask for besides its tests."""
RESERVED = ("lint", "fuzz")


def each_required(*names: str) -> list[dict[str, Any]]:
    return [{"required": [name]} for name in names]


SETUP_STEP = Declaration(
    "setup",
    "A tool call before the test, in the same session.",
    (
        Field("tool", Text(), "The tool to call.", required=True),
        Field("args", JsonTable(), "Its arguments.", templates="values"),
        Field("capture", TextTable(), "Variables by name, each with the path of its value."),
    ),
)

PAGE = Declaration(
    "list",
    "A request for a list; all pages are fetched.",
    (
        Field(
            "cursor",
            Text(may_be_empty=True),
            "Where to start; from the beginning by default.",
            templates="values",
        ),
    ),
)
PROMPT = Declaration(
    "get",
    "A request for one prompt.",
    (
        Field("name", Text(), "The prompt's name.", required=True, templates="values"),
        Field("arguments", TextTable(), "Its arguments.", templates="values"),
    ),
)
REFERENCE = Declaration(
    "ref",
    "What is completed.",
    (
        Field("type", Choice(("ref/prompt", "ref/resource")), "What kind it is.", required=True),
        Field(
            "name",
            Text(),
            "The prompt's name or the resource's URI.",
            required=True,
            templates="values",
        ),
    ),
)
ARGUMENT = Declaration(
    "argument",
    "The argument that is completed.",
    (
        Field("name", Text(), "Its name.", required=True, templates="values"),
        Field(
            "value",
            Text(may_be_empty=True),
            "What was typed so far; empty by default.",
            templates="values",
        ),
    ),
)

_TOOL = Field("tool", Text(), "The tool to call.", required=True)
_ARGS = Field("args", JsonTable(), "Its arguments.", templates="values")
_EXPECT = Field("expect", EXPECTATION, EXPECT_DOC, required=True)

TOOL_BLOCK = Declaration(
    "assert",
    "Calls a tool (`tools/call`).",
    (
        _TOOL,
        _ARGS,
        Field("capture_progress", Flag(), "Ask for progress notifications and count them."),
        _EXPECT,
    ),
)
RESOURCES_BLOCK = Declaration(
    "assert_resources",
    "Lists or reads resources or their templates, or subscribes to one.",
    (
        Field(
            "list",
            ObjectOf(PAGE, nothing_is_empty=True),
            "`resources/list`; exactly one of list, templates and read.",
        ),
        Field(
            "templates",
            ObjectOf(PAGE, nothing_is_empty=True),
            "`resources/templates/list`.",
            ours=True,
        ),
        Field(
            "read",
            Text(),
            "The URI for `resources/read`.",
            nothing_allowed=False,
            templates="values",
        ),
        Field(
            "subscribe",
            Text(),
            "The URI for `resources/subscribe`, before the other request.",
            nothing_allowed=False,
            templates="values",
        ),
        Field(
            "unsubscribe",
            Text(),
            "The URI for `resources/unsubscribe`, after the other request.",
            nothing_allowed=False,
            templates="values",
        ),
        Field(
            "expect_notification",
            Flag(),
            "A `notifications/resources/updated` must arrive; needs subscribe.",
        ),
        Field(
            "expect",
            Expectations(EXPECT, ROW, may_be_empty=True),
            EXPECT_DOC + " Not needed with expect_notification.",
            nothing_allowed=False,
        ),
    ),
    rules={
        "allOf": [
            {"not": {"required": ["list", "read"]}},
            {"not": {"required": ["list", "templates"]}},
            {"not": {"required": ["read", "templates"]}},
            {"anyOf": each_required("list", "templates", "read", "subscribe", "unsubscribe")},
            {
                "anyOf": [
                    {"required": ["expect"], "properties": {"expect": {"minProperties": 1}}},
                    {
                        "properties": {"expect_notification": {"const": True}},
                        "required": ["expect_notification"],
                    },
                ]
            },
            {
                "if": {
                    "properties": {"expect_notification": {"const": True}},
                    "required": ["expect_notification"],
                },
                "then": {"required": ["subscribe"]},
            },
        ]
    },
)
PROMPTS_BLOCK = Declaration(
    "assert_prompts",
    "Lists prompts or gets one.",
    (
        Field(
            "list",
            ObjectOf(PAGE, nothing_is_empty=True),
            "`prompts/list`; exactly one of list and get.",
        ),
        Field("get", ObjectOf(PROMPT), "`prompts/get`.", nothing_allowed=False),
        _EXPECT,
    ),
    rules={"oneOf": each_required("list", "get")},
)
COMPLETION_BLOCK = Declaration(
    "assert_completion",
    "Asks for the completion of an argument (`completion/complete`).",
    (
        Field("ref", ObjectOf(REFERENCE), "What is completed.", required=True),
        Field("argument", ObjectOf(ARGUMENT), "The argument that is completed.", required=True),
        _EXPECT,
    ),
)
SAMPLING_BLOCK = Declaration(
    "assert_sampling",
    "Calls a tool that asks the client's model (`sampling/createMessage`).",
    (
        _TOOL,
        _ARGS,
        Field("mock_text", Text(may_be_empty=True), "The text of the model's answer."),
        Field("mock_model", Text(), "The model's name; `mock` by default."),
        _EXPECT,
    ),
)
LOGGING_BLOCK = Declaration(
    "assert_logging",
    "Sets the log level (`logging/setLevel`), calls a tool and looks at the log messages.",
    (
        Field("set_level", Text(), "The level, such as debug.", required=True),
        Field("tool", Text(), "The tool to call; without one only the level is set."),
        _ARGS,
        Field("expect", ObjectOf(LOGGING_EXPECT), "What must hold of the messages.", required=True),
    ),
)
NOTIFICATIONS_BLOCK = Declaration(
    "assert_notifications",
    "Calls a tool and looks at every notification that arrives during the call.",
    (
        _TOOL,
        _ARGS,
        Field(
            "expect",
            ObjectOf(NOTIFICATIONS_EXPECT),
            "What must hold of the notifications.",
            required=True,
        ),
    ),
)
TRACE_ENTRY = Declaration(
    "trace",
    "One tool call of a trace.",
    (Field("tool", Text(), "The tool.", required=True), Field("args", JsonTable(), "Arguments.")),
)
_KINDS_OVER_TOOLS = ("order", "presence", "absence")
TRAJECTORY_CHECK = Declaration(
    "trajectory",
    "What must hold of a sequence of tool calls. No server is started.",
    (
        Field(
            "type",
            Choice((*_KINDS_OVER_TOOLS, "args_contain")),
            "order: the tools follow each other, maybe with others between; presence: each occurs; "
            "absence: none occurs; args_contain: the tool was called with these arguments.",
            required=True,
        ),
        Field("tools", Texts(), "The tools, for order, presence and absence."),
        Field("tool", Text(), "The tool, for args_contain."),
        Field("args", JsonTable(), "The arguments, for args_contain."),
    ),
    rules={
        "if": {"properties": {"type": {"const": "args_contain"}}},
        "then": {
            "required": ["tool", "args"],
            "properties": {
                "tool": {"not": {"enum": [None, ""]}},
                "args": {"type": "object", "minProperties": 1},
                "tools": {"enum": [None, []]},
            },
        },
        "else": {
            "required": ["tools"],
            "properties": {
                "tools": {"type": "array", "minItems": 1},
                "tool": {"enum": [None, ""]},
                "args": {"enum": [None, {}]},
            },
        },
    },
)

ISOLATION = Field(
    "isolation",
    Choice(("fresh", "shared")),
    "fresh: a server and a copy of the fixture for each test; shared: one for the tests that say "
    "so and name the same server.",
    ours=True,
)
_TIMEOUT = Field("timeout", Duration(), "The longest time that a whole test may take.")
_SKIP_UNLESS_ENV = Field(
    "skip_unless_env", Text(), "Skip when this environment variable is unset or empty."
)
_TAGS = Field("tags", Texts(), "Words to select tests by.", ours=True)
_SETUP = Field(
    "setup",
    ListOf(SETUP_STEP, may_be_empty=True),
    "Tool calls before the test, in the same session.",
)

_TEST_FIELDS = (
    Field("server", ObjectOf(SERVER), "How to start or reach the server."),
    _SETUP,
    _TIMEOUT,
    Field("skip", Flag(), "Do not run this test; it is reported as skipped."),
    _SKIP_UNLESS_ENV,
    _TAGS,
    ISOLATION,
    Field("assert", ObjectOf(TOOL_BLOCK), TOOL_BLOCK.doc, nothing_allowed=False),
    *(
        Field(one.name, ObjectOf(one), one.doc, nothing_allowed=False)
        for one in (
            RESOURCES_BLOCK,
            PROMPTS_BLOCK,
            COMPLETION_BLOCK,
            SAMPLING_BLOCK,
            LOGGING_BLOCK,
            NOTIFICATIONS_BLOCK,
        )
    ),
    Field("trajectory", ListOf(TRAJECTORY_CHECK), TRAJECTORY_CHECK.doc, nothing_allowed=False),
    Field(
        "trace",
        ListOf(TRACE_ENTRY),
        "The calls that a trajectory is checked against.",
        nothing_allowed=False,
    ),
    Field(
        "audit_log",
        Text(),
        "A file with the calls, one JSON object with tool and args in each line.",
        nothing_allowed=False,
        templates="values",
    ),
)
_ONE_BLOCK: dict[str, Any] = {
    "oneOf": each_required(*BLOCKS),
    "dependentRequired": {"trace": ["trajectory"], "audit_log": ["trajectory"]},
    "not": {"required": ["trace", "audit_log"]},
    "if": {"required": ["trajectory"]},
    "then": {
        "anyOf": each_required("trace", "audit_log"),
        "properties": {"setup": {"anyOf": [{"type": "null"}, {"const": []}]}},
    },
}
_RESERVED_FIELDS = tuple(
    Field(name, Reserved(), "Reserved for a later version.", ours=True, nothing_allowed=False)
    for name in RESERVED
)
_LANE_FIELDS = (
    Field(
        "compliance",
        Elsewhere("mcptest.suite.compliance_block", list_of="tests"),
        "Judge the server by a revision of the specification; a bare list is its tests.",
        ours=True,
        nothing_allowed=False,
    ),
    Field(
        "invariants",
        Elsewhere("mcptest.suite.invariants_block", nothing_is_empty=True),
        "Judge what the tests record by the rules for whole sessions.",
        ours=True,
        nothing_allowed=False,
    ),
    Field(
        "properties",
        Elsewhere("mcptest.suite.properties_block", nothing_is_empty=True),
        "Try the server with generated messages, arguments and conversations.",
        ours=True,
        nothing_allowed=False,
    ),
)

SINGLE = Declaration(
    "a test file",
    "The form of mcp-assert: one test in a file.",
    (
        Field("name", Text(), "The test's name; the file's name by default."),
        *_TEST_FIELDS,
        *_LANE_FIELDS,
        *_RESERVED_FIELDS,
    ),
    rules=_ONE_BLOCK,
    has_extensions=True,
)
TEST = Declaration(
    "a test",
    "One of the `tests` of a suite.",
    (Field("name", Text(), "The test's name.", required=True), *_TEST_FIELDS),
    rules=_ONE_BLOCK,
)
DEFAULTS = Declaration(
    "defaults",
    "What holds for every test of the file that does not say otherwise.",
    (
        _TIMEOUT,
        Field("tags", Texts(), "Words that every test has besides its own tags.", ours=True),
        ISOLATION,
        Field(
            "setup",
            ListOf(SETUP_STEP, may_be_empty=True),
            "Tool calls before the setup of each test.",
        ),
        _SKIP_UNLESS_ENV,
    ),
)
SUITE = Declaration(
    "a suite",
    "Our form: several tests in a file, with what they share.",
    (
        Field("server", ObjectOf(SERVER), "The server of all tests that name none.", ours=True),
        Field("defaults", ObjectOf(DEFAULTS), DEFAULTS.doc, ours=True),
        ISOLATION,
        Field(
            "tests",
            ListOf(TEST),
            "The tests, in the order of the report. Needed unless there is compliance.",
            nothing_allowed=False,
            ours=True,
        ),
        *_LANE_FIELDS,
        *_RESERVED_FIELDS,
    ),
    has_extensions=True,
    rules={
        "anyOf": each_required("tests", "compliance", "properties"),
        "not": {
            "required": ["isolation", "defaults"],
            "properties": {
                "isolation": {"type": "string"},
                "defaults": {
                    "type": "object",
                    "required": ["isolation"],
                    "properties": {"isolation": {"type": "string"}},
                },
            },
        },
    },
)
