"""The text of a result, which most expectations look at, for every method.

As in mcp-assert, but nothing is lost: lists keep every member in the order in which it came, and
characters are not HTML-escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mcptest.model.message import ABSENT, json_type
from mcptest.suite.go_format import quote

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
    import json  # what most tests look at is a text already

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


# -- is it a result of this method at all? -----------------------------------------------------


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
        return "resource is missing" if "resource" not in content else _resource_problem(content)
    needed = _NEEDED.get(kind) if isinstance(kind, str) else None
    if needed is None:
        return f"unsupported content type: {kind if isinstance(kind, str) else json_type(kind)}"
    if not all(isinstance(content.get(name), str) and content[name] for name in needed):
        return f"{kind} {' or '.join(needed)} is missing"
    return None


def _resource_problem(content: Mapping[str, Any]) -> str | None:
    return _embedded_problem(content["resource"])


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
