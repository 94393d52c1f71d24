"""The requests that both eras share: lists, tools, resources, prompts, completion.

A handler takes a call and returns the result, or a tool body that is still to run. What an era
adds to a result is added by its dispatcher.
"""

from __future__ import annotations

from mcptest.servers.demo.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    SCHEMAS,
    Refusal,
    require_fit,
)
from mcptest.servers.demo.offers import (
    call_tool,
    complete,
    find_tool,
    get_prompt,
    offered_prompts,
    offered_tools,
    read_resource,
    require_resource,
)

TYPE_CHECKING = False  # see jsonrpc
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from mcptest.servers.demo.exchange import Body
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.offers import Call
    from mcptest.servers.demo.world import World

    Handler: TypeAlias = Callable[[Call], "Obj | Body"]


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
