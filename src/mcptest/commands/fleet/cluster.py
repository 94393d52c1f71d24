"""Judging servers on an existing Dask cluster. The scheduler decides where, and when again.

A worker that dies costs nothing but time: its work is done again elsewhere, as often as the
scheduler allows (`distributed.scheduler.allowed-failures`). What can't be done there is a row that
says so.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest import __version__
from mcptest.commands.fleet.worker_pool import FleetServerOrder, Found, encoded, judge_in_process
from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import Deadline
from mcptest.core.safe_text import show
from mcptest.report.fleet import ServerOutcome
from mcptest.transport.interrupt import Stop

_REACHING = 10.0
"""Seconds for the scheduler to answer, and for a first worker to be there."""
_WITHOUT_WORKERS = 30.0
"""After so many seconds without any worker the rest is given up."""
_LOOKS_UP = 1.0
_CLOSING = 5.0
_REMEDY = 'pip install "mcptest[fleet]"'


@contextlib.contextmanager
def judging_on_cluster(
    orders: Sequence[FleetServerOrder], stop: Stop, address: str, jobs: int = 0
) -> Iterator[Iterator[tuple[int, Found]]]:
    """The results of a cluster, as they come. `jobs`: not more at once; 0 leaves it to the cluster.

    UsageError where the extra or a fitting worker is missing, PeerError where nobody answers.
    """
    scheme, separator, rest = address.partition("://")
    known = ("tcp", "tls", "ws", "wss", "ucx")
    if (separator and (scheme not in known or not rest)) or not address.strip():
        said = f"not {show(address, 80)!r}"
        raise UsageError(f"--scheduler takes an address such as tcp://10.0.0.5:8786, {said}")
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise UsageError("--scheduler needs the package distributed", hint=_REMEDY) from None
    # What matters is said in our words; the rest would stand in the middle of the report.
    silenced = distributed.utils.silence_logging_cmgr(logging.CRITICAL + 1)
    with silenced, _connected(distributed, address, stop) as client:
        workers = _fitting_workers(client, address, stop)
        work = _Work(client, orders, stop, workers, jobs or len(orders))
        stop.on_set = work.wake
        try:
            with contextlib.closing(work.results()) as results:
                yield results
        finally:
            stop.on_set = lambda: None


@contextlib.contextmanager
def _connected(distributed: Any, address: str, stop: Stop) -> Iterator[Any]:
    """A client of the cluster."""

    def connect() -> Any:
        return distributed.Client(
            address, timeout=_REACHING, set_as_default=False, name="mcptest-fleet"
        )

    client, error = _within(_REACHING + _CLOSING, stop, connect)
    if error is not None:
        raise _unreachable(address, error) from None
    try:
        yield client
    finally:
        # a scheduler that is gone has no farewell
        _within(2 * _CLOSING, Stop(), lambda: client.close(timeout=_CLOSING))


def _unreachable(address: str, error: BaseException) -> PeerError:
    """Whatever went wrong: on the other side there is no scheduler that could be used."""
    kind, where = ErrorKind.CONNECTION_REFUSED, show(address, 200)
    message = f"the scheduler {where} cannot be reached: {_first_line(error)}"
    if isinstance(error, TimeoutError):
        kind, message = ErrorKind.TIMEOUT, f"the scheduler {where} does not answer: {error}"
    elif not isinstance(error, OSError | ValueError | RuntimeError):
        message = f"{where} is not a Dask scheduler: its response cannot be read"
    return PeerError(kind, message, hint="check that the scheduler runs at this address")


def _within(
    seconds: float, stop: Stop, action: Callable[[], Any]
) -> tuple[Any, BaseException | None]:
    """What an action gives, or how it failed. Dask waits for some answers without any limit.

    KeyboardInterrupt when we are told to stop. The thread of an action without end ends with us.
    """
    done: queue.SimpleQueue[tuple[Any, BaseException | None] | None] = queue.SimpleQueue()

    def act() -> None:
        try:
            done.put((action(), None))
        except BaseException as error:  # noqa: BLE001 - whoever waits has to tell it
            done.put((None, error))

    before, stop.on_set = stop.on_set, lambda: done.put(None)
    try:
        threading.Thread(target=act, daemon=True).start()
        found = None if stop.is_set() else done.get(timeout=seconds)
    except queue.Empty:
        return None, TimeoutError(f"no response within {seconds:g}s")
    finally:
        stop.on_set = before
    if found is None:
        raise KeyboardInterrupt
    return found


def _first_line(error: BaseException) -> str:
    """The last cause that has words knows what happened; a task that was cancelled has none."""
    text = type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        text, cause = str(cause) or text, cause.__cause__
    return show(text.partition("\n")[0], 200)


# -- who may work ------------------------------------------------------------------------------


def _fitting_workers(client: Any, address: str, stop: Stop) -> list[str] | None:
    """Addresses of workers that have this version of mcptest; None when all of them have it.

    Verdicts of two versions can't stand in one report.
    """
    versions = _versions(client, address, stop)
    fitting = [worker for worker, version in versions.items() if version == __version__]
    if len(fitting) == len(versions):
        return None
    if fitting:
        return fitting
    found = sorted({version or "none" for version in versions.values()})
    raise UsageError(
        f"no worker of {show(address, 200)} has mcptest {__version__}; "
        f"the {len(versions)} there have: {', '.join(show(one, 40) for one in found)}",
        hint=f'install it where the workers run: pip install "mcptest[fleet]=={__version__}"',
    )


def _versions(client: Any, address: str, stop: Stop) -> dict[str, str]:
    """By the address of the worker; empty for one that has no mcptest."""

    def ask() -> Any:
        client.wait_for_workers(1, timeout=_REACHING)
        return client.run(version, "mcptest", on_error="return")

    told, error = _within(2 * _REACHING, stop, ask)
    if error is not None:
        raise PeerError(
            ErrorKind.TIMEOUT,
            f"the cluster of {show(address, 200)} has no worker that answers: {_first_line(error)}",
            hint="start one with `dask worker ADDRESS`",
        ) from None
    return {worker: one if isinstance(one, str) else "" for worker, one in told.items()}


# -- the work ------------------------------------------------------------------------------------


class _Work:
    """Orders on their way through the cluster."""

    def __init__(
        self,
        client: Any,
        orders: Sequence[FleetServerOrder],
        stop: Stop,
        workers: list[str] | None,
        most: int,
    ) -> None:
        self._client = client
        self._orders = orders
        self._stop = stop
        self._workers = workers
        self._most = most
        self._todo = deque(range(len(orders)))
        self._under_way: dict[int, Any] = {}
        self._over: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._name = f"mcptest-fleet-{uuid.uuid4().hex}"
        self._lonely = Deadline.after(_WITHOUT_WORKERS)

    def wake(self) -> None:
        """A signal handler may call this."""
        self._over.put(None)

    def results(self) -> Generator[tuple[int, Found], None, None]:
        try:
            while (self._todo or self._under_way) and not self._stop.is_set():
                self._fill()
                number = None
                with contextlib.suppress(queue.Empty):
                    number = self._over.get(timeout=_LOOKS_UP)
                if number is not None:
                    yield number, self._found(number, self._under_way.pop(number))
                elif self._is_deserted():
                    break
            yield from self._left_over()
        finally:
            for future in self._under_way.values():
                _within(_CLOSING, Stop(), future.cancel)  # perhaps nobody is there to be told

    def _fill(self) -> None:
        while self._todo and len(self._under_way) < self._most:
            number = self._todo.popleft()
            future = self._client.submit(
                judge_for_a_cluster,
                self._orders[number],
                __version__,
                key=f"{self._name}-{number}",
                pure=False,
                workers=self._workers,
            )
            future.add_done_callback(lambda _, number=number: self._over.put(number))
            self._under_way[number] = future

    def _found(self, number: int, future: Any) -> Found:
        name = self._orders[number].name
        if future.status == "finished":
            found: Found = msgspec.json.decode(future.result(timeout=_REACHING), type=Found)
            return found
        if future.status == "error":
            return _lost(name, _in_words(future.exception(timeout=_REACHING)))
        return _lost(name, f"the scheduler is gone, or gave the work up ({future.status})")

    def _is_deserted(self) -> bool:
        """Whether there has been nobody to do the work for a long time."""
        if self._client.status == "running":
            present, error = _within(_REACHING, Stop(), self._client.nthreads)
            wanted = self._workers
            if error is None and any(wanted is None or one in wanted for one in present):
                self._lonely = Deadline.after(_WITHOUT_WORKERS)
        return self._lonely.expired

    def _left_over(self) -> Iterator[tuple[int, Found]]:
        """Orders that nobody carried out: because we were told to stop, or nobody is there."""
        for number in [*self._under_way, *self._todo]:
            name = self._orders[number].name
            if self._stop.is_set():
                yield number, Found.nothing(name, ServerOutcome.INTERRUPTED, "interrupted")
            else:
                gone = f"the cluster had no worker for {_WITHOUT_WORKERS:g}s"
                yield number, _lost(name, gone)


def _lost(name: str, reason: str) -> Found:
    return Found.nothing(name, ServerOutcome.NOT_JUDGED, reason)


def _in_words(error: BaseException | None) -> str:
    if type(error).__name__ == "KilledWorker":
        last = getattr(getattr(error, "last_worker", None), "address", "")
        where = f", the last of them {show(str(last), 100)}" if last else ""
        return f"every worker that judged it died{where}"
    return f"the cluster could not do it: {type(error).__name__}: {show(str(error), 300)}"


_LEAVING = frozenset({"closing", "closed", "failed"})


def judge_for_a_cluster(order: FleetServerOrder, version: str) -> bytes:
    """What was found, as JSON. Never raises: a cluster writes the arguments of what fails to logs.

    A worker that dies takes its process along, and the work is done again on another worker.
    """
    if version != __version__:
        reason = f"the worker has mcptest {__version__}, and {version} asked"
        return encoded(_lost(order.name, reason))
    try:
        worker, is_unwanted = _whom_we_work_for()
        found = judge_in_process(order, is_unwanted)
        return encoded(replace(found, server=replace(found.server, worker=worker)))
    except Exception as error:  # noqa: BLE001 - said in the row of this server, and never a pass
        reason = f"a defect of mcptest: {type(error).__name__}: {show(str(error), 300)}"
        return encoded(_lost(order.name, reason))


def _whom_we_work_for() -> tuple[str, Callable[[], bool]]:
    """The address of this worker, and whether our work is not wanted any more."""
    worker: Any = import_module("distributed").get_worker()
    key = worker.get_current_task()

    def is_unwanted() -> bool:
        task = worker.state.tasks.get(key)
        leaves = worker.status.name in _LEAVING  # as it does when its scheduler is gone
        return leaves or task is None or task.state == "cancelled"

    return str(worker.address), is_unwanted
