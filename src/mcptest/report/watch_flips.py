"""An outcome that flipped, for a person: what became of the test, why, and what changed.

The words are the peer's; no line that leaves this module can steer a terminal.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence

import msgspec

from mcptest.model.results import Status, TestResult
from mcptest.model.show import show
from mcptest.model.watched import Flip
from mcptest.report import columns
from mcptest.report.evidence import BRIEF, Bounds, detail_lines, first_line, proof_lines
from mcptest.report.terminal import Style

PROOFS_SHOWN = 5
"""So many failures come with their proof; the next ones with their reason."""
LINES_SHOWN = 20
_DIFF_LINES = 16
_DIFFED = 8_000
_NAME = 300
_MARGIN = "    "
_LABEL = 10


class Detail(msgspec.Struct, frozen=True):
    """How much of a failure is told."""

    bounds: Bounds = BRIEF
    all_failures: bool = False


def flip_lines(
    flips: Sequence[Flip], style: Style, width: int, detail: Detail | None = None
) -> Iterator[str]:
    """The failures first. A screenful at most, whatever happened."""
    detail = detail or Detail()
    worse = [flip for flip in flips if flip.is_worse]
    others = [flip for flip in flips if not flip.is_worse]
    for flip in worse[:PROOFS_SHOWN]:
        yield _title(flip, style)
        yield from _proof(flip, style, width, detail)
    for flip in worse[PROOFS_SHOWN:LINES_SHOWN]:
        yield f"{_title(flip, style)}: {first_line(flip.now.detail, 120)}"
    yield from _more(len(worse) - LINES_SHOWN, "failures")
    for flip in others[:LINES_SHOWN]:
        yield _title(flip, style)
    yield from _more(len(others) - LINES_SHOWN, "that no longer fail or are skipped now")


def _more(number: int, what: str) -> Iterator[str]:
    if number > 0:
        yield f"{_MARGIN}and {number} more {what}: a run shows them all (mcptest run)"


def _title(flip: Flip, style: Style) -> str:
    """`✗ adds numbers: PASS -> FAIL`"""
    name = show(flip.now.name, _NAME)
    if style.colour:
        name = style.paint(name, "bold")
    now, before = flip.now.status, flip.before
    if before is None:
        became = now.value
    elif before.status is now:
        became = f"still {now.value}, for another reason"
    else:
        became = f"{before.status.value} -> {now.value}"
    return f"{_symbol(now, style)} {name}: {became}"


def _symbol(status: Status, style: Style) -> str:
    if status is Status.SKIP:
        return style.dash
    return style.cross if status is Status.FAIL else style.tick


def _proof(flip: Flip, style: Style, width: int, detail: Detail) -> Iterator[str]:
    bounds = detail.bounds
    for line in detail_lines(flip.now, bounds, all_failures=detail.all_failures):
        yield _MARGIN + style.paint(_cut(line, style, width), "red")
    difference = list(_response_difference(flip))
    previous = ""
    for label, text in proof_lines(flip.now, bounds):
        if label == "response" and difference:
            yield f"{_labelled('response', style)}- when it passed, + now"
            yield from _painted(difference, style, width)
            continue
        shown = label if label != previous else ""
        previous = label
        whole = label == "repeat"  # it is for copying
        yield _labelled(shown, style) + (text if whole else _cut(text, style, width - _LABEL))


def _labelled(label: str, style: Style) -> str:
    text = f"{label}:" if label else ""
    return _MARGIN + style.paint(f"{text:<{_LABEL}}", "dim")


def _cut(line: str, style: Style, width: int) -> str:
    """A terminal gets lines that fit, a file gets them whole."""
    return columns.cut(line, max(20, width - len(_MARGIN) - 1)) if style.colour else line


# -- what the server said when the test passed, and now ------------------------------------------


def _response_difference(flip: Flip) -> Iterator[str]:
    before, now = _response(flip.before), _response(flip.now)
    if not before or not now or before == now:
        return
    found = difflib.unified_diff(_in_lines(before), _in_lines(now), lineterm="", n=0)
    lines = [line for line in found if not line.startswith(("---", "+++", "@@"))]
    yield from lines[:_DIFF_LINES]
    if len(lines) > _DIFF_LINES:
        yield f" ({len(lines) - _DIFF_LINES} more lines differ)"


def _response(result: TestResult | None) -> str:
    if result is None or result.proof is None:
        return ""
    return result.proof.response[:_DIFFED]


def _in_lines(text: str) -> list[str]:
    """JSON with a member on each line, so that a difference is small. It may have been cut."""
    try:
        lines = json.dumps(json.loads(text), indent=0, ensure_ascii=False).split("\n")
    except (ValueError, RecursionError):
        lines = re.split(r"(?<=[,{\[])", text)
    return [line.strip().removesuffix(",") for line in lines]


def _painted(lines: Sequence[str], style: Style, width: int) -> Iterator[str]:
    for line in lines:
        sign, rest = line[:1], show(line[1:], BRIEF.characters)
        colour = {"-": ("red",), "+": ("green",)}.get(sign, ("dim",))
        yield f"{_MARGIN}  " + style.paint(_cut(f"{sign} {rest}", style, width - 2), *colour)
