"""The tools as an agent sees them, from `tools.yml`. What is not allowed is not listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from mcptest.commands.mcp.roots import Allowed
from mcptest.commands.mcp.tool_commands import DEFAULT_LIMIT, MAX_LIMIT
from mcptest.commands.mcp.toolbox import Toolbox
from mcptest.servers.demo import versions
from mcptest.servers.demo.jsonrpc import NOT_BLANK
from mcptest.servers.demo.tool_list import Tool

Obj: TypeAlias = dict[str, Any]

_TABLE = Path(__file__).parent / "tools.yml"
_HINTS = {
    "reads": {"readOnlyHint": True, "openWorldHint": False},
    "runs": {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    },
    "writes": {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    },
}
_SHARED: dict[str, Obj] = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_LIMIT,
        "default": DEFAULT_LIMIT,
        "description": "After how many seconds it is ended",
    },
    "mode": {
        "type": "string",
        "enum": ["normal", "strict"],
        "default": "normal",
        "description": "strict: a broken SHOULD fails as well",
    },
    "fixture_dir": {
        "type": "path",
        "description": "Folder that stands for {{fixture}} in the suite",
        "examples": ["tests/data"],
    },
}
"""Parameters that several tools have."""
_OUTCOME: Obj = {
    "verdict": {"type": "string", "enum": ["passed", "failed", "nothing ran"]},
    "exit_code": {"type": "integer", "description": "That of the command"},
    "repeat": {"type": "string", "description": "The command line that does the same"},
    "report": {"type": "object", "description": "The JSON report, unless it is too long"},
    "text": {"type": "string", "description": "The outcome in words, without a report"},
}


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool of the table, which says what its members mean."""

    name: str
    title: str
    description: str
    hints: Literal["reads", "runs", "writes"]
    takes: dict[str, Obj | None]
    needs: tuple[str, ...] = ()
    gives: Obj | None = None
    command: tuple[str, ...] = ()
    file: str | None = None


def tools_for(allowed: Allowed, box: Toolbox) -> tuple[Tool, ...]:
    """What this agent may do, the harmless first."""
    listed = {"reads": True, "runs": bool(allowed.servers), "writes": allowed.write}
    rows = msgspec.yaml.decode(_TABLE.read_bytes(), type=tuple[_Row, ...])
    return tuple(_tool(row, allowed, box) for row in rows if listed[row.hints])


def _tool(row: _Row, allowed: Allowed, box: Toolbox) -> Tool:
    names = allowed.server_names
    server = {"type": "string", "enum": names, "description": "Which of the allowed servers"}
    shared = {**_SHARED, "server_name": server}
    outcome = _object(_OUTCOME, "verdict", "exit_code", "repeat")
    return Tool(
        box.body_of(row.name, row.command, row.file),
        row.title,
        row.description,
        {name: _schema(known or shared[name]) for name, known in row.takes.items()},
        _HINTS[row.hints],
        row.needs,
        outcome if row.gives is None else _object(row.gives, *row.gives),
        name=row.name,
    )


def _object(properties: Obj, *required: str) -> Obj:
    return {"type": "object", "properties": properties, "required": list(required)}


def _schema(told: Obj) -> Obj:
    """With what stands for a path, a revision or a text that is not blank."""
    if told["type"] == "revision":
        known = [*versions.ALL, "draft", *told.get("enum", ())]
        return {**told, "type": "string", "enum": known}
    if told["type"] == "path":
        words = f"{told['description']}, relative to the root folder"
        bounds = {"type": "string", "minLength": 1, "maxLength": 1_000}
        return {**told, **bounds, "description": words, "pattern": NOT_BLANK}
    return {**told, "pattern": NOT_BLANK} if "pattern" in told else told
