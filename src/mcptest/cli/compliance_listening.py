"""Progress of judging on stderr, for a person who is looking."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcptest.run.lanes_compliance import Tell


@contextmanager
def listening(arguments: argparse.Namespace) -> Iterator[Tell]:
    """Who is told while a server is judged; the line is gone before a report or an error."""
    if arguments.quiet:
        yield lambda event: None
        return
    from mcptest.report.compliance_progress import JudgingProgress
    from mcptest.report.terminal import Style, columns

    style = Style.of(sys.stderr, no_color=arguments.no_color)
    progress = JudgingProgress(sys.stderr, style, columns())
    try:
        yield progress
    finally:
        progress.close()
