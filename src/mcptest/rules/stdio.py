"""STDIO: the two pipes carry messages and nothing else."""

from __future__ import annotations

from mcptest.model.capture import Frame, Trouble
from mcptest.model.errors import ErrorKind
from mcptest.model.message import Kind
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.session import NO_MESSAGE


@session_rule(
    "STDIO-001",
    "stdout carries nothing but messages",
    category="stdio",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic/transports#stdio",
    transports=("stdio",),
    listens=(*Kind, Frame),
    sender="server",
    on_routine="count",
)
def stdout_carries_messages_only(check: Check) -> Watching:
    """Each line that a server writes to stdout is one MCP message.

    A banner, a log line or a stray print breaks clients that read line by line: some drop the
    connection. An empty line counts too, and so does a log line in JSON: a message has `jsonrpc`,
    or at least the members of JSON-RPC and no others. A malformed message is judged by the rules
    about messages. Diagnostics belong on stderr.
    """
    while step := (yield):
        if step.in_batch:
            continue
        check.saw(step)
        if step.message is NO_MESSAGE:
            check.violated(
                step,
                "a line on stdout that is no message",
                expected="JSON-RPC messages only; diagnostics go to stderr",
            )


@session_rule(
    "STDIO-002",
    "stdin carries nothing but messages",
    category="stdio",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec="basic/transports#stdio",
    transports=("stdio",),
    listens=(*Kind, Frame),
    sender="client",
    on_routine="count",
)
def stdin_carries_messages_only(check: Check) -> Watching:
    """Each line that a client writes to the server's stdin is one MCP message.

    A server may end the session on anything else.
    """
    while step := (yield):
        if step.in_batch:
            continue
        check.saw(step)
        if step.message is NO_MESSAGE:
            check.violated(
                step, "a line on stdin that is no message", expected="JSON-RPC messages only"
            )


@session_rule(
    "STDIO-003",
    "a message on stdout ends with a newline",
    category="stdio",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic/transports#stdio",
    transports=("stdio",),
    listens=(*Kind, Trouble),
)
def messages_end_with_a_newline(check: Check) -> Watching:
    """Messages are delimited by newlines, the last one too.

    A client that reads lines never sees a message whose newline does not come: for it the server is
    silent. A server that ends in the middle of a line has lost what it meant to say. A line that is
    cut because the server was told to end is not judged.
    """
    while step := (yield):
        if type(step.record) is Trouble:
            cut = step.record.error == ErrorKind.TRUNCATED.value
            if cut and step.record.sender == "server":
                check.violated(step, step.record.detail, expected="a newline after each message")
        elif step.sender == "server":
            check.saw(step)
