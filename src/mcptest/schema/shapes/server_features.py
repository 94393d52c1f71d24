"""What a server offers beside its tools: resources, prompts, completion; and what retries add."""

from __future__ import annotations

from mcptest.core.revision import HANDSHAKE_ERA, STATELESS_ERA
from mcptest.schema.shapes.basic import (
    ANNOTATED,
    CACHE_HINTS,
    CONTENT_BLOCK,
    ICONS,
    META,
    RESOURCE_CONTENTS,
    RESOURCE_FIELDS,
    ROLE,
    TASK_FIELD,
    TITLE,
    page,
    request_params,
    result,
)
from mcptest.schema.shapes.client_features import INPUT_RESPONSES
from mcptest.schema.shapes.vocabulary import (
    BOOLEAN,
    INTEGER,
    OBJECT,
    SINCE_JUNE_2025,
    STRING,
    ArrayOf,
    MapOf,
    ShapeField,
    Tagged,
    TaggedCase,
    may,
    need,
    obj,
)

RETRY: tuple[ShapeField, ShapeField] = (
    may("inputResponses", INPUT_RESPONSES, STATELESS_ERA),
    may("requestState", STRING, STATELESS_ERA),
)
"""What a request that was asked for input adds when it comes back."""

# -- tools ---------------------------------------------------------------------------------

CALL_TOOL_PARAMS = request_params(
    "CallToolRequestParams", need("name", STRING), may("arguments", OBJECT), TASK_FIELD, *RETRY
)

# -- resources -----------------------------------------------------------------------------

RESOURCE = obj("Resource", *RESOURCE_FIELDS)
RESOURCE_TEMPLATE = obj(
    "ResourceTemplate",
    need("uriTemplate", STRING),
    need("name", STRING),
    may("description", STRING),
    may("mimeType", STRING),
    TITLE,
    ICONS,
    ANNOTATED,
    META,
)
LIST_RESOURCES = page("ListResourcesResult", need("resources", ArrayOf(RESOURCE)))
LIST_TEMPLATES = page(
    "ListResourceTemplatesResult", need("resourceTemplates", ArrayOf(RESOURCE_TEMPLATE))
)
READ_PARAMS = request_params("ReadResourceRequestParams", need("uri", STRING), *RETRY)
READ = result("ReadResourceResult", need("contents", ArrayOf(RESOURCE_CONTENTS)), *CACHE_HINTS)
SUBSCRIBE_PARAMS = request_params("SubscribeRequestParams", need("uri", STRING))
UNSUBSCRIBE_PARAMS = request_params("UnsubscribeRequestParams", need("uri", STRING))

# -- prompts -------------------------------------------------------------------------------

PROMPT_ARGUMENT = obj(
    "PromptArgument",
    need("name", STRING),
    may("description", STRING),
    may("required", BOOLEAN),
    TITLE,
)
PROMPT = obj(
    "Prompt",
    need("name", STRING),
    may("description", STRING),
    may("arguments", ArrayOf(PROMPT_ARGUMENT)),
    TITLE,
    ICONS,
    META,
)
LIST_PROMPTS = page("ListPromptsResult", need("prompts", ArrayOf(PROMPT)))
GET_PROMPT_PARAMS = request_params(
    "GetPromptRequestParams", need("name", STRING), may("arguments", MapOf(STRING)), *RETRY
)
PROMPT_MESSAGE = obj("PromptMessage", need("role", ROLE), need("content", CONTENT_BLOCK))
GET_PROMPT = result(
    "GetPromptResult", may("description", STRING), need("messages", ArrayOf(PROMPT_MESSAGE))
)

# -- completion ----------------------------------------------------------------------------

REFERENCE = Tagged(
    "type",
    (
        TaggedCase("ref/prompt", obj("PromptReference", need("name", STRING), TITLE)),
        TaggedCase("ref/resource", obj("ResourceTemplateReference", need("uri", STRING))),
    ),
)
COMPLETE_PARAMS = request_params(
    "CompleteRequestParams",
    need("ref", REFERENCE),
    need("argument", obj("", need("name", STRING), need("value", STRING))),
    may("context", obj("", may("arguments", MapOf(STRING))), SINCE_JUNE_2025),
)
COMPLETION = obj(
    "",
    need("values", ArrayOf(STRING), HANDSHAKE_ERA),
    need("values", ArrayOf(STRING, most=100), STATELESS_ERA),
    may("total", INTEGER),
    may("hasMore", BOOLEAN),
)
COMPLETE = result("CompleteResult", need("completion", COMPLETION))
