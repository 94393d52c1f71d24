"""Every mutation by its name, the plainest first: what makes a harmless request an invalid one.

`mutations.yml` is the table, and says how it is to be read.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from msgspec.structs import replace

from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import ABSENT, json_type
from mcptest.core.revision import Era, Revision, Window
from mcptest.probe.properties.steps import ALIVE, Crafted, Intent, encoded_message, request
from mcptest.rules.protocol import needed_meta

# -- A mutation ----------------------------------------------------------------------------------

VALUES: Final[tuple[Any, ...]] = (None, True, 1, 0.5, "x", [], {}, False, 0, "", [1], {"a": 1})
_OTHER_THAN: Final = "other than "
Choices: TypeAlias = list[Any] | str
"""Values, or what stands for plain values of all types but some."""
Change: TypeAlias = Callable[[DrawFn, dict[str, Any], Revision], Any]
"""From a harmless request, which it may change, to a value or bytes."""


class Mutation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A row of the table, which explains what its members mean."""

    about: str
    name: str = ""
    rules: tuple[str, ...] = ()
    kind: Intent = "request"
    since: Revision = Revision.V2024_11_05
    until: Revision | None = None
    transports: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    members: dict[str, Choices] = msgspec.field(name="with", default={})
    params: dict[str, Choices] = {}
    meta: dict[str, Choices] = {}
    meta_without: tuple[str, ...] = ()
    instead: Choices = []
    text: tuple[str, ...] = ()
    holding: tuple[str, ...] = ()

    def applies(self, revision: Revision, transport: str) -> bool:
        holds = revision in Window(self.since, self.until)
        return holds and (not self.transports or transport in self.transports)

    def changed(self, draw: DrawFn, value: dict[str, Any], revision: Revision) -> Any:
        """What is sent in place of a harmless request: a value or bytes."""
        if self.name in _CHANGES:
            return _CHANGES[self.name](draw, value, revision)
        if self.text:
            return draw(st.sampled_from(self.text)).encode()
        if self.instead:
            return _drawn(draw, self.instead)
        if self.holding:
            return _text_with(value, draw(st.sampled_from(self.holding)).encode())
        is_answer = self.kind == "response"
        made = {"jsonrpc": "2.0", "id": value["id"]} if is_answer else _less(value, *self.without)
        made |= {name: _drawn(draw, one) for name, one in self.members.items()}
        if self.params:
            own = {name: _drawn(draw, one) for name, one in self.params.items()}
            made["params"] = {**made["params"], **own}
        if self.meta or self.meta_without:
            meta = _less(made["params"].get("_meta", {}), *self.meta_without)
            meta |= {name: _drawn(draw, one) for name, one in self.meta.items()}
            made["params"] = {**made["params"], "_meta": meta}
        return made


def _drawn(draw: DrawFn, choices: Choices) -> Any:
    if isinstance(choices, str):
        choices = other_than(*choices.removeprefix(_OTHER_THAN).split(", "))
    return draw(st.sampled_from(choices))


def other_than(*kinds: str) -> list[Any]:
    """Plain values of any JSON type but these."""
    return [one for one in VALUES if json_type(one) not in kinds]


def harmless_method(revision: Revision) -> str:
    """Every server has it, and it changes nothing, should it be answered in spite of what is
    wrong."""
    return "ping" if revision.era is Era.HANDSHAKE else "server/discover"


def needed_params(revision: Revision) -> dict[str, Any]:
    """What the params of every request hold."""
    return {} if revision.era is Era.HANDSHAKE else {"_meta": needed_meta(revision)}


_IDS: Final = st.sampled_from((1, "a", 0, 2**53 - 1)) | st.integers(1, 10_000)


@functools.lru_cache(maxsize=1_000)
@st.composite
def spoilt_message(draw: DrawFn, mutation: str, revision: Revision) -> Crafted:
    row = MUTATIONS[mutation]
    value = request(harmless_method(revision), needed_params(revision), draw(_IDS))
    made = row.changed(draw, dict(value), revision)
    name = made.get("method") if isinstance(made, dict) else None
    return Crafted(
        raw=made if isinstance(made, bytes) else encoded_message(made),
        valid=False,
        kind=row.kind,
        mutation=mutation,
        method=name if isinstance(name, str) else "",
        identifier=_identifier(made, value["id"]),
        about=row.about,
        rules=row.rules,
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


def _less(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in names}


def _text_with(value: dict[str, Any], literal: bytes) -> bytes:
    value["params"] = {**value["params"], "mcptest": "?"}
    return encoded_message(value).replace(b'"?"', literal)


# -- Mutations of the envelope -------------------------------------------------------------------


def _array_of_requests(draw: DrawFn, value: dict[str, Any], revision: Revision) -> list[Any]:
    count = draw(st.integers(1, 3))
    return [{**value, "id": f"batched-{number}"} for number in range(count)]


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
    params = {**_less(_NEEDED[method], missing), **needed_params(revision)}
    return {**value, "method": method, "params": params}


def _member_type(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    member = draw(st.sampled_from(tuple(_OF_TYPE)))
    method, content = _OF_TYPE[member]
    wrong = draw(st.sampled_from(other_than(_WANTED.get(member, "string"))))
    params = {**content, member: wrong, **needed_params(revision)}
    return {**value, "method": method, "params": params}


def _meta_missing(draw: DrawFn, value: dict[str, Any], revision: Revision) -> dict[str, Any]:
    return {**value, "params": {}} if draw(st.booleans()) else _less(value, "params")


# -- Mutations of the text -----------------------------------------------------------------------

_LARGEST: Final = 1 << 20
_BAD_UTF8: Final = (
    *(b"\xff", b"\xc0\xaf", b"\xed\xa0\x80"),
    *(b"\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"),
)
"""Never a byte, overlong, a surrogate, a lone continuation, beyond the last code point, cut off."""


def _spoilt(spoil: Callable[[bytes, Any], bytes], *choices: Any) -> Change:
    """What is made of the text of the message and one of the choices."""
    return lambda draw, value, revision: spoil(
        encoded_message(value), draw(st.sampled_from(choices))
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


_CHANGES: Final[Mapping[str, Change]] = {
    "array": _array_of_requests,
    "array-of-junk": lambda draw, *_: draw(
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=3)
    ),
    "initialize-in-batch": _initialize_in_batch,
    "unknown-method": lambda draw, value, _: {**value, "method": _unknown_name(draw)},
    "unknown-method-in-a-header": _unknown_in_a_header,
    "unknown-notification": _unknown_notice,
    "params-missing": lambda draw, value, _: {
        **_less(value, "params"),
        "method": draw(st.sampled_from(tuple(_NEEDED))),
    },
    "member-missing": _member_missing,
    "member-type": _member_type,
    "meta-missing": _meta_missing,
    "truncated": _truncated,
    "unclosed": _unclosed,
    "more-behind": _spoilt(lambda text, more: text + more, b"}", b"x", b",", b" 1", b"\x00"),
    "two-in-one": _two_in_one,
    "invalid-utf8": _invalid_utf8,
    "byte-order-mark": _spoilt(lambda text, mark: mark + text, b"\xef\xbb\xbf"),
    "utf-16": _spoilt(lambda text, form: text.decode().encode(form), "utf-16-le", "utf-16-be"),
    "control-character": _spoilt(
        lambda text, control: text.replace(b'"method":"', b'"method":"' + control),
        *(b"\x01", b"\x00", b"\x09", b"\x08", b"\x1f"),
    ),
    "huge-number": lambda draw, value, _: _text_with(
        value, draw(st.sampled_from((b"1e400", b"-1e999", b"9" * 5_000)))
    ),
    "duplicate-key": _duplicate_key,
    "too-deep": _too_deep,
    "huge": _huge,
}
"""What the table can't say."""

MUTATIONS: Final[Mapping[str, Mutation]] = {
    # Whatever else a rule says of it: the server is still running afterwards.
    name: replace(row, name=name, rules=(*row.rules, ALIVE))
    for name, row in msgspec.yaml.decode(
        Path(__file__).with_name("mutations.yml").read_bytes(), type=dict[str, Mutation]
    ).items()
}
