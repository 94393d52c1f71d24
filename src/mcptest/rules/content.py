"""CONTENT, RES, PROMPT and COMPLETE: what the server's results are made of."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from mcptest.model.content_types import content_types
from mcptest.model.message import ABSENT, Kind, json_type
from mcptest.model.revision import Revision
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.session import Step


def _is_base64(text: Any) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return False
    return isinstance(text, str)


def block_fault(block: Any, revision: Revision | None) -> str:
    """What is wrong with one content block, or an empty string."""
    if not isinstance(block, dict):
        return f"a content block is {json_type(block)}, not an object"
    kind = block.get("type", ABSENT)
    if not isinstance(kind, str) or kind not in content_types(revision):
        return f"the content type {kind!r} does not exist in {revision or 'any revision'}"
    if kind == "text" and not isinstance(block.get("text"), str):
        return "a text block without a string text"
    if kind in {"image", "audio"}:
        return _media_fault(block, kind)
    if kind == "resource":
        return resource_fault(block.get("resource"))
    if kind == "resource_link" and not _has_strings(block, "uri", "name"):
        return "a resource_link without uri or name"
    return ""


def _media_fault(block: dict[str, Any], kind: str) -> str:
    if not isinstance(block.get("mimeType"), str):
        return f"an {kind} block without mimeType"
    if not _is_base64(block.get("data")):
        return f"the data of an {kind} block is not base64"
    return ""


def resource_fault(content: Any) -> str:
    if not isinstance(content, dict) or not isinstance(content.get("uri"), str):
        return "resource contents without a uri"
    if ("text" in content) == ("blob" in content):
        return "resource contents need exactly one of text and blob"
    if "text" in content and not isinstance(content["text"], str):
        return "the text of resource contents is not a string"
    if "blob" in content and not _is_base64(content["blob"]):
        return "the blob of resource contents is not base64"
    return ""


def _has_strings(value: dict[str, Any], *names: str) -> bool:
    return all(isinstance(value.get(name), str) for name in names)


def _items(step: Step, member: str) -> Iterator[tuple[int, Any]]:
    result = step.result
    listed = result.get(member) if isinstance(result, dict) else None
    yield from enumerate(listed if isinstance(listed, list) else ())


def _is_final(step: Step) -> bool:
    return isinstance(step.result, dict) and step.result.get("resultType", "complete") == "complete"


@session_rule(
    "CONTENT-001",
    "the content blocks of a tool result are of a known type",
    category="result-shape",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/tools#tool-result",
    listens=(Kind.RESULT,),
    methods=("tools/call",),
    sender="server",
)
def content_blocks_are_known(check: Check) -> Watching:
    """Each block of `content` is text, image, resource, audio (2025-03-26) or a link (2025-06-18).

    Each type has its members: `text`; base64 `data` with a `mimeType`; a `resource` with a URI
    and text or blob; a link with `uri` and `name`. Clients drop what they do not know, or fail.
    """
    while step := (yield):
        for place, block in _items(step, "content"):
            check.saw(step)
            fault = block_fault(block, step.revision)
            if fault:
                check.violated(step, fault, pointer=f"/result/content/{place}")


@session_rule(
    "RES-001",
    "resource contents have a URI and text or a blob",
    category="result-shape",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/resources#resource-contents",
    listens=(Kind.RESULT,),
    methods=("resources/read",),
    sender="server",
)
def resource_contents_are_whole(check: Check) -> Watching:
    """The result of `resources/read` is a `contents` array; each item has a `uri` and one of two.

    That is `text`, a string, or `blob`, in base64; not both and not neither.
    """
    while step := (yield):
        if isinstance(step.result, dict) and not _is_final(step):
            continue
        contents = step.result.get("contents", ABSENT) if isinstance(step.result, dict) else ABSENT
        if not isinstance(contents, list):
            check.violated(step, f"contents is {json_type(contents)}", expected="an array")
            continue
        check.saw(step)
        for place, content in enumerate(contents):
            fault = resource_fault(content)
            if fault:
                check.violated(step, fault, pointer=f"/result/contents/{place}")


@session_rule(
    "RES-002",
    "a listed resource has a URI and a name",
    category="result-shape",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/resources#resource",
    listens=(Kind.RESULT,),
    methods=("resources/list", "resources/templates/list"),
    sender="server",
)
def listed_resources_are_named(check: Check) -> Watching:
    """Each resource has a `uri` (each template a `uriTemplate`) and a `name`, all strings."""
    while step := (yield):
        is_template = step.method == "resources/templates/list"
        member = "resourceTemplates" if is_template else "resources"
        needed = "uriTemplate" if is_template else "uri"
        for place, item in _items(step, member):
            check.saw(step)
            if not isinstance(item, dict) or not _has_strings(item, needed, "name"):
                check.violated(
                    step,
                    f"an entry of {member} without {needed} or name",
                    expected=f"a string {needed} and a string name",
                    pointer=f"/result/{member}/{place}",
                )


@session_rule(
    "PROMPT-001",
    "prompt messages have a role and one content block",
    category="result-shape",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/prompts#promptmessage",
    listens=(Kind.RESULT,),
    methods=("prompts/get",),
    sender="server",
)
def prompt_messages_are_whole(check: Check) -> Watching:
    """Each message of `prompts/get` has the role `user` or `assistant` and one content block.

    An array of blocks is not allowed here; a block is what CONTENT-001 says.
    """
    while step := (yield):
        for place, message in _items(step, "messages"):
            check.saw(step)
            role = message.get("role") if isinstance(message, dict) else None
            if role not in ("user", "assistant"):
                check.violated(
                    step,
                    f"a prompt message with the role {role!r}",
                    expected="user or assistant",
                    pointer=f"/result/messages/{place}/role",
                )
                continue
            fault = block_fault(message.get("content"), step.revision)
            if fault:
                check.violated(step, fault, pointer=f"/result/messages/{place}/content")


@session_rule(
    "PROMPT-002",
    "a listed prompt has a name, and so have its arguments",
    category="result-shape",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/prompts#prompt",
    listens=(Kind.RESULT,),
    methods=("prompts/list",),
    sender="server",
)
def listed_prompts_are_named(check: Check) -> Watching:
    """Each entry of `prompts/list` has a string `name`; so has each of its `arguments`."""
    while step := (yield):
        for place, prompt in _items(step, "prompts"):
            check.saw(step)
            named = isinstance(prompt, dict) and _has_strings(prompt, "name")
            arguments = prompt.get("arguments", []) if named else []
            whole = isinstance(arguments, list) and all(
                isinstance(one, dict) and _has_strings(one, "name") for one in arguments
            )
            if not named or not whole:
                check.violated(
                    step,
                    "a prompt or one of its arguments has no name",
                    expected="a string name",
                    pointer=f"/result/prompts/{place}",
                )


@session_rule(
    "COMPLETE-001",
    "a completion has at most 100 values",
    category="result-shape",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/utilities/completion#completion-results",
    listens=(Kind.RESULT,),
    methods=("completion/complete",),
    sender="server",
)
def completions_are_bounded(check: Check) -> Watching:
    """`completion.values` is an array of at most 100 strings; `total` is no smaller than it.

    `hasMore`, when it is there, is a boolean. The bound keeps what a person is shown usable.
    """
    while step := (yield):
        check.saw(step)
        completion = step.result.get("completion") if isinstance(step.result, dict) else None
        fault = _completion_fault(completion)
        if fault:
            check.violated(step, fault, pointer="/result/completion")


def _completion_fault(completion: Any) -> str:
    values = completion.get("values") if isinstance(completion, dict) else None
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        return "completion.values is not an array of strings"
    if len(values) > 100:
        return f"{len(values)} values, more than 100"
    total = completion.get("total", len(values))
    if type(total) is not int or total < len(values):
        return f"total is {total!r} with {len(values)} values"
    if not isinstance(completion.get("hasMore", False), bool):
        return "hasMore is not a boolean"
    return ""
