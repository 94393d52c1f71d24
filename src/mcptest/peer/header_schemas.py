"""Tools whose arguments travel as HTTP headers too: known by their schemas before a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HEADER_MISMATCH = -32020


class HeaderSchemas:
    """Input schemas with such annotations, as far as they were listed, by their tools' names."""

    def __init__(self) -> None:
        self._schemas: dict[str, Mapping[str, Any]] = {}

    def learn(self, method: str, result: Mapping[str, Any]) -> None:
        if method != "tools/list":
            return
        from mcptest.wire.param_headers import ANNOTATION

        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            schema = tool.get("inputSchema") if isinstance(tool, dict) else None
            if isinstance(schema, dict) and ANNOTATION in str(schema):
                self._schemas[str(tool.get("name"))] = schema

    def of(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if method != "tools/call" or not self._schemas or params is None:
            return None
        return self._schemas.get(str(params.get("name")))

    def are_wanting(self, method: str, code: int | None, params: Mapping[str, Any] | None) -> bool:
        """The server misses a header, and the tool was never listed: that may be why."""
        return method == "tools/call" and code == HEADER_MISMATCH and not self.of(method, params)
