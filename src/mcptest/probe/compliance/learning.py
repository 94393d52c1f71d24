"""Learning what a server has: a tour, its lists, and which tools work as we call them."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mcptest import __version__
from mcptest.core.capture import AnyRecord, Frame, Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import cancellation
from mcptest.core.message import Kind, id_key
from mcptest.core.revision import NEWEST_HANDSHAKE, Revision
from mcptest.probe.compliance.conversation import Asked, Conversation
from mcptest.probe.compliance.site import Order, Site
from mcptest.probe.tour import StepTaken, tour
from mcptest.rules.corpus.probes import well_known
from mcptest.rules.protocol import member_at, objects_at
from mcptest.schema.tool_inputs import plausible_arguments
from mcptest.schema.validation import CompiledSchema, SchemaError
from mcptest.session.client import Client
from mcptest.session.pages import LIST_MEMBERS, Listed, Offer, distinct, list_items, named_items
from mcptest.session.tape import answered_requests
from mcptest.session.tool_safety import may_call, task_support
from mcptest.suite.sent_message import SentCheck
from mcptest.wire.envelope import decode
from mcptest.wire.mcp_headers import PARAM_PREFIX, annotation_problems, header_annotations


class Lists(Offer, frozen=True):
    """Everything that the server listed, as it came, objects only."""

    page_cursor: str | None = None
    """What leads to the second page of tools."""
    page_of_tool: Mapping[str, str] = {}
    """The cursor of its page, for tools that are not on the first."""


def list_through(ask: Callable[[SentCheck], Asked], method: str, seconds: float) -> Listed:
    """What all pages of a list name, asked in a conversation."""
    return list_items(
        method,
        LIST_MEMBERS[method],
        lambda params: ask(SentCheck(method=method, params=params)),
        lambda asked: asked.exchange.result,
        seconds=seconds,
    )


def lists_on(records: Sequence[AnyRecord]) -> Lists:
    found: dict[str, list[dict[str, Any]]] = {method: [] for method in LIST_MEMBERS}
    page_of_tool: dict[str, str] = {}
    page_cursor = None
    for method, params, result in _answered(records):
        items = objects_at(result, LIST_MEMBERS[method])
        found[method] += items
        cursor, following = params.get("cursor"), result.get("nextCursor")
        if method == "tools/list" and isinstance(cursor, str):
            page_of_tool.update((str(one.get("name")), cursor) for one in items)
        elif method == "tools/list" and isinstance(following, str):
            page_cursor = following
    lists = {method: distinct(items) for method, items in found.items()}  # pages come again
    return Lists.of(lists, page_cursor=page_cursor, page_of_tool=page_of_tool)


def _answered(
    records: Sequence[AnyRecord],
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Method, params and result of every list request that was answered with an object."""
    for request, answer in answered_requests(records):
        if request.method in LIST_MEMBERS and isinstance(answer.result, dict):
            yield request.method, request.params, answer.result


def refuses_ping(records: Sequence[AnyRecord]) -> bool:
    """Whether a ping was answered with an error: then it can't show that a server is well."""
    pairs = answered_requests(records)
    return any(asked.method == "ping" and one.kind is Kind.ERROR for asked, one in pairs)


def unanswered_calls(records: Sequence[AnyRecord]) -> dict[str, str]:
    """The tools that were called and gave no answer, each with what came of its stream, if any."""
    called: dict[Any, tuple[str, int | None]] = {}
    broken: dict[int | None, str] = {}
    for record in records:
        if isinstance(record, Trouble) and record.error != ErrorKind.TIMEOUT.value:
            broken[record.stream] = record.in_words
        if not isinstance(record, Frame):
            continue
        message = decode(record.raw)
        if record.sender == "client" and message.method == "tools/call":
            called[id_key(message.id)] = (str(message.params.get("name")), record.stream)
        elif record.sender == "server" and message.kind in (Kind.RESULT, Kind.ERROR):
            called.pop(id_key(message.id), None)
        elif record.sender == "server" and message.problems:
            broken[record.stream] = (
                f"the response is not a valid message: {message.problems[0].reason}"
            )
    return {name: broken.get(stream, "") for name, stream in called.values()}


class UsableTool(msgspec.Struct, frozen=True):
    """A tool that may be called, with arguments that its schema accepts."""

    name: str
    tool: Mapping[str, Any]
    schema: dict[str, Any]
    arguments: dict[str, Any]

    @property
    def required(self) -> list[str]:
        required = self.schema.get("required")
        names = required if isinstance(required, list) else ()
        return [one for one in names if isinstance(one, str)]

    @property
    def task_support(self) -> str:
        return task_support(self.tool)


def fixtures_of(order: Order, lists: Lists) -> dict[str, str]:
    """Fixture to what is one: as the user says, or by the names of the official suite."""
    listed = {*lists.names("tools"), *lists.names("prompts"), *lists.names("resources", "uri")}
    found = {
        fixture: next(name for name in names if name in listed)
        for fixture, names in well_known().items()
        if not listed.isdisjoint(names)
    }
    return {**found, **order.fixtures}


def callable_tools(order: Order, lists: Lists, fixtures: Mapping[str, str]) -> list[UsableTool]:
    """Those that may be called for any purpose; fixtures come last, they are made for one."""
    allowed = {*order.allow_tools, *order.fixtures.values()}
    special = {*fixtures.values()} - {*order.allow_tools}
    found = [one for tool in lists.tools if (one := usable_tool(tool, allowed)) is not None]
    return sorted(found, key=lambda one: one.name in special)


def usable_tool(tool: Mapping[str, Any], allowed: set[str]) -> UsableTool | None:
    name, schema = tool.get("name"), tool.get("inputSchema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        return None
    if not may_call(tool, allowed) or cancellation.is_over():
        return None
    arguments = plausible_arguments(schema)  # which fit, or there are none
    usable = arguments or fits(schema, {})
    return UsableTool(name, tool, schema, arguments) if usable else None


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    try:
        return CompiledSchema(schema).fits(value)
    except SchemaError:
        return False  # whether the schema is at fault is for the rules to say


NO_REVISION = "1999-01-01"
_PROGRESS_TOOL = "test_tool_with_progress"


def chosen_values(revision: Revision, alive_method: str, lists: Lists) -> dict[str, Any]:
    """What we choose ourselves: always there."""
    tool = _unlike("mcptest_no_such_tool", lists.tools)
    coded = base64.b64encode(tool.encode()).decode("ascii")
    return {
        "revision": revision.wire_version,
        "unsupported_version": NO_REVISION,
        "client_info": {"name": "mcptest", "version": __version__},
        "client_capabilities": {},
        "alive_method": alive_method,
        "unknown_tool": tool,
        "unknown_uri": _unlike("mcptest:///no-such-resource", lists.resources, "uri"),
        "unknown_prompt": _unlike("mcptest_no_such_prompt", lists.prompts),
        "unknown_task": "mcptest-no-such-task",
        "unknown_session": "mcptest-no-such-session",
        "invalid_cursor": "mcptest-no-such-cursor",
        "invalid_token": "mcptest-no-such-token",
        "foreign_origin": "https://mcptest.invalid",
        "encoded_unknown_tool": f"=?base64?{coded}?=",
    }


def _unlike(name: str, items: Sequence[Mapping[str, Any]], member: str = "name") -> str:
    names = {str(one.get(member)) for one in items}
    while name in names:
        name += "x"
    return name


def learned_values(order: Order, lists: Lists, working: Collection[str] = ()) -> dict[str, Any]:
    """What the server's lists give; a name that is missing here has no value.

    `working` names tools that were called and gave a result.
    """
    fixtures = fixtures_of(order, lists)
    tools = callable_tools(order, lists, fixtures)
    known: dict[str, Any] = {**dict(_of_tools(tools, working)), **_of_prompts(lists.prompts)}
    uris = lists.names("resources", "uri")
    readable = [uri for uri in uris if uri != fixtures.get("failing_resource")]
    if readable:
        known["first_resource"] = readable[0]
    if lists.page_cursor is not None:
        known["page_cursor"] = lists.page_cursor
    if any(one.get("name") == _PROGRESS_TOOL for one in lists.tools):
        known["progress_tool"] = _PROGRESS_TOOL
    return {**known, **fixtures, **_of_header_tool(lists, fixtures, tools)}


def _of_tools(tools: Sequence[UsableTool], working: Collection[str]) -> Iterator[tuple[str, Any]]:
    usable = [one for one in tools if one.task_support != "required"]
    usable.sort(key=lambda one: one.name not in working)
    plain = [one for one in usable if one.task_support == "forbidden"]
    structured = [one for one in usable if isinstance(one.tool.get("outputSchema"), dict)]
    yield from _first_of([*plain, *usable], "safe_tool", "safe_arguments")
    yield from _first_of(plain, "tool_without_tasks")
    works = [one for one in plain if one.name in working]
    yield from _first_of(works, "working_tool", "working_arguments")
    yield from _first_of([one for one in plain if not one.required], "tool_without_arguments")
    # These two placeholders are used together: one tool for both, where there is one.
    demanding = [one for one in usable if one.required]
    wrong = [(one, value) for one in demanding if (value := _wrongly_typed(one)) is not None]
    chosen = [*(tool for tool, _ in wrong), *demanding]
    yield from _first_of(chosen, "tool_with_required_argument", "right_arguments")
    yield from (("wrongly_typed_arguments", value) for _, value in wrong[:1])
    works = [one for one in structured if one.name in working]
    yield from _first_of(works, "structured_tool", "structured_arguments")
    yield from _first_of([one for one in tools if one.task_support == "optional"], "task_tool")
    yield from _first_of([one for one in tools if one.task_support == "required"], "task_only_tool")


def _first_of(
    tools: Sequence[UsableTool], name: str, arguments: str = ""
) -> Iterator[tuple[str, Any]]:
    for one in tools[:1]:
        yield name, one.name
        if arguments:
            yield arguments, one.arguments


_WRONG: Sequence[Any] = ({"mcptest": "wrong"}, ["mcptest"], 7, "mcptest", True)


def _wrongly_typed(tool: UsableTool) -> dict[str, Any] | None:
    """The arguments with every required one of a type that the schema excludes."""
    arguments = dict(tool.arguments)
    for name in tool.required:
        kind = member_at(tool.schema, "properties", name, "type")
        wrong = _WRONG if isinstance(kind, str) else ()
        value = next((one for one in wrong if not fits({"type": kind}, one)), None)
        if value is None:
            return None
        arguments[name] = value
    return arguments if not fits(tool.schema, arguments) else None


def _of_header_tool(
    lists: Lists, fixtures: Mapping[str, str], tools: Sequence[UsableTool]
) -> dict[str, Any]:
    """A tool with an argument that travels as a header too."""
    wanted = fixtures.get("header_tool", "")
    named = [one for tool in lists.tools if (one := usable_tool(tool, {wanted})) is not None]
    for one in [*(one for one in named if one.name == wanted), *tools]:
        if wanted not in ("", one.name) or annotation_problems(one.schema):
            continue
        found = [each for each in header_annotations(one.schema) if each.path is not None]
        top = [each for each in found if len(each.path or ()) == 1]
        mirrored = [each for each in top if (each.path or ("",))[0] in one.arguments]
        if not mirrored:
            continue
        # An integer first: how its text is compared is a rule of its own.
        chosen = min(mirrored, key=lambda each: each.type != "integer")
        arguments = dict(one.arguments)
        name = (chosen.path or ("",))[0]
        if chosen.type == "integer" and fits(one.schema, {**arguments, name: 42}):
            arguments[name] = 42
        headed = {(each.path or ("",))[0] for each in top}
        return {
            "header_tool": one.name,
            "header_arguments": arguments,
            "header_arguments_without_value": {
                key: value for key, value in arguments.items() if key not in headed
            },
            "header_name": PARAM_PREFIX + chosen.header,
        }
    return {}


def _of_prompts(prompts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for prompt in named_items(prompts):
        name, arguments = prompt["name"], list(prompt_arguments(prompt))
        required = [one for one, is_required in arguments if is_required]
        if "first_prompt" not in known:
            known["first_prompt"] = name
            known["first_prompt_arguments"] = {one: one for one in required}
        if not required and (arguments or "prompt_without_arguments" not in known):
            known["prompt_without_arguments"] = name
        if required and "prompt_with_required_argument" not in known:
            known["prompt_with_required_argument"] = name
            known["right_prompt_arguments"] = {one: one for one in required}
            known["wrongly_typed_prompt_arguments"] = {one: {"mcptest": 1} for one in required}
        if arguments and "completion_ref" not in known:
            known["completion_ref"] = {"type": "ref/prompt", "name": name}
            known["completion_argument"] = {"name": arguments[0][0], "value": ""}
    return known


def prompt_arguments(prompt: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Name of each declared argument, and whether it is required."""
    for one in named_items(objects_at(prompt, "arguments")):
        yield one["name"], one.get("required") is True


_TRIED = 4
_UNANSWERED = 1
"""So many steps in a row may go without an answer before the tour is given up."""


def learn(site: Site, conversation: Conversation | None) -> PeerError | None:
    """Fill in what is known of the server; the error when it did not survive being looked at.

    Without a conversation only what we choose ourselves is known.
    """
    error = take_the_tour(conversation) if conversation is not None else None
    lists = lists_on(conversation.tape.records) if conversation is not None else Lists()
    working: list[str] = []
    if conversation is not None:
        if refuses_ping(conversation.tape.records):
            answered = (method for method, _, _ in _answered(conversation.tape.records))
            site.alive_method = next(answered, "")
        site.hung_tools.update(unanswered_calls(conversation.tape.records))
        working = try_tools(conversation, tools_to_try(site.order, lists, site.hung_tools))
    tools = (one for one in lists.tools if str(one.get("name")) not in site.hung_tools)
    answering = msgspec.structs.replace(lists, tools=tuple(tools))
    site.known = {
        **chosen_values(site.revision, site.alive_check.method, lists),
        **learned_values(site.order, answering, frozenset(working)),
    }
    if site.hung_tools:
        all_values = learned_values(site.order, lists, frozenset(working))
        site.hung_values = frozenset(all_values.keys() - site.known.keys())
    site.page_of_tool = lists.page_of_tool
    # Tools whose arguments travel as HTTP headers too must be known when they are called.
    site.header_schemas.learn("tools/list", {"tools": list(lists.tools)})
    return error


def learn_about_eras(site: Site, conversation: Conversation) -> None:
    """Ask a server of the stateless era to begin a session, on a connection that has none yet."""
    conversation.polite = False
    chosen = chosen_values(site.revision, site.alive_check.method, Lists())
    params = {
        "protocolVersion": NEWEST_HANDSHAKE.wire_version,
        "capabilities": chosen["client_capabilities"],
        "clientInfo": chosen["client_info"],
    }
    check = SentCheck(method="initialize", params=params, omit=("_meta",))
    asked = conversation.ask(check)
    result = asked.exchange.result
    site.speaks_handshake = isinstance(result, dict) and "protocolVersion" in result
    if conversation.usable:
        site.greeting = (check, asked)


def take_the_tour(conversation: Conversation) -> PeerError | None:
    """Ask everything that is safe, as a careful client does.

    The error when the server is gone, or answers nothing any more.
    """
    conversation.toured = True
    try:
        _take_steps(conversation.client, conversation.site)
    except PeerError as error:
        if error.kind is ErrorKind.TIMEOUT:
            conversation.mute = True
        else:
            conversation.gone = error
        return error
    return None


def _take_steps(client: Client, site: Site) -> None:
    """Each step may take what is left of the timeout; raises when nothing is answered any more."""
    unanswered, begun = 0, time.monotonic()
    for event in tour(client):
        failed = isinstance(event, StepTaken) and event.outcome == "failed"
        unanswered = unanswered + 1 if failed else 0
        if failed:
            site.waits.in_vain(begun, time.monotonic())
        elif isinstance(event, StepTaken) and event.outcome == "malformed":
            site.unread_lists += [event.detail] if event.what in LIST_MEMBERS else []
        if isinstance(event, StepTaken) and unanswered > _UNANSWERED:
            raise PeerError(ErrorKind.TIMEOUT, event.detail)
        client.timeout, begun = site.waits.left(at_work=True), time.monotonic()
    client.timeout = site.order.timeout


def tools_to_try(order: Order, lists: Lists, hung: Collection[str] = ()) -> tuple[UsableTool, ...]:
    """A few tools of each sort that checks use, to find those that work as they are called.

    One that did not answer is not called again.
    """
    fixtures = {*fixtures_of(order, lists).values()}
    tools = [
        one
        for one in callable_tools(order, lists, {})
        if one.name not in {*fixtures, *hung} and one.task_support != "required"
    ]
    structured = [one for one in tools if isinstance(one.tool.get("outputSchema"), dict)]
    bare = [one for one in tools if not one.required]
    chosen = (*tools[:_TRIED], *structured[:_TRIED], *bare[:_TRIED])
    return tuple({one.name: one for one in chosen}.values())


def try_tools(conversation: Conversation, tools: Sequence[UsableTool]) -> list[str]:
    """The names of those that gave a result which is no error; all are called at once."""
    calls = {one.name: {"name": one.name, "arguments": one.arguments} for one in tools}
    started = {
        name: conversation.start(SentCheck(method="tools/call", params=params))
        for name, params in calls.items()
    }
    results = {name: conversation.finish(one).exchange.result for name, one in started.items()}
    return [
        name
        for name, result in results.items()
        if isinstance(result, dict) and result.get("isError") is not True
    ]
