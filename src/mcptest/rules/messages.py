"""MSG: the messages themselves, by JSON and JSON-RPC 2.0 and what MCP adds to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcptest.model.message import ABSENT, Flaw, Kind, json_type
from mcptest.model.revision import Revision, Window
from mcptest.model.verdict import Severity, Side
from mcptest.rules.answers import shown_id
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.wire.diagnosis import diagnose
from mcptest.wire.envelope import envelope_problems, is_request_id
from mcptest.wire.jsontext import duplicate_keys

# These have rules of their own, or depend on what the message answers.
_JUDGED_ELSEWHERE = frozenset({Flaw.ID_NULL, Flaw.ID_TYPE, Flaw.ERROR_TYPE})


def _is_plain(value: Any) -> bool:
    """The usual message, recognised without building a list of problems."""
    if type(value) is not dict or value.get("jsonrpc") != "2.0":
        return False
    if "method" in value:
        return (
            type(value["method"]) is str
            and "result" not in value
            and "error" not in value
            and type(value.get("params", _NOTHING)) is dict
        )
    return "id" in value and ("result" in value) != ("error" in value)


_NOTHING: dict[str, Any] = {}


@session_rule(
    "MSG-001",
    "every message is JSON-RPC 2.0",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#messages",
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT, Kind.ERROR, Kind.INVALID, Kind.BATCH),
    on_routine="count",
)
def every_message_is_jsonrpc(check: Check) -> Watching:
    """Each message has `jsonrpc: "2.0"` and is a request, a notification or a response.

    A request has a string `method` and an id, a notification a `method` and no id, a response the
    id of its request and either `result` or `error`, never both. `params` is an object or array.

    A peer may drop anything else without a word, and the session hangs. Bytes that are no JSON at
    all are judged by MSG-002.
    """
    while step := (yield):
        value = step.message.value
        if value is ABSENT:
            continue
        check.saw(step)
        if step.kind is Kind.BATCH:
            if not value:
                check.violated(step, "an empty batch", expected="at least one message")
            continue
        if _is_plain(value):
            continue
        for problem in envelope_problems(value):
            if problem.flaw not in _JUDGED_ELSEWHERE:
                check.violated(step, problem.reason, pointer=problem.pointer)


@session_rule(
    "MSG-002",
    "every message is JSON text in UTF-8",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic/transports",
    on_routine="count",
)
def every_message_is_json_text(check: Check) -> Watching:
    """What is sent parses as JSON: UTF-8, no byte order mark, no NaN or Infinity, sane numbers.

    JSON libraries differ in what they forgive. Text that one of them reads and another refuses
    makes a session work with one peer and hang with the next. Nesting deeper than 512 levels is
    reported too: common parsers give up there.

    To fix it, use a strict encoder and write numbers that are not finite as null or strings.
    """
    while step := (yield):
        if step.in_batch:
            continue
        check.saw(step)
        for problem in step.message.problems:
            reason = problem.reason
            if problem.flaw is Flaw.NOT_JSON:
                known = diagnose((step.message.raw,), lines=step.stream is None)
                reason = f"{known}: {reason}" if known else reason
            check.violated(step, reason, expected="JSON text", pointer=problem.pointer)


@session_rule(
    "MSG-003",
    "no object has the same key twice",
    category="json-rpc",
    severity=Severity.SHOULD,
    side=Side.BOTH,
    spec="basic#messages",
)
def keys_are_unique(check: Check) -> Watching:
    """The members of each JSON object have different names.

    Which of two equal keys counts is up to the parser, so a proxy and a server can read two
    different messages from the same bytes: a way around checks. RFC 8259 says SHOULD.
    """
    while step := (yield):
        message = step.message
        if step.in_batch or message.value is ABSENT:
            continue
        check.saw(step)
        repeated = duplicate_keys(message.raw, message.value)
        if repeated:
            check.violated(
                step,
                f"the key {repeated[0]!r} occurs twice in one object",
                expected="each key once",
                actual=", ".join(repeated[:5]),
            )


@session_rule(
    "MSG-004",
    "a request id is a string or an integer",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#requests",
    listens=(Kind.REQUEST,),
    on_routine="count",
)
def request_ids_are_strings_or_integers(check: Check) -> Watching:
    """The id of a request is a string or an integer, and never null.

    An answer is matched by its id alone. null stands for "unknown" in JSON-RPC, and a fraction or
    an object does not survive every peer. 2.0 is the integer 2. An integer beyond 2^53 is legal
    but changes in peers that read numbers as doubles.
    """
    while step := (yield):
        identifier = step.id
        check.saw(step)
        if not is_request_id(identifier):
            check.violated(
                step,
                f"the id of {step.method!r} is {json_type(identifier)}",
                expected="a string or an integer",
                actual=repr(identifier),
                pointer="/id",
            )


@session_rule(
    "MSG-010",
    "an error for an unreadable request leaves out the id",
    category="json-rpc",
    severity=Severity.SHOULD,
    side=Side.BOTH,
    spec="basic#responses",
    window=Window(since=Revision.V2025_11_25),
    listens=(Kind.ERROR,),
)
def errors_without_id_leave_it_out(check: Check) -> Watching:
    """When the id of a request could not be read, the error has no `id` member; null is not one.

    The schema of MCP does not allow null there, while JSON-RPC 2.0 asks for it and real servers
    send it. So this is a warning: clients do well to accept both.
    """
    while step := (yield):
        if step.id is None:
            check.violated(step, "the error has id null", expected="no id member", pointer="/id")
        elif step.id is ABSENT:
            check.saw(step)


@session_rule(
    "MSG-011",
    "messages are not batched",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic/transports",
    window=Window(since=Revision.V2025_06_18),
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.BATCH),
    on_routine="count",
)
def messages_are_not_batched(check: Check) -> Watching:
    """From 2025-06-18 on a line or body holds one message, not an array of them.

    Batches existed in 2025-03-26 only. A peer of a later revision need not understand them.
    """
    while step := (yield):
        if step.in_batch:
            continue
        check.saw(step)
        if step.kind is Kind.BATCH:
            check.violated(
                step,
                f"a batch of {len(step.message.items)} messages",
                expected="one message",
            )


@session_rule(
    "MSG-012",
    "a result is an object",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#responses",
    listens=(Kind.RESULT,),
    on_routine="count",
)
def results_are_objects(check: Check) -> Watching:
    """`result` is a JSON object, also when there is nothing to say: `{}`.

    JSON-RPC allows any value, MCP does not: `_meta` and later additions need a place.
    """
    while step := (yield):
        check.saw(step)
        if not isinstance(step.result, dict):
            check.violated(
                step,
                f"the result of {step.method!r} is {json_type(step.result)}",
                expected="an object",
                pointer="/result",
            )


_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY = re.compile(
    rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)


@session_rule(
    "MSG-016",
    "the keys of _meta follow their grammar",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#_meta",
    window=Window(since=Revision.V2025_06_18),
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT),
)
def meta_keys_follow_the_grammar(check: Check) -> Watching:
    """A key of `_meta` is a name, with a prefix of dotted labels and a slash before it if any.

    Labels begin with a letter, labels and names end with a letter or digit. The grammar keeps the
    keys of the protocol and those of others apart. Looked at are params, results and the items of
    lists.
    """
    while step := (yield):
        if b'"_meta"' not in step.message.raw and not step.in_batch:
            continue  # few messages have one
        holder = step.result if step.kind is Kind.RESULT else step.params
        for pointer, meta in _metas(holder):
            check.saw(step)
            for key in meta if isinstance(meta, dict) else ():
                if not _META_KEY.fullmatch(key):
                    check.violated(
                        step,
                        f"the key {key!r} of _meta",
                        expected="[prefix.labels/]name",
                        actual=key,
                        pointer=pointer,
                    )


def _metas(holder: Any) -> Iterator[tuple[str, Any]]:
    if type(holder) is not dict:
        return
    if "_meta" in holder:
        yield "/_meta", holder["_meta"]
    for name, value in holder.items():
        if type(value) is list:
            for place, item in enumerate(value):
                if type(item) is dict and "_meta" in item:
                    yield f"/{name}/{place}/_meta", item["_meta"]


@session_rule(
    "MSG-017",
    "a notification has no id",
    category="json-rpc",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#notifications",
    listens=(Kind.REQUEST, Kind.NOTIFICATION),
    on_routine="skip",
)
def notifications_have_no_id(check: Check) -> Watching:
    """A message whose method begins with `notifications/` carries no `id` member.

    With an id it is a request by its shape, and the receiver owes an answer that nobody waits for.
    """
    while step := (yield):
        if step.kind is Kind.NOTIFICATION:
            check.saw(step)
        elif step.method.startswith("notifications/"):
            check.violated(
                step,
                f"{step.method!r} with an id",
                expected="no id member",
                actual=shown_id(step.id),
                pointer="/id",
            )
