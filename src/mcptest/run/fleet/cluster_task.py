"""What a worker of a cluster does: it judges one server, in a process of its own.

The function that a worker is sent is this one, by name: mcptest has to be installed there.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from msgspec.structs import replace

from mcptest import __version__
from mcptest.model.fleet import Found, Kept
from mcptest.model.show import show
from mcptest.run.fleet.frames import encoded
from mcptest.run.fleet.order import ServerOrder
from mcptest.run.fleet.pool import ServerPool

_LEAVING = frozenset({"closing", "closed", "failed"})
_LOOKS_UP = 0.5
"""Seconds between two looks whether anyone still wants to know."""


def judge_for_a_cluster(order: ServerOrder, version: str) -> bytes:
    """What was found, as JSON. Never raises: a cluster writes the arguments of what fails to logs.

    A worker that dies takes its process along, and the work is done again on another worker.
    """
    if version != __version__:
        reason = f"the worker has mcptest {__version__}, and {version} asked"
        return encoded(Found(order.name, kept=Kept.LOST, reason=reason))
    try:
        worker, is_unwanted = _whom_we_work_for()
        pool = ServerPool([order], 1, should_stop=is_unwanted, tick=_LOOKS_UP)
        found = next(iter([one for _, one in pool.results()]))
        return encoded(replace(found, worker=worker))
    except Exception as error:  # noqa: BLE001 - said in the row of this server, and never a pass
        reason = f"a defect of mcptest: {type(error).__name__}: {show(str(error), 300)}"
        return encoded(Found(order.name, kept=Kept.LOST, reason=reason))


def _whom_we_work_for() -> tuple[str, Callable[[], bool]]:
    """The address of this worker, and whether our work is not wanted any more."""
    worker: Any = import_module("distributed").get_worker()
    key = worker.get_current_task()

    def is_unwanted() -> bool:
        task = worker.state.tasks.get(key)
        leaves = worker.status.name in _LEAVING  # as it does when its scheduler is gone
        return leaves or task is None or task.state == "cancelled"

    return str(worker.address), is_unwanted
