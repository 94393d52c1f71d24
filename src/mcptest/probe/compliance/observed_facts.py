"""Every fact of every probe, with the function that works it out of what was seen."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from mcptest.core.capture import AnyRecord, Exited, Frame, HttpResponse, SseEvent, StreamEnd
from mcptest.core.message import ABSENT, Kind, Message, id_key
from mcptest.core.revision import HANDSHAKE_REVISIONS
from mcptest.probe.compliance.course import (
    Fact,
    ProbeSeen,
    Taken,
    Unobserved,
    answers_to,
    messages_of,
)
from mcptest.rules.protocol import (
    CHANGE_NOTIFICATIONS,
    SUBSCRIPTION_ID,
    member_at,
    object_at,
    objects_at,
)
from mcptest.session.pages import ITEM_NAMES, LIST_MEMBERS, named_items
from mcptest.suite.matching import json_equal
from mcptest.wire.envelope import decode
from mcptest.wire.mcp_headers import annotation_problems, header_annotations, media_type

FACTS: Final[dict[tuple[str, str], Fact]] = {}
"""By probe and name."""


def fact(probe: str, name: str) -> Callable[[Fact], Fact]:
    """Declare what works out a fact of a probe."""

    def declare(work_out: Fact) -> Fact:
        FACTS[probe, name] = work_out
        return work_out

    return declare


BATCHED = ("b1", "b2")
"""The ids inside of the array that the probe sends."""
PROGRESS_OF_SLOW = "mcptest-slow"
"""The progress token of the call that is cancelled."""


_HANDSHAKE_VERSIONS = tuple(one.wire_version for one in HANDSHAKE_REVISIONS)


@fact("offer_versions", "counter_offer")
def counter_offer(seen: ProbeSeen) -> Any:
    return seen.result("unknown").get("protocolVersion")


def is_beyond_counter_offer(version: str, seen: ProbeSeen) -> bool:
    """Whether offering it would show that the counter-offer was not the newest."""
    offered_instead = counter_offer(seen)
    return offered_instead not in _HANDSHAKE_VERSIONS or version > offered_instead


@fact("offer_versions", "accepted")
def accepted(seen: ProbeSeen) -> list[str]:
    steps = {version: f"v{version.replace('-', '_')}" for version in _HANDSHAKE_VERSIONS}
    return [one for one, step in steps.items() if seen.result(step).get("protocolVersion") == one]


@fact("offer_versions", "newest_accepted")
def newest_accepted(seen: ProbeSeen) -> str | None:
    offered_instead = [one for one in _HANDSHAKE_VERSIONS if one == counter_offer(seen)]
    return max([*accepted(seen), *offered_instead], default=None)


@fact("offer_versions", "counter_offer_is_newest")
def counter_offer_is_newest(seen: ProbeSeen) -> bool:
    newest = newest_accepted(seen)
    return newest is not None and counter_offer(seen) == newest


@fact("another_client_name", "differing")
def results_that_differ(seen: ProbeSeen) -> list[str]:
    """What differs also between two requests under one name changes by itself, and is no fault."""
    ours, other, again = (seen.result(step) for step in ("ours", "other", "again"))
    if seen["ours"].exchange.result is ABSENT:
        raise Unobserved("the server did not return a result under our own client name")
    if seen["other"].exchange.result is ABSENT:
        return [seen["other"].exchange.answer]
    by_itself = set(_differing(ours, again))
    return [name for name in _differing(ours, other) if name not in by_itself]


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    alike = {name for name in one.keys() & other.keys() if json_equal(one[name], other[name])}
    return [name for name in dict.fromkeys((*one, *other)) if name not in {*alike, "_meta"}]


@fact("ids_of_all_kinds", "differing")
def ids_that_differ(seen: ProbeSeen) -> list[Any]:
    """Ids without an answer, where answers came that have another id. Silence is another fault."""
    sent = [one for one in seen.taken.values() if one.identifier is not ABSENT]
    changed = [
        taken.identifier
        for taken in sent
        if id_key(taken.identifier)
        not in {id_key(one.id) for one in taken.came if one.method is None}
    ]
    if len(changed) == len(sent):
        raise Unobserved("the server answered none of the requests")
    if changed and not any(map(_has_stray_answer, sent)):
        raise Unobserved("the server did not answer some of the requests")
    return changed


def _has_stray_answer(taken: Taken) -> bool:
    """Whether an answer came with an id that no request on its connection had."""
    asked = {id_key(one.id) for one, _ in messages_of("client", taken.records)}
    return any(one.method is None and id_key(one.id) not in asked for one in taken.came)


@fact("batch_of_two", "answered")
def answered(seen: ProbeSeen) -> int:
    batch = seen["batch"]
    found = ((one.kind is Kind.RESULT for one in answers_to(each, batch.since)) for each in BATCHED)
    return sum(map(any, found))


@fact("close_stdin", "exited")
def exited(seen: ProbeSeen) -> bool:
    return _end_of_process(seen).after == "stdin-closed"


@fact("close_stdin", "seconds")
def seconds(seen: ProbeSeen) -> float:
    _end_of_process(seen)
    return round(seen["close"].seconds, 3)


def _end_of_process(seen: ProbeSeen) -> Exited:
    for record in reversed(seen["close"].records):
        if isinstance(record, Exited):
            if not record.after:
                raise Unobserved("the server exited before its stdin was closed")
            return record
    raise Unobserved("the exit of the process was not observed")


@fact("cancel_slow_call", "after_cancellation")
def after_cancellation(seen: ProbeSeen) -> int:
    """Counted from the answer to the following request on: then the server has read all of it.

    What was on its way while we cancelled is nobody's fault.
    """
    call, after = seen["call"], seen["after"]
    records, last = after.records, after.identifier
    places = (n for n, one in enumerate(records) if any(answers_to(last, (one,))))
    until = next(places, None)
    if until is None:
        raise Unobserved("the server did not answer the request after the cancellation")
    if any(answers_to(call.identifier, records[:until])):
        raise Unobserved("the call ended before it could be cancelled", "the fixture slow_tool")
    wanted = id_key(call.identifier)
    came = sum(
        1
        for message, _ in messages_of("server", records[until:])
        if (message.is_answer and id_key(message.id) == wanted)
        or message.params.get("progressToken") == PROGRESS_OF_SLOW
    )
    if not came and seen["fence"].exchange.answer == "none":
        raise Unobserved("a second call of the same tool did not end")
    return came


def unasked_answer(taken: Taken) -> Message | None:
    """The first answer to nothing that was asked: to a notification, or to what is no message.

    Over HTTP a POST may be refused, with an error that has no id: that is no answer.
    """
    sent = (one for one, _ in messages_of("client", taken.records))
    asked = {id_key(one.id) for one in sent if one.id is not ABSENT}
    refused = {
        record.stream
        for record in taken.since
        if isinstance(record, HttpResponse) and record.status >= 400
    }
    for message, frame in messages_of("server", taken.since):
        if message.is_answer and id_key(message.id) not in asked and frame.stream not in refused:
            return message
    return None


_TOOLS = "tools/list"


def _names(items: Sequence[Any], method: str = _TOOLS) -> list[str]:
    """In their order; what has none is left out."""
    member = ITEM_NAMES[method]
    return [one[member] for one in named_items(items, member)]


@fact("lists_on_two_connections", "differing")
def lists_that_differ(seen: ProbeSeen) -> list[str]:
    first, second = seen["first"].lists, seen["second"].lists
    if not first:
        raise Unobserved("the server declares no lists", "a list of tools, prompts or resources")
    return [
        method
        for method, items in first.items()
        if sorted(_names(items, method)) != sorted(_names(second.get(method, ()), method))
    ]


@fact("list_tools_twice", "same_order")
def same_order(seen: ProbeSeen) -> bool:
    first, second = (_names(seen[one].lists.get(_TOOLS, ())) for one in ("first", "second"))
    both = set(first) & set(second)
    if len(both) < 2:
        raise Unobserved("the server lists fewer than two tools", "at least two listed tools")
    return [name for name in first if name in both] == [name for name in second if name in both]


@fact("cursor_twice", "same_items")
def same_items(seen: ProbeSeen) -> bool:
    """A page that is refused the second time is not the same page."""
    if seen["first"].exchange.result is ABSENT:
        raise Unobserved("the server rejected the cursor of the second page the first time")
    pages = [seen.result(one).get(LIST_MEMBERS[_TOOLS]) for one in ("first", "second")]
    first, second = (_names(one) if isinstance(one, list) else None for one in pages)
    return first is not None and first == second


def _announced(kind: str, seen: ProbeSeen) -> bool:
    method, notification = f"{kind}/list", f"notifications/{kind}/list_changed"
    if any(message.method == notification for message in seen["change"].came):
        return True
    before = sorted(_names(seen["before"].lists.get(method, ()), method))
    if before == sorted(_names(seen["later"].lists.get(method, ()), method)):
        raise Unobserved("the call did not change the list", "a fixture tool that changes the list")
    return False


FACTS["change_of_tools", "announced"] = partial(_announced, "tools")
FACTS["change_of_prompts", "announced"] = partial(_announced, "prompts")


@fact("header_annotations", "problems")
def annotations_with_problems(seen: ProbeSeen) -> list[str]:
    found, problems = False, []
    for tool in seen["lists"].lists.get(_TOOLS, ()):
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        found = found or bool(header_annotations(schema))
        problems += [f"{tool.get('name')}: {problem}" for problem in annotation_problems(schema)]
    if not found:
        raise Unobserved("no tool has an x-mcp-header", "a tool with an x-mcp-header argument")
    return problems


RELATED = "io.modelcontextprotocol/related-task"
ENDED = frozenset({"completed", "failed", "cancelled"})
_UNDER_WAY = frozenset({"working", "input_required"})
_TIMES = ("createdAt", "lastUpdatedAt")


def created(seen: ProbeSeen, step: str) -> Mapping[str, Any]:
    """The task that a call began, as the answer shows it."""
    return object_at(seen.result(step), "task")


def status_in(seen: ProbeSeen, step: str) -> Any:
    return seen.result(step).get("status")


def has_ended(status: Any) -> bool:
    return isinstance(status, str) and status in ENDED


def sightings(seen: ProbeSeen) -> Iterator[Mapping[str, Any]]:
    """Every task in every answer, in order.

    Notifications may overtake answers on another stream, so they say nothing about order.
    """
    for message in seen["create"].came:
        result = message.result
        if not isinstance(result, dict):
            continue
        for task in (result, result.get("task")):
            if isinstance(task, dict) and "taskId" in task and "status" in task:
                yield task


@fact("task_lifecycle", "ids_are_distinct")
def ids_are_distinct(seen: ProbeSeen) -> bool:
    first, second = (created(seen, step).get("taskId") for step in ("create", "second"))
    return isinstance(first, str) and isinstance(second, str) and first != second


@fact("task_lifecycle", "illegal_transitions")
def illegal_transitions(seen: ProbeSeen) -> list[str]:
    latest: dict[str, str] = {}
    illegal = []
    for task in sightings(seen):
        name, status = str(task["taskId"]), str(task["status"])
        before = latest.get(name, "created")
        latest[name] = status
        if not _may_follow(before, status):
            illegal.append(f"{before} -> {status}")
    return illegal


def _may_follow(before: str, status: str) -> bool:
    if before in ENDED:
        return status == before
    return status == "working" if before == "created" else status in ENDED | _UNDER_WAY


@fact("task_lifecycle", "bad_times")
def bad_times(seen: ProbeSeen) -> list[str]:
    found: list[str] = []
    for task in sightings(seen):
        found += [f"{one}: {task.get(one)!r}" for one in _TIMES if not _is_time(task.get(one))]
        found += ["ttl is missing"] if "ttl" not in task else []
    return list(dict.fromkeys(found))


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or "T" not in value.upper():
        return False
    try:
        datetime.datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


@fact("task_lifecycle", "result_is_related")
def result_is_related(seen: ProbeSeen) -> bool:
    if seen["result"].exchange.answer != "result":
        raise Unobserved("the server did not answer tasks/result with a result")
    related = member_at(seen.result("result"), "_meta", RELATED)
    return isinstance(related, dict) and related.get("taskId") == created(seen, "create").get(
        "taskId"
    )


@fact("task_lifecycle", "result_waited")
def result_waited(seen: ProbeSeen) -> bool:
    """Right after its result came, a task must have ended."""
    if seen["result"].exchange.answer == "none":
        raise Unobserved("the server did not answer tasks/result")
    return has_ended(status_in(seen, "ended"))


@fact("task_lifecycle", "listed")
def listed(seen: ProbeSeen) -> bool:
    if not seen.declares("tasks.list"):
        raise Unobserved("tasks.list is not declared", "the capability tasks.list")
    if seen["ended"].exchange.result is ABSENT:
        raise Unobserved("tasks/get found no task")
    items = seen["list"].lists.get("tasks/list", ())
    names = [item.get("taskId") for item in items if isinstance(item, dict)]
    return created(seen, "create").get("taskId") in names


@fact("task_lifecycle", "cancelled_for_good")
def cancelled_for_good(seen: ProbeSeen) -> bool:
    if not seen.declares("tasks.cancel"):
        raise Unobserved("tasks.cancel is not declared", "the capability tasks.cancel")
    later = status_in(seen, "later")
    if seen["cancel"].exchange.answer == "error" and later in {"completed", "failed"}:
        reason = "the task ended before it could be cancelled"
        raise Unobserved(reason, "a task_tool that takes a second")
    return [status_in(seen, "cancel"), later] == ["cancelled"] * 2


ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
KINDS_OF_CHANGE: Mapping[str, str] = {
    kind: f"{capability}.{member}" for capability, member, kind in CHANGE_NOTIFICATIONS.values()
}
"""What a subscription may ask for, with the capability that offers it."""
_METHOD_NOT_FOUND = -32601
_URL_NEEDED = -32042


@fact("structured_text", "repeated")
def structured_content_repeated(seen: ProbeSeen) -> bool:
    result = seen.result("call")
    if "structuredContent" not in result or result.get("isError") is True:
        raise Unobserved("the call returned no structured content")
    texts = [block.get("text") for block in objects_at(result, "content")]
    return any(
        json_equal(decode(text.encode("utf-8", "replace")).value, result["structuredContent"])
        for text in texts
        if isinstance(text, str)
    )


@fact("sampling_with_tools", "mixed")
def mixed_results(seen: ProbeSeen) -> list[str]:
    _require_tool_results(seen)
    return [
        f"message {number} of a request"
        for messages in _sampled(seen)
        for number, message in enumerate(messages)
        if 0 < len(_blocks(message, "tool_result")) < len(_blocks(message))
    ]


@fact("sampling_with_tools", "unanswered")
def unanswered_uses(seen: ProbeSeen) -> list[str]:
    _require_tool_results(seen)
    missing: dict[str, None] = {}
    for messages in _sampled(seen):
        for message, following in zip(messages, [*messages[1:], None], strict=True):
            given = {str(one.get("toolUseId")) for one in _blocks(following, "tool_result")}
            used = [str(one.get("id")) for one in _blocks(message, "tool_use")]
            missing.update(dict.fromkeys(one for one in used if one not in given))
    return list(missing)


def _require_tool_results(seen: ProbeSeen) -> None:
    if not any(_blocks(one, "tool_use") for messages in _sampled(seen) for one in messages):
        reason = "the server's sampling requests contained no tool use"
        raise Unobserved(reason, "the fixture sampling_tool that offers tools to the model")


def _sampled(seen: ProbeSeen) -> Iterator[list[Any]]:
    for asked in seen["call"].exchange.asked:
        messages = member_at(asked, "params", "messages")
        if member_at(asked, "method") == "sampling/createMessage" and isinstance(messages, list):
            yield messages


def _blocks(message: Any, kind: str = "") -> list[Mapping[str, Any]]:
    content = member_at(message, "content")
    blocks = content if isinstance(content, list) else [content]
    objects = [block for block in blocks if isinstance(block, dict)]
    return [block for block in objects if not kind or block.get("type") == kind]


@fact("url_elicitation", "unknown_completions")
def unknown_completions(seen: ProbeSeen) -> list[Any]:
    messages = list(seen["call"].came)
    completed = [
        message.params.get("elicitationId")
        for message in messages
        if message.method == "notifications/elicitation/complete"
    ]
    if not completed:
        unlocked_by = "the fixture url_eliciting_tool that announces its completion"
        raise Unobserved("the server sent no notifications/elicitation/complete", unlocked_by)
    given = set()
    for message in messages:
        if message.method == "elicitation/create":
            given.add(id_key(message.params.get("elicitationId")))
        elif member_at(message.error, "code") == _URL_NEEDED:
            given |= {id_key(one.get("elicitationId")) for one in _elicitations(message.error)}
    return [one for one in completed if id_key(one) not in given]


@fact("url_elicitation", "incomplete_errors")
def incomplete_errors(seen: ProbeSeen) -> list[str]:
    errors = [
        message.error
        for message in seen["call"].came
        if member_at(message.error, "code") == _URL_NEEDED
    ]
    if not errors:
        unlocked_by = "the fixture url_eliciting_tool that answers with -32042"
        raise Unobserved("the server sent no error -32042", unlocked_by)
    return [str(error.get("message")) for error in errors if not _lists_urls(error)]


def _elicitations(error: Mapping[str, Any]) -> list[dict[str, Any]]:
    return objects_at(error, "data", "elicitations")


def _lists_urls(error: Mapping[str, Any]) -> bool:
    found = _elicitations(error)
    return bool(found) and all(
        one.get("mode") == "url"
        and isinstance(one.get("elicitationId"), str)
        and isinstance(one.get("url"), str)
        for one in found
    )


def acknowledgements(seen: ProbeSeen, step: str) -> list[Message]:
    """Those that name the step's subscription by its id, in its JSON type."""
    wanted = id_key(seen[step].identifier)
    return [
        message
        for message in seen[step].came
        if message.method == ACKNOWLEDGED and id_key(subscription_of(message.params)) == wanted
    ]


def subscription_of(params: Any) -> Any:
    """The id of the subscription that a notification belongs to; None where it names none."""
    found = member_at(params, "_meta", SUBSCRIPTION_ID)
    return None if found is ABSENT else found


@fact("listen_with_both_ids", "acknowledged")
def acknowledged(seen: ProbeSeen) -> list[Any]:
    steps = ("number", "text")
    codes = [member_at(seen[step].exchange.error, "code") for step in steps]
    is_offered = any(seen.declares(path) for path in KINDS_OF_CHANGE.values())
    if not is_offered and codes == [_METHOD_NOT_FOUND] * len(steps):
        raise Unobserved("the server has no subscriptions", "a capability that announces changes")
    return [seen[step].identifier for step in steps if acknowledgements(seen, step)]


@fact("listen_with_both_ids", "streamed_with")
def streamed_with(seen: ProbeSeen) -> dict[str, Any]:
    return dict((seen["number"].exchange.http or {}).get("headers") or {})


@fact("listen_for_everything", "beyond_declared")
def beyond_declared(seen: ProbeSeen) -> list[str]:
    found = acknowledgements(seen, "listen")
    if not found:
        raise Unobserved("the server did not acknowledge the subscription")
    agreed: dict[str, None] = {}
    for message in found:
        kinds = object_at(message.params, "notifications")
        agreed |= {name: None for name, on in kinds.items() if on}
    return [
        name
        for name in agreed
        if name not in KINDS_OF_CHANGE or not seen.declares(KINDS_OF_CHANGE[name])
    ]


_PARAMETER = re.compile(r'([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')
_LOG_MESSAGE = "notifications/message"
STREAMED = ("ask", "call", "log")
"""Steps that may be answered with an event stream, in the order in which they are tried."""


def stream_of(taken: Taken) -> int | None:
    """The HTTP exchange that carried the request of a step."""
    wanted = id_key(taken.identifier)
    for message, frame in messages_of("client", taken.since):
        is_request = message.method is not None and frame.stream is not None
        if is_request and id_key(message.id) == wanted:
            return frame.stream
    return None


def on_stream(taken: Taken, stream: int | None) -> Iterator[AnyRecord]:
    """What came from the server on one stream."""
    for record in taken.since:
        if getattr(record, "stream", None) != stream or stream is None:
            continue
        if not (isinstance(record, Frame) and record.sender == "client"):
            yield record


def is_streamed(taken: Taken) -> bool:
    return any(
        isinstance(record, HttpResponse)
        and media_type(record.header("content-type")) == "text/event-stream"
        for record in on_stream(taken, stream_of(taken))
    )


def _streamed(seen: ProbeSeen) -> Taken:
    for name in STREAMED:
        taken = seen.taken.get(name)
        if taken is not None and is_streamed(taken):
            return taken
    reason = "the server answered with JSON, not with event streams"
    raise Unobserved(reason, "a response that is an event stream")


@fact("streamed_answer", "ended")
def stream_ended(seen: ProbeSeen) -> bool:
    taken = _streamed(seen)
    answered = False
    for record in on_stream(taken, stream_of(taken)):
        if isinstance(record, StreamEnd):
            return answered and record.complete
        answered = answered or _answers(record, taken.identifier)
    if not answered:
        raise Unobserved("the server sent no response on the stream")
    return False


def _answers(record: AnyRecord, identifier: Any) -> bool:
    return isinstance(record, Frame) and any(answers_to(identifier, (record,)))


@fact("streamed_answer", "primed")
def stream_primed(seen: ProbeSeen) -> bool:
    taken = _streamed(seen)
    for record in on_stream(taken, stream_of(taken)):
        if isinstance(record, Frame):
            return False
        if isinstance(record, SseEvent) and record.comment is None:
            return bool(record.sse.id) and not record.data
    return False


@fact("reconnection", "retry_given")
def retry_given(seen: ProbeSeen) -> bool:
    taken = seen["call"]
    given = False
    for record in on_stream(taken, stream_of(taken)):
        if _answers(record, taken.identifier):
            break
        sse = getattr(record, "sse", None)
        given = given or (sse is not None and sse.retry is not None)
        if isinstance(record, StreamEnd):
            return given
    raise Unobserved(
        "the server did not close the stream before the response", "the fixture reconnecting_tool"
    )


@fact("events_by_name", "other_events")
def other_events(seen: ProbeSeen) -> list[str]:
    names = dict.fromkeys(
        record.sse.event
        for record in seen["after"].records
        if isinstance(record, SseEvent) and record.comment is None and record.sse.event
    )
    return [name for name in names if name not in {"endpoint", "message"}]


def session_id(records: Any) -> str | None:
    """The session id that the server gave out on a connection."""
    given = (one.header("mcp-session-id") for one in records if isinstance(one, HttpResponse))
    return next((one for one in given if one is not None), None)


@fact("two_sessions", "distinct")
def sessions_are_distinct(seen: ProbeSeen) -> bool:
    first, second = (session_id(seen[name].records) for name in ("first", "second"))
    if first is None or second is None:
        raise Unobserved("the server issued no session id", "a server with sessions")
    return first != second


@fact("logging_beside_silence", "on_the_silent_stream")
def logged_on_the_silent_stream(seen: ProbeSeen) -> list[str]:
    if not _log_messages(seen["loud"]):
        raise Unobserved("the tool did not log at the requested level", "the fixture logging_tool")
    return _log_messages(seen["silent"])


def _log_messages(taken: Taken) -> list[str]:
    return [
        str(message.params.get("level"))
        for message, _ in messages_of("server", on_stream(taken, stream_of(taken)))
        if message.method == _LOG_MESSAGE
    ]


def challenge_parameters(records: Any) -> dict[str, str]:
    """The parameters of every WWW-Authenticate header, by lower-case name; the first one counts."""
    found: dict[str, str] = {}
    for record in records:
        if not isinstance(record, HttpResponse) or record.status != 401:
            continue
        for name, value in record.headers:
            if name.lower() == "www-authenticate":
                for key, quoted, plain in _PARAMETER.findall(value):
                    found.setdefault(key.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
    return found


@fact("protected_resource_metadata", "found")
def metadata_found(seen: ProbeSeen) -> bool:
    return isinstance(seen["metadata"].document, dict)


@fact("protected_resource_metadata", "named_in_challenge")
def named_in_challenge(seen: ProbeSeen) -> bool:
    return bool(challenge_parameters(seen["challenge"].since).get("resource_metadata"))


@fact("protected_resource_metadata", "authorization_servers")
def authorization_servers(seen: ProbeSeen) -> list[Any]:
    return _listed_in_metadata(seen, "authorization_servers")


@fact("protected_resource_metadata", "offered_scopes")
def offered_scopes(seen: ProbeSeen) -> list[Any]:
    challenged = challenge_parameters(seen["challenge"].since).get("scope", "").split()
    return list(dict.fromkeys((*challenged, *_listed_in_metadata(seen, "scopes_supported"))))


def _listed_in_metadata(seen: ProbeSeen, name: str) -> list[Any]:
    found = member_at(seen["metadata"].document, name)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
