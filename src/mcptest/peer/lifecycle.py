"""The one interface behind which the two eras live.

An era is a value chosen per connection. Everything that differs between the handshake era and the
stateless era is a method here; nothing else in the code asks which era it is in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.message import Message
from mcptest.model.revision import Revision
from mcptest.peer.pending import Pending
from mcptest.wire.envelope import faults_of_answer


class ServerFacts(msgspec.Struct, frozen=True):
    """What the server said about itself when the session began."""

    capabilities: Mapping[str, Any] = {}
    info: Mapping[str, Any] = {}
    instructions: str | None = None
    versions: tuple[str, ...] = ()


def not_begun(method: str, answer: Message, why: str) -> PeerError:
    """The session did not begin: the answer is malformed, or else a refusal that says `why`."""
    refused = faults_of_answer(answer, None).refused
    if refused:
        words = f"the answer to {method} is malformed: {refused}"
        return PeerError(ErrorKind.PROTOCOL, words, unusable=True)
    return PeerError(ErrorKind.PROTOCOL, f"{method} was refused: {why}")


class Lifecycle(Protocol):
    @property
    def revision(self) -> Revision: ...

    @property
    def server(self) -> ServerFacts: ...

    @property
    def first_answer(self) -> Message | None:
        """The answer that began the session, as it came."""

    def begin(self, deadline: Deadline) -> Pending:
        """Send the first request of the session without waiting for its answer."""

    def finish(self, pending: Pending, deadline: Deadline) -> None:
        """Take that answer; then requests may be sent. Raises PeerError."""

    def prepare(self, params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """The params as this era sends them."""

    def headers(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        input_schema: Mapping[str, Any] | None = None,
    ) -> Mapping[str, str]:
        """The HTTP headers that go with a message."""

    def wants_input(self, method: str, answer: Message) -> Mapping[str, Any] | None:
        """What to add to the params of a retry when the answer asks for input, else None."""

    def cancel(self, pending: Pending, reason: str, deadline: Deadline) -> None: ...

    def subscribe(self, uri: str, deadline: Deadline) -> Pending:
        """Ask for updates of one resource. The pending request is what carries the subscription."""

    def unsubscribe(self, subscription: Pending, deadline: Deadline) -> Message | None:
        """End a subscription; the answer, where the era asks for one."""

    def log_level(self, level: str, deadline: Deadline) -> Message | None:
        """From now on ask for log messages of at least this level; the answer, if one is due."""

    def leave(self, deadline: Deadline) -> None:
        """Say goodbye where the era has a way to. Never raises for what the peer does."""
