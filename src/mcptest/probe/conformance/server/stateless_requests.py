"""The stateless era: its requests and its subscriptions, and results that require input: how one
answers and calls again, odd answers, a changed state, and who may not ask at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from mcptest.core.capture import Frame
from mcptest.core.message import Kind, Message, id_key
from mcptest.core.safe_text import show
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Decided,
    Findings,
    Judge,
    bad,
    expect,
    good,
    inside,
    object_in,
    skipped,
    untestable,
    verdict,
)
from mcptest.probe.conformance.server.scene import (
    ACKNOWLEDGED,
    Heard,
    Obj,
    ScenarioStage,
    Scene,
    ServerScript,
)
from mcptest.rules.protocol import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROTOCOL_VERSION,
    SERVER_INFO,
    SUBSCRIPTION_ID,
)
from mcptest.wire.envelope import decode

BARE: dict[str, Any] = {CLIENT_CAPABILITIES: {}}
"""A client that declares nothing."""
_UNKNOWN = "v999.0.0"
_NOT_FOUND, _MISSING_CAPABILITY = -32601, -32021
_FAULTS = ("missing-meta", "missing-protocol-version", "missing-client-capabilities")
_REMOVED = (
    *("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
)
_NEEDS_SAMPLING = "test_missing_capability"
_STREAMS = "test_streaming_elicitation"
_LOGS = "test_logging_tool"
_LISTEN = "subscriptions/listen"
_KINDS = ("tools", "prompts")
_TRIGGERS = {"tools": "test_trigger_tool_change", "prompts": "test_trigger_prompt_change"}
_SUBSCRIBED = (
    *("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe"),
)


def ask_statelessly(stage: ScenarioStage) -> None:
    def discover(label: str, params: Obj | None = None, **changed: Any) -> None:
        stage.ask(label, "server/discover", params, **{"meta": BARE, **changed})

    discover("missing-meta", {}, meta=None, omit=("_meta",))
    discover("missing-protocol-version", meta={**BARE, PROTOCOL_VERSION: None})
    discover("missing-client-capabilities", meta={CLIENT_CAPABILITIES: None})
    discover("no client info", meta={**BARE, CLIENT_INFO: None})
    discover("discover")
    stage.ask("prompts/list", "prompts/list", meta=BARE)
    stage.ask("tools/list", "tools/list", meta=BARE)
    spoken = {"MCP-Protocol-Version": stage.scene.revision.wire_version}
    discover("unknown version", meta={**BARE, PROTOCOL_VERSION: _UNKNOWN})
    if stage.scene.transport == "http":
        discover("other version", meta={**BARE, PROTOCOL_VERSION: _UNKNOWN}, headers=spoken)
    stage.call("capability", _NEEDS_SAMPLING, meta=BARE)
    # Over a pipe, initialize may turn a server of both eras into one of the other.
    for method in (*_REMOVED, "unknown/method") if stage.scene.transport == "http" else ():
        # Our client sends no headers with initialize, which it knows from the other era only.
        stage.ask(method, method, meta=BARE, headers={**spoken, "Mcp-Method": method})
    stage.call("stream", _STREAMS, meta={CLIENT_CAPABILITIES: {"elicitation": {}}})
    stage.call("log", _LOGS, meta=BARE)
    _listen(stage)


def _listen(stage: ScenarioStage) -> None:
    """Two subscriptions side by side: a change of one list must show on one of them alone."""
    labels = [f"listen {kind}" for kind in _KINDS]
    for kind, label in zip(_KINDS, labels, strict=True):
        wanted = {"notifications": {f"{kind}ListChanged": True}}
        stage.start(label, _LISTEN, wanted, meta=BARE)
    stage.await_settled(labels)
    for kind in _KINDS:
        since = len(stage.main.notifications)
        heard = stage.call(f"change {kind}", _TRIGGERS[kind], meta=BARE)
        if heard.did_its_work and stage.scene.offered.declares(f"{kind}.listChanged"):
            stage.await_notices(_changed(kind), 1, since)
    # What still comes of a change comes before the answer to this.
    stage.ask("afterwards", "server/discover", meta=BARE)
    for label in labels:
        stage.give_up(label)


def _changed(kind: str) -> str:
    return f"notifications/{kind}/list_changed"


def _code_problem(heard: Heard, wanted: int) -> str:
    if not heard.answered:
        return heard.silence
    if heard.exchange.answer == "result":
        return f"the server accepted {heard.method}; expected error {wanted}"
    code = show(str(heard.code), 20)
    return (
        "" if heard.code == wanted else f"the server answered with error {code}; expected {wanted}"
    )


def refused_with(label: str, code: int | None = None, status: int | None = None) -> Judge[Scene]:
    """What was asked under a label is refused, with this HTTP status and this error."""

    def judge(scene: Scene) -> CheckFinding:
        heard = scene[label]
        problems = [] if status is None else [heard.status_problem(status)]
        problems += [] if code is None else [_code_problem(heard, code)]
        return verdict(problems, heard)

    return judge


def http_server_meta_invalid_400(scene: Scene) -> Findings:
    for label in _FAULTS:
        problem = scene[label].status_problem(400)
        yield verdict(problem and f"{label}: {problem}", scene[label])


def request_meta_client_info_optional(scene: Scene) -> CheckFinding:
    heard = scene["no client info"]
    status = "" if heard.status is None else heard.status_problem(200)
    return verdict(heard.without_result or status, heard)


def server_implements_discover(scene: Scene) -> CheckFinding:
    heard = scene["discover"]
    members = {"supportedVersions": list, "capabilities": dict}
    missing = [one for one, kind in members.items() if not isinstance(heard.result.get(one), kind)]
    return verdict(heard.without_result or (f"the result has no {one}" for one in missing), heard)


def server_identifies_in_result_meta(scene: Scene) -> CheckFinding:
    heard = scene["discover"]
    if heard.without_result:
        return skipped(heard.without_result)
    info = object_in(heard.result, "_meta", SERVER_INFO)
    named = info.get("name") and info.get("version")
    fault = f"_meta of the result has no {SERVER_INFO} with name and version"
    return expect(named, fault, heard, mild=True)


def _declared(scene: Scene, capability: str) -> bool:
    return isinstance(inside(scene["discover"].result, "capabilities", capability), dict)


def _list_beside_discovery(scene: Scene, label: str) -> Heard:
    """What is served is compared with what is declared: both must have been answered."""
    undiscovered = scene["discover"].without_result
    if undiscovered:
        raise Decided(bad(undiscovered, scene[label]))
    return scene.answered(label)


def server_declares_prompts_in_discover(scene: Scene) -> CheckFinding:
    heard = _list_beside_discovery(scene, "prompts/list")
    fine = heard.code == _NOT_FOUND or _declared(scene, "prompts")
    return expect(fine, "the server answers prompts/list without declaring prompts", heard)


def discover_capabilities_match_handlers(scene: Scene) -> CheckFinding:
    heard = _list_beside_discovery(scene, "tools/list")
    if _declared(scene, "tools"):
        fine = isinstance(heard.result.get("tools"), list)
        return expect(fine, "the server declares tools, but tools/list is empty", heard)
    problem = _code_problem(heard, _NOT_FOUND)
    return verdict(problem and f"tools is not declared: {problem}", heard)


def server_unsupported_version_error(scene: Scene) -> CheckFinding:
    heard = scene.answered("unknown version")
    supported = heard.error_data.get("supported")
    known = scene["discover"].result.get("supportedVersions")
    problems = []
    if not isinstance(supported, list) or not supported:
        problems.append("data.supported of the error lists no versions")
    elif isinstance(known, list) and not all(one in known for one in supported):
        problems.append("data.supported names versions that server/discover does not")
    if heard.error_data.get("requested") != _UNKNOWN:
        given = show(repr(heard.error_data.get("requested")), 60)
        problems.append(f"data.requested is {given}, not {_UNKNOWN!r}")
    return verdict(problems, heard)


def _need(scene: Scene, tool: str, heard: Heard) -> None:
    """Decided where a tool is not there: a call of it says nothing, as some answer it with a failed
    result."""
    is_listed = scene.offered.has("tool", scene.fixture(tool))
    if not (is_listed or heard.did_its_work) and heard.answered:
        raise Decided(untestable(_wanted(tool), heard))


def _wanted(tool: str) -> str:
    return f"offer the fixture {tool}, or map it to a tool of yours"


def server_rejects_undeclared_capability(scene: Scene) -> CheckFinding:
    heard = scene["capability"]
    if heard.code != _MISSING_CAPABILITY:
        _need(scene, _NEEDS_SAMPLING, heard)
        return verdict(_code_problem(heard, _MISSING_CAPABILITY), heard)
    named = isinstance(inside(heard.error_data, "requiredCapabilities", "sampling"), dict)
    fault = "data.requiredCapabilities of the error does not name sampling"
    return expect(named, fault, heard)


def missing_capability_http_400(scene: Scene) -> CheckFinding:
    heard = scene["capability"]
    if heard.code == _MISSING_CAPABILITY:
        return verdict(heard.status_problem(400), heard)
    _need(scene, _NEEDS_SAMPLING, heard)
    return bad(
        f"the server did not send error {_MISSING_CAPABILITY}, so its status is unknown", heard
    )


def _messages(scene: Scene, label: str) -> list[Message]:
    return [decode(one.raw) for one in scene.on_stream(label) if isinstance(one, Frame)]


def http_server_error_jsonrpc_id(scene: Scene) -> CheckFinding:
    errors = [
        (label, message.id, heard.asked.identifier)
        for label, heard in scene.heard.items()
        for message in _messages(scene, label)
        if message.kind is Kind.ERROR
    ]
    if not errors:
        return bad("the server sent no error, so there is no id to compare")
    return verdict(
        f"{label}: the error's id is {show(repr(given), 40)}, not {own!r}"
        for label, given, own in errors
        if id_key(given) != id_key(own)
    )


def http_server_no_independent_requests_on_stream(scene: Scene) -> CheckFinding:
    heard, messages = scene["stream"], _messages(scene, "stream")
    if not messages:
        return bad(heard.silence, heard)
    if not heard.did_its_work:
        _need(scene, _STREAMS, heard)
        return untestable(f"make {_STREAMS} run for a client that declares elicitation", heard)
    sent = [str(one.method) for one in messages if one.kind is Kind.REQUEST]
    return verdict((f"the server sent the request {show(one, 60)}" for one in sent), heard)


def server_no_log_without_loglevel(scene: Scene) -> CheckFinding:
    heard = scene.answered("log")
    if not heard.did_its_work:
        _need(scene, _LOGS, heard)
        return untestable(f"make {_LOGS} run without a log level", heard)
    logs = sum(one.method == "notifications/message" for one in _messages(scene, "log"))
    fault = f"the server sent {logs} log messages for a request without a log level"
    return expect(not logs, fault, heard)


def _heard_on(scene: Scene, label: str) -> list[Message]:
    """What came on a subscription. Over HTTP it has a stream, on stdio its id tells."""
    heard, messages = scene[label], _messages(scene, label)
    own = id_key(heard.asked.identifier)

    def belongs(message: Message) -> bool:
        if message.kind is not Kind.NOTIFICATION:
            return bool(id_key(message.id) == own)
        tag = _tag(message)
        about = message.method == ACKNOWLEDGED or str(message.method).endswith("/list_changed")
        return bool(id_key(tag) == own or (about and tag is None))

    return [one for one in messages if heard.asked.stream is not None or belongs(one)]


def _tag(message: Message) -> Any:
    return inside(message.params, "_meta", SUBSCRIPTION_ID)


def _need_subscriptions(scene: Scene, label: str) -> None:
    """Decided where the server has none."""
    if scene[label].code != _NOT_FOUND:
        return
    declared = [one for one in _SUBSCRIBED if scene.offered.declares(one)]
    if not declared:
        raise Decided(skipped("the server declares nothing to subscribe to"))
    raise Decided(
        bad(f"the server declares {', '.join(declared)}, but does not know {_LISTEN}", scene[label])
    )


def server_sends_subscription_ack(scene: Scene) -> CheckFinding:
    label = "listen tools"
    _need_subscriptions(scene, label)
    messages = _heard_on(scene, label)
    if not messages:
        return bad(f"the server sent nothing on {_LISTEN}", scene[label])
    first = messages[0].method
    fault = f"the first message is {show(str(first), 80)}, not {ACKNOWLEDGED}"
    return expect(first == ACKNOWLEDGED, fault, scene[label])


def server_tags_subscription_id(scene: Scene) -> CheckFinding:
    _need_subscriptions(scene, "listen tools")
    notices = [
        (one, scene[f"listen {kind}"].asked.identifier)
        for kind in _KINDS
        for one in _heard_on(scene, f"listen {kind}")
        if one.kind is Kind.NOTIFICATION
    ]
    problems = [
        f"{one.method} has the subscriptionId {show(repr(_tag(one)), 40)}"
        for one, own in notices
        if id_key(_tag(one)) != id_key(own)
    ]
    unseen = "the server sent no notification with a subscriptionId"
    return verdict(problems if notices else unseen, scene["listen tools"])


def server_honors_notification_filter(scene: Scene) -> CheckFinding:
    heard = scene["listen prompts"]
    _need_subscriptions(scene, "listen prompts")
    came = {kind: _heard_on(scene, f"listen {kind}") for kind in _KINDS}
    leaks = [
        f"the server sent {_changed(other)} to a subscriber of {kind} only"
        for kind, other in (_KINDS, _KINDS[::-1])
        # What names no subscription could be for anybody; that it does not is another check's.
        if any(
            one.method == _changed(other)
            and (scene[f"listen {kind}"].asked.stream is not None or _tag(one) is not None)
            for one in came[kind]
        )
    ]
    if leaks or not any(came.values()):
        return verdict(leaks or f"the server sent nothing on {_LISTEN}", heard)
    if scene["change tools"].did_its_work:
        return good(heard)
    if not scene.offered.declares("tools.listChanged"):
        return skipped("the server does not declare tools.listChanged")
    return untestable(_wanted(_TRIGGERS["tools"]))


def announced(kind: str) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        if not scene.offered.declares(f"{kind}.listChanged"):
            return skipped(f"the server does not declare {kind}.listChanged")
        trigger, label = scene[f"change {kind}"], f"listen {kind}"
        if not trigger.did_its_work:
            return untestable(_wanted(_TRIGGERS[kind]), trigger)
        came = any(one.method == _changed(kind) for one in _heard_on(scene, label))
        fault = f"the list changed, but the server sent no {_changed(kind)} on the subscription"
        return expect(came, fault, scene[label], mild=True)

    return judge


SAMPLING, ROOTS = "sampling/createMessage", "roots/list"
_NO_STATE = "the result has no requestState that is a string"


def accepted(**content: Any) -> Obj:
    return {"action": "accept", "content": content}


_SAMPLED = {
    "role": "assistant",
    "content": {"type": "text", "text": "This is an answer of a model."},
    "model": "mcptest-static",
    "stopReason": "endTurn",
}
_LISTED = {"roots": [{"uri": "file:///mcptest/root", "name": "A root"}]}
_VALUES: Obj = {"boolean": True, "integer": 1, "number": 1}


def _answer(asked: Any) -> Any:
    """What a client answers to one request: forms are filled in from their schema."""
    method = inside(asked, "method")
    if method in (SAMPLING, ROOTS):
        return _SAMPLED if method == SAMPLING else _LISTED
    fields = object_in(asked, "params", "requestedSchema", "properties")
    kinds = {name: str(inside(field, "type")) for name, field in fields.items()}
    return accepted(**{name: _VALUES.get(kind, "Alice") for name, kind in kinds.items()})


def _requests(heard: Heard) -> Mapping[str, Any]:
    return object_in(heard.result, "inputRequests")


def _retry(params: Mapping[str, Any], heard: Heard) -> Obj:
    """The call once more, with an answer to all that was asked and the state as it came."""
    answers = {key: _answer(one) for key, one in _requests(heard).items()}
    again: Obj = {**params, "inputResponses": answers}
    if "requestState" in heard.result:
        again["requestState"] = heard.result["requestState"]
    return again


Again: TypeAlias = Callable[[Obj], Mapping[str, Obj]]
"""From the call as it should be made again to the calls that are made, by their labels."""


def _asked_back(again: Again) -> ServerScript:
    """Ask first, so that the state is known; then call again."""

    def script(stage: ScenarioStage) -> None:
        method, params = stage.fixture_request()
        asked = stage.ask("asked", method, params)
        if _requests(asked):
            for label, whole in again(_retry(params, asked)).items():
                stage.ask(label, method, whole)

    return script


asked_back = _asked_back(lambda whole: {"completed": whole})


def asked_back_twice(stage: ScenarioStage) -> None:
    method, params = stage.fixture_request()
    heard = stage.ask("asked", method, params)
    for label in ("second", "completed"):
        if not _requests(heard):
            return
        heard = stage.ask(label, method, _retry(params, heard))


@_asked_back
def wrong_key(whole: Obj) -> Mapping[str, Obj]:
    return {"odd": {**whole, "inputResponses": {"wrong_key": accepted(data="wrong")}}}


@_asked_back
def extra_keys(whole: Obj) -> Mapping[str, Obj]:
    extra = {"unknown_extra_key": accepted(foo="bar"), "another_unexpected": accepted(baz=123)}
    return {"odd": {**whole, "inputResponses": {**whole["inputResponses"], **extra}}}


@_asked_back
def invalid(whole: Obj) -> Mapping[str, Obj]:
    number = dict.fromkeys(whole["inputResponses"], 12345)
    odd = {"number": number, "null": None}
    return {label: {**whole, "inputResponses": answers} for label, answers in odd.items()}


def tamper(stage: ScenarioStage) -> None:
    method, params = stage.fixture_request()
    asked = stage.ask("asked", method, params)
    if isinstance(asked.result.get("requestState"), str):
        whole = _retry(params, asked)
        changed = {**whole, "requestState": f"{whole['requestState']}-TAMPERED"}
        stage.ask("tampered", method, changed)


def declare_sampling(stage: ScenarioStage) -> None:
    method, params = stage.fixture_request()
    stage.ask("asked", method, params, meta={CLIENT_CAPABILITIES: {"sampling": {}}})


def ask_lists(stage: ScenarioStage) -> None:
    for capability in ("tools", "prompts"):
        if stage.scene.offered.declares(capability):
            stage.ask(f"{capability}/list", f"{capability}/list", {})


def _why_not_asking(heard: Heard) -> str:
    if heard.without_result:
        return heard.without_result
    if not heard.wants_input:
        kind = show(repr(heard.result.get("resultType")), 60)
        return f"resultType is {kind}, not 'input_required'"
    return "" if _requests(heard) else "the result has no inputRequests"


def _methods(heard: Heard) -> set[str]:
    found = (one.get("method") for one in _requests(heard).values() if isinstance(one, dict))
    return {one for one in found if isinstance(one, str)}


def asks_for(
    *, methods: Sequence[str] = (), key: str = "", with_state: bool = False, at_least: int = 1
) -> Judge[Scene]:
    def problems(heard: Heard) -> Iterator[str]:
        asked = _requests(heard)
        if key and key not in asked:
            yield f"inputRequests has no {key}"
        if len(asked) < at_least:
            yield f"inputRequests has {len(asked)} members, not at least {at_least}"
        yield from (
            f"the server does not ask for {one}" for one in methods if one not in _methods(heard)
        )
        if with_state and not isinstance(heard.result.get("requestState"), str):
            yield _NO_STATE

    return lambda scene: verdict(
        _why_not_asking(scene["asked"]) or problems(scene["asked"]), scene["asked"]
    )


def completes(member: str = "") -> Judge[Scene]:
    """The last call is complete; with `member`, its result has a list of that name."""

    def judge(scene: Scene) -> CheckFinding:
        heard = scene["completed"]
        if "completed" not in scene:
            return bad("the server did not ask for input")
        if heard.without_success or heard.wants_input:
            again = "the server asks again after it got all inputs"
            return bad(heard.without_success or again, heard)
        given = heard.result.get(member)
        fine = not member or (isinstance(given, list) and (given or member == "messages"))
        return expect(fine, f"the complete result has no {member}", heard)

    return judge


def multi_round_r2(scene: Scene) -> CheckFinding:
    second = scene["second"]
    state, problem = second.result.get("requestState"), _why_not_asking(second)
    if not problem and not isinstance(state, str):
        problem = _NO_STATE
    elif not problem and state == scene["asked"].result.get("requestState"):
        problem = "requestState is the same as in the first round"
    return verdict(problem, second)


def missing_response_rerequests(scene: Scene) -> CheckFinding:
    heard = scene["odd" if "odd" in scene else "asked"]
    return verdict(_why_not_asking(heard), heard, mild=True)


def ignore_unexpected_params(scene: Scene) -> CheckFinding:
    heard = scene["odd"]
    if "odd" not in scene:
        return verdict(_why_not_asking(scene["asked"]), scene["asked"], mild=True)
    fault = "the call did not complete because of extra inputs"
    problem = heard.without_success or (fault if heard.wants_input else "")
    return verdict(problem, heard, mild=True)


def not_taken(label: str, what: str) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        heard = scene[label]
        if label not in scene:
            return verdict(_why_not_asking(scene["asked"]), scene["asked"], mild=True)
        refused = scene.answered(label).exchange.answer == "error" or heard.wants_input
        refused = refused or heard.result.get("isError") is True
        return expect(refused, f"the server accepted {what} as input", heard, mild=True)

    return judge


def reject_tampered_state(scene: Scene) -> CheckFinding:
    asked, heard = scene["asked"], scene["tampered"]
    if "tampered" not in scene:
        return bad(_why_not_asking(asked) or "the result has no requestState to change", asked)
    refused = scene.answered("tampered").exchange.answer == "error"
    return expect(refused, "the server accepted a changed requestState", heard)


def respect_client_capabilities(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if heard.without_result or not heard.wants_input:
        completed = "the call completed; it should ask for sampling"
        return bad(heard.without_result or completed, heard)
    asked = _methods(heard)
    if not asked:
        return untestable("make the fixture ask for sampling if the client declares it", heard)
    other = (
        f"the server asks for {one}, which the client did not declare" for one in asked - {SAMPLING}
    )
    return verdict(sorted(other), heard)


def not_on_unsupported_requests(scene: Scene) -> CheckFinding:
    heard = [scene[label] for label in ("tools/list", "prompts/list") if label in scene]
    if not heard:
        return untestable("declare the capability tools or prompts")
    problems = [f"{one.method} asks for input" for one in heard if one.wants_input]
    problems += [one.silence for one in heard if not one.answered]
    return verdict(problems, heard[0])


def result_type_included(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if heard.without_result or "resultType" not in heard.result:
        return bad(heard.without_result or "the result has no resultType", heard)
    kind = show(repr(heard.result["resultType"]), 60)
    return expect(heard.wants_input, f"resultType is {kind}, not 'input_required'", heard)
