"""`-n`: workers that are forked from one process, which has collected all tests.

A worker of xdist starts an interpreter, imports everything and collects every test by itself, for
5 s of a processor and 0.4 GB of memory. A fork has all that, and shares the memory. The option is
the one of xdist, which is installed because our plugin has to work with it.

The process that collected hands out the tests and shows the reports. A worker is told its next test
one ahead, because what a test leaves to the next is torn down, or kept, by what the next one is.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

RUN = "MCPTEST_TESTS_RUN"
"""In the environment of all workers of a run: what they share is found by it."""
_WORKERS = pytest.StashKey[int]()
_HERE = {
    "sysplatform": sys.platform, "version_info": sys.version_info, "executable": sys.executable,
}  # fmt: skip


def number_of_workers(wanted: str | int) -> int:
    """Four for each processor and two more: a test mostly waits for a process to speak or to end.

    Three left two processors idle for a fifth of the time. Tests of single rooms compute and hardly
    wait: with `-n logical` there are two for each processor.
    """
    processors = os.cpu_count() or 1
    return {"auto": 4 * processors + 2, "logical": 2 * processors}.get(str(wanted)) or int(wanted)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Before xdist sees that there is something to do for it."""
    wanted = getattr(config.option, "numprocesses", None)
    if wanted and not config.option.usepdb:
        config.stash[_WORKERS] = number_of_workers(wanted)
        config.option.numprocesses, config.option.dist = None, "no"


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = min(session.config.stash.get(_WORKERS, 0), len(session.items))
    if not count or session.testsfailed or session.config.option.collectonly:
        return None
    os.environ[RUN] = os.urandom(16).hex()
    if warm := sys.modules.get("tests.e2e.warm_command"):  # a test runs commands
        warm.warm_command()
    _Handout(session, count).run()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


# -- who hands out ---------------------------------------------------------------------------------


class _Worker:
    """As the process sees it that hands out."""

    def __init__(self, name: str, pid: int, link: Connection, queue: deque[int]) -> None:
        self.name, self.pid, self.link = name, pid, link
        self.queue = queue
        """What is meant for it, and was not yet handed out."""
        self.given: deque[int] = deque()
        """What it runs, and what it knows to be next."""
        self.knows_its_last = False
        self.node = SimpleNamespace(
            gateway=SimpleNamespace(id=name), workerinfo=_HERE | {"id": name}
        )
        """What the terminal shows of a worker, as of one of xdist."""


class _Handout:
    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session, self._config = session, session.config
        self._workers: list[_Worker] = []
        self._started = 0
        factory: Any = self._config._tmp_path_factory  # type: ignore[attr-defined]
        factory.getbasetemp()  # once for all of them
        if reporter := self._config.pluginmanager.getplugin("terminalreporter"):
            reporter.showfspath = False
        tests = range(len(session.items))
        for number in range(count):  # tests of one file mostly stay together
            part = tests[number * len(tests) // count : (number + 1) * len(tests) // count]
            self._start(deque(part))

    def run(self) -> None:
        try:
            while self._workers:
                by_link = {worker.link: worker for worker in self._workers}
                for link in wait(list(by_link)):
                    self._listen(by_link[link])  # type: ignore[index]
        finally:
            for worker in self._workers:  # we were interrupted, or are broken
                worker.link.close()
                os.kill(worker.pid, signal.SIGINT)
                os.waitpid(worker.pid, 0)

    def _start(self, queue: deque[int]) -> None:
        ours, theirs = Pipe()
        self._started += 1
        name = f"w{self._started}"
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            for link in (ours, *(worker.link for worker in self._workers)):
                link.close()
            _work(self._session, theirs, name)
        theirs.close()
        worker = _Worker(name, pid, ours, queue)
        self._workers.append(worker)
        self._hand_out(worker)
        self._hand_out(worker)

    def _hand_out(self, worker: _Worker) -> None:
        """The next test: its own, or half of what the one with most has left."""
        if worker.knows_its_last:
            return
        if self._session.shouldfail or self._session.shouldstop:
            worker.queue.clear()
        elif not worker.queue:
            most = max((each.queue for each in self._workers), key=len)
            kept = len(most) // 2
            worker.queue.extend([most.pop() for _ in range(len(most) - kept)][::-1])
        index = worker.queue.popleft() if worker.queue else None
        if index is None:
            worker.knows_its_last = True
        else:
            worker.given.append(index)
        try:
            worker.link.send(index)
        except BrokenPipeError:  # it crashed: the end of its words comes next
            return

    def _listen(self, worker: _Worker) -> None:
        try:
            what, data = worker.link.recv()
        except (EOFError, ConnectionResetError):
            self._bury(worker)
            return
        hook = self._config.hook
        if what == "report":
            report = hook.pytest_report_from_serializable(config=self._config, data=data)
            report.node = worker.node
            hook.pytest_runtest_logreport(report=report)
        elif what == "warning":
            message, given = data
            given["warning_message"] = warnings.WarningMessage(**message)
            hook.pytest_warning_recorded.call_historic(kwargs=given)
        elif what == "done":
            item = self._session.items[worker.given.popleft()]
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            self._hand_out(worker)
        else:
            raise RuntimeError(f"the worker is broken\n{data}")

    def _bury(self, worker: _Worker) -> None:
        """It has no more to say. A test that it was still at has failed, and another goes on."""
        worker.link.close()
        self._workers.remove(worker)
        _, status = os.waitpid(worker.pid, 0)
        if not worker.given:
            return
        item = self._session.items[worker.given.popleft()]
        code = os.waitstatus_to_exitcode(status)
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"the worker {worker.name} ended with {code} in this test",
            when="call",
        )
        report.node = worker.node  # type: ignore[attr-defined]
        self._config.hook.pytest_runtest_logreport(report=report)
        worker.queue.extendleft(reversed(worker.given))
        if worker.queue:
            self._start(worker.queue)


# -- the worker ------------------------------------------------------------------------------------


class _Relay:
    """Sends on what a terminal would show."""

    def __init__(self, config: pytest.Config, link: Connection) -> None:
        self._config, self._link = config, link

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        data = hook.pytest_report_to_serializable(config=self._config, report=report)
        self._link.send(("report", data))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        told = {
            "message": str(warning_message.message),
            "category": UserWarning,
            "filename": warning_message.filename,
            "lineno": warning_message.lineno,
        }
        told["message"] = f"{warning_message.category.__name__}: {told['message']}"
        more = {"when": when, "nodeid": nodeid, "location": location}
        self._link.send(("warning", (told, more)))


def _work(session: pytest.Session, link: Connection, name: str) -> NoReturn:
    atexit._clear()  # what was registered so far is for the process that collected
    code = 1
    try:
        _become_a_worker(session.config, link, name)
        _run_tests(session, session.items, link)
        code = 0
    except (KeyboardInterrupt, EOFError, BrokenPipeError):
        pass  # nobody listens any more
    except BaseException:  # noqa: BLE001 - told, and the run ends
        link.send(("broken", traceback.format_exc()))
    try:
        session._setupstate.teardown_exact(None)
        atexit._run_exitfuncs()
    finally:
        os._exit(code)


def _become_a_worker(config: pytest.Config, link: Connection, name: str) -> None:
    """Its own temporary folder, its own files for what tests print, and no terminal."""
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / name
    factory._basetemp.mkdir(mode=0o700)
    if capture := config.pluginmanager.getplugin("capturemanager"):
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    if reporter := config.pluginmanager.getplugin("terminalreporter"):
        reporter._tw._file = open(os.devnull, "w")  # noqa: PTH123, SIM115 - up to the end
    config.pluginmanager.register(_Relay(config, link))


def _run_tests(session: pytest.Session, items: Sequence[pytest.Item], link: Connection) -> None:
    index = link.recv()
    while index is not None:
        following = link.recv()
        session.config.hook.pytest_runtest_protocol(
            item=items[index], nextitem=None if following is None else items[following]
        )
        link.send(("done", None))
        index = following
