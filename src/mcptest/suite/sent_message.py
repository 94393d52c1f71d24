"""What a compliance check sends: a method, raw bytes, a bare HTTP request or a named probe."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec

from mcptest.core.safe_text import show
from mcptest.suite.fields import DECLARED, Choice, Mark, Reading, Text, declared, value_of
from mcptest.suite.model import Strings, Table
from mcptest.suite.reading import did_you_mean

KINDS = ("method", "raw", "http", "probe")
PARTS = ("_meta", "params", "arguments")
"""What `omit` may leave out of a request."""


@declared("http")
class SentHttpRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A bare HTTP request to the endpoint."""

    method: Annotated[
        str, Choice(("GET", "POST", "DELETE", "PUT", "OPTIONS")), "Its method.", Mark.REQUIRED
    ]
    headers: Annotated[Table, "Its headers; null removes a default header."] = {}
    body: Annotated[str, Text(may_be_empty=True), "Its body."] = ""


@declared("a check")
class SentCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is sent. A bare text is a method."""

    method: Annotated[str, "The method of a request."] = ""
    params: Annotated[Table | None, "Its params; the members of `_meta` are added."] = None
    meta: Annotated[
        Table, "Members of `_meta` that differ from the default; null removes one."
    ] = {}
    headers: Annotated[Table, "HTTP headers that differ from the default; null removes one."] = {}
    omit: Annotated[Strings, f"What to omit: {', '.join(PARTS)}."] = ()
    declare: Annotated[Strings, "Client capabilities to declare, such as `elicitation.url`."] = ()
    raw: Annotated[str, Text(may_be_empty=True), "Raw bytes to send as one message."] = ""
    http: Annotated[SentHttpRequest | None, "A bare HTTP request to the endpoint."] = None
    probe: Annotated[str, "A named sequence of messages; not available in suites."] = ""

    @property
    def kind(self) -> str:
        return next((name for name in KINDS if getattr(self, name)), "raw")

    @property
    def is_raw(self) -> bool:
        """Bytes as they stand; none at all are an empty line."""
        return self.kind == "raw"

    @property
    def said(self) -> str:
        """In a few words, for people."""
        if self.http is not None:
            return f"HTTP {self.http.method}"
        if self.is_raw:
            return f"the text {show(self.raw, 60)}"
        return f"probe {self.probe}" if self.probe else self.method


HTTP, CHECK = DECLARED[SentHttpRequest], DECLARED[SentCheck]


def check_of(read: Reading) -> SentCheck | None:
    """The check that was read; None when it is not sound, which is reported."""
    if not read.sound:
        return None
    given = [name for name in KINDS if name in read]
    if len(given) != 1:
        found = " and ".join(given) if given else "nothing to send"
        read.complain(f"check has {found}", hint=f"use one of {', '.join(KINDS)}")
        return None
    before, kind = read.source.errors, given[0]
    for name in ("params", "meta", "headers", "omit", "declare"):
        if name in read and kind != "method":
            read.complain(f"{name} has no effect for {kind}", name)
    for part in read.get("omit", ()):
        if part not in PARTS:
            read.complain(f"omit: {show(part, 40)}", "omit", hint=did_you_mean(part, PARTS))
    return value_of(SentCheck, read) if read.source.errors == before else None


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
