"""For tests in Python: a server, a client to it, and the judgement of what they said.

The pytest fixtures `mcp_server`, `mcp_client` and `async_mcp_client` are made of this, and it works
without pytest as well. See docs/pytest.md.
"""

from __future__ import annotations

from mcptest.model.errors import McptestError, PeerError
from mcptest.peer.client import Client, Reply
from mcptest.testing.awaiting import AsyncClient
from mcptest.testing.conforming import assert_conforms
from mcptest.testing.serving import Server, capture_of

__all__ = [
    "AsyncClient",
    "Client",
    "McptestError",
    "PeerError",
    "Reply",
    "Server",
    "assert_conforms",
    "capture_of",
    "text_of",
]


def text_of(reply: Reply) -> str:
    """The text of an answer, as the expectations of a suite see it."""
    from mcptest.suite.text_under_test import text_of as text_of_result

    return text_of_result(reply.method, reply.message.result)
