"""The table: every method, who may send it in which revisions, its params and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcptest.core.revision import EVERY_REVISION, HANDSHAKE_ERA, STATELESS_ERA, Window
from mcptest.schema.shapes import basic as tasks
from mcptest.schema.shapes import basic as tools
from mcptest.schema.shapes import client_features as client
from mcptest.schema.shapes import server_features as server
from mcptest.schema.shapes.basic import (
    CACHE_HINTS,
    CLIENT_CAPABILITIES,
    EMPTY_NOTIFICATION,
    EMPTY_PARAMS,
    EMPTY_RESULT,
    IMPLEMENTATION,
    KEY,
    LOGGING_LEVEL,
    PAGE_PARAMS,
    RESULT_TYPE,
    SERVER_CAPABILITIES,
    notification_params,
    request_params,
    result,
)
from mcptest.schema.shapes.vocabulary import (
    ANY,
    BOOLEAN,
    IN_NOVEMBER_2025,
    INTEGER,
    NUMBER,
    SINCE_JUNE_2025,
    SINCE_MARCH_2025,
    SINCE_NOVEMBER_2025,
    STRING,
    TOKEN,
    UNTIL_NOVEMBER_2025,
    ArrayOf,
    ByMember,
    Holding,
    Obj,
    Shape,
    ShapeField,
    Tagged,
    TaggedCase,
    may,
    need,
    obj,
)

# -- The handshake, discovery, log levels and subscriptions --------------------------------------

# -- beginnings ----------------------------------------------------------------------------

INITIALIZE_PARAMS = request_params(
    "InitializeRequestParams",
    need("protocolVersion", STRING),
    need("capabilities", CLIENT_CAPABILITIES),
    need("clientInfo", IMPLEMENTATION),
)
INITIALIZE = result(
    "InitializeResult",
    need("protocolVersion", STRING),
    need("capabilities", SERVER_CAPABILITIES),
    need("serverInfo", IMPLEMENTATION),
    may("instructions", STRING),
)
DISCOVER = result(
    "DiscoverResult",
    need("supportedVersions", ArrayOf(STRING)),
    need("capabilities", SERVER_CAPABILITIES),
    may("instructions", STRING),
    *CACHE_HINTS,
)
SET_LEVEL_PARAMS = request_params("SetLevelRequestParams", need("level", LOGGING_LEVEL))

# -- subscriptions -------------------------------------------------------------------------

SUBSCRIPTION_FILTER = obj(
    "SubscriptionFilter",
    may("toolsListChanged", BOOLEAN),
    may("promptsListChanged", BOOLEAN),
    may("resourcesListChanged", BOOLEAN),
    may("resourceSubscriptions", ArrayOf(STRING)),
)
LISTEN_PARAMS = request_params(
    "SubscriptionsListenRequestParams", need("notifications", SUBSCRIPTION_FILTER)
)
LISTEN = obj(
    "SubscriptionsListenResult",
    need(
        "_meta",
        obj(
            "SubscriptionsListenResultMetaObject",
            need(KEY + "subscriptionId", TOKEN),
            may(KEY + "serverInfo", IMPLEMENTATION),
        ),
    ),
    RESULT_TYPE,
)
ACKNOWLEDGED_PARAMS = notification_params(
    "SubscriptionsAcknowledgedNotificationParams", need("notifications", SUBSCRIPTION_FILTER)
)

# -- notifications -------------------------------------------------------------------------

CANCELLED_PARAMS = notification_params(
    "CancelledNotificationParams",
    need("requestId", TOKEN, UNTIL_NOVEMBER_2025),
    may("requestId", TOKEN, IN_NOVEMBER_2025),  # a task is cancelled in another way
    need("requestId", TOKEN, STATELESS_ERA),
    may("reason", STRING),
)
PROGRESS_PARAMS = notification_params(
    "ProgressNotificationParams",
    need("progressToken", TOKEN),
    need("progress", NUMBER),
    may("total", NUMBER),
    may("message", STRING, SINCE_MARCH_2025),
)
LOG_PARAMS = notification_params(
    "LoggingMessageNotificationParams",
    need("level", LOGGING_LEVEL),
    need("data", ANY),
    may("logger", STRING),
)
UPDATED_PARAMS = notification_params("ResourceUpdatedNotificationParams", need("uri", STRING))
ELICITATION_COMPLETE_PARAMS = obj("", need("elicitationId", STRING))


# -- The table -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MethodShapes:
    """A request and its result. The shapes are those of whole messages."""

    method: str
    request: Obj
    answer: Obj
    by_client: Window | None = None
    by_server: Window | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification."""

    method: str
    message: Obj
    by_client: Window | None = None
    by_server: Window | None = None


# -- whole messages ------------------------------------------------------------------------

INPUT_REQUIRED = result(
    "InputRequiredResult",
    may("inputRequests", client.INPUT_REQUESTS),
    may("requestState", STRING),
)


def _with(params: Shape) -> Obj:
    return obj("", need("params", params))


def _maybe_with(params: Obj) -> Obj:
    """Params that can be left out, until they had to name the version on every request."""
    return obj("", may("params", params, HANDSHAKE_ERA), need("params", params, STATELESS_ERA))


def _gives(complete: Obj, instead_of_task: str = "") -> Obj:
    """An answer with this result.

    From 2026-07-28 on `resultType` tells what it is. Whether a method may ask for input is for a
    rule to say; an extension's type is judged only by what all results have. In 2025-11-25 a task
    may stand for the result, which is told by a `task` where the result's own member is missing.
    """
    by_type = Tagged(
        "resultType",
        (TaggedCase("complete", complete), TaggedCase("input_required", INPUT_REQUIRED)),
        untagged=complete,
        other=EMPTY_RESULT,
    )
    stateless = need("result", by_type, STATELESS_ERA)
    if not instead_of_task:
        return obj("", need("result", complete, HANDSHAKE_ERA), stateless)
    task = Holding("task", tasks.CREATE_TASK, lacking=instead_of_task)
    or_task = need("result", ByMember((task,), otherwise=complete), IN_NOVEMBER_2025)
    return obj("", need("result", complete, UNTIL_NOVEMBER_2025), or_task, stateless)


_EMPTY = _gives(EMPTY_RESULT)
_ELICIT = obj(
    "",
    need("params", client.FORM_PARAMS, UNTIL_NOVEMBER_2025),
    need("params", client.ELICIT_PARAMS, SINCE_NOVEMBER_2025),
)
_ELICITATION = Window(SINCE_JUNE_2025.since, HANDSHAKE_ERA.until)


def _both(method: str, request: Obj, answer: Obj, window: Window) -> MethodShapes:
    return MethodShapes(method, request, answer, by_client=window, by_server=window)


EXCHANGES: Final[tuple[MethodShapes, ...]] = (
    MethodShapes(
        "initialize",
        _with(INITIALIZE_PARAMS),
        _gives(INITIALIZE),
        HANDSHAKE_ERA,
    ),
    _both("ping", _maybe_with(EMPTY_PARAMS), _EMPTY, HANDSHAKE_ERA),
    MethodShapes("server/discover", _with(EMPTY_PARAMS), _gives(DISCOVER), STATELESS_ERA),
    MethodShapes("tools/list", _maybe_with(PAGE_PARAMS), _gives(tools.LIST_TOOLS), EVERY_REVISION),
    MethodShapes(
        "tools/call",
        _with(server.CALL_TOOL_PARAMS),
        _gives(tools.CALL_TOOL, instead_of_task="content"),
        EVERY_REVISION,
    ),
    MethodShapes(
        "resources/list", _maybe_with(PAGE_PARAMS), _gives(server.LIST_RESOURCES), EVERY_REVISION
    ),
    MethodShapes(
        "resources/templates/list",
        _maybe_with(PAGE_PARAMS),
        _gives(server.LIST_TEMPLATES),
        EVERY_REVISION,
    ),
    MethodShapes("resources/read", _with(server.READ_PARAMS), _gives(server.READ), EVERY_REVISION),
    MethodShapes("resources/subscribe", _with(server.SUBSCRIBE_PARAMS), _EMPTY, HANDSHAKE_ERA),
    MethodShapes("resources/unsubscribe", _with(server.UNSUBSCRIBE_PARAMS), _EMPTY, HANDSHAKE_ERA),
    MethodShapes(
        "prompts/list", _maybe_with(PAGE_PARAMS), _gives(server.LIST_PROMPTS), EVERY_REVISION
    ),
    MethodShapes(
        "prompts/get", _with(server.GET_PROMPT_PARAMS), _gives(server.GET_PROMPT), EVERY_REVISION
    ),
    MethodShapes(
        "completion/complete",
        _with(server.COMPLETE_PARAMS),
        _gives(server.COMPLETE),
        EVERY_REVISION,
    ),
    MethodShapes("logging/setLevel", _with(SET_LEVEL_PARAMS), _EMPTY, HANDSHAKE_ERA),
    MethodShapes(
        "subscriptions/listen",
        _with(LISTEN_PARAMS),
        _gives(LISTEN),
        STATELESS_ERA,
    ),
    MethodShapes(
        "sampling/createMessage",
        _with(client.CREATE_MESSAGE_PARAMS),
        _gives(client.CREATE_MESSAGE, instead_of_task="content"),
        by_server=HANDSHAKE_ERA,
    ),
    MethodShapes(
        "elicitation/create",
        _ELICIT,
        _gives(client.ELICIT, instead_of_task="action"),
        by_server=_ELICITATION,
    ),
    MethodShapes(
        "roots/list",
        _maybe_with(client.LIST_ROOTS_PARAMS),
        _gives(client.LIST_ROOTS),
        by_server=HANDSHAKE_ERA,
    ),
    _both("tasks/get", _with(tasks.TASK_PARAMS), _gives(tasks.GET_TASK), IN_NOVEMBER_2025),
    _both("tasks/result", _with(tasks.TASK_PARAMS), _gives(tasks.TASK_PAYLOAD), IN_NOVEMBER_2025),
    _both("tasks/cancel", _with(tasks.TASK_PARAMS), _gives(tasks.CANCEL_TASK), IN_NOVEMBER_2025),
    _both("tasks/list", _maybe_with(PAGE_PARAMS), _gives(tasks.LIST_TASKS), IN_NOVEMBER_2025),
)

_NOTHING_NEEDED = obj("", may("params", EMPTY_NOTIFICATION))
NOTICES: Final[tuple[Notice, ...]] = (
    Notice("notifications/initialized", _NOTHING_NEEDED, by_client=HANDSHAKE_ERA),
    Notice(
        "notifications/cancelled",
        _with(CANCELLED_PARAMS),
        by_client=EVERY_REVISION,
        by_server=EVERY_REVISION,
    ),
    Notice(
        "notifications/progress",
        _with(PROGRESS_PARAMS),
        by_client=HANDSHAKE_ERA,
        by_server=EVERY_REVISION,
    ),
    Notice("notifications/roots/list_changed", _NOTHING_NEEDED, by_client=HANDSHAKE_ERA),
    Notice("notifications/message", _with(LOG_PARAMS), by_server=EVERY_REVISION),
    Notice("notifications/tools/list_changed", _NOTHING_NEEDED, by_server=EVERY_REVISION),
    Notice("notifications/prompts/list_changed", _NOTHING_NEEDED, by_server=EVERY_REVISION),
    Notice("notifications/resources/list_changed", _NOTHING_NEEDED, by_server=EVERY_REVISION),
    Notice(
        "notifications/resources/updated",
        _with(UPDATED_PARAMS),
        by_server=EVERY_REVISION,
    ),
    Notice(
        "notifications/tasks/status",
        _with(tasks.TASK_STATUS_PARAMS),
        by_client=IN_NOVEMBER_2025,
        by_server=IN_NOVEMBER_2025,
    ),
    Notice(
        "notifications/elicitation/complete",
        _with(ELICITATION_COMPLETE_PARAMS),
        by_server=IN_NOVEMBER_2025,
    ),
    Notice(
        "notifications/subscriptions/acknowledged",
        _with(ACKNOWLEDGED_PARAMS),
        by_server=STATELESS_ERA,
    ),
)

# -- errors --------------------------------------------------------------------------------


def _error(*fields: ShapeField) -> Obj:
    error = obj("Error", need("code", INTEGER), need("message", STRING), *fields)
    return obj("", need("error", error))


ANY_ERROR: Final = _error(may("data", ANY))
_URL_ELICITATION = obj("", need("elicitations", ArrayOf(client.URL_PARAMS)))
_CAPABILITY = obj("", need("requiredCapabilities", CLIENT_CAPABILITIES))
_VERSION = obj("", need("supported", ArrayOf(STRING)), need("requested", STRING))
ERRORS: Final[dict[int, Obj]] = {
    -32042: _error(need("data", _URL_ELICITATION, IN_NOVEMBER_2025)),
    -32021: _error(need("data", _CAPABILITY, STATELESS_ERA)),
    -32022: _error(need("data", _VERSION, STATELESS_ERA)),
}
"""The codes that carry data of a known shape; in other revisions they are codes like any other."""
