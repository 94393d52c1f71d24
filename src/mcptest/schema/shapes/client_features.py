"""What a server asks of a client: sampling, elicitation, roots, and the answers to them."""

from __future__ import annotations

from mcptest.core.revision import HANDSHAKE_ERA, STATELESS_ERA
from mcptest.schema.shapes.basic import (
    META,
    REQUEST_META_HANDSHAKE,
    ROLE,
    SAMPLING_BLOCK,
    SHARE,
    TASK_FIELD,
    TOOL,
    answer_to_question,
    question_params,
)
from mcptest.schema.shapes.vocabulary import (
    BOOLEAN,
    IN_NOVEMBER_2025,
    INTEGER,
    NUMBER,
    OBJECT,
    SINCE_NOVEMBER_2025,
    STRING,
    UNTIL_NOVEMBER_2025,
    AnyShape,
    ArrayOf,
    ByMember,
    Holding,
    MapOf,
    OneOrMany,
    Plain,
    ShapeField,
    Tagged,
    TaggedCase,
    Words,
    may,
    need,
    obj,
)

# -- sampling ------------------------------------------------------------------------------

_SAMPLED: tuple[ShapeField, ...] = (
    need("content", SAMPLING_BLOCK, UNTIL_NOVEMBER_2025),
    need("content", OneOrMany(SAMPLING_BLOCK), SINCE_NOVEMBER_2025),
    need("role", ROLE),
)
SAMPLING_MESSAGE = obj("SamplingMessage", *_SAMPLED, may("_meta", OBJECT, SINCE_NOVEMBER_2025))
MODEL_PREFERENCES = obj(
    "ModelPreferences",
    may("hints", ArrayOf(obj("ModelHint", may("name", STRING)))),
    may("costPriority", SHARE),
    may("speedPriority", SHARE),
    may("intelligencePriority", SHARE),
)
TOOL_CHOICE = obj("ToolChoice", may("mode", Words(("auto", "required", "none"))))
CREATE_MESSAGE_PARAMS = question_params(
    "CreateMessageRequestParams",
    need("messages", ArrayOf(SAMPLING_MESSAGE)),
    need("maxTokens", INTEGER),
    may("modelPreferences", MODEL_PREFERENCES),
    may("systemPrompt", STRING),
    may("includeContext", Words(("none", "thisServer", "allServers"))),
    may("temperature", NUMBER),
    may("stopSequences", ArrayOf(STRING)),
    may("metadata", OBJECT),
    may("tools", ArrayOf(TOOL), SINCE_NOVEMBER_2025),
    may("toolChoice", TOOL_CHOICE, SINCE_NOVEMBER_2025),
    TASK_FIELD,
)
CREATE_MESSAGE = obj(
    "CreateMessageResult",
    may("_meta", OBJECT),
    *_SAMPLED,
    need("model", STRING),
    may("stopReason", STRING),
)

# -- elicitation ---------------------------------------------------------------------------

_LABELS: tuple[ShapeField, ShapeField] = (may("title", STRING), may("description", STRING))
_DEFAULT_TEXT = may("default", STRING, SINCE_NOVEMBER_2025)
_TITLED_VALUE = obj("", need("const", STRING), need("title", STRING))

STRING_PROPERTY = obj(
    "StringSchema",
    *_LABELS,
    may("format", Words(("email", "uri", "date", "date-time"))),
    may("minLength", INTEGER),
    may("maxLength", INTEGER),
    _DEFAULT_TEXT,
)
ENUM_PROPERTY = obj(
    "LegacyTitledEnumSchema",
    *_LABELS,
    need("enum", ArrayOf(STRING)),
    may("enumNames", ArrayOf(STRING)),
    _DEFAULT_TEXT,
)
TITLED_ENUM_PROPERTY = obj(
    "TitledSingleSelectEnumSchema", *_LABELS, need("oneOf", ArrayOf(_TITLED_VALUE)), _DEFAULT_TEXT
)
NUMBER_PROPERTY = obj(
    "NumberSchema",
    *_LABELS,
    may("minimum", NUMBER),
    may("maximum", NUMBER),
    may("default", NUMBER, SINCE_NOVEMBER_2025),
)
BOOLEAN_PROPERTY = obj("BooleanSchema", *_LABELS, may("default", BOOLEAN))
_MANY_ITEMS = ByMember(
    (Holding("anyOf", obj("", need("anyOf", ArrayOf(_TITLED_VALUE)))),),
    otherwise=obj("", need("type", Words(("string",))), need("enum", ArrayOf(STRING))),
)
MANY_PROPERTY = obj(
    "MultiSelectEnumSchema",
    *_LABELS,
    need("items", _MANY_ITEMS),
    may("minItems", INTEGER),
    may("maxItems", INTEGER),
    may("default", ArrayOf(STRING)),
)
_TEXT_PROPERTY = ByMember(
    (
        Holding("enum", ENUM_PROPERTY),
        Holding("oneOf", TITLED_ENUM_PROPERTY, window=SINCE_NOVEMBER_2025),
    ),
    otherwise=STRING_PROPERTY,
)
PROPERTY = Tagged(
    "type",
    (
        TaggedCase("string", _TEXT_PROPERTY),
        TaggedCase("number", NUMBER_PROPERTY),
        TaggedCase("integer", NUMBER_PROPERTY),
        TaggedCase("boolean", BOOLEAN_PROPERTY),
        TaggedCase("array", MANY_PROPERTY, SINCE_NOVEMBER_2025),
    ),
)
REQUESTED_SCHEMA = obj(
    "",
    need("type", Words(("object",))),
    need("properties", MapOf(PROPERTY)),
    may("required", ArrayOf(STRING)),
    may("$schema", STRING, SINCE_NOVEMBER_2025),
)
FORM_PARAMS = question_params(
    "ElicitRequestFormParams",
    need("message", STRING),
    need("requestedSchema", REQUESTED_SCHEMA),
    TASK_FIELD,
)
URL_PARAMS = question_params(
    "ElicitRequestURLParams",
    need("mode", Words(("url",))),
    need("message", STRING),
    need("url", STRING),
    need("elicitationId", STRING, IN_NOVEMBER_2025),
    TASK_FIELD,
)
ELICIT_PARAMS = Tagged(
    "mode", (TaggedCase("form", FORM_PARAMS), TaggedCase("url", URL_PARAMS)), untagged=FORM_PARAMS
)
_GIVEN = AnyShape((("", Plain.PRIMITIVE), ("", ArrayOf(STRING))))
ELICIT = answer_to_question(
    "ElicitResult",
    need("action", Words(("accept", "decline", "cancel"))),
    may("content", MapOf(Plain.PRIMITIVE), UNTIL_NOVEMBER_2025),
    may("content", MapOf(_GIVEN), SINCE_NOVEMBER_2025),
)

# -- roots ---------------------------------------------------------------------------------

LIST_ROOTS_PARAMS = obj(
    "",
    may("_meta", REQUEST_META_HANDSHAKE, HANDSHAKE_ERA),
    may("_meta", OBJECT, STATELESS_ERA),
)
ROOT = obj("Root", need("uri", STRING), may("name", STRING), META)
LIST_ROOTS = answer_to_question("ListRootsResult", need("roots", ArrayOf(ROOT)))

# -- the same within results and retries of the stateless era ------------------------------

INPUT_REQUEST = Tagged(
    "method",
    (
        TaggedCase("sampling/createMessage", obj("", need("params", CREATE_MESSAGE_PARAMS))),
        TaggedCase("elicitation/create", obj("", need("params", ELICIT_PARAMS))),
        TaggedCase("roots/list", obj("", may("params", LIST_ROOTS_PARAMS))),
    ),
)
INPUT_RESPONSE = AnyShape((("action", ELICIT), ("roots", LIST_ROOTS), ("model", CREATE_MESSAGE)))
INPUT_REQUESTS = MapOf(INPUT_REQUEST)
INPUT_RESPONSES = MapOf(INPUT_RESPONSE)
