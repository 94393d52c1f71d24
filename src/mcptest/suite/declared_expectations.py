"""Every field of `expect`, of each of its kinds, once."""

from __future__ import annotations

from mcptest.suite.fields import (
    Declaration,
    Duration,
    Expectations,
    Field,
    Flag,
    JsonSchema,
    JsonTable,
    ListOf,
    Matcher,
    Text,
    Texts,
    TextTable,
    Whole,
)

ROW = Declaration(
    "check",
    "One row of the list form of `expect`: a part of the answer, and what must hold of it.",
    (
        Field("target", Text(), "The part of the answer.", required=True, ours=True),
        Field(
            "matcher",
            Matcher(),
            "What must hold: one matcher by its name, with its argument.",
            required=True,
            ours=True,
        ),
    ),
)

EXPECT = Declaration(
    "expect",
    "What must hold of the answer. At least one field must ask for something.",
    (
        Field("contains", Texts(), "Texts that must all be in the answer."),
        Field("contains_any", Texts(), "Texts of which at least one must be in the answer."),
        Field("not_contains", Texts(), "Texts that must not be in the answer."),
        Field(
            "equals",
            Text(may_be_empty=True),
            "The whole answer, apart from white space around it.",
        ),
        Field("json_path", JsonTable(), "Values that the answer, read as JSON, has at paths."),
        Field("min_results", Whole(), "The least number of items in the array of the answer."),
        Field("max_results", Whole(), "The largest number of items in the array of the answer."),
        Field("not_empty", Flag(), "The answer is not empty, null, [] or {}."),
        Field("not_error", Flag(), "The tool did not report an error."),
        Field("is_error", Flag(), "The tool reported an error (isError), as it should."),
        Field("matches_regex", Texts(), "Patterns (RE2) that the answer must all match."),
        Field(
            "file_contains",
            TextTable(),
            "Files by path, each with a text that it must hold.",
            templates="keys",
        ),
        Field(
            "file_not_contains",
            TextTable(),
            "Files by path, each with a text that it must not hold.",
            templates="keys",
        ),
        Field(
            "file_not_exists",
            Texts(),
            "Paths at which nothing may exist after the call.",
            templates="values",
        ),
        Field(
            "file_unchanged",
            Texts(),
            "Files that the call must leave as they were.",
            templates="values",
        ),
        Field("net_delta", Whole(minimum=None), "The number in the field net_delta of the answer."),
        Field("in_order", Texts(), "Texts that must follow each other in the answer."),
        Field(
            "min_progress",
            Whole(idle=0),
            "The least number of progress notifications during the call; only in `assert`, where "
            "it turns capture_progress on.",
        ),
        Field(
            "schema",
            JsonSchema(),
            "A JSON Schema for the structured content, or for the text read as JSON.",
            ours=True,
        ),
        Field("max_duration", Duration(), "The longest time that the call may take.", ours=True),
        Field(
            "error_code",
            Whole(minimum=None),
            "The code of the JSON-RPC error that must be the answer.",
            ours=True,
        ),
        Field("checks", ListOf(ROW), "Rows of the list form, beside the other fields.", ours=True),
    ),
    must_ask=True,
)
EXPECTATION = Expectations(EXPECT, ROW)
EXPECT_DOC = "What must hold of the answer."

LOGGING_EXPECT = Declaration(
    "assert_logging.expect",
    "What must hold of the log messages that arrive during the call.",
    (
        Field("min_messages", Whole(), "The least number of messages."),
        Field("contains_level", Texts(), "Levels of which each must occur."),
        Field("contains_data", Texts(), "Texts that must each be in some message's data."),
    ),
    must_ask=True,
)

NOTIFICATIONS_EXPECT = Declaration(
    "assert_notifications.expect",
    "What must hold of the notifications that arrive during the call.",
    (
        Field("min_count", Whole(), "The least number of notifications."),
        Field("max_count", Whole(), "The largest number of notifications."),
        Field("methods", Texts(), "Methods of which each must occur."),
        Field("not_methods", Texts(), "Methods that must not occur."),
        Field("contains_data", Texts(), "Texts that must each be in some notification's params."),
        Field("not_contains_data", Texts(), "Texts that must be in no notification's params."),
    ),
    must_ask=True,
)
