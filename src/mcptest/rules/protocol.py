"""Tables of the protocol: which methods exist when, who sends them, what they need declared."""

from __future__ import annotations

from typing import Any, Final

from mcptest.core.message import ABSENT
from mcptest.core.revision import STATELESS_REVISIONS, TIMELINE, Revision
from mcptest.schema.message_shapes import message_table
from mcptest.session.pages import LIST_MEMBERS

META_PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = META_PREFIX + "protocolVersion"
CLIENT_CAPABILITIES: Final = META_PREFIX + "clientCapabilities"
CLIENT_INFO: Final = META_PREFIX + "clientInfo"
SERVER_INFO: Final = META_PREFIX + "serverInfo"
LOG_LEVEL: Final = META_PREFIX + "logLevel"
SUBSCRIPTION_ID: Final = META_PREFIX + "subscriptionId"

_TASKS_EXTENSION: Final = frozenset(
    {"tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/update"}
)
"""Requests of clients from 2026-07-28 on: what was core in 2025-11-25, and what came with it."""

SERVER_CAPABILITY: Final[dict[str, str]] = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/read": "resources",
    "resources/templates/list": "resources",
    "resources/subscribe": "resources",
    "resources/unsubscribe": "resources",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "completion/complete": "completions",
    "logging/setLevel": "logging",
}
"""What a server must have declared for a client to call the method."""

CLIENT_CAPABILITY: Final[dict[str, str]] = {
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
    "elicitation/create": "elicitation",
}
CHANGE_NOTIFICATIONS: Final[dict[str, tuple[str, str, str]]] = {
    "notifications/tools/list_changed": ("tools", "listChanged", "toolsListChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged", "promptsListChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged", "resourcesListChanged"),
    "notifications/resources/updated": ("resources", "subscribe", "resourceSubscriptions"),
}
"""With the capability, its member, and what a subscription asks for."""
CACHEABLE: Final = frozenset({*LIST_MEMBERS, "resources/read", "server/discover"})
MAY_ASK_FOR_INPUT: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
STATELESS_CODES: Final = frozenset({-32020, -32021, -32022})
"""The errors that only a server of the stateless era sends: see `error_codes`."""
LOG_LEVELS: Final = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)
"""From the least to the most urgent."""


def needed_meta(revision: Revision) -> dict[str, Any]:
    """The least that the `_meta` of every request of the stateless era holds."""
    return {PROTOCOL_VERSION: revision.wire_version, CLIENT_CAPABILITIES: {}}


def exists(method: str, sender: str, revision: Revision | None) -> bool:
    """May `sender` make this request in the revision? An unknown revision has them all."""
    spoken = TIMELINE if revision is None else (revision,)
    if sender == "client" and method in _TASKS_EXTENSION and spoken[-1] in STATELESS_REVISIONS:
        return True
    rows = (row for row in message_table().requests if row.method == method)
    return any(row.is_sent_by(sender, one) for row in rows for one in spoken)


def declares(capabilities: Any, name: str, member: str = "") -> bool:
    """Is the capability (and its boolean member) declared? null counts as not declared."""
    if not isinstance(capabilities, dict):
        return False
    capability = capabilities.get(name, ABSENT)
    if capability is ABSENT or capability is None or capability is False:
        return False
    return not member or (isinstance(capability, dict) and capability.get(member) is True)


def member_at(value: Any, *path: str) -> Any:
    """What stands at the end of a path through objects and arrays, or ABSENT."""
    for part in path:
        if isinstance(value, list):
            value = value[int(part)] if part.isdigit() and int(part) < len(value) else ABSENT
        else:
            value = value.get(part, ABSENT) if isinstance(value, dict) else ABSENT
    return value


def object_at(value: Any, *path: str) -> dict[str, Any]:
    """The object at the end of a path, or an empty one."""
    found = member_at(value, *path)
    return found if isinstance(found, dict) else {}


def objects_at(value: Any, *path: str) -> list[dict[str, Any]]:
    """The objects in the array at the end of a path."""
    found = member_at(value, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def meta_pointer(key: str) -> str:
    """Where a key of `_meta` stands in the params of a message, as a JSON pointer."""
    return f"/params/_meta/{key.replace('/', '~1')}"
