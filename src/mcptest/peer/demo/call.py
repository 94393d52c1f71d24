"""What a tool body may know and do while it serves one call."""

from __future__ import annotations

import json

from mcptest.peer.demo import versions
from mcptest.peer.demo.protocol import INVALID_PARAMS, Refusal, is_id, notification
from mcptest.peer.demo.world import LEVELS

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from typing import Any

    from mcptest.peer.demo.exchange import Exchange
    from mcptest.peer.demo.handshake import Session
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.world import World


class Call:
    """One request as its handler sees it, whatever the era and the transport."""

    __slots__ = (
        "_exchange",
        "_level",
        "_token",
        "declared",
        "params",
        "session",
        "version",
        "world",
    )

    def __init__(
        self,
        world: World,
        version: str,
        params: Obj,
        exchange: Exchange,
        level: str | None,
        declared: Obj,
        session: Session | None = None,
    ) -> None:
        self.world = world
        self.version = version
        self.params = params
        self.declared = declared
        """What the client can do."""
        self.session = session
        self._exchange = exchange
        self._level = None if "logging" in world.options.hide else level
        self._token = progress_token(params)

    def knows(self, first: str) -> bool:
        """Does the revision of this call know what came with the revision `first`?"""
        return versions.since(self.version, first)

    def progress(self, done: int, total: int, message: str) -> None:
        """Tell how far the work is, if the client asked to hear it."""
        if self._token is None or not self._exchange.can_notify:
            return
        params = {"progressToken": self._token, "progress": done, "total": total}
        if self.knows(versions.V2025_03_26):
            params["message"] = message
        self._exchange.send(notification("notifications/progress", params))

    def notify(self, method: str, params: Obj) -> None:
        """Tell something that belongs to this request."""
        if self._exchange.can_notify:
            self._exchange.send(notification(method, params))

    def pause_stream(self) -> None:
        """Let go of the connection, where the transport lets the client come back for the rest."""
        self._exchange.pause()

    def log(self, level: str, data: Any) -> None:
        """Tell something, if the client wants to hear this level."""
        if self._level is None or LEVELS.index(level) < LEVELS.index(self._level):
            return
        if self._exchange.can_notify:
            params = {"level": level, "logger": self.world.content.logger, "data": data}
            self._exchange.send(notification("notifications/message", params))


def progress_token(params: Obj) -> Any:
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        raise Refusal(INVALID_PARAMS, "Invalid params: _meta must be an object")
    if "progressToken" not in meta:
        return None
    token = meta["progressToken"]
    if not is_id(token):
        raise Refusal(
            INVALID_PARAMS, "Invalid params: progressToken must be a string or an integer"
        )
    return token


def text(words: str) -> Obj:
    """A tool result of one text."""
    return {"content": [{"type": "text", "text": words}]}


def structured(call: Call, value: Obj) -> Obj:
    """A tool result as data: also as text, and only as text where data is not known yet."""
    result = text(json.dumps(value, ensure_ascii=False))
    if call.knows(versions.V2025_06_18):
        result["structuredContent"] = value
    return result


def failure(words: str) -> Obj:
    """A tool result that tells the model what went wrong."""
    return {**text(words), "isError": True}
