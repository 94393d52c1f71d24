"""TOOL, CONTENT, RES, PROMPT, COMPLETE and LOG: what a server lists, returns and logs.

Results match what the lists promise.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, TypeAlias

import msgspec

from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import ABSENT, Kind, a_json_type, content_types
from mcptest.core.revision import (
    HANDSHAKE_ERA,
    SINCE_JUNE_2025,
    SINCE_NOVEMBER_2025,
    STATELESS_ERA,
    Revision,
)
from mcptest.core.verdict import Severity
from mcptest.rules.declaration import MESSAGES, Check, Watching, once_declared, server_rule
from mcptest.rules.protocol import LOG_LEVEL, LOG_LEVELS, declares, member_at
from mcptest.rules.session import Step
from mcptest.schema.validation import CompiledSchema, SchemaError, SchemaLimitError
from mcptest.wire.json_text import mark_of

_CACHED_SCHEMAS = 2_000
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def is_plain_tool_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _items(step: Step, member: str) -> Iterator[tuple[int, Any]]:
    listed = step.in_result(member)
    yield from enumerate(listed if isinstance(listed, list) else ())


def _tools(step: Step) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((place, tool) for place, tool in _items(step, "tools") if isinstance(tool, dict))


_Compiled: TypeAlias = dict[bytes, CompiledSchema | SchemaError]


def _compiled(schema: Any, known: _Compiled) -> CompiledSchema | SchemaError:
    """Lists repeat themselves; a schema is compiled once."""
    key = mark_of(msgspec.json.encode(schema))
    if key not in known:
        if len(known) >= _CACHED_SCHEMAS:
            known.clear()
        try:
            known[key] = CompiledSchema(schema)
        except SchemaError as error:
            # without the frames that it came through, which hold the schema
            error.__traceback__ = error.__cause__ = error.__context__ = None
            known[key] = error
    return known[key]


_result_rule = partial(server_rule, category="result-shape", listens=(Kind.RESULT,))
_tool_rule = partial(_result_rule, category="tools", page="server/tools", methods=("tools/list",))
_tool_name_rule = partial(
    _tool_rule, page="server/tools#tool-names", severity=Severity.SHOULD, window=SINCE_NOVEMBER_2025
)


@_tool_rule(
    "TOOL-001",
    "structuredContent matches the tool's outputSchema",
    "#output-schema",
    window=SINCE_JUNE_2025,
    methods=("tools/list", "tools/call"),
)
def structured_content_matches(check: Check) -> Watching:
    """A tool that lists an `outputSchema` returns `structuredContent` that matches it.

    Programs read the structured part without checking it first, because the schema promises its
    form. Results with `isError: true`, results that ask for input and results that stand for a task
    are exempt. References to other documents are never followed. TOOL-002 reports an invalid
    schema.

    Fix: Return `structuredContent` that matches the tool's `outputSchema`, or correct the schema.
    """
    known: _Compiled = {}
    promised: dict[str, CompiledSchema | SchemaError] = {}
    while step := (yield):
        if step.method == "tools/list":
            _note_promises(step, promised, known)
            continue
        name = step.in_request("name")
        compiled = promised.get(name) if isinstance(name, str) else None
        result = step.result
        if compiled is None or not isinstance(result, dict) or _is_exempt(result):
            continue
        if isinstance(compiled, SchemaLimitError):
            check.unchecked(f"the outputSchema of {name!r} can't be checked: {compiled}")
            continue
        if isinstance(compiled, SchemaError):
            check.inconclusive(f"the outputSchema of {name!r} is not usable: {compiled}")
            continue
        check.saw(step)
        if "structuredContent" not in result:
            told = f"the server returned a result of {name!r} without structuredContent"
            expected = "structuredContent that matches the outputSchema"
            check.violated(step, told, expected, pointer="/result")
            continue
        try:
            misfit = compiled.misfit(result["structuredContent"])
        except SchemaLimitError as error:
            check.unchecked(f"the structuredContent of {name!r} can't be checked: {error}")
            continue
        if misfit is not None:
            told = f"the server returned structuredContent of {name!r} that breaks its outputSchema"
            pointer = f"/result/structuredContent{misfit.pointer}"
            expected = "a value that matches the outputSchema"
            check.violated(step, told, expected, actual=str(misfit), pointer=pointer)


def _note_promises(
    step: Step, promised: dict[str, CompiledSchema | SchemaError], known: _Compiled
) -> None:
    """The output schemas of a list. A function: nothing of the list is held until the next."""
    for _, tool in _tools(step):
        name, schema = tool.get("name"), tool.get("outputSchema")
        if isinstance(name, str) and schema is None:
            promised.pop(name, None)
        elif isinstance(name, str) and len(promised) < DEFAULT_LIMITS.items:
            promised[name] = _compiled(schema, known)


def _is_exempt(result: dict[str, Any]) -> bool:
    is_final = result.get("resultType", "complete") == "complete"
    is_task = "task" in result and "content" not in result
    return result.get("isError") is True or not is_final or is_task


@_tool_rule("TOOL-002", "tool schemas are valid", "#tool", window=SINCE_NOVEMBER_2025)
def tool_schemas_are_valid(check: Check) -> Watching:
    """`inputSchema` and `outputSchema` are valid JSON Schema (2020-12, or as `$schema` says).

    A client that cannot use the schema cannot offer the tool. References must stay within the
    schema: nothing is fetched, so a reference to another document is a violation. The rule also
    finds types that do not exist, patterns that do not compile and unknown dialects.

    Fix: Correct the schema at the place that the finding names, and copy referenced definitions
    into `$defs`.
    """
    known: _Compiled = {}
    while step := (yield):
        _check_schemas(check, step, known)


def _check_schemas(check: Check, step: Step, known: _Compiled) -> None:
    """The schemas of a list. A function: nothing of the list is held until the next."""
    for place, tool in _tools(step):
        for member in ("inputSchema", "outputSchema"):
            schema = tool.get(member, ABSENT)
            if schema is ABSENT:
                continue
            compiled = _compiled(schema, known)
            named = f"the {member} of {tool.get('name')!r}"
            if isinstance(compiled, SchemaLimitError):
                check.unchecked(f"{named} can't be checked: {compiled}")
                continue
            check.saw(step)
            if isinstance(compiled, SchemaError):
                told = f"the server lists an invalid schema: {named}"
                pointer = f"/result/tools/{place}/{member}"
                expected = "a valid JSON Schema"
                check.violated(step, told, expected, actual=str(compiled), pointer=pointer)


@_tool_rule(
    "TOOL-003",
    "a tool has a name and an inputSchema of type object",
    "#tool",
    reports="/result/tools{,/*,/*/name,/*/inputSchema,/*/inputSchema/type}",
)
def tools_have_name_and_schema(check: Check, step: Step) -> None:
    """Each entry of `tools/list` has a string `name` and an `inputSchema` of type object.

    A tool without arguments has `{"type": "object"}`. Model APIs reject a whole request if one tool
    lacks it.

    Fix: Give each tool a `name` and an `inputSchema` with `"type": "object"`, even if it takes no
    arguments.
    """
    listed = step.in_result("tools")
    if not isinstance(listed, list):
        told = f"the server returned a result whose tools is {a_json_type(listed)}"
        check.violated(step, told, "an array")
        return
    for place, tool in enumerate(listed):
        check.saw(step)
        if fault := _tool_fault(tool):
            check.violated(step, f"the server lists {fault}", pointer=f"/result/tools/{place}")


def _tool_fault(tool: Any) -> str:
    if not isinstance(tool, dict):
        return f"a tool that is {a_json_type(tool)}, not an object"
    name = tool.get("name", ABSENT)
    if not isinstance(name, str):
        return f"a tool whose name is {a_json_type(name)}, not a string"
    schema = tool.get("inputSchema", ABSENT)
    if not isinstance(schema, dict):
        return f"{name!r} with an inputSchema that is {a_json_type(schema)}, not an object"
    if schema.get("type") != "object":
        return f'{name!r} with an inputSchema without "type": "object"'
    return ""


@_tool_name_rule("TOOL-004", "tool names use only letters, digits, _, . and -")
def tool_names_are_plain(check: Check, step: Step) -> None:
    """A tool's name has 1 to 128 characters from A-Z, a-z, 0-9, `_`, `-` and `.`.

    Model APIs allow little more, and clients build longer names from it.

    Fix: Rename the tool with letters, digits, `_`, `-` and `.` only, in at most 128 characters.
    """
    for place, tool in _tools(step):
        name = tool.get("name")
        if not isinstance(name, str):
            continue
        check.saw(step)
        if not is_plain_tool_name(name):
            expected = "1 to 128 of A-Z a-z 0-9 _ - ."
            told = f"the server lists the tool name {name!r}"
            check.violated(step, told, expected, pointer=f"/result/tools/{place}/name")


_WALKS_KEPT = 64


def _remember_walk(walks: dict[str, dict[str, Any]], cursor: Any, walk: dict[str, Any]) -> None:
    """Where a walk goes on; of very many at a time the oldest are forgotten."""
    if isinstance(cursor, str):
        walks[cursor] = walk
        if len(walks) > _WALKS_KEPT:
            del walks[next(iter(walks))]


@_tool_name_rule("TOOL-005", "tool names are unique within the server", conversations="tour")
def tool_names_are_unique(check: Check) -> Watching:
    """On one walk through `tools/list`, no name appears twice, on any page.

    A tool is called by its name alone, so clients cannot reach the second one.

    Fix: Rename one of the tools, or register it only once.
    """
    walks: dict[str, dict[str, Any]] = {}
    while step := (yield):
        cursor = step.in_request("cursor")
        # A page may be asked for again, and two walks at a time: each goes on from its cursor.
        walk = walks.pop(cursor, {}) if isinstance(cursor, str) else {}
        here: set[str] = set()
        for place, tool in _tools(step):
            name = tool.get("name")
            if not isinstance(name, str):
                continue
            check.saw(step)
            if name in here or walk.setdefault(name, cursor) != cursor:
                told = f"the server lists the tool {name!r} twice"
                check.violated(step, told, "each name once", pointer=f"/result/tools/{place}/name")
            here.add(name)
        _remember_walk(walks, cursor, walk)
        _remember_walk(walks, step.in_result("nextCursor"), walk)


def _is_base64(text: Any) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return False
    return isinstance(text, str)


def block_fault(block: Any, revision: Revision | None) -> str:
    """What a content block is that is wrong, as in `an image block without mimeType`, or empty."""
    if not isinstance(block, dict):
        return f"a content block that is {a_json_type(block)}, not an object"
    kind = block.get("type", ABSENT)
    if not isinstance(kind, str) or kind not in content_types(revision):
        return f"the content type {kind!r}, which {revision or 'no revision'} does not have"
    if kind == "text" and not isinstance(block.get("text"), str):
        return "a text block without a string text"
    if kind in {"image", "audio"} and not isinstance(block.get("mimeType"), str):
        return f"an {kind} block without mimeType"
    if kind in {"image", "audio"} and not _is_base64(block.get("data")):
        return f"an {kind} block whose data is not base64"
    if kind == "resource":
        return resource_fault(block.get("resource"))
    if kind == "resource_link" and not _has_strings(block, "uri", "name"):
        return "a resource_link without uri or name"
    return ""


def resource_fault(content: Any) -> str:
    if not isinstance(content, dict) or not isinstance(content.get("uri"), str):
        return "resource contents without a uri"
    if ("text" in content) == ("blob" in content):
        return "resource contents without exactly one of text and blob"
    if "text" in content and not isinstance(content["text"], str):
        return "resource contents whose text is not a string"
    if "blob" in content and not _is_base64(content["blob"]):
        return "resource contents whose blob is not base64"
    return ""


def _has_strings(value: dict[str, Any], *names: str) -> bool:
    return all(isinstance(value.get(name), str) for name in names)


def _has_bad_block(step: Step, parts: list[str]) -> bool:
    return bool(block_fault(member_at(step.result, "content", parts[2]), step.revision))


def _has_bad_prompt_block(step: Step, parts: list[str]) -> bool:
    message = member_at(step.result, "messages", parts[2])
    is_whole = member_at(message, "role") in ("user", "assistant")
    return is_whole and bool(block_fault(member_at(message, "content"), step.revision))


def _has_bad_contents(step: Step, parts: list[str]) -> bool:
    return bool(resource_fault(member_at(step.result, "contents", parts[2])))


@_result_rule(
    "CONTENT-001",
    "tool results contain only known content types",
    "server/tools#tool-result",
    methods=("tools/call",),
    reports_when={"/result/content/*/**": _has_bad_block},
)
def content_blocks_are_known(check: Check, step: Step) -> None:
    """Each `content` block is text, image, resource, audio (2025-03-26) or a link (2025-06-18).

    Each type has its own members: `text`; base64 `data` with a `mimeType`; a `resource` with a URI
    and text or blob; a link with `uri` and `name`. Clients drop unknown blocks, or fail.

    Fix: Return only content types of the agreed revision, each with its required members. Encode
    `data` and `blob` as base64.
    """
    for place, block in _items(step, "content"):
        check.saw(step)
        if fault := block_fault(block, step.revision):
            told = f"the server returned {fault}"
            check.violated(step, told, pointer=f"/result/content/{place}")


@_result_rule(
    "RES-001",
    "resource contents have a URI and text or a blob",
    "server/resources#resource-contents",
    methods=("resources/read",),
    reports="/result/contents",
    reports_when={"/result/contents/*/**": _has_bad_contents},
)
def resource_contents_are_whole(check: Check, step: Step) -> None:
    """`resources/read` returns a `contents` array; each item has a `uri` and `text` or `blob`.

    `text` is a string, `blob` is base64. An item has exactly one of them.

    Fix: Return `contents` as an array in which each item has `uri` and exactly one of `text` and
    `blob` (base64).
    """
    if step.in_result("resultType") not in (ABSENT, "complete"):
        return
    contents = step.in_result("contents")
    if not isinstance(contents, list):
        told = f"the server returned a result whose contents is {a_json_type(contents)}"
        check.violated(step, told, "an array")
        return
    check.saw(step)
    for place, content in enumerate(contents):
        if fault := resource_fault(content):
            told = f"the server returned {fault}"
            check.violated(step, told, pointer=f"/result/contents/{place}")


@_result_rule(
    "RES-002",
    "a listed resource has a URI and a name",
    "server/resources#resource",
    methods=("resources/list", "resources/templates/list"),
    reports="/result/resources/*{,/uri,/name} /result/resourceTemplates/*{,/uriTemplate,/name}",
)
def listed_resources_are_named(check: Check, step: Step) -> None:
    """Each resource has a `uri` (each template a `uriTemplate`) and a `name`, all strings.

    Clients read a resource by its URI and show it by its name.

    Fix: Give each listed resource a string `uri` and `name`, and each template a string
    `uriTemplate` and `name`.
    """
    is_template = step.method == "resources/templates/list"
    member = "resourceTemplates" if is_template else "resources"
    needed = "uriTemplate" if is_template else "uri"
    for place, item in _items(step, member):
        check.saw(step)
        if not isinstance(item, dict) or not _has_strings(item, needed, "name"):
            told = f"the server lists an entry of {member} without {needed} or name"
            expected = f"a string {needed} and a string name"
            check.violated(step, told, expected, pointer=f"/result/{member}/{place}")


@_result_rule(
    "PROMPT-001",
    "prompt messages have a role and one content block",
    "server/prompts#promptmessage",
    methods=("prompts/get",),
    reports="/result/messages/*{,/role}",
    reports_when={"/result/messages/*/content/**": _has_bad_prompt_block},
)
def prompt_messages_are_whole(check: Check, step: Step) -> None:
    """Each message of `prompts/get` has the role `user` or `assistant` and one content block.

    An array of blocks is not allowed here. CONTENT-001 says what a block looks like.

    Fix: Set `role` to `user` or `assistant`, set `content` to a single block, and send one message
    per block.
    """
    for place, message in _items(step, "messages"):
        check.saw(step)
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("user", "assistant"):
            told = f"the server returned a prompt message with the role {role!r}"
            check.violated(
                step, told, "user or assistant", pointer=f"/result/messages/{place}/role"
            )
            continue
        if fault := block_fault(message.get("content"), step.revision):
            told = f"the server returned {fault}"
            check.violated(step, told, pointer=f"/result/messages/{place}/content")


@_result_rule(
    "PROMPT-002",
    "a listed prompt and its arguments have names",
    "server/prompts#prompt",
    methods=("prompts/list",),
    reports="/result/prompts/*{,/name,/arguments,/arguments/*,/arguments/*/name}",
)
def listed_prompts_are_named(check: Check, step: Step) -> None:
    """Each entry of `prompts/list` has a string `name`, and so has each of its `arguments`.

    Clients request a prompt by its name and pass its arguments by theirs.

    Fix: Give each prompt and each of its arguments a string `name`.
    """
    for place, prompt in _items(step, "prompts"):
        check.saw(step)
        named = isinstance(prompt, dict) and _has_strings(prompt, "name")
        arguments = prompt.get("arguments", []) if named else []
        whole = isinstance(arguments, list) and all(
            isinstance(one, dict) and _has_strings(one, "name") for one in arguments
        )
        if not named or not whole:
            told = "the server lists a prompt without a name, or with an unnamed argument"
            check.violated(step, told, "a string name", pointer=f"/result/prompts/{place}")


@_result_rule(
    "COMPLETE-001",
    "a completion has at most 100 values",
    "server/utilities/completion#completion-results",
    methods=("completion/complete",),
    reports="/result/completion{,/values,/values/*,/total,/hasMore}",
)
def completions_are_bounded(check: Check, step: Step) -> None:
    """`completion.values` is an array of at most 100 strings; `total` is at least its length.

    `hasMore`, when present, is a boolean. The limit keeps the list usable for a person.

    Fix: Return the first 100 values, set `hasMore: true` if there are more, and set `total` to the
    number of all values.
    """
    check.saw(step)
    if fault := _completion_fault(step.in_result("completion")):
        told = f"the server returned a completion {fault}"
        check.violated(step, told, pointer="/result/completion")


def _completion_fault(completion: Any) -> str:
    values = completion.get("values") if isinstance(completion, dict) else None
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        return "whose values is not an array of strings"
    if len(values) > 100:
        return f"with {len(values)} values, more than 100"
    total = completion.get("total", len(values))
    if type(total) is not int or total < len(values):
        return f"whose total is {total!r}, with {len(values)} values"
    if not isinstance(completion.get("hasMore", False), bool):
        return "whose hasMore is not a boolean"
    return ""


_MESSAGE = "notifications/message"


_logging_rule = partial(
    server_rule,
    category="logging",
    page="server/utilities/logging",
    listens=(Kind.NOTIFICATION,),
    methods=(_MESSAGE,),
)


@_logging_rule(
    "LOG-001", "a server that logs declares logging", "#capabilities", conversations="any"
)
def logging_was_declared(check: Check) -> Watching:
    """A server that sends `notifications/message` has `logging` among its capabilities.

    Clients offer a level setting and a log view only if the capability is declared. In the
    stateless era, a capture without `server/discover` cannot show a violation.

    Fix: Declare `logging: {}` in your capabilities, or write logs to stderr instead.
    """

    def judge(step: Step) -> None:
        check.saw(step)
        if not declares(check.session.server_capabilities, "logging"):
            told = "the server sent a log message but did not declare logging"
            check.violated(step, told, "logging declared")

    yield from once_declared(check, judge)


@_logging_rule(
    "LOG-002",
    "a log message has a known level and data",
    "#log-message-notifications",
    reports="/params{,/level}",
    conversations="any",
    reports_when={"/params/data": lambda step, parts: step.params.get("level") in LOG_LEVELS},
)
def log_messages_are_whole(check: Check, step: Step) -> None:
    """`level` is one of the eight syslog names, in lower case, and `data` is present.

    Clients filter by the level and show the data.

    Fix: Send `level` as one of debug, info, notice, warning, error, critical, alert, emergency, and
    put the log content in `data`.
    """
    check.saw(step)
    level = step.params.get("level", ABSENT)
    if level not in LOG_LEVELS:
        fault = "without a level" if level is ABSENT else f"with the level {level!r}"
        told = f"the server sent a log message {fault}"
        check.violated(step, told, ", ".join(LOG_LEVELS), pointer="/params/level")
    elif "data" not in step.params:
        check.violated(step, "the server sent a log message without data", "data")


@_logging_rule(
    "LOG-003",
    "log messages respect the level that was set",
    "#setting-log-level",
    severity=Severity.SHOULD,
    window=HANDSHAKE_ERA,
    listens=(Kind.NOTIFICATION, Kind.RESULT),
    methods=(_MESSAGE, "logging/setLevel"),
)
def log_level_is_respected(check: Check) -> Watching:
    """After `logging/setLevel`, the server sends only messages of that level and above.

    The specification shows this without a keyword, so it is a warning.

    Fix: Compare each message's level with the one set by `logging/setLevel`, and drop messages
    below it.
    """
    lowest: int | None = None
    while step := (yield):
        if step.kind is Kind.RESULT:
            level = step.in_request("level")
            lowest = LOG_LEVELS.index(level) if level in LOG_LEVELS else lowest
            continue
        level = step.params.get("level")
        if lowest is None or level not in LOG_LEVELS:
            continue
        check.saw(step)
        if LOG_LEVELS.index(level) < lowest:
            expected = f"{LOG_LEVELS[lowest]} or above"
            told = f"the server sent a log message of level {level!r}"
            check.violated(step, told, expected, actual=str(level))


@_logging_rule(
    "LOG-004",
    "the server logs only for requests that ask for it",
    window=STATELESS_ERA,
    listens=MESSAGES,
    methods=(),
    sender="",
)
def log_messages_were_asked_for(check: Check) -> Watching:
    """In the stateless era, a server logs only for requests whose `_meta` has a `logLevel`.

    Over HTTP, the request of the same stream counts. On stdio, at least one open request must have
    asked. Messages below the requested level do not count as requested.

    Fix: Read `io.modelcontextprotocol/logLevel` from the request's `_meta`, and send log messages
    only if it is present and the level is high enough.
    """
    open_levels: Counter[int] = Counter()
    while step := (yield):
        if step.kind is Kind.REQUEST:
            open_levels[_level_asked(step)] += 1
        elif step.kind is not Kind.NOTIFICATION:
            if step.request is not None:
                open_levels[_level_asked(step.request)] -= 1
        elif step.method == _MESSAGE and step.sender == "server":
            check.saw(step)
            if fault := _unasked(step, open_levels):
                told = f"the server sent a log message {fault}"
                expected = f"{LOG_LEVEL} in the _meta of the request, and that level or above"
                check.violated(step, told, expected)


_NOT_ASKED = -1


def _level_asked(request: Step) -> int:
    level = request.meta.get(LOG_LEVEL)
    return LOG_LEVELS.index(level) if level in LOG_LEVELS else _NOT_ASKED


def _unasked(step: Step, open_levels: Counter[int]) -> str:
    posted = step.stream.posted
    if posted is not None and posted.kind is Kind.REQUEST:
        asked = {_level_asked(posted)}
    else:
        asked = {level for level, count in open_levels.items() if count > 0}
    asked.discard(_NOT_ASKED)
    if not asked:
        return "while no open request has a logLevel"
    level = step.params.get("level")
    if level in LOG_LEVELS and LOG_LEVELS.index(level) < min(asked):
        return f"of level {level!r}; the request asks for {LOG_LEVELS[min(asked)]!r} or above"
    return ""
