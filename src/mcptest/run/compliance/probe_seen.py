"""What one run of a probe saw, step by step: the pure ground that its facts are worked out of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from mcptest.model.capture import AnyRecord, Frame
from mcptest.model.message import ABSENT, Kind, Message, id_key
from mcptest.suite.exchange_targets import Exchange
from mcptest.wire.envelope import decode


class Unobserved(Exception):  # noqa: N818 - nothing went wrong: there was nothing to see
    """What was looked for could not be seen, and so nothing is said about it."""

    def __init__(self, reason: str, unlocked_by: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.unlocked_by = unlocked_by
        """What the server would need so that it could be seen."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One step, as it was taken."""

    exchange: Exchange = msgspec.field(default_factory=Exchange)
    identifier: Any = ABSENT
    """The id of the request that was sent; ABSENT where there was none."""
    records: Sequence[AnyRecord] = ()
    """Everything that went over its connection, also before and after."""
    begins: int = 0
    """The first of these records that belongs to the step or came after it."""
    lists: Mapping[str, Sequence[Any]] = msgspec.field(default_factory=dict)
    """Of a walk: the items of every list, by its method."""
    document: Any = ABSENT
    """Of a fetch: the JSON that was found."""
    seconds: float = 0.0

    @property
    def since(self) -> Iterator[AnyRecord]:
        """What went over its connection from its beginning on."""
        return islice(self.records, self.begins, None)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """All steps of one probe, and what was known of the server before."""

    taken: Mapping[str, Taken]
    capabilities: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What the server declares."""

    def __getitem__(self, step: str) -> Taken:
        return self.taken[step]

    def result(self, step: str) -> Mapping[str, Any]:
        """The result of a step, or an empty object when it has none that is an object."""
        result = self.taken[step].exchange.result if step in self.taken else ABSENT
        return result if isinstance(result, dict) else {}

    def declares(self, path: str) -> bool:
        return is_declared(path, self.capabilities)


def is_declared(path: str, capabilities: Mapping[str, Any]) -> bool:
    """Whether a capability is declared; a dot leads inside: `tools.listChanged`."""
    value: Any = capabilities
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value is not None and value is not False


Fact: TypeAlias = Callable[[Seen], Any]


def messages_of_server(records: Iterator[AnyRecord]) -> Iterator[tuple[Message, Frame]]:
    """Every message that the server sent, those inside of arrays one by one."""
    for record in records:
        if not isinstance(record, Frame) or record.sender != "server":
            continue
        message = decode(record.raw)
        for each in message.items if message.kind is Kind.BATCH else (message,):
            yield each, record


def answers_to(identifier: Any, records: Iterator[AnyRecord]) -> Iterator[Message]:
    """Every answer with this id, in its JSON type."""
    wanted = id_key(identifier)
    for message, _ in messages_of_server(records):
        if message.is_answer and id_key(message.id) == wanted:
            yield message


def named_items(items: Sequence[Any], member: str = "name") -> list[str]:
    """The names in a list, in their order; what has none is left out."""
    names = [item.get(member) for item in items if isinstance(item, dict)]
    return [name for name in names if isinstance(name, str)]
