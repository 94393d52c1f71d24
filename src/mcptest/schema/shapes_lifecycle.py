"""The handshake, discovery, log levels and subscriptions: what keeps a session going."""

from __future__ import annotations

from mcptest.model.revision import STATELESS_ERA
from mcptest.schema.shape_vocabulary import (
    ANY,
    BOOLEAN,
    IN_NOVEMBER_2025,
    NUMBER,
    SINCE_MARCH_2025,
    STRING,
    TOKEN,
    UNTIL_NOVEMBER_2025,
    ListOf,
    may,
    need,
    obj,
)
from mcptest.schema.shapes_basic import (
    CACHE_HINTS,
    CLIENT_CAPABILITIES,
    IMPLEMENTATION,
    KEY,
    LOGGING_LEVEL,
    RESULT_TYPE,
    SERVER_CAPABILITIES,
    notification_params,
    request_params,
    result,
)

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
    need("supportedVersions", ListOf(STRING)),
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
    may("resourceSubscriptions", ListOf(STRING)),
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
