"""The tools as an agent sees them: names, words and schemas. What is not allowed is not listed."""

from __future__ import annotations

from typing import Any, TypeAlias

from mcptest.commands.mcp.roots import Allowed
from mcptest.commands.mcp.tool_commands import DEFAULT_LIMIT, MAX_LIMIT
from mcptest.commands.mcp.toolbox import Toolbox
from mcptest.servers.demo import versions
from mcptest.servers.demo.jsonrpc import NOT_BLANK
from mcptest.servers.demo.tool_list import Tool

Obj: TypeAlias = dict[str, Any]

_READS = {"readOnlyHint": True, "openWorldHint": False}
_RUNS = {
    "readOnlyHint": False,
    "destructiveHint": False,
    "idempotentHint": False,
    "openWorldHint": True,
}
_WRITES = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": True,
    "openWorldHint": False,
}
_LIMIT: Obj = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_LIMIT,
        "default": DEFAULT_LIMIT,
        "description": "After how many seconds it is ended",
    }
}
_MODE: Obj = {
    "mode": {
        "type": "string",
        "enum": ["normal", "strict"],
        "default": "normal",
        "description": "strict: a broken SHOULD fails as well",
    }
}
_OUTCOME: Obj = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": ["passed", "failed", "nothing ran"]},
        "exit_code": {"type": "integer", "description": "That of the command"},
        "repeat": {"type": "string", "description": "The command line that does the same"},
        "report": {"type": "object", "description": "The JSON report, unless it is too long"},
        "text": {"type": "string", "description": "The outcome in words, without a report"},
    },
    "required": ["verdict", "exit_code", "repeat"],
}


def _text(description: str, longest: int, *examples: str, least: int = 1) -> Obj:
    shown: Obj = {"type": "string", "minLength": least, "maxLength": longest}
    return {**shown, "description": description, "examples": list(examples)}


def _path(what: str, example: str) -> Obj:
    return {**_text(f"{what}, relative to the root folder", 1_000, example), "pattern": NOT_BLANK}


def _revision(words: str, *more: str) -> Obj:
    return {"type": "string", "enum": [*versions.ALL, "draft", *more], "description": words}


_FIXTURE = {"fixture_dir": _path("Folder that stands for {{fixture}} in the suite", "tests/data")}


def tools_for(allowed: Allowed, box: Toolbox) -> tuple[Tool, ...]:
    """What this agent may do, the harmless first."""
    tools = _knowing(box) + _of_suites(box) + _of_what_was_kept(box)
    if allowed.servers:
        names = allowed.server_names
        server = {"type": "string", "enum": names, "description": "Which of the allowed servers"}
        tools += _running(box, server) + _looking_at_servers(box, server)
    if allowed.write:
        tools += _writing(box)
    return tools


def _knowing(box: Toolbox) -> tuple[Tool, ...]:
    return (
        Tool(
            box.explain_rule,
            "Explain a rule",
            "Returns the page of one rule by its id: what the specification demands, why, and what "
            "proves a violation. Also for codes of the linter.",
            {"id": {**_text("Id of the rule", 40, "INV-003"), "pattern": NOT_BLANK}},
            _READS,
            ("id",),
            _object(
                id={"type": "string", "description": "The id"},
                page={"type": "string", "description": "The page as text"},
            ),
        ),
        Tool(
            box.list_rules,
            "List rules",
            "Lists the rules that servers and clients are judged by, with id, severity and title. "
            "Narrow it by revision, by the side that is judged, or by words that a title contains; "
            "an offset gives the next hundred.",
            {
                "revision_id": _revision("Only rules that hold in this revision"),
                "side": {
                    "type": "string",
                    "enum": ["server", "client"],
                    "description": "Only rules that judge this side",
                },
                "contains": _text("Words of the title or id", 100, "progress", least=0),
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 100_000,
                    "default": 0,
                    "description": "How many rules to pass over",
                },
            },
            _READS,
            output=_object(
                rules={"type": "array", "items": _RULE, "description": "At most a hundred"},
                total={"type": "integer", "description": "How many there are in all"},
            ),
        ),
    )


_RULE: Obj = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("id", "severity", "title")},
    "required": ["id", "severity", "title"],
}


def _object(**properties: Obj) -> Obj:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _of_suites(box: Toolbox) -> tuple[Tool, ...]:
    return (
        Tool(
            box.list_tests,
            "List tests",
            "Lists the tests of the suites at a path, one line each with its place. A fixture "
            "folder is needed where a suite mentions one. No test is run.",
            {"path": _path("Suite file, or folder of suites", "evals/"), **_FIXTURE},
            _READS,
            ("path",),
            _OUTCOME,
        ),
        Tool(
            box.validate_suite,
            "Validate a suite",
            "Checks a YAML suite, given by its path or as text, without starting anything. Every "
            "mistake comes back with line, column and advice. A fixture folder may stand in.",
            {
                "path": _path("Suite file, or folder of suites", "evals/add.yaml"),
                "text": _text("The YAML itself, instead of a path", 200_000, "tests: []"),
                **_FIXTURE,
            },
            _READS,
            output=_OUTCOME,
        ),
    )


def _of_what_was_kept(box: Toolbox) -> tuple[Tool, ...]:
    return (
        Tool(
            box.judge_capture,
            "Judge a capture",
            "Judges the recorded MCP session at a path (mcptest record makes one) by every rule of "
            "a revision that holds for whole sessions, in normal or strict mode, within a time "
            "limit. Names the message behind each violation.",
            {
                "path": _path("The capture", "session.jsonl"),
                "revision_id": _revision(
                    "Judge by this revision instead of the one that was spoken"
                ),
                **_MODE,
                **_LIMIT,
            },
            _READS,
            ("path",),
            _OUTCOME,
        ),
        Tool(
            box.lint_tools,
            "Lint a tools/list answer",
            "Looks in a stored tools/list answer or capture, found at a path, for tools that a "
            "model can't use well: missing words, loose schemas, high token costs.",
            {"path": _path("The stored answer", "tools.json"), **_LIMIT},
            _READS,
            ("path",),
            _OUTCOME,
        ),
        Tool(
            box.read_report,
            "Read a stored report",
            "Shows the outcome of an earlier run again from its JSON report at a path: counts, "
            "each failure with its proof, and how to repeat it.",
            {"path": _path("What --json-file wrote", "run.json"), **_LIMIT},
            _READS,
            ("path",),
            _OUTCOME,
        ),
    )


def _running(box: Toolbox, server: Obj) -> tuple[Tool, ...]:
    return (
        Tool(
            box.run_suite,
            "Run a suite",
            "Starts an allowed server and runs the tests of the suites at a path against it; "
            "select narrows them by name, a fixture folder is copied for each. Creates no files.",
            {
                "path": _path("Suite file, or folder of suites", "evals/"),
                "server_name": server,
                "select": _text(
                    "Expression over names, with and, or, not, *", 200, "read and not slow"
                ),
                **_FIXTURE,
                **_LIMIT,
            },
            _RUNS,
            ("path", "server_name"),
            _OUTCOME,
        ),
        Tool(
            box.compliance_run,
            "Judge a live server",
            "Starts a server, probes it, and judges it by the rules of a revision of the MCP "
            "specification, strict or not; gives a grade and the proof of each violation. Calls "
            "only tools that say they read.",
            {
                "server_name": server,
                "revision_id": _revision(
                    "Judge by this revision; all: by each that is spoken", "all"
                ),
                "rules": {
                    "type": "array",
                    "maxItems": 50,
                    "items": {"type": "string", "maxLength": 40},
                    "description": "Only these rules, by id",
                },
                **_MODE,
                **_LIMIT,
            },
            _RUNS,
            ("server_name",),
            _OUTCOME,
        ),
    )


def _looking_at_servers(box: Toolbox, server: Obj) -> tuple[Tool, ...]:
    return (
        Tool(
            box.lint_server,
            "Lint a live server",
            "Asks a running server for its tools, prompts and resources and reports what keeps a "
            "model from using them well. No tool is called.",
            {"server_name": server, **_LIMIT},
            _RUNS,
            ("server_name",),
            _OUTCOME,
        ),
        Tool(
            box.audit_server,
            "Audit a live server",
            "Without any suite: calls the tools of a server that say they only read, with "
            "plausible arguments, and tells which are healthy, crash, hang or lie.",
            {
                "server_name": server,
                "tools": {
                    "type": "array",
                    "maxItems": 50,
                    "items": {"type": "string", "maxLength": 200},
                    "description": "Only the tools with these names",
                },
                **_LIMIT,
            },
            _RUNS,
            ("server_name",),
            _OUTCOME,
        ),
        Tool(
            box.doctor,
            "Plan a migration",
            "Tries on the running server what will break when it moves to another revision of the "
            "protocol, with the fix for each item.",
            {"server_name": server, "to": _revision("The revision to move to"), **_LIMIT},
            _RUNS,
            ("server_name", "to"),
            _OUTCOME,
        ),
    )


def _writing(box: Toolbox) -> tuple[Tool, ...]:
    return (
        Tool(
            box.write_suite,
            "Write a suite",
            "Writes YAML text to a new suite file below the root folder, once it is known to be "
            "sound. An existing file stays as it is unless replace is set.",
            {
                "path": _path("The new file, ending in .yaml", "evals/add.yaml"),
                "text": _text("The whole suite as YAML", 200_000, "tests: []"),
                "replace": {
                    "type": "boolean",
                    "default": False,
                    "description": "Whether an existing file may be overwritten",
                },
            },
            _WRITES,
            ("path", "text"),
            _object(path={"type": "string", "description": "Where it was written"}),
        ),
    )
