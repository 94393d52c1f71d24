"""The pytest file of a counterexample names the server as it was, and no secret."""

from __future__ import annotations

import ast

import pytest

from mcptest.probe.counterexamples import pytest_text
from mcptest.probe.starter_suites import written_server
from mcptest.report.property import Counterexample, Way
from mcptest.transport.target import Target

FOUND = Counterexample(
    of_property="messages-invalid",
    way=Way.RULE,
    rule="JSONRPC-003",
    title='it says """no"""',
    words=("send x",),
    example="messages-invalid-0123456789",
)
PROCESS = Target(way="stdio", label="s", command=("node", "server.js"))


def text_for(target: Target) -> str:
    text = pytest_text(FOUND, {"steps": []}, written_server(target), target)
    compile(text, "test_it.py", "exec")
    return text


def argument_in(text: str) -> str:
    """What `assert_holds` is given for a server."""
    (call,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "assert_holds"
    )
    return ast.unparse(call.args[1])


@pytest.mark.parametrize(
    ("target", "argument"),
    [
        (PROCESS, "SERVER"),
        (
            Target(way="stdio", label="s", command=("node", "server.js"), cwd="/srv"),
            "Server(tuple(SERVER), cwd='/srv')",
        ),
        (
            Target(
                way="stdio",
                label="s",
                command=("node",),
                env={"PRICE": "5$", "API_TOKEN": "hunter2hunter2"},
            ),
            "Server(tuple(SERVER), env={'PRICE': '5$', 'API_TOKEN': os.environ['API_TOKEN']})",
        ),
        (Target(way="http", label="s", url="http://127.0.0.1:1/mcp"), "SERVER"),
        (
            Target(
                way="sse",
                label="s",
                url="http://127.0.0.1:1/sse",
                headers={"Authorization": "Bearer hunter2hunter2"},
            ),
            (
                "Server(SERVER, headers={'Authorization': os.environ['MCP_AUTHORIZATION']},"
                " transport='sse')"
            ),
        ),
    ],
    ids=["command", "folder", "environment", "url", "header"],
)
def test_the_server_is_named_with_all_that_it_needs(target: Target, argument: str) -> None:
    text = text_for(target)
    assert argument_in(text) == argument
    assert "hunter2" not in text
    assert ("import os" in text) is ("os.environ" in argument)
    assert ("import Server, " in text) is argument.startswith("Server(")
