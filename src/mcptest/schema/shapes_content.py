"""Content blocks: in tool results, in prompts and in sampling, each with its own selection."""

from __future__ import annotations

from mcptest.model.revision import HANDSHAKE_ERA, STATELESS_ERA, Window
from mcptest.schema.shape_vocabulary import (
    ANY,
    BOOLEAN,
    INTEGER,
    OBJECT,
    SINCE_JUNE_2025,
    SINCE_MARCH_2025,
    SINCE_NOVEMBER_2025,
    STRING,
    AnyOf,
    Case,
    Field,
    ListOf,
    Tagged,
    may,
    need,
    obj,
)
from mcptest.schema.shapes_basic import ANNOTATED, ICONS, META, TITLE

_MIME_TYPE = may("mimeType", STRING)
TEXT_RESOURCE = obj(
    "TextResourceContents", need("uri", STRING), need("text", STRING), _MIME_TYPE, META
)
BLOB_RESOURCE = obj(
    "BlobResourceContents", need("uri", STRING), need("blob", STRING), _MIME_TYPE, META
)
RESOURCE_CONTENTS = AnyOf((("text", TEXT_RESOURCE), ("blob", BLOB_RESOURCE)))

TEXT = obj("TextContent", need("text", STRING), ANNOTATED, META)
IMAGE = obj("ImageContent", need("data", STRING), need("mimeType", STRING), ANNOTATED, META)
AUDIO = obj("AudioContent", need("data", STRING), need("mimeType", STRING), ANNOTATED, META)
EMBEDDED = obj("EmbeddedResource", need("resource", RESOURCE_CONTENTS), ANNOTATED, META)

RESOURCE_FIELDS: tuple[Field, ...] = (
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
        Case("text", TEXT),
        Case("image", IMAGE),
        Case("resource", EMBEDDED),
        Case("audio", AUDIO, SINCE_MARCH_2025),
        Case("resource_link", LINK, SINCE_JUNE_2025),
    ),
)


def structured_content(since: Window = SINCE_JUNE_2025) -> tuple[Field, Field]:
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
    need("content", ListOf(CONTENT_BLOCK)),
    may("isError", BOOLEAN),
    *structured_content(SINCE_NOVEMBER_2025),
    META,
)
SAMPLING_BLOCK = Tagged(
    "type",
    (
        Case("text", TEXT),
        Case("image", IMAGE),
        Case("audio", AUDIO, SINCE_MARCH_2025),
        Case("tool_use", TOOL_USE, SINCE_NOVEMBER_2025),
        Case("tool_result", TOOL_RESULT, SINCE_NOVEMBER_2025),
    ),
)
