"""What a suite says: each class is a value that was understood, and the declaration of its fields.

The loader reads by it, and the editor schema and the reference page are made from it. Nothing here
is substituted yet: templates and environment variables still stand as they were written, because
each run fills them in anew.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec

from mcptest.suite.fields import (
    DECLARED,
    Choice,
    Declaration,
    Expectations,
    Field,
    FieldKind,
    JsonSchema,
    JsonTable,
    LaneBlock,
    ListOf,
    Mark,
    MatcherField,
    ObjectOf,
    Reserved,
    Text,
    Texts,
    Whole,
    declared,
    fields_of,
)
from mcptest.suite.reading import Place

Json: TypeAlias = Any
Strings: TypeAlias = tuple[str, ...]
Table: TypeAlias = Mapping[str, Json]
TableOfTexts: TypeAlias = Mapping[str, str]
Isolation: TypeAlias = Literal["fresh", "shared"]
Action: TypeAlias = Literal["accept", "decline", "cancel"]
TransportKind: TypeAlias = Literal["stdio", "sse", "http"]
REQUIRED, OURS, WRITTEN, EMPTY, VALUES, KEYS = Mark
Count: TypeAlias = int | None
AnyNumber: TypeAlias = Annotated[int | None, Whole(minimum=None)]
_ANY_TEXT = Text(may_be_empty=True)
AnyText: TypeAlias = Annotated[str | None, _ANY_TEXT]
Uri: TypeAlias = Annotated[str | None, WRITTEN, VALUES]
Paths: TypeAlias = Annotated[Strings, VALUES]
TextsByPath: TypeAlias = Annotated[TableOfTexts, KEYS]


# -- `server` ------------------------------------------------------------------------------------


@declared("sampling")
class SamplingMock(msgspec.Struct, frozen=True):
    """The answer to every `sampling/createMessage`."""

    text: Annotated[str, _ANY_TEXT, "The text of the response."] = ""
    model: Annotated[str, "The name of the model (default: `mock`)."] = "mock"
    stop_reason: Annotated[str, "The stop reason (default: `end_turn`)."] = "end_turn"


class ElicitationMock(msgspec.Struct, frozen=True):
    """The static answer to `elicitation/create`."""

    action: Action = "accept"
    content: Table = {}


@declared("client_capabilities")
class ClientCapabilities(msgspec.Struct, frozen=True):
    """What the client declares, and how it answers the server's requests."""

    roots: Annotated[Paths, "Paths that `roots/list` returns."] = ()
    sampling: Annotated[SamplingMock | None, "The response to `sampling/createMessage`.", EMPTY] = (
        None
    )
    elicitation: Annotated[
        ElicitationMock | None,
        JsonTable(),
        "The response to `elicitation/create`: action (accept, decline or cancel) and content; "
        "without content, all other keys are the content.",
    ] = None


@declared("server")
class ServerSpec(msgspec.Struct, frozen=True):
    """How to start or reach the server under test."""

    command: Annotated[str, "The program, found on PATH; never run through a shell."] = ""
    args: Annotated[Strings, Texts(may_be_empty=True), "Its arguments.", VALUES] = ()
    env: Annotated[
        TableOfTexts,
        "Environment variables for it. `${VAR}`, `$VAR` and `${VAR:-default}` are filled in.",
        VALUES,
    ] = {}
    cwd: Annotated[str | None, "The working directory.", OURS, VALUES] = None
    clean_env: Annotated[
        bool,
        "It sees only what programs need of the caller's environment (`PATH`, `HOME`, the "
        "locale and the like) and what env names; by default all of it.",
        OURS,
    ] = False
    transport: Annotated[
        TransportKind,
        Choice(("stdio", "sse", "http"), any_case=True),
        "How to talk to it; by default stdio for a command, and for a URL sse if its path ends "
        "with /sse, else http.",
    ] = "stdio"
    url: Annotated[str, "Its URL. `${VAR}` and `${VAR:-default}` are filled in."] = ""
    headers: Annotated[TableOfTexts, "HTTP headers; variables are filled in as in env."] = {}
    docker: Annotated[str, "The image to run the command in."] = ""
    client_capabilities: Annotated[
        ClientCapabilities | None, "What the client declares to the server."
    ] = None
    spec_version: Annotated[
        str, "The revision of the specification to use (default: `auto`).", OURS
    ] = "auto"
    place: Place | None = None


# -- `expect`, of each of its kinds --------------------------------------------------------------


@declared("check")
class Expectation(msgspec.Struct, frozen=True):
    """One row of the list form of `expect`: a part of the answer, and what must hold of it."""

    target: Annotated[str, "The part of the response to check.", REQUIRED, OURS]
    matcher: Annotated[
        Table,
        MatcherField(),
        "What must hold: one matcher by its name, with its argument.",
        REQUIRED,
        OURS,
    ]


@declared("expect", must_ask=True)
class Expect(msgspec.Struct, frozen=True):
    """What must hold of the response. At least one field must ask for something."""

    contains: Annotated[Strings, "Strings that the response must all contain."] = ()
    contains_any: Annotated[
        Strings, "Strings of which the response must contain at least one."
    ] = ()
    not_contains: Annotated[Strings, "Strings that the response must not contain."] = ()
    equals: Annotated[AnyText, "The complete response, except surrounding white space."] = None
    json_path: Annotated[Table, "Expected values by path in the response, read as JSON."] = {}
    min_results: Annotated[Count, "Minimum number of items in the array of the response."] = None
    max_results: Annotated[Count, "Maximum number of items in the array of the response."] = None
    not_empty: Annotated[bool, "The response is not empty, null, [] or {}."] = False
    not_error: Annotated[bool, "The tool did not report an error."] = False
    is_error: Annotated[bool, "The tool reported an error (isError)."] = False
    matches_regex: Annotated[Strings, "Patterns (RE2) that the response must all match."] = ()
    file_contains: Annotated[
        TextsByPath, "Files by path, each with a string that it must contain."
    ] = {}
    file_not_contains: Annotated[
        TextsByPath, "Files by path, each with a string that it must not contain."
    ] = {}
    file_not_exists: Annotated[Paths, "Paths at which nothing may exist after the call."] = ()
    file_unchanged: Annotated[Paths, "Files that the call must not change."] = ()
    net_delta: Annotated[AnyNumber, "The number in the field net_delta of the response."] = None
    in_order: Annotated[Strings, "Strings that must follow each other in the response."] = ()
    min_progress: Annotated[
        Count,
        Whole(idle=0),
        "The least number of progress notifications during the call; only in `assert`, where "
        "it turns capture_progress on.",
    ] = None
    schema: Annotated[
        Json,
        JsonSchema(),
        "A JSON Schema for the structured content, or for the text read as JSON.",
        OURS,
    ] = None
    max_duration: Annotated[float | None, "Maximum time for the call.", OURS] = None
    error_code: Annotated[AnyNumber, "The code of the expected JSON-RPC error.", OURS] = None
    checks: Annotated[
        tuple[Expectation, ...], "Rows of the list form, beside the other fields.", OURS
    ] = ()


@declared("assert_logging.expect", must_ask=True)
class LoggingExpect(msgspec.Struct, frozen=True):
    """What must hold of the log messages that arrive during the call."""

    min_messages: Annotated[Count, "Minimum number of messages."] = None
    contains_level: Annotated[Strings, "Levels that must all occur."] = ()
    contains_data: Annotated[Strings, "Strings that the data of some message must contain."] = ()


@declared("assert_notifications.expect", must_ask=True)
class NotificationExpect(msgspec.Struct, frozen=True):
    """What must hold of the notifications that arrive during the call."""

    min_count: Annotated[Count, "Minimum number of notifications."] = None
    max_count: Annotated[Count, "Maximum number of notifications."] = None
    methods: Annotated[Strings, "Methods that must all occur."] = ()
    not_methods: Annotated[Strings, "Methods that must not occur."] = ()
    contains_data: Annotated[
        Strings, "Strings that the params of some notification must contain."
    ] = ()
    not_contains_data: Annotated[Strings, "Strings that no notification's params may contain."] = ()


EXPECT, ROW = DECLARED[Expect], DECLARED[Expectation]
_EXPECT_DOC = "What must hold of the response."
Tool: TypeAlias = Annotated[str, "The tool to call.", REQUIRED]
Args: TypeAlias = Annotated[Table, "Its arguments.", VALUES]
Expected: TypeAlias = Annotated[Expect, Expectations(EXPECT, ROW), _EXPECT_DOC, REQUIRED]


# -- The eight blocks, and what is in them -------------------------------------------------------


@declared("setup")
class SetupStep(msgspec.Struct, frozen=True):
    """A tool call before the test, in the same session."""

    tool: Tool
    args: Args = {}
    capture: Annotated[TableOfTexts, "Variables by name, each with the path of its value."] = {}
    place: Place | None = None


@declared("list")
class ListRequest(msgspec.Struct, frozen=True):
    """A request for a list; all pages are fetched."""

    cursor: Annotated[AnyText, "The cursor to start at (default: the first page).", VALUES] = None


Listing: TypeAlias = Annotated[ListRequest | None, EMPTY]


@declared("get")
class PromptRequest(msgspec.Struct, frozen=True):
    """A request for one prompt."""

    name: Annotated[str, "The prompt's name.", REQUIRED, VALUES]
    arguments: Annotated[TableOfTexts, "Its arguments.", VALUES] = {}


@declared("ref")
class CompletionReference(msgspec.Struct, frozen=True):
    """What is completed."""

    type: Annotated[Literal["ref/prompt", "ref/resource"], "What kind it is.", REQUIRED]
    name: Annotated[str, "The prompt's name or the resource's URI.", REQUIRED, VALUES]


@declared("argument")
class CompletionArgument(msgspec.Struct, frozen=True):
    """The argument that is completed."""

    name: Annotated[str, "Its name.", REQUIRED, VALUES]
    value: Annotated[str, _ANY_TEXT, "The text so far (default: empty).", VALUES] = ""


@declared("assert")
class ToolBlock(msgspec.Struct, frozen=True):
    """Calls a tool (`tools/call`)."""

    tool: Tool
    args: Args = {}
    capture_progress: Annotated[bool, "Ask for progress notifications and count them."] = False
    expect: Expected = Expect()


@declared("assert_resources")
class ResourcesBlock(msgspec.Struct, frozen=True):
    """Lists or reads resources or their templates, or subscribes to one."""

    list: Annotated[Listing, "`resources/list`; exactly one of list, templates and read."] = None
    templates: Annotated[Listing, "`resources/templates/list`.", OURS] = None
    read: Annotated[Uri, "The URI for `resources/read`."] = None
    subscribe: Annotated[Uri, "The URI for `resources/subscribe`, before the other request."] = None
    unsubscribe: Annotated[Uri, "The URI for `resources/unsubscribe`, after the other request."] = (
        None
    )
    expect_notification: Annotated[
        bool, "A `notifications/resources/updated` must arrive; needs subscribe."
    ] = False
    expect: Annotated[
        Expect,
        Expectations(EXPECT, ROW, may_be_empty=True),
        _EXPECT_DOC + " Not needed with expect_notification.",
        WRITTEN,
    ] = Expect()


@declared("assert_prompts")
class PromptsBlock(msgspec.Struct, frozen=True):
    """Lists prompts or gets one."""

    list: Annotated[Listing, "`prompts/list`; exactly one of list and get."] = None
    get: Annotated[PromptRequest | None, "`prompts/get`.", WRITTEN] = None
    expect: Expected = Expect()


@declared("assert_completion")
class CompletionBlock(msgspec.Struct, frozen=True):
    """Asks for the completion of an argument (`completion/complete`)."""

    ref: Annotated[CompletionReference, "What is completed.", REQUIRED]
    argument: Annotated[CompletionArgument, "The argument that is completed.", REQUIRED]
    expect: Expected


@declared("assert_sampling")
class SamplingBlock(msgspec.Struct, frozen=True):
    """Calls a tool that asks the client's model (`sampling/createMessage`)."""

    tool: Tool
    args: Args = {}
    mock_text: Annotated[str, _ANY_TEXT, "The text of the model's response."] = ""
    mock_model: Annotated[str, "The model's name; `mock` by default."] = "mock"
    expect: Expected = Expect()

    @property
    def mock(self) -> SamplingMock:
        return SamplingMock(self.mock_text, self.mock_model)


@declared("assert_logging")
class LoggingBlock(msgspec.Struct, frozen=True):
    """Sets the log level (`logging/setLevel`), calls a tool and looks at the log messages."""

    set_level: Annotated[str, "The log level, such as debug.", REQUIRED]
    tool: Annotated[str, "The tool to call; without one only the level is set."] = ""
    args: Args = {}
    expect: Annotated[LoggingExpect, "What must hold of the messages.", REQUIRED] = LoggingExpect()


@declared("assert_notifications")
class NotificationsBlock(msgspec.Struct, frozen=True):
    """Calls a tool and looks at every notification that arrives during the call."""

    tool: Tool
    args: Args = {}
    expect: Annotated[NotificationExpect, "What must hold of the notifications.", REQUIRED] = (
        NotificationExpect()
    )


@declared("trace")
class TraceEntry(msgspec.Struct, frozen=True):
    """One tool call of a trace."""

    tool: Annotated[str, "The tool.", REQUIRED]
    args: Annotated[Table, "Arguments."] = {}


@declared("trajectory")
class TrajectoryCheck(msgspec.Struct, frozen=True):
    """What must hold of a sequence of tool calls. No server is started."""

    type: Annotated[
        Literal["order", "presence", "absence", "args_contain"],
        "order: the tools follow each other, maybe with others between; presence: each occurs; "
        "absence: none occurs; args_contain: the tool was called with these arguments.",
        REQUIRED,
    ]
    tools: Annotated[Strings, "The tools, for order, presence and absence."] = ()
    tool: Annotated[str, "The tool, for args_contain."] = ""
    args: Annotated[Table, "The arguments, for args_contain."] = {}


class TrajectoryBlock(msgspec.Struct, frozen=True):
    """`trajectory`, with the calls that it is checked against."""

    trajectory: Annotated[tuple[TrajectoryCheck, ...], DECLARED[TrajectoryCheck].doc, WRITTEN]
    trace: Annotated[
        tuple[TraceEntry, ...], "The calls that a trajectory is checked against.", WRITTEN
    ] = ()
    audit_log: Annotated[
        str,
        "A file with the calls, one JSON object with tool and args in each line.",
        WRITTEN,
        VALUES,
    ] = ""


Block: TypeAlias = (
    ToolBlock
    | ResourcesBlock
    | PromptsBlock
    | CompletionBlock
    | SamplingBlock
    | LoggingBlock
    | NotificationsBlock
    | TrajectoryBlock
)


# -- Tests and files -----------------------------------------------------------------------------


class Test(msgspec.Struct, frozen=True):
    """One test, as written."""

    name: str
    block: Block
    place: Place
    server: Annotated[ServerSpec | None, "How to start or reach the server."] = None
    """None only for a trajectory, which needs none, or when --server must provide it."""
    setup: Annotated[
        tuple[SetupStep, ...], "Tool calls before the test, in the same session.", EMPTY
    ] = ()
    timeout: Annotated[float | None, "Maximum time for a whole test."] = None
    skip: Annotated[bool, "Skip this test and report it as skipped."] = False
    skip_unless_env: Annotated[str, "Skip when this environment variable is unset or empty."] = ""
    tags: Annotated[Strings, "Tags for selecting tests.", OURS] = ()
    isolation: Annotated[
        Isolation | None,
        "fresh: a server and a copy of the fixture for each test; shared: one for the tests that "
        "say so and name the same server.",
        OURS,
    ] = None
    single: bool = False
    """Whether it is the one test of its file, at the top of it: the form of mcp-assert."""


class Suite(msgspec.Struct, frozen=True):
    """All tests that were asked for, in the order in which they are reported."""

    tests: tuple[Test, ...]
    files: Strings = ()


BLOCKS = (
    *("trajectory", "assert_resources", "assert_prompts", "assert_completion"),
    *("assert_sampling", "assert_logging", "assert_notifications", "assert"),
)
LANES = ("compliance", "invariants", "properties")
"""What a file may ask for besides its tests."""
RESERVED = ("lint", "fuzz")

_OF_TEST = {field.name: field for field in fields_of(Test)}
_TEST_FIELDS = (
    *_OF_TEST.values(),
    *(
        Field(one.name, ObjectOf(one), one.doc, nothing_allowed=False)
        for one in (DECLARED[of] for of in get_args(Block) if of in DECLARED)
    ),
    *fields_of(TrajectoryBlock),
)
_BESIDE_TESTS: dict[str, tuple[FieldKind, str]] = {
    "compliance": (
        LaneBlock("compliance", list_of="tests"),
        "Judge the server by a revision of the specification; a bare list is its tests.",
    ),
    "invariants": (
        LaneBlock("invariants", nothing_is_empty=True),
        "Judge what the tests record by the rules for whole sessions.",
    ),
    "properties": (
        LaneBlock("properties", nothing_is_empty=True),
        "Try the server with generated messages, arguments and conversations.",
    ),
    **dict.fromkeys(RESERVED, (Reserved(), "Reserved for a later version.")),
}
_FILE_FIELDS = tuple(
    Field(name, *said, ours=True, nothing_allowed=False) for name, said in _BESIDE_TESTS.items()
)

SINGLE = Declaration(
    "a test file",
    "The form of mcp-assert: one test in a file.",
    (
        Field("name", Text(), "The test's name; the file's name by default."),
        *_TEST_FIELDS,
        *_FILE_FIELDS,
    ),
    has_extensions=True,
)
TEST = Declaration(
    "a test",
    "One of the `tests` of a suite.",
    (Field("name", Text(), "The test's name.", required=True), *_TEST_FIELDS),
)
DEFAULTS = Declaration(
    "defaults",
    "Defaults for every test of the file.",
    (
        _OF_TEST["timeout"],
        Field("tags", Texts(), "Tags of every test, in addition to its own.", ours=True),
        _OF_TEST["isolation"],
        Field("setup", _OF_TEST["setup"].kind, "Tool calls before the setup of each test."),
        _OF_TEST["skip_unless_env"],
    ),
)
SUITE = Declaration(
    "a suite",
    "Our form: several tests in a file, with what they share.",
    (
        Field(
            "server",
            _OF_TEST["server"].kind,
            "The server of all tests without their own.",
            ours=True,
        ),
        Field("defaults", ObjectOf(DEFAULTS), DEFAULTS.doc, ours=True),
        _OF_TEST["isolation"],
        Field(
            "tests",
            ListOf(TEST),
            "The tests, in the order of the report. Needed unless there is compliance.",
            nothing_allowed=False,
            ours=True,
        ),
        *_FILE_FIELDS,
    ),
    has_extensions=True,
)
