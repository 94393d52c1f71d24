"""Many tests on one server and one fixture copy, with up to so many plain calls at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence

import msgspec

from mcptest.model.results import TestResult
from mcptest.run.attempt import Attempt
from mcptest.run.jobs import Tests
from mcptest.run.pool import Found
from mcptest.run.server_session import ServerSession
from mcptest.run.settings import Numbered, Settings
from mcptest.suite.model import Test, ToolBlock

_FAILED_STARTS = 2
"""After so many in a row a server is not started again: all further tests fail for that reason."""
_AGAIN = "the shared server was lost with several calls under way; this one was made again, alone"


class SharedJob(Tests):
    """Tests one after the other on one server. One that was lost is replaced by a new one."""

    def __init__(self, items: Sequence[Numbered], settings: Settings, in_flight: int) -> None:
        super().__init__(items, settings)
        self._in_flight = in_flight
        self._shared: ServerSession | None = None
        self._sessions = 0
        self._failed_starts = 0
        self._under_way: deque[Attempt] = deque()

    def prepare(self) -> None:
        self._server()

    def release(self) -> None:
        self._drop()

    def run(self) -> Generator[Found, None, None]:
        for item in self.items:
            if self._in_flight == 1 or not may_share_the_line(item.test):
                yield from self._settle_all()
                yield self._told(item, self._alone(item))
                continue
            if self._shared is not None and self._shared.is_gone:
                yield from self._settle_all()
            attempt = Attempt(item, self._server(), self.settings).begin()
            self._under_way.append(attempt)
            if attempt.could_not_begin:
                yield from self._settle_all()
            elif len(self._under_way) >= self._in_flight:
                yield from self._settle_first()
        yield from self._settle_all()

    # -- calls under way -------------------------------------------------------------------------

    def _settle_all(self) -> Iterator[Found]:
        while self._under_way:
            yield from self._settle_first()

    def _settle_first(self) -> Iterator[Found]:
        """Wait for the answer to the call that was made first."""
        attempt = self._under_way.popleft()
        if self._under_way:
            result = self._finish(attempt)
            if attempt.has_lost_the_server:
                yield from self._sort_out(attempt)
                return
        else:
            result = self._finish_alone(attempt)
        yield self._told(attempt.item, result)

    def _sort_out(self, first: Attempt) -> Iterator[Found]:
        """The server is lost, and any of the calls may be to blame: make each again, alone.

        What was answered before stands.
        """
        others, self._under_way = self._under_way, deque()
        results = {each.item.number: self._finish(each) for each in others if each.is_answered}
        self._drop()
        for attempt in (first, *others):
            result = results.get(attempt.item.number)
            if result is None or attempt.has_lost_the_server:
                again = self._alone(attempt.item)
                result = msgspec.structs.replace(again, note=again.note or _AGAIN)
            yield self._told(attempt.item, result)

    # -- one at a time ---------------------------------------------------------------------------

    def _alone(self, item: Numbered) -> TestResult:
        return self._finish_alone(Attempt(item, self._server(), self.settings))

    def _finish_alone(self, attempt: Attempt) -> TestResult:
        result = self._finish(attempt)
        if not attempt.session.could_not_begin:
            self._failed_starts = 0
            if attempt.has_lost_the_server:
                self._drop()
        elif self._failed_starts < _FAILED_STARTS:
            self._failed_starts += 1
            if self._failed_starts < _FAILED_STARTS:
                self._drop()
        return result

    # -- the server ------------------------------------------------------------------------------

    def _server(self) -> ServerSession:
        """The shared server, started anew if the last one was lost."""
        given_up = self._failed_starts >= _FAILED_STARTS
        shared = self._shared
        # one that ended before it was ever used has not been lost: its first test tells why
        if shared is not None and shared.has_begun and shared.is_gone and not given_up:
            self._drop()
        if self._shared is None:
            self._sessions += 1
            self._shared = ServerSession(self.items[0], self.settings, self._sessions)
            self._shared.launch()
        return self._shared

    def _drop(self) -> None:
        session, self._shared = self._shared, None
        if session is not None:
            session.close()


def may_share_the_line(test: Test) -> bool:
    """A plain call, whose verdict does not depend on what happens beside it."""
    block = test.block
    if not isinstance(block, ToolBlock) or test.setup or block.capture_progress:
        return False
    expect = block.expect
    files = (expect.file_contains, expect.file_not_contains, expect.file_not_exists)
    aside = ("notification", "duration", "progress")
    looks_aside = any(each.target.startswith(aside) for each in expect.checks)
    alone = looks_aside or expect.max_duration is not None
    return not alone and not any(files) and not expect.file_unchanged
