"""JSON-RPC 2.0: which kind of message this is, and what is wrong with its envelope.

Pure functions with reasons. `is_valid_jsonrpc` is the predicate that the whole product stands
on: `jsonrpc` is "2.0", there is a method, a result or an error, and never a result together with
an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import (
    ABSENT,
    Flaw,
    Kind,
    Message,
    Problem,
    a_json_type,
    content_types,
    unknown_content,
)
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.wire.json_text import duplicate_keys, mark_of, read_json, write_json

_MEMBERS = frozenset({"id", "method", "params", "result", "error"})
_IN_BATCH = Problem(Flaw.IN_BATCH, "it stands in an array of messages")
_TOLERABLE = frozenset({Flaw.DUPLICATE_KEY, Flaw.LONE_SURROGATE, Flaw.HUGE_NUMBER})


def decode(raw: bytes, depth: int = DEFAULT_LIMITS.depth) -> Message:
    """Read one frame. Never raises: what could not be read is a message of kind INVALID."""
    value, problems = read_json(raw, depth)
    if len(raw) > _LARGE and type(value) is dict:
        value = {name: _shared_members(part) for name, part in value.items()}
    if isinstance(value, list):
        inside = (*problems, _IN_BATCH)
        items = tuple(Message(b"", kind_of(item), item, inside) for item in value)
        return Message(raw, Kind.BATCH, value, problems, items)
    return Message(raw, kind_of(value), value, problems)


_LARGE = 256 * 1024
_FEW = 20
_last_large: deque[tuple[bytes, Any]] = deque(maxlen=2)


def _shared_members(part: Any) -> Any:
    """A result in which each large member is the one that came before, where they are equal.

    A server says the same on each of its connections, and read it takes ten times its bytes.
    Nobody changes what was read.
    """
    if type(part) is dict and len(part) <= _FEW:
        # Of texts only a cursor is held for long: it is what the next page is asked for with.
        return {
            name: one if type(one) is str and name != "nextCursor" else _shared(one)
            for name, one in part.items()
        }
    return part if type(part) is str else _shared(part)


def _shared(part: Any) -> Any:
    if type(part) is not dict and type(part) is not list and type(part) is not str:
        return part
    written = write_json(part)
    if len(written) <= _LARGE:
        return part
    mark = mark_of(written)
    for known, value in tuple(_last_large):
        if known == mark:
            return value
    _last_large.append((mark, part))
    return part


def kind_of(value: Any) -> Kind:
    """By shape alone, so that a message with a small fault can still be matched to its request."""
    if type(value) is not dict:
        return Kind.INVALID
    if "method" in value:
        if "result" in value or "error" in value:
            return Kind.INVALID
        return Kind.REQUEST if "id" in value else Kind.NOTIFICATION
    if "result" not in value:
        return Kind.ERROR if "error" in value else Kind.INVALID
    if "error" not in value or value["error"] is None:
        return Kind.RESULT  # with a null beside it, as JSON-RPC 1.0 had it
    return Kind.ERROR if value["result"] is None else Kind.INVALID


def is_meant_as_message(message: Message) -> bool:
    """Whether bytes that stand where anything may stand are an attempt at a JSON-RPC message.

    `jsonrpc` says so. Without it the members have to be those of JSON-RPC and no others: a log
    line may well have a `method`, and the body of a refusal an `error`.
    """
    value = message.value
    if type(value) is dict:
        return _is_meant(value)
    if type(value) is list:
        return not value or any(type(item) is dict and _is_meant(item) for item in value)
    # Zero bytes are those of UTF-16, in which a message is one all the same.
    return value is ABSENT and b'"jsonrpc"' in message.raw.replace(b"\0", b"")


def _is_meant(value: dict[str, Any]) -> bool:
    if "jsonrpc" in value:
        return True
    answers = "id" in value and ("result" in value or "error" in value)
    return ("method" in value or answers) and value.keys() <= _MEMBERS


def answer_problems(
    message: Message, revision: Revision | None, method: str = ""
) -> tuple[Problem, ...]:
    """What is wrong with the form of an answer that was matched to its request.

    Which of these a client should refuse, `is_tolerable` says. In `revision` an answer may have
    to stand alone; None: it is not agreed on yet. `method` is what was asked.
    """
    if message.value is ABSENT:
        return message.problems
    problems = list(message.problems)
    if revision is Revision.V2025_03_26:  # the one revision in which answers may be batched
        problems = [one for one in problems if one.flaw is not Flaw.IN_BATCH]
    # An error without an id was matched by the HTTP exchange that carried it.
    lost_id = {Flaw.ID_NULL, Flaw.ID_MISSING} if message.kind is Kind.ERROR else ()
    problems += (one for one in envelope_problems(message.value) if one.flaw not in lost_id)
    problems += _outcome_problems(message, revision, method)
    if message.raw and (repeated := duplicate_keys(message.raw, message.value)):
        reason = f"the key {show(repr(repeated[0]), 60)} occurs twice in one object"
        problems.append(Problem(Flaw.DUPLICATE_KEY, reason))
    return tuple(problems)


def _outcome_problems(
    message: Message, revision: Revision | None, method: str
) -> Iterator[Problem]:
    """What is wrong with the result or the error itself: MCP narrows down what JSON-RPC allows."""
    result, error = message.result, message.error
    if message.kind is Kind.RESULT and type(result) is not dict:
        yield Problem(
            Flaw.RESULT_TYPE, f"result is {a_json_type(result)}, not an object", "/result"
        )
    elif message.kind is Kind.RESULT and (found := unknown_content(method, result, revision)):
        pointer, kind = found
        types = ", ".join(sorted(content_types(revision)))
        reason = f"unsupported content type: {show(kind, 40)} ({revision or 'MCP'} has {types})"
        yield Problem(Flaw.CONTENT_TYPE, reason, f"{pointer}/type")
    elif message.kind is Kind.RESULT:
        yield from _mistyped_members(method, result)
    if message.kind is not Kind.ERROR or type(error) is not dict:
        return
    code, words = error.get("code", ABSENT), error.get("message", ABSENT)
    if type(code) is not int and not (type(code) is float and code.is_integer()):
        shown = "absent" if code is ABSENT else show(repr(code), 40)
        yield Problem(Flaw.ERROR_CODE, f"error.code is {shown}, not an integer", "/error/code")
    if type(words) is not str:
        reason = f"error.message is {a_json_type(words)}, not a string"
        yield Problem(Flaw.ERROR_MESSAGE, reason, "/error/message")


LIST_MEMBERS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""The member of an answer that holds the items."""
TEXT_MEMBERS = {"tools/call": "content", "prompts/get": "messages", "resources/read": "contents"}
"""The member of an answer that holds the texts."""
ARRAYS = {**LIST_MEMBERS, **TEXT_MEMBERS}
"""Members that are an array of objects in the schema of every revision."""


def _mistyped_members(method: str, result: Mapping[str, Any]) -> Iterator[Problem]:
    """What a client would take for an empty list, or for none. A null counts as absent."""
    if method in ("initialize", "server/discover"):
        capabilities = result.get("capabilities")
        if not isinstance(capabilities, dict | None):
            reason = f"result.capabilities is {a_json_type(capabilities)}, not an object"
            yield Problem(Flaw.RESULT_TYPE, reason, "/result/capabilities")
        return
    member = ARRAYS.get(method)
    items = result.get(member) if member else None
    if not isinstance(items, list | None):
        reason = f"result.{member} is {a_json_type(items)}, not an array"
        yield Problem(Flaw.RESULT_TYPE, reason, f"/result/{member}")
    for place, item in enumerate(items if isinstance(items, list) else ()):
        if type(item) is not dict:
            reason = f"result.{member}[{place}] is {a_json_type(item)}, not an object"
            yield Problem(Flaw.RESULT_TYPE, reason, f"/result/{member}/{place}")
            break
    if not isinstance(failed := result.get("isError"), bool | None) and method == "tools/call":
        reason = f"result.isError is {a_json_type(failed)}, not a boolean"
        yield Problem(Flaw.RESULT_TYPE, reason, "/result/isError")
    cursor = result.get("nextCursor") if member else None
    if not isinstance(cursor, str | None):
        reason = f"result.nextCursor is {a_json_type(cursor)}, not a string"
        yield Problem(Flaw.RESULT_TYPE, reason, "/result/nextCursor")


def is_tolerable(problem: Problem) -> bool:
    """Whether JSON allows it, so that it is worth a warning and no more.

    RFC 8259 says that keys SHOULD be unique, and that escapes of lone surrogates and numbers of any
    size fit its grammar, while what they are read as differs from parser to parser.
    """
    return problem.flaw in _TOLERABLE


class Faults(msgspec.Struct, frozen=True):
    """What is wrong with the form of an answer, in words; empty where nothing is."""

    refused: str = ""
    """By JSON, JSON-RPC 2.0 or MCP the message must not be like this."""
    warned: str = ""


def faults_of_answer(message: Message, revision: Revision | None, method: str = "") -> Faults:
    """The one reading of an answer's form, for every command that takes one.

    See docs/answers.md. `revision` is None until it is agreed on; `method` is what was asked.
    """
    problems = answer_problems(message, revision, method)
    if not problems:
        return _NO_FAULTS
    shown = show(message.raw or write_json(message.value), 200)
    words: dict[bool, list[str]] = {True: [], False: []}
    for one in problems:
        words[is_tolerable(one)].append(one.reason)
    refused, warned = (
        f"{'; '.join(dict.fromkeys(words[tolerable]))}: {shown}" if words[tolerable] else ""
        for tolerable in (False, True)
    )
    return Faults(refused, warned)


_NO_FAULTS = Faults()


def is_valid_jsonrpc(value: Any) -> bool:
    """The property of seed 003, by its formal expression alone."""
    return (
        isinstance(value, dict)
        and value.get("jsonrpc") == "2.0"
        and ("method" in value or "result" in value or "error" in value)
        and not ("error" in value and "result" in value)
    )


def envelope_problems(value: Any) -> tuple[Problem, ...]:
    """Everything that keeps `value` from being one JSON-RPC 2.0 message, each with its reason.

    Stricter than `is_valid_jsonrpc`: the four informal rules on requests, notifications and
    responses are checked too. Whether an id is *allowed* to be missing from an error response
    depends on the revision, so that is left to the rules.
    """
    if not isinstance(value, dict):
        return (Problem(Flaw.NOT_AN_OBJECT, f"a message is an object, not {a_json_type(value)}"),)
    if _is_plain(value):
        return ()
    return (*_version_problems(value), *_member_problems(value), *_id_and_params_problems(value))


def _is_plain(value: dict[str, Any]) -> bool:
    """The usual message, recognised without building a list of problems."""
    if value.get("jsonrpc") != "2.0" or type(value.get("id", 0)) not in (int, str):
        return False
    has_result, has_error = "result" in value, "error" in value
    if "method" in value:
        is_answer = has_result or has_error
        return (
            not is_answer and type(value["method"]) is str and type(value.get("params", {})) is dict
        )
    return (
        "id" in value and has_result != has_error and (has_result or type(value["error"]) is dict)
    )


def batch_problems(value: Any) -> tuple[Problem, ...]:
    """What is wrong with an array of messages, the members' own problems included."""
    if not isinstance(value, list):
        return envelope_problems(value)
    if not value:
        return (Problem(Flaw.EMPTY_BATCH, "a batch holds at least one message"),)
    return tuple(
        Problem(problem.flaw, problem.reason, f"/{place}{problem.pointer}")
        for place, item in enumerate(value)
        for problem in envelope_problems(item)
    )


def _version_problems(value: dict[str, Any]) -> Iterator[Problem]:
    version = value.get("jsonrpc", ABSENT)
    if version is ABSENT:
        yield Problem(Flaw.JSONRPC_MISSING, 'jsonrpc: "2.0" is missing')
    elif version != "2.0":
        reason = f'jsonrpc is {show(repr(version), 40)}, not "2.0"'
        yield Problem(Flaw.JSONRPC_WRONG, reason, "/jsonrpc")


def _member_problems(value: dict[str, Any]) -> Iterator[Problem]:
    has_method, has_result, has_error = ("method" in value, "result" in value, "error" in value)
    if not (has_method or has_result or has_error):
        yield Problem(Flaw.NO_MEMBER, "none of method, result and error is present")
    if has_result and has_error:
        yield Problem(Flaw.RESULT_AND_ERROR, _why_not_both(value))
    if has_method and (has_result or has_error):
        answer = "result" if has_result else "error"
        yield Problem(Flaw.METHOD_AND_ANSWER, f"both method and {answer} are present")
    if has_method and not isinstance(value["method"], str):
        reason = f"method is {a_json_type(value['method'])}, not a string"
        yield Problem(Flaw.METHOD_NOT_STRING, reason, "/method")
    if has_error and not isinstance(value["error"], dict) and not has_result:
        yield Problem(
            Flaw.ERROR_TYPE, f"error is {a_json_type(value['error'])}, not an object", "/error"
        )


def _id_and_params_problems(value: dict[str, Any]) -> Iterator[Problem]:
    identifier, params = value.get("id", ABSENT), value.get("params", ABSENT)
    if identifier is ABSENT:
        if "method" not in value and "result" in value:
            yield Problem(Flaw.ID_MISSING, "a result without the id of its request")
    elif identifier is None:
        yield Problem(Flaw.ID_NULL, "id is null", "/id")
    elif not is_request_id(identifier):
        reason = f"id is {show(repr(identifier), 40)}, not a string or integer"
        yield Problem(Flaw.ID_TYPE, reason, "/id")
    if "method" in value and params is not ABSENT and not isinstance(params, dict | list):
        yield Problem(
            Flaw.PARAMS_TYPE, f"params is {a_json_type(params)}, not an object", "/params"
        )


def _why_not_both(value: dict[str, Any]) -> str:
    for null, other in (("error", "result"), ("result", "error")):
        if value[null] is None:
            return f"{null} is null beside the {other}: only one of them is allowed"
    return "both result and error are present"


def is_request_id(value: Any) -> bool:
    """A string or an integer, which JSON may write as 2.0."""
    return type(value) in {int, str} or (type(value) is float and value.is_integer())
