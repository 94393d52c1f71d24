"""What a compliance check sends: a method, raw bytes, a bare HTTP request or a named probe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mcptest.model.show import show
from mcptest.suite.fields import Choice, Declaration, Field, JsonTable, ObjectOf, Text, Texts
from mcptest.suite.problems import did_you_mean
from mcptest.suite.reading import Reading
from mcptest.suite.scalars import is_nothing
from mcptest.suite.yaml_nodes import Listing, Node, Scalar
from mcptest.suite.yaml_nodes import Mapping as MappingNode

KINDS = ("method", "raw", "http", "probe")
PARTS = ("_meta", "params", "arguments")
"""What `omit` may leave out of a request."""


class HttpRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request that is made as it stands, with no message of ours in it."""

    method: str
    headers: Mapping[str, Any] = msgspec.field(default_factory=dict)
    body: str = ""


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exactly one of `method`, `raw`, `http` and `probe` is given."""

    method: str = ""
    params: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Members of `_meta` that are other than usual; null leaves one out."""
    headers: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """HTTP headers that are other than usual; null leaves one out."""
    omit: tuple[str, ...] = ()
    declare: tuple[str, ...] = ()
    """The client capabilities under which it is sent; none but these."""
    raw: str = ""
    http: HttpRequest | None = None
    probe: str = ""

    @property
    def kind(self) -> str:
        return next(name for name in KINDS if getattr(self, name))

    @property
    def said(self) -> str:
        """In a few words, for people."""
        if self.http is not None:
            return f"HTTP {self.http.method}"
        if self.raw:
            return f"the text {show(self.raw, 60)}"
        return f"probe {self.probe}" if self.probe else self.method


HTTP = Declaration(
    "http",
    "A bare HTTP request to the endpoint.",
    (
        Field("method", Choice(("GET", "POST", "DELETE", "PUT", "OPTIONS")), "Its method.", True),
        Field("headers", JsonTable(), "Its headers; null leaves out one that is usual."),
        Field("body", Text(may_be_empty=True), "Its body."),
    ),
)
CHECK = Declaration(
    "a check",
    "What is sent. A bare text is a method.",
    (
        Field("method", Text(), "The method of a request."),
        Field("params", JsonTable(), "Its params; the members of `_meta` are added."),
        Field("meta", JsonTable(), "Members of `_meta` that are other than usual; null: none."),
        Field("headers", JsonTable(), "HTTP headers that are other than usual; null: none."),
        Field("omit", Texts(), f"What is left out: {', '.join(PARTS)}."),
        Field("declare", Texts(), "Client capabilities under which it is sent: `elicitation.url`."),
        Field("raw", Text(), "Bytes that are sent as they stand, as one message."),
        Field("http", ObjectOf(HTTP), HTTP.doc),
        Field(
            "probe", Text(), "A named sequence of messages; not for suites, which name the rule."
        ),
    ),
)


def with_method_spelled_out(node: MappingNode) -> MappingNode:
    """`check: ping` is short for `check: {method: ping}`."""
    entry = node.entries.get("check")
    if entry is None or not isinstance(entry[1], Scalar) or is_nothing(entry[1]):
        return node
    key, name = entry[0], entry[1]
    spelled = MappingNode({"method": (name, name)}, name.line, name.column)
    return MappingNode({**node.entries, "check": (key, spelled)}, node.line, node.column)


def spelled_out_items(node: Node) -> Node:
    """The same for every item of a list."""
    if not isinstance(node, Listing):
        return node
    items = tuple(
        with_method_spelled_out(one) if isinstance(one, MappingNode) else one for one in node.items
    )
    return Listing(items, node.line, node.column)


def check_of(read: Reading) -> Check | None:
    """The check that was read; None when it is not sound, which is reported."""
    if not read.sound:
        return None
    given = [name for name in KINDS if name in read]
    if len(given) != 1:
        found = " and ".join(given) if given else "nothing to send"
        read.complain(f"check has {found}", hint=f"give one of {', '.join(KINDS)}")
        return None
    if not _fits_together(read, given[0]):
        return None
    http: Reading | None = read.get("http")
    return Check(
        method=read.get("method", ""),
        params=read.get("params"),
        meta=read.get("meta", {}),
        headers=read.get("headers", {}),
        omit=read.get("omit", ()),
        declare=read.get("declare", ()),
        raw=read.get("raw", ""),
        http=None if http is None else _http_of(http),
        probe=read.get("probe", ""),
    )


def _fits_together(read: Reading, kind: str) -> bool:
    before = read.source.errors
    for name in ("params", "meta", "headers", "omit", "declare"):
        if name in read and kind != "method":
            read.complain(f"{name} has no meaning for {kind}", name)
    for part in read.get("omit", ()):
        if part not in PARTS:
            read.complain(f"omit: {show(part, 40)}", "omit", hint=did_you_mean(part, PARTS))
    return read.source.errors == before


def _http_of(read: Reading) -> HttpRequest:
    return HttpRequest(read.get("method", ""), read.get("headers", {}), read.get("body", ""))


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a value, at any depth, keys included."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            pending.extend(one.keys())
            pending.extend(one.values())
        elif isinstance(one, list | tuple):
            pending.extend(one)
