"""Faults of tasks: those of 2025-11-25, and the extension after it."""

from __future__ import annotations

from tests.mutants.mutant import mutant
from tests.mutants.seams import accept, calls, on_answer, on_error, on_result, params_of, patch

TYPE_CHECKING = False  # a mutant starts as often as the demo does
if TYPE_CHECKING:
    from typing import Any

    from tests.mutants.seams import Fault, Obj

TEXT: Obj = {"content": [{"type": "text", "text": "All is well."}]}
META: Obj = {"io.modelcontextprotocol/serverInfo": {"name": "mutant", "version": "1"}}
TASK: Obj = {
    "taskId": "mutant",
    "status": "working",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
}


def _missing(method: str) -> Fault:
    def change(message: Obj, request: Obj) -> Obj:
        if message.get("error", {}).get("message") == "There is no such task":
            message["error"]["code"] = -32603
        return message

    return on_answer(lambda request: request.get("method") == method, change)


for _rule, _method in (
    ("TASK-001", "tasks/get"),
    ("TASK-002", "tasks/result"),
    ("TASK-003", "tasks/cancel"),
):
    mutant(_rule, f"an unknown task in {_method} is refused with -32603", _missing(_method))

mutant(
    "TASK-004", "a tool for tasks only is called without one", accept(calls("task_only_tool"), TEXT)
)


def _done_at_once(result: Obj) -> None:
    if "task" in result:
        result["task"]["status"] = "input_required"


mutant(
    "TASK-005",
    "a task begins with another status than working",
    on_result(
        lambda request: (
            request.get("method") == "tools/call"
            and params_of(request).get("task") == {"ttl": 60000}
        ),
        _done_at_once,
    ),
    also="a task that is followed through its life begins so as well",
)
mutant(
    "TASK-006",
    "a task is made though tasks were not declared",
    accept(
        lambda request: request.get("method") == "tools/call" and "task" in params_of(request),
        {"task": {**TASK, "ttl": 1000}},
    ),
    options=("--offer", "fixtures"),
)


def _one_id(init: Any) -> Any:
    def made(self: Any, owner: Any, ttl: int) -> None:
        init(self, owner, ttl)
        del owner[self.identifier]
        self.identifier = "the-task"
        owner[self.identifier] = self

    return made


mutant(
    "TASK-007",
    "two tasks have one id",
    patch("demo.tasks:Task.__init__", _one_id),
    also="under one id there is only the later of them",
)
mutant(
    "TASK-008",
    "the time of a task is told in words",
    patch("demo.tasks:_now", lambda now: lambda: "just now"),
)


def _unrelated(result: Obj) -> None:
    result.pop("_meta", None)


mutant("TASK-009", "a result does not name its task", on_result("tasks/result", _unrelated))
mutant(
    "TASK-010",
    "the list of tasks is empty",
    on_result("tasks/list", lambda result: result.update(tasks=[])),
)


def _cancels_anything(message: Obj, request: Obj) -> Obj:
    if "already" in message.get("error", {}).get("message", ""):
        task = {**TASK, "taskId": params_of(request)["taskId"], "ttl": 1000, "status": "completed"}
        return {"jsonrpc": "2.0", "id": message["id"], "result": task}
    return message


mutant(
    "TASK-011",
    "a task that has ended can be cancelled",
    on_answer(lambda request: request.get("method") == "tasks/cancel", _cancels_anything),
)


def _ignores_task(message: Obj, request: Obj) -> Obj:
    if message.get("error", {}).get("code") == -32601:
        result = {**TEXT, "structuredContent": {"sum": 1}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return message


mutant(
    "TASK-012",
    "a tool without tasks runs though a task was wanted",
    on_answer(
        lambda request: request.get("method") == "tools/call" and "task" in params_of(request),
        _ignores_task,
    ),
)

# -- the extension -----------------------------------------------------------------------------

mutant(
    "TASK-101",
    "tasks/list is refused with -32602",
    on_error("tasks/list", code=-32602, message="No."),
)
mutant(
    "TASK-102",
    "tasks/result is refused with -32602",
    on_error("tasks/result", code=-32602, message="No."),
)
mutant("TASK-103", "an unknown task is refused with -32603", on_error("tasks/get", code=-32603))
mutant(
    "TASK-104",
    "a client that knows no tasks gets one",
    accept(calls("task_tool"), {"resultType": "task", **TASK, "ttlMs": 1000, "_meta": META}),
)
mutant(
    "TASK-105",
    "a tool for tasks only runs for a client that knows none",
    accept(calls("task_only_tool"), {"resultType": "complete", **TEXT, "_meta": META}),
)
