"""The live display of a command: who gets one, and that nothing of it is left however it ends."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator

import msgspec

from mcptest.core.results import Status, TestResult
from mcptest.probe.suites.settings import Numbered
from mcptest.report.evidence import first_line
from mcptest.report.progress import ERASE, Progress, ticking
from mcptest.report.terminal import Style
from mcptest.transport.interrupt import last_words


class LiveRun(msgspec.Struct, frozen=True):
    """The display of a run of suites."""

    _progress: Progress

    def begins(self, item: Numbered) -> None:
        """Any thread may say so; it only writes it down."""
        test = item.test
        key = (test.place.file, test.place.line, test.name, item.trial, item.language)
        self._progress.begin(key, test.name)

    def ended(self, result: TestResult) -> None:
        key = (result.file, result.line, result.name, result.trial, result.language)
        failed = result.status is Status.FAIL
        reason = first_line(result.detail) if failed else ""
        self._progress.finish(key, result.name, failed=failed, reason=reason)


@contextlib.contextmanager
def live_run(arguments: argparse.Namespace, total: int) -> Iterator[LiveRun]:
    with live_progress(arguments, total, verbose=arguments.verbose) as progress:
        yield LiveRun(progress)


@contextlib.contextmanager
def live_progress(
    arguments: argparse.Namespace, total: int, *, verbose: bool = False
) -> Iterator[Progress]:
    """Erased at the end, also for one who is told to go twice and leaves without another word."""
    quiet = getattr(arguments, "quiet", False)
    style = Style.of(sys.stderr, no_color=arguments.no_color)
    progress = Progress(sys.stderr, total, style, verbose=verbose and not quiet)
    progress.is_live = shown = progress.is_live and not quiet
    if shown:
        last_words.append(_erase)
    try:
        with ticking(progress):
            yield progress
    finally:
        if shown:
            last_words.remove(_erase)


def _erase() -> None:
    """Within a signal handler: past the buffers, whose locks the interrupted code may hold."""
    with contextlib.suppress(OSError):
        os.write(2, ERASE.encode())
