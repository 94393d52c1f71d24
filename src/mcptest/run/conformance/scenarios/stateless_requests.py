"""The stateless era, request by request: what is missing, unknown or removed is refused as it has
to be, and discovery says what is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcptest.clients.scenario import Row
from mcptest.model.capture import Frame
from mcptest.model.message import Kind, Message, id_key
from mcptest.model.show import show
from mcptest.peer.stateless import PREFIX
from mcptest.run.conformance.scenarios.judges import can_not_tell, found, not_for_it, sep
from mcptest.run.conformance.scenarios.scenario import BOTH, HTTP, Judge, ServerCheck
from mcptest.run.conformance.scenarios.scene import Heard, Scene
from mcptest.run.conformance.scenarios.stage import CAPABILITIES, Stage
from mcptest.wire.envelope import decode

VERSION = PREFIX + "protocolVersion"
CLIENT_INFO = PREFIX + "clientInfo"
SERVER_INFO = PREFIX + "serverInfo"
BARE: dict[str, Any] = {CAPABILITIES: {}}
"""A client that declares nothing."""
_UNKNOWN = "v999.0.0"
_INVALID_PARAMS, _NOT_FOUND = -32602, -32601
_HEADER_MISMATCH, _MISSING_CAPABILITY = -32020, -32021
_FAULTS = ("missing-meta", "missing-protocol-version", "missing-client-capabilities")
_REMOVED = (
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
)
_NEEDS_SAMPLING = "test_missing_capability"
_STREAMS = "test_streaming_elicitation"
_LOGS = "test_logging_tool"


# -- asking


def ask_requests(stage: Stage) -> None:
    _ask_with_faults(stage)
    stage.ask("no client info", "server/discover", meta={**BARE, CLIENT_INFO: None})
    stage.ask("discover", "server/discover", meta=BARE)
    stage.ask("prompts/list", "prompts/list", meta=BARE)
    stage.ask("tools/list", "tools/list", meta=BARE)
    _ask_with_versions(stage)
    call = stage.call_params(_NEEDS_SAMPLING, {})
    stage.ask("capability", "tools/call", call, meta=BARE)
    # Over a pipe, initialize may turn a server of both eras into one of the other.
    for method in (*_REMOVED, "unknown/method") if stage.transport == "http" else ():
        # Our client sends no headers with initialize, which it knows from the other era only.
        headers = {"MCP-Protocol-Version": stage.revision.wire_version, "Mcp-Method": method}
        stage.ask(method, method, meta=BARE, headers=headers)
    call = stage.call_params(_STREAMS, {})
    stage.ask("stream", "tools/call", call, meta={CAPABILITIES: {"elicitation": {}}})
    call = stage.call_params(_LOGS, {})
    stage.ask("log", "tools/call", call, meta=BARE)


def _ask_with_faults(stage: Stage) -> None:
    stage.ask("missing-meta", "server/discover", {}, omit=("_meta",))
    stage.ask("missing-protocol-version", "server/discover", meta={**BARE, VERSION: None})
    stage.ask("missing-client-capabilities", "server/discover", meta={CAPABILITIES: None})


def _ask_with_versions(stage: Stage) -> None:
    stage.ask("unknown version", "server/discover", meta={**BARE, VERSION: _UNKNOWN})
    if stage.transport == "http":
        ours = {"MCP-Protocol-Version": stage.revision.wire_version}
        meta = {**BARE, VERSION: _UNKNOWN}
        stage.ask("other version", "server/discover", meta=meta, headers=ours)


# -- what is wrong with _meta


def _code_is(heard: Heard, wanted: int) -> list[str]:
    if not heard.answered:
        return [heard.silence]
    if heard.exchange.answer == "result":
        return [f"{heard.method} was served, and should be refused with {wanted}"]
    code = show(str(heard.code), 20)
    return [] if heard.code == wanted else [f"the error's code is {code}, not {wanted}"]


def _status_is(heard: Heard, wanted: int) -> list[str]:
    came = heard.silence if heard.status is None else f"HTTP {heard.status}"
    return [] if heard.status == wanted else [f"{came} came, not HTTP {wanted}"]


def _refused_meta(label: str) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        yield found(_code_is(scene[label], _INVALID_PARAMS), scene[label])

    return judge


def _refused_with_400(scene: Scene) -> Iterator[Row]:
    for label in _FAULTS:
        yield found((f"{label}: {one}" for one in _status_is(scene[label], 400)), scene[label])


def _served_without_name(scene: Scene) -> Iterator[Row]:
    heard = scene["no client info"]
    problems = [heard.without_result] if heard.without_result else []
    if not problems and heard.status not in (None, 200):
        problems = _status_is(heard, 200)
    yield found(problems, heard)


# -- discovery


def _discovered(scene: Scene) -> Iterator[Row]:
    heard = scene["discover"]
    missing = [one for one in ("supportedVersions", "capabilities") if not _has(heard, one)]
    problems = [f"the result has no {one}" for one in missing]
    yield found([heard.without_result] if heard.without_result else problems, heard)


def _has(heard: Heard, member: str) -> bool:
    kind = list if member == "supportedVersions" else dict
    return isinstance(heard.result.get(member), kind)


def _named(scene: Scene) -> Iterator[Row]:
    heard = scene["discover"]
    if heard.without_result:
        yield not_for_it(heard.without_result)
        return
    meta = heard.result.get("_meta")
    info = meta.get(SERVER_INFO) if isinstance(meta, dict) else None
    named = isinstance(info, dict) and info.get("name") and info.get("version")
    fault = f"_meta of the result has no {SERVER_INFO} with name and version"
    yield found([] if named else [fault], heard, mild=True)


def _declared(scene: Scene, capability: str) -> bool:
    capabilities = scene["discover"].result.get("capabilities")
    return isinstance(capabilities, dict) and isinstance(capabilities.get(capability), dict)


def _declares_prompts(scene: Scene) -> Iterator[Row]:
    heard = scene["prompts/list"]
    if scene["discover"].without_result or not heard.answered:
        yield found([scene["discover"].without_result or heard.silence], heard)
        return
    served = heard.code != _NOT_FOUND
    fault = "prompts/list is served, and the capability prompts is not declared"
    yield found([fault] if served and not _declared(scene, "prompts") else [], heard)


def _keeps_its_word(scene: Scene) -> Iterator[Row]:
    heard = scene["tools/list"]
    if scene["discover"].without_result or not heard.answered:
        yield found([scene["discover"].without_result or heard.silence], heard)
    elif _declared(scene, "tools"):
        fine = isinstance(heard.result.get("tools"), list)
        yield found([] if fine else ["tools is declared, and tools/list shows none"], heard)
    else:
        problems = [f"tools is not declared: {one}" for one in _code_is(heard, _NOT_FOUND)]
        yield found(problems, heard)


# -- versions


def _unsupported(scene: Scene) -> Iterator[Row]:
    heard = scene["unknown version"]
    if not heard.answered:
        yield found([heard.silence], heard)
        return
    data = heard.error.get("data")
    data = data if isinstance(data, dict) else {}
    supported, known = data.get("supported"), scene["discover"].result.get("supportedVersions")
    problems = []
    if not isinstance(supported, list) or not supported:
        problems.append("data.supported of the error lists no versions")
    elif isinstance(known, list) and not all(one in known for one in supported):
        problems.append("data.supported names versions that server/discover does not")
    if data.get("requested") != _UNKNOWN:
        given = show(repr(data.get("requested")), 60)
        problems.append(f"data.requested is {given}, not {_UNKNOWN!r}")
    yield found(problems, heard)


def _unsupported_400(scene: Scene) -> Iterator[Row]:
    yield found(_status_is(scene["unknown version"], 400), scene["unknown version"])


def _mismatch(scene: Scene) -> Iterator[Row]:
    heard = scene["other version"]
    yield found([*_status_is(heard, 400), *_code_is(heard, _HEADER_MISMATCH)], heard)


# -- capabilities


def _unlocked_by(scene: Scene, tool: str, heard: Heard) -> Row | None:
    """A call of a tool that is not there says nothing; some answer it with a failed result."""
    listed = scene.offered.has("tool", scene.fixture(tool))
    if listed or heard.did_its_work or not heard.answered:
        return None
    return can_not_tell(f"offer the fixture {tool}, or map it to a tool of yours", heard)


def _undeclared(scene: Scene) -> Iterator[Row]:
    heard = scene["capability"]
    if heard.code != _MISSING_CAPABILITY:
        problems = _code_is(heard, _MISSING_CAPABILITY)
        yield _unlocked_by(scene, _NEEDS_SAMPLING, heard) or found(problems, heard)
        return
    data = heard.error.get("data")
    needed = data.get("requiredCapabilities") if isinstance(data, dict) else None
    named = isinstance(needed, dict) and isinstance(needed.get("sampling"), dict)
    fault = "data.requiredCapabilities of the error is no object that names sampling"
    yield found([] if named else [fault], heard)


def _undeclared_400(scene: Scene) -> Iterator[Row]:
    heard = scene["capability"]
    if heard.code != _MISSING_CAPABILITY:
        fault = f"the error {_MISSING_CAPABILITY} did not come, so its status is not known"
        yield _unlocked_by(scene, _NEEDS_SAMPLING, heard) or found([fault], heard)
    else:
        yield found(_status_is(heard, 400), heard)


# -- methods


def _is_not_found(method: str) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        heard = scene[method]
        yield found([*_status_is(heard, 404), *_code_is(heard, _NOT_FOUND)], heard)

    return judge


def _messages(scene: Scene, label: str) -> list[Message]:
    frames = (one for one in scene.on_stream(label) if isinstance(one, Frame))
    return [decode(frame.raw) for frame in frames]


def _own_id(scene: Scene) -> Iterator[Row]:
    seen, wrong = 0, []
    for label, heard in scene.heard.items():
        for message in _messages(scene, label):
            if message.kind is Kind.ERROR:
                seen += 1
                if id_key(message.id) != id_key(heard.identifier):
                    given = show(repr(message.id), 40)
                    wrong.append(f"{label}: the error's id is {given}, not {heard.identifier!r}")
    if not seen:
        yield found(["no error came, so no id could be compared"])
    else:
        yield found(wrong)


# -- while a tool works


def _no_requests(scene: Scene) -> Iterator[Row]:
    heard, messages = scene["stream"], _messages(scene, "stream")
    if not messages:
        yield found([heard.silence], heard)
    elif not heard.did_its_work:
        refused = can_not_tell(f"let {_STREAMS} run for a client that declares elicitation", heard)
        yield _unlocked_by(scene, _STREAMS, heard) or refused
    else:
        sent = [str(one.method) for one in messages if one.kind is Kind.REQUEST]
        yield found((f"the server sent the request {show(one, 60)}" for one in sent), heard)


def _no_logs(scene: Scene) -> Iterator[Row]:
    heard, messages = scene["log"], _messages(scene, "log")
    if not heard.answered:
        yield found([heard.silence], heard)
    elif not heard.did_its_work:
        refused = can_not_tell(f"let {_LOGS} run without a log level", heard)
        yield _unlocked_by(scene, _LOGS, heard) or refused
    else:
        logs = sum(one.method == "notifications/message" for one in messages)
        fault = f"{logs} log messages came, though the request set no log level"
        yield found([fault] if logs else [], heard)


# -- the table


def _check(identifier: str, name: str, what: str, judge: Judge, http: bool = False) -> ServerCheck:
    return ServerCheck(
        id=f"sep-2575-{identifier}",
        name=name,
        description=what,
        judge=judge,
        references=sep(2575),
        transports=HTTP if http else BOTH,
    )


def _meta_checks() -> Iterator[ServerCheck]:
    for label in _FAULTS:
        yield _check(
            f"request-meta-invalid-{label}",
            "RequestMetaInvalid",
            f"a request ({label.replace('-', ' ')}) is refused with -32602",
            _refused_meta(label),
        )


def _removed_checks() -> Iterator[ServerCheck]:
    for method in _REMOVED:
        yield _check(
            f"http-server-method-not-found-404-{method.lower().replace('/', '-')}",
            f"HttpServerMethodNotFound404{method.replace('/', '')}",
            f"{method}, which this era does not have, is answered with 404 and -32601",
            _is_not_found(method),
            http=True,
        )


REQUEST_CHECKS = (
    *_meta_checks(),
    _check(
        "http-server-meta-invalid-400",
        "HttpServerMetaInvalid400",
        "requests without a member of _meta are refused with HTTP 400",
        _refused_with_400,
        http=True,
    ),
    _check(
        "request-meta-client-info-optional",
        "RequestMetaClientInfoOptional",
        "a request without clientInfo is served",
        _served_without_name,
    ),
    _check(
        "server-implements-discover",
        "ServerImplementsDiscover",
        "server/discover names versions and capabilities",
        _discovered,
    ),
    _check(
        "server-identifies-in-result-meta",
        "ServerIdentifiesInResultMeta",
        "a server should name itself in _meta of its results",
        _named,
    ),
    _check(
        "server-declares-prompts-in-discover",
        "ServerDeclaresPromptsInDiscover",
        "a server that serves prompts declares them",
        _declares_prompts,
    ),
    _check(
        "discover-capabilities-match-handlers",
        "DiscoverCapabilitiesMatchHandlers",
        "tools are served if and only if they are declared",
        _keeps_its_word,
    ),
    _check(
        "server-unsupported-version-error",
        "ServerUnsupportedVersionError",
        "an unknown version is refused with the versions that are known",
        _unsupported,
    ),
    _check(
        "http-server-unsupported-version-400",
        "HttpServerUnsupportedVersion400",
        "an unknown version is refused with HTTP 400",
        _unsupported_400,
        http=True,
    ),
    _check(
        "http-server-header-mismatch-400",
        "HttpServerHeaderMismatch400",
        "a version that the header does not have is refused with 400 and -32020",
        _mismatch,
        http=True,
    ),
    _check(
        "server-rejects-undeclared-capability",
        "ServerRejectsUndeclaredCapability",
        "a call that needs sampling is refused with -32021 when that was not declared",
        _undeclared,
    ),
    _check(
        "missing-capability-http-400",
        "MissingCapabilityHttp400",
        "a missing capability is told with HTTP 400",
        _undeclared_400,
        http=True,
    ),
    *_removed_checks(),
    _check(
        "http-server-method-not-found-404",
        "HttpServerMethodNotFound404",
        "an unknown method is answered with 404 and -32601",
        _is_not_found("unknown/method"),
        http=True,
    ),
    _check(
        "http-server-no-independent-requests-on-stream",
        "HttpServerNoIndependentRequestsOnStream",
        "a stream of an answer carries no requests of the server",
        _no_requests,
        http=True,
    ),
    _check(
        "server-no-log-without-loglevel",
        "ServerNoLogWithoutLogLevel",
        "no log message comes for a request that set no log level",
        _no_logs,
    ),
    _check(
        "http-server-error-jsonrpc-id",
        "HttpServerErrorJsonrpcId",
        "every error has the id of its request",
        _own_id,
        http=True,
    ),
)
