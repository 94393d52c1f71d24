"""Servers with one fault each, in the stateless era and over HTTP. See `broken_servers`."""

from __future__ import annotations

from tests.conformance.broken_servers import (
    ELICITING,
    PREFIX,
    SCHEMA,
    E,
    broken,
    gives,
    has_code,
    instead,
    puts,
    status,
)
from tests.mutants.seams import (
    accept,
    asks,
    calls,
    hear,
    on_answer,
    on_error,
    on_message,
    on_result,
    params_of,
    patch,
    refuse,
    rewrite,
)

TYPE_CHECKING = False  # see broken_servers
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from tests.mutants.seams import Fault

    Obj: TypeAlias = dict[str, Any]

VERSION, CAPABILITIES = PREFIX + "protocolVersion", PREFIX + "clientCapabilities"
SERVER_INFO, SUBSCRIPTION = PREFIX + "serverInfo", PREFIX + "subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def stateless(name: str, check: str, about: str, fault: Fault, **more: Any) -> None:
    broken(name, check, about, fault, revision=E, **more)


def over_http(name: str, check: str, about: str, fault: Fault, **more: Any) -> None:
    broken(name, check, about, fault, revision=E, over="http", **more)


# -- who may talk, and how


def _nobody(check: Any) -> Any:
    return lambda request, bound_to: None


def _no_pages(check: Any) -> Any:
    from mcptest.servers.http_connection import Rejected

    def checking(request: Any, bound_to: str) -> None:
        if request.header("origin") is not None:
            raise Rejected(403, "No pages.")

    return checking


over_http(
    "open-door",
    "localhost-host-rebinding-rejected",
    "any page may talk to it",
    patch("demo.http_server:check_sender", _nobody),
)
over_http(
    "shut-door",
    "localhost-host-valid-accepted",
    "no page may talk to it",
    patch("demo.http_server:check_sender", _no_pages),
)


def _unprimed(attach: Any) -> Any:
    return lambda self, connection, headers, prime: attach(self, connection, headers, prime=False)


def _without_retry(pause: Any) -> Any:
    def pausing(self: Any) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end_stream()

    return pausing


broken(
    "unprimed-stream",
    "server-sse-priming-event",
    "a stream does not begin with an id",
    patch("demo.http_server:ServerStream.attach", _unprimed),
    over="http",
    also=("server-sse-disconnect-resume",),
)
broken(
    "timeless-stream",
    "server-sse-retry-field",
    "a closed stream does not say when to come back",
    patch("demo.http_server:ServerStream.pause", _without_retry),
    over="http",
)


def _forgets(resume: Any) -> Any:
    def resuming(self: Any, connection: Any, headers: Any, after: int) -> None:
        connection.respond(400)

    return resuming


broken(
    "forgotten-stream",
    "server-sse-disconnect-resume",
    "who comes back is refused",
    patch("demo.http_server:ServerStream.resume", _forgets),
    over="http",
)
_in_a_row: list[bytes] = []


def _third_is_refused(respond: Any) -> Any:
    def responding(self: Any, status: int, body: bytes = b"", *words: Any, **rest: Any) -> None:
        if b'"tools":[' not in body:
            _in_a_row.clear()
        _in_a_row.append(body)
        if len(_in_a_row) > 3:
            respond(self, 503)
        else:
            respond(self, status, body, *words, **rest)

    return responding


broken(
    "two-at-a-time",
    "server-accepts-multiple-post-streams",
    "the third of three requests at once is refused",
    patch("http_connection:HttpConnection.respond", _third_is_refused),
    over="http",
)

# -- headers


def _lenient(which: Callable[[str, Any, str], bool]) -> Fault:
    def make(compare: Any) -> Any:
        def comparing(header: str, headers: Any, expected: str) -> None:
            if not which(header, headers, expected):
                compare(header, headers, expected)

        return comparing

    return patch("demo.http_server:_compare", make)


over_http(
    "any-method",
    "sep-2243-server-reject-invalid-headers",
    "Mcp-Method may be of another method",
    _lenient(lambda header, headers, expected: headers.get("mcp-method") == "prompts/list"),
    also=("sep-2243-server-reject-error-code",),
)
over_http(
    "nameless-call",
    "sep-2243-server-reject-invalid-headers",
    "Mcp-Name may be missing",
    _lenient(lambda header, headers, _: header == "Mcp-Name" and not headers.get("mcp-name")),
    also=("sep-2243-server-reject-error-code",),
)


def _other_code(header: str) -> Fault:
    def changed(message: Obj) -> None:
        if f"{header} differs" in message["error"]["message"]:
            message["error"]["code"] = -32600

    return rewrite(lambda message: "error" in message, changed)


over_http(
    "coarse-code",
    "sep-2243-server-reject-error-code",
    "a wrong Mcp-Name has the code of any bad request",
    _other_code("Mcp-Name"),
)


def _undecoded(decode: Any) -> Any:
    return lambda header, value: value if header.startswith("Mcp-Param") else decode(header, value)


over_http(
    "undecoded-header",
    "sep-2243-server-decode-base64",
    "base64 is compared as it is",
    patch("demo.http_server:decode_header", _undecoded),
)


def _loose_param(which: Callable[[str | None], bool]) -> Fault:
    def make(compare: Any) -> Any:
        def comparing(header: str, headers: Any, value: Any) -> None:
            if not which(headers.get(header.lower())):
                compare(header, headers, value)

        return comparing

    return patch("demo.http_server:_compare_param", make)


over_http(
    "any-base64",
    "sep-2243-server-reject-invalid-param-chars",
    "base64 with other characters is taken",
    _loose_param(lambda given: "!!!" in (given or "")),
    also=("sep-2243-server-reject-param-mismatch",),
)
over_http(
    "headerless-argument",
    "sep-2243-server-validate-param-match",
    "the header of an argument may be missing",
    _loose_param(lambda given: given is None),
    also=("sep-2243-server-reject-param-mismatch",),
)

# -- caching


def _cached(method: str, change: Callable[[Any], Any]) -> Fault:
    return on_result(method, change)


stateless(
    "immortal-prompts",
    "sep-2549-prompts-list-caching-hints",
    "prompts/list does not say how long it lives",
    _cached("prompts/list", lambda result: result.pop("ttlMs") and None),
    also=(SCHEMA,),
)
stateless(
    "negative-life",
    "sep-2549-ttl-non-negative",
    "ttlMs is negative",
    _cached("resources/templates/list", puts(ttlMs=-1)),
    also=(SCHEMA,),
)
stateless(
    "shared-cache",
    "sep-2549-cache-scope-valid",
    "cacheScope is an unknown word",
    _cached("resources/templates/list", puts(cacheScope="shared")),
    also=(SCHEMA,),
)

# -- the stateless era, request by request


def _has(member: str) -> Callable[[Obj], bool]:
    return lambda request: member in (params_of(request).get("_meta") or {})


_DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [E],
    "capabilities": {},
    "ttlMs": 0,
    "cacheScope": "public",
}
over_http(
    "no-meta-needed",
    "sep-2575-request-meta-invalid-missing-meta",
    "a request without _meta is refused with another code",
    on_error(lambda request: not params_of(request).get("_meta"), code=-32600),
)
over_http(
    "no-version-needed",
    "sep-2575-request-meta-invalid-missing-protocol-version",
    "a request without a version is refused with another code",
    on_error(
        lambda request: _has(CAPABILITIES)(request) and not _has(VERSION)(request), code=-32600
    ),
)
stateless(
    "no-capabilities-needed",
    "sep-2575-request-meta-invalid-missing-client-capabilities",
    "a request without capabilities is refused with another code",
    on_error(
        lambda request: _has(VERSION)(request) and not _has(CAPABILITIES)(request), code=-32600
    ),
)
over_http(
    "polite-refusal",
    "sep-2575-http-server-meta-invalid-400",
    "bad requests are refused with 422",
    status(lambda body: b"is required" in body and has_code(-32602)(body), 422),
)
stateless(
    "asks-for-a-name",
    "sep-2575-request-meta-client-info-optional",
    "a request without clientInfo is refused",
    refuse(
        lambda request: _has(VERSION)(request) and not _has(PREFIX + "clientInfo")(request), -32602
    ),
)
stateless(
    "nameless-results",
    "sep-2575-server-identifies-in-result-meta",
    "results do not name the server",
    on_result("server/discover", lambda result: result.update(_meta={})),
)
stateless(
    "hidden-prompts",
    "sep-2575-server-declares-prompts-in-discover",
    "prompts are served and not declared",
    on_result("server/discover", lambda result: result["capabilities"].pop("prompts") and None),
)
over_http(
    "echoes-nothing",
    "sep-2575-server-unsupported-version-error",
    "an unknown version is not repeated in the error",
    on_error(
        lambda request: (params_of(request).get("_meta") or {}).get(VERSION) == "v999.0.0",
        data={"supported": [E], "requested": "another"},
    ),
)
over_http(
    "unsupported-200",
    "sep-2575-http-server-unsupported-version-400",
    "an unknown version is refused with 422",
    status(has_code(-32022), 422),
)
over_http(
    "any-version",
    "sep-2575-http-server-header-mismatch-400",
    "the version of the header is not compared",
    _lenient(lambda header, request, expected: header == "MCP-Protocol-Version"),
)
stateless(
    "needs-a-list",
    "sep-2575-server-rejects-undeclared-capability",
    "the missing capability is named in an array",
    on_error(calls("test_missing_capability"), data={"requiredCapabilities": ["sampling"]}),
    also=(SCHEMA,),
)
over_http(
    "needs-403",
    "sep-2575-missing-capability-http-400",
    "a missing capability is told with 403",
    status(has_code(-32021), 403),
)
over_http(
    "still-pings",
    "sep-2575-http-server-method-not-found-404-ping",
    "ping is still answered",
    accept("ping", {"resultType": "complete"}),
)
over_http(
    "unknown-400",
    "sep-2575-http-server-method-not-found-404",
    "an unknown method is answered with another code",
    on_error("unknown/method", code=-32600),
)


def _loses_id(message: Obj, request: Obj) -> Obj:
    return {**message, "id": 4711} if "error" in message else message


over_http(
    "other-id",
    "sep-2575-http-server-error-jsonrpc-id",
    "an error has the id of another request",
    on_answer(lambda request: request.get("method") == "unknown/method", _loses_id),
    also=("sep-2575-http-server-method-not-found-404",),
)


def _asks_first(serve: Any) -> Any:
    def serving(message: Obj, world: Any, exchange: Any) -> None:
        if calls("test_streaming_elicitation")(message):
            exchange.send({"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": {}})
        serve(message, world, exchange)

    return serving


over_http(
    "asks-on-the-stream",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "a request of the server travels on the stream of an answer",
    patch("demo.http_server:serve", _asks_first),
)


def _always_logs(init: Any) -> Any:
    def made(self: Any, *words: Any, **more: Any) -> None:
        init(self, *words, **more)
        self.level = self.level or "debug"

    return made


stateless(
    "talks-unasked",
    "sep-2575-server-no-log-without-loglevel",
    "it logs also where no level was set",
    patch("demo.exchange:Call.__init__", _always_logs),
)

# -- subscriptions

stateless(
    "mute-subscription",
    "sep-2575-server-sends-subscription-ack",
    "a subscription is acknowledged under another name",
    rewrite(
        lambda message: message.get("method") == ACKNOWLEDGED,
        lambda message: message.update(method="notifications/subscriptions/accepted"),
    ),
)


def _untagged(params: Obj) -> None:
    del params["_meta"]


stateless(
    "untagged-change",
    "sep-2575-server-tags-subscription-id",
    "a change does not name its subscription",
    on_message("notifications/tools/list_changed", _untagged),
)


def _tells_all(changed: Any) -> Any:
    def telling(self: Any, what: str) -> None:
        for one in ("tools", "prompts"):
            if self.accepted.get(f"{one}ListChanged"):
                method = f"notifications/{what}/list_changed"
                self.exchange.send(
                    {"jsonrpc": "2.0", "method": method, "params": {"_meta": self._meta}}
                )

    return telling


over_http(
    "leaky-filter",
    "sep-2575-server-honors-notification-filter",
    "everybody hears of every change",
    patch("demo.stateless_era:Listening.changed", _tells_all),
)


def _keeps_quiet(kind: str) -> Fault:
    def make(changed: Any) -> Any:
        return lambda self, what: None if what == kind else changed(self, what)

    return patch("demo.stateless_era:Listening.changed", make)


over_http(
    "quiet-tools",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
    "nobody hears of changed tools",
    _keeps_quiet("tools"),
)
over_http(
    "quiet-prompts",
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
    "nobody hears of changed prompts",
    _keeps_quiet("prompts"),
)

# -- results that require input


def _asked(change: Callable[[Obj], Any]) -> Callable[[Any], Any]:
    """Change a result only where it requires input."""

    def changed(result: Any) -> Any:
        return change(result) if result.get("resultType") == "input_required" else None

    return changed


def _rename(result: Obj) -> None:
    result["inputRequests"] = {"somebody": result["inputRequests"].pop("user_name")}


def _only_first(result: Obj) -> None:
    result["inputRequests"].pop("client_roots", None)


stateless(
    "other-key",
    "sep-2322-elicitation-incomplete",
    "the question has another key",
    gives(ELICITING, _asked(_rename)),
    also=("sep-2322-elicitation-complete", "sep-2322-ignore-unexpected-params"),
)
stateless(
    "no-sampling",
    "sep-2322-sampling-incomplete",
    "the tool completes without asking the model",
    instead("test_input_required_result_sampling", "test_simple_text"),
    also=("sep-2322-sampling-complete",),
)
stateless(
    "no-roots",
    "sep-2322-list-roots-incomplete",
    "the tool completes without asking for the roots",
    instead("test_input_required_result_list_roots", "test_simple_text"),
    also=("sep-2322-list-roots-complete",),
)


def _forever(tool: str) -> Fault:
    """Answers never count."""

    def install() -> None:
        def listen(value: Any) -> Any:
            if isinstance(value, dict) and calls(tool)(value):
                value["params"].pop("inputResponses", None)
            return value

        hear(listen)

    return install


stateless(
    "never-content",
    "sep-2322-sampling-complete",
    "it asks forever",
    _forever("test_input_required_result_sampling"),
)
stateless(
    "stateless-state",
    "sep-2322-request-state-incomplete",
    "there is no state",
    gives(
        "test_input_required_result_request_state",
        _asked(lambda result: result.pop("requestState") and None),
    ),
    also=("sep-2322-request-state-complete",),
)
stateless(
    "two-of-three",
    "sep-2322-multiple-inputs-incomplete",
    "one of three questions is missing",
    gives("test_input_required_result_multiple_inputs", _asked(_only_first)),
    also=("sep-2322-multiple-inputs-complete",),
)
stateless(
    "one-round",
    "sep-2322-multi-round-r2",
    "there is one round only",
    instead("test_input_required_result_multi_round", "test_input_required_result_request_state"),
    also=("sep-2322-multi-round-r3",),
)
stateless(
    "speechless-after-all",
    "sep-2322-non-tool-complete",
    "the prompt asks forever",
    refuse(
        lambda request: (
            asks("prompts/get", name="test_input_required_result_prompt")(request)
            and "inputResponses" in params_of(request)
        )
    ),
)


def _trusts(read: Any) -> Any:
    def reading(state: Any, method: str, params: Obj, secret: bytes) -> Any:
        return read(str(state).removesuffix("-TAMPERED"), method, params, secret)

    return reading


stateless(
    "trusts-any-state",
    "sep-2322-reject-tampered-state",
    "a state that was changed is taken",
    patch("demo.stateless_era:read_state", _trusts),
)


def _asks_anyway(result: Obj) -> None:
    form = {"type": "object", "properties": {}}
    params = {"mode": "form", "message": "Who?", "requestedSchema": form}
    result["inputRequests"]["user"] = {"method": "elicitation/create", "params": params}


stateless(
    "asks-anyway",
    "sep-2322-respect-client-capabilities",
    "it asks for what was not declared",
    gives("test_input_required_result_capabilities", _asked(_asks_anyway)),
)


def _retried(when: Callable[[Any], bool]) -> Callable[[Obj], bool]:
    def chosen(request: Obj) -> bool:
        params = params_of(request)
        return (
            calls(ELICITING)(request)
            and "inputResponses" in params
            and when(params["inputResponses"])
        )

    return chosen


_DONE = {"resultType": "complete", "content": [{"type": "text", "text": "Hello."}]}
stateless(
    "impatient",
    "sep-2322-missing-response-rerequests",
    "an answer to another question is an error",
    refuse(_retried(lambda given: isinstance(given, dict) and "wrong_key" in given), -32602),
)
stateless(
    "picky",
    "sep-2322-ignore-unexpected-params",
    "an answer that nobody asked for is an error",
    refuse(_retried(lambda given: isinstance(given, dict) and len(given) > 1), -32602),
)
stateless(
    "takes-numbers",
    "sep-2322-validate-input-responses",
    "a number is taken for an answer",
    accept(_retried(lambda given: isinstance(given, dict) and 12345 in given.values()), _DONE),
)
stateless(
    "takes-null",
    "sep-2322-error-on-protocol-error",
    "null is taken for answers",
    accept(_retried(lambda given: given is None), _DONE),
)
stateless(
    "untyped-result",
    "sep-2322-result-type-included",
    "a result that asks does not say so",
    gives(ELICITING, _asked(lambda result: result.pop("resultType") and None)),
    also=(SCHEMA, "sep-2322-elicitation-incomplete", "sep-2322-missing-response-rerequests"),
)
stateless(
    "list-asks",
    "sep-2322-not-on-unsupported-requests",
    "a list requires input",
    on_result("prompts/list", puts(resultType="input_required")),
)
