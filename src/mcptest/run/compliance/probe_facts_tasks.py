"""Facts of the probe about tasks, as revision 2025-11-25 has them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from mcptest.model.message import ABSENT
from mcptest.run.compliance.probe_seen import Fact, Seen, Unobserved, messages_of_server

RELATED = "io.modelcontextprotocol/related-task"
ENDED = frozenset({"completed", "failed", "cancelled"})
_UNDER_WAY = frozenset({"working", "input_required"})
_TIMES = ("createdAt", "lastUpdatedAt")


def created(seen: Seen, step: str) -> Mapping[str, Any]:
    """The task that a call began, as the answer shows it."""
    task = seen.result(step).get("task")
    return task if isinstance(task, dict) else {}


def status_in(seen: Seen, step: str) -> Any:
    return seen.result(step).get("status")


def has_ended(status: Any) -> bool:
    return isinstance(status, str) and status in ENDED


def sightings(seen: Seen) -> Iterator[Mapping[str, Any]]:
    """Every task in every answer, in order.

    Notifications may overtake answers on another stream, so they say nothing about order.
    """
    for message, _ in messages_of_server(seen["create"].since):
        result = message.result
        if not isinstance(result, dict):
            continue
        for task in (result, result.get("task")):
            if isinstance(task, dict) and "taskId" in task and "status" in task:
                yield task


def ids_are_distinct(seen: Seen) -> bool:
    first, second = (created(seen, step).get("taskId") for step in ("create", "second"))
    return isinstance(first, str) and isinstance(second, str) and first != second


def illegal_transitions(seen: Seen) -> list[str]:
    latest: dict[str, str] = {}
    illegal = []
    for task in sightings(seen):
        name, status = str(task["taskId"]), str(task["status"])
        before = latest.get(name, "created")
        latest[name] = status
        if not _may_follow(before, status):
            illegal.append(f"{before} -> {status}")
    return illegal


def _may_follow(before: str, status: str) -> bool:
    if before == "created":
        return status == "working"
    if before in ENDED:
        return status == before
    return status in ENDED or status in _UNDER_WAY


def bad_times(seen: Seen) -> list[str]:
    found: dict[str, None] = {}
    for task in sightings(seen):
        for name in _TIMES:
            if not _is_time(task.get(name)):
                found[f"{name}: {task.get(name)!r}"] = None
        if "ttl" not in task:
            found["ttl is missing"] = None
    return list(found)


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or "T" not in value.upper():
        return False
    try:
        datetime.datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def result_is_related(seen: Seen) -> bool:
    meta = _task_result(seen).get("_meta")
    related = meta.get(RELATED) if isinstance(meta, dict) else None
    return isinstance(related, dict) and related.get("taskId") == created(seen, "create").get(
        "taskId"
    )


def _task_result(seen: Seen) -> Mapping[str, Any]:
    if seen["result"].exchange.answer != "result":
        raise Unobserved("tasks/result was not answered with a result")
    return seen.result("result")


def result_waited(seen: Seen) -> bool:
    """Right after its result came, a task must have ended."""
    if seen["result"].exchange.answer == "none":
        raise Unobserved("tasks/result was not answered")
    return has_ended(status_in(seen, "ended"))


def listed(seen: Seen) -> bool:
    if not seen.declares("tasks.list"):
        raise Unobserved("tasks.list is not declared", "the capability tasks.list")
    findable = [created(seen, "create").get("taskId")] if _was_found(seen) else []
    if not findable:
        raise Unobserved("tasks/get found no task")
    items = seen["list"].lists.get("tasks/list", ())
    names = [item.get("taskId") for item in items if isinstance(item, dict)]
    return all(one in names for one in findable)


def _was_found(seen: Seen) -> bool:
    return seen["ended"].exchange.result is not ABSENT


def cancelled_for_good(seen: Seen) -> bool:
    if not seen.declares("tasks.cancel"):
        raise Unobserved("tasks.cancel is not declared", "the capability tasks.cancel")
    later = status_in(seen, "later")
    if seen["cancel"].exchange.answer == "error" and later in {"completed", "failed"}:
        raise Unobserved(
            "the task had ended before it could be cancelled", "a task_tool that takes a second"
        )
    return [status_in(seen, "cancel"), later] == ["cancelled"] * 2


FACTS: Mapping[tuple[str, str], Fact] = {
    ("task_lifecycle", "ids_are_distinct"): ids_are_distinct,
    ("task_lifecycle", "illegal_transitions"): illegal_transitions,
    ("task_lifecycle", "bad_times"): bad_times,
    ("task_lifecycle", "result_is_related"): result_is_related,
    ("task_lifecycle", "result_waited"): result_waited,
    ("task_lifecycle", "listed"): listed,
    ("task_lifecycle", "cancelled_for_good"): cancelled_for_good,
}
