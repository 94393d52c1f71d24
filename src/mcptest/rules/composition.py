"""Servers behind one client: what goes wrong only when two captures are looked at together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import Kind
from mcptest.core.safe_text import show
from mcptest.rules.declaration import explanation_and_fix
from mcptest.rules.protocol import objects_at
from mcptest.rules.session import Step
from mcptest.session.pages import named_items
from mcptest.wire.correlation import IdSet

if TYPE_CHECKING:
    from mcptest.rules.judge import JudgedSession

_NAMED = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
}
IDS_SHOWN = 10
Shared: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...], int]
"""What two or more servers share: in words, by name, the servers, and how many names there are."""
Finder: TypeAlias = Callable[["ComposedServers"], Iterator[Shared]]


@dataclass(slots=True)
class Offered:
    """What one server lists, and the request ids that its client used."""

    tools: dict[str, int] = field(default_factory=dict)
    prompts: dict[str, int] = field(default_factory=dict)
    resources: dict[str, int] = field(default_factory=dict)
    """Each name with the place in the session where it was first listed."""
    ids: IdSet = field(default_factory=IdSet)

    def learn(self, step: Step) -> None:
        kind = step.kind
        if kind is Kind.REQUEST and step.sender == "client":
            self.ids.add(step.id)
        elif kind is Kind.RESULT and step.method in _NAMED and step.sender == "server":
            member, key = _NAMED[step.method]
            names: dict[str, int] = getattr(self, member)
            for item in named_items(objects_at(step.result, member), key):
                if len(names) < DEFAULT_LIMITS.items:
                    names.setdefault(item[key], step.place)


class ComposedServers(NamedTuple):
    """Servers behind one client."""

    labelled: Sequence[tuple[JudgedSession, str]]
    separate: bool
    """Captures that don't say which transport they used share none."""


class Hazard(msgspec.Struct, frozen=True):
    """Something shared that should not be, by the rule that says so."""

    id: str
    title: str
    message: str
    names: tuple[str, ...]
    servers: tuple[str, ...]
    total: int = 1


@dataclass(frozen=True, slots=True)
class CompositionRule:
    """A property of several sessions. `find` yields what they share against it.

    It is the decorator of that function, whose docstring is the rule's page and fix.
    """

    id: str
    title: str
    names: str = ""
    """What is shared, where it is a name that servers offer: tools, prompts or resources."""
    prefixed_by_clients: bool = False
    """A client takes the hazard away when it puts the server's name before the others."""
    find: Finder = lambda servers: iter(())

    def __call__(self, find: Finder) -> Finder:
        COMPOSITION_RULES[self.id] = replace(self, find=find)
        return find

    @property
    def explanation(self) -> str:
        return explanation_and_fix(self.find)[0]

    @property
    def fix(self) -> str:
        return explanation_and_fix(self.find)[1]


COMPOSITION_RULES: dict[str, CompositionRule] = {}
composition_rule = CompositionRule
"""What a rule is declared with."""


def labels_of(sessions: Sequence[JudgedSession]) -> list[str]:
    """The sessions' labels; equal ones get a number, so that a finding names one session."""
    uses = Counter(session.label for session in sessions)
    seen: Counter[str] = Counter()
    distinct = []
    for label in (session.label for session in sessions):
        seen[label] += 1
        distinct.append(f"{label} #{seen[label]}" if uses[label] > 1 else label)
    return distinct


def compose(sessions: Sequence[JudgedSession], separate: bool = False) -> list[Hazard]:
    """Every hazard among the sessions. `separate`: captures that don't say share no transport."""
    if len(sessions) < 2:
        return []
    together = ComposedServers(list(zip(sessions, labels_of(sessions), strict=True)), separate)
    return [
        Hazard(rule.id, rule.title, *one)
        for rule in COMPOSITION_RULES.values()
        for one in islice(rule.find(together), DEFAULT_LIMITS.findings)
    ]


def _shared_names(servers: ComposedServers, kind: str, shown: int = 80) -> Iterator[Shared]:
    owners: dict[str, list[str]] = {}
    for session, label in servers.labelled:
        for name in getattr(session.offered, kind):
            owners.setdefault(name, []).append(label)
    for name, labels in owners.items():
        if len(labels) > 1:
            message = f"{kind[:-1]} {show(name, shown)!r} is offered by {_listed(labels)}"
            yield message, (show(name, 200),), tuple(labels), 1


@composition_rule(
    "COMP-001", "tool names do not overlap between servers", names="tools", prefixed_by_clients=True
)
def tool_names_overlap(servers: ComposedServers) -> Iterator[Shared]:
    """Two servers behind one client list a tool with the same name.

    If the client does not put the server's name before the tool's, it cannot tell which tool a
    model means. A hostile server can also take calls that were meant for another. Names with their
    server as a prefix, such as `<server>__tool`, do not collide.

    Fix: Prefix the tool names in the client, or rename one of the tools.
    """
    return _shared_names(servers, "tools")


@composition_rule("COMP-002", "request ids do not collide on a shared transport")
def request_ids_collide(servers: ComposedServers) -> Iterator[Shared]:
    """Two sessions on one shared transport use the same JSON-RPC request ids.

    When a client sends requests for several servers over one channel, it can match a response only
    by its id. An id that was used for two servers does not identify one request.

    A capture in the public form does not name its transport, so equal ids are reported. Use
    `--separate-transports` if each session had its own. A full capture names its channel and
    collides only with a session on the same channel.

    Fix: Give each server its own transport, or take all ids from one counter.
    """
    groups: dict[Any, list[tuple[JudgedSession, str]]] = {}
    for session, label in servers.labelled:
        # A full capture without a channel is of a connection of its own.
        channel = session.channel
        alone = channel is None if session.form == "full" else servers.separate
        if not alone:
            groups.setdefault(channel, []).append((session, label))
    pairs = (pair for group in groups.values() for pair in combinations(group, 2))
    for (first, first_label), (second, second_label) in pairs:
        shared, total = first.offered.ids.shared_with(second.offered.ids, IDS_SHOWN)
        if total:
            names = tuple(show(msgspec.json.encode(one).decode(), 80) for one in shared)
            more = f" and {total - len(shared)} more" if total > len(shared) else ""
            labels, noun = (first_label, second_label), "ids" if total > 1 else "id"
            told = f"{_listed(labels)} got the same request {noun} {', '.join(names)}{more}"
            yield told, names, labels, total


@composition_rule(
    "COMP-003",
    "prompt names do not overlap between servers",
    names="prompts",
    prefixed_by_clients=True,
)
def prompt_names_overlap(servers: ComposedServers) -> Iterator[Shared]:
    """Two servers behind one client list a prompt with the same name.

    People pick prompts by name, often as slash commands. Which prompt they get then depends on the
    order in which the servers were connected.

    Fix: Prefix the prompt names in the client, or rename one of the prompts.
    """
    return _shared_names(servers, "prompts")


@composition_rule("COMP-004", "resource URIs do not overlap between servers", names="resources")
def resource_uris_overlap(servers: ComposedServers) -> Iterator[Shared]:
    """Two servers behind one client list a resource with the same URI.

    A URI names one thing. A client that keeps one table of resources reads the wrong one, or takes
    an update of one for an update of the other.

    Fix: Use a separate URI scheme or authority for each server.
    """
    return _shared_names(servers, "resources", 120)


def _listed(servers: Sequence[str]) -> str:
    shown = [show(server, 80) for server in servers]
    return ", ".join(shown[:-1]) + " and " + shown[-1]
