"""The live display of a command: who gets one, and that nothing of it is left however it ends."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from mcptest.core.results import Status, TestResult
from mcptest.probe.suites.settings import Numbered
from mcptest.report.evidence import first_line
from mcptest.report.progress import ERASE, Progress, ticking
from mcptest.report.terminal import Style
from mcptest.transport.interrupt import last_words


@contextlib.contextmanager
def live_progress(arguments: argparse.Namespace, total: int) -> Iterator[Progress]:
    """For a command whose waits are too deep down to move a clock: a thread does that."""
    style = Style.of(sys.stderr, no_color=arguments.no_color)
    progress = Progress(sys.stderr, total, style)
    progress.is_live = progress.is_live and not getattr(arguments, "quiet", False)
    with _erased_at_the_last(progress.is_live), ticking(progress):
        yield progress


class LiveRun:
    """The display of a run of suites."""

    def __init__(self, arguments: argparse.Namespace, total: int) -> None:
        style = Style.of(sys.stderr, no_color=arguments.no_color)
        self._progress = Progress(sys.stderr, total, style, verbose=arguments.verbose)
        self._live = self._progress.is_live and not arguments.quiet
        self._tells = not arguments.quiet and (self._live or arguments.verbose)

    @property
    def tick(self) -> Callable[[], None] | None:
        """None where nobody looks: then the run need not wake up for it."""
        return self._progress.tick if self._live else None

    def begins(self, item: Numbered) -> None:
        """Any thread may say so; it only writes it down."""
        if self._live:
            test = item.test
            key = (test.place.file, test.place.line, test.name, item.trial, item.language)
            self._progress.begin(key, test.name)

    def ended(self, result: TestResult) -> None:
        if self._tells:
            key = (result.file, result.line, result.name, result.trial, result.language)
            failed = result.status is Status.FAIL
            reason = first_line(result.detail) if failed else ""
            self._progress.finish(key, result.name, failed=failed, reason=reason)

    def close(self) -> None:
        self._progress.close()


@contextlib.contextmanager
def live_run(arguments: argparse.Namespace, total: int) -> Iterator[LiveRun]:
    display = LiveRun(arguments, total)
    try:
        with _erased_at_the_last(display.tick is not None):
            yield display
    finally:
        display.close()


@contextlib.contextmanager
def _erased_at_the_last(shown: bool) -> Iterator[None]:
    """Also for one who is told to go twice and leaves without another word."""
    if shown:
        last_words.append(_erase)
    try:
        yield
    finally:
        if shown:
            last_words.remove(_erase)


def _erase() -> None:
    """Within a signal handler: past the buffers, whose locks the interrupted code may hold."""
    with contextlib.suppress(OSError):
        os.write(2, ERASE.encode())
