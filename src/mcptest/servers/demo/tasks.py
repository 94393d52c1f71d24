"""Tasks: calls that go on without their request. In 2025-11-25 core, in 2026-07-28 an extension."""

from __future__ import annotations

import os
import time

from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import ServerExchange, Until, perform, text
from mcptest.servers.demo.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    SCHEMAS,
    Refusal,
    read_data,
    require_fit,
)
from mcptest.servers.demo.offers import call_tool, declared_tools, listing
from mcptest.servers.demo.world import TASKS_EXTENSION

TYPE_CHECKING = False  # see jsonrpc
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcptest.servers.demo.exchange import Body, Call, Handler, ToolJob
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.offers import Tool

RELATED = "io.modelcontextprotocol/related-task"
DEFAULT_TTL_MS = 60_000
MAX_TTL_MS = 600_000
MAX_TASKS = 100
POLL_MS = 50
WORK_SECONDS = 0.4


def task_tool(arguments: Obj, call: Call) -> Body:
    yield WORK_SECONDS
    return text("The task is done.")


TOOLS = declared_tools(read_data("fixtures.json"), task_tool, task_only_tool=task_tool)


class Task(ServerExchange):
    """One call on its own: what would have been its answer is kept for whoever asks."""

    __slots__ = ("_owner", "_waiting", "created", "error", "result", "status", "ttl", "updated")
    can_notify = False

    def __init__(self, owner: dict[str, Task], ttl: int) -> None:
        super().__init__(os.urandom(16).hex(), {})
        self._owner = owner
        self._waiting: dict[Callable[[], None], None] = {}
        self.status = "working"
        self.created = self.updated = _now()
        self.ttl = ttl
        self.result: Obj = {}
        self.error: Obj | None = None
        while len(owner) >= MAX_TASKS:
            owner.pop(next(iter(owner))).forget()
        owner[self.identifier] = self

    @property
    def ended(self) -> bool:
        return self.status != "working"

    def deliver(self, message: Obj | list[Obj]) -> None:
        assert isinstance(message, dict), "a task is one request"
        self.error = message.get("error")
        self.result = message.get("result", {})
        self._end("completed" if self.error is None else "failed")

    def drop(self) -> None:
        self._end("cancelled")

    def forget(self) -> None:
        """Nobody may ask for it any more."""
        self._owner.pop(self.identifier, None)
        if not self.ended:
            self.cancel()

    def when_ended(self, tell: Callable[[], None]) -> Callable[[], None]:
        self._waiting[tell] = None
        return lambda: self._waiting.pop(tell, None)

    def _end(self, status: str) -> None:
        self.status = status
        self.updated = _now()
        waiting, self._waiting = self._waiting, {}
        for tell in waiting:
            tell()

    def describe(self, version: str) -> Obj:
        """As 2025-11-25 has it, or else the extension."""
        shown: Obj = {
            "taskId": self.identifier,
            "status": self.status,
            "createdAt": self.created,
            "lastUpdatedAt": self.updated,
        }
        if version == versions.V2025_11_25:
            return {**shown, "ttl": self.ttl, "pollInterval": POLL_MS}
        shown |= {"ttlMs": self.ttl, "pollIntervalMs": POLL_MS}
        if self.status == "completed":
            shown["result"] = self.result
        elif self.error is not None:
            shown["error"] = self.error
        return shown


def run_as_task(tool: Tool, call: Call) -> Obj | None:
    """The result that stands for a task, or None when the call is to be run as it is."""
    if call.version == versions.V2025_11_25:
        return _core_task(tool, call)
    if not call.knows(versions.V2026_07_28) or tool.tasks is None:
        return None
    if _knows_extension(call):
        return {"resultType": "task", **_begin(tool, call, {}).describe(call.version)}
    if tool.tasks == "required":
        raise _extension_missing()
    return None


def _core_task(tool: Tool, call: Call) -> Obj | None:
    if "task" not in call.params:
        if tool.tasks == "required":
            raise Refusal(METHOD_NOT_FOUND, f"Tool {tool.name} can be called as a task only")
        return None
    if tool.tasks is None:
        raise Refusal(METHOD_NOT_FOUND, f"Tool {tool.name} can't be called as a task")
    wish = call.params["task"]
    require_fit(wish, SCHEMAS["task-wish"], "params.task")
    return {"task": _begin(tool, call, wish).describe(call.version)}


def _begin(tool: Tool, call: Call, wish: Obj) -> Task:
    ttl = min(wish.get("ttl", DEFAULT_TTL_MS), MAX_TTL_MS)
    task = Task(_tasks_of(call), ttl)
    arguments = call.params.get("arguments", {})
    perform(lambda _: call_tool(tool, arguments, call), call, task, _ask_nothing)
    call.world.loop.after(ttl / 1000, task.forget)
    return task


def _ask_nothing(job: ToolJob, ask: object) -> None:
    job.fail(Refusal(INVALID_PARAMS, "A task of this server asks nothing"))


def _find(call: Call) -> Task:
    tasks = _tasks_of(call)
    require_fit(call.params, SCHEMAS["task"])
    task = tasks.get(call.params["taskId"])
    if task is None:
        raise Refusal(INVALID_PARAMS, "There is no such task")
    return task


def get_task(call: Call) -> Obj:
    return _find(call).describe(call.version)


def task_result(call: Call) -> Body:
    task = _find(call)
    if not task.ended:
        yield Until(task.when_ended)
    if task.error is not None:
        raise Refusal(task.error["code"], task.error["message"], task.error.get("data"))
    if task.status == "cancelled":
        raise Refusal(INVALID_PARAMS, "The task was cancelled")
    return {**task.result, "_meta": {RELATED: {"taskId": task.identifier}}}


def update_task(call: Call) -> Obj:
    _find(call)
    return {}


def cancel_task(call: Call) -> Obj:
    task = _find(call)
    is_core = call.session is not None
    if not task.ended:
        task.cancel()
    elif is_core:
        raise Refusal(INVALID_PARAMS, f"The task is {task.status} already")
    return task.describe(call.version) if is_core else {}


def _tasks_of(call: Call) -> dict[str, Task]:
    """Of the session where tasks are core, and else of nobody."""
    if call.session is not None:
        return call.session.tasks
    if not _knows_extension(call):
        raise _extension_missing()
    return call.world.tasks


def _knows_extension(call: Call) -> bool:
    return TASKS_EXTENSION in call.declared.get("extensions", {})


def _extension_missing() -> Refusal:
    needs: Obj = {"extensions": {TASKS_EXTENSION: {}}}
    message = f"Server requires the extension {TASKS_EXTENSION} for this request"
    return Refusal(MISSING_CAPABILITY, message, {"requiredCapabilities": needs})


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


_IN_BOTH: dict[str, Handler] = {"tasks/get": get_task, "tasks/cancel": cancel_task}
_LISTING = listing("tasks", lambda call: _tasks_of(call).values())
METHODS: dict[str, dict[str, Handler]] = {
    versions.V2025_11_25: {**_IN_BOTH, "tasks/result": task_result, "tasks/list": _LISTING},
    versions.V2026_07_28: {**_IN_BOTH, "tasks/update": update_task},
}
