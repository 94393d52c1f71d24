"""The tools on offer: what they do, and their names, words and schemas, revision by revision."""

from __future__ import annotations

import json

from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import (
    ToolFailure,
    ask_form,
    ask_roots,
    confirm_with_user,
    sample_from_model,
    text,
)
from mcptest.servers.demo.jsonrpc import (
    INVALID_PARAMS,
    Declared,
    Refusal,
    is_id,
    notification,
    problem_with,
)
from mcptest.servers.demo.resources import DEMO, GREETING, GREETING_URI, headed, read_resource
from mcptest.servers.demo.world import LEVELS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from mcptest.servers.demo.exchange import Body, ServerExchange
    from mcptest.servers.demo.handshake_era import HandshakeSession
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.world import World

    Run: TypeAlias = Callable[[Obj, "Call"], Obj | Body]


class Call(Declared):
    """One request as its handler sees it, whatever the era and the transport."""

    world: World
    version: str
    params: Obj
    exchange: ServerExchange
    level: str | None
    """From which on the client wants to hear log messages."""
    declared: Obj
    """What the client can do."""
    session: HandshakeSession | None = None

    def __post_init__(self) -> None:
        if "logging" in self.world.options.hide:
            self.level = None
        self._token = progress_token(self.params)

    def knows(self, first: str) -> bool:
        """Does the revision of this call know what came with the revision `first`?"""
        return versions.since(self.version, first)

    def has_extra(self, what: str) -> bool:
        """Whether this list has one more item for now."""
        return self.session is not None and what in self.session.extra

    def progress(self, done: int, total: int, message: str) -> None:
        """Tell how far the work is, if the client asked to hear it."""
        if self._token is not None:
            params = {"progressToken": self._token, "progress": done, "total": total}
            if self.knows(versions.V2025_03_26):
                params["message"] = message
            self.notify("notifications/progress", params)

    def notify(self, method: str, params: Obj) -> None:
        """Tell something that belongs to this request."""
        if self.exchange.can_notify:
            self.exchange.send(notification(method, params))

    def log(self, level: str, data: Any) -> None:
        """Tell something, if the client wants to hear this level."""
        if self.level is not None and LEVELS.index(level) >= LEVELS.index(self.level):
            params = {"level": level, "logger": self.world.content.logger, "data": data}
            self.notify("notifications/message", params)


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


def structured(call: Call, value: Obj) -> Obj:
    """A tool result as data: also as text, and only as text where data is not known yet."""
    result = text(json.dumps(value, ensure_ascii=False))
    if call.knows(versions.V2025_06_18):
        result["structuredContent"] = value
    return result


def failure(words: str) -> Obj:
    """A tool result that tells the model what went wrong."""
    return {**text(words), "isError": True}


_CONDITIONS = ("sunny", "cloudy", "rainy", "windy", "snowy")
_DIRECTIONS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


def add(arguments: Obj, call: Call) -> Obj:
    return structured(call, {"sum": arguments["a"] + arguments["b"]})


def echo(arguments: Obj, call: Call) -> Obj:
    return text(arguments["text"])


def fail(arguments: Obj, call: Call) -> Obj:
    return failure(arguments.get("message", "This tool always fails."))


def countdown(arguments: Obj, call: Call) -> Body:
    steps = int(arguments.get("steps", 3))
    delay = arguments.get("delay_ms", 0) / 1000
    for step in range(1, steps + 1):
        yield delay
        call.progress(step, steps, f"{steps - step} to go")
    return text(f"Counted down {steps} steps.")


def log(arguments: Obj, call: Call) -> Obj:
    levels = arguments.get("levels", list(LEVELS))
    message = arguments.get("message", "Hello from the demo server.")
    for level in levels:
        call.log(level, {"message": message})
    return text(f"Logged at {len(levels)} levels: {', '.join(levels)}.")


def ask_model(arguments: Obj, call: Call) -> Body:
    return sample_from_model(arguments["question"])


def ask_user(arguments: Obj, call: Call) -> Body:
    return confirm_with_user(arguments["question"], with_mode=call.knows(versions.V2025_11_25))


def list_roots(arguments: Obj, call: Call) -> Body:
    answer = yield ask_roots("roots")
    uris = "\n".join(root["uri"] for root in answer["roots"])
    return text(uris or "The client has no roots.")


def read_file(arguments: Obj, call: Call) -> Obj:
    return text(call.world.folder.read(arguments["path"]))


def write_file(arguments: Obj, call: Call) -> Obj:
    size = call.world.folder.write(arguments["path"], arguments["text"])
    return text(f"Wrote {size} bytes to {arguments['path']}.")


def list_files(arguments: Obj, call: Call) -> Obj:
    names = call.world.folder.names(arguments.get("folder", ""))
    return text("\n".join(names) if names else "There are no files.")


def weather(arguments: Obj, call: Call) -> Obj:
    """Made up, but the same for the same city every time."""
    city = arguments["city"]
    unit = arguments.get("unit", "celsius")
    seed = sum(city.encode())
    celsius = seed % 36 - 5
    value = celsius if unit == "celsius" else celsius * 9 / 5 + 32
    report = {
        "city": city,
        "conditions": _CONDITIONS[seed % len(_CONDITIONS)],
        "temperature": {"value": value, "unit": unit},
        "wind": {"speed_kmh": seed % 60, "direction": _DIRECTIONS[seed % len(_DIRECTIONS)]},
    }
    return structured(call, report)


def link(arguments: Obj, call: Call) -> Obj:
    if call.knows(versions.V2025_06_18):
        resource = GREETING.describe(call.version)
        return {"content": [{"type": "resource_link", **resource}]}
    if "resources" in call.world.options.hide:
        return text(GREETING_URI)
    contents = read_resource(GREETING_URI, call.world)
    return {"content": [{"type": "resource", "resource": contents}]}


def slow(arguments: Obj, call: Call) -> Body:
    seconds = arguments["seconds"]
    yield seconds
    return text(f"Waited {seconds} seconds.")


def bump(arguments: Obj, call: Call) -> Obj:
    return text(f"The counter is now {call.world.bump()}.")


def toggle_tool(arguments: Obj, call: Call) -> Obj:
    # Not offered in 2026-07-28: a list may not change there as a side effect of another request.
    assert call.session is not None, "offered in the handshake era only"
    offered = call.session.toggle_extra("tools")
    return text(f"The tool extra is {'now' if offered else 'no longer'} offered.")


PARAM_HEADER = "x-mcp-header"
READS = {"readOnlyHint": True, "openWorldHint": False}
NO_PROPERTIES: dict[str, Obj] = {}
NO_HEADERS: dict[str, str] = {}


class Tool(Declared):
    """One tool. It is offered from the revision `since` on, up to but not including `until`."""

    run: Run
    title: str
    description: str
    properties: dict[str, Obj] = NO_PROPERTIES
    hints: dict[str, bool] = READS
    required: Iterable[str] = ()
    output: Obj | None = None
    since: str = versions.V2024_11_05
    until: str | None = None
    header: dict[str, str] = NO_HEADERS
    icon: str | None = None
    tasks: str | None = None
    """`optional` or `required`, where a call may or must become a task."""
    schema: Obj | None = None
    """Keywords of the listed schema that no argument needs."""
    name: str = ""
    """That of the function where none is given."""
    input_schema: Obj | None = None
    """In place of `properties` and `required`."""
    problem: Callable[[Obj], str | None] | None = None
    """What is wrong with arguments, where the schema is beyond our own validator."""

    def __post_init__(self) -> None:
        self.name = self.name or self.run.__name__
        self.input: Obj = {"type": "object", "properties": self.properties}
        if self.required:
            self.input["required"] = list(self.required)
        self.input["additionalProperties"] = False
        if self.input_schema is not None:
            self.input = self.input_schema

    def problem_with(self, arguments: Obj) -> str | None:
        """The first thing that is wrong with the arguments, in words."""
        if self.problem is not None:
            return self.problem(arguments)
        return problem_with(arguments, self.input, "arguments")

    def offered_in(self, version: str) -> bool:
        return versions.since(version, self.since) and not (
            self.until is not None and versions.since(version, self.until)
        )

    def describe(self, version: str) -> Obj:
        """The tool as `tools/list` shows it, with the members that this revision knows."""
        shown = headed(self, version, name=self.name)
        schema = self.input
        if self.schema and versions.since(version, versions.V2025_11_25):
            schema = {**self.schema, **schema}
        elif self.header and versions.since(version, versions.V2026_07_28):
            properties = dict(schema["properties"])
            for name, header in self.header.items():
                properties[name] = {**properties[name], PARAM_HEADER: header}
            schema = {**schema, "properties": properties}
        shown["inputSchema"] = schema
        if self.output is not None and versions.since(version, versions.V2025_06_18):
            shown["outputSchema"] = self.output
        if versions.since(version, versions.V2025_03_26):
            shown["annotations"] = {"title": self.title, **self.hints}
        if self.icon is not None and versions.since(version, versions.V2025_11_25):
            shown["icons"] = [{"src": self.icon, "mimeType": "image/png", "sizes": ["8x8"]}]
        if self.tasks is not None and version == versions.V2025_11_25:
            shown["execution"] = {"taskSupport": self.tasks}
        return shown


def declared_tools(offers: Obj, *runs: Run | str, **named: Run) -> tuple[Tool, ...]:
    """The tools that these functions run, as the offers have them under the same names, or under
    the names that they are given, and in that order. One that is only a name does what they say."""
    code = {run if isinstance(run, str) else run.__name__: run for run in runs} | named

    def tool(name: str, about: Obj) -> Tool:
        run, about = code[name], dict(about)
        if isinstance(run, str):
            is_form = "form" in about
            run = _asks_by_form(about.pop("form")) if is_form else _gives(about.pop("result"))
        return Tool(run, name=name, **about)

    return tuple(tool(name, about) for name, about in offers["tools"].items() if name in code)


def _gives(result: Obj) -> Run:
    return lambda arguments, call: {**result}


def _asks_by_form(form: Obj) -> Run:
    """What fills in a form and then says what is in it, or in its place where that was left out."""
    says, otherwise = form["says"], form.get("otherwise", {})

    def run(arguments: Obj, call: Call) -> Body:
        content = yield from ask_form(
            form["key"], form["question"], form["fields"], form.get("loose", False)
        )
        return text(says.format_map({**otherwise, **content, "count": len(content)}))

    return run


TOOLS = declared_tools(
    DEMO,
    *(add, echo, fail, countdown, log, ask_model, ask_user, list_roots, read_file, write_file),
    *(list_files, weather, "image", link, slow, bump, toggle_tool),
)
(EXTRA,) = declared_tools(DEMO, "extra")


def offered_tools(call: Call) -> list[Tool]:
    tools = [tool for tool in call.world.content.tools if tool.offered_in(call.version)]
    return [*tools, EXTRA] if call.has_extra("tools") else tools


def find_tool(call: Call, name: str) -> Tool:
    extra = EXTRA if name == EXTRA.name and call.has_extra("tools") else None
    tool = call.world.content.tool_named.get(name) or extra
    if tool is None or not tool.offered_in(call.version):
        raise Refusal(INVALID_PARAMS, f"Unknown tool: {name[:200]}")
    return tool


def call_tool(tool: Tool, arguments: Obj, call: Call) -> Obj | Body:
    """Run a tool. Bad arguments are a protocol error up to 2025-06-18, and for the model after."""
    problem = tool.problem_with(arguments)
    if problem is not None:
        if call.knows(versions.V2025_11_25):
            return failure(f"Invalid arguments for tool {tool.name}: {problem}")
        raise Refusal(INVALID_PARAMS, f"Invalid arguments for tool {tool.name}: {problem}")
    try:
        outcome = tool.run(arguments, call)
    except ToolFailure as problem_of_tool:
        return failure(str(problem_of_tool))
    return outcome if isinstance(outcome, dict) else _guarded(outcome)


def _guarded(body: Body) -> Body:
    try:
        return (yield from body)
    except ToolFailure as problem:
        return failure(str(problem))
