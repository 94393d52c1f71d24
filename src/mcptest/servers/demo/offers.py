"""What a server offers: tools, prompts and resources, what they do, how each revision shows them,
and how requests for them are served.

The demo is one content (see `demo_content`); the same eras and transports serve any other.
"""

from __future__ import annotations

import json

from mcptest import __version__
from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import (
    LEVELS,
    Call,
    ToolFailure,
    ask_form,
    ask_roots,
    confirm_with_user,
    sample_from_model,
    text,
)
from mcptest.servers.demo.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    SCHEMAS,
    Declared,
    Refusal,
    problem_with,
    read_data,
    require_fit,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from typing import Any, TypeAlias

    from mcptest.servers.demo.exchange import Body, Handler
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.world import World

    Run: TypeAlias = Callable[[Obj, "Call"], Obj | Body]

PNG_BASE64 = (
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAIAQMAAAD+wSzIAAAAA1BMVEXQICCEGQyAAAAAC0lEQVR42mNgQAUAABAA"
    "AaoZ+IIAAAAASUVORK5CYII="
)
NOTES = 150
FACTS = 12
DEMO = read_data("demo.json", PNG=PNG_BASE64, NOTES=str(NOTES))
"""Who the demo is, its tools and prompts by their names, and its resources and templates."""


def headed(item: Any, version: str, **named: str) -> Obj:
    """How every item of a list begins: its name, its title from 2025-06-18 on, and what it is."""
    title = {"title": item.title} if versions.since(version, versions.V2025_06_18) else {}
    return {**named, **title, "description": item.description}


class Resource(Declared):
    """One fixed resource, as `resources/list` shows it."""

    uri: str
    name: str
    title: str
    description: str
    kind: str
    size: int | None = None
    annotations: Obj | None = None
    contents: Obj | Callable[[World], Obj] | None = None
    """What it holds: `text` or `blob`, or what gives them. None: it can't be read."""
    volatile: bool = False
    """Whether what was read is old at once."""

    def describe(self, version: str) -> Obj:
        shown = headed(self, version, uri=self.uri, name=self.name)
        shown["mimeType"] = self.kind
        if self.size is not None:
            shown["size"] = self.size
        if self.annotations is not None:
            shown["annotations"] = self.annotations
        return shown


class Template(Declared):
    """A URI with one variable, and what it gives for a value: a text, or None where there is none.

    `values` are those that are suggested for the variable.
    """

    before: str
    after: str
    name: str
    title: str
    description: str
    text_of: Callable[[str], str | None] = "This is the resource with the id {}.".format
    values: Callable[[], tuple[str, ...]] = tuple
    variable: str = "id"
    kind: str = "text/plain"

    @property
    def uri(self) -> str:
        return f"{self.before}{{{self.variable}}}{self.after}"

    def text_at(self, uri: str) -> str | None:
        """The text of this URI, where it is one of this template."""
        if not (uri.startswith(self.before) and uri.endswith(self.after)):
            return None
        value = uri[len(self.before) : len(uri) - len(self.after)]
        return self.text_of(value) if value and "/" not in value else None

    def describe(self, version: str) -> Obj:
        shown = headed(self, version, uriTemplate=self.uri, name=self.name)
        return {**shown, "mimeType": self.kind}


def _fact(number: int) -> str:
    return f"{number} squared is {number * number}."


GREETING, LOGO, COUNTER = (Resource(**one) for one in DEMO["resources"])
COUNTER.contents = lambda world: {"text": str(world.counter)}
GREETING_URI = GREETING.uri
RESOURCES: tuple[Resource, ...] = (
    *(GREETING, LOGO, COUNTER),
    *(
        Resource(
            f"demo://facts/{number}",
            f"fact-{number}",
            f"Fact {number}",
            f"A fact about the number {number}.",
            "text/plain",
            len(_fact(number)),
            contents={"text": _fact(number)},
        )
        for number in range(1, FACTS + 1)
    ),
)


def _note(digits: str) -> str | None:
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 3:
        return None
    number = int(digits)
    known = 1 <= number <= NOTES and str(number) == digits
    return f"This is note {number}." if known else None


_NUMBERS = tuple(str(number) for number in range(1, NOTES + 1))
TEMPLATES: tuple[Template, ...] = tuple(
    Template(**one, text_of=_note, values=lambda: _NUMBERS) for one in DEMO["templates"]
)


def exists(uri: str, world: World) -> bool:
    return uri in world.content.resource_at or _from_template(uri, world) is not None


def is_volatile(uri: object, world: World) -> bool:
    resource = world.content.resource_at.get(uri) if isinstance(uri, str) else None
    return resource is not None and resource.volatile


def _from_template(uri: str, world: World) -> Obj | None:
    """The contents of a resource that a template gives."""
    for template in world.content.templates:
        text = template.text_at(uri)
        if text is not None:
            return {"uri": uri, "mimeType": template.kind, "text": text}
    return None


def require_resource(uri: str, world: World, version: str) -> None:
    """Refuse a URI that is none, or that names nothing here."""
    scheme, colon, rest = uri.partition(":")
    is_a_uri = (
        bool(colon and rest and scheme.isascii() and scheme[:1].isalpha())
        and all(letter.isalnum() or letter in "+-." for letter in scheme)
        and all(letter > " " and letter not in '<>"{}|\\^`\x7f' for letter in rest)
    )
    if not is_a_uri:
        raise Refusal(INVALID_PARAMS, "Invalid params: uri is not a valid URI", {"uri": uri[:500]})
    if not exists(uri, world):
        # 2026-07-28 gave the old code up: there a missing resource is a wrong parameter.
        stateless = versions.since(version, versions.V2026_07_28)
        code = INVALID_PARAMS if stateless else RESOURCE_NOT_FOUND
        raise Refusal(code, "Resource not found", {"uri": uri[:500]})


def read_resource(uri: str, world: World) -> Obj:
    """The contents of a resource that exists."""
    resource = world.content.resource_at.get(uri)
    if resource is None:
        return _from_template(uri, world) or {}
    if resource.contents is None:
        raise Refusal(INTERNAL_ERROR, "The resource can't be read right now", {"uri": uri})
    held = resource.contents(world) if callable(resource.contents) else resource.contents
    return {"uri": uri, "mimeType": resource.kind, **held}


MAX_COMPLETIONS = 100


def says(role: str, words: str) -> Obj:
    return {"role": role, "content": {"type": "text", "text": words}}


class Argument(Declared):
    """One argument of a prompt, with the values that are suggested for it."""

    name: str
    title: str
    description: str
    required: bool
    values: tuple[str, ...] = ()

    def describe(self, version: str) -> Obj:
        return {**headed(self, version, name=self.name), "required": self.required}


class Prompt(Declared):
    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...] = ()
    since: str = versions.V2024_11_05
    messages: Callable[[World, dict[str, str]], list[Obj]] | None = None
    asks: Callable[[], Generator[Any, Any, str]] | None = None
    """What it asks the client before it says anything; then it has no messages."""

    def describe(self, version: str) -> Obj:
        shown = headed(self, version, name=self.name)
        if self.arguments:
            shown["arguments"] = [item.describe(version) for item in self.arguments]
        return shown

    def argument(self, name: str) -> Argument:
        """Raises Refusal for one that the prompt does not have."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise Refusal(INVALID_PARAMS, f"Prompt {self.name} has no argument {name[:80]!r}")


def _review(world: World, arguments: dict[str, str]) -> list[Obj]:
    language = arguments.get("language", "")
    kind = f"this {language} code" if language else "this code"
    return [says("user", f"Please review {kind}:\n\n{arguments['code']}")]


def declared_prompt(offers: Obj, name: str, **code: Any) -> Prompt:
    """The prompt of this name, as the offers have it; `code` is what it says, where they don't tell
    that, or what it asks."""
    about = dict(offers["prompts"][name])
    words, said = about.pop("says", None), about.pop("messages", None)
    if words is not None:
        code["messages"] = lambda world, given: [says("user", words.format_map(given))]
    elif said is not None:
        code["messages"] = lambda world, given: said
    arguments = tuple(Argument(**one) for one in about.get("arguments", ()))
    return Prompt(name, **{**about, "arguments": arguments, **code})


PROMPTS: tuple[Prompt, ...] = (
    declared_prompt(DEMO, "greet"),
    declared_prompt(DEMO, "review", messages=_review),
    declared_prompt(DEMO, "with_image"),
)
EXTRA_PROMPT = declared_prompt(DEMO, "extra_prompt")


def offered_prompts(call: Call) -> list[Prompt]:
    offered = call.world.content.prompts
    extra = [EXTRA_PROMPT] if call.has_extra("prompts") else []
    return [*(one for one in offered if versions.since(call.version, one.since)), *extra]


def find_prompt(call: Call, name: str) -> Prompt:
    for prompt in offered_prompts(call):
        if prompt.name == name:
            return prompt
    raise Refusal(INVALID_PARAMS, f"Unknown prompt: {name[:200]}")


def get_prompt(call: Call) -> Obj | Body:
    require_fit(call.params, SCHEMAS["prompt"])
    prompt, arguments = find_prompt(call, call.params["name"]), call.params.get("arguments", {})
    for given in arguments:
        prompt.argument(given)
    for name in (one.name for one in prompt.arguments if one.required):
        if name not in arguments:
            raise Refusal(INVALID_PARAMS, f"Prompt {prompt.name} needs the argument {name}")
    if prompt.asks is not None:
        return _asking(prompt, prompt.asks())
    messages = prompt.messages(call.world, arguments) if prompt.messages is not None else []
    return {"description": prompt.description, "messages": messages}


def _asking(prompt: Prompt, asking: Generator[Any, Any, str]) -> Body:
    words = yield from asking
    return {"description": prompt.description, "messages": [says("user", words)]}


def complete(call: Call) -> Obj:
    """The values that begin with what is there, at most a hundred, and how many there are."""
    require_fit(call.params, SCHEMAS["completion"])
    wanted = call.params["argument"]
    known, begun = _candidates(call, call.params["ref"], wanted["name"]), wanted["value"].lower()
    matches = [one for one in known if one.lower().startswith(begun)]
    return {
        "completion": {
            "values": matches[:MAX_COMPLETIONS],
            "total": len(matches),
            "hasMore": len(matches) > MAX_COMPLETIONS,
        }
    }


def _candidates(call: Call, ref: Obj, name: str) -> tuple[str, ...]:
    if ref["type"] == "ref/prompt":
        if not isinstance(ref.get("name"), str):
            raise Refusal(INVALID_PARAMS, "Invalid params: ref.name must be a string")
        return find_prompt(call, ref["name"]).argument(name).values
    templates = (one for one in call.world.content.templates if one.uri == ref.get("uri"))
    template = next(templates, None)
    if template is None:
        raise Refusal(INVALID_PARAMS, "Invalid params: ref.uri names no template of this server")
    if name != template.variable:
        raise Refusal(INVALID_PARAMS, f"The template has no variable {name[:80]!r}")
    return template.values()


def structured(call: Call, value: Obj) -> Obj:
    """A tool result as data: also as text, and only as text where data is not known yet."""
    result = text(json.dumps(value, ensure_ascii=False))
    if call.knows(versions.V2025_06_18):
        result["structuredContent"] = value
    return result


def failure(words: str) -> Obj:
    """A tool result that tells the model what went wrong."""
    return {**text(words), "isError": True}


LONGEST_WAIT = 60
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
    # No bound of the schema: a random number that fits it would nearly always wait that long.
    if not seconds <= LONGEST_WAIT:
        return failure(f"The longest wait is {LONGEST_WAIT} seconds.")
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


class Content(Declared):
    """The tools, prompts and resources of one server, with its name."""

    name: str
    title: str
    description: str
    instructions: str
    tools: tuple[Tool, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[Template, ...] = ()
    changing: frozenset[str] = frozenset()
    """Which of the lists `tools` and `prompts` may change while the server runs."""
    version: str = __version__

    def __post_init__(self) -> None:
        self.logger = self.name.removeprefix("mcptest-")
        """Who writes the log messages."""
        self.tool_named = {tool.name: tool for tool in self.tools}
        self.resource_at = {resource.uri: resource for resource in self.resources}

    def server_info(self, version: str) -> Obj:
        """Our name, with the members that this revision knows."""
        info: Obj = {"name": self.name, "version": self.version}
        if versions.since(version, versions.V2025_06_18):
            info["title"] = self.title
        if versions.since(version, versions.V2025_11_25):
            info["description"] = self.description
        return info

    def close(self) -> None:
        """The server ends: whatever the tools still do ends with it."""


def demo_content(parts: frozenset[str]) -> Content:
    """The demo, with the tools, prompts and resources of these parts."""
    tools, prompts, resources, templates = TOOLS, PROMPTS, RESOURCES, TEMPLATES
    if "fixtures" in parts:
        from mcptest.servers.demo import fixtures

        tools += fixtures.TOOLS
        prompts += fixtures.PROMPTS
        resources += fixtures.RESOURCES
        templates += fixtures.TEMPLATES
    if "tasks" in parts:
        from mcptest.servers.demo import tasks

        tools += tasks.TOOLS
    changing = frozenset({"tools", "prompts"} if "fixtures" in parts else {"tools"})
    return Content(
        **DEMO["server"],
        tools=tools,
        prompts=prompts,
        resources=resources,
        templates=templates,
        changing=changing,
    )


# -- How that is served: the requests that both eras share ---------------------------------------
#
# A handler takes a call and returns the result, or a tool body that is still to run. What an era
# adds to a result is added by its dispatcher.


def run_tool(call: Call) -> Obj | Body:
    require_fit(call.params, SCHEMAS["call"])
    tool = find_tool(call, call.params["name"])
    if "tasks" in call.world.options.offer:
        from mcptest.servers.demo.tasks import run_as_task

        task = run_as_task(tool, call)
        if task is not None:
            return task
    return call_tool(tool, call.params.get("arguments", {}), call)


def listing(name: str, offered: Callable[[Call], Iterable[Any]]) -> Handler:
    """What serves a list, whose items know how they are shown in each revision."""
    return lambda call: page_of(call, name, [item.describe(call.version) for item in offered(call)])


HANDLERS: dict[str, Handler] = {
    "tools/list": listing("tools", offered_tools),
    "tools/call": run_tool,
    "resources/list": listing("resources", lambda call: call.world.content.resources),
    "resources/templates/list": listing(
        "resourceTemplates", lambda call: call.world.content.templates
    ),
    "resources/read": lambda call: {"contents": [read_resource(wanted_uri(call), call.world)]},
    "prompts/list": listing("prompts", offered_prompts),
    "prompts/get": get_prompt,
    "completion/complete": complete,
}


def find_handler(method: str, version: str, world: World, own: dict[str, Handler]) -> Handler:
    """What serves a method in this revision; `own` has what only its era knows. Raises Refusal."""
    handler = None
    if method.startswith("tasks/") and "tasks" in world.options.offer:
        from mcptest.servers.demo.tasks import METHODS

        handler = METHODS.get(version, {}).get(method)
    elif method not in world.hidden:
        handler = own.get(method) or HANDLERS.get(method)
    if handler is None:
        raise Refusal(METHOD_NOT_FOUND, f"Method not found: {method[:200]}")
    return handler


def wanted_uri(call: Call) -> str:
    """The `uri` of the params, which must name a resource."""
    require_fit(call.params, SCHEMAS["resource"])
    uri: str = call.params["uri"]
    require_resource(uri, call.world, call.version)
    return uri


def page_of(call: Call, name: str, items: list[Obj]) -> Obj:
    """One page of a list. A cursor names its list and where to go on, in a form of our own."""
    start = 0
    if "cursor" in call.params:
        start = _read_cursor(call.params["cursor"], name, len(items))
    end = start + call.world.options.page_size
    page: Obj = {name: items[start:end]}
    if end < len(items):
        page["nextCursor"] = _cursor(name, end)
    return page


def _cursor(name: str, place: int) -> str:
    return f"{name}:{place}".encode().hex()


def _read_cursor(cursor: object, name: str, count: int) -> int:
    if isinstance(cursor, str) and len(cursor) < 100:
        try:
            place = int(bytes.fromhex(cursor).decode().rpartition(":")[2])
        except ValueError:
            place = 0
        if 0 < place < count and _cursor(name, place) == cursor:
            return place
    raise Refusal(INVALID_PARAMS, "Invalid params: cursor was not given out by this list")
