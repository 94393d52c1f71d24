"""Write the samples of pages anew: `python -m tests.docs.rewrite docs/guide.md …`.

A sample that still holds stays as it is, with its gaps. Where only numbers differ, as the count of
rules does when there is a new one, they are put right. Any other is replaced by the whole output,
to be shortened by hand; a new one is made by showing `?` as its output.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.fences import ROOT
from tests.docs.matching import is_shown, recounted
from tests.docs.playing import Played, fits, played, ways_of
from tests.docs.workshop import Workshop, workshop


def rewritten(page: str, shop: Workshop) -> str:
    lines = page.splitlines()
    # From the end, so that the numbers of the lines before stay true.
    for fence, plays, text in reversed(list(played(page, shop))):
        for play in reversed(plays):
            _renew_sample(lines, play, shop)
        said = shop.as_on_the_page(text)
        if fence.file and not is_shown(fence.lines[1:], said):
            lines[fence.first : fence.first + len(fence.lines) - 1] = said.splitlines()
    return "\n".join(lines) + "\n"


def _renew_sample(lines: list[str], play: Played, shop: Workshop) -> None:
    step = play.step
    if play.done.code != (step.code or 0):
        print(f"  line {step.line}: {step.command} ends with {play.done.code}", file=sys.stderr)
    if not step.shown or fits(step, play.done, shop):
        return
    start = step.line  # the line behind the command, counted from 0
    while not lines[start].strip().startswith(step.shown[0].strip()):
        start += 1
    lines[start : start + len(step.shown)] = _sample(play, shop)


def _sample(play: Played, shop: Workshop) -> list[str]:
    for way in ways_of(play.done):
        if lines := recounted(play.step.shown, shop.as_on_the_page(way)):
            return lines
    out = shop.as_on_the_page(play.done.out or play.done.err)
    return [line.rstrip() for line in out.rstrip().splitlines()]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        print(path.relative_to(ROOT), file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder, workshop(path, Path(folder)) as shop:
            path.write_text(rewritten(path.read_text(), shop))
