"""The live display of a command: who gets one, and that nothing of it is left at its end."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

import msgspec

from mcptest.commands.output import Meanwhile
from mcptest.core.results import Status, TestResult
from mcptest.report.evidence import first_line
from mcptest.report.progress import ERASE, LiveBlock, Progress, is_live, ticking
from mcptest.report.terminal import Style, cut
from mcptest.transport.interrupt import last_words

if TYPE_CHECKING:  # few commands read suites
    from mcptest.probe.suites.settings import Numbered


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
    began = None if total else Meanwhile.shown_since  # one clock for as long as a server starts
    progress = Progress(sys.stderr, total, style, verbose=verbose and not quiet, began=began)
    progress.is_live = shown = progress.is_live and not quiet
    if shown:
        last_words.append(_erase)
    try:
        with ticking(progress):
            yield progress
    finally:
        if shown:
            last_words.remove(_erase)


# -- Until there is anything to show: what the command waits for ---------------------------------

_BETWEEN_SECONDS = 0.5


def show_start(meanwhile: Meanwhile, words: str, stream: TextIO, *, began: float) -> None:
    """`starting npx … 3s`, on a terminal that somebody looks at."""
    if not is_live(stream, Style.of(stream)):
        return
    Meanwhile.shown_since = began
    block = LiveBlock(stream)

    def draw() -> None:
        if not block.is_shown:
            last_words.append(_erase)
        seconds = f"{time.monotonic() - began:.0f}s"
        block.draw([cut(f"{words} … {seconds}", max(1, block.size()[0] - 1))])

    def clear() -> None:
        last_words.remove(_erase)
        block.clear()

    meanwhile.draw(draw, clear)
    while meanwhile.lasts(_BETWEEN_SECONDS):
        meanwhile.draw(draw, clear)


def _erase() -> None:
    """Within a signal handler: past the buffers, whose locks the interrupted code may hold."""
    with contextlib.suppress(OSError):
        os.write(2, ERASE.encode())
