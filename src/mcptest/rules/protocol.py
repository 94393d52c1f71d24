"""Tables of the protocol: which methods exist when, who sends them, what they need declared."""

from __future__ import annotations

from typing import Any, Final

from mcptest.core.message import ABSENT
from mcptest.core.revision import EVERY_REVISION, HANDSHAKE_ERA, STATELESS_ERA, Revision, Window

META_PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = META_PREFIX + "protocolVersion"
CLIENT_CAPABILITIES: Final = META_PREFIX + "clientCapabilities"
CLIENT_INFO: Final = META_PREFIX + "clientInfo"
SERVER_INFO: Final = META_PREFIX + "serverInfo"
LOG_LEVEL: Final = META_PREFIX + "logLevel"
SUBSCRIPTION_ID: Final = META_PREFIX + "subscriptionId"

_SINCE_C = Window(since=Revision.V2025_06_18, until=Revision.V2026_07_28)
_TASKS = Window(since=Revision.V2025_11_25)  # core in 2025-11-25, an extension afterwards

CLIENT_REQUESTS: Final[dict[str, Window]] = {
    "initialize": HANDSHAKE_ERA,
    "ping": HANDSHAKE_ERA,
    "server/discover": STATELESS_ERA,
    "tools/list": EVERY_REVISION,
    "tools/call": EVERY_REVISION,
    "resources/list": EVERY_REVISION,
    "resources/read": EVERY_REVISION,
    "resources/templates/list": EVERY_REVISION,
    "resources/subscribe": HANDSHAKE_ERA,
    "resources/unsubscribe": HANDSHAKE_ERA,
    "prompts/list": EVERY_REVISION,
    "prompts/get": EVERY_REVISION,
    "completion/complete": EVERY_REVISION,
    "logging/setLevel": HANDSHAKE_ERA,
    "tasks/get": _TASKS,
    "tasks/result": _TASKS,
    "tasks/cancel": _TASKS,
    "tasks/list": _TASKS,
    "tasks/update": STATELESS_ERA,
    "subscriptions/listen": STATELESS_ERA,
}
SERVER_REQUESTS: Final[dict[str, Window]] = {
    "ping": HANDSHAKE_ERA,
    "sampling/createMessage": HANDSHAKE_ERA,
    "roots/list": HANDSHAKE_ERA,
    "elicitation/create": _SINCE_C,
    "tasks/get": Window(Revision.V2025_11_25, Revision.V2026_07_28),
    "tasks/result": Window(Revision.V2025_11_25, Revision.V2026_07_28),
    "tasks/cancel": Window(Revision.V2025_11_25, Revision.V2026_07_28),
    "tasks/list": Window(Revision.V2025_11_25, Revision.V2026_07_28),
}
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
CHANGE_NOTIFICATIONS: Final[dict[str, tuple[str, str]]] = {
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
}
LISTS: Final[dict[str, str]] = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
CACHEABLE: Final = frozenset({*LISTS, "resources/read", "server/discover"})
MAY_ASK_FOR_INPUT: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
STATELESS_CODES: Final = frozenset({-32020, -32021, -32022})
"""The errors that only a server of the stateless era sends: see `error_codes`."""
LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)


def exists(method: str, sender: str, revision: Revision | None) -> bool:
    """May `sender` make this request in the revision? An unknown revision has them all."""
    table = CLIENT_REQUESTS if sender == "client" else SERVER_REQUESTS
    window = table.get(method)
    return window is not None and (revision is None or revision in window)


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


def meta_pointer(key: str) -> str:
    """Where a key of `_meta` stands in the params of a message, as a JSON pointer."""
    return f"/params/_meta/{key.replace('/', '~1')}"


def meta_of(value: Any) -> dict[str, Any]:
    """The `_meta` object of params or a result, or an empty one."""
    meta = value.get("_meta") if type(value) is dict else None
    return meta if type(meta) is dict else {}
