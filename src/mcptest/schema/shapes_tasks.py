"""Tasks as 2025-11-25 had them in its core; later they are an extension with shapes of its own."""

from __future__ import annotations

from mcptest.schema.shape_vocabulary import (
    IN_NOVEMBER_2025,
    INTEGER,
    OBJECT,
    STRING,
    Field,
    ListOf,
    Plain,
    Words,
    may,
    need,
    obj,
)
from mcptest.schema.shapes_basic import notification_params, page

TASK_FIELD = may("task", obj("TaskMetadata", may("ttl", INTEGER)), IN_NOVEMBER_2025)
"""In params: the sender would like the request to become a task."""

_TASK: tuple[Field, ...] = (
    need("taskId", STRING),
    need("status", Words(("working", "input_required", "completed", "failed", "cancelled"))),
    need("createdAt", STRING),
    need("lastUpdatedAt", STRING),
    need("ttl", Plain.INTEGER_OR_NULL),
    may("pollInterval", INTEGER),
    may("statusMessage", STRING),
)
TASK = obj("Task", *_TASK)
TASK_PARAMS = obj("", need("taskId", STRING))
GET_TASK = obj("GetTaskResult", may("_meta", OBJECT), *_TASK)
CANCEL_TASK = obj("CancelTaskResult", may("_meta", OBJECT), *_TASK)
TASK_PAYLOAD = obj("GetTaskPayloadResult", may("_meta", OBJECT))
LIST_TASKS = page("ListTasksResult", need("tasks", ListOf(TASK)))
CREATE_TASK = obj("CreateTaskResult", may("_meta", OBJECT), need("task", TASK))
TASK_STATUS_PARAMS = notification_params("TaskStatusNotificationParams", *_TASK)
