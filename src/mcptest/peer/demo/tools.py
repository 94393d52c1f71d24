"""The tools on offer: their names, words and schemas, revision by revision."""

from __future__ import annotations

from mcptest.peer.demo import bodies, versions
from mcptest.peer.demo.arguments import NOT_BLANK, problem_with
from mcptest.peer.demo.call import failure
from mcptest.peer.demo.exchange import ToolFailure
from mcptest.peer.demo.pictures import PNG_BASE64
from mcptest.peer.demo.protocol import INVALID_PARAMS, Refusal
from mcptest.peer.demo.world import LEVELS

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcptest.peer.demo.call import Call
    from mcptest.peer.demo.exchange import Body
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.world import World

PARAM_HEADER = "x-mcp-header"
READS = {"readOnlyHint": True, "openWorldHint": False}
CHANGES = {
    "readOnlyHint": False,
    "destructiveHint": False,
    "idempotentHint": False,
    "openWorldHint": False,
}


class Tool:
    """One tool. It is offered from the revision `since` on, up to but not including `until`."""

    def __init__(
        self,
        run: Callable[[Obj, Call], Obj | Body],
        title: str,
        description: str,
        properties: dict[str, Obj],
        hints: dict[str, bool] = READS,
        required: tuple[str, ...] = (),
        output: Obj | None = None,
        since: str = versions.V2024_11_05,
        until: str | None = None,
        header: dict[str, str] | None = None,
        icon: str | None = None,
        tasks: str | None = None,
        schema: Obj | None = None,
        name: str | None = None,
        input_schema: Obj | None = None,
        problem: Callable[[Obj], str | None] | None = None,
    ) -> None:
        self.name = name or run.__name__
        self.run = run
        self.title = title
        self.description = description
        self.input: Obj = {"type": "object", "properties": properties}
        if required:
            self.input["required"] = list(required)
        self.input["additionalProperties"] = False
        if input_schema is not None:
            self.input = input_schema
        self._problem = problem
        """What is wrong with arguments, where the schema is beyond our own validator."""
        self.hints = hints
        self.output = output
        self.since = since
        self.until = until
        self.header = header or {}
        self.icon = icon
        self.tasks = tasks
        """`optional` or `required`, where a call may or must become a task."""
        self.more_schema = schema or {}
        """Keywords of the listed schema that no argument needs."""

    def problem_with(self, arguments: Obj) -> str | None:
        """The first thing that is wrong with the arguments, in words."""
        if self._problem is not None:
            return self._problem(arguments)
        return problem_with(arguments, self.input, "arguments")

    def offered_in(self, version: str) -> bool:
        return versions.since(version, self.since) and not (
            self.until is not None and versions.since(version, self.until)
        )

    def describe(self, version: str) -> Obj:
        """The tool as `tools/list` shows it, with the members that this revision knows."""
        shown: Obj = {"name": self.name}
        if versions.since(version, versions.V2025_06_18):
            shown["title"] = self.title
        shown["description"] = self.description
        shown["inputSchema"] = self._input_schema(version)
        if self.output is not None and versions.since(version, versions.V2025_06_18):
            shown["outputSchema"] = self.output
        if versions.since(version, versions.V2025_03_26):
            shown["annotations"] = {"title": self.title, **self.hints}
        if self.icon is not None and versions.since(version, versions.V2025_11_25):
            shown["icons"] = [{"src": self.icon, "mimeType": "image/png", "sizes": ["8x8"]}]
        if self.tasks is not None and version == versions.V2025_11_25:
            shown["execution"] = {"taskSupport": self.tasks}
        return shown

    def _input_schema(self, version: str) -> Obj:
        if self.more_schema and versions.since(version, versions.V2025_11_25):
            return {**self.more_schema, **self.input}
        if not self.header or not versions.since(version, versions.V2026_07_28):
            return self.input
        properties = dict(self.input["properties"])
        for name, header in self.header.items():
            properties[name] = {**properties[name], PARAM_HEADER: header}
        return {**self.input, "properties": properties}


def text_argument(description: str, longest: int = 10_000, example: str = "") -> Obj:
    argument: Obj = {"type": "string", "minLength": 1, "maxLength": longest}
    argument["description"] = description
    if example:
        argument["examples"] = [example]
    return argument


def _question(description: str, example: str) -> Obj:
    return {**text_argument(description, example=example), "pattern": NOT_BLANK}


_ADDEND = {"type": "number", "minimum": -(10**12), "maximum": 10**12}
_PATH = "Path of the file, relative to the root folder, with / between its parts"

TOOLS: tuple[Tool, ...] = (
    Tool(
        bodies.add,
        "Add two numbers",
        "Adds two numbers and returns their sum, as text and as structured content.",
        {
            "a": {**_ADDEND, "description": "The first number to add"},
            "b": {**_ADDEND, "description": "The second number to add"},
        },
        required=("a", "b"),
        output={
            "type": "object",
            "properties": {"sum": {"type": "number", "description": "The sum of a and b"}},
            "required": ["sum"],
            "additionalProperties": False,
        },
    ),
    Tool(
        bodies.echo,
        "Echo a text",
        "Returns the given text unchanged. Use it to check that the server is reachable.",
        {
            "text": {
                "type": "string",
                "maxLength": 1_000_000,
                "description": "The text to send back",
                "examples": ["hello"],
            }
        },
        required=("text",),
    ),
    Tool(
        bodies.fail,
        "Fail on purpose",
        "Always fails, with an error result that carries the given message. Use it to see how "
        "failures of tools are shown.",
        {"message": text_argument("The message of the failure", example="out of paper")},
    ),
    Tool(
        bodies.countdown,
        "Count down",
        "Counts down a number of steps and reports progress after each, if the request asked for "
        "progress. Returns how many steps it was.",
        {
            "steps": {
                "type": "integer",
                "minimum": 1,
                "maximum": bodies.MAX_PROGRESS_STEPS,
                "default": 3,
                "description": "How many steps to count",
            },
            "delay_ms": {
                "type": "integer",
                "minimum": 0,
                "maximum": 1000,
                "default": 0,
                "description": "How many milliseconds each step takes",
            },
        },
    ),
    Tool(
        bodies.log,
        "Write log messages",
        "Sends one log message at each of the given levels. Only those at or above the level "
        "that the client asked for arrive. Returns how many were sent.",
        {
            "levels": {
                "type": "array",
                "maxItems": 50,
                "items": {"type": "string", "enum": list(LEVELS)},
                "description": "The levels to log at, in this order; all eight when left out",
            },
            "message": text_argument("The message to log", example="all is well"),
        },
    ),
    Tool(
        bodies.ask_model,
        "Ask the client's model",
        "Sends a question to the client's language model through sampling and returns its answer. "
        "Needs a client that supports sampling.",
        {"question": _question("The question for the model", "What is 6 times 7?")},
        {"readOnlyHint": True, "openWorldHint": True},
        required=("question",),
    ),
    Tool(
        bodies.ask_user,
        "Ask the user",
        "Shows the user a small form with a question and returns the answer. Needs a client that "
        "supports elicitation.",
        {"question": _question("The question for the user", "Which colour?")},
        {"readOnlyHint": True, "openWorldHint": True},
        required=("question",),
        since=versions.V2025_06_18,
    ),
    Tool(
        bodies.list_roots,
        "List the client's roots",
        "Asks the client for its roots and returns their URIs, one per line. Needs a client that "
        "supports roots.",
        {},
    ),
    Tool(
        bodies.read_file,
        "Read a file",
        "Returns the text of one file below the server's root folder. Symbolic links are not "
        "followed.",
        {"path": text_argument(_PATH, 1000, "hello.txt")},
        required=("path",),
    ),
    Tool(
        bodies.write_file,
        "Write a file",
        "Writes a text file below the server's root folder and replaces what it held before. The "
        "folder it is in must exist. Returns how much was written.",
        {
            "path": text_argument(_PATH, 1000, "hello.txt"),
            "text": {
                "type": "string",
                "maxLength": 1_000_000,
                "description": "The whole new content of the file",
                "examples": ["hello"],
            },
        },
        {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        required=("path", "text"),
    ),
    Tool(
        bodies.list_files,
        "List files",
        "Returns the files below the server's root folder, or below one folder in it, one path "
        "per line.",
        {"folder": text_argument("The folder to list; the root folder when left out", 1000)},
    ),
    Tool(
        bodies.weather,
        "Weather of a city",
        "Returns a made-up weather report for a city, as nested structured content. The same city "
        "always has the same weather.",
        {
            "city": text_argument("Name of the city", 100, "Paris"),
            "unit": {
                "type": "string",
                "enum": ["celsius", "fahrenheit"],
                "default": "celsius",
                "description": "Unit of the temperature",
            },
        },
        required=("city",),
        output={
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city that was asked for"},
                "conditions": {"type": "string", "description": "The weather in one word"},
                "temperature": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "number", "description": "The temperature"},
                        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                    },
                    "required": ["value", "unit"],
                },
                "wind": {
                    "type": "object",
                    "properties": {
                        "speed_kmh": {"type": "integer", "minimum": 0},
                        "direction": {"type": "string", "description": "Such as N or SW"},
                    },
                    "required": ["speed_kmh", "direction"],
                },
            },
            "required": ["city", "conditions", "temperature", "wind"],
        },
        header={"city": "City"},
    ),
    Tool(
        bodies.image,
        "Get a picture",
        "Returns a small red square as a PNG picture.",
        {},
        icon=f"data:image/png;base64,{PNG_BASE64}",
    ),
    Tool(
        bodies.link,
        "Link to a resource",
        "Returns the resource demo://greeting: as a link where the revision has links, otherwise "
        "embedded.",
        {},
    ),
    Tool(
        bodies.slow,
        "Wait",
        "Waits for the given time and then returns. Use it to try timeouts and cancellation.",
        {
            "seconds": {
                "type": "number",
                "minimum": 0,
                "maximum": 60,
                "description": "How many seconds to wait",
            }
        },
        required=("seconds",),
    ),
    Tool(
        bodies.bump,
        "Increase the counter",
        "Adds one to the resource demo://counter, tells everyone who subscribed to it and returns "
        "the new value.",
        {},
        CHANGES,
    ),
    Tool(
        bodies.toggle_tool,
        "Add or remove a tool",
        "Offers the additional tool named extra in this session, or takes it away again. The "
        "client is told that the list of tools changed.",
        {},
        CHANGES,
        # In 2026-07-28 a list may not change as a side effect of another request.
        until=versions.V2026_07_28,
    ),
)
EXTRA = Tool(
    bodies.extra,
    "Additional tool",
    "Exists only after toggle_tool was called, and answers with a fixed text.",
    {},
)


def offered_tools(world: World, version: str, with_extra: bool) -> list[Tool]:
    tools = [tool for tool in world.content.tools if tool.offered_in(version)]
    return [*tools, EXTRA] if with_extra else tools


def find_tool(name: str, world: World, version: str, with_extra: bool) -> Tool:
    extra = EXTRA if with_extra and name == EXTRA.name else None
    tool = world.content.tool_named(name) or extra
    if tool is None or not tool.offered_in(version):
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
