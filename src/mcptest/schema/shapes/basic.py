"""What many messages share: `_meta`, the two sides' names and capabilities, icons, paging."""

from __future__ import annotations

from mcptest.core.revision import HANDSHAKE_ERA, STATELESS_ERA, Window
from mcptest.schema.shapes.vocabulary import (
    ANY,
    BOOLEAN,
    IN_NOVEMBER_2025,
    INTEGER,
    OBJECT,
    SINCE_JUNE_2025,
    SINCE_MARCH_2025,
    SINCE_NOVEMBER_2025,
    STRING,
    TOKEN,
    AnyShape,
    ArrayOf,
    Between,
    MapOf,
    Obj,
    Plain,
    ShapeField,
    Tagged,
    TaggedCase,
    Words,
    may,
    need,
    obj,
)

KEY = "io.modelcontextprotocol/"
"""Before the names of the protocol's own members of `_meta`."""

ROLE = Words(("user", "assistant"))
LOGGING_LEVEL = Words(
    ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
)
SHARE = Between(0, 1)

META = may("_meta", OBJECT, SINCE_JUNE_2025)
"""On the parts of a message, where anyone may put what is theirs."""
TITLE = may("title", STRING, SINCE_JUNE_2025)

ICON = obj(
    "Icon",
    need("src", STRING),
    may("mimeType", STRING),
    may("sizes", ArrayOf(STRING)),
    may("theme", Words(("light", "dark"))),
)
ICONS = may("icons", ArrayOf(ICON), SINCE_NOVEMBER_2025)

ANNOTATIONS = obj(
    "Annotations",
    may("audience", ArrayOf(ROLE)),
    may("priority", SHARE),
    may("lastModified", STRING, SINCE_JUNE_2025),
)
ANNOTATED = may("annotations", ANNOTATIONS)

IMPLEMENTATION = obj(
    "Implementation",
    need("name", STRING),
    need("version", STRING),
    TITLE,
    ICONS,
    may("description", STRING, SINCE_NOVEMBER_2025),
    may("websiteUrl", STRING, SINCE_NOVEMBER_2025),
)

# -- capabilities --------------------------------------------------------------------------

_EXPERIMENTAL = may("experimental", MapOf(OBJECT))
_EXTENSIONS = may("extensions", MapOf(OBJECT), STATELESS_ERA)


def _tasks_of(*requests: ShapeField) -> ShapeField:
    tasks = obj(
        "",
        may("cancel", OBJECT),
        may("list", OBJECT),
        may("requests", obj("", *requests)),
    )
    return may("tasks", tasks, IN_NOVEMBER_2025)


CLIENT_CAPABILITIES = obj(
    "ClientCapabilities",
    _EXPERIMENTAL,
    _EXTENSIONS,
    may("roots", obj("", may("listChanged", BOOLEAN, HANDSHAKE_ERA))),
    may(
        "sampling",
        obj(
            "",
            may("context", OBJECT, SINCE_NOVEMBER_2025),
            may("tools", OBJECT, SINCE_NOVEMBER_2025),
        ),
    ),
    may(
        "elicitation",
        obj("", may("form", OBJECT, SINCE_NOVEMBER_2025), may("url", OBJECT, SINCE_NOVEMBER_2025)),
        SINCE_JUNE_2025,
    ),
    _tasks_of(
        may("elicitation", obj("", may("create", OBJECT))),
        may("sampling", obj("", may("createMessage", OBJECT))),
    ),
)
_LIST_CHANGED = may("listChanged", BOOLEAN)
SERVER_CAPABILITIES = obj(
    "ServerCapabilities",
    _EXPERIMENTAL,
    _EXTENSIONS,
    may("logging", OBJECT),
    may("completions", OBJECT, SINCE_MARCH_2025),
    may("prompts", obj("", _LIST_CHANGED)),
    may("resources", obj("", _LIST_CHANGED, may("subscribe", BOOLEAN))),
    may("tools", obj("", _LIST_CHANGED)),
    _tasks_of(may("tools", obj("", may("call", OBJECT)))),
)

# -- requests, notifications and results in general ----------------------------------------

REQUEST_META_HANDSHAKE = obj("", may("progressToken", TOKEN))
REQUEST_META = obj(
    "RequestMetaObject",
    need(KEY + "protocolVersion", STRING),
    need(KEY + "clientCapabilities", CLIENT_CAPABILITIES),
    may(KEY + "clientInfo", IMPLEMENTATION),
    may(KEY + "logLevel", LOGGING_LEVEL),
    may("progressToken", TOKEN),
)
NOTIFICATION_META = obj("NotificationMetaObject", may(KEY + "subscriptionId", TOKEN))
RESULT_META = obj("ResultMetaObject", may(KEY + "serverInfo", IMPLEMENTATION))

RESULT_TYPE = need("resultType", STRING, STATELESS_ERA)


def request_params(name: str, *fields: ShapeField) -> Obj:
    """The params of a request that a client makes."""
    return obj(
        name,
        may("_meta", REQUEST_META_HANDSHAKE, HANDSHAKE_ERA),
        need("_meta", REQUEST_META, STATELESS_ERA),
        *fields,
    )


def question_params(name: str, *fields: ShapeField) -> Obj:
    """The params of what a server asks: a request at first, later part of a result."""
    return obj(name, may("_meta", REQUEST_META_HANDSHAKE, HANDSHAKE_ERA), *fields)


def notification_params(name: str, *fields: ShapeField) -> Obj:
    return obj(
        name,
        may("_meta", OBJECT, HANDSHAKE_ERA),
        may("_meta", NOTIFICATION_META, STATELESS_ERA),
        *fields,
    )


def result(name: str, *fields: ShapeField) -> Obj:
    """A result that a server gives."""
    return obj(
        name,
        may("_meta", OBJECT, HANDSHAKE_ERA),
        may("_meta", RESULT_META, STATELESS_ERA),
        RESULT_TYPE,
        *fields,
    )


def answer_to_question(name: str, *fields: ShapeField) -> Obj:
    """A result that a client gives; from 2026-07-28 on it travels in the params of a retry."""
    return obj(name, may("_meta", OBJECT, HANDSHAKE_ERA), *fields)


EMPTY_PARAMS = request_params("RequestParams")
EMPTY_NOTIFICATION = notification_params("NotificationParams")
EMPTY_RESULT = result("Result")

# -- paging and caching --------------------------------------------------------------------

PAGE_PARAMS = request_params("PaginatedRequestParams", may("cursor", STRING))
CACHE_HINTS = (
    need("ttlMs", Between(0, integer=True), STATELESS_ERA),
    need("cacheScope", Words(("public", "private")), STATELESS_ERA),
)


def page(name: str, items: ShapeField) -> Obj:
    return result(name, items, may("nextCursor", STRING), *CACHE_HINTS)


# -- Content blocks ------------------------------------------------------------------------------

_MIME_TYPE = may("mimeType", STRING)
TEXT_RESOURCE = obj(
    "TextResourceContents", need("uri", STRING), need("text", STRING), _MIME_TYPE, META
)
BLOB_RESOURCE = obj(
    "BlobResourceContents", need("uri", STRING), need("blob", STRING), _MIME_TYPE, META
)
RESOURCE_CONTENTS = AnyShape((("text", TEXT_RESOURCE), ("blob", BLOB_RESOURCE)))

TEXT = obj("TextContent", need("text", STRING), ANNOTATED, META)
IMAGE = obj("ImageContent", need("data", STRING), need("mimeType", STRING), ANNOTATED, META)
AUDIO = obj("AudioContent", need("data", STRING), need("mimeType", STRING), ANNOTATED, META)
EMBEDDED = obj("EmbeddedResource", need("resource", RESOURCE_CONTENTS), ANNOTATED, META)

RESOURCE_FIELDS: tuple[ShapeField, ...] = (
    need("uri", STRING),
    need("name", STRING),
    may("description", STRING),
    _MIME_TYPE,
    may("size", INTEGER),
    TITLE,
    ICONS,
    ANNOTATED,
    META,
)
LINK = obj("ResourceLink", *RESOURCE_FIELDS)

CONTENT_BLOCK = Tagged(
    "type",
    (
        TaggedCase("text", TEXT),
        TaggedCase("image", IMAGE),
        TaggedCase("resource", EMBEDDED),
        TaggedCase("audio", AUDIO, SINCE_MARCH_2025),
        TaggedCase("resource_link", LINK, SINCE_JUNE_2025),
    ),
)


def structured_content(since: Window = SINCE_JUNE_2025) -> tuple[ShapeField, ShapeField]:
    """An object at first; from 2026-07-28 on any JSON value."""
    objects_only = Window(since.since, HANDSHAKE_ERA.until)
    return (
        may("structuredContent", OBJECT, objects_only),
        may("structuredContent", ANY, STATELESS_ERA),
    )


TOOL_USE = obj(
    "ToolUseContent", need("id", STRING), need("name", STRING), need("input", OBJECT), META
)
TOOL_RESULT = obj(
    "ToolResultContent",
    need("toolUseId", STRING),
    need("content", ArrayOf(CONTENT_BLOCK)),
    may("isError", BOOLEAN),
    *structured_content(SINCE_NOVEMBER_2025),
    META,
)
SAMPLING_BLOCK = Tagged(
    "type",
    (
        TaggedCase("text", TEXT),
        TaggedCase("image", IMAGE),
        TaggedCase("audio", AUDIO, SINCE_MARCH_2025),
        TaggedCase("tool_use", TOOL_USE, SINCE_NOVEMBER_2025),
        TaggedCase("tool_result", TOOL_RESULT, SINCE_NOVEMBER_2025),
    ),
)


# -- Tasks as 2025-11-25 had them in its core; later they are an extension with shapes of its ----

TASK_FIELD = may("task", obj("TaskMetadata", may("ttl", INTEGER)), IN_NOVEMBER_2025)
"""In params: the sender would like the request to become a task."""

_TASK: tuple[ShapeField, ...] = (
    need("taskId", STRING),
    need("status", Words(("working", "input_required", "completed", "failed", "cancelled"))),
    need("createdAt", STRING),
    need("lastUpdatedAt", STRING),
    need("ttl", Plain.INTEGER_OR_NULL),
    may("pollInterval", INTEGER),
    may("statusMessage", STRING),
)
TASK = obj("Task", *_TASK)
TASK_PARAMS = obj("", need("taskId", STRING))
GET_TASK = obj("GetTaskResult", may("_meta", OBJECT), *_TASK)
CANCEL_TASK = obj("CancelTaskResult", may("_meta", OBJECT), *_TASK)
TASK_PAYLOAD = obj("GetTaskPayloadResult", may("_meta", OBJECT))
LIST_TASKS = page("ListTasksResult", need("tasks", ArrayOf(TASK)))
CREATE_TASK = obj("CreateTaskResult", may("_meta", OBJECT), need("task", TASK))
TASK_STATUS_PARAMS = notification_params("TaskStatusNotificationParams", *_TASK)


# -- Tools ---------------------------------------------------------------------------------------

_IS_OBJECT = Words(("object",))
_SCHEMA_KEYWORDS: tuple[ShapeField, ...] = (
    may("$schema", STRING, SINCE_NOVEMBER_2025),
    may("properties", MapOf(OBJECT), HANDSHAKE_ERA),
    may("required", ArrayOf(STRING), HANDSHAKE_ERA),
)
INPUT_SCHEMA = obj("", need("type", _IS_OBJECT), *_SCHEMA_KEYWORDS)
OUTPUT_SCHEMA = obj("", need("type", _IS_OBJECT, HANDSHAKE_ERA), *_SCHEMA_KEYWORDS)

TOOL_ANNOTATIONS = obj(
    "ToolAnnotations",
    may("title", STRING),
    may("readOnlyHint", BOOLEAN),
    may("destructiveHint", BOOLEAN),
    may("idempotentHint", BOOLEAN),
    may("openWorldHint", BOOLEAN),
)
TOOL_EXECUTION = obj(
    "ToolExecution", may("taskSupport", Words(("forbidden", "optional", "required")))
)
TOOL = obj(
    "Tool",
    need("name", STRING),
    may("description", STRING),
    need("inputSchema", INPUT_SCHEMA),
    may("outputSchema", OUTPUT_SCHEMA, SINCE_JUNE_2025),
    may("annotations", TOOL_ANNOTATIONS, SINCE_MARCH_2025),
    may("execution", TOOL_EXECUTION, IN_NOVEMBER_2025),
    TITLE,
    ICONS,
    META,
)
LIST_TOOLS = page("ListToolsResult", need("tools", ArrayOf(TOOL)))
CALL_TOOL = result(
    "CallToolResult",
    need("content", ArrayOf(CONTENT_BLOCK)),
    may("isError", BOOLEAN),
    *structured_content(),
)
