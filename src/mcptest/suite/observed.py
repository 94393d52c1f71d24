"""What checking an answer gives: failures, and how much was really checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import ABSENT, Flaw, json_type
from mcptest.suite.go_format import quote, trim_space
from mcptest.wire.json_text import is_deeper, read_json

LISTS = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tools/list": "tools",
}
# What a content of each type must have beside its type.
_NEEDED = {
    "text": (),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}


def compact_json(value: Any, *, sort_keys: bool = False) -> str:
    """JSON without white space, members as they came, every character as itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


def text_of(method: str, result: Any) -> str:
    """The text under test of a result; empty when there is none."""
    if result is ABSENT:
        return ""
    if not isinstance(result, dict):
        return compact_json(result)
    joined = _JOINED.get(method)
    return compact_json(result) if joined is None else "\n".join(joined(result))


def merge_pages(method: str, pages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All pages of a list as one result; `nextCursor` only stays when the last page had one."""
    member = LISTS[method]
    merged = dict(pages[0])
    merged.pop("nextCursor", None)
    if len(pages) > 1 and all(isinstance(page.get(member), list) for page in pages):
        merged[member] = [item for page in pages for item in page[member]]
    if "nextCursor" in pages[-1]:
        merged["nextCursor"] = pages[-1]["nextCursor"]
    return merged


def listed_by(method: str, result: Any) -> Any:
    """The array that an answer to this method is about; None for one that is about none."""
    if not isinstance(result, dict):
        return None
    if method == "completion/complete":
        completion = result.get("completion")
        return completion.get("values") if isinstance(completion, dict) else None
    return result.get(LISTS[method]) if method in LISTS else None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _tool_texts(result: dict[str, Any]) -> Iterator[str]:
    for content in _objects(result.get("content")):
        if content.get("type") == "text" and isinstance(content.get("text"), str):
            yield content["text"]


def _prompt_texts(result: dict[str, Any]) -> Iterator[str]:
    description = result.get("description")
    if isinstance(description, str) and description:
        yield description
    for message in _objects(result.get("messages")):
        content = message.get("content")
        if isinstance(content, dict) and content.get("type") == "text":
            text = content.get("text")
            yield text if isinstance(text, str) else ""
        else:
            yield compact_json(content)


def _resource_texts(result: dict[str, Any]) -> Iterator[str]:
    for content in _objects(result.get("contents")):
        text, blob = content.get("text"), content.get("blob")
        if isinstance(text, str):
            yield text
        elif isinstance(blob, str):
            media_type = content.get("mimeType")
            named = quote(media_type if isinstance(media_type, str) else "")
            yield f"<blob mimeType={named} len={len(blob)}>"


_JOINED: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "tools/call": _tool_texts,
    "prompts/get": _prompt_texts,
    "resources/read": _resource_texts,
}


def result_problem(method: str, result: Any) -> str | None:
    """Why the result is not one that `method` may have: such an answer fails every test."""
    if result is ABSENT:
        return None
    if not isinstance(result, dict):
        return f"the result is not an object but {json_type(result)}"
    if method == "tools/call":
        return _array_problem(result, "content", content_problem)
    if method == "prompts/get":
        return _array_problem(result, "messages", _message_problem)
    if method == "resources/read":
        return _array_problem(result, "contents", _embedded_problem)
    if method == "completion/complete":
        completion = result.get("completion", ABSENT)
        if not isinstance(completion, dict):
            return "completion is missing"
        return _array_problem(completion, "values", lambda value: None)
    member = LISTS.get(method)
    return _array_problem(result, member, lambda item: None) if member else None


def _array_problem(
    result: Mapping[str, Any], member: str, item_problem: Callable[[Any], str | None]
) -> str | None:
    items = result.get(member, ABSENT)
    if items is ABSENT:
        return f"{member} is missing"
    if not isinstance(items, list):
        return f"{member} is not an array"
    return next((problem for problem in map(item_problem, items) if problem), None)


def content_problem(content: Any) -> str | None:
    """Why this is no content block, in the words that mcp-assert has for it."""
    if not isinstance(content, dict):
        return "content is not an object"
    kind = content.get("type")
    if kind == "resource":
        missing = "resource" not in content
        return "resource is missing" if missing else _embedded_problem(content["resource"])
    needed = _NEEDED.get(kind) if isinstance(kind, str) else None
    if needed is None:
        return f"unsupported content type: {kind if isinstance(kind, str) else json_type(kind)}"
    if not all(isinstance(content.get(name), str) and content[name] for name in needed):
        return f"{kind} {' or '.join(needed)} is missing"
    return None


def _embedded_problem(resource: Any) -> str | None:
    if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
        return "resource uri is missing"
    if not isinstance(resource.get("text"), str) and not isinstance(resource.get("blob"), str):
        return "unsupported resource type"
    return None


def _message_problem(message: Any) -> str | None:
    if not isinstance(message, dict) or "content" not in message:
        return "content is missing"
    return content_problem(message["content"])


# -- The text under test read as JSON ------------------------------------------------------------

_HARMLESS = {Flaw.LONE_SURROGATE, Flaw.INVALID_UTF8}
_BEGINNINGS = frozenset('{["-0123456789tfn')
_decode = msgspec.json.Decoder().decode
_JSON_SPACE = " \t\n\r"


def whole_text(text: str) -> tuple[Any, str]:
    """The value and no reason, or ABSENT and why the text is not JSON."""
    value, problems = read_json(text.encode("utf-8", "surrogatepass"))
    faults = [problem for problem in problems if problem.flaw not in _HARMLESS]
    if not faults and value is not ABSENT:
        return value, ""
    return ABSENT, _why_not(text, faults[0].reason if faults else "not JSON")


def text_or_first_line(text: str) -> tuple[Any, str]:
    """As `whole_text`; when the whole is not JSON, the first line that is JSON by itself."""
    value, reason = whole_text(text)
    if value is not ABSENT:
        return value, reason
    for line in text.split("\n"):
        trimmed = trim_space(line)
        if trimmed and trimmed[0] in _BEGINNINGS:
            value = _line_value(trimmed)
            if value is not ABSENT:
                return value, ""
    return ABSENT, reason


def _line_value(line: str) -> Any:
    """The value, or ABSENT. Most lines are no JSON, and nobody asks why, so this is quick."""
    raw = line.encode("utf-8", "replace")
    if is_deeper(raw, DEFAULT_LIMITS.depth):
        return ABSENT
    try:
        return _decode(raw)
    except (ValueError, RecursionError):
        # A lone surrogate is all that the quick reader refuses without need.
        return whole_text(line)[0] if "\\u" in line else ABSENT


def _why_not(text: str, reason: str) -> str:
    """The words that Go has for the commonest mistakes; ours for the rest."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip(_JSON_SPACE):
            return "unexpected end of JSON input"
        character = text[error.pos]
        if error.msg == "Extra data":
            return f"invalid character {character!r} after top-level value"
        if error.msg == "Expecting value":
            return f"invalid character {character!r} looking for beginning of value"
    except (ValueError, RecursionError):
        pass  # the reason that the reader gave is better
    return reason


class Failure(msgspec.Struct, frozen=True):
    """One expectation that does not hold. The message holds a peer's text as it came."""

    check: str
    """The name of the expectation, as a suite writes it."""
    message: str
    expected: Any = None
    actual: Any = None
    pointer: str = ""
    """Where: a path into the result, a file, a target."""


class Evaluation(msgspec.Struct, frozen=True):
    """`checked` counts the checks that were asked for and made; what passes made at least one."""

    failures: tuple[Failure, ...]
    checked: int

    @property
    def passed(self) -> bool:
        return not self.failures


Outcome: TypeAlias = Failure | None
"""One check that was made: None when it holds."""


def evaluation_of(
    outcomes: Iterable[Outcome], *, all_failures: bool, unasked: Iterable[Outcome] = ()
) -> Evaluation:
    """Take outcomes until the first failure, or all of them.

    `unasked` are checks that are made without being asked for: they can fail a test, but do not
    count as having checked something.
    """
    failures: list[Failure] = []
    checked = 0
    for outcome in outcomes:
        checked += 1
        if outcome is not None:
            failures.append(outcome)
            if not all_failures:
                return Evaluation(tuple(failures), checked)
    if not checked:
        failures.append(Failure("expect", "nothing was checked"))
    if not failures or all_failures:
        failures.extend(outcome for outcome in unasked if outcome is not None)
    return Evaluation(tuple(failures), checked)


# -- What an expectation may look at -------------------------------------------------------------

_ABOUT_A_RESOURCE = ("resources/read", "resources/subscribe", "resources/unsubscribe")


class FileView(Protocol):
    """The files that a test may look at; whoever runs the test provides it."""

    def read(self, path: str) -> bytes | None:
        """The content, or None when there is no such file or it can't be read."""

    def exists(self, path: str) -> bool:
        """Whether anything is there, a folder included."""


class Observed(msgspec.Struct, frozen=True):
    """One answer as the expectations see it. `observe` makes it from what came."""

    text: str = ""
    is_error: bool = False
    result: Any = ABSENT
    """The raw result, or ABSENT when the answer was an error."""
    error: Any = None
    """The JSON-RPC error of the answer; None when there was none."""
    structured: Any = ABSENT
    duration: float = 0.0
    """Seconds from the request to its answer."""
    progress: int | None = None
    """How many progress notifications came; None when nobody counted."""
    notifications: tuple[Mapping[str, Any], ...] = ()
    """The notifications that came, each as the object that was sent."""
    files: FileView | None = None
    """None when nobody looked at the disk: then no expectation on a file holds."""
    snapshots: Mapping[str, bytes | None] = msgspec.field(default_factory=dict)
    """Contents before the call, by path; None for a file that was not there."""
    output_schema: Any = None
    """The tool's `outputSchema`, where it has one."""
    subject: str = ""
    """What the method was about: the tool, the prompt or the resource."""
    failing: str = "call failed"
    """How a message about a call without a usable result begins: `tool call echo failed`."""
    problem: str = ""
    """Why the result is none that this method may have; empty when it is fine."""
    lists_nothing: bool = False
    """Whether it answers a request for a list, or for completions, with none."""


def observe(
    method: str,
    *,
    result: Any = ABSENT,
    error: Any = None,
    subject: str = "",
    duration: float = 0.0,
    progress: int | None = None,
    notifications: tuple[Mapping[str, Any], ...] = (),
    files: FileView | None = None,
    snapshots: Mapping[str, bytes | None] | None = None,
    output_schema: Any = None,
) -> Observed:
    """An answer to `method`: its text, its flags and its problem are derived from the result.

    `subject` is what the method was about: the tool, the prompt or the resource.
    """
    fields = result if isinstance(result, dict) else {}
    answered = error is None
    return Observed(
        text=text_of(method, result) if answered else text_of_error(error),
        is_error=fields.get("isError") is True,
        result=result,
        error=error,
        structured=fields.get("structuredContent", ABSENT),
        duration=duration,
        progress=progress,
        notifications=notifications,
        files=files,
        snapshots=snapshots if snapshots is not None else {},
        output_schema=output_schema,
        subject=subject,
        failing=failing_call(method, subject),
        problem=(result_problem(method, result) or "") if answered else "",
        lists_nothing=listed_by(method, result) == [],
    )


def failing_call(method: str, subject: str = "") -> str:
    """How mcp-assert begins to say that a call failed."""
    if method == "tools/call":
        return f"tool call {subject} failed"
    if not subject or method not in ("prompts/get", *_ABOUT_A_RESOURCE):
        return f"{method} failed"
    return f"{method} failed for {quote(subject) if method == 'prompts/get' else subject}"


def text_of_error(error: Any) -> str:
    """The text under test of a JSON-RPC error is its message."""
    message = error.get("message") if isinstance(error, Mapping) else None
    return message if isinstance(message, str) else ""
