"""Strategies for single messages of a client: valid ones by revision, invalid ones by mutation."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.property import mutations
from mcptest.explore.property.crafted import Crafted, encode, renumbered, request, valid_message
from mcptest.explore.property.mutation import Mutation
from mcptest.explore.property.offer import Offer
from mcptest.explore.property.shaped import INTEGERS, TEXTS, shaped
from mcptest.explore.property.valid_params import (
    notice_params,
    params_by_shape,
    params_of_offer,
)
from mcptest.model.message import ABSENT
from mcptest.model.revision import HANDSHAKE_ERA, Revision
from mcptest.schema.shapes_messages import ANY_ERROR, EXCHANGES

__all__ = [
    "Crafted",
    "Mutation",
    "Offer",
    "identifiers",
    "invalid_messages",
    "renumbered",
    "valid_batches",
    "valid_notifications",
    "valid_requests",
    "valid_responses",
]

MUTATIONS: Final[Mapping[str, Mutation]] = mutations.MUTATIONS
_MOST_IN_A_BATCH: Final = 4


def identifiers() -> SearchStrategy[int | str]:
    """Ids of requests. The plainest is 1; among the first are those that are false in many
    languages, and those that a double can just hold."""
    notable: SearchStrategy[int | str] = st.sampled_from((1, 0, "", "0", "1", -1, 2**53 - 1, "é"))
    return notable | INTEGERS | TEXTS


_IDENTIFIERS: Final = identifiers()


def valid_requests(
    revision: Revision, offer: Offer | None = None, *, methods: Collection[str] = ()
) -> SearchStrategy[Crafted]:
    """Requests that a client of the revision may make.

    Without an offer: every method, with all that its shape allows. With one: only what that server
    answers with a result, with the names and arguments of its lists. `methods` takes some of them.
    """
    by_method = params_by_shape(revision) if offer is None else params_of_offer(revision, offer)
    return _requests(by_method, methods).map(lambda value: valid_message(value, "request"))


def valid_notifications(revision: Revision) -> SearchStrategy[Crafted]:
    """Notifications that a client of the revision may send."""
    found = [
        params.map(functools.partial(_notification, method))
        for method, params in notice_params(revision).items()
    ]
    return st.one_of(found).map(lambda value: valid_message(value, "notification"))


def valid_responses(revision: Revision) -> SearchStrategy[Crafted]:
    """What a client answers to requests of a server. None in the stateless era, which has none."""
    if revision not in HANDSHAKE_ERA:
        return st.nothing()
    contents = [
        shaped(row.answer, revision, {})
        for row in EXCHANGES
        if row.by_server is not None and revision in row.by_server
    ]
    head = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": identifiers()})
    content = st.one_of([*contents, shaped(ANY_ERROR, revision, {})])
    return st.tuples(head, content).map(
        lambda parts: valid_message({**parts[0], **parts[1]}, "response")
    )


def valid_batches(revision: Revision) -> SearchStrategy[Crafted]:
    """Arrays of requests and notifications, which only 2025-03-26 has. Ids are 1, 2, …"""
    if revision is not Revision.V2025_03_26:
        return st.nothing()
    by_shape = params_by_shape(revision)
    del by_shape["initialize"]  # the one request that is never batched
    notices = [
        params.map(functools.partial(_notification, method))
        for method, params in notice_params(revision).items()
    ]
    return st.lists(
        st.one_of([_requests(by_shape, ()), *notices]), min_size=1, max_size=_MOST_IN_A_BATCH
    ).map(_batch)


def invalid_messages(
    revision: Revision, transport: str = "stdio", only: Collection[str] = ()
) -> SearchStrategy[Crafted]:
    """Messages that no client may send, each by one named mutation of a harmless one.

    `only` names mutations; one that is no mutation in this revision adds nothing.
    """
    unknown = set(only) - MUTATIONS.keys()
    if unknown:
        raise ValueError(f"no mutation is called {', '.join(sorted(unknown))}")
    return st.one_of(
        [
            mutation.strategy(revision)
            for name, mutation in MUTATIONS.items()
            if (not only or name in only) and mutation.applies(revision, transport)
        ]
    )


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


def _notification(method: str, params: Any) -> dict[str, Any]:
    return request(method, params, ABSENT)


def _batch(values: list[dict[str, Any]]) -> Crafted:
    numbered = [
        {**value, "id": number} if "id" in value else value
        for number, value in enumerate(values, 1)
    ]
    asked = tuple(value["id"] for value in numbered if "id" in value)
    return Crafted(raw=encode(numbered), valid=True, kind="batch", identifier=asked)
