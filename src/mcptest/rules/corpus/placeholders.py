"""Names in braces that a check may use: the runner puts in what it learned from the server.

A text that is one placeholder and nothing else becomes its value, whatever its JSON type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcptest.suite.check_forms import texts_in

_PLACEHOLDER = re.compile(r"\{([a-z][a-z_]*)\}")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """What stands for it, and what a server must have so that there is a value."""

    about: str
    unlocked_by: str = ""
    """Empty: there is always a value."""


def _fixture(name: str) -> str:
    return f"the fixture {name}"


_READ_ONLY = "a tool that says it is read-only, or one named with --allow-tool"

PLACEHOLDERS: Final[Mapping[str, Placeholder]] = {
    # -- what we choose
    "revision": Placeholder("the wire version of the revision that is judged"),
    "unsupported_version": Placeholder("a version that no revision has: 1999-01-01"),
    "client_info": Placeholder("the name and version that we give"),
    "client_capabilities": Placeholder("the capabilities that we declare, as an object"),
    "alive_method": Placeholder("a request that every server answers: ping or server/discover"),
    "unknown_tool": Placeholder("a tool name that is not in the list"),
    "unknown_uri": Placeholder("a URI that is not in the list"),
    "unknown_prompt": Placeholder("a prompt name that is not in the list"),
    "unknown_task": Placeholder("a task id that nobody gave out"),
    "unknown_session": Placeholder("a session id that nobody gave out"),
    "invalid_cursor": Placeholder("a cursor that nobody gave out"),
    "invalid_token": Placeholder("an access token that nobody gave out"),
    "foreign_origin": Placeholder("an Origin of another host"),
    "encoded_unknown_tool": Placeholder("{unknown_tool} in the base64 form of header values"),
    # -- what the server lists
    "first_resource": Placeholder("the URI of the first listed resource", "a listed resource"),
    "first_prompt": Placeholder("the name of the first listed prompt", "a listed prompt"),
    "first_prompt_arguments": Placeholder("plausible arguments for it", "a listed prompt"),
    "prompt_with_required_argument": Placeholder(
        "a prompt that declares a required argument", "a listed prompt with a required argument"
    ),
    "right_prompt_arguments": Placeholder(
        "all its required arguments, with texts", "a listed prompt with a required argument"
    ),
    "wrongly_typed_prompt_arguments": Placeholder(
        "all its required arguments, with objects in place of texts",
        "a listed prompt with a required argument",
    ),
    "completion_ref": Placeholder(
        "a reference to a prompt with an argument", "a listed prompt with an argument"
    ),
    "completion_argument": Placeholder(
        "its first argument with an empty value", "a listed prompt with an argument"
    ),
    "page_cursor": Placeholder("the nextCursor of a first page", "a list of more than one page"),
    # -- tools that may be called
    "safe_tool": Placeholder("a tool that may be called", _READ_ONLY),
    "safe_arguments": Placeholder("arguments that its inputSchema accepts", _READ_ONLY),
    "working_tool": Placeholder(
        "a safe tool without tasks that gave a result when it was tried",
        f"{_READ_ONLY}, that works with made-up arguments",
    ),
    "working_arguments": Placeholder("the arguments it was tried with", _READ_ONLY),
    "tool_without_arguments": Placeholder(
        "a safe tool that requires no argument, one that works where there is one",
        f"{_READ_ONLY}, without a required argument",
    ),
    "tool_with_required_argument": Placeholder(
        "a safe tool that requires an argument", f"{_READ_ONLY}, with a required argument"
    ),
    "right_arguments": Placeholder(
        "arguments of that tool that its inputSchema accepts",
        f"{_READ_ONLY}, with a required argument",
    ),
    "wrongly_typed_arguments": Placeholder(
        "arguments of that tool, each of a type its inputSchema excludes",
        f"{_READ_ONLY}, with a required argument that has a type",
    ),
    "tool_without_tasks": Placeholder(
        "a safe tool that does not support tasks", f"{_READ_ONLY}, without taskSupport"
    ),
    "structured_tool": Placeholder(
        "a safe tool with an outputSchema", f"{_READ_ONLY}, with an outputSchema"
    ),
    "structured_arguments": Placeholder("arguments for it", f"{_READ_ONLY}, with an outputSchema"),
    # -- tools, prompts and resources that a fixture provides
    "erroring_tool": Placeholder("a tool that always fails", _fixture("erroring_tool")),
    "slow_tool": Placeholder("a tool that takes a second or more", _fixture("slow_tool")),
    "logging_tool": Placeholder("a tool that logs at several levels", _fixture("logging_tool")),
    "sampling_tool": Placeholder("a tool that samples", _fixture("sampling_tool")),
    "eliciting_tool": Placeholder("a tool that elicits with a form", _fixture("eliciting_tool")),
    "url_eliciting_tool": Placeholder(
        "a tool that elicits with a URL", _fixture("url_eliciting_tool")
    ),
    "roots_tool": Placeholder("a tool that asks for the roots", _fixture("roots_tool")),
    "asking_tool": Placeholder(
        "a tool that answers input_required, with a requestState", _fixture("asking_tool")
    ),
    "embedding_tool": Placeholder(
        "a tool that embeds a resource in its result", _fixture("embedding_tool")
    ),
    "tool_changing_tools": Placeholder(
        "a tool whose call changes the list of tools", _fixture("tool_changing_tools")
    ),
    "tool_changing_prompts": Placeholder(
        "a tool whose call changes the list of prompts", _fixture("tool_changing_prompts")
    ),
    "header_tool": Placeholder(
        "a read-only tool with a required x-mcp-header argument", _fixture("header_tool")
    ),
    "header_arguments": Placeholder("arguments for it", _fixture("header_tool")),
    "header_arguments_without_value": Placeholder(
        "the same without those that have a header", _fixture("header_tool")
    ),
    "header_name": Placeholder("the Mcp-Param header of its argument", _fixture("header_tool")),
    "task_tool": Placeholder("a tool with taskSupport optional", _fixture("task_tool")),
    "task_only_tool": Placeholder("a tool with taskSupport required", _fixture("task_only_tool")),
    "reconnecting_tool": Placeholder(
        "a tool that closes its stream before the answer", _fixture("reconnecting_tool")
    ),
    "failing_resource": Placeholder(
        "a resource that can't be read right now", _fixture("failing_resource")
    ),
    "failing_prompt": Placeholder(
        "a prompt that fails with every argument", _fixture("failing_prompt")
    ),
    "image_prompt": Placeholder("a prompt with an image", _fixture("image_prompt")),
    "audio_prompt": Placeholder("a prompt with audio", _fixture("audio_prompt")),
    "embedding_prompt": Placeholder(
        "a prompt that embeds a resource", _fixture("embedding_prompt")
    ),
}

WELL_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "erroring_tool": ("test_error_handling",),
    "slow_tool": ("slow_tool", "test_tool_with_progress"),
    "logging_tool": ("test_tool_with_logging", "test_logging_tool"),
    "sampling_tool": ("test_sampling",),
    "eliciting_tool": ("test_elicitation",),
    "asking_tool": ("test_input_required_result_elicitation",),
    "embedding_tool": ("test_embedded_resource",),
    "tool_changing_tools": ("test_trigger_tool_change",),
    "tool_changing_prompts": ("test_trigger_prompt_change",),
    "reconnecting_tool": ("test_reconnection",),
    "dialect_tool": ("json_schema_2020_12_tool",),
    "image_prompt": ("test_prompt_with_image",),
    "audio_prompt": ("audio_prompt",),
    "embedding_prompt": ("test_prompt_with_embedded_resource",),
    "failing_prompt": ("failing_prompt",),
    "failing_resource": ("test://failing-resource",),
    "header_tool": ("header_tool",),
    "roots_tool": ("roots_tool",),
    "task_only_tool": ("task_only_tool",),
    "task_tool": ("task_tool",),
    "url_eliciting_tool": ("url_eliciting_tool",),
}
"""Names of the official suite's fixtures, and ours where it has none: a server that has one of
them means it that way. A resource is known by its URI."""

FIXTURES: Final = frozenset(
    {
        one.unlocked_by.removeprefix("the fixture ")
        for one in PLACEHOLDERS.values()
        if one.unlocked_by.startswith("the fixture ")
    }
    | WELL_KNOWN.keys()
)


def placeholders_in(value: Any) -> Iterator[str]:
    """Every name in braces in any text of a value."""
    for text in texts_in(value):
        yield from _PLACEHOLDER.findall(text)


def fill(value: Any, known: Mapping[str, Any]) -> Any:
    """The value with its placeholders replaced; KeyError names the first that has no value."""
    if isinstance(value, str):
        return _filled_text(value, known)
    if isinstance(value, Mapping):
        return {_filled_text(str(k), known): fill(v, known) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [fill(one, known) for one in value]
    return value


def _filled_text(text: str, known: Mapping[str, Any]) -> Any:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole is not None:
        return known[whole.group(1)]
    return _PLACEHOLDER.sub(lambda found: str(known[found.group(1)]), text)
