"""A server by the string that names it, and sessions with it that leave a capture.

The client of a session can be awaited as well. Nothing of that belongs to an event loop: each call
hands its work to a thread and waits in whichever loop it was awaited in, so a client may outlive
the loop of a test.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.redaction import redaction
from mcptest.core.revision import Revision, parse_revision
from mcptest.session.answers import NO_ANSWERS, Answers
from mcptest.session.client import Client, Reply
from mcptest.session.lifecycle import ServerFacts
from mcptest.session.live import LiveSession
from mcptest.session.meeting import Met
from mcptest.session.server_spec import ServerWords, target_of
from mcptest.transport.recorder import PARTIAL
from mcptest.transport.target import Target
from mcptest.transport.temporary import temporary_folder

_sessions: WeakKeyDictionary[Client, LiveSession] = WeakKeyDictionary()
"""What stands behind each client that was connected here."""
_met: dict[tuple[object, ...], Met] = {}
"""What a command was found to speak: asking takes one more process, so it is asked once."""


class MalformedAnswer(UserWarning):
    """An answer came whose form is wrong, or doubtful; a test may well have read it all the same.

    See docs/answers.md. `reply.faults` holds the same words, and `-W error` makes errors of them.
    """


def _warn_of_faults(reply: Reply) -> None:
    faults = reply.faults
    for how, words in (("malformed", faults.refused), ("doubtful", faults.warned)):
        if words:
            message = redaction.masker.text(f"the answer to {reply.method} is {how}: {words}")
            warnings.warn(message, MalformedAnswer, stacklevel=4)


class Server(msgspec.Struct, frozen=True):
    """One server, not started yet: each `connect` starts one of its own, or goes to its URL."""

    name: str | tuple[str, ...]
    """As `--server` takes it: a command line, a URL, a configured name, `demo`; or the words of a
    command."""
    env: Mapping[str, str] = {}
    cwd: str | None = None
    clean_env: bool = False
    """It sees of our environment only what programs need, and what `env` names."""
    headers: Mapping[str, str] = {}
    transport: Literal["stdio", "http", "sse"] | None = None
    """None: what the name looks like."""
    config: Path | None = None
    """A client's configuration with `mcpServers`."""
    revision: str | None = None
    """None finds out which one the server speaks."""
    timeout: float = 30.0
    """Seconds, for the start and for each request."""
    answers: Answers = NO_ANSWERS
    """What is said when the server asks for roots, sampling or elicitation."""

    @classmethod
    def of(cls, named: Any) -> Server:
        """Whatever a fixture may give: a server, its name, or the words of its command."""
        if isinstance(named, cls):
            return named
        if isinstance(named, str):
            return cls(named)
        if isinstance(named, list | tuple) and all(isinstance(word, str) for word in named):
            return cls(tuple(named))
        hint = "give a command line, a URL, a list of words, or mcptest.testing.Server(…)"
        raise UsageError(f"a {type(named).__name__} names no server", hint=hint)

    def but(self, **changes: Any) -> Server:
        """The same server with something else about it: `but(revision="2025-06-18")`."""
        return msgspec.structs.replace(self, **changes)

    @property
    def wanted(self) -> Revision | None:
        """The revision that was asked for; None: whichever the server speaks."""
        return None if self.revision in {None, "auto"} else parse_revision(str(self.revision))

    @property
    def target(self) -> Target:
        """UsageError when the words can't be understood."""
        words = isinstance(self.name, tuple)
        return target_of(
            ServerWords(
                server=None if words else str(self.name),
                command=self.name if words else (),
                way=self.transport,
                headers=self.headers,
                env=self.env,
                cwd=self.cwd,
                clean_env=self.clean_env,
                config=self.config,
            )
        )

    @contextlib.contextmanager
    def connect(self, capture: Path | None = None) -> Iterator[Client]:
        """A session, from its handshake to its end. PeerError when the server will not begin.

        `capture` keeps what went over the wire; without it that is kept as long as the session.
        """
        with contextlib.ExitStack() as kept:
            if capture is None:
                capture = kept.enter_context(temporary_folder()) / "session.jsonl"
            target = self.target
            with LiveSession(
                msgspec.structs.replace(target, label=redaction.masker.text(target.label)),
                revision=self.wanted,
                answers=self.answers,
                timeout=self.timeout,
                startup=self.timeout,
                capture=capture,
            ) as served:
                yield self._begun(served)
            for second in served.second_answers():
                warnings.warn(second, MalformedAnswer, stacklevel=2)

    def _begun(self, served: LiveSession) -> Client:
        client, target = served.client, served.target
        _sessions[client] = served
        client.on_reply = _warn_of_faults
        key = (target.command, tuple(sorted(target.env.items())), target.cwd, target.clean_env)
        is_asked = target.way == "stdio" and self.wanted is None
        if is_asked and (met := _met.pop(key, None)) is not None:
            client.meeting.speak(met)
        served.begin()
        if (first := client.beginning) is not None:
            _warn_of_faults(first)
        if is_asked:
            _met[key] = client.met
        return client


def capture_of(client: Client) -> Path:
    """What the session has said so far, as a file that is still being written."""
    served = served_behind(client)
    recorder = served.tape.recorder
    assert recorder is not None  # `connect` always records
    recorder.flush()
    place = recorder.path.resolve()
    partial = place.with_name(place.name + PARTIAL)
    for one in (partial, place):
        if one.exists():
            return one
    message = "the session is over, and its capture was not kept"
    raise UsageError(message, hint="connect(capture=PATH) keeps it")


def served_behind(client: Client) -> LiveSession:
    """UsageError for a client that was made by other means."""
    served = _sessions.get(client)
    if served is None:
        hint = "connect it with mcptest.testing.Server"
        raise UsageError("this client has no capture", hint=hint)
    return served


# -- The client for tests that are coroutines: the same one, in a thread of its own ---------------

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
