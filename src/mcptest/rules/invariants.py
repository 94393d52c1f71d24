"""INV-001 to INV-007: the invariants of a whole session, with their published ids and meanings."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from mcptest.core.message import ABSENT, Kind, a_json_type, json_type
from mcptest.core.revision import HANDSHAKE_ERA
from mcptest.core.verdict import Side
from mcptest.rules.declaration import ANSWERS, Check, Watching, server_rule, session_rule
from mcptest.rules.protocol import SERVER_CAPABILITY, declares, exists, member_at
from mcptest.rules.session import Step


def _has_no_content_at_all(step: Step, parts: list[str]) -> bool:
    """`structuredContent` alone satisfies the invariant, but no revision of the schema."""
    has_content = member_at(step.result, "content") is not ABSENT
    return has_content or member_at(step.result, "structuredContent") is ABSENT


_client_rule = partial(
    session_rule,
    category="lifecycle",
    side=Side.CLIENT,
    window=HANDSHAKE_ERA,
    page="basic/lifecycle#initialization",
)
_server_rule = partial(
    server_rule, category="capability", page="basic/lifecycle#capability-negotiation"
)
_error_rule = partial(
    session_rule, category="error-envelope", side=Side.BOTH, page="basic#responses"
)


@_client_rule(
    "INV-001",
    "initialize is the first request the client sends",
    listens=(Kind.REQUEST,),
    sender="client",
)
def initialize_comes_first(check: Check) -> Watching:
    """In a session with a handshake, the client's first request is `initialize`.

    Before `initialize`, client and server have agreed on nothing: neither the revision nor the
    capabilities of either side. A server may reject earlier requests, and many servers do.

    Two kinds of requests may come first: `server/discover`, and a request that names a stateless
    revision. Clients use them to find out which era a server speaks. Nothing else may come before
    `initialize`, not even `ping`, and nothing may come between such a probe and `initialize`.

    Fix: Send `initialize` first and wait for its response before you send anything else.
    """
    while step := (yield):  # never a probe: that is of the stateless era
        check.saw(step)
        if step.method != "initialize":
            told = f"the client's first request is {step.method!r}"
            check.violated(step, told, "initialize", actual=step.method)
        return


@_client_rule(
    "INV-002",
    "notifications/initialized follows the initialize response",
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT),
    answers_to=("initialize",),
)
def initialized_follows_the_response(check: Check) -> Watching:
    """After a successful `initialize`, the client sends `notifications/initialized`.

    The notification tells the server that the client accepted the agreed revision. The rule fails
    when the client sends another request (except `ping`) without it, or sends the notification
    before the response arrives. A capture that ends right after `initialize` does not exercise the
    rule.

    Fix: Send `notifications/initialized` as soon as you have read the `initialize` response, before
    any other request.
    """
    answered = done = reported = False
    while step := (yield):
        if step.kind is Kind.RESULT and step.method == "initialize":
            answered, done, reported = True, False, False
        elif step.sender != "client":
            continue
        elif step.method == "notifications/initialized":
            done = True
            check.saw(step)
            if not answered:
                told = "the client sent notifications/initialized before the initialize response"
                check.violated(step, told, "the initialize response first")
        elif step.kind is Kind.REQUEST and answered and not done and not reported:
            if step.method in {"ping", "initialize", "server/discover"}:
                continue
            reported = True
            told = f"the client sent {step.method!r} without notifications/initialized"
            expected = "notifications/initialized after the initialize response"
            check.violated(step, told, expected, actual=step.method)


@_server_rule(
    "INV-003",
    "a server that answers a list request declares the capability",
    listens=(Kind.RESULT,),
    methods=("tools/list", "resources/list", "prompts/list"),
)
def listed_features_were_advertised(check: Check, step: Step) -> None:
    """A server that answers a list request declares the capability of that list.

    The rule covers `tools/list`, `resources/list` and `prompts/list`. Clients read the declared
    capabilities to decide what to ask for, so they never use a feature that works but is not
    declared. A capability that is absent or null is not declared, and an error response does not
    count as an answer. An empty list is arguable, because some SDKs return one by default: the
    client misses nothing.

    In the stateless era, capabilities come with `server/discover`, which a client need not call. A
    capture without it cannot show a violation.

    Fix: Declare the capability in the `initialize` (or `server/discover`) result, or answer the
    list with error -32601.
    """
    capabilities = check.session.server_capabilities
    if capabilities is None and step.stateless:
        check.inconclusive("the capture has no server/discover result")
        return
    name = SERVER_CAPABILITY[step.method]
    check.saw(step)
    if not declares(capabilities, name):
        declared = ", ".join(sorted(capabilities)) if isinstance(capabilities, dict) else ""
        told = f"the server answered {step.method} but did not declare {name!r}"
        expected = f"{name!r} among the server's capabilities"
        check.violated(step, told, expected, actual=declared or "no capabilities")


# The caller provoked these: they do not show that the feature is broken.
_CALLERS_FAULT = frozenset({-32602, -32002, -32042, -32020, -32021, -32022, -32800})


@_server_rule(
    "INV-004",
    "a declared capability does not fail on every call",
    listens=ANSWERS,
    methods=tuple(SERVER_CAPABILITY),
    conversations="tour",
    yields_to={"TOOLS-001": "answer", "RES-101": "answer", "PROMPT-101": "answer"},
)
def advertised_capabilities_work(check: Check) -> Watching:
    """For each declared capability that the client used, at least one call succeeds.

    A declared feature that answers every call with an error is worse than no feature, because
    clients build on it. The rule is judged at the end of the session, over all methods of the
    capability together (for example `tools/list` and `tools/call` for `tools`).

    Errors that the caller provokes do not count against the server: invalid params, a missing
    resource, a missing client capability, a wrong header or version, a cancelled request. If the
    capability has no other responses, the verdict is inconclusive. Internal errors (-32603) are
    arguable: a server whose backend is down has no better response. Judge it with its backend
    running.

    Fix: Make the capability's methods work, or stop declaring the capability.
    """
    worked: set[str] = set()
    excused: set[str] = set()
    failed: dict[str, tuple[Step, int]] = {}
    while step := (yield):
        name = SERVER_CAPABILITY[step.method]
        if step.kind is Kind.RESULT:
            worked.add(name)
        elif step.error_code in _CALLERS_FAULT:
            excused.add(name)
        else:
            failed[name] = (step, failed.get(name, (step, 0))[1] + 1)
    capabilities = check.session.server_capabilities
    for name in sorted({*worked, *excused, *failed}):
        if not declares(capabilities, name):
            continue
        if name in worked:
            check.saw()
        elif name in failed:
            step, count = failed[name]
            check.saw(step)
            told = f"the server answered every call of {name!r} with an error ({count} of {count})"
            expected = "at least one call that succeeds"
            check.violated(step, told, expected, actual=_error_text(step))
        else:
            check.inconclusive(f"the client provoked every error of {name!r}")


def _error_text(step: Step) -> str:
    error = step.error
    if not isinstance(error, dict):
        return json_type(error)
    return f"{error.get('code')} {error.get('message')}"


@_server_rule(
    "INV-005",
    "a tool result has content or structuredContent",
    "server/tools#tool-result",
    category="result-shape",
    listens=(Kind.RESULT,),
    methods=("tools/call",),
    reports="/result/{structuredContent,isError}",
    reports_when={"/result/content": _has_no_content_at_all},
)
def tool_results_have_content(check: Check, step: Step) -> None:
    """A successful `tools/call` result has a `content` array or `structuredContent`.

    `structuredContent` is an object; from 2026-07-28 on, it may be any JSON value. `isError`, when
    present, is a boolean: the string "false" is true in most languages. Results that ask for input
    and results that stand for a task are not final, so the rule does not judge them.

    Fix: Return `content` with each tool result, as an empty array if there is nothing to show, and
    send `isError` as a boolean.
    """
    result = step.result
    if isinstance(result, dict):
        kind = result.get("resultType", "complete")
        asked_task = step.in_request("task") is not ABSENT
        if kind != "complete" or (isinstance(result.get("task"), dict) and asked_task):
            return
    check.saw(step)
    if fault := _tool_result_fault(result, step):
        expected = "a content array or a structuredContent object, and a boolean isError"
        check.violated(
            step, f"the server returned a tool result {fault}", expected, pointer="/result"
        )


def _tool_result_fault(result: Any, step: Step) -> str:
    if not isinstance(result, dict):
        return f"that is {a_json_type(result)}, not an object"
    content = result.get("content", ABSENT)
    structured = result.get("structuredContent", ABSENT)
    if content is not ABSENT and not isinstance(content, list):
        return f"whose content is {a_json_type(content)}, not an array"
    if structured is not ABSENT and not step.stateless and not isinstance(structured, dict):
        return f"whose structuredContent is {a_json_type(structured)}, not an object"
    if content is ABSENT and structured is ABSENT:
        return "without content or structuredContent"
    is_error = result.get("isError", ABSENT)
    if is_error is not ABSENT and not isinstance(is_error, bool):
        return f"whose isError is {a_json_type(is_error)}, not a boolean"
    return ""


@_error_rule(
    "INV-006",
    "an error has an integer code and a string message",
    listens=(Kind.ERROR, Kind.INVALID),
    conversations="any",
    reports="/error{,/code,/message}",
)
def errors_have_code_and_message(check: Check, step: Step) -> None:
    """Every JSON-RPC error has an integer `code` and a string `message`.

    Programs branch on the code, and people read the message. A string, a boolean or a fraction is
    not a valid code.

    Fix: Send errors as `"error": {"code": -32603, "message": "what went wrong"}`.
    """
    error = step.error
    if error is ABSENT:
        return
    check.saw(step)
    fault = ""
    if not isinstance(error, dict):
        fault = f"that is {a_json_type(error)}, not an object"
    elif type(error.get("code", ABSENT)) is not int:
        fault = f"whose code is {_described(error, 'code')}, not an integer"
    elif not isinstance(error.get("message", ABSENT), str):
        fault = f"whose message is {_described(error, 'message')}, not a string"
    if fault:
        told = f"the {step.sender} sent an error {fault}"
        check.violated(step, told, "an integer code and a string message", pointer="/error")


def _described(error: dict[str, Any], member: str) -> str:
    value = error.get(member, ABSENT)
    return "absent" if value is ABSENT else f"{a_json_type(value)} {value!r}"


_NO_SUCH_METHOD = re.compile(
    r"\bmethod\b.{0,80}?\b(not\s+(be\s+)?found|not\s+supported|unsupported|not\s+implemented"
    r"|unimplemented|does\s+not\s+exist|doesn't\s+exist|unknown|not\s+recogni[sz]ed"
    r"|unrecogni[sz]ed|not\s+known)"
    r"|\b(unknown|unsupported|unrecogni[sz]ed|unimplemented|no\s+such|undefined)"
    r"(\s+(json-?rpc|rpc|mcp|request))?\s+method\b",
    re.IGNORECASE,
)
_SOMETHING_ELSE = re.compile(
    r"\b(tool|resource|prompt|task|cursor|uri|template|argument|level|session|file|http)\b"
    r".{0,80}?\b(not\s+found|unknown|not\s+supported|does\s+not\s+exist)",
    re.IGNORECASE,
)
# A request that was refused before anyone looked at its method.
_REFUSED_EARLIER = frozenset({-32700, -32020, -32021, -32022})


@_error_rule(
    "INV-007",
    "method-not-found uses code -32601",
    listens=(Kind.ERROR,),
    yields_to={"JSONRPC-001": "answer"},
)
def method_not_found_has_its_code(check: Check, step: Step) -> None:
    """An error that means "the method does not exist" has the code -32601.

    The rule recognizes such an error by its meaning. Either the message says so ("method not
    found", "unknown method", "... is not implemented"), or the requested method does not exist in
    the revision. A missing tool or resource is something else. "Method add not found" may answer a
    call of the tool `add`. Clients use the code to find out what a server supports, so any other
    code turns "not supported" into "broken".

    Fix: Return error `-32601` for methods that you do not implement.
    """
    code = step.error_code
    if code == -32601:
        check.saw(step)
        return
    if code is None:
        return
    if reason := _means_no_such_method(step, code):
        check.saw(step)
        check.violated(step, reason, "code -32601", actual=_error_text(step))


def _is_about_what_was_named(step: Step, text: str) -> bool:
    """Whether the message is about the tool or the like that a known method was to act on.

    Servers send "Method add not found" where there is no tool `add`: they understood `tools/call`.
    """
    request, method = step.request, step.method
    if request is None or not method or method in text:
        return False
    if not exists(method, request.sender, request.revision):
        return False
    named = (request.params.get(member) for member in ("name", "uri", "taskId", "level", "cursor"))
    return any(
        re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text)
        for one in named
        if isinstance(one, str) and one and one.lower() != "method"
    )


def _means_no_such_method(step: Step, code: int) -> str:
    error = step.error
    text = error.get("message") if isinstance(error, dict) else None
    text = text[:500] if isinstance(text, str) else ""
    method = step.method
    if _is_about_what_was_named(step, text):
        return ""
    if method:
        text = text.replace(method, "method")
    if _NO_SUCH_METHOD.search(text) and not _SOMETHING_ELSE.search(text):
        return f"the {step.sender} reported an unknown method with code {code}"
    request = step.request
    if request is None or not method or code in _REFUSED_EARLIER:
        return ""
    if exists(method, request.sender, request.revision):
        return ""
    if code == -32600:
        return ""  # refused as a request, which says nothing about its method
    missing = f"{method!r}, which does not exist in {request.revision or 'any revision'}"
    return f"the {step.sender} answered {missing}, with code {code}"
