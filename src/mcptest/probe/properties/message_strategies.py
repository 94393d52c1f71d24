"""What is drawn: arguments, messages, conversations, and of them the examples of each property."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec.structs import replace

from mcptest.core.message import ABSENT
from mcptest.core.revision import HANDSHAKE_ERA, NEWEST_HANDSHAKE, Era, Revision, parse_revision
from mcptest.probe.hint_checks import claimed
from mcptest.probe.properties.mutations import MUTATIONS, spoilt_message
from mcptest.probe.properties.property_catalogue import KnownServer
from mcptest.probe.properties.steps import (
    AskAtOnce,
    AskStep,
    Cancel,
    Connect,
    Conversation,
    Crafted,
    Disconnect,
    Notify,
    PageStep,
    Relate,
    Step,
    Steps,
    Subscribe,
    Unsubscribe,
    encoded_message,
    request,
    send_of,
    settled,
    valid_message,
)
from mcptest.rules.protocol import CLIENT_INFO, LOG_LEVEL, LOG_LEVELS, needed_meta
from mcptest.schema.hypothesis_strategies import (
    INTEGERS,
    KEYS,
    TEXTS,
    Members,
    fitting_values,
    objects_of,
    shaped,
)
from mcptest.schema.message_shapes import MethodShapes, message_table
from mcptest.schema.tool_inputs import (
    Form,
    InputCase,
    can_be_sent,
    form_of,
    judged,
    near_valid_cases,
)
from mcptest.session.pages import LIST_CAPABILITIES, LIST_MEMBERS, Offer, named_items

# -- Arguments of tools --------------------------------------------------------------------------

_TYPED: Final = frozenset({"type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"})
"""Keywords that can say what the arguments are; without them they are an object all the same."""


def tool_arguments(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    """Values that a JSON Schema accepts, every one of them; nothing when there is none."""
    if _TYPED.isdisjoint(schema.keys()):
        return fitting_values({"type": "object", **schema})
    return fitting_values(schema)


def almost_valid_arguments(schema: Mapping[str, Any]) -> SearchStrategy[tuple[Any, str]]:
    """Values that a JSON Schema does not accept, just so, each with what is wrong with it.

    Nothing when the schema accepts everything, or can't be used.
    """
    try:
        spelled = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError):
        return st.nothing()
    return _almost_valid(spelled)


@functools.lru_cache(maxsize=256)
def _almost_valid(spelled: bytes) -> SearchStrategy[tuple[Any, str]]:
    schema = msgspec.json.decode(spelled)
    form = form_of({"inputSchema": schema})
    cases = [case for case in near_valid_cases(form) if _is_wrong(case)]
    if not cases:
        return st.nothing()
    return _spoilt(form, tool_arguments(schema), tuple(cases))


def _is_wrong(case: InputCase) -> bool:
    return case.valid is False and isinstance(case.arguments, dict) and can_be_sent(case.arguments)


@st.composite
def _spoilt(
    draw: DrawFn, form: Form, valid: SearchStrategy[Any], cases: tuple[InputCase, ...]
) -> tuple[Any, str]:
    """The one member that is wrong, in arguments that are right but for it."""
    case = draw(st.sampled_from(cases))
    around = draw(valid) if case.member else None
    if isinstance(around, dict):
        made = {name: value for name, value in around.items() if name != case.member}
        if case.member in case.arguments:
            made[case.member] = case.arguments[case.member]
        if judged(form, case.category, case.label, made).valid is False:
            return made, case.label
    return dict(case.arguments), case.label


# -- The params of requests that a client may make -----------------------------------------------

TOKENS: Final = st.integers(0, 2**31) | TEXTS
_NEEDS: Final = {**LIST_CAPABILITIES, "logging/setLevel": "logging", "tasks/list": "tasks.list"}
_CLIENTS: Final = st.fixed_dictionaries({"name": TEXTS, "version": TEXTS})
_ALWAYS: Final = frozenset({"ping", "server/discover"})


def sent_by_client(revision: Revision) -> dict[str, MethodShapes]:
    """The requests that a client of the revision knows."""
    rows = message_table().requests
    return {row.method: row for row in rows if row.is_sent_by("client", revision)}


def told_by_client(revision: Revision) -> dict[str, MethodShapes]:
    """The notifications that a client of the revision knows."""
    rows = message_table().notifications
    return {row.method: row for row in rows if row.is_sent_by("client", revision)}


def meta(revision: Revision, *, may_log: bool = True) -> SearchStrategy[dict[str, Any]]:
    optional: dict[str, SearchStrategy[Any]] = {"progressToken": TOKENS}
    if revision.era is Era.HANDSHAKE:
        return objects_of({}, optional)
    optional[CLIENT_INFO] = _CLIENTS
    if may_log:
        optional[LOG_LEVEL] = st.sampled_from(LOG_LEVELS)
    required = {name: st.just(value) for name, value in needed_meta(revision).items()}
    return objects_of(required, optional)


def params_by_shape(revision: Revision) -> dict[str, SearchStrategy[Any]]:
    """For every request of a client: all that its shape allows. ABSENT: params are left out."""
    members: Members = {
        "_meta": meta(revision),
        "protocolVersion": st.just(revision.wire_version),
        # A retry needs what the server said before, and a task one that was begun.
        "inputResponses": None,
        "requestState": None,
    }
    return _params_of(sent_by_client(revision), revision, members)


def _params_of(
    rows: Mapping[str, MethodShapes], revision: Revision, members: Members
) -> dict[str, SearchStrategy[Any]]:
    return {
        method: shaped(row.message, revision, members).map(
            lambda content: content.get("params", ABSENT)
        )
        for method, row in rows.items()
    }


def params_of_offer(
    revision: Revision, offer: Offer, *, with_meta: bool = True
) -> dict[str, SearchStrategy[Any]]:
    """For every request that this server answers with a result, as far as its lists tell."""
    own_meta = meta(revision, may_log=offer.declares("logging"))
    headed = {"_meta": own_meta} if with_meta else {}
    bare = _params(revision, headed, {})
    found: dict[str, SearchStrategy[Any]] = {}
    for method in sent_by_client(revision):
        if method in _ALWAYS or (method in _NEEDS and offer.declares(_NEEDS[method])):
            own = {"level": st.sampled_from(LOG_LEVELS)}
            found[method] = _params(revision, headed, own) if method == "logging/setLevel" else bare
        for content in _CONTENTS[method](offer) if method in _CONTENTS else ():
            made = _params(revision, headed, content)
            found[method] = found[method] | made if method in found else made
    return found


def _params(
    revision: Revision,
    headed: Mapping[str, SearchStrategy[Any]],
    content: Mapping[str, SearchStrategy[Any]],
) -> SearchStrategy[Any]:
    """`_meta` beside the members of the method; in the older era it may be left out."""
    if revision.era is Era.STATELESS or not headed:
        return objects_of({**content, **headed}, {})
    made = objects_of(content, headed)
    return made if content else st.just(ABSENT) | made


# -- what the lists of a server name ---------------------------------------------------------


Content: TypeAlias = dict[str, SearchStrategy[Any]]
"""The members of the params of a method, beside `_meta`."""


def _calls(offer: Offer) -> Iterator[Content]:
    for tool in named_items(offer.tools):
        schema = tool.get("inputSchema")
        if isinstance(schema, Mapping) and not tool_arguments(schema).is_empty:
            yield {"name": st.just(tool["name"]), "arguments": tool_arguments(schema)}


def _reads(offer: Offer) -> Iterator[Content]:
    uris = offer.names("resources", "uri")
    if uris:
        yield {"uri": st.sampled_from(uris)}


def _subscriptions(offer: Offer) -> Iterator[Content]:
    return _reads(offer) if offer.declares("resources.subscribe") else iter(())


def _prompts(offer: Offer) -> Iterator[Content]:
    for prompt in named_items(offer.prompts):
        required, optional = _prompt_arguments(prompt)
        arguments = objects_of(dict.fromkeys(required, TEXTS), dict.fromkeys(optional, TEXTS))
        yield {"name": st.just(prompt["name"]), "arguments": arguments}


def _completions(offer: Offer) -> Iterator[Content]:
    for prompt in named_items(offer.prompts) if offer.declares("completions") else ():
        required, optional = _prompt_arguments(prompt)
        for name in (*required, *optional):
            ref = {"type": "ref/prompt", "name": prompt["name"]}
            argument = st.fixed_dictionaries({"name": st.just(name), "value": TEXTS})
            yield {"ref": st.just(ref), "argument": argument}


def _prompt_arguments(prompt: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    listed = prompt.get("arguments")
    known = named_items(listed if isinstance(listed, list) else ())
    required = [one["name"] for one in known if one.get("required") is True]
    return required, [one["name"] for one in known if one.get("required") is not True]


_CONTENTS: Final[Mapping[str, Callable[[Offer], Iterator[Content]]]] = {
    "tools/call": _calls,
    "resources/read": _reads,
    "resources/subscribe": _subscriptions,
    "resources/unsubscribe": _subscriptions,
    "prompts/get": _prompts,
    "completion/complete": _completions,
}


# -- Strategies for single messages of a client --------------------------------------------------

_MOST_IN_A_BATCH: Final = 4


_NOTABLE: Final[tuple[int | str, ...]] = (1, 0, "", "0", "1", -1, 2**53 - 1, "é")
_IDENTIFIERS: Final = st.sampled_from(_NOTABLE) | INTEGERS | TEXTS
"""Ids of requests. The plainest is 1; among the first are those that are false in many languages,
and those that a double can just hold."""


def requests(
    revision: str | Revision = NEWEST_HANDSHAKE,
    offer: Offer | None = None,
    *,
    methods: Collection[str] = (),
) -> SearchStrategy[Crafted]:
    """Requests that a client of the revision may make.

    Without an offer: every method, with all that its shape allows. With one: only what that server
    answers with a result, with the names and arguments of its lists. `methods` takes some of them.
    """
    revision = _revision(revision)
    by_method = params_by_shape(revision) if offer is None else params_of_offer(revision, offer)
    return _requests(by_method, methods).map(lambda value: valid_message(value, "request"))


def notifications(revision: str | Revision = NEWEST_HANDSHAKE) -> SearchStrategy[Crafted]:
    """Notifications that a client of the revision may send."""
    return st.one_of(_notices(revision)).map(lambda value: valid_message(value, "notification"))


def _notices(revision: str | Revision) -> list[SearchStrategy[dict[str, Any]]]:
    revision = _revision(revision)
    own_meta: Members = {"_meta": st.dictionaries(KEYS, TEXTS, max_size=1)}
    by_method = _params_of(told_by_client(revision), revision, own_meta)
    return [
        params.map(functools.partial(request, method, identifier=ABSENT))
        for method, params in by_method.items()
    ]


def responses(revision: str | Revision = NEWEST_HANDSHAKE) -> SearchStrategy[Crafted]:
    """What a client answers to requests of a server; nothing in the stateless era."""
    revision = _revision(revision)
    if revision not in HANDSHAKE_ERA:
        return st.nothing()
    contents = [
        shaped(row.answer, revision, {})
        for row in message_table().requests
        if row.is_sent_by("server", revision)
    ]
    head = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": _IDENTIFIERS})
    content = st.one_of([*contents, shaped(message_table().any_error, revision, {})])
    return st.tuples(head, content).map(
        lambda parts: valid_message({**parts[0], **parts[1]}, "response")
    )


def batches(revision: str | Revision = Revision.V2025_03_26) -> SearchStrategy[Crafted]:
    """Arrays of requests and notifications, which only 2025-03-26 has. Ids are 1, 2, …"""
    revision = _revision(revision)
    if revision is not Revision.V2025_03_26:
        return st.nothing()
    by_shape = params_by_shape(revision)
    del by_shape["initialize"]  # the one request that is never batched
    one = st.one_of([_requests(by_shape, ()), *_notices(revision)])
    return st.lists(one, min_size=1, max_size=_MOST_IN_A_BATCH).map(_batch)


def invalid_messages(
    revision: str | Revision = NEWEST_HANDSHAKE,
    transport: str = "stdio",
    only: Collection[str] = (),
) -> SearchStrategy[Crafted]:
    """Messages that no client may send, each by one named mutation of a harmless one.

    `only` takes some of `mutations()`; one that is none in this revision adds nothing.
    """
    unknown = set(only) - MUTATIONS.keys()
    if unknown:
        raise ValueError(f"unknown mutation {', '.join(sorted(unknown))}")
    wanted = _revision(revision)
    known = mutations(wanted, transport)
    return st.one_of([spoilt_message(one, wanted) for one in known if not only or one in only])


def mutations(
    revision: str | Revision = NEWEST_HANDSHAKE, transport: str = "stdio"
) -> tuple[str, ...]:
    """The names of the mutations that the revision has."""
    wanted = _revision(revision)
    return tuple(name for name, one in MUTATIONS.items() if one.applies(wanted, transport))


def _revision(named: str | Revision) -> Revision:
    return named if isinstance(named, Revision) else parse_revision(named)


# -- putting together ------------------------------------------------------------------------


def _requests(
    by_method: Mapping[str, SearchStrategy[Any]], methods: Collection[str]
) -> SearchStrategy[dict[str, Any]]:
    chosen = {
        method: params for method, params in by_method.items() if not methods or method in methods
    }
    return _request(chosen) if chosen else st.nothing()


@st.composite
def _request(draw: DrawFn, by_method: Mapping[str, SearchStrategy[Any]]) -> dict[str, Any]:
    """Each method as often as the others. `one_of` would count every tool as one of them."""
    method = draw(st.sampled_from(list(by_method)))
    return request(method, draw(by_method[method]), draw(_IDENTIFIERS))


def _batch(values: list[dict[str, Any]]) -> Crafted:
    numbered = [
        {**value, "id": number} if "id" in value else value
        for number, value in enumerate(values, 1)
    ]
    asked = tuple(value["id"] for value in numbered if "id" in value)
    return Crafted(raw=encoded_message(numbered), valid=True, kind="batch", identifier=asked)


# -- Strategies for whole conversations ----------------------------------------------------------

_LONGEST: Final = 12
_MOST_AT_ONCE: Final = 5
_MOST_PAGES: Final = 4
_WEIGHT_OF_ASKING: Final = 4
"""So often is a step one request, where any other kind is once."""
_CHANGES: Final = ("tools.listChanged", "prompts.listChanged", "resources.listChanged")


def conversations(
    revision: str | Revision = NEWEST_HANDSHAKE,
    offer: Offer | None = None,
    transport: str = "stdio",
    *,
    most: int = _LONGEST,
) -> SearchStrategy[Conversation]:
    """Conversations that a client may have with a server of that offer, as steps; the shortest
    only connects. `most` bounds the steps, without the connecting that they need."""
    kinds = tuple(_steps(_revision(revision), offer or Offer(), transport))
    return st.lists(_step(kinds), min_size=1, max_size=most).map(settled)


@st.composite
def _step(draw: DrawFn, kinds: tuple[SearchStrategy[Step], ...]) -> Step:
    """Each kind as often as the others. `one_of` would count every tool as a kind of its own."""
    return draw(kinds[draw(st.integers(0, len(kinds) - 1))])


def asks(revision: Revision, offer: Offer) -> SearchStrategy[AskStep]:
    """Requests that the server answers with a result. Subscriptions are steps of their own."""
    by_method = params_of_offer(revision, offer, with_meta=False)
    own = [
        st.builds(AskStep, st.just(method), params, st.booleans())
        for method, params in by_method.items()
        if method not in {"resources/subscribe", "resources/unsubscribe"}
    ]
    return st.one_of(own)


def _steps(revision: Revision, offer: Offer, transport: str) -> Iterator[SearchStrategy[Step]]:
    ask = asks(revision, offer)
    yield from (ask,) * _WEIGHT_OF_ASKING
    cancels = revision.era is Era.HANDSHAKE or transport == "stdio"
    places = st.integers(0, _MOST_AT_ONCE - 1)
    cancelled = st.sets(places, max_size=2) if cancels else st.just(set[int]())
    many = st.lists(ask, min_size=2, max_size=_MOST_AT_ONCE)
    yield st.tuples(many, cancelled).map(
        lambda parts: AskAtOnce(
            tuple(parts[0]), tuple(sorted(one for one in parts[1] if one < len(parts[0])))
        )
    )
    lists = [
        method
        for method in LIST_MEMBERS
        if offer.declares(LIST_CAPABILITIES[method]) and method in sent_by_client(revision)
    ]
    if lists:
        yield st.builds(PageStep, st.sampled_from(lists), st.integers(1, _MOST_PAGES))
    if cancels:  # over HTTP the stateless era cancels by closing the stream
        yield st.builds(Cancel, st.integers(0, _LONGEST))
    if revision.era is Era.HANDSHAKE:
        yield st.just(Notify("notifications/roots/list_changed"))
    uris = offer.names("resources", "uri") if offer.declares("resources.subscribe") else ()
    if revision.era is Era.STATELESS and any(offer.declares(one) for one in _CHANGES):
        uris = ("", *uris)
    if uris:
        yield st.builds(Subscribe, st.sampled_from(uris))
        yield st.builds(Unsubscribe, st.sampled_from(uris))
    yield st.just(Disconnect())
    yield st.just(Connect())


# -- The examples of each property, kind by kind -------------------------------------------------

_NOT_BY_SHAPE: Final = frozenset({"initialize", "subscriptions/listen"})
"""A session begins once, and a subscription is answered at its end: these are for conversations."""
_MOST_ALONE: Final = 20
"""Tools that get conversations of their own."""


class Strand(msgspec.Struct, frozen=True):
    """Examples of one kind. Each is searched by itself, so that none is crowded out by another."""

    strategy: SearchStrategy[Steps]
    weight: int = 1


Examples: TypeAlias = list[Strand]


class NothingToTry(Exception):  # noqa: N818 - it is no error of anybody
    """The property has nothing to say about this server; the text says why."""


def _valid_messages(ground: KnownServer) -> Examples:
    revision, offer = ground.revision, ground.offer
    strands = [
        _sending(requests(revision, offer, methods=[method]), 2, offered=True)
        for method in params_of_offer(revision, offer)
    ]
    strands += (
        _sending(requests(revision, methods=[method]), 2)
        for method in sorted(sent_by_client(revision).keys() - _NOT_BY_SHAPE)
    )
    strands.append(_sending(notifications(revision), 5))
    if not batches(revision).is_empty:
        strands.append(_sending(batches(revision), 10))
    return strands


def _sending(drawn: SearchStrategy[Crafted], weight: int = 1, *, offered: bool = False) -> Strand:
    """One message, and nothing else."""
    return Strand(drawn.map(lambda one: (send_of(one, offered=offered),)), weight)


def _invalid_messages(ground: KnownServer) -> Examples:
    revision, transport = ground.revision, ground.transport
    return [
        _sending(invalid_messages(revision, transport, [name]))
        for name in mutations(revision, transport)
    ]


def _schemas(ground: KnownServer) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tools that may be called, with what they take."""
    for tool in ground.offer.tools:
        schema = tool.get("inputSchema")
        if isinstance(schema, Mapping):
            yield tool["name"], schema
    if not ground.offer.tools:
        raise NothingToTry("no tool may be called: none is marked readOnlyHint (--allow-tool)")


def _call_examples(found: list[Any], why: str) -> Examples:
    usable = [
        strategy.map(
            lambda given, name=name: (
                Connect(),
                AskStep("tools/call", {"name": name, "arguments": given}),
            )
        )
        for name, strategy in found
        if not strategy.is_empty
    ]
    if not usable:
        raise NothingToTry(why)
    return [Strand(one) for one in usable]


def _arguments(ground: KnownServer) -> Examples:
    found = [(name, tool_arguments(schema)) for name, schema in _schemas(ground)]
    return _call_examples(found, "no tool has a schema that any value matches")


def _almost_valid_examples(ground: KnownServer) -> Examples:
    found = [
        (name, almost_valid_arguments(schema).map(lambda pair: pair[0]))
        for name, schema in _schemas(ground)
    ]
    return _call_examples(found, "every tool accepts any value")


def _conversations(ground: KnownServer) -> Examples:
    """About everything, and about one thing at a time: what is rare among all is common there."""

    def about(offer: Offer) -> SearchStrategy[Steps]:
        return conversations(ground.revision, offer, ground.transport)

    offer = ground.offer
    strands = [Strand(about(offer), _MOST_ALONE)]
    strands += [
        Strand(about(_only(offer, part)), _MOST_ALONE // 2)
        for part in ("resources", "prompts")
        if offer.declares(part)
    ]
    alone = [replace(_only(offer, "tools"), tools=(tool,)) for tool in offer.tools[:_MOST_ALONE]]
    return strands + [Strand(about(one), 3) for one in alone]


def _only(offer: Offer, part: str) -> Offer:
    """As if the server had nothing else."""
    there = offer.capabilities
    kept = Offer(capabilities={part: there[part]}) if part in there else Offer()
    if part == "resources":
        return replace(kept, resources=offer.resources, templates=offer.templates)
    return replace(kept, **{part: getattr(offer, part)})


def _related(relation: str, claims: Callable[[Mapping[str, Any]], bool], why: str) -> Any:
    def examples(ground: KnownServer) -> Examples:
        claiming = {tool["name"] for tool in ground.offer.tools if claims(tool)}
        strands = []
        for name, schema in _schemas(ground):
            given = tool_arguments(schema).filter(lambda one: isinstance(one, dict))
            if name in claiming and not given.is_empty:
                made = functools.partial(Relate, relation, name)
                strands.append(Strand(given.map(made).map(lambda step: (step,))))
        if not strands:
            raise NothingToTry(why)
        return strands

    return examples


def _has_several_arguments(tool: Mapping[str, Any]) -> bool:
    schema = tool.get("inputSchema")
    members = schema.get("properties") if isinstance(schema, Mapping) else None
    return isinstance(members, Mapping) and len(members) > 1


EXAMPLES: Final[Mapping[str, Callable[[KnownServer], Examples]]] = {
    "messages-valid": _valid_messages,
    "messages-invalid": _invalid_messages,
    "arguments": _arguments,
    "arguments-almost-valid": _almost_valid_examples,
    "conversations": _conversations,
    "idempotent": _related(
        "idempotent",
        lambda tool: claimed(tool) == ["idempotentHint"],
        "no callable tool is marked so",
    ),
    "read-only": _related(
        "read-only", lambda tool: "readOnlyHint" in claimed(tool), "no callable tool is marked so"
    ),
    "argument-order": _related(
        "argument-order", _has_several_arguments, "no callable tool has two arguments"
    ),
    "same-lists": lambda ground: [Strand(st.just((Relate("same-lists"),)))],
}
"""By the name of the property. Each raises NothingToTry."""
