"""Facts of probes about connections and plain messages: versions, ids, arrays, ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcptest.model.capture import AnyRecord, Exited, Frame, HttpResponse
from mcptest.model.message import ABSENT, Kind, Message, id_key
from mcptest.model.revision import HANDSHAKE_REVISIONS
from mcptest.run.compliance.probe_seen import (
    Fact,
    Seen,
    Taken,
    Unobserved,
    answers_to,
    messages_of_server,
)
from mcptest.suite.json_equality import json_equal
from mcptest.wire.envelope import decode

BATCHED = ("b1", "b2")
"""The ids inside of the array that the probe sends."""
PROGRESS_OF_SLOW = "mcptest-slow"
"""The progress token of the call that is cancelled."""


# -- offer_versions


_HANDSHAKE_VERSIONS = tuple(one.wire_version for one in HANDSHAKE_REVISIONS)


def counter_offer(seen: Seen) -> Any:
    return seen.result("unknown").get("protocolVersion")


def is_beyond_counter_offer(version: str, seen: Seen) -> bool:
    """Whether offering it would show that the counter-offer was not the newest."""
    offered_instead = counter_offer(seen)
    return offered_instead not in _HANDSHAKE_VERSIONS or version > offered_instead


def accepted(seen: Seen) -> list[str]:
    return [
        revision.wire_version
        for revision in HANDSHAKE_REVISIONS
        if seen.result(f"v{revision.wire_version.replace('-', '_')}").get("protocolVersion")
        == revision.wire_version
    ]


def newest_accepted(seen: Seen) -> str | None:
    offered_instead = [one for one in _HANDSHAKE_VERSIONS if one == counter_offer(seen)]
    return max([*accepted(seen), *offered_instead], default=None)


def counter_offer_is_newest(seen: Seen) -> bool:
    newest = newest_accepted(seen)
    return newest is not None and counter_offer(seen) == newest


# -- another_client_name


def results_that_differ(seen: Seen) -> list[str]:
    """What differs also between two requests under one name changes by itself, and is no fault."""
    ours, other, again = (seen.result(step) for step in ("ours", "other", "again"))
    if seen["ours"].exchange.result is ABSENT:
        raise Unobserved("the request was not answered with a result under our own name")
    if seen["other"].exchange.result is ABSENT:
        return [seen["other"].exchange.answer]
    by_itself = set(_differing(ours, again))
    return [name for name in _differing(ours, other) if name not in by_itself]


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys((*one, *other))
    return [
        name
        for name in names
        if name != "_meta"
        and not (name in one and name in other and json_equal(one[name], other[name]))
    ]


# -- ids_of_all_kinds


def ids_that_differ(seen: Seen) -> list[Any]:
    sent = [one for one in seen.taken.values() if one.identifier is not ABSENT]
    changed = [taken.identifier for taken in sent if not _came_back(taken)]
    if len(changed) == len(sent):
        raise Unobserved("none of the requests was answered")
    return changed


def _came_back(taken: Taken) -> bool:
    wanted = id_key(taken.identifier)
    return any(
        id_key(message.id) == wanted
        for message, _ in messages_of_server(taken.since)
        if message.method is None
    )


# -- batch_of_two


def answered(seen: Seen) -> int:
    since = seen["batch"].records[seen["batch"].begins :]
    return sum(
        any(message.kind is Kind.RESULT for message in answers_to(one, iter(since)))
        for one in BATCHED
    )


# -- close_stdin


def exited(seen: Seen) -> bool:
    return _end_of_process(seen).after == "stdin-closed"


def seconds(seen: Seen) -> float:
    _end_of_process(seen)
    return round(seen["close"].seconds, 3)


def _end_of_process(seen: Seen) -> Exited:
    for record in reversed(seen["close"].records):
        if isinstance(record, Exited):
            if not record.after:
                raise Unobserved("the server had ended before its stdin was closed")
            return record
    raise Unobserved("how the process ended is not known")


# -- cancel_slow_call


def after_cancellation(seen: Seen) -> int:
    """Counted from the answer to the following request on: then the server has read all of it.

    What was on its way while we cancelled is nobody's fault.
    """
    call, after = seen["call"], seen["after"]
    until = _place_of_answer(after.identifier, after.records)
    if until is None:
        raise Unobserved("the request after the cancellation was not answered")
    records = after.records
    if any(answers_to(call.identifier, iter(records[:until]))):
        raise Unobserved("the call had ended before it could be cancelled", "the fixture slow_tool")
    came = sum(1 for _ in _about(call.identifier, iter(records[until:])))
    if not came and seen["fence"].exchange.answer == "none":
        raise Unobserved("a second call that should have shown how long it takes never ended")
    return came


def _place_of_answer(identifier: Any, records: Any) -> int | None:
    for place, record in enumerate(records):
        if any(answers_to(identifier, iter((record,)))):
            return place
    return None


def _about(identifier: Any, records: Iterator[AnyRecord]) -> Iterator[Any]:
    for message, _ in messages_of_server(records):
        is_answer = message.is_answer and id_key(message.id) == id_key(identifier)
        if is_answer or message.params.get("progressToken") == PROGRESS_OF_SLOW:
            yield message


# -- notifications, and what is no message


def unasked_answer(taken: Taken) -> Message | None:
    """The first answer to nothing that was asked: to a notification, or to what is no message.

    Over HTTP a POST may be refused, with an error that has no id: that is no answer.
    """
    asked = {id_key(one) for record in taken.records for one in _ids_asked(record)}
    refused = {
        record.stream
        for record in taken.since
        if isinstance(record, HttpResponse) and record.status >= 400
    }
    for message, frame in messages_of_server(taken.since):
        if message.is_answer and id_key(message.id) not in asked and frame.stream not in refused:
            return message
    return None


def _ids_asked(record: AnyRecord) -> Iterator[Any]:
    if isinstance(record, Frame) and record.sender == "client":
        message = decode(record.raw)
        for each in message.items if message.kind is Kind.BATCH else (message,):
            if each.id is not ABSENT:
                yield each.id


FACTS: Mapping[tuple[str, str], Fact] = {
    ("offer_versions", "counter_offer"): counter_offer,
    ("offer_versions", "accepted"): accepted,
    ("offer_versions", "newest_accepted"): newest_accepted,
    ("offer_versions", "counter_offer_is_newest"): counter_offer_is_newest,
    ("another_client_name", "differing"): results_that_differ,
    ("ids_of_all_kinds", "differing"): ids_that_differ,
    ("batch_of_two", "answered"): answered,
    ("close_stdin", "exited"): exited,
    ("close_stdin", "seconds"): seconds,
    ("cancel_slow_call", "after_cancellation"): after_cancellation,
}
