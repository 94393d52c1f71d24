"""What decides each migration item: one probe for each, by era and transport.

`examination` has what was seen of the server and asks it more; a probe says what follows from that.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from mcptest.commands.doctor.examination import (
    UNKNOWN_URI,
    UNKNOWN_VERSION,
    AskedCall,
    Examination,
    arguments_for,
    call_of,
    came,
    code_of,
    is_result,
    proof,
    said,
    status_of,
)
from mcptest.core.capture import Frame
from mcptest.core.errors import PeerError
from mcptest.core.judgement import Evidence
from mcptest.core.limits import Deadline
from mcptest.core.message import Kind
from mcptest.core.revision import Era
from mcptest.core.safe_text import show, some_of
from mcptest.probe.compliance.conversation import Asked
from mcptest.probe.compliance.course import messages_of
from mcptest.probe.compliance.learning import list_through, prompt_arguments
from mcptest.report.doctor import DoctorVerdict, Judged
from mcptest.rules.migration import (
    Fail,
    Pass,
    check_resource_error_code,
    is_uri,
    missing_resource_code,
)
from mcptest.rules.primitives import is_plain_tool_name
from mcptest.rules.protocol import STATELESS_CODES, member_at, needed_meta
from mcptest.schema.validation import CompiledSchema, SchemaError, SchemaLimitError
from mcptest.session.connection import encode
from mcptest.session.lifecycle import UNSUPPORTED_VERSION, StatelessLifecycle
from mcptest.session.pages import LIST_CAPABILITIES, LIST_MEMBERS
from mcptest.session.tool_safety import is_safe, may_call, task_support
from mcptest.suite.sent_message import SentCheck
from mcptest.wire.mcp_headers import (
    PARAM_PREFIX,
    SESSION_HEADER,
    VERSION_HEADER,
    annotation_problems,
    header_annotations,
)

# -- How a probe says what it concluded, and the words that several probes share -----------------

Probe: TypeAlias = Callable[[Examination], Judged]
Proof: TypeAlias = Asked | Evidence
PROBES: Final[dict[str, Probe]] = {}
"""By the id of the migration item that each decides."""
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
_MOST_PROOFS = 3
_MOST_NAMES = 5


def probe(item: str, *, over_http: bool = False) -> Callable[[Probe], Probe]:
    """Declare the probe of a migration item; `over_http` is one that needs streamable HTTP."""

    def declare(look: Probe) -> Probe:
        def judged(examination: Examination) -> Judged:
            if over_http and examination.transport != "http":
                return not_used("the server is not reached by streamable HTTP")
            return look(examination)

        PROBES[item] = judged
        return judged

    return declare


def conclude(verdict: DoctorVerdict, detail: str, *proofs: Proof, advice: str = "") -> Judged:
    found = [one if isinstance(one, Evidence) else proof(one) for one in proofs]
    shown = tuple(one for one in found if one.sent or one.received)[:_MOST_PROOFS]
    return Judged(verdict, detail, shown, advice)


breaks = partial(conclude, DoctorVerdict.BREAKS)
ready = partial(conclude, DoctorVerdict.READY)
not_used = partial(conclude, DoctorVerdict.NOT_USED)
unknown = partial(conclude, DoctorVerdict.UNKNOWN)
unchecked = partial(Judged, DoctorVerdict.UNKNOWN, unchecked=True)


def some(names: Iterable[Any]) -> str:
    """The first names of a list, safe to show, and how many more there are."""
    return some_of([show(str(name), 60) for name in names], _MOST_NAMES)


def uncalled_in_words(examination: Examination) -> str:
    names = examination.uncalled
    return (
        f"{len(names)} of {len(list(examination.tools))} tools were not called ({some(names)}): "
        "they are not marked readOnlyHint; --allow-tool NAME allows one"
    )


# -- The way to the stateless era, on any transport ----------------------------------------------

_GONE_CODES = frozenset({-32002, -32042})
_OF_THE_CANDIDATE = frozenset({-32001, -32003, -32004})
_ANNOUNCING = ("tools", "prompts", "resources")
_INTERNAL_ERROR = -32603
_ENDING = 12.0
_AS_TASKS = ("optional", "required")
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
        return breaks(f"server/discover gets {said(asked)}", asked)
    versions = result.get("supportedVersions")
    wanted = examination.newer.wire_version
    if not isinstance(versions, list) or wanted not in versions:
        named = show(str(versions), 80)
        return breaks(f"supportedVersions of server/discover is {named} and lacks {wanted}", asked)
    return ready("server/discover works without a handshake", asked)


@probe("request-meta")
def request_meta(examination: Examination) -> Judged:
    served = examination.knocked("list")
    if not is_result(served):
        return breaks(f"{examination.a_list} without a handshake gets {said(served)}", served)
    for name, lacking in _LACKING.items():
        refused = examination.knocked(name)
        if _is_read_as_older(name, refused, examination):
            continue
        if code_of(refused) != INVALID_PARAMS:
            told = f"a request without {lacking} gets {said(refused)} instead of error -32602"
            return breaks(told, refused)
    told = "requests work without a handshake, and are refused without _meta"
    return ready(told, served, examination.knocked("list-without-meta"))


def _is_read_as_older(name: str, refused: Asked, examination: Examination) -> bool:
    """A server of both eras may take what does not say its version for one of the older era."""
    if name == "list-without-capabilities":
        return False
    result, code = refused.exchange.result, code_of(refused)
    if isinstance(result, dict):
        newer = examination.knocked("list").exchange.result
        is_older = "resultType" in newer and "resultType" not in result
        return is_older and examination.speaks_handshake
    is_refusal = code in {None, INVALID_PARAMS, _INTERNAL_ERROR}
    return not is_refusal and examination.speaks_handshake


@probe("version-error")
def version_error(examination: Examination) -> Judged:
    asked = examination.knocked("unknown-version")
    error = asked.exchange.error
    data = error.get("data") if isinstance(error, dict) else None
    if code_of(asked) != UNSUPPORTED_VERSION:
        return breaks(f"an unsupported version gets {said(asked)}", asked)
    if not isinstance(data, dict) or not isinstance(data.get("supported"), list):
        return breaks("error -32022 has no data.supported", asked)
    return ready("an unsupported version is refused with a list of supported ones", asked)


@probe("ping")
def ping(examination: Examination) -> Judged:
    asked = examination.ask_in_newer("ping")
    sent = examination.watch.questions.get("ping")
    return _gone("ping", asked) if sent is None else breaks("the server sends ping requests", sent)


def _gone(method: str, asked: Asked) -> Judged:
    """A method that is an unknown one now."""
    if code_of(asked) == METHOD_NOT_FOUND:
        return ready(f"{method} gets error -32601", asked)
    if not came(asked):
        return unknown(f"the server did not answer {method}", asked)
    return breaks(f"{method} gets {said(asked)} instead of error -32601", asked)


@probe("logging")
def logging(examination: Examination) -> Judged:
    unasked = examination.watch.log_messages
    if not examination.declares("logging"):
        if unasked is not None:
            return breaks("the server sends log messages without the logging capability", unasked)
        return not_used("the server does not declare logging and sent no log messages")
    asked = examination.ask_in_newer("logging/setLevel", {"level": "info"})
    if not examination.speaks_newer and is_result(asked):
        told = "the server sets log levels per session, with logging/setLevel"
        return breaks(told, examination.introduction, asked)
    if unasked is not None:
        return breaks("the server sends log messages that no request asked for", unasked)
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
        need = "which need" if len(used) > 1 else "which needs"
        told = f"the server declares {some(used)}, {need} removed methods"
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
    return ready("subscriptions/listen is acknowledged, and resources/subscribe gets error -32601")


@probe("server-requests")
def server_requests(examination: Examination) -> Judged:
    asked = {name: one for name, one in examination.watch.questions.items() if name != "ping"}
    if asked:
        return breaks(f"the server sends requests: {some(asked)}", *asked.values())
    inputs = examination.watch.inputs
    if inputs:
        return ready(f"the server asks for input in results: {some(inputs)}", *inputs.values())
    if examination.uncalled:
        return unknown(f"the server sent no request, but {uncalled_in_words(examination)}")
    return not_used("no call made the server send a request")


def _breaks_by(
    wrong: Mapping[str, Evidence] | Sequence[Any], what: str, otherwise: Judged
) -> Judged:
    """Breaks where something is wrong, which is named and shown by what is read fastest."""
    if not wrong:
        return otherwise
    shown = wrong.values() if isinstance(wrong, Mapping) else ()
    return breaks(f"{what}: {some(wrong)}", *sorted(shown, key=lambda one: len(one.received))[:1])


@probe("result-type")
def result_type(examination: Examination) -> Judged:
    watch = examination.watch
    typed = ready(f"all {watch.results} results have a resultType")
    otherwise = typed if watch.results else unknown("no result was seen")
    return _breaks_by(watch.untyped, "results have no resultType", otherwise)


@probe("cache-hints")
def cache_hints(examination: Examination) -> Judged:
    watch = examination.watch
    if not watch.cacheable:
        return not_used("no result that carries cache hints was seen")
    told = f"all {watch.cacheable} cacheable results have ttlMs and cacheScope"
    return _breaks_by(watch.uncached, "ttlMs or cacheScope is missing", ready(told))


@probe("missing-resource")
def missing_resource(examination: Examination) -> Judged:
    if not examination.declares("resources"):
        return not_used("the server does not declare resources")
    asked = examination.ask_in_newer("resources/read", {"uri": UNKNOWN_URI})
    result = asked.exchange.result
    if isinstance(result, dict):
        if result.get("contents") == []:
            return breaks("a missing resource gets empty contents", asked)
        return unknown(f"the server has a resource at {UNKNOWN_URI}", asked)
    checked = check_resource_error_code(code_of(asked), examination.newer)
    if isinstance(checked, Fail):
        return breaks(checked.reason, asked)
    if isinstance(checked, Pass):
        return ready(f"a missing resource gets error {checked.code}", asked)
    wanted = missing_resource_code(examination.newer)
    told = f"a missing resource gets {said(asked)}, which means something else"
    advice = f"{examination.newer} requires error {wanted}"
    return unknown(told, asked, advice=advice)


@probe("error-codes")
def error_codes(examination: Examination) -> Judged:
    codes = examination.watch.codes
    for asked in examination.knocks.values():
        examination.watch.take_code("", asked.exchange.error, asked)
    reserved = [code for code in codes if -32099 <= code <= -32020 and code not in STATELESS_CODES]
    wrong = sorted({*reserved, *(code for code in codes if code in _GONE_CODES)})
    if wrong:
        return breaks(
            f"the server uses error codes that are not allowed: {some(wrong)}", codes[wrong[0]]
        )
    legacy = [code for code in codes if -32019 <= code <= -32000]
    if not codes:
        return unknown("no error was seen")
    if legacy:
        candidate = _OF_THE_CANDIDATE & {*legacy}
        hint = " (release candidate codes; now -32020 to -32022)" if candidate else ""
        advice = f"{some(legacy)}: legacy codes, not for new responses{hint}"
        return ready("the server uses no reserved error code", codes[legacy[0]], advice=advice)
    return ready(f"all error codes are allowed: {some(sorted(codes))}")


@probe("tasks")
def tasks(examination: Examination) -> Judged:
    supporting = [one.get("name") for one in examination.tools if task_support(one) in _AS_TASKS]
    asked = examination.ask_in_newer("tasks/list")
    if examination.declares("tasks") or supporting or is_result(asked):
        what = f"tools with taskSupport: {some(supporting)}" if supporting else "core tasks"
        return breaks(f"the server has {what}", examination.introduction, asked)
    return not_used("the server declares no tasks and does not serve tasks/list", asked)


@probe("stable-lists")
def stable_lists(examination: Examination) -> Judged:
    beside = None if examination.unlisted else examination.another()
    if beside is None:
        return unknown("a second connection could not be opened")
    moved, reordered = [], []
    for method, capability in LIST_CAPABILITIES.items():
        if not examination.declares(capability):
            continue
        member = LIST_MEMBERS[method]
        one = [_name(item) for item in examination.walk(method)]
        listed = list_through(beside.ask, method, examination.site.order.timeout)
        other = [_name(item) for item in listed.items]
        first = [_name(item) for item in examination.lists.get(member, ())]
        if {*first} != {*one} or {*one} != {*other}:
            moved.append(member)
        elif one != other:
            reordered.append(member)
    beside.close()
    if moved:
        return breaks(f"lists differ on another connection or after the calls: {some(moved)}")
    if not any(examination.lists.values()):
        return not_used("the server has no lists")
    advice = f"keep the order of the lists stable: {some(reordered)}" if reordered else ""
    return ready("the lists are the same on two connections and after the calls", advice=advice)


def _name(item: Any) -> str:
    if not isinstance(item, Mapping):
        return repr(item)
    return str(item.get("name")) + str(item.get("uri", ""))


@probe("exit-on-eof")
def exit_on_eof(examination: Examination) -> Judged:
    if examination.transport != "stdio":
        return not_used("the server does not run over stdio")
    conversation = examination.conversation
    # Half of it is for the server alone; servers of large frameworks take a second or two.
    conversation.client.close(Deadline.after(_ENDING))
    exited = conversation.tape.exited
    if exited is None or not exited.after:
        return unknown("the process exited before stdin was closed")
    if exited.after == "stdin-closed":
        return ready("the process exits when stdin is closed")
    advice = "exit when stdin is closed; the server needed SIGTERM or SIGKILL"
    return ready("the process needed a signal to exit", advice=advice)


# -- What needs HTTP: headers, sessions, methods and status codes of both eras -------------------

_HEADER_MISMATCH = -32020
_FOREIGN = "https://mcptest.invalid"
_MUTATIONS = {
    "method-missing": "without Mcp-Method",
    "method-wrong": "with a wrong Mcp-Method",
    "name-missing": "without Mcp-Name",
    "name-wrong": "with a wrong Mcp-Name",
}


@probe("sessions", over_http=True)
def sessions(examination: Examination) -> Judged:
    if not examination.speaks_newer:
        if not examination.site.session_id:
            return ready("the server issues no session id")
        bare = SentCheck(method=examination.a_list, headers={SESSION_HEADER: None})
        asked = examination.ask(bare)
        if is_result(asked):
            return breaks("the server issues a session id but does not require it", asked)
        return breaks(f"a request without the session id gets {said(asked)}", asked)
    asked = examination.knocked("session")
    if not is_result(asked):
        return breaks(f"a request with a session id gets {said(asked)}", asked)
    # What names an older version may be answered as an old server does.
    own = (one for name, one in examination.knocks.items() if name != "version-differs")
    answered = [(one, one.exchange.http) for one in own]
    minted = [one for one, http in answered if http and http["headers"].get("mcp-session-id")]
    advice = "stop issuing session ids; they have no meaning in this revision" if minted else ""
    return ready("a session id is ignored", asked, *minted[:1], advice=advice)


@probe("protocol-headers", over_http=True)
def protocol_headers(examination: Examination) -> Judged:
    for name, words in _MUTATIONS.items():
        if name.startswith("name") and not examination.declares("tools"):
            continue
        asked = examination.knocked(name)
        if status_of(asked) != 400 or code_of(asked) != _HEADER_MISMATCH:
            told = f"a request {words} gets {said(asked)} instead of 400 and -32020"
            return breaks(told, asked)
    differs = examination.knocked("version-differs")
    right = examination.knocked("method-wrong")
    if code_of(differs) == _HEADER_MISMATCH:
        return ready("headers that differ from the body are refused", right, differs)
    if status_of(differs) == 400:  # a server of both eras may take it for an old client
        advice = f"a version header that differs from the body gets {said(differs)}"
        return ready("headers that differ from the body are refused", right, advice=advice)
    told = f"a version header that differs from the body gets {said(differs)}"
    return breaks(told, differs)


@probe("param-headers", over_http=True)
def param_headers(examination: Examination) -> Judged:
    annotated = [tool for tool in examination.tools if header_annotations(tool.get("inputSchema"))]
    if not annotated:
        return not_used("no input schema has x-mcp-header")
    for tool in annotated:
        problems = annotation_problems(tool.get("inputSchema"))
        if problems:
            return breaks(f"clients drop the tool {some([tool.get('name')])}: {problems[0]}")
    names = {str(call.tool.get("name")) for call in examination.calls}
    for tool in annotated:
        arguments = arguments_for(tool)
        headers = [
            f"{PARAM_PREFIX}{one.header}"
            for one in header_annotations(tool.get("inputSchema"))
            if one.path is not None and len(one.path) == 1 and one.path[0] in arguments
        ]
        if not (examination.speaks_newer and may_call(tool, names) and headers):
            continue
        asked = examination.ask(replace(call_of(tool), headers=dict.fromkeys(headers)))
        if status_of(asked) == 400 and code_of(asked) == _HEADER_MISMATCH:
            return ready("a call without its Mcp-Param header is refused", asked)
        return breaks(f"a call without its Mcp-Param header gets {said(asked)}", asked)
    return unknown("no tool with x-mcp-header could be called without its header")


@probe("http-methods", over_http=True)
def http_methods(examination: Examination) -> Judged:
    get, delete = examination.knocked("get"), examination.knocked("delete")
    others = [one for one in (get, delete) if status_of(one) != 405]
    if not others:
        return ready("GET and DELETE get 405", get, delete)
    if not came(get):
        return unknown("the server did not answer GET", get)
    told = "nothing depends on GET or DELETE; see subscriptions for pushed messages"
    came_back = f"GET gets {said(get)}, DELETE {said(delete)}"
    return ready(told, *others, advice=f"{came_back}; 405 is recommended for both")


@probe("http-status", over_http=True)
def http_status(examination: Examination) -> Judged:
    asked = examination.knocked("unknown-method")
    if status_of(asked) == 404 and code_of(asked) == METHOD_NOT_FOUND:
        return ready("an unknown method gets 404 and -32601", asked)
    return breaks(f"an unknown method gets {said(asked)}", asked)


@probe("origin")
def origin(examination: Examination) -> Judged:
    if examination.transport == "stdio":
        return not_used("the server does not run over HTTP")
    asked = examination.ask(replace(examination.alive, headers={"Origin": _FOREIGN}))
    if status_of(asked) == 403:
        return ready("a foreign Origin is refused with 403", asked)
    return breaks(f"a request from a foreign Origin gets {said(asked)}", asked)


@probe("version-header", over_http=True)
def version_header(examination: Examination) -> Judged:
    wrong, missing = (
        examination.ask(SentCheck(method="ping", headers={VERSION_HEADER: version}))
        for version in (UNKNOWN_VERSION, None)
    )
    if status_of(wrong) != 400:
        told = f"the unknown version {UNKNOWN_VERSION} in the header gets {said(wrong)}"
        return breaks(told, wrong)
    advice = f"a request without the header gets {said(missing)}"
    told = "an unknown version in the header gets 400"
    return ready(told, wrong, advice="" if is_result(missing) else advice)


@probe("transport")
def transport(examination: Examination) -> Judged:
    if examination.transport == "sse":
        return breaks("the server uses HTTP+SSE, with two endpoints")
    if examination.transport == "http":
        return ready("the server uses streamable HTTP")
    return not_used("the server runs over stdio")


# -- The steps between the revisions that begin with a handshake ---------------------------------

_BATCH_IDS = ("mcptest-batch-1", "mcptest-batch-2")
_MOST_TOOLS = 500
_UNKNOWN_NOTIFICATION = "notifications/mcptest/unknown"


@probe("agreement")
def agreement(examination: Examination) -> Judged:
    newer = examination.newer
    if examination.speaks_newer:
        return ready(f"the server agrees to {newer}")
    params = {
        "protocolVersion": newer.wire_version,
        "capabilities": {},
        "clientInfo": {"name": "mcptest", "version": "1"},
    }
    try:
        conversation = examination.site.open(begin=False)
    except PeerError as error:
        return unknown(f"a new connection could not be opened: {error.message}")
    asked = conversation.ask(SentCheck(method="initialize", params=params))
    conversation.close()
    result = asked.exchange.result
    named = result.get("protocolVersion") if isinstance(result, dict) else None
    answer = f"the version {show(str(named), 40)}" if named is not None else said(asked)
    return breaks(f"a client that offers {newer} gets {answer}", asked)


@probe("batches")
def batches(examination: Examination) -> Judged:
    asked, answered, alive = _send_batch(examination)
    if answered:
        return breaks("the server processes a batch of messages", asked)
    if not alive:
        return breaks("the server stopped working after a batch of messages", asked)
    return ready(f"a batch of messages gets {said(asked)}", asked)


@probe("batches-received")
def batches_received(examination: Examination) -> Judged:
    asked, answered, _ = _send_batch(examination)
    if answered == len(_BATCH_IDS):
        return ready("the server answers both messages of a batch", asked)
    return breaks(f"the server answered {answered} of two requests in a batch", asked)


def _send_batch(examination: Examination) -> tuple[Asked, int, bool]:
    """An array of two harmless requests: what came, how many results, and is it still alive?"""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": examination.alive.method}
    if examination.site.revision.era is Era.STATELESS:
        message["params"] = {"_meta": needed_meta(examination.site.revision)}
    messages = [{**message, "id": one} for one in _BATCH_IDS]
    asked = examination.conversation.ask(SentCheck(raw=encode(messages).decode()))
    answered = sum(
        one.kind is Kind.RESULT and one.id in _BATCH_IDS
        for message in asked.answers
        for one in (message.items or (message,))
    )
    return asked, answered, is_result(examination.ask(examination.alive))


@probe("notifications")
def notifications(examination: Examination) -> Judged:
    conversation = examination.conversation
    place = len(conversation.tape.records)
    asked = conversation.notify(SentCheck(method=_UNKNOWN_NOTIFICATION))
    alive = examination.ask(examination.alive)
    came_since = messages_of("server", iter(conversation.tape.records[place:]))
    answers = (one for one, _ in came_since if one.is_answer and one.id != alive.identifier)
    stray = next((one.raw for one in answers), b"")
    if stray:
        told = Evidence(show(asked.sent, 200), show(examination.site.masker.message(stray), 300))
        return breaks("the server answers a notification", told)
    if not is_result(alive):
        return breaks("the server stopped working after an unknown notification", asked, alive)
    return ready("an unknown notification is ignored", asked)


@probe("utf-8")
def utf_8(examination: Examination) -> Judged:
    frames = [
        record.raw
        for conversation in examination.site.conversations
        for record in conversation.tape.records
        if isinstance(record, Frame) and record.sender == "server"
    ]
    for raw in frames:
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            return breaks(f"a message is not UTF-8: {error.reason}", Evidence("", show(raw, 300)))
    return ready(f"all {len(frames)} messages are UTF-8")


@probe("meta-keys")
def meta_keys(examination: Examination) -> Judged:
    watch = examination.watch
    if not watch.meta_keys:
        return not_used("no _meta was seen")
    told = f"all _meta keys are well-formed: {some(watch.meta_keys)}"
    return _breaks_by(watch.bad_meta_keys, "malformed _meta keys", ready(told))


@probe("tool-schemas")
def tool_schemas(examination: Examination) -> Judged:
    tools = list(examination.tools)[:_MOST_TOOLS]
    if not tools:
        return not_used("the server lists no tools")
    wrong, limited = [], []
    for tool, member in product(tools, ("inputSchema", "outputSchema")):
        schema, named = tool.get(member), f"{tool.get('name')}.{member}"
        if member == "outputSchema" and member not in tool:
            continue
        if not isinstance(schema, dict):
            wrong.append(f"{named} is not an object")
            continue
        try:
            CompiledSchema(schema)
        except SchemaLimitError as error:
            limited.append(f"{named}: {error}")
        except SchemaError as error:
            wrong.append(f"{named}: {error}")
    fine = ready(f"the schemas of all {len(tools)} tools are valid")
    if limited:
        fine = unchecked(f"schemas that can't be checked: {some(limited)}")
    return _breaks_by(wrong, "invalid schemas", fine)


@probe("tool-names")
def tool_names(examination: Examination) -> Judged:
    names = [str(tool.get("name")) for tool in examination.tools]
    if not names:
        return not_used("the server lists no tools")
    odd = [name for name in names if not is_plain_tool_name(name)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    advice = "; ".join(
        f"{words}: {some(found)}"
        for words, found in (("rename", odd), ("duplicate", twice))
        if found
    )
    return ready(f"{len(names) - len(odd)} of {len(names)} names are portable", advice=advice)


@probe("argument-errors")
def argument_errors(examination: Examination) -> Judged:
    required = ((one, member_at(one, "inputSchema", "required")) for one in examination.tools)
    demanding = (one for one, names in required if isinstance(names, list) and names)
    tool = next(filter(is_safe, demanding), None)
    if tool is None:
        return unknown("no tool marked readOnlyHint has a required argument")
    params: dict[str, object] = {"name": tool.get("name"), "arguments": {}}
    asked = examination.ask(SentCheck(method="tools/call", params=params))
    result = asked.exchange.result
    if isinstance(result, dict) and result.get("isError") is True:
        return ready("a call without its arguments gets a result with isError", asked)
    advice = f"a call without its required arguments gets {said(asked)}"
    return ready("invalid arguments are refused without isError", asked, advice=advice)


@probe("structured-output")
def structured_output(examination: Examination) -> Judged:
    with_schema = [str(one.get("name")) for one in examination.tools if "outputSchema" in one]
    if not with_schema:
        return not_used("no tool has an outputSchema")
    seen = [call for call in examination.calls if "outputSchema" in call.tool]
    for call in seen:
        try:
            problem = _misfit(call)
        except SchemaLimitError as error:
            name = some([call.tool.get("name")])
            return unchecked(f"the structuredContent of {name} can't be checked: {error}")
        if problem:
            return breaks(f"{some([call.tool.get('name')])}: {problem}", call.asked)
    if not seen:
        return unknown(f"no tool with an outputSchema was called: {uncalled_in_words(examination)}")
    return ready(
        f"the structuredContent of {len(seen)} tools matches the outputSchema", seen[0].asked
    )


def _misfit(call: AskedCall) -> str:
    result = call.asked.exchange.result
    if not isinstance(result, dict) or result.get("isError") is True:
        return ""
    if "structuredContent" not in result:
        return "the result has no structuredContent" if "content" in result else ""
    try:
        misfit = CompiledSchema(call.tool.get("outputSchema")).misfit(result["structuredContent"])
    except SchemaLimitError:
        raise
    except SchemaError as error:
        return f"the outputSchema is invalid: {error}"
    return "" if misfit is None else f"structuredContent{misfit.pointer}: {misfit.reason}"


@probe("declared-only")
def declared_only(examination: Examination) -> Judged:
    beside = None if examination.unlisted else examination.another(declare=())
    if beside is None:
        return unknown("a second connection could not be opened")
    for call in examination.calls:
        beside.ask(call_of(call.tool))
    beside.ask(examination.alive)
    asked = [one for one in beside.asked if one.get("method") != "ping"]
    beside.close()
    if asked:
        methods = {str(one.get("method")) for one in asked}
        shown = show(examination.site.masker.text(json.dumps(asked[0])), 300)
        told = f"the server sends requests that the client did not declare: {some(sorted(methods))}"
        return breaks(told, Evidence("", shown))
    if examination.uncalled:
        return unknown(f"the server sent no request, but {uncalled_in_words(examination)}")
    return ready("the server sends no request to a client that declares nothing")


@probe("resource-uris")
def resource_uris(examination: Examination) -> Judged:
    listed = [one for one in examination.lists.get("resources", ()) if isinstance(one, dict)]
    if not listed:
        return not_used("the server lists no resources")
    wrong = [one.get("uri") for one in listed if not is_uri(str(one.get("uri")))]
    fine = ready(f"all {len(listed)} resources have a URI")
    return _breaks_by(wrong, "invalid URIs (RFC 3986)", fine)


@probe("titles")
def titles(examination: Examination) -> Judged:
    items = [one for items in examination.lists.values() for one in items if isinstance(one, dict)]
    titled = [one for one in items if "title" in one]
    wrong = [one.get("name") for one in titled if not isinstance(one["title"], str)]
    if not titled:
        return not_used("no listed item has a title")
    return _breaks_by(
        wrong, "titles that are not strings", ready(f"all {len(titled)} titles are strings")
    )


@probe("completions")
def completions(examination: Examination) -> Judged:
    if examination.declares("completions"):
        return ready("the server declares completions")
    for prompt in examination.lists.get("prompts", ()):
        arguments = list(prompt_arguments(prompt)) if isinstance(prompt, dict) else []
        if not arguments:
            continue
        reference = {"type": "ref/prompt", "name": prompt.get("name")}
        argument = {"name": arguments[0][0], "value": ""}
        params = {"ref": reference, "argument": argument}
        asked = examination.ask(SentCheck(method="completion/complete", params=params))
        if is_result(asked):
            return breaks("the server serves completion but does not declare it", asked)
        return not_used("the server neither declares nor serves completion", asked)
    return not_used("the server does not declare completion, and no prompt has an argument")


@probe("audio")
def audio(examination: Examination) -> Judged:
    watch = examination.watch
    if watch.bad_audio is not None:
        return breaks("audio content has no data or mimeType", watch.bad_audio)
    if not watch.audio:
        return not_used("no audio was seen")
    return ready(f"{watch.audio} audio items have data and mimeType")
