"""The kinds of work that a pool runs: a fresh server per test, a shared one, a URL, no server."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from mcptest.model.results import TestResult
from mcptest.peer.connection import Stopped
from mcptest.run.attempt import Attempt, broken, check_trace, skipped
from mcptest.run.pool import Found, Job
from mcptest.run.server_session import ServerSession
from mcptest.run.settings import Numbered, Settings, skip_reason


class Tests:
    """What all jobs have: their tests, and results for those that a defect of ours left out."""

    def __init__(self, items: Sequence[Numbered], settings: Settings) -> None:
        self.items = list(items)
        self.settings = settings
        self._done: set[int] = set()

    def prepare(self) -> None:
        """Nothing to get going."""

    def release(self) -> None:
        """Nothing to take down."""

    def failed(self, error: Exception) -> Iterator[Found]:
        for item in self.items:
            if item.number not in self._done:
                yield self._told(item, broken(item, error))

    def _told(self, item: Numbered, result: TestResult) -> Found:
        self._done.add(item.number)
        return item.number, result

    def _finish(self, attempt: Attempt) -> TestResult:
        """The result of an attempt. A defect of ours costs this test, not those behind it."""
        try:
            return attempt.finish()
        except Stopped:
            raise
        except Exception as error:  # noqa: BLE001 - said as what it is, and never a pass
            return broken(attempt.item, error)


class FreshJob(Tests):
    """One test with a server of its own, launched ahead."""

    def __init__(self, item: Numbered, settings: Settings) -> None:
        super().__init__([item], settings)
        self._own = ServerSession(item, settings)

    def prepare(self) -> None:
        self._own.launch()

    def run(self) -> Generator[Found, None, None]:
        item = self.items[0]
        yield self._told(item, self._finish(Attempt(item, self._own, self.settings)))

    def release(self) -> None:
        self._own.close()


class SerialJob:
    """Jobs that must not be under way at the same time: each begins when the last one has ended.

    The end is that of the server, not of its last answer: what it keeps may be written then.
    """

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._has_run = False

    def prepare(self) -> None:
        """Only the first: the start of a server may depend on what the one before it left."""
        self.jobs[0].prepare()

    def run(self) -> Generator[Found, None, None]:
        self._has_run = True
        for position, job in enumerate(self.jobs):
            try:
                if position:
                    job.prepare()
                yield from job.run()
            except Stopped:
                raise
            except Exception as error:  # noqa: BLE001 - a defect of ours costs one job, and is said
                yield from job.failed(error)
            finally:
                job.release()

    def release(self) -> None:
        """What was prepared and never run; all others are taken down as they end."""
        if not self._has_run:
            self.jobs[0].release()

    def failed(self, error: Exception) -> Iterator[Found]:
        for job in self.jobs:
            yield from job.failed(error)


class TraceJob(Tests):
    """Trajectories: checked without any server."""

    def run(self) -> Generator[Found, None, None]:
        for item in self.items:
            try:
                result = check_trace(item, self.settings)
            except Exception as error:  # noqa: BLE001 - said as what it is, and never a pass
                result = broken(item, error)
            yield self._told(item, result)


class SkipJob(Tests):
    """Tests that are not to be run, with the reason."""

    def run(self) -> Generator[Found, None, None]:
        for item in self.items:
            yield self._told(item, skipped(item, skip_reason(item.test) or "skipped"))
