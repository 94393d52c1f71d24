"""The client for tests that are coroutines: the same one, in a thread of its own.

Nothing here belongs to an event loop. Each call hands its work to the thread and waits in whichever
loop it was awaited in, so a client may outlive the loop of a test.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from mcptest.core.revision import Revision
from mcptest.session.client import Client
from mcptest.session.lifecycle import ServerFacts

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """A method of the client as one that is awaited."""

    @functools.wraps(method)
    async def awaited(self: AsyncClient, /, *given: P.args, **named: P.kwargs) -> T:
        of_client: Callable[P, T] = getattr(self.client, method.__name__)
        return await self.run(of_client, *given, **named)

    return awaited


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

    @property
    def revision(self) -> Revision:
        return self.client.revision

    @property
    def server(self) -> ServerFacts:
        return self.client.server

    def declares(self, capability: str) -> bool:
        return self.client.declares(capability)

    request = _awaited(Client.request)
    notify = _awaited(Client.notify)
    list_all = _awaited(Client.list_all)
    call_tool = _awaited(Client.call_tool)
    read_resource = _awaited(Client.read_resource)
    get_prompt = _awaited(Client.get_prompt)
    complete = _awaited(Client.complete)
    subscribe = _awaited(Client.subscribe)
    unsubscribe = _awaited(Client.unsubscribe)
    log_level = _awaited(Client.log_level)
    await_notification = _awaited(Client.await_notification)
