"""The client for tests that are coroutines: the same one, in a thread of its own.

Nothing here belongs to an event loop. Each call hands its work to the thread and waits in whichever
loop it was awaited in, so a client may outlive the loop of a test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from mcptest.model.deadline import Deadline
from mcptest.model.message import Message
from mcptest.model.revision import Revision
from mcptest.peer.client import Client, Reply
from mcptest.peer.lifecycle import ServerFacts
from mcptest.peer.pending import Pending

P = ParamSpec("P")
T = TypeVar("T")


class AsyncClient:
    """A client whose methods are awaited. One thread serves it, so calls take turns."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mcptest")

    def stop(self) -> None:
        """Let the thread finish what it does. The client is closed by whoever opened it."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def run(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Any call that has no method here: `await client.run(client.client.batch, calls)`.

        A call that is cancelled while it waits goes on in the thread, up to its own time limit.
        """
        return await asyncio.wrap_future(self._thread.submit(work, *given, **named))

    # -- facts ---------------------------------------------------------------------------------

    @property
    def revision(self) -> Revision:
        return self.client.revision

    @property
    def server(self) -> ServerFacts:
        return self.client.server

    def declares(self, capability: str) -> bool:
        return self.client.declares(capability)

    # -- the methods of MCP --------------------------------------------------------------------

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, deadline: Deadline | None = None
    ) -> Reply:
        return await self.run(self.client.request, method, params, deadline)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None = None, deadline: Deadline | None = None
    ) -> None:
        await self.run(self.client.notify, method, params, deadline)

    async def list_all(self, method: str, deadline: Deadline | None = None) -> list[Any]:
        return await self.run(self.client.list_all, method, deadline)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress_token: str | int | None = None,
        deadline: Deadline | None = None,
    ) -> Reply:
        return await self.run(
            self.client.call_tool,
            name,
            arguments,
            progress_token=progress_token,
            deadline=deadline,
        )

    async def read_resource(self, uri: str, deadline: Deadline | None = None) -> Reply:
        return await self.run(self.client.read_resource, uri, deadline)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        deadline: Deadline | None = None,
    ) -> Reply:
        return await self.run(self.client.get_prompt, name, arguments, deadline)

    async def complete(
        self,
        reference: Mapping[str, str],
        argument: Mapping[str, str],
        deadline: Deadline | None = None,
    ) -> Reply:
        return await self.run(self.client.complete, reference, argument, deadline)

    async def subscribe(self, uri: str, deadline: Deadline | None = None) -> Pending:
        return await self.run(self.client.subscribe, uri, deadline)

    async def unsubscribe(
        self, subscription: Pending, deadline: Deadline | None = None
    ) -> Message | None:
        return await self.run(self.client.unsubscribe, subscription, deadline)

    async def log_level(self, level: str, deadline: Deadline | None = None) -> Message | None:
        return await self.run(self.client.log_level, level, deadline)

    async def await_notification(
        self, accept: Callable[[Message], bool], deadline: Deadline | None = None
    ) -> Message | None:
        return await self.run(self.client.await_notification, accept, deadline)
