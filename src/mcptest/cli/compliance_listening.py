"""Progress of judging on stderr, for a person who is looking."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcptest.run.lanes_compliance import Tell


@contextmanager
def listening(arguments: argparse.Namespace) -> Iterator[Tell]:
    """Who is told while a server is judged; nothing is left of it before a report or an error."""
    from mcptest.cli.live import live_progress
    from mcptest.report.compliance_progress import JudgingProgress

    with live_progress(arguments, 0) as progress:
        yield JudgingProgress(progress)
