"""The headers of the stateless era: what a request is, and the arguments that travel beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcptest.clients.rows import bad, good, missing, reference, shown, skipped, verdict
from mcptest.clients.scenario import Check, Judge, Row, Scenario
from mcptest.clients.seen import Said, Seen
from mcptest.model.revision import Revision
from mcptest.peer.scripted.conforming import Conforming
from mcptest.peer.scripted.script import Call, Obj
from mcptest.wire.http_rules import decode_header_value, encode_header_value
from mcptest.wire.param_headers import param_headers

_ONLY_NEW = frozenset({Revision.V2026_07_28})
_SUITES = frozenset({"core", "draft"})
_HTTP = frozenset({"http"})
_STANDARD = reference("SEP-2243", "2026-07-28/basic/transports/streamable-http#standard-headers")
_CUSTOM = reference("SEP-2243", "2026-07-28/basic/transports/streamable-http#custom-headers")


class Anything(Conforming):
    """Has what is listed and answers every use of it, also one whose headers are wrong."""

    checks_requests = False

    def call_tool(self, call: Call, name: str, arguments: Obj) -> None:
        self.text(call, f"{name} was called")

    def get_prompt(self, call: Call, name: str, arguments: Obj) -> None:
        call.result(
            {"messages": [{"role": "user", "content": {"type": "text", "text": "Good day"}}]}
        )

    def read_resource(self, call: Call, uri: str) -> None:
        call.result({"contents": [{"uri": uri, "mimeType": "text/plain", "text": "some text"}]})


# -- http-standard-headers -------------------------------------------------------------------------


_OF_EACH: Obj = {"tools": {}, "resources": {}, "prompts": {}}


class OneOfEach(Anything):
    capabilities = _OF_EACH
    tools = (
        {"name": "test_headers", "description": "Any tool", "inputSchema": {"type": "object"}},
        {"name": "my-hyphenated-tool", "description": "Hyphens", "inputSchema": {"type": "object"}},
    )
    resources = (
        {"uri": "file:///path/to/file%20name.txt", "name": "a name with spaces"},
        {"uri": "https://example.com/resource?id=123", "name": "a query"},
    )
    prompts = ({"name": "test_prompt", "description": "Any prompt"},)


_METHODS = (
    *("server/discover", "tools/list", "tools/call", "resources/list", "resources/read"),
    *("prompts/list", "prompts/get"),
)
_EXPECTED = frozenset({"tools/list", "tools/call"})
_NAMED = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}


def _standard_headers(seen: Seen) -> Iterator[Row]:
    if not seen.requests():
        return
    for method in _METHODS:
        yield _header_row(seen, method, "Mcp-Method", "")
    for method, member in _NAMED.items():
        yield _header_row(seen, method, "Mcp-Name", member)


def _header_row(seen: Seen, method: str, header: str, member: str) -> Row:
    """Every request of this method counts, not only the first."""
    name = f"Client{header.replace('-', '')}Header_{method.replace('/', '_')}"
    requests = seen.requests(method)
    for said in requests:
        wanted = said.params.get(member) if member else method
        problem = _header_problem(said, header, wanted)
        if problem:
            return bad(problem, said, name)
    if not requests and method in _EXPECTED:
        return missing(f"the client did not send {method}", name=name)
    if not requests:
        return skipped(f"the client did not send {method}", name)
    return good(requests[0], name)


def _header_problem(said: Said, header: str, wanted: Any) -> str:
    sent = said.visited.headers.get(header.lower()) if said.visited else None
    if sent is None:
        return f"{said.method} has no {header} header"
    try:
        plain = decode_header_value(sent)
    except ValueError as error:
        return f"{header} can't be decoded: {error}"
    return "" if plain == wanted else f"{header} is {shown(plain)}, the body has {shown(wanted)}"


STANDARD_HEADERS = Scenario(
    name="http-standard-headers",
    title="Headers that say what a request is",
    description="The server has tools, resources and prompts. The client is expected to list"
    " and call tools, and to use what it knows of the others; every POST says in `Mcp-Method` what"
    " it is, and in `Mcp-Name` which tool, prompt or resource it is about.",
    revisions=_ONLY_NEW,
    suites=_SUITES,
    make=OneOfEach,
    context={
        "toolCalls": [{"name": one["name"], "arguments": {}} for one in OneOfEach.tools],
        "resourceReads": [{"uri": one["uri"]} for one in OneOfEach.resources],
        "promptGets": [{"name": one["name"], "arguments": {}} for one in OneOfEach.prompts],
    },
    transports=_HTTP,
    checks=(
        Check(
            id="sep-2243-client-includes-standard-headers",
            title="ClientStandardHeaders",
            description="Mcp-Method and Mcp-Name are there and say the same as the body",
            judge=_standard_headers,
            references=_STANDARD,
        ),
    ),
)


# -- http-custom-headers ---------------------------------------------------------------------------

_ANNOTATED: tuple[tuple[str, str, str, Any], ...] = (
    ("region", "string", "Region", "us-west1"),
    ("priority", "integer", "Priority", 42),
    ("verbose", "boolean", "Verbose", False),
    ("debug", "boolean", "Debug", True),
    ("empty_val", "string", "EmptyVal", ""),
    ("method_val", "string", "Method", "test-method"),
    ("non_ascii_val", "string", "NonAscii", "Hello, 世界"),
    ("whitespace_val", "string", "Whitespace", " padded "),
    ("leading_space_val", "string", "LeadingSpace", " us-west1"),
    ("trailing_space_val", "string", "TrailingSpace", "us-west1 "),
    ("internal_space_val", "string", "InternalSpace", "us west 1"),
    ("control_char_val", "string", "ControlChar", "line1\nline2"),
    ("crlf_val", "string", "CrLf", "line1\r\nline2"),
    ("tab_val", "string", "Tab", "\tindented"),
)
_PLAIN = (("float_val", "number", 3.14159), ("query", "string", "SELECT * FROM users"))
ALL, NULL = "test_custom_headers", "test_custom_headers_null"


def _annotated(names: frozenset[str]) -> Obj:
    properties: Obj = {
        name: {"type": kind, "x-mcp-header": header}
        for name, kind, header, _ in _ANNOTATED
        if name in names
    }
    properties |= {name: {"type": kind} for name, kind, _ in _PLAIN if name in names}
    required = ["region", "priority", "query"]
    return {"type": "object", "properties": properties, "required": required}


_EVERY = frozenset({name for name, *_ in _ANNOTATED} | {name for name, *_ in _PLAIN})
SCHEMAS = {
    ALL: _annotated(_EVERY),
    NULL: _annotated(frozenset({"region", "priority", "verbose", "query"})),
}
TOOL_CALLS: list[Obj] = [
    {
        "name": ALL,
        "arguments": {
            **{name: value for name, _, _, value in _ANNOTATED},
            **{name: value for name, _, value in _PLAIN},
        },
    },
    {
        "name": NULL,
        "arguments": {"region": "us-east1", "priority": 1, "verbose": None, "query": "SELECT 1"},
    },
]


class Mirroring(Anything):
    tools = tuple(
        {"name": name, "description": "Has arguments that travel as headers", "inputSchema": schema}
        for name, schema in SCHEMAS.items()
    )


def _mirrors_at_all(seen: Seen) -> Iterator[Row]:
    for call in seen.calls(ALL)[:1]:
        headers = call.visited.headers if call.visited else {}
        found = any(name.startswith("mcp-param-") for name in headers)
        yield verdict([] if found else ["the call has no Mcp-Param header at all"], call)


def _mirrored(group: str) -> Judge:
    """Each annotated argument of the group, as a row of its own."""

    def judge(seen: Seen) -> Iterator[Row]:
        for call in seen.calls(ALL)[:1]:
            arguments = call.params.get("arguments")
            arguments = arguments if isinstance(arguments, dict) else {}
            for name, kind, header, _ in _ANNOTATED:
                value = arguments.get(name)
                if value is not None and _group_of(kind, value) == group:
                    problem = _param_problem(call, header, arguments)
                    row_name = f"ClientCustomHeader_{header}"
                    yield verdict([problem] if problem else [], call, row_name, value=value)
            if group == "plain":
                yield _not_mirrored(call, "float_val", "ClientCustomHeaderNoMirrorNumber")
                yield _not_mirrored(call, "query", "ClientCustomHeaderNoMirrorUnannotated")

    return judge


def _group_of(kind: str, value: Any) -> str:
    if kind != "string":
        return "other-types"
    return "plain" if encode_header_value(str(value)) == str(value) else "unsafe"


def _param_problem(call: Said, header: str, arguments: Obj) -> str:
    full = f"Mcp-Param-{header}"
    wanted = param_headers(SCHEMAS[ALL], arguments).get(full)
    sent = call.visited.headers.get(full.lower()) if call.visited else None
    if sent is None:
        return f"{full} is missing"
    try:
        plain = decode_header_value(sent)
    except ValueError as error:
        return f"{full} can't be decoded: {error}"
    if plain != wanted:
        return f"{full} is {shown(plain)}, the argument is {shown(wanted)}"
    if wanted is not None and encode_header_value(wanted) != wanted and sent == plain:
        return f"{full} is sent as it is; {shown(wanted)} needs Base64"
    return ""


def _not_mirrored(call: Said, argument: str, name: str) -> Row:
    """An argument without annotation has no header, whatever a client would name it."""
    bare = argument.replace("_", "")
    found = [
        header
        for header in (call.visited.headers if call.visited else {})
        if header.startswith("mcp-param-")
        and header.removeprefix("mcp-param-").replace("-", "").replace("_", "") == bare
    ]
    return verdict([f"{one} mirrors an argument without annotation" for one in found], call, name)


def _omits_null(seen: Seen) -> Iterator[Row]:
    calls = seen.calls(NULL)
    if not calls:
        yield missing(f"the client did not call {NULL}", name="ClientCustomHeaderOmitNull")
    for call in calls[:1]:
        sent = call.visited.headers.get("mcp-param-verbose") if call.visited else None
        problem = [] if sent is None else [f"Mcp-Param-Verbose is {shown(sent)} for null"]
        yield verdict(problem, call, "ClientCustomHeaderOmitNull")


def _custom(identifier: str, title: str, description: str, judge: Judge) -> Check:
    return Check(
        id=f"sep-2243-client-{identifier}",
        title=title,
        description=description,
        judge=judge,
        references=_CUSTOM,
    )


CUSTOM_HEADERS = Scenario(
    name="http-custom-headers",
    title="Arguments that travel as headers",
    description="Arguments with `x-mcp-header` are repeated as `Mcp-Param-` headers. The client is"
    " expected to make the calls of `toolCalls` in its context, with these arguments.",
    revisions=_ONLY_NEW,
    suites=_SUITES,
    make=Mirroring,
    transports=_HTTP,
    context={"toolCalls": TOOL_CALLS},
    checks=(
        _custom(
            "supports-custom-headers",
            "ClientSupportsCustomHeaders",
            "annotated arguments are mirrored at all",
            _mirrors_at_all,
        ),
        _custom(
            "mirrors-designated-params",
            "ClientMirrorsDesignatedParams",
            "annotated strings are mirrored as they are, and nothing else is mirrored",
            _mirrored("plain"),
        ),
        _custom(
            "encode-values",
            "ClientEncodesValues",
            "numbers and booleans are written as JSON would",
            _mirrored("other-types"),
        ),
        _custom(
            "base64-unsafe",
            "ClientBase64Unsafe",
            "what can't stand in a header is wrapped in Base64",
            _mirrored("unsafe"),
        ),
        _custom(
            "omit-null",
            "ClientOmitsNull",
            "null and what is left out have no header",
            _omits_null,
        ),
    ),
)


# -- http-invalid-tool-headers ---------------------------------------------------------------------

_INVALID: tuple[tuple[str, str, Obj], ...] = (
    ("empty_header", "not-empty", {"value": ("string", "")}),
    ("object_header", "primitive-only", {"data": ("object", "Data")}),
    ("array_header", "primitive-only", {"items": ("array", "Items")}),
    ("null_header", "primitive-only", {"nil": ("null", "Nil")}),
    ("number_header", "primitive-only", {"score": ("number", "Score")}),
    (
        "duplicate_same_case",
        "unique",
        {"field1": ("string", "Region"), "field2": ("string", "Region")},
    ),
    (
        "duplicate_diff_case",
        "unique",
        {"field1": ("string", "MyField"), "field2": ("string", "myfield")},
    ),
    ("space_in_name", "charset", {"value": ("string", "My Region")}),
    ("colon_in_name", "charset", {"value": ("string", "Region:Primary")}),
    ("non_ascii_name", "charset", {"value": ("string", "Région")}),
    ("control_char_name", "charset", {"value": ("string", "Region\t1")}),
)


def _tool(name: str, arguments: Obj) -> Obj:
    properties = {
        key: {"type": kind, "x-mcp-header": header} for key, (kind, header) in arguments.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"name": name, "description": "May be called or not", "inputSchema": schema}


_EXAMPLES: Obj = {"string": "x", "object": {}, "array": [], "null": None, "number": 1.5}
_CALLS_OF_EACH: list[Obj] = [
    {"name": "valid_tool", "arguments": {"region": "x"}},
    *(
        {
            "name": f"invalid_{name}",
            "arguments": {key: _EXAMPLES[kind] for key, (kind, _) in arguments.items()},
        }
        for name, _, arguments in _INVALID
    ),
]


class BadlyAnnotated(Anything):
    tools = (
        _tool("valid_tool", {"region": ("string", "Region")}),
        *(_tool(f"invalid_{name}", arguments) for name, _, arguments in _INVALID),
    )


def _lists_tools(seen: Seen) -> Iterator[Row]:
    for said in seen.requests("tools/list")[:1]:
        yield good(said)


def _keeps_the_valid_one(seen: Seen) -> Iterator[Row]:
    for call in seen.calls("valid_tool")[:1]:
        yield good(call, "ClientKeepsValidTool")


def _drops(reason: str) -> Judge:
    def judge(seen: Seen) -> Iterator[Row]:
        if not seen.requests("tools/list"):
            yield missing("the client did not list the tools, so it could not drop any")
            return
        for name, why, _ in _INVALID:
            if why == reason:
                calls = seen.calls(f"invalid_{name}")
                row_name = f"ClientRejectsInvalidTool_invalid_{name}"
                if calls:
                    yield bad(f"invalid_{name} was called", calls[0], row_name)
                elif not seen.calls("valid_tool"):
                    yield missing("no tool was called at all, which drops nothing", name=row_name)
                else:
                    yield good(name=row_name)

    return judge


def _invalid(identifier: str, title: str, description: str, judge: Judge) -> Check:
    return Check(
        id=f"sep-2243-{identifier}",
        title=title,
        description=description,
        judge=judge,
        references=_CUSTOM,
    )


INVALID_TOOL_HEADERS = Scenario(
    name="http-invalid-tool-headers",
    title="Tools with annotations that can't be used",
    description="One tool is fine, eleven have an `x-mcp-header` that breaks a rule. The client is"
    " expected to list the tools, to call `valid_tool`, and to leave the others out although it"
    " would call every tool that it keeps.",
    revisions=_ONLY_NEW,
    suites=_SUITES,
    make=BadlyAnnotated,
    context={"toolCalls": _CALLS_OF_EACH},
    transports=_HTTP,
    client_may_fail=True,
    checks=(
        _invalid(
            "invalid-tool-tools-list-gate",
            "ClientInvalidToolHeadersToolsList",
            "the tools are listed",
            _lists_tools,
        ),
        _invalid(
            "client-reject-invalid-tool",
            "ClientKeepsValidTool",
            "the valid tool is still used",
            _keeps_the_valid_one,
        ),
        _invalid(
            "x-mcp-header-not-empty",
            "HeaderNotEmpty",
            "a tool with an empty header name is left out",
            _drops("not-empty"),
        ),
        _invalid(
            "x-mcp-header-primitive-only",
            "HeaderOnPrimitives",
            "only string, integer and boolean arguments may be annotated",
            _drops("primitive-only"),
        ),
        _invalid(
            "x-mcp-header-unique",
            "HeaderUnique",
            "two arguments can't have one header, whatever its case",
            _drops("unique"),
        ),
        _invalid(
            "x-mcp-header-charset",
            "HeaderCharset",
            "a header name is a token",
            _drops("charset"),
        ),
    ),
)

SCENARIOS = (STANDARD_HEADERS, CUSTOM_HEADERS, INVALID_TOOL_HEADERS)
