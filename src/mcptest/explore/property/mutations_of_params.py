"""Mutations inside of params: a member that is missing, of another type, or wrong in `_meta`."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.property.mutation import ALIVE, Mutation, needed_params
from mcptest.explore.property.mutations_of_envelope import other_than
from mcptest.model.revision import STATELESS_REVISIONS, Revision
from mcptest.schema.shapes_basic import KEY

_STATELESS: Final = frozenset(STATELESS_REVISIONS)
_NOWHERE: Final = "mcptest-no-such-name"
_REF: Final = {"type": "ref/prompt", "name": _NOWHERE}
_ARGUMENT: Final = {"name": _NOWHERE, "value": ""}
_NEEDED: Final[dict[str, dict[str, Any]]] = {
    "tools/call": {"name": _NOWHERE},
    "prompts/get": {"name": _NOWHERE},
    "resources/read": {"uri": "mcptest://no-such-resource"},
    "completion/complete": {"ref": _REF, "argument": _ARGUMENT},
}
"""What these methods need; nothing of it exists, so that nothing happens."""
_OF_TYPE: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "cursor": ("tools/list", {}),
    "name": ("tools/call", {}),
    "uri": ("resources/read", {}),
    "arguments": ("tools/call", {"name": _NOWHERE}),
    "ref": ("completion/complete", {"argument": _ARGUMENT}),
    "argument": ("completion/complete", {"ref": _REF}),
}
_WANTED: Final = {"arguments": "object", "ref": "object", "argument": "object"}


def _member_missing(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    method = draw(st.sampled_from(tuple(_NEEDED)))
    missing = draw(st.sampled_from(tuple(_NEEDED[method])))
    content = {name: one for name, one in _NEEDED[method].items() if name != missing}
    return {**value, "method": method, "params": {**content, **needed_params(revision)}}


def _member_type(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    member = draw(st.sampled_from(tuple(_OF_TYPE)))
    method, content = _OF_TYPE[member]
    wrong = draw(other_than(_WANTED.get(member, "string")))
    params = {**content, member: wrong, **needed_params(revision)}
    return {**value, "method": method, "params": params}


def _params_missing(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    method = draw(st.sampled_from(tuple(_NEEDED)))
    return {"jsonrpc": "2.0", "id": value["id"], "method": method}


def _meta_type(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    return {**value, "params": {"_meta": draw(other_than("object"))}}


def _progress_token(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    return _with_meta(value, "progressToken", draw(st.sampled_from((None, True, 0.5, [], {}))))


def _with_meta(value: dict[str, Any], key: str, member: Any) -> dict[str, Any]:
    params = value["params"]
    return {**value, "params": {**params, "_meta": {**params.get("_meta", {}), key: member}}}


def _meta_missing(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    if draw(st.booleans()):
        return {**value, "params": {}}
    return {name: member for name, member in value.items() if name != "params"}


def _meta_without(key: str) -> Any:
    def change(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
        meta = {name: one for name, one in value["params"]["_meta"].items() if name != key}
        return {**value, "params": {**value["params"], "_meta": meta}}

    return change


def _meta_with(key: str, values: SearchStrategy[Any]) -> Any:
    def change(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
        return _with_meta(value, key, draw(values))

    return change


_VERSIONS: Final = st.sampled_from(("1999-01-01", "", "2026-07-29", "latest", "v2026-07-28"))
_LEVELS: Final = st.sampled_from(("loud", "", "INFO", "warn"))

PARAMS_MUTATIONS: Final = (
    Mutation("params-missing", "params that are needed are left out", _params_missing, (ALIVE,)),
    Mutation("member-missing", "a member that is needed is missing", _member_missing, (ALIVE,)),
    Mutation("member-type", "a member is of another type", _member_type, (ALIVE,)),
    Mutation("meta-type", "_meta is no object", _meta_type, (ALIVE,)),
    Mutation(
        "progress-token-type",
        "the progress token is neither text nor whole number",
        _progress_token,
        (ALIVE,),
    ),
    Mutation(
        "meta-missing",
        "the request has no _meta",
        _meta_missing,
        ("PROTO-013", ALIVE),
        revisions=_STATELESS,
    ),
    Mutation(
        "version-missing",
        "_meta names no version",
        _meta_without(KEY + "protocolVersion"),
        ("PROTO-011", ALIVE),
        revisions=_STATELESS,
    ),
    Mutation(
        "version-type",
        "the version in _meta is no text",
        _meta_with(KEY + "protocolVersion", other_than("string")),
        (ALIVE,),
        revisions=_STATELESS,
    ),
    Mutation(
        "version-unknown",
        "_meta names a version that does not exist",
        _meta_with(KEY + "protocolVersion", _VERSIONS),
        ("PROTO-014", ALIVE),
        revisions=_STATELESS,
    ),
    Mutation(
        "capabilities-missing",
        "_meta names no capabilities",
        _meta_without(KEY + "clientCapabilities"),
        ("PROTO-012", ALIVE),
        revisions=_STATELESS,
    ),
    Mutation(
        "capabilities-type",
        "the capabilities in _meta are no object",
        _meta_with(KEY + "clientCapabilities", other_than("object")),
        (ALIVE,),
        revisions=_STATELESS,
    ),
    Mutation(
        "log-level-unknown",
        "the log level in _meta does not exist",
        _meta_with(KEY + "logLevel", _LEVELS),
        ("LOG-104", ALIVE),
        revisions=_STATELESS,
    ),
)
