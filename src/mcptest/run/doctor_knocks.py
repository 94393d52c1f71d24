"""What is said to a server at the door: requests of the stateless era, right ones and wrong ones.

All of them are sent before any answer is waited for, so that a server that keeps silent costs one
wait. None of them can change anything: they ask for what exists, or name what does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcptest.model.revision import Era, Revision
from mcptest.peer.stateless import PREFIX
from mcptest.suite.check_forms import Check, HttpRequest
from mcptest.wire.http_rules import (
    METHOD_HEADER,
    NAME_HEADER,
    SESSION_HEADER,
    VERSION_HEADER,
)

UNKNOWN_VERSION: Final = "1999-01-01"
UNKNOWN_METHOD: Final = "mcptest/unknown"
UNKNOWN_TOOL: Final = "mcptest-unknown-tool"
UNKNOWN_URI: Final = "mcptest://unknown/resource"
_DISCOVER: Final = "server/discover"


def knocks_for(a_list: str, transport: str, newer: Revision) -> dict[str, Check]:
    """The questions by name; none for a revision that begins with a handshake."""
    if newer.era is Era.HANDSHAKE:
        return {}
    knocks = {
        "discover": Check(method=_DISCOVER),
        "list": Check(method=a_list),
        "list-without-meta": Check(method=a_list, omit=("_meta",)),
        "list-without-version": Check(method=a_list, meta={PREFIX + "protocolVersion": None}),
        "list-without-capabilities": Check(
            method=a_list, meta={PREFIX + "clientCapabilities": None}
        ),
        "unknown-version": Check(
            method=_DISCOVER,
            meta={PREFIX + "protocolVersion": UNKNOWN_VERSION},
            headers={VERSION_HEADER: UNKNOWN_VERSION},
        ),
        "unknown-method": Check(method=UNKNOWN_METHOD),
    }
    return {**knocks, **_http_knocks(newer)} if transport == "http" else knocks


def _http_knocks(newer: Revision) -> Mapping[str, Check]:
    call = {"name": UNKNOWN_TOOL, "arguments": {}}
    version = {VERSION_HEADER: newer.wire_version}
    return {
        "method-missing": Check(method=_DISCOVER, headers={METHOD_HEADER: None}),
        "method-wrong": Check(method=_DISCOVER, headers={METHOD_HEADER: "prompts/list"}),
        "name-missing": Check(method="tools/call", params=call, headers={NAME_HEADER: None}),
        "name-wrong": Check(
            method="tools/call", params=call, headers={NAME_HEADER: "mcptest-another-name"}
        ),
        "version-differs": Check(method=_DISCOVER, headers={VERSION_HEADER: "2025-11-25"}),
        "session": Check(method=_DISCOVER, headers={SESSION_HEADER: "mcptest-no-session"}),
        "get": Check(http=HttpRequest("GET", headers={"Accept": "text/event-stream", **version})),
        "delete": Check(http=HttpRequest("DELETE", headers=version)),
    }
