"""Every mutation by its name, the plainest first."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import ABSENT, json_type
from mcptest.core.revision import STATELESS_REVISIONS, TIMELINE, Era, Revision
from mcptest.probe.properties.crafted import ALIVE, Crafted, Intent, encoded_message, request
from mcptest.schema.shapes.basic import KEY

# -- A mutation ----------------------------------------------------------------------------------

EVERYWHERE: Final = frozenset(TIMELINE)

Change: TypeAlias = Callable[[DrawFn, dict[str, Any], Revision], Any]
"""From a harmless request, which it may change, to a value or bytes."""


class Mutation(msgspec.Struct, frozen=True):
    """`rules`: what a server must, should or may do with it; a rule that does not hold in the
    revision or over the transport says nothing there."""

    name: str
    about: str
    change: Change
    rules: tuple[str, ...] = ()
    kind: Intent = "request"
    revisions: frozenset[Revision] = EVERYWHERE
    transports: frozenset[str] = frozenset()
    """Where it is one; everywhere when empty."""

    def applies(self, revision: Revision, transport: str) -> bool:
        return revision in self.revisions and (not self.transports or transport in self.transports)

    def strategy(self, revision: Revision) -> SearchStrategy[Crafted]:
        return _crafted(self, revision)


def harmless_method(revision: Revision) -> str:
    """Every server has it, and it changes nothing, should it be answered in spite of what is
    wrong."""
    return "ping" if revision.era is Era.HANDSHAKE else "server/discover"


def needed_params(revision: Revision) -> dict[str, Any]:
    """What the params of every request hold."""
    if revision.era is Era.HANDSHAKE:
        return {}
    return {
        "_meta": {
            KEY + "protocolVersion": revision.wire_version,
            KEY + "clientCapabilities": {},
        }
    }


_IDS: Final = st.sampled_from((1, "a", 0, 2**53 - 1)) | st.integers(1, 10_000)


@functools.lru_cache(maxsize=1_000)
def _crafted(mutation: Mutation, revision: Revision) -> SearchStrategy[Crafted]:
    return _changed(mutation, revision)


@st.composite
def _changed(draw: DrawFn, mutation: Mutation, revision: Revision) -> Crafted:
    value = request(harmless_method(revision), needed_params(revision), draw(_IDS))
    made = mutation.change(draw, dict(value), revision)
    raw = made if isinstance(made, bytes) else encoded_message(made)
    name = made.get("method") if isinstance(made, dict) else None
    return Crafted(
        raw=raw,
        valid=False,
        kind=mutation.kind,
        mutation=mutation.name,
        method=name if isinstance(name, str) else "",
        identifier=_identifier(made, value["id"]),
        about=mutation.about,
        rules=mutation.rules,
    )


def _identifier(made: Any, original: int | str) -> Any:
    """What a reader that forgives more than it has to would answer."""
    if isinstance(made, bytes):
        return original if b'"id":' + encoded_message(original) in made else ABSENT
    if isinstance(made, list):
        found = [one.get("id") for one in made if isinstance(one, dict)]
        return tuple(one for one in found if type(one) in (int, str))
    identifier = made.get("id", ABSENT) if isinstance(made, dict) else ABSENT
    return identifier if type(identifier) in (int, str) else ABSENT


# -- Mutations of the envelope -------------------------------------------------------------------

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


# -- Mutations inside of params ------------------------------------------------------------------

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


# -- Mutations of the text -----------------------------------------------------------------------

_NO_JSON: Final = ("JSONRPC-002", "STDIO-102", ALIVE)
_AMBIGUOUS: Final = (ALIVE,)
_STDIO: Final = frozenset({"stdio"})
_LARGEST: Final = 1 << 20

_BAD_UTF8: Final = (
    b"\xff",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
)
"""Never a byte, overlong, a surrogate, a lone continuation, beyond the last code point, cut off."""
_SCRAPS: Final = (
    b"x",
    b"{",
    b"}",
    b"[",
    b"{}}",
    b"{'jsonrpc': '2.0'}",
    b'{"jsonrpc": "2.0",}',
    b"{jsonrpc: 2}",
    b"// {}",
    b"None",
    b"Content-Length: 2",
    b"\x00",
    b"\x1b[31m",
)


def _not_json(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return draw(st.sampled_from(_SCRAPS))


def _blank(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return draw(st.sampled_from((b" ", b"", b"\t", b"   ")))


def _truncated(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    whole = encoded_message(value)
    return whole[: draw(st.integers(1, len(whole) - 1))]


def _more_behind(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return encoded_message(value) + draw(st.sampled_from((b"}", b"x", b",", b" 1", b"\x00")))


def _two_in_one(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    other = {**value, "id": "second"}
    return encoded_message(value) + draw(st.sampled_from((b"", b" "))) + encoded_message(other)


def _invalid_utf8(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    value["method"] = f"{value['method']}/?"
    return encoded_message(value).replace(b"/?", draw(st.sampled_from(_BAD_UTF8)))


def _byte_order_mark(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return b"\xef\xbb\xbf" + encoded_message(value)


def _utf16(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return encoded_message(value).decode().encode(draw(st.sampled_from(("utf-16-le", "utf-16-be"))))


def _control_character(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    control = bytes([draw(st.sampled_from((0x01, 0x00, 0x09, 0x08, 0x1F)))])
    return encoded_message(value).replace(b'"method":"', b'"method":"' + control)


def _not_finite(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return _with_number(value, draw(st.sampled_from((b"NaN", b"Infinity", b"-Infinity"))))


def _huge_number(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return _with_number(value, draw(st.sampled_from((b"1e400", b"-1e999", b"9" * 5_000))))


def _bad_number(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return _with_number(value, draw(st.sampled_from((b"01", b"+1", b".5", b"1.", b"0x1", b"1_0"))))


def _with_number(value: dict[str, Any], literal: bytes) -> bytes:
    value["params"] = {**value["params"], "mcptest": "?"}
    return encoded_message(value).replace(b'"?"', literal)


def _duplicate_key(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    twice = draw(st.sampled_from(("method", "id", "jsonrpc", "params")))
    again = json.dumps({twice: value[twice]})[1:]
    return encoded_message(value)[:-1] + b"," + again.encode()


def _lone_surrogate(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    half = draw(st.sampled_from((b"\\ud800", b"\\udfff", b"\\udc00\\ud800")))
    value["params"] = {**value["params"], "mcptest": "?"}
    return encoded_message(value).replace(b'"?"', b'"' + half + b'"')


def _too_deep(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    levels = draw(st.sampled_from((DEFAULT_LIMITS.depth, 2_000, 20_000)))
    opening, closing = draw(st.sampled_from(((b"[", b"]"), (b'{"a":', b"}"))))
    inner = b"" if opening == b"[" else b"0"
    return _with_number(value, opening * levels + inner + closing * levels)


def _unclosed(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return draw(st.sampled_from((b"[", b'{"a":'))) * draw(st.sampled_from((1, 600, 100_000)))


def _huge(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    length = draw(st.sampled_from((_LARGEST // 16, _LARGEST)))
    value["method"] = "mcptest/" + "x" * length
    return encoded_message(value)


TEXT_MUTATIONS: Final = (
    Mutation("not-json", "the text is no JSON", _not_json, _NO_JSON),
    Mutation(
        "blank", "there is nothing but white space", _blank, ("STDIO-103", ALIVE), transports=_STDIO
    ),
    Mutation("truncated", "the text breaks off", _truncated, _NO_JSON),
    Mutation("unclosed", "nothing that is opened is closed", _unclosed, _NO_JSON),
    Mutation("more-behind", "more text follows the message", _more_behind, _NO_JSON),
    Mutation("two-in-one", "two messages stand on one line", _two_in_one, _NO_JSON),
    Mutation("invalid-utf8", "a byte of the method is not UTF-8", _invalid_utf8, _NO_JSON),
    Mutation("byte-order-mark", "it starts with a byte order mark", _byte_order_mark, _AMBIGUOUS),
    Mutation("utf-16", "the text is UTF-16", _utf16, _NO_JSON),
    Mutation(
        "control-character", "a control character stands in a string", _control_character, _NO_JSON
    ),
    Mutation("not-finite", "a number is not finite", _not_finite, _NO_JSON),
    Mutation("bad-number", "a number is written as JSON has none", _bad_number, _NO_JSON),
    Mutation("huge-number", "a number is too large for a double", _huge_number, _AMBIGUOUS),
    Mutation("duplicate-key", "a member occurs twice", _duplicate_key, _AMBIGUOUS),
    Mutation("lone-surrogate", "half a surrogate pair is escaped", _lone_surrogate, _AMBIGUOUS),
    Mutation("too-deep", "it nests deeper than 512 levels", _too_deep, _AMBIGUOUS),
    Mutation("huge", "the name of its method is huge", _huge, _AMBIGUOUS),
)


# -- Every mutation by its name, the plainest first ----------------------------------------------

MUTATIONS: Final[Mapping[str, Mutation]] = {
    mutation.name: mutation
    for mutation in (*ENVELOPE_MUTATIONS, *PARAMS_MUTATIONS, *TEXT_MUTATIONS)
}
