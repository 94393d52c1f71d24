"""Probes for the way to the stateless era, on any transport."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcptest.commands.doctor.examination import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNKNOWN_URI,
    Examination,
    breaks,
    came,
    code_of,
    is_result,
    not_used,
    probe,
    ready,
    said,
    shortest,
    some,
    uncalled_in_words,
    unknown,
)
from mcptest.core.errors import PeerError
from mcptest.core.limits import Deadline
from mcptest.core.safe_text import show
from mcptest.probe.compliance.conversation import Asked
from mcptest.report.doctor import Judged
from mcptest.rules.migration import Fail, Pass, check_resource_error_code, missing_resource_code
from mcptest.session.lifecycle import UNSUPPORTED_VERSION, StatelessLifecycle
from mcptest.session.pages import LIST_CAPABILITIES, LIST_MEMBERS

_GONE_CODES = frozenset({-32002, -32042})
_DEFINED = frozenset({-32020, -32021, -32022})
_OF_THE_CANDIDATE = frozenset({-32001, -32003, -32004})
_ANNOUNCING = ("tools", "prompts", "resources")
_INTERNAL_ERROR = -32603
_ENDING = 12.0
_LACKING = {
    "list-without-meta": "_meta",
    "list-without-version": "protocolVersion in its _meta",
    "list-without-capabilities": "clientCapabilities in its _meta",
}


@probe("discover")
def discover(examination: Examination) -> Judged:
    asked = examination.knocked("discover")
    result = asked.exchange.result
    if not isinstance(result, dict):
        return breaks(f"server/discover is answered with {said(asked)}", asked)
    versions = result.get("supportedVersions")
    wanted = examination.newer.wire_version
    if not isinstance(versions, list) or wanted not in versions:
        named = show(str(versions), 80)
        return breaks(f"supportedVersions of server/discover is {named}, without {wanted}", asked)
    return ready("server/discover is answered without a handshake", asked)


@probe("request-meta")
def request_meta(examination: Examination) -> Judged:
    served = examination.knocked("list")
    if not is_result(served):
        method = examination.a_list
        return breaks(f"{method} that stands on its own is answered with {said(served)}", served)
    for name, lacking in _LACKING.items():
        refused = examination.knocked(name)
        if _is_read_as_older(name, refused, examination):
            continue
        if code_of(refused) != INVALID_PARAMS:
            told = f"a request without {lacking} is answered with {said(refused)}, not with -32602"
            return breaks(told, refused)
    return ready(
        "requests are served on their own, and refused without _meta",
        served,
        examination.knocked("list-without-meta"),
    )


def _is_read_as_older(name: str, refused: Asked, examination: Examination) -> bool:
    """A server of both eras may take what does not say its version for one of the older era."""
    if name == "list-without-capabilities":
        return False
    result, code = refused.exchange.result, code_of(refused)
    if isinstance(result, dict):
        newer = examination.knocked("list").exchange.result
        is_older = "resultType" in newer and "resultType" not in result
        return is_older and examination.speaks_handshake
    if code in {None, INVALID_PARAMS, _INTERNAL_ERROR}:
        return False
    return examination.speaks_handshake


@probe("version-error")
def version_error(examination: Examination) -> Judged:
    asked = examination.knocked("unknown-version")
    error = asked.exchange.error
    data = error.get("data") if isinstance(error, dict) else None
    if code_of(asked) != UNSUPPORTED_VERSION:
        return breaks(f"a version that nobody speaks is answered with {said(asked)}", asked)
    if not isinstance(data, dict) or not isinstance(data.get("supported"), list):
        return breaks("-32022 comes without data.supported", asked)
    return ready("an unsupported version is refused with those that are supported", asked)


@probe("ping")
def ping(examination: Examination) -> Judged:
    asked = examination.ask_in_newer("ping")
    sent = examination.watch.questions.get("ping")
    if sent is not None:
        return breaks("the server sends pings of its own", sent)
    return _gone("ping", asked)


def _gone(method: str, asked: Asked) -> Judged:
    """A method that is an unknown one now."""
    if code_of(asked) == METHOD_NOT_FOUND:
        return ready(f"{method} is an unknown method", asked)
    if not came(asked):
        return unknown(f"{method} was not answered at all", asked)
    return breaks(f"{method} is answered with {said(asked)}, not with -32601", asked)


@probe("logging")
def logging(examination: Examination) -> Judged:
    unasked = examination.watch.log_messages
    if not examination.declares("logging"):
        if unasked is not None:
            return breaks("log messages come without the logging capability", unasked)
        return not_used("the server does not declare logging, and sent no log message")
    asked = examination.ask_in_newer("logging/setLevel", {"level": "info"})
    if not examination.speaks_newer and is_result(asked):
        told = "log levels are set for a session, by logging/setLevel"
        return breaks(told, examination.introduction, asked)
    if unasked is not None:
        return breaks("log messages come for requests that did not ask for them", unasked)
    return _gone("logging/setLevel", asked)


@probe("subscriptions")
def subscriptions(examination: Examination) -> Judged:
    subscribing = examination.declares("resources", "subscribe")
    changing = [one for one in _ANNOUNCING if examination.declares(one, "listChanged")]
    used = ["resources.subscribe"] * subscribing + [f"{one}.listChanged" for one in changing]
    asked = examination.ask_in_newer("resources/subscribe", {"uri": UNKNOWN_URI})
    if is_result(asked):  # what was subscribed to does not exist; it is not left behind even so
        examination.ask_in_newer("resources/unsubscribe", {"uri": UNKNOWN_URI})
    if not examination.speaks_newer:
        if not used:
            return not_used("the server declares neither subscribe nor listChanged", asked)
        told = f"the server declares {some(used)}, which rest on what is gone"
        return breaks(told, examination.introduction, asked)
    if code_of(asked) != METHOD_NOT_FOUND:
        return _gone("resources/subscribe", asked)
    if not used:
        return not_used("the server declares neither subscribe nor listChanged", asked)
    return _listening(examination, changing)


def _listening(examination: Examination, changing: Sequence[str]) -> Judged:
    """Open the stream that announcements come on, and end it."""
    conversation = examination.conversation
    lifecycle = conversation.lifecycle
    assert isinstance(lifecycle, StatelessLifecycle)  # that is what speaking it means
    wanted: dict[str, Any] = {f"{one}ListChanged": True for one in changing}
    if not wanted:
        wanted["resourceSubscriptions"] = [UNKNOWN_URI]
    timeout = examination.site.order.timeout
    try:
        pending = lifecycle.listen(wanted, Deadline.after(timeout))
        acknowledged = pending.answer is None
        lifecycle.unsubscribe(pending, Deadline.after(timeout))
    except PeerError as error:
        return breaks(f"subscriptions/listen: {error.message}")
    if not acknowledged:
        told = show(pending.answer.raw if pending.answer is not None else b"", 200)
        return breaks(f"subscriptions/listen ended before an acknowledgement: {told}")
    return ready("subscriptions/listen is acknowledged, and resources/subscribe is unknown")


@probe("server-requests")
def server_requests(examination: Examination) -> Judged:
    asked = {name: one for name, one in examination.watch.questions.items() if name != "ping"}
    if asked:
        return breaks(f"the server sends requests: {some(asked)}", *asked.values())
    inputs = examination.watch.inputs
    if inputs:
        return ready(f"input is asked for by a result: {some(inputs)}", *inputs.values())
    if examination.uncalled:
        return unknown(f"no request of the server was seen, but {uncalled_in_words(examination)}")
    return not_used("nothing that was called led to a request of the server")


@probe("result-type")
def result_type(examination: Examination) -> Judged:
    watch = examination.watch
    if not watch.results:
        return unknown("no result was seen")
    if watch.untyped:
        told = f"results have no resultType: {some(watch.untyped)}"
        return breaks(told, shortest(watch.untyped))
    return ready(f"all {watch.results} results that were seen have a resultType")


@probe("cache-hints")
def cache_hints(examination: Examination) -> Judged:
    watch = examination.watch
    if not watch.cacheable:
        return not_used("none of the results that carry cache hints was seen")
    if watch.uncached:
        told = f"ttlMs or cacheScope is missing: {some(watch.uncached)}"
        return breaks(told, shortest(watch.uncached))
    return ready(f"all {watch.cacheable} results that need ttlMs and cacheScope have them")


@probe("missing-resource")
def missing_resource(examination: Examination) -> Judged:
    if not examination.declares("resources"):
        return not_used("the server does not declare resources")
    asked = examination.ask_in_newer("resources/read", {"uri": UNKNOWN_URI})
    result = asked.exchange.result
    if isinstance(result, dict):
        if result.get("contents") == []:
            return breaks("a missing resource is answered with empty contents", asked)
        return unknown(f"the server has something to read at {UNKNOWN_URI}", asked)
    checked = check_resource_error_code(code_of(asked), examination.newer)
    if isinstance(checked, Fail):
        return breaks(checked.reason, asked)
    if isinstance(checked, Pass):
        return ready(f"a missing resource is answered with {checked.code}", asked)
    wanted = missing_resource_code(examination.newer)
    return unknown(
        f"a missing resource is answered with {said(asked)}, which is about something else",
        asked,
        advice=f"{examination.newer} asks for {wanted}, whatever was answered before",
    )


@probe("error-codes")
def error_codes(examination: Examination) -> Judged:
    codes = examination.watch.codes
    for asked in examination.knocks.values():
        examination.watch.take_code("", asked.exchange.error, asked)
    reserved = [code for code in codes if -32099 <= code <= -32020 and code not in _DEFINED]
    wrong = sorted({*reserved, *(code for code in codes if code in _GONE_CODES)})
    if wrong:
        return breaks(f"codes that may not be used: {some(wrong)}", codes[wrong[0]])
    legacy = [code for code in codes if -32019 <= code <= -32000]
    if not codes:
        return unknown("no error was seen")
    if legacy:
        candidate = _OF_THE_CANDIDATE & {*legacy}
        hint = " (the release candidate's, for what is -32020 to -32022 now)" if candidate else ""
        advice = f"{some(legacy)}: a legacy that new answers should not use{hint}"
        return ready("no reserved code is used", codes[legacy[0]], advice=advice)
    return ready(f"the codes that were seen may be used: {some(sorted(codes))}")


@probe("tasks")
def tasks(examination: Examination) -> Judged:
    supporting = [
        tool.get("name")
        for tool in examination.tools
        if isinstance(tool.get("execution"), dict)
        and tool["execution"].get("taskSupport") in ("optional", "required")
    ]
    asked = examination.ask_in_newer("tasks/list")
    if examination.declares("tasks") or supporting or is_result(asked):
        what = f"tools with taskSupport: {some(supporting)}" if supporting else "tasks of the core"
        return breaks(f"the server has {what}", examination.introduction, asked)
    return not_used("no task is declared, and tasks/list is not served", asked)


@probe("stable-lists")
def stable_lists(examination: Examination) -> Judged:
    beside = None if examination.unlisted else examination.another()
    if beside is None:
        return unknown("there was no second connection to compare with")
    moved, reordered = [], []
    for method, capability in LIST_CAPABILITIES.items():
        if not examination.declares(capability):
            continue
        member = LIST_MEMBERS[method]
        one = [_name(item) for item in examination.walk(method)]
        other = [_name(item) for item in examination.list_on(beside, method)]
        first = [_name(item) for item in examination.lists.get(member, ())]
        if {*first} != {*one} or {*one} != {*other}:
            moved.append(member)
        elif one != other:
            reordered.append(member)
    beside.close()
    if moved:
        return breaks(f"not the same on another connection or after the calls: {some(moved)}")
    if not any(examination.lists.values()):
        return not_used("the server lists nothing")
    advice = f"the order differs: {some(reordered)}" if reordered else ""
    return ready("the lists are the same on two connections and after the calls", advice=advice)


def _name(item: Any) -> str:
    if not isinstance(item, Mapping):
        return repr(item)
    return str(item.get("name")) + str(item.get("uri", ""))


@probe("exit-on-eof")
def exit_on_eof(examination: Examination) -> Judged:
    if examination.transport != "stdio":
        return not_used("the server is not started by its clients")
    conversation = examination.conversation
    # Half of it is for the server alone; servers of large frameworks take a second or two.
    conversation.client.close(Deadline.after(_ENDING))
    exited = conversation.tape.exited
    if exited is None or not exited.after:
        return unknown("the process was gone before its input ended")
    if exited.after == "stdin-closed":
        return ready("the process ended once its input did")
    advice = "end the process when stdin is at its end: SIGTERM or more was needed"
    return ready("the process had to be told to end", advice=advice)
