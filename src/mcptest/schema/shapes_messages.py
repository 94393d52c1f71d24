"""The table: every method, who may send it in which revisions, its params and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcptest.model.revision import EVERY_REVISION, HANDSHAKE_ERA, STATELESS_ERA, Window
from mcptest.schema import shapes_client as client
from mcptest.schema import shapes_lifecycle as lifecycle
from mcptest.schema import shapes_server as server
from mcptest.schema import shapes_tasks as tasks
from mcptest.schema import shapes_tools as tools
from mcptest.schema.shape_vocabulary import (
    ANY,
    IN_NOVEMBER_2025,
    INTEGER,
    SINCE_JUNE_2025,
    SINCE_NOVEMBER_2025,
    STRING,
    UNTIL_NOVEMBER_2025,
    ByMember,
    Case,
    Field,
    Holding,
    ListOf,
    Obj,
    Shape,
    Tagged,
    may,
    need,
    obj,
)
from mcptest.schema.shapes_basic import (
    CLIENT_CAPABILITIES,
    EMPTY_NOTIFICATION,
    EMPTY_PARAMS,
    EMPTY_RESULT,
    PAGE_PARAMS,
    result,
)


@dataclass(frozen=True, slots=True)
class Exchange:
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
        (Case("complete", complete), Case("input_required", INPUT_REQUIRED)),
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


def _both(method: str, request: Obj, answer: Obj, window: Window) -> Exchange:
    return Exchange(method, request, answer, by_client=window, by_server=window)


EXCHANGES: Final[tuple[Exchange, ...]] = (
    Exchange(
        "initialize",
        _with(lifecycle.INITIALIZE_PARAMS),
        _gives(lifecycle.INITIALIZE),
        HANDSHAKE_ERA,
    ),
    _both("ping", _maybe_with(EMPTY_PARAMS), _EMPTY, HANDSHAKE_ERA),
    Exchange("server/discover", _with(EMPTY_PARAMS), _gives(lifecycle.DISCOVER), STATELESS_ERA),
    Exchange("tools/list", _maybe_with(PAGE_PARAMS), _gives(tools.LIST_TOOLS), EVERY_REVISION),
    Exchange(
        "tools/call",
        _with(server.CALL_TOOL_PARAMS),
        _gives(tools.CALL_TOOL, instead_of_task="content"),
        EVERY_REVISION,
    ),
    Exchange(
        "resources/list", _maybe_with(PAGE_PARAMS), _gives(server.LIST_RESOURCES), EVERY_REVISION
    ),
    Exchange(
        "resources/templates/list",
        _maybe_with(PAGE_PARAMS),
        _gives(server.LIST_TEMPLATES),
        EVERY_REVISION,
    ),
    Exchange("resources/read", _with(server.READ_PARAMS), _gives(server.READ), EVERY_REVISION),
    Exchange("resources/subscribe", _with(server.SUBSCRIBE_PARAMS), _EMPTY, HANDSHAKE_ERA),
    Exchange("resources/unsubscribe", _with(server.UNSUBSCRIBE_PARAMS), _EMPTY, HANDSHAKE_ERA),
    Exchange("prompts/list", _maybe_with(PAGE_PARAMS), _gives(server.LIST_PROMPTS), EVERY_REVISION),
    Exchange(
        "prompts/get", _with(server.GET_PROMPT_PARAMS), _gives(server.GET_PROMPT), EVERY_REVISION
    ),
    Exchange(
        "completion/complete",
        _with(server.COMPLETE_PARAMS),
        _gives(server.COMPLETE),
        EVERY_REVISION,
    ),
    Exchange("logging/setLevel", _with(lifecycle.SET_LEVEL_PARAMS), _EMPTY, HANDSHAKE_ERA),
    Exchange(
        "subscriptions/listen",
        _with(lifecycle.LISTEN_PARAMS),
        _gives(lifecycle.LISTEN),
        STATELESS_ERA,
    ),
    Exchange(
        "sampling/createMessage",
        _with(client.CREATE_MESSAGE_PARAMS),
        _gives(client.CREATE_MESSAGE, instead_of_task="content"),
        by_server=HANDSHAKE_ERA,
    ),
    Exchange(
        "elicitation/create",
        _ELICIT,
        _gives(client.ELICIT, instead_of_task="action"),
        by_server=_ELICITATION,
    ),
    Exchange(
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
        _with(lifecycle.CANCELLED_PARAMS),
        by_client=EVERY_REVISION,
        by_server=EVERY_REVISION,
    ),
    Notice(
        "notifications/progress",
        _with(lifecycle.PROGRESS_PARAMS),
        by_client=HANDSHAKE_ERA,
        by_server=EVERY_REVISION,
    ),
    Notice("notifications/roots/list_changed", _NOTHING_NEEDED, by_client=HANDSHAKE_ERA),
    Notice("notifications/message", _with(lifecycle.LOG_PARAMS), by_server=EVERY_REVISION),
    Notice("notifications/tools/list_changed", _NOTHING_NEEDED, by_server=EVERY_REVISION),
    Notice("notifications/prompts/list_changed", _NOTHING_NEEDED, by_server=EVERY_REVISION),
    Notice("notifications/resources/list_changed", _NOTHING_NEEDED, by_server=EVERY_REVISION),
    Notice(
        "notifications/resources/updated",
        _with(lifecycle.UPDATED_PARAMS),
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
        _with(lifecycle.ELICITATION_COMPLETE_PARAMS),
        by_server=IN_NOVEMBER_2025,
    ),
    Notice(
        "notifications/subscriptions/acknowledged",
        _with(lifecycle.ACKNOWLEDGED_PARAMS),
        by_server=STATELESS_ERA,
    ),
)

# -- errors --------------------------------------------------------------------------------


def _error(*fields: Field) -> Obj:
    error = obj("Error", need("code", INTEGER), need("message", STRING), *fields)
    return obj("", need("error", error))


ANY_ERROR: Final = _error(may("data", ANY))
_URL_ELICITATION = obj("", need("elicitations", ListOf(client.URL_PARAMS)))
_CAPABILITY = obj("", need("requiredCapabilities", CLIENT_CAPABILITIES))
_VERSION = obj("", need("supported", ListOf(STRING)), need("requested", STRING))
ERRORS: Final[dict[int, Obj]] = {
    -32042: _error(need("data", _URL_ELICITATION, IN_NOVEMBER_2025)),
    -32021: _error(need("data", _CAPABILITY, STATELESS_ERA)),
    -32022: _error(need("data", _VERSION, STATELESS_ERA)),
}
"""The codes that carry data of a known shape; in other revisions they are codes like any other."""
