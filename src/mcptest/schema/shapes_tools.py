"""Tools: how a server lists them, and what calling one gives."""

from __future__ import annotations

from mcptest.model.revision import HANDSHAKE_ERA
from mcptest.schema.shape_vocabulary import (
    BOOLEAN,
    IN_NOVEMBER_2025,
    OBJECT,
    SINCE_JUNE_2025,
    SINCE_MARCH_2025,
    SINCE_NOVEMBER_2025,
    STRING,
    Field,
    ListOf,
    MapOf,
    Words,
    may,
    need,
    obj,
)
from mcptest.schema.shapes_basic import ICONS, META, TITLE, page, result
from mcptest.schema.shapes_content import CONTENT_BLOCK, structured_content

_IS_OBJECT = Words(("object",))
_SCHEMA_KEYWORDS: tuple[Field, ...] = (
    may("$schema", STRING, SINCE_NOVEMBER_2025),
    may("properties", MapOf(OBJECT), HANDSHAKE_ERA),
    may("required", ListOf(STRING), HANDSHAKE_ERA),
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
LIST_TOOLS = page("ListToolsResult", need("tools", ListOf(TOOL)))
CALL_TOOL = result(
    "CallToolResult",
    need("content", ListOf(CONTENT_BLOCK)),
    may("isError", BOOLEAN),
    *structured_content(),
)
