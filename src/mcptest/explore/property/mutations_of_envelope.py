"""Mutations of the envelope: JSON that is no JSON-RPC 2.0 message, or none of this revision."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.property.crafted import request
from mcptest.explore.property.mutation import ALIVE, EVERYWHERE, Mutation, needed_params
from mcptest.model.message import ABSENT, json_type
from mcptest.model.revision import STATELESS_REVISIONS, TIMELINE, Revision

_NO_MESSAGE: Final = ("JSONRPC-003", ALIVE)
_ONE_BATCHING: Final = frozenset({Revision.V2025_03_26})
_NOT_BATCHING: Final = frozenset(one for one in TIMELINE if one >= Revision.V2025_06_18)
_STATELESS: Final = frozenset(STATELESS_REVISIONS)

VALUES: Final[tuple[Any, ...]] = (None, True, 1, 0.5, "x", [], {}, False, 0, "", [1], {"a": 1})


def other_than(*kinds: str) -> SearchStrategy[Any]:
    """A plain value of any JSON type but these."""
    return st.sampled_from([one for one in VALUES if json_type(one) not in kinds])


def _without(*names: str) -> Any:
    def change(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
        return {name: member for name, member in value.items() if name not in names}

    return change


def _with(name: str, values: SearchStrategy[Any]) -> Any:
    def change(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
        return {**value, name: draw(values)}

    return change


def _response(**members: Any) -> Any:
    """A response with these members, each a value or a strategy."""

    def change(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
        drawn = {
            name: draw(member) if isinstance(member, SearchStrategy) else member
            for name, member in members.items()
        }
        return {"jsonrpc": "2.0", "id": value["id"], **drawn}

    return change


def _result_without_id(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "result": {}}


def _scalar(draw: DrawFn, value: dict[str, Any], revision: Revision) -> Any:
    return draw(other_than("object", "array"))


def _array_of_requests(draw: DrawFn, value: dict[str, Any], revision: Revision) -> list[Any]:
    count = draw(st.integers(1, 3))
    return [{**value, "id": f"batched-{number}"} for number in range(count)]


def _empty_array(draw: DrawFn, value: dict[str, Any], revision: Revision) -> list[Any]:
    return []


def _array_of_junk(draw: DrawFn, value: dict[str, Any], revision: Revision) -> list[Any]:
    return draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))


def _initialize_in_batch(draw: DrawFn, value: dict[str, Any], revision: Revision) -> list[Any]:
    params = {
        "protocolVersion": revision.wire_version,
        "capabilities": {},
        "clientInfo": {"name": "mcptest", "version": "0"},
    }
    return [request("initialize", params, "batched")]


def _unknown_name(draw: DrawFn, letters: str = "abcxyz/_-.é") -> str:
    known = st.sampled_from(("mcptest/no_such_method", "", "Ping", "tools/list/", "tools"))
    made = st.text(letters, min_size=1, max_size=12).map(lambda text: f"mcptest/{text}")
    return draw(known | made)


def _unknown_method(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    return {**value, "method": _unknown_name(draw)}


def _unknown_in_a_header(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Over HTTP a header repeats it: one that has to be written in another way there, or is empty,
    may be refused for that header."""
    return {**value, "method": _unknown_name(draw, "abcxyz/_-.") or "mcptest/"}


def _unknown_notification(
    draw: DrawFn, value: dict[str, Any], revision: Revision
) -> dict[str, Any]:
    params = draw(st.sampled_from((ABSENT, {}, {"a": 1})))
    return request(f"notifications/{_unknown_name(draw)}", params, ABSENT)


def _of_the_server(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    method = draw(st.sampled_from(("sampling/createMessage", "roots/list")))
    return {**value, "method": method}


def _notice_with_id(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    params = {**needed_params(revision), "requestId": "never-sent"}
    return {**value, "method": "notifications/cancelled", "params": params}


def _gone(method: str, **content: Any) -> Any:
    def change(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
        return {**value, "method": method, "params": {**content, **needed_params(revision)}}

    return change


_ERRORS: Final[SearchStrategy[Any]] = st.sampled_from(("x", 1, None, [], True))
_CODES: Final[SearchStrategy[Any]] = st.sampled_from(("-32600", 0.5, None, True, {}))

ENVELOPE_MUTATIONS: Final = (
    Mutation("jsonrpc-missing", "jsonrpc is missing", _without("jsonrpc"), _NO_MESSAGE),
    Mutation(
        "jsonrpc-wrong",
        'jsonrpc is not "2.0"',
        _with("jsonrpc", st.sampled_from(("1.0", "2", 2.0, 2, None, "", "2.0 ", "3.0", [], True))),
        _NO_MESSAGE,
    ),
    Mutation("method-missing", "there is no method", _without("method", "params"), _NO_MESSAGE),
    Mutation(
        "method-type", "the method is no text", _with("method", other_than("string")), _NO_MESSAGE
    ),
    Mutation("id-null", "the id is null", _with("id", st.none()), _NO_MESSAGE),
    Mutation("id-boolean", "the id is a boolean", _with("id", st.booleans()), _NO_MESSAGE),
    Mutation(
        "id-fraction",
        "the id is no whole number",
        _with("id", st.sampled_from((0.5, -1.5, 1e-9))),
        _NO_MESSAGE,
    ),
    Mutation(
        "id-array",
        "the id is an array",
        _with("id", st.sampled_from(([], [1], ["a"]))),
        _NO_MESSAGE,
    ),
    Mutation(
        "id-object",
        "the id is an object",
        _with("id", st.sampled_from(({}, {"id": 1}))),
        _NO_MESSAGE,
    ),
    Mutation("scalar", "it is no object", _scalar, _NO_MESSAGE),
    Mutation(
        "params-type",
        "params are neither an object nor an array",
        _with("params", other_than("object", "array")),
        _NO_MESSAGE,
        revisions=EVERYWHERE - _STATELESS,
    ),
    Mutation(  # without an object there is no _meta either, and that has a code of its own
        "params-type-and-no-meta",
        "params are neither an object nor an array",
        _with("params", other_than("object", "array")),
        (ALIVE,),
        revisions=_STATELESS,
    ),
    Mutation(
        "params-array",
        "params are an array",
        _with("params", st.sampled_from(([], [1], [{}]))),
        (ALIVE,),
    ),
    Mutation(  # nothing says that a request has no other members
        "method-and-result",
        "it is a request and a response",
        _with("result", st.just({})),
        (ALIVE,),
    ),
    Mutation(
        "method-and-error",
        "it is a request and an error",
        _with("error", st.just({"code": -1, "message": ""})),
        (ALIVE,),
    ),
    Mutation(
        "result-and-error",
        "a response has both a result and an error",
        _response(result={}, error={"code": -1, "message": ""}),
        (ALIVE,),
        kind="response",
    ),
    Mutation(
        "result-type",
        "a result is no object",
        _response(result=other_than("object")),
        (ALIVE,),
        kind="response",
    ),
    Mutation(
        "result-without-id", "a result has no id", _result_without_id, (ALIVE,), kind="response"
    ),
    Mutation(
        "error-type", "an error is no object", _response(error=_ERRORS), (ALIVE,), kind="response"
    ),
    Mutation(
        "error-code-type",
        "the code of an error is no whole number",
        _response(error=st.fixed_dictionaries({"code": _CODES, "message": st.just("")})),
        (ALIVE,),
        kind="response",
    ),
    Mutation("empty-array", "an empty array", _empty_array, _NO_MESSAGE, kind="batch"),
    Mutation(
        "array-of-junk",
        "an array of things that are no messages",
        _array_of_junk,
        _NO_MESSAGE,
        kind="batch",
    ),
    Mutation(
        "array",
        "an array of requests, where there are no batches",
        _array_of_requests,
        ("JSONRPC-007", ALIVE),
        kind="batch",
        revisions=_NOT_BATCHING,
    ),
    Mutation(
        "initialize-in-batch",
        "initialize inside a batch",
        _initialize_in_batch,
        (ALIVE,),
        kind="batch",
        revisions=_ONE_BATCHING,
    ),
    Mutation(
        "unknown-method",
        "no revision has the method",
        _unknown_method,
        ("JSONRPC-001", ALIVE),
        revisions=EVERYWHERE - _STATELESS,
    ),
    Mutation(
        "unknown-method-in-a-header",
        "no revision has the method",
        _unknown_in_a_header,
        ("JSONRPC-001", ALIVE),
        revisions=_STATELESS,
    ),
    Mutation(
        "unknown-notification",
        "no revision has the notification",
        _unknown_notification,
        ("JSONRPC-005", ALIVE),
        kind="notification",
    ),
    Mutation(
        "method-of-server", "only servers ask for that", _of_the_server, ("JSONRPC-001", ALIVE)
    ),
    Mutation("notification-with-id", "a notification has an id", _notice_with_id, (ALIVE,)),
    Mutation(
        "ping-gone",
        "the revision has no ping",
        _gone("ping"),
        ("PROTO-021", ALIVE),
        revisions=_STATELESS,
    ),
    Mutation(
        "set-level-gone",
        "the revision has no logging/setLevel",
        _gone("logging/setLevel", level="info"),
        ("LOG-106", ALIVE),
        revisions=_STATELESS,
    ),
)
