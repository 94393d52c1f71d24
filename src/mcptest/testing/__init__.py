"""For tests in Python: a server, a client to it, and the judgement of what they said.

The pytest fixtures (`mcp_server`, `mcp_client`, `mcp_property`, `mcp_player`, …) are made of this,
and it works without pytest as well. See docs/pytest.md.
"""

from __future__ import annotations

from mcptest.core.errors import McptestError, PeerError
from mcptest.session.client import Client, Reply
from mcptest.suite.observed import text_of as text_of_result
from mcptest.testing.assertions import Player, assert_conforms, assert_holds, check_property
from mcptest.testing.serving import AsyncClient, MalformedAnswer, Server, capture_of

__all__ = [
    "AsyncClient",
    "Client",
    "MalformedAnswer",
    "McptestError",
    "PeerError",
    "Player",
    "Reply",
    "Server",
    "assert_conforms",
    "assert_holds",
    "capture_of",
    "check_property",
    "text_of",
]


def text_of(reply: Reply) -> str:
    """The text of an answer, as the expectations of a suite see it."""
    return text_of_result(reply.method, reply.message.result)
