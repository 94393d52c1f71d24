"""Headers of the stateless era: each says what the body says, or the request is refused."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mcptest.clients.scenario import Row
from mcptest.explore.plausible import plausible_arguments
from mcptest.model.show import show
from mcptest.peer.tool_safety import is_safe
from mcptest.run.conformance.scenarios.judges import can_not_tell, found, reference, sep
from mcptest.run.conformance.scenarios.scenario import (
    DRAFT,
    HTTP,
    PENDING,
    STATELESS,
    Judge,
    Needs,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Heard, Obj, Offered, Scene
from mcptest.run.conformance.scenarios.stage import Stage

_MISMATCH = -32020
_INVALID = "sep-2243-server-reject-invalid-headers"
_CODE = "sep-2243-server-reject-error-code"
_WORD = "Hello"
_CODED = base64.b64encode(_WORD.encode()).decode()
_REFERENCES = (
    *reference("MCP-Server-Validation", "2026-07-28/basic/transports/streamable-http"),
    *sep(2243),
)


class _Case(msgspec.Struct, frozen=True):
    """One request with odd headers. None leaves a header out; {tool} is the first tool listed."""

    name: str
    what: str
    headers: Mapping[str, str | None]
    calls: bool = False


_REFUSED = (
    _Case(
        "ServerRejectsMismatchedMethodHeader",
        "a Mcp-Method of another method is refused",
        {"Mcp-Method": "prompts/list"},
    ),
    _Case(
        "ServerRejectsMissingMethodHeader",
        "a missing Mcp-Method is refused",
        {"Mcp-Method": None},
    ),
    _Case(
        "ServerRejectsMismatchedNameHeader",
        "a Mcp-Name of another tool is refused",
        {"Mcp-Name": "wrong_tool_name"},
        calls=True,
    ),
    _Case(
        "ServerRejectsMissingNameHeader",
        "a missing Mcp-Name is refused",
        {"Mcp-Name": None},
        calls=True,
    ),
    _Case(
        "ServerRejectsCaseMismatchValue",
        "a Mcp-Method in upper case is refused",
        {"Mcp-Method": "TOOLS/LIST"},
    ),
)
_SPACED = _Case(
    "ServerAcceptsWhitespaceHeaderValue",
    "spaces around the value of Mcp-Name are ignored",
    {"Mcp-Name": "  {tool}  "},
    calls=True,
)
_SERVED = (
    _SPACED,
    _Case(
        "ServerAcceptsLowercaseHeaderName",
        "the name mcp-method is known",
        {"mcp-method": "tools/list"},
    ),
    _Case(
        "ServerAcceptsUppercaseHeaderName",
        "the name MCP-METHOD is known",
        {"MCP-METHOD": "tools/list"},
    ),
)


# -- http-header-validation


def _try_headers(stage: Stage) -> None:
    tool = _harmless_tool(stage.offered)
    for case in (*_REFUSED, *_SERVED):
        if not case.calls:
            stage.ask(case.name, "tools/list", headers=case.headers)
        elif tool is not None:
            name, arguments = tool
            headers = {
                header: value.replace("{tool}", name) if value is not None else None
                for header, value in case.headers.items()
            }
            params = {"name": name, "arguments": arguments}
            stage.ask(case.name, "tools/call", params, headers=headers)


def _harmless_tool(offered: Offered) -> tuple[str, Obj] | None:
    """A tool that says that it only reads; else the first, as the official suite does it."""
    named = [one for one in offered.tools if isinstance(one, Mapping) and one.get("name")]
    reads = [one for one in named if is_safe(one)]
    chosen = next(iter([*reads, *named]), None)
    if chosen is None:
        return None
    name = str(chosen["name"])
    return name, plausible_arguments(offered.input_schema(name))


def _no_tool(name: str) -> Row:
    return can_not_tell("list a tool: Mcp-Name is about calls", name=name)


def _refused(scene: Scene) -> Iterator[Row]:
    for case in _REFUSED:
        if case.name not in scene:
            yield _no_tool(case.name)
        else:
            yield _status_row(scene[case.name], case.name)


def _status_row(heard: Heard, name: str) -> Row:
    status = heard.status
    came = heard.silence if status is None else f"HTTP {status}"
    return found([] if status == 400 else [f"{came} came, not HTTP 400"], heard, name)


def _coded(scene: Scene) -> Iterator[Row]:
    for case in _REFUSED:
        name = f"{case.name}ErrorCode"
        if case.name not in scene:
            yield _no_tool(name)
        else:
            yield _code_row(scene[case.name], name, mild=True)


def _code_row(heard: Heard, name: str, *, mild: bool = False) -> Row:
    fault = f"the error's code is {show(str(heard.code), 20)}, not {_MISMATCH}"
    return found([] if heard.code == _MISMATCH else [fault], heard, name, mild=mild)


def _served(*cases: _Case) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        for case in cases:
            if case.name not in scene:
                yield _no_tool(case.name)
            else:
                heard = scene[case.name]
                yield found(_why_not_served(heard), heard, case.name)

    return judge


def _why_not_served(heard: Heard) -> list[str]:
    problems = []
    if heard.status is not None and heard.status >= 400:
        problems.append(f"HTTP {heard.status} came, and the request should be served")
    if heard.without_result:
        problems.append(heard.without_result)
    return problems


# -- http-custom-header-server-validation


class _Param(msgspec.Struct, frozen=True):
    """A call whose argument travels as a header too."""

    name: str
    what: str
    value: str
    header: str | None


_DECODES = _Param(
    "ServerAcceptsValidBase64",
    "a value in base64 is decoded before it is compared",
    _WORD,
    f"=?base64?{_CODED}?=",
)
_BROKEN = (
    _Param(
        "ServerRejectsInvalidBase64Padding",
        "base64 without its padding is refused",
        _WORD,
        "=?base64?SGVsbG8?=",
    ),
    _Param(
        "ServerRejectsInvalidBase64Chars",
        "base64 with other characters is refused",
        _WORD,
        "=?base64?SGVs!!!bG8=?=",
    ),
)
_LITERAL = (
    _Param(
        "ServerLiteralMissingBase64Prefix",
        "without the prefix the value is taken as it is",
        _CODED,
        _CODED,
    ),
    _Param(
        "ServerLiteralMissingBase64Suffix",
        "without the suffix the value is taken as it is",
        f"=?base64?{_CODED}",
        f"=?base64?{_CODED}",
    ),
)
_LEFT_OUT = _Param(
    "ServerRejectsMissingCustomHeader",
    "a missing header is refused when the body has the value",
    "test-value",
    None,
)
_PARAMS = (_DECODES, *_BROKEN, *_LITERAL, _LEFT_OUT)
_MISSING = "offer a tool with a text argument that has x-mcp-header in its input schema"


class _Carrier(msgspec.Struct, frozen=True):
    """The tool whose argument is a header, and what else it has to be given."""

    tool: str
    argument: str
    header: str
    others: Mapping[str, Any]


def _carrier(offered: Offered) -> _Carrier | None:
    for tool in offered.tools:
        schema = tool.get("inputSchema") if isinstance(tool, Mapping) else None
        if not isinstance(schema, Mapping):
            continue
        fields = schema.get("properties")
        for name, field in fields.items() if isinstance(fields, Mapping) else ():
            header = field.get("x-mcp-header") if isinstance(field, Mapping) else None
            if isinstance(header, str) and field.get("type") == "string":
                return _Carrier(str(tool.get("name")), name, header, plausible_arguments(schema))
    return None


def _try_params(stage: Stage) -> None:
    carrier = _carrier(stage.offered)
    if carrier is None:
        return
    for case in _PARAMS:
        params = {
            "name": carrier.tool,
            "arguments": {**carrier.others, carrier.argument: case.value},
        }
        header = {f"Mcp-Param-{carrier.header}": case.header}
        stage.ask(case.name, "tools/call", params, headers=header)


def _no_carrier(name: str) -> Row:
    return can_not_tell(_MISSING, name=name)


def _param_served(*cases: _Param) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        for case in cases:
            if case.name not in scene:
                yield _no_carrier(case.name)
            else:
                heard = scene[case.name]
                yield found(_why_not_served(heard), heard, case.name)

    return judge


def _param_refused(*cases: _Param) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        for case in cases:
            if case.name not in scene:
                yield _no_carrier(case.name)
            else:
                yield _status_row(scene[case.name], case.name)

    return judge


def _matched(scene: Scene) -> Iterator[Row]:
    yield from _param_served(*_LITERAL)(scene)
    yield from _param_refused(_LEFT_OUT)(scene)


def _param_coded(scene: Scene) -> Iterator[Row]:
    for case in (*_BROKEN, _LEFT_OUT):
        name = f"{case.name}ErrorCode"
        if case.name not in scene:
            yield _no_carrier(name)
        else:
            yield _code_row(scene[case.name], name)


def _check(identifier: str, what: str, judge: Judge, names: tuple[str, ...]) -> ServerCheck:
    return ServerCheck(
        id=identifier,
        name=names[0],
        description=what,
        judge=judge,
        references=_REFERENCES,
        rows=names,
    )


def _names(cases: tuple[_Case, ...] | tuple[_Param, ...], suffix: str = "") -> tuple[str, ...]:
    return tuple(f"{case.name}{suffix}" for case in cases)


SCENARIOS = (
    ServerScenario(
        name="http-header-validation",
        title="Mcp-Method and Mcp-Name say what the body says",
        description="Requests are sent whose `Mcp-Method` or `Mcp-Name` is missing, of another "
        "method or tool, or in upper case: each is refused with HTTP 400 and the error -32020. "
        "Names of headers are known in any case, and spaces around a value are ignored.",
        revisions=STATELESS,
        suites=PENDING | DRAFT,
        transports=HTTP,
        script=_try_headers,
        needs=Needs(capabilities=("tools",)),
        checks=(
            _check(_INVALID, "wrong headers are refused with HTTP 400", _refused, _names(_REFUSED)),
            _check(
                _CODE,
                "wrong headers should be refused with the error -32020",
                _coded,
                _names(_REFUSED, "ErrorCode"),
            ),
            _check(
                "sep-2243-server-accepts-whitespace-header-value",
                "spaces around a header's value are ignored",
                _served(_SPACED),
                _names((_SPACED,)),
            ),
            _check(
                "sep-2243-header-name-case-insensitive",
                "names of headers are known in any case",
                _served(*_SERVED[1:]),
                _names(_SERVED[1:]),
            ),
        ),
    ),
    ServerScenario(
        name="http-custom-header-server-validation",
        title="Arguments that travel as headers",
        description="A tool with a text argument that has `x-mcp-header` is called. Its header is "
        "decoded where it is between `=?base64?` and `?=`, refused with HTTP 400 and -32020 where "
        "that is no base64 or where it is missing, and taken as it is otherwise.",
        revisions=STATELESS,
        suites=PENDING | DRAFT,
        transports=HTTP,
        script=_try_params,
        needs=Needs(capabilities=("tools",)),
        checks=(
            _check(
                "sep-2243-server-decode-base64",
                "a header in base64 is decoded",
                _param_served(_DECODES),
                _names((_DECODES,)),
            ),
            _check(
                "sep-2243-server-reject-invalid-param-chars",
                "broken base64 is refused with HTTP 400",
                _param_refused(*_BROKEN),
                _names(_BROKEN),
            ),
            _check(
                "sep-2243-server-validate-param-match",
                "a header says what the argument says",
                _matched,
                _names((*_LITERAL, _LEFT_OUT)),
            ),
            _check(
                "sep-2243-server-reject-param-mismatch",
                "wrong headers are refused with the error -32020",
                _param_coded,
                _names((*_BROKEN, _LEFT_OUT), "ErrorCode"),
            ),
        ),
    ),
)
