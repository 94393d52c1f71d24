"""`[3/21] name` while a run goes on: on stderr, and only for a person who is looking."""

from __future__ import annotations

from typing import TextIO

from mcptest.model.results import Status, TestResult
from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.evidence import first_line
from mcptest.report.terminal import Style, say

_START_OF_LINE = "\r\x1b[K"


class StatusLine:
    """One line that is written over and over, and is gone at the end.

    Only for a person at a terminal. A stream that can't be written to any more costs the line,
    never the run.
    """

    def __init__(self, stream: TextIO, style: Style, width: int = 80) -> None:
        self._stream = stream
        self._style = style
        self._width = width
        self._live = style.colour and stream.isatty()
        self._gone = False
        self._shown = False

    def draw(self, counter: str, text: str) -> None:
        """`[3/21] name`, in one line however long the name is."""
        if not self._live:
            return
        room = max(1, self._width - len(counter) - 2)
        fitted = columns.cut(show(text, 300), room)
        self._write(f"{_START_OF_LINE}{self._style.paint(counter, 'dim')} {fitted}")
        self._shown = True

    def tell(self, line: str) -> None:
        """A line that stays, also where there is no terminal."""
        self.clear()
        self._write(line + "\n")

    def clear(self) -> None:
        """Leave the line empty, for the report or for an error."""
        if self._shown:
            self._write(_START_OF_LINE)
            self._shown = False

    def _write(self, text: str) -> None:
        if self._gone:
            return
        try:
            say(self._stream, text)
            self._stream.flush()
        except (OSError, ValueError):  # gone, or closed by someone else
            self._gone = True
            self._live = False


class Progress:
    """What is running, on one line; with `verbose` also a line per failure, which stays."""

    def __init__(
        self, stream: TextIO, total: int, style: Style, *, verbose: bool = False, width: int = 80
    ) -> None:
        self._line = StatusLine(stream, style, width)
        self._total = total
        self._verbose = verbose
        self._begun = 0
        self._finished = 0
        self._running: dict[str, int] = {}

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
        self._line.clear()

    def _draw(self, name: str) -> None:
        self._line.draw(f"[{self._running[name]}/{self._total}]", name)

    def _tell_failure(self, result: TestResult) -> None:
        reason = f": {first_line(result.detail)}" if result.detail else ""
        counter = f"[{self._finished}/{self._total}]"
        self._line.tell(f"{counter} FAIL {show(result.name, 300)}{reason}")
