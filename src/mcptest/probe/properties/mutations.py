"""Every mutation by its name, the plainest first: what makes a harmless request an invalid one."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import ABSENT, json_type
from mcptest.core.revision import STATELESS_REVISIONS, TIMELINE, Era, Revision
from mcptest.probe.properties.crafted import ALIVE, Crafted, Intent, encoded_message, request
from mcptest.rules.protocol import META_PREFIX

# -- A mutation ----------------------------------------------------------------------------------

EVERYWHERE: Final = frozenset(TIMELINE)
_STATELESS: Final = frozenset(STATELESS_REVISIONS)
_HANDSHAKE: Final = EVERYWHERE - _STATELESS

Change: TypeAlias = Callable[[DrawFn, dict[str, Any], Revision], Any]
"""From a harmless request, which it may change, to a value or bytes."""


class Mutation(msgspec.Struct, frozen=True):
    """`rules`: what a server must, should or may do with it; a rule that does not hold in the
    revision or over the transport says nothing there."""

    name: str
    about: str
    change: Change
    rules: tuple[str, ...]
    kind: Intent
    revisions: frozenset[Revision]
    transports: frozenset[str]
    """Where it is one; everywhere when empty."""

    def applies(self, revision: Revision, transport: str) -> bool:
        return revision in self.revisions and (not self.transports or transport in self.transports)


def _mutation(
    name: str,
    about: str,
    change: Change,
    *rules: str,
    kind: Intent = "request",
    revisions: frozenset[Revision] = EVERYWHERE,
    transports: frozenset[str] = frozenset(),
) -> Mutation:
    """Whatever else a rule says of it: the server is still there afterwards."""
    return Mutation(name, about, change, (*rules, ALIVE), kind, revisions, transports)


_stateless = functools.partial(_mutation, revisions=_STATELESS)
_response = functools.partial(_mutation, kind="response")
_batch = functools.partial(_mutation, kind="batch")


def harmless_method(revision: Revision) -> str:
    """Every server has it, and it changes nothing, should it be answered in spite of what is
    wrong."""
    return "ping" if revision.era is Era.HANDSHAKE else "server/discover"


def needed_params(revision: Revision) -> dict[str, Any]:
    """What the params of every request hold."""
    if revision.era is Era.HANDSHAKE:
        return {}
    meta = {
        META_PREFIX + "protocolVersion": revision.wire_version,
        META_PREFIX + "clientCapabilities": {},
    }
    return {"_meta": meta}


_IDS: Final = st.sampled_from((1, "a", 0, 2**53 - 1)) | st.integers(1, 10_000)


@functools.lru_cache(maxsize=1_000)
@st.composite
def spoilt_message(draw: DrawFn, mutation: Mutation, revision: Revision) -> Crafted:
    value = request(harmless_method(revision), needed_params(revision), draw(_IDS))
    made = mutation.change(draw, dict(value), revision)
    name = made.get("method") if isinstance(made, dict) else None
    return Crafted(
        raw=made if isinstance(made, bytes) else encoded_message(made),
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


# -- Changes: of members, of params and of the text ----------------------------------------------

VALUES: Final[tuple[Any, ...]] = (None, True, 1, 0.5, "x", [], {}, False, 0, "", [1], {"a": 1})


def other_than(*kinds: str) -> list[Any]:
    """Plain values of any JSON type but these."""
    return [one for one in VALUES if json_type(one) not in kinds]


def _one_of(*values: Any) -> Change:
    """One of these in place of the message: a value, or bytes."""
    return lambda draw, value, revision: draw(st.sampled_from(values))


def _without(*names: str) -> Change:
    return lambda draw, value, revision: _less(value, *names)


def _with(name: str, *values: Any) -> Change:
    return lambda draw, value, revision: {**value, name: draw(st.sampled_from(values))}


def _answer(name: str, *values: Any, **members: Any) -> Change:
    """A response with these members, and one of the values in the one of that name."""
    head = {"jsonrpc": "2.0"}
    return lambda draw, value, revision: (
        head | {"id": value["id"], name: draw(st.sampled_from(values))} | members
    )


def _asking(method: str, **content: Any) -> Change:
    return lambda draw, value, revision: {**value, **_call(revision, method, content)}


def _call(revision: Revision, method: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"method": method, "params": {**content, **needed_params(revision)}}


def _less(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in names}


def _meta_with(key: str, *values: Any) -> Change:
    def change(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
        params = value["params"]
        meta = {**params.get("_meta", {}), key: draw(st.sampled_from(values))}
        return {**value, "params": {**params, "_meta": meta}}

    return change


def _meta_without(key: str) -> Change:
    def change(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
        params = value["params"]
        return {**value, "params": {**params, "_meta": _less(params["_meta"], key)}}

    return change


def _spoilt(spoil: Callable[[bytes, Any], bytes], *choices: Any) -> Change:
    """What is made of the text of the message and one of the choices."""
    return lambda draw, value, revision: spoil(
        encoded_message(value), draw(st.sampled_from(choices))
    )


def _holding(*literals: bytes) -> Change:
    """One of these stands among the params, as no encoder would write it."""
    return lambda draw, value, revision: _text_with(value, draw(st.sampled_from(literals)))


def _text_with(value: dict[str, Any], literal: bytes) -> bytes:
    value["params"] = {**value["params"], "mcptest": "?"}
    return encoded_message(value).replace(b'"?"', literal)


# -- Mutations of the envelope -------------------------------------------------------------------

_NO_MESSAGE: Final = "JSONRPC-003"
_ONE_BATCHING: Final = frozenset({Revision.V2025_03_26})
_NOT_BATCHING: Final = frozenset(one for one in TIMELINE if one >= Revision.V2025_06_18)
_ERROR: Final = {"code": -1, "message": ""}


def _array_of_requests(draw: DrawFn, value: dict[str, Any], revision: Revision) -> list[Any]:
    count = draw(st.integers(1, 3))
    return [{**value, "id": f"batched-{number}"} for number in range(count)]


def _array_of_junk(draw: DrawFn, value: dict[str, Any], revision: Revision) -> list[Any]:
    return draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))


def _initialize_in_batch(draw: DrawFn, value: dict[str, Any], revision: Revision) -> list[Any]:
    client = {"clientInfo": {"name": "mcptest", "version": "0"}, "capabilities": {}}
    return [request("initialize", {"protocolVersion": revision.wire_version, **client}, "batched")]


def _unknown_name(draw: DrawFn, letters: str = "abcxyz/_-.é") -> str:
    known = st.sampled_from(("mcptest/no_such_method", "", "Ping", "tools/list/", "tools"))
    made = st.text(letters, min_size=1, max_size=12).map(lambda text: f"mcptest/{text}")
    return draw(known | made)


def _unknown_in_a_header(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Over HTTP a header repeats it: one that has to be written in another way there, or is empty,
    may be refused for that header."""
    return {**value, "method": _unknown_name(draw, "abcxyz/_-.") or "mcptest/"}


def _unknown_notice(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    params = draw(st.sampled_from((ABSENT, {}, {"a": 1})))
    return request(f"notifications/{_unknown_name(draw)}", params, ABSENT)


_NO_PARAMS: Final = _with("params", *other_than("object", "array"))
_NO_PARAMS_WORDS: Final = "params are neither an object nor an array"
_NO_CODES: Final[tuple[Any, ...]] = ("-32600", 0.5, None, True, {})
_CODES: Final = [{"code": one, "message": ""} for one in _NO_CODES]
_NO_VERSIONS: Final[tuple[Any, ...]] = ("1.0", "2", 2.0, 2, None, "", "2.0 ", "3.0", [], True)

_ENVELOPE: Final = (
    _mutation("jsonrpc-missing", "jsonrpc is missing", _without("jsonrpc"), _NO_MESSAGE),
    _mutation(
        "jsonrpc-wrong", 'jsonrpc is not "2.0"', _with("jsonrpc", *_NO_VERSIONS), _NO_MESSAGE
    ),
    _mutation("method-missing", "there is no method", _without("method", "params"), _NO_MESSAGE),
    _mutation(
        "method-type", "the method is no text", _with("method", *other_than("string")), _NO_MESSAGE
    ),
    _mutation("id-null", "the id is null", _with("id", None), _NO_MESSAGE),
    _mutation("id-boolean", "the id is a boolean", _with("id", False, True), _NO_MESSAGE),
    _mutation(
        "id-fraction", "the id is no whole number", _with("id", 0.5, -1.5, 1e-9), _NO_MESSAGE
    ),
    _mutation("id-array", "the id is an array", _with("id", [], [1], ["a"]), _NO_MESSAGE),
    _mutation("id-object", "the id is an object", _with("id", {}, {"id": 1}), _NO_MESSAGE),
    _mutation("scalar", "it is no object", _one_of(*other_than("object", "array")), _NO_MESSAGE),
    _mutation("params-type", _NO_PARAMS_WORDS, _NO_PARAMS, _NO_MESSAGE, revisions=_HANDSHAKE),
    # Without an object there is no _meta either, and that has a code of its own.
    _stateless("params-type-and-no-meta", _NO_PARAMS_WORDS, _NO_PARAMS),
    _mutation("params-array", "params are an array", _with("params", [], [1], [{}])),
    # Nothing says that a request has no other members.
    _mutation("method-and-result", "it is a request and a response", _with("result", {})),
    _mutation("method-and-error", "it is a request and an error", _with("error", _ERROR)),
    _response(
        "result-and-error",
        "a response has both a result and an error",
        _answer("result", {}, error=_ERROR),
    ),
    _response("result-type", "a result is no object", _answer("result", *other_than("object"))),
    _response("result-without-id", "a result has no id", _one_of({"jsonrpc": "2.0", "result": {}})),
    _response("error-type", "an error is no object", _answer("error", "x", 1, None, [], True)),
    _response(
        "error-code-type", "the code of an error is no whole number", _answer("error", *_CODES)
    ),
    _batch("empty-array", "an empty array", _one_of([]), _NO_MESSAGE),
    _batch("array-of-junk", "an array of things that are no messages", _array_of_junk, _NO_MESSAGE),
    _batch(
        "array",
        "an array of requests, where there are no batches",
        _array_of_requests,
        "JSONRPC-007",
        revisions=_NOT_BATCHING,
    ),
    _batch(
        "initialize-in-batch",
        "initialize inside a batch",
        _initialize_in_batch,
        revisions=_ONE_BATCHING,
    ),
    _mutation(
        "unknown-method",
        "no revision has the method",
        lambda draw, value, revision: {**value, "method": _unknown_name(draw)},
        "JSONRPC-001",
        revisions=_HANDSHAKE,
    ),
    _stateless(
        "unknown-method-in-a-header",
        "no revision has the method",
        _unknown_in_a_header,
        "JSONRPC-001",
    ),
    _mutation(
        "unknown-notification",
        "no revision has the notification",
        _unknown_notice,
        "JSONRPC-005",
        kind="notification",
    ),
    _mutation(
        "method-of-server",
        "only servers ask for that",
        _with("method", "sampling/createMessage", "roots/list"),
        "JSONRPC-001",
    ),
    _mutation(
        "notification-with-id",
        "a notification has an id",
        _asking("notifications/cancelled", requestId="never-sent"),
    ),
    _stateless("ping-gone", "the revision has no ping", _asking("ping"), "PROTO-021"),
    _stateless(
        "set-level-gone",
        "the revision has no logging/setLevel",
        _asking("logging/setLevel", level="info"),
        "LOG-106",
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
_VERSION, _CAPABILITIES = META_PREFIX + "protocolVersion", META_PREFIX + "clientCapabilities"


def _member_missing(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    method = draw(st.sampled_from(tuple(_NEEDED)))
    missing = draw(st.sampled_from(tuple(_NEEDED[method])))
    return {**value, **_call(revision, method, _less(_NEEDED[method], missing))}


def _member_type(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    member = draw(st.sampled_from(tuple(_OF_TYPE)))
    method, content = _OF_TYPE[member]
    wrong = draw(st.sampled_from(other_than(_WANTED.get(member, "string"))))
    return {**value, **_call(revision, method, {**content, member: wrong})}


def _params_missing(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    return {**_less(value, "params"), "method": draw(st.sampled_from(tuple(_NEEDED)))}


def _meta_missing(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    return {**value, "params": {}} if draw(st.booleans()) else _less(value, "params")


_PARAMS: Final = (
    _mutation("params-missing", "params that are needed are left out", _params_missing),
    _mutation("member-missing", "a member that is needed is missing", _member_missing),
    _mutation("member-type", "a member is of another type", _member_type),
    _mutation(
        "meta-type",
        "_meta is no object",
        _with("params", *({"_meta": one} for one in other_than("object"))),
    ),
    _mutation(
        "progress-token-type",
        "the progress token is neither text nor whole number",
        _meta_with("progressToken", None, True, 0.5, [], {}),
    ),
    _stateless("meta-missing", "the request has no _meta", _meta_missing, "PROTO-013"),
    _stateless("version-missing", "_meta names no version", _meta_without(_VERSION), "PROTO-011"),
    _stateless(
        "version-type",
        "the version in _meta is no text",
        _meta_with(_VERSION, *other_than("string")),
    ),
    _stateless(
        "version-unknown",
        "_meta names a version that does not exist",
        _meta_with(_VERSION, "1999-01-01", "", "2026-07-29", "latest", "v2026-07-28"),
        "PROTO-014",
    ),
    _stateless(
        "capabilities-missing",
        "_meta names no capabilities",
        _meta_without(_CAPABILITIES),
        "PROTO-012",
    ),
    _stateless(
        "capabilities-type",
        "the capabilities in _meta are no object",
        _meta_with(_CAPABILITIES, *other_than("object")),
    ),
    _stateless(
        "log-level-unknown",
        "the log level in _meta does not exist",
        _meta_with(META_PREFIX + "logLevel", "loud", "", "INFO", "warn"),
        "LOG-104",
    ),
)


# -- Mutations of the text -----------------------------------------------------------------------

_NO_JSON: Final = ("JSONRPC-002", "STDIO-102")
_LARGEST: Final = 1 << 20

_BAD_UTF8: Final = (
    *(b"\xff", b"\xc0\xaf", b"\xed\xa0\x80"),
    *(b"\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"),
)
"""Never a byte, overlong, a surrogate, a lone continuation, beyond the last code point, cut off."""
_SCRAPS: Final = (
    *(b"x", b"{", b"}", b"[", b"{}}", b"{'jsonrpc': '2.0'}", b'{"jsonrpc": "2.0",}'),
    *(b"{jsonrpc: 2}", b"// {}", b"None", b"Content-Length: 2", b"\x00", b"\x1b[31m"),
)


def _truncated(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    whole = encoded_message(value)
    return whole[: draw(st.integers(1, len(whole) - 1))]


def _two_in_one(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    other = {**value, "id": "second"}
    return encoded_message(value) + draw(st.sampled_from((b"", b" "))) + encoded_message(other)


def _invalid_utf8(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    value["method"] = f"{value['method']}/?"
    return encoded_message(value).replace(b"/?", draw(st.sampled_from(_BAD_UTF8)))


def _duplicate_key(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    twice = draw(st.sampled_from(("method", "id", "jsonrpc", "params")))
    again = json.dumps({twice: value[twice]})[1:]
    return encoded_message(value)[:-1] + b"," + again.encode()


def _too_deep(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    levels = draw(st.sampled_from((DEFAULT_LIMITS.depth, 2_000, 20_000)))
    opening, inner, closing = draw(st.sampled_from(((b"[", b"", b"]"), (b'{"a":', b"0", b"}"))))
    return _text_with(value, opening * levels + inner + closing * levels)


def _unclosed(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return draw(st.sampled_from((b"[", b'{"a":'))) * draw(st.sampled_from((1, 600, 100_000)))


def _huge(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    length = draw(st.sampled_from((_LARGEST // 16, _LARGEST)))
    return encoded_message({**value, "method": "mcptest/" + "x" * length})


_TEXT: Final = (
    _mutation("not-json", "the text is no JSON", _one_of(*_SCRAPS), *_NO_JSON),
    _mutation(
        "blank",
        "there is nothing but white space",
        _one_of(b" ", b"", b"\t", b"   "),
        "STDIO-103",
        transports=frozenset({"stdio"}),
    ),
    _mutation("truncated", "the text breaks off", _truncated, *_NO_JSON),
    _mutation("unclosed", "nothing that is opened is closed", _unclosed, *_NO_JSON),
    _mutation(
        "more-behind",
        "more text follows the message",
        _spoilt(lambda text, more: text + more, b"}", b"x", b",", b" 1", b"\x00"),
        *_NO_JSON,
    ),
    _mutation("two-in-one", "two messages stand on one line", _two_in_one, *_NO_JSON),
    _mutation("invalid-utf8", "a byte of the method is not UTF-8", _invalid_utf8, *_NO_JSON),
    _mutation(
        "byte-order-mark",
        "it starts with a byte order mark",
        _spoilt(lambda text, mark: mark + text, b"\xef\xbb\xbf"),
    ),
    _mutation(
        "utf-16",
        "the text is UTF-16",
        _spoilt(lambda text, form: text.decode().encode(form), "utf-16-le", "utf-16-be"),
        *_NO_JSON,
    ),
    _mutation(
        "control-character",
        "a control character stands in a string",
        _spoilt(
            lambda text, control: text.replace(b'"method":"', b'"method":"' + control),
            *(b"\x01", b"\x00", b"\x09", b"\x08", b"\x1f"),
        ),
        *_NO_JSON,
    ),
    _mutation(
        "not-finite",
        "a number is not finite",
        _holding(b"NaN", b"Infinity", b"-Infinity"),
        *_NO_JSON,
    ),
    _mutation(
        "bad-number",
        "a number is written as JSON has none",
        _holding(b"01", b"+1", b".5", b"1.", b"0x1", b"1_0"),
        *_NO_JSON,
    ),
    _mutation(
        "huge-number",
        "a number is too large for a double",
        _holding(b"1e400", b"-1e999", b"9" * 5_000),
    ),
    _mutation("duplicate-key", "a member occurs twice", _duplicate_key),
    _mutation(
        "lone-surrogate",
        "half a surrogate pair is escaped",
        _holding(b'"\\ud800"', b'"\\udfff"', b'"\\udc00\\ud800"'),
    ),
    _mutation("too-deep", "it nests deeper than 512 levels", _too_deep),
    _mutation("huge", "the name of its method is huge", _huge),
)


# -- Every mutation by its name, the plainest first ----------------------------------------------

MUTATIONS: Final[Mapping[str, Mutation]] = {one.name: one for one in (*_ENVELOPE, *_PARAMS, *_TEXT)}
