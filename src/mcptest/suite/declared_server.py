"""Every field of `server`, once."""

from __future__ import annotations

from mcptest.suite.fields import (
    Choice,
    Declaration,
    Field,
    Flag,
    JsonTable,
    ObjectOf,
    Text,
    Texts,
    TextTable,
)

SAMPLING_ANSWER = Declaration(
    "sampling",
    "The answer to every `sampling/createMessage`.",
    (
        Field("text", Text(may_be_empty=True), "The text of the answer."),
        Field("model", Text(), "The model that is said to have answered; `mock` by default."),
        Field("stop_reason", Text(), "Why it stopped; `end_turn` by default."),
    ),
)
CLIENT_CAPABILITIES = Declaration(
    "client_capabilities",
    "What the client declares, and how it answers the server's requests.",
    (
        Field("roots", Texts(), "Paths that `roots/list` is answered with.", templates="values"),
        Field(
            "sampling",
            ObjectOf(SAMPLING_ANSWER, nothing_is_empty=True),
            "The answer to `sampling/createMessage`.",
        ),
        Field(
            "elicitation",
            JsonTable(),
            "The answer to `elicitation/create`: action (accept, decline or cancel) and content; "
            "without content, all other keys are the content.",
        ),
    ),
)
SERVER = Declaration(
    "server",
    "How to start or reach the server under test.",
    (
        Field("command", Text(), "The program, found on PATH; never run through a shell."),
        Field("args", Texts(may_be_empty=True), "Its arguments.", templates="values"),
        Field(
            "env",
            TextTable(),
            "Environment variables for it. `${VAR}`, `$VAR` and `${VAR:-default}` are filled in.",
            templates="values",
        ),
        Field("cwd", Text(), "The folder in which it is started.", ours=True, templates="values"),
        Field(
            "clean_env",
            Flag(),
            "It sees only what programs need of the caller's environment (`PATH`, `HOME`, the "
            "locale and the like) and what env names; by default all of it.",
            ours=True,
        ),
        Field(
            "transport",
            Choice(("stdio", "sse", "http"), any_case=True),
            "How to talk to it; by default stdio for a command, and for a URL sse if its path ends "
            "with /sse, else http.",
        ),
        Field("url", Text(), "Where it listens. `${VAR}` and `${VAR:-default}` are filled in."),
        Field("headers", TextTable(), "HTTP headers; variables are filled in as in env."),
        Field("docker", Text(), "The image in which the command is run."),
        Field(
            "client_capabilities",
            ObjectOf(CLIENT_CAPABILITIES),
            "What the client declares to the server.",
        ),
        Field(
            "spec_version",
            Text(),
            "The revision of the specification to speak; `auto` by default.",
            ours=True,
        ),
    ),
)
