"""The params of requests that a client may make: of the right shape, and of what is offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcptest.explore.property.arguments import tool_arguments
from mcptest.explore.property.offer import Offer
from mcptest.explore.property.shaped import KEYS, TEXTS, Members, objects_of, shaped
from mcptest.model.message import ABSENT
from mcptest.model.revision import Era, Revision
from mcptest.schema.shape_vocabulary import Obj
from mcptest.schema.shapes_basic import KEY, LOGGING_LEVEL
from mcptest.schema.shapes_messages import EXCHANGES, NOTICES, Exchange, Notice

TOKENS: Final = st.integers(0, 2**31) | TEXTS
_NEEDS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "prompts/list": "prompts",
    "logging/setLevel": "logging",
    "tasks/list": "tasks.list",
}
_CLIENTS: Final = st.fixed_dictionaries({"name": TEXTS, "version": TEXTS})
_ALWAYS: Final = frozenset({"ping", "server/discover"})


def sent_by_client(revision: Revision) -> dict[str, Exchange]:
    """The requests that a client of the revision knows."""
    return {
        row.method: row
        for row in EXCHANGES
        if row.by_client is not None and revision in row.by_client
    }


def told_by_client(revision: Revision) -> dict[str, Notice]:
    """The notifications that a client of the revision knows."""
    return {
        row.method: row
        for row in NOTICES
        if row.by_client is not None and revision in row.by_client
    }


def meta(revision: Revision, *, may_log: bool = True) -> SearchStrategy[dict[str, Any]]:
    """The `_meta` of a request."""
    optional: dict[str, SearchStrategy[Any]] = {"progressToken": TOKENS}
    if revision.era is Era.HANDSHAKE:
        return objects_of({}, optional)
    optional[KEY + "clientInfo"] = _CLIENTS
    if may_log:
        optional[KEY + "logLevel"] = shaped(LOGGING_LEVEL, revision, {})
    required: dict[str, SearchStrategy[Any]] = {
        KEY + "protocolVersion": st.just(revision.wire_version),
        KEY + "clientCapabilities": st.just({}),
    }
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
    found = {}
    for method, row in sent_by_client(revision).items():
        whole = shaped(row.request, revision, members)
        found[method] = whole.map(lambda content: content.get("params", ABSENT))
    return found


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
            own = {"level": shaped(LOGGING_LEVEL, revision, {})}
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


def _calls(offer: Offer) -> list[dict[str, SearchStrategy[Any]]]:
    return [
        {"name": st.just(tool["name"]), "arguments": tool_arguments(tool["inputSchema"])}
        for tool in offer.tools
        if isinstance(tool, Mapping)
        and isinstance(tool.get("name"), str)
        and isinstance(tool.get("inputSchema"), Mapping)
        and not tool_arguments(tool["inputSchema"]).is_empty
    ]


def _reads(offer: Offer) -> list[dict[str, SearchStrategy[Any]]]:
    uris = offer.names("resources", "uri")
    return [{"uri": st.sampled_from(uris)}] if uris else []


def _subscriptions(offer: Offer) -> list[dict[str, SearchStrategy[Any]]]:
    return _reads(offer) if offer.declares("resources.subscribe") else []


def _prompts(offer: Offer) -> list[dict[str, SearchStrategy[Any]]]:
    found: list[dict[str, SearchStrategy[Any]]] = []
    for prompt in offer.prompts:
        if not isinstance(prompt, Mapping) or not isinstance(prompt.get("name"), str):
            continue
        required, optional = _prompt_arguments(prompt)
        arguments = objects_of(dict.fromkeys(required, TEXTS), dict.fromkeys(optional, TEXTS))
        found.append({"name": st.just(prompt["name"]), "arguments": arguments})
    return found


def _completions(offer: Offer) -> list[dict[str, SearchStrategy[Any]]]:
    if not offer.declares("completions"):
        return []
    found: list[dict[str, SearchStrategy[Any]]] = []
    for prompt in offer.prompts:
        if isinstance(prompt, Mapping) and isinstance(prompt.get("name"), str):
            required, optional = _prompt_arguments(prompt)
            for name in (*required, *optional):
                ref = {"type": "ref/prompt", "name": prompt["name"]}
                argument = st.fixed_dictionaries({"name": st.just(name), "value": TEXTS})
                found.append({"ref": st.just(ref), "argument": argument})
    return found


def _prompt_arguments(prompt: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    listed = prompt.get("arguments")
    known = [
        one
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, Mapping) and isinstance(one.get("name"), str)
    ]
    required = [one["name"] for one in known if one.get("required") is True]
    return required, [one["name"] for one in known if one.get("required") is not True]


_CONTENTS: Final[Mapping[str, Callable[[Offer], list[dict[str, SearchStrategy[Any]]]]]] = {
    "tools/call": _calls,
    "resources/read": _reads,
    "resources/subscribe": _subscriptions,
    "resources/unsubscribe": _subscriptions,
    "prompts/get": _prompts,
    "completion/complete": _completions,
}


def notice_params(revision: Revision) -> dict[str, SearchStrategy[Any]]:
    """For every notification of a client: all that its shape allows."""
    own_meta: Members = {"_meta": st.dictionaries(KEYS, TEXTS, max_size=1)}
    found = {}
    for method, row in told_by_client(revision).items():
        message: Obj = row.message
        whole = shaped(message, revision, own_meta)
        found[method] = whole.map(lambda content: content.get("params", ABSENT))
    return found
