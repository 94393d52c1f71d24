"""The tools: what each does, and how it is listed.

The arguments fit its schema already when it is called; what they name is still hostile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from mcptest.commands import knowledge
from mcptest.commands.mcp.roots import Allowed, Roots
from mcptest.commands.mcp.tool_commands import (
    DEFAULT_LIMIT,
    FOR_AGENTS,
    MAX_LIMIT,
    CommandProcesses,
    Running,
    ToolCommand,
    WorkFolder,
    await_command,
    run_command,
    tool_result,
)
from mcptest.core.errors import ExitCode
from mcptest.core.safe_text import show
from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import ToolFailure
from mcptest.servers.demo.jsonrpc import NOT_BLANK
from mcptest.servers.demo.tool_list import Call, Tool

Obj: TypeAlias = dict[str, Any]

MAX_LISTED = 100
_SUITE = "suite.yaml"
_OPTIONS = {"revision_id": "--spec-version", "rules": "--rule", "tools": "--tool", "to": "--to"}
"""Arguments that are options of the command that a tool is."""
_USUAL_TIMEOUT = 30
"""Seconds for each request, where a command is told nothing."""
_WITH_MAX_TIME = frozenset({"audit", "compliance", "doctor"})
"""Commands that tell what they found before it was over."""


class Toolbox:
    """The bodies of the tools: one that is a command line, or the method with its name."""

    def __init__(self, allowed: Allowed, children: CommandProcesses) -> None:
        self._allowed = allowed
        self._roots = Roots(allowed.roots)
        self._children = children

    def body_of(self, name: str, command: tuple[str, ...], file: str | None) -> Callable[..., Any]:
        """`command`: the words of a command that a tool is, over a server or over a `file`."""
        if not command:
            return getattr(self, name)  # type: ignore[no-any-return]  # the table names methods
        if file is None:
            return partial(self._over_server, command)
        return partial(self._over_file, command, file)

    # what mcptest knows

    def explain_rule(self, arguments: Obj, call: Call) -> Obj:
        page = knowledge.page_of(arguments["id"])
        if page is None:
            name = show(arguments["id"], 40)
            raise ToolFailure(f"there is no rule {name!r}; list_rules has the ids of all")
        return tool_result(call, page, {"id": arguments["id"].strip().upper(), "page": page})

    def list_rules(self, arguments: Obj, call: Call) -> Obj:
        revision, side = arguments.get("revision_id"), arguments.get("side")
        found = knowledge.listed_rules(revision, side, arguments.get("contains", ""))
        start = int(arguments.get("offset", 0))
        shown = found[start : start + MAX_LISTED]
        lines = [f"{one['id']:<12} {one['severity']:<6} {one['title']}" for one in shown]
        left = max(0, len(found) - start - len(shown))
        lines.append(f"{len(found)} rules" + (f", {left} more: pass a larger offset" * bool(left)))
        return tool_result(call, "\n".join(lines), {"rules": shown, "total": len(found)})

    # what is on disk

    def list_tests(self, arguments: Obj, call: Call) -> Running:
        return self._over_suite(arguments, call, invalid_is_a_verdict=False)

    def validate_suite(self, arguments: Obj, call: Call) -> Running:
        if ("path" in arguments) == ("text" in arguments):
            raise ToolFailure("pass either path or text: where the suite is, or the suite itself")
        return self._over_suite(arguments, call, invalid_is_a_verdict=True)

    def _over_suite(self, arguments: Obj, call: Call, *, invalid_is_a_verdict: bool) -> Running:
        with WorkFolder(self._roots) as place:
            if "text" in arguments:
                path = place.put(_SUITE, arguments["text"])
            else:
                path = place.bring(arguments["path"])
            order = ToolCommand(
                ("run", "--list", path, *_fixture(arguments, place)),
                ("--server=demo",),
                keeps_report=False,
                invalid_is_a_verdict=invalid_is_a_verdict,
            )
            return (yield from run_command(order, call, place, self._children))

    def _over_file(
        self, command: tuple[str, ...], option: str, arguments: Obj, call: Call
    ) -> Running:
        with WorkFolder(self._roots) as place:
            words = (*command, option + place.bring(arguments["path"]), *_options(arguments))
            order = ToolCommand(words, (FOR_AGENTS,), limit=_limit(arguments))
            return (yield from run_command(order, call, place, self._children))

    # what needs a server

    def run_suite(self, arguments: Obj, call: Call) -> Running:
        server = self._allowed.server(arguments["server_name"])
        with WorkFolder(self._roots) as place:
            path, fixture = place.bring(arguments["path"]), _fixture(arguments, place)
            folder = fixture[0].partition("=")[2] if fixture else ""
            yield from self._guarded(path, folder, call, place)
            select = [f"-k={arguments['select']}"] if "select" in arguments else []
            order = ToolCommand(
                ("run", f"--server={server.name}", path, *select, *fixture),
                (FOR_AGENTS, *_patience(arguments)),
                server,
                _limit(arguments),
            )
            return (yield from run_command(order, call, place, self._children))

    def _guarded(self, path: str, fixture: str, call: Call, place: WorkFolder) -> Running:
        guard = ToolCommand(
            (path, fixture), keeps_report=False, module="mcptest.commands.mcp.suite_guard"
        )
        found = yield from await_command(guard, call, place, self._children)
        if found.code != ExitCode.OK:
            reasons = found.out or found.err or f"it could not be looked at ({found.code})"
            raise ToolFailure(
                f"this suite is not run for an agent:\n{reasons}\n"
                "Remove that, or ask a person to run it with mcptest run."
            )
        return {}

    def _over_server(self, command: tuple[str, ...], arguments: Obj, call: Call) -> Running:
        server = self._allowed.server(arguments["server_name"])
        # What was found before it is over is told, where the command can do so.
        most = _limit(arguments) * 5 // 6  # it has to start before it, and to end after it
        bounded = most > 0 and command[0] in _WITH_MAX_TIME
        limits = [*_patience(arguments), *([f"--max-time={most}s"] if bounded else [])]
        with WorkFolder(self._roots) as place:
            order = ToolCommand(
                (*command, f"--server={server.name}", *_options(arguments)),
                (FOR_AGENTS, *limits),
                server,
                _limit(arguments),
            )
            return (yield from run_command(order, call, place, self._children))

    # what writes

    def write_suite(self, arguments: Obj, call: Call) -> Running:
        path = arguments["path"]
        if not path.endswith((".yaml", ".yml")):
            raise ToolFailure("a suite is a file that ends with .yaml or .yml")
        with WorkFolder(self._roots) as place:
            words = ("run", "--list", "--server=demo", place.put(_SUITE, arguments["text"]))
            order = ToolCommand((*words, "--fixture=."), keeps_report=False)
            checked = yield from await_command(order, call, place, self._children)
        if checked.code != ExitCode.OK:
            raise ToolFailure(f"nothing was written:\n{checked.err or checked.out}")
        written = self._roots.write(
            path, arguments["text"].encode(), replace=arguments.get("replace", False)
        )
        return tool_result(call, f"Wrote {written}.", {"path": written})


def _fixture(arguments: Obj, place: WorkFolder) -> list[str]:
    if "fixture_dir" not in arguments:
        return []
    return [f"--fixture={place.bring(arguments['fixture_dir'])}"]


def _options(arguments: Obj) -> list[str]:
    """What the arguments say as options; those of a list once for each of its items."""
    given = {name: arguments[name] for name in _OPTIONS if name in arguments}
    words = [
        f"{_OPTIONS[name]}={one}"
        for name, value in given.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return words + ["--strict"] * (arguments.get("mode") == "strict")


def _patience(arguments: Obj) -> list[str]:
    """So that a server which does not answer is told as that before the call is over."""
    third = _limit(arguments) // 3  # a server may have to be ended after it
    return [f"--timeout={third}s"] if 0 < third < _USUAL_TIMEOUT else []


def _limit(arguments: Obj) -> int:
    return int(arguments.get("limit", DEFAULT_LIMIT))


# -- The tools as an agent sees them, from `offers.yml`: what is not allowed is not listed --------


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


class Offers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hints: dict[str, Obj]
    shared: dict[str, Obj]
    """Parameters that several tools have."""
    outcome: Obj
    tools: tuple[_Row, ...]
    resources: tuple[Obj, ...]
    prompts: dict[str, Obj]


def read_offers() -> Offers:
    return msgspec.yaml.decode((Path(__file__).parent / "offers.yml").read_bytes(), type=Offers)


def tools_for(allowed: Allowed, box: Toolbox, table: Offers) -> tuple[Tool, ...]:
    """What this agent may do, the harmless first."""
    listed = {"reads": True, "runs": bool(allowed.servers), "writes": allowed.write}
    table.shared["limit"] |= {"maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
    table.shared["server_name"]["enum"] = allowed.server_names
    return tuple(_tool(row, table, box) for row in table.tools if listed[row.hints])


def _tool(row: _Row, table: Offers, box: Toolbox) -> Tool:
    shared = table.shared
    outcome = _object(table.outcome, "verdict", "exit_code", "repeat")
    return Tool(
        box.body_of(row.name, row.command, row.file),
        row.title,
        row.description,
        {name: _schema(known or shared[name]) for name, known in row.takes.items()},
        table.hints[row.hints],
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
