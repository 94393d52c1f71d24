"""Headers of the stateless era: each says what the body says, or the request is refused."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from mcptest.core.safe_text import show
from mcptest.probe.conformance.scenario import (
    HTTP,
    Findings,
    Scenario,
    ScenarioCheck,
    reference,
    sep,
    untestable,
    verdict,
)
from mcptest.probe.conformance.server.scene import (
    DRAFT,
    PENDING,
    STATELESS,
    Heard,
    ScenarioStage,
    Scene,
    ServerOffer,
    needs_tool,
)
from mcptest.schema.plausible import plausible_arguments
from mcptest.session.tool_safety import is_safe

_MISMATCH = -32020
_NO_TOOL = "list a tool: Mcp-Name is about calls"
_NO_CARRIER = "offer a tool with a text argument that has x-mcp-header in its input schema"
_REFERENCES = (
    *reference("MCP-Server-Validation", "2026-07-28/basic/transports/streamable-http"),
    *sep(2243),
)

# -- the requests, by the names of their rows; None leaves a header out

_REFUSED: dict[str, dict[str, str | None]] = {
    "ServerRejectsMismatchedMethodHeader": {"Mcp-Method": "prompts/list"},
    "ServerRejectsMissingMethodHeader": {"Mcp-Method": None},
    "ServerRejectsMismatchedNameHeader": {"Mcp-Name": "wrong_tool_name"},
    "ServerRejectsMissingNameHeader": {"Mcp-Name": None},
    "ServerRejectsCaseMismatchValue": {"Mcp-Method": "TOOLS/LIST"},
}
_SPACED: dict[str, dict[str, str | None]] = {
    "ServerAcceptsWhitespaceHeaderValue": {"Mcp-Name": "  {tool}  "}
}
"""`{tool}` is the tool that is called; what has a Mcp-Name is a call."""
_OTHER_CASE: dict[str, dict[str, str | None]] = {
    "ServerAcceptsLowercaseHeaderName": {"mcp-method": "tools/list"},
    "ServerAcceptsUppercaseHeaderName": {"MCP-METHOD": "tools/list"},
}

_WORD = "Hello"
_CODED = base64.b64encode(_WORD.encode()).decode()
_DECODED: dict[str, tuple[str, str | None]] = {
    "ServerAcceptsValidBase64": (_WORD, f"=?base64?{_CODED}?=")
}
"""A call whose argument travels as a header too: the argument, and the header."""
_BROKEN: dict[str, tuple[str, str | None]] = {
    "ServerRejectsInvalidBase64Padding": (_WORD, "=?base64?SGVsbG8?="),
    "ServerRejectsInvalidBase64Chars": (_WORD, "=?base64?SGVs!!!bG8=?="),
}
_LITERAL: dict[str, tuple[str, str | None]] = {
    "ServerLiteralMissingBase64Prefix": (_CODED, _CODED),
    "ServerLiteralMissingBase64Suffix": (f"=?base64?{_CODED}", f"=?base64?{_CODED}"),
}
_LEFT_OUT: dict[str, tuple[str, str | None]] = {
    "ServerRejectsMissingCustomHeader": ("test-value", None)
}


def _try_headers(stage: ScenarioStage) -> None:
    tool = _harmless_tool(stage.offered)
    for label, headers in {**_REFUSED, **_SPACED, **_OTHER_CASE}.items():
        if "Mcp-Name" not in headers:
            stage.ask(label, "tools/list", headers=headers)
        elif tool is not None:
            named = {key: value and value.replace("{tool}", tool) for key, value in headers.items()}
            arguments = plausible_arguments(stage.offered.input_schema(tool))
            stage.ask(label, "tools/call", {"name": tool, "arguments": arguments}, headers=named)


def _harmless_tool(offered: ServerOffer) -> str | None:
    """A tool that says that it only reads; else the first, as the official suite does it."""
    named = [one for one in offered.tools if isinstance(one, Mapping) and one.get("name")]
    reads = [one for one in named if is_safe(one)]
    return next((str(one["name"]) for one in (*reads, *named)), None)


class _Carrier(msgspec.Struct, frozen=True):
    """The tool whose argument is a header, and what else it has to be given."""

    tool: str
    argument: str
    header: str
    others: Mapping[str, Any]


def _carrier(offered: ServerOffer) -> _Carrier | None:
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


def _try_params(stage: ScenarioStage) -> None:
    carrier = _carrier(stage.offered)
    if carrier is None:
        return
    for label, (value, header) in {**_DECODED, **_BROKEN, **_LITERAL, **_LEFT_OUT}.items():
        arguments = {**carrier.others, carrier.argument: value}
        headers = {f"Mcp-Param-{carrier.header}": header}
        stage.ask(
            label, "tools/call", {"name": carrier.tool, "arguments": arguments}, headers=headers
        )


# -- judging


def _refused(heard: Heard) -> str:
    return heard.status_problem(400)


def _coded(heard: Heard) -> str:
    code = show(str(heard.code), 20)
    return "" if heard.code == _MISMATCH else f"the error's code is {code}, not {_MISMATCH}"


def _served(heard: Heard) -> str:
    problems = [heard.without_result]
    if heard.status is not None and heard.status >= 400:
        problems.insert(0, f"HTTP {heard.status} came, and the request should be served")
    return "; ".join(filter(None, problems))


def _each(
    scene: Scene,
    problem: Callable[[Heard], str],
    labels: Iterable[str],
    unlock: str,
    mild: bool = False,
) -> Findings:
    """A row for each of these requests; what was not asked needs something to be unlocked."""
    for label in labels:
        name = f"{label}ErrorCode" if problem is _coded else label
        if label in scene:
            yield verdict(problem(scene[label]), scene[label], name, mild=mild)
        else:
            yield untestable(unlock, name=name)


def _check(
    identifier: str,
    expected: str,
    problem: Callable[[Heard], str],
    labels: Iterable[str],
    unlock: str = _NO_CARRIER,
    mild: bool = False,
) -> ScenarioCheck[Scene]:
    rows = tuple(f"{one}ErrorCode" if problem is _coded else one for one in labels)
    return ScenarioCheck(
        identifier, expected, lambda scene: _each(scene, problem, labels, unlock, mild), rows=rows
    )


SCENARIOS = (
    Scenario(
        name="http-header-validation",
        title="Mcp-Method and Mcp-Name say what the body says",
        description="Requests are sent whose `Mcp-Method` or `Mcp-Name` is missing, of another "
        "method or tool, or in upper case: each is refused with HTTP 400 and the error -32020. "
        "Names of headers are known in any case, and spaces around a value are ignored.",
        revisions=STATELESS,
        suites=PENDING | DRAFT,
        transports=HTTP,
        script=_try_headers,
        needs=needs_tool(),
        references=_REFERENCES,
        checks=(
            _check(
                "sep-2243-server-reject-invalid-headers",
                "wrong headers are refused with HTTP 400",
                _refused,
                _REFUSED,
                _NO_TOOL,
            ),
            _check(
                "sep-2243-server-reject-error-code",
                "wrong headers should be refused with the error -32020",
                _coded,
                _REFUSED,
                _NO_TOOL,
                mild=True,
            ),
            _check(
                "sep-2243-server-accepts-whitespace-header-value",
                "spaces around a header's value are ignored",
                _served,
                _SPACED,
                _NO_TOOL,
            ),
            _check(
                "sep-2243-header-name-case-insensitive",
                "names of headers are known in any case",
                _served,
                _OTHER_CASE,
                _NO_TOOL,
            ),
        ),
    ),
    Scenario(
        name="http-custom-header-server-validation",
        title="Arguments that travel as headers",
        description="A tool with a text argument that has `x-mcp-header` is called. Its header is "
        "decoded where it is between `=?base64?` and `?=`, refused with HTTP 400 and -32020 where "
        "that is no base64 or where it is missing, and taken as it is otherwise.",
        revisions=STATELESS,
        suites=PENDING | DRAFT,
        transports=HTTP,
        script=_try_params,
        needs=needs_tool(),
        references=_REFERENCES,
        checks=(
            _check(
                "sep-2243-server-decode-base64", "a header in base64 is decoded", _served, _DECODED
            ),
            _check(
                "sep-2243-server-reject-invalid-param-chars",
                "broken base64 is refused with HTTP 400",
                _refused,
                _BROKEN,
            ),
            ScenarioCheck(
                "sep-2243-server-validate-param-match",
                "a header says what the argument says",
                lambda scene: (
                    *_each(scene, _served, _LITERAL, _NO_CARRIER),
                    *_each(scene, _refused, _LEFT_OUT, _NO_CARRIER),
                ),
                rows=(*_LITERAL, *_LEFT_OUT),
            ),
            _check(
                "sep-2243-server-reject-param-mismatch",
                "wrong headers are refused with the error -32020",
                _coded,
                (*_BROKEN, *_LEFT_OUT),
            ),
        ),
    ),
)
