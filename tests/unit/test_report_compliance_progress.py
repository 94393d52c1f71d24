"""Progress while a server is judged: on a terminal, and nowhere else."""

from __future__ import annotations

import io

from mcptest.model.compliance_events import JudgingBegan, RuleJudged
from mcptest.model.revision import Revision
from mcptest.model.verdict import Outcome
from mcptest.report.compliance_progress import JudgingProgress
from mcptest.report.terminal import Style
from tests.unit.test_report_progress import COLOUR, Gone, Terminal, frames

BEGAN = JudgingBegan(Revision.V2026_07_28, "stdio", "weather 2.1.0", 168)
JUDGED = RuleJudged(37, 168, "TOOLS-004", Outcome.FAIL)


def test_a_terminal_sees_the_rule_that_was_judged_and_nothing_at_the_end() -> None:
    stream = Terminal()
    progress = JudgingProgress(stream, COLOUR)
    progress(BEGAN)
    progress(JUDGED)
    progress.close()
    assert frames(stream) == [
        "[0/168] weather 2.1.0 2026-07-28",
        "[37/168] TOOLS-004 2026-07-28",
        "",
    ]


def test_a_pipe_sees_nothing() -> None:
    stream = io.StringIO()
    for style in (COLOUR, Style()):
        progress = JudgingProgress(stream, style)
        progress(BEGAN)
        progress(JUDGED)
        progress.close()
    assert stream.getvalue() == ""


def test_a_name_that_is_too_long_or_hostile_stays_on_its_line() -> None:
    stream = Terminal()
    progress = JudgingProgress(stream, COLOUR, width=40)
    progress(JudgingBegan(Revision.DRAFT, "stdio", "\x1b[2J\n" + "x" * 500, 3))
    assert len(frames(stream)[0]) < 40
    assert "\x1b[2J" not in stream.getvalue()


def test_a_stream_that_is_gone_costs_the_progress_only() -> None:
    progress = JudgingProgress(Gone(), COLOUR)
    progress(BEGAN)
    progress(JUDGED)
    progress.close()
