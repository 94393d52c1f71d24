"""What many messages share: `_meta`, the two sides' names and capabilities, icons, paging."""

from __future__ import annotations

from mcptest.model.revision import HANDSHAKE_ERA, STATELESS_ERA
from mcptest.schema.shape_vocabulary import (
    BOOLEAN,
    IN_NOVEMBER_2025,
    OBJECT,
    SINCE_JUNE_2025,
    SINCE_MARCH_2025,
    SINCE_NOVEMBER_2025,
    STRING,
    TOKEN,
    Between,
    Field,
    ListOf,
    MapOf,
    Obj,
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
    may("sizes", ListOf(STRING)),
    may("theme", Words(("light", "dark"))),
)
ICONS = may("icons", ListOf(ICON), SINCE_NOVEMBER_2025)

ANNOTATIONS = obj(
    "Annotations",
    may("audience", ListOf(ROLE)),
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


def _tasks_of(*requests: Field) -> Field:
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


def request_params(name: str, *fields: Field) -> Obj:
    """The params of a request that a client makes."""
    return obj(
        name,
        may("_meta", REQUEST_META_HANDSHAKE, HANDSHAKE_ERA),
        need("_meta", REQUEST_META, STATELESS_ERA),
        *fields,
    )


def question_params(name: str, *fields: Field) -> Obj:
    """The params of what a server asks: a request at first, later part of a result."""
    return obj(name, may("_meta", REQUEST_META_HANDSHAKE, HANDSHAKE_ERA), *fields)


def notification_params(name: str, *fields: Field) -> Obj:
    return obj(
        name,
        may("_meta", OBJECT, HANDSHAKE_ERA),
        may("_meta", NOTIFICATION_META, STATELESS_ERA),
        *fields,
    )


def result(name: str, *fields: Field) -> Obj:
    """A result that a server gives."""
    return obj(
        name,
        may("_meta", OBJECT, HANDSHAKE_ERA),
        may("_meta", RESULT_META, STATELESS_ERA),
        RESULT_TYPE,
        *fields,
    )


def answer_to_question(name: str, *fields: Field) -> Obj:
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


def page(name: str, items: Field) -> Obj:
    return result(name, items, may("nextCursor", STRING), *CACHE_HINTS)
