"""What the requests of a client carry: metadata, headers that say what they are and which arguments
they have, and input schemas, which are kept as they are and are no reason to use the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcptest.core.revision import Revision
from mcptest.probe.conformance.client.seen import SeenMessage, SeenSession, declared_on
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Findings,
    Judge,
    bad,
    expect,
    good,
    inside,
    missing,
    object_in,
    shown,
    skipped,
    verdict,
    warned,
    worst,
)
from mcptest.probe.conformance.scenario_catalogue import server_members
from mcptest.rules.protocol import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from mcptest.servers.scripted.conforming import Conforming
from mcptest.servers.scripted.script import Obj, ScriptedCall, ScriptStage, Visit
from mcptest.wire.mcp_headers import decode_header_value, encode_header_value, param_headers

UNSUPPORTED_VERSION = -32022
_VERSION_HEADER = "mcp-protocol-version"


class RefusingOnce(Conforming):
    """Says once that it does not speak this version, and offers the one it does."""

    checks_requests = False
    _refused = False

    def request(self, call: ScriptedCall) -> None:
        if self._refused:
            super().request(call)
            return
        self._refused = True
        self.stage.note("rejects the first request with -32022 on purpose")
        header = call.visit.headers.get(_VERSION_HEADER) if call.visit else None
        requested = header or call.meta.get(PROTOCOL_VERSION) or ""
        call.error(
            UNSUPPORTED_VERSION,
            "this version is not supported",
            {"supported": [self.stage.revision.wire_version], "requested": str(requested)},
            status=400,
        )


def _each_request(judge: Callable[[SeenMessage], CheckFinding]) -> Judge[SeenSession]:
    """The worst that is to be said of any request."""
    return lambda seen: worst(map(judge, seen.requests()))


@_each_request
def client_populates_meta(said: SeenMessage) -> CheckFinding:
    problems = []
    if not isinstance(said.meta.get(PROTOCOL_VERSION), str):
        problems.append("_meta has no protocolVersion")
    if not isinstance(said.meta.get(CLIENT_CAPABILITIES), dict):
        problems.append("_meta has no clientCapabilities")
    return expect(not problems, f"{said.method}: {'; '.join(problems)}", said)


@_each_request
def client_sends_client_info(said: SeenMessage) -> CheckFinding:
    fine = isinstance(said.meta.get(CLIENT_INFO), dict)
    return expect(fine, f"{said.method}: _meta has no clientInfo", said, mild=True)


@_each_request
def http_client_sends_version_header(said: SeenMessage) -> CheckFinding:
    header = said.header(_VERSION_HEADER)
    problem = f"{said.method} has no MCP-Protocol-Version header"
    return good(said, header=header) if header is not None else bad(problem, said)


@_each_request
def http_version_header_matches_meta(said: SeenMessage) -> CheckFinding:
    header, version = said.header(_VERSION_HEADER), said.meta.get(PROTOCOL_VERSION)
    if header is None or version is None:
        return skipped("the header or _meta is missing, as other checks report")
    problem = f"the header has {shown(header)}, but _meta has {shown(version)}"
    return expect(header == version, problem, said)


def client_retry_supported_version(seen: SeenSession) -> Findings:
    requests, wanted = seen.requests(), seen.revision.wire_version
    if len(requests) == 1:
        yield warned("the client gave up, although it was offered a version")
    for said in requests[1:2]:
        named, header = said.meta.get(PROTOCOL_VERSION), said.header(_VERSION_HEADER)
        if named == wanted and header in {wanted, None}:
            yield good(said)
        else:
            yield warned(f"the next request does not have the offered version {wanted}")


def declares_object(capability: str) -> Judge[SeenSession]:
    """What is declared may differ from request to request; one is enough."""

    def judge(seen: SeenSession) -> Findings:
        declaring = [said for said in seen.requests() if capability in declared_on(said)]
        for said in declaring:
            value = declared_on(said)[capability]
            problem = f"{capability} is {shown(value)}, not an object"
            yield expect(isinstance(value, dict), problem, said)
        for said in [] if declaring else seen.requests()[:1]:
            if seen.mode == "strict":
                yield bad(f"no request declares {capability} (strict)", said)
            else:
                yield skipped(f"{capability} is optional and not declared")

    return lambda seen: worst(judge(seen))


class Anything(Conforming):
    """Has what is listed and answers every use of it, also one whose headers are wrong."""

    checks_requests = False

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        self.text(call, f"{name} was called")

    def get_prompt(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        call.result(
            {"messages": [{"role": "user", "content": {"type": "text", "text": "Good day"}}]}
        )

    def read_resource(self, call: ScriptedCall, uri: str) -> None:
        call.result({"contents": [{"uri": uri, "mimeType": "text/plain", "text": "some text"}]})


_METHODS = (
    *("server/discover", "tools/list", "tools/call", "resources/list", "resources/read"),
    *("prompts/list", "prompts/get"),
)
_EXPECTED = frozenset({"tools/list", "tools/call"})
_NAMED = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}


def client_includes_standard_headers(seen: SeenSession) -> Findings:
    if not seen.requests():
        return
    for method in _METHODS:
        yield _header_row(seen, method, "Mcp-Method", "")
    for method, member in _NAMED.items():
        yield _header_row(seen, method, "Mcp-Name", member)


def _header_row(seen: SeenSession, method: str, header: str, member: str) -> CheckFinding:
    """Every request of this method counts, not only the first."""
    name = f"Client{header.replace('-', '')}Header_{method.replace('/', '_')}"
    requests = seen.requests(method)
    for said in requests:
        sent = said.header(header.lower())
        problem = _decoded_problem(header, sent, said.params.get(member) if member else method)
        if sent is None:
            problem = f"{method} has no {header} header"
        if problem:
            return bad(problem, said, name)
    if not requests and method in _EXPECTED:
        return missing(f"the client did not send {method}", name=name)
    if not requests:
        return skipped(f"the client did not send {method}", name)
    return good(requests[0], name)


def _decoded_problem(header: str, sent: str | None, wanted: Any, where: str = "body has") -> str:
    try:
        plain = decode_header_value(sent or "")
    except ValueError as error:
        return f"cannot decode {header}: {error}"
    return "" if plain == wanted else f"{header} is {shown(plain)}, the {where} {shown(wanted)}"


ALL, NULL = "test_custom_headers", "test_custom_headers_null"
_SCHEMA = server_members("http-custom-headers")["tools"][0]["inputSchema"]


def client_supports_custom_headers(seen: SeenSession) -> Findings:
    for call in seen.calls(ALL)[:1]:
        headers = call.visited.headers if call.visited else {}
        found = any(name.startswith("mcp-param-") for name in headers)
        yield expect(found, "the call has no Mcp-Param header at all", call)


def mirrors(group: str) -> Judge[SeenSession]:
    """Each annotated argument of the group, as a row of its own."""

    def judge(seen: SeenSession) -> Findings:
        for call in seen.calls(ALL)[:1]:
            arguments = object_in(call.params, "arguments")
            for name, about in _SCHEMA["properties"].items():
                value, header = arguments.get(name), about.get("x-mcp-header")
                safe = encode_header_value(str(value)) == str(value)
                found = "plain" if safe else "unsafe"
                found = found if about["type"] == "string" else "other-types"
                if header is not None and value is not None and found == group:
                    problem = _param_problem(call, header, arguments)
                    yield verdict(problem, call, f"ClientCustomHeader_{header}", value=value)
            if group == "plain":
                yield _not_mirrored(call, "float_val", "ClientCustomHeaderNoMirrorNumber")
                yield _not_mirrored(call, "query", "ClientCustomHeaderNoMirrorUnannotated")

    return judge


def _param_problem(call: SeenMessage, header: str, arguments: Obj) -> str:
    full = f"Mcp-Param-{header}"
    wanted = param_headers(_SCHEMA, arguments).get(full)
    sent = call.header(full.lower())
    if sent is None:
        return f"{full} is missing"
    problem = _decoded_problem(full, sent, wanted, "argument is")
    if not problem and wanted is not None and encode_header_value(wanted) != wanted == sent:
        return f"{full} is not encoded, but {shown(wanted)} needs base64"
    return problem


def _not_mirrored(call: SeenMessage, argument: str, name: str) -> CheckFinding:
    """An argument without annotation has no header, whatever a client would name it."""
    bare = argument.replace("_", "")
    found = [
        header
        for header in (call.visited.headers if call.visited else {})
        if header.startswith("mcp-param-")
        and header.removeprefix("mcp-param-").replace("-", "").replace("_", "") == bare
    ]
    return verdict([f"{one} repeats an argument without annotation" for one in found], call, name)


def client_omit_null(seen: SeenSession) -> Findings:
    calls = seen.calls(NULL)
    if not calls:
        yield missing(f"the client did not call {NULL}", name="ClientCustomHeaderOmitNull")
    for call in calls[:1]:
        sent = call.header("mcp-param-verbose")
        problem = f"Mcp-Param-Verbose is {shown(sent)} for null"
        yield expect(sent is None, problem, call, "ClientCustomHeaderOmitNull")


def lists_tools(seen: SeenSession) -> Findings:
    return map(good, seen.requests("tools/list")[:1])


def client_reject_invalid_tool(seen: SeenSession) -> Findings:
    return (good(call, "ClientKeepsValidTool") for call in seen.calls("valid_tool")[:1])


def drops(*invalid: str) -> Judge[SeenSession]:
    def judge(seen: SeenSession) -> Findings:
        if not seen.requests("tools/list"):
            yield missing("the client did not list the tools, so it could not drop any")
            return
        for name in invalid:
            calls, row_name = seen.calls(name), f"ClientRejectsInvalidTool_{name}"
            if calls:
                yield bad(f"the client called {name}", calls[0], row_name)
            elif not seen.calls("valid_tool"):
                yield missing("the client called no tool at all", name=row_name)
            else:
                yield good(name=row_name)

    return judge


CANARY = "/canary/profile-schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ECHO = "json_schema_echo"


class Tempting(Anything):
    """A tool whose schema refers to an address that can be fetched."""

    def begin(self, stage: ScriptStage) -> None:
        super().begin(stage)
        address = f"{stage.url()}{CANARY}" if stage.transport == "http" else "http://127.0.0.1:9/x"
        schema = {
            "$schema": DIALECT,
            "type": "object",
            "$defs": {"userId": {"type": "string", "pattern": "^[a-z0-9-]+$"}},
            "properties": {"id": {"$ref": "#/$defs/userId"}, "profile": {"$ref": address}},
            "required": ["id"],
        }
        about = "Finds the profile of a user"
        self.tools = ({"name": "lookup_user", "description": about, "inputSchema": schema},)

    def visit(self, visit: Visit) -> bool:
        if visit.path != CANARY:
            return super().visit(visit)
        visit.respond(200, {"$schema": DIALECT, "type": "object"})
        return True


def no_network_ref_deref(seen: SeenSession) -> CheckFinding:
    fetched = [one for one in seen.visits if one.path == CANARY]
    listed = seen.requests("tools/list")
    if fetched:
        return bad(f"the client fetched the address in $ref {len(fetched)} times", fetched[0])
    if not listed:
        return missing("the client did not list the tools, so it never received the address")
    return good(listed[0])


SCHEMA = server_members("json-schema-2020-12-preservation")["tools"][0]["inputSchema"]


def _echoed(seen: SeenSession) -> list[tuple[SeenMessage, Obj]]:
    """The first call that gave the schema back, with what it gave."""
    calls = ((call, inside(call.params, "arguments", "schema")) for call in seen.calls(ECHO))
    return [(call, schema) for call, schema in calls if isinstance(schema, dict)][:1]


def json_schema_2020_12_client_echo_completed(seen: SeenSession) -> Findings:
    return (good(call) for call, _ in _echoed(seen))


def survives(
    keywords: Sequence[str] = (),
    path: Sequence[str] = (),
    *,
    names: bool = False,
    since: str = "2025-11-25",
) -> Judge[SeenSession]:
    """These keywords of the schema come back equal, or what is at the path, or the names in that;
    before `since` it is not asked for."""

    def part(schema: Obj) -> Any:
        if not path:
            return {key: schema.get(key) for key in keywords}
        value = inside(schema, *path)
        return list(value or ()) if names else value

    def judge(seen: SeenSession) -> CheckFinding:
        for call, schema in _echoed(seen):
            received, wanted = part(schema), part(SCHEMA)
            if received == wanted:
                return good(call)
            if seen.revision < Revision(since):
                return skipped(f"required only since {since}")
            return bad(f"the client returned {shown(received)}; expected {shown(wanted)}", call)
        return skipped("the client did not return the schema, as another check reports")

    return judge
