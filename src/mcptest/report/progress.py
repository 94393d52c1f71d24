"""`[3/21] name` while a run goes on: on stderr, and only for a person who is looking."""

from __future__ import annotations

from typing import TextIO

from mcptest.model.results import Status, TestResult
from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.evidence import first_line
from mcptest.report.terminal import Style, say

_START_OF_LINE = "\r\x1b[K"


class Progress:
    """One line that is written over and over, and is gone at the end.

    Where there is no terminal nothing is said, except a line per failure with `verbose`. A stream
    that can't be written to any more costs the progress, never the run.
    """

    def __init__(
        self, stream: TextIO, total: int, style: Style, *, verbose: bool = False, width: int = 80
    ) -> None:
        self._stream = stream
        self._total = total
        self._style = style
        self._width = width
        self._live = style.colour and stream.isatty()
        self._verbose = verbose
        self._begun = 0
        self._finished = 0
        self._running: dict[str, int] = {}
        self._shown = False

    def begin(self, name: str) -> None:
        self._begun += 1
        self._running[name] = self._begun
        self._draw(name)

    def finish(self, result: TestResult) -> None:
        self._finished += 1
        self._running.pop(result.name, None)
        if self._verbose and result.status is Status.FAIL:
            self._tell_failure(result)
        if self._running:
            self._draw(next(reversed(self._running)))

    def close(self) -> None:
        """Leave the line empty, for the report or for an error."""
        if self._shown:
            self._write(_START_OF_LINE)
            self._shown = False

    def _draw(self, name: str) -> None:
        if not self._live:
            return
        counter = f"[{self._running[name]}/{self._total}]"
        room = max(1, self._width - len(counter) - 2)
        text = columns.cut(show(name, 300), room)
        self._write(f"{_START_OF_LINE}{self._style.paint(counter, 'dim')} {text}")
        self._shown = True

    def _tell_failure(self, result: TestResult) -> None:
        self.close()
        reason = f": {first_line(result.detail)}" if result.detail else ""
        counter = f"[{self._finished}/{self._total}]"
        self._write(f"{counter} FAIL {show(result.name, 300)}{reason}\n")

    def _write(self, text: str) -> None:
        try:
            say(self._stream, text)
            self._stream.flush()
        except (OSError, ValueError):  # gone, or closed by someone else
            self._live = self._verbose = False
