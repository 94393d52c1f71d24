"""What is not run says why, and nothing is excused that could be run."""

from __future__ import annotations

from tests.docs.fences import fences_of, pages, steps_of
from tests.docs.marks import Marked, all_marked, why_not_needed

MOST = 0.15
"""The share of commands that may be marked, at most."""


def test_every_mark_is_needed() -> None:
    wrong = [(each, why) for each in all_marked() if (why := why_not_needed(each))]
    assert not wrong, "\n".join(f"{each.page}:{each.line}: {why}" for each, why in wrong)


def test_few_commands_are_marked() -> None:
    marked = [command for each in all_marked() for command in each.commands]
    told = [
        step
        for page in pages()
        for fence in fences_of(page.read_text(encoding="utf-8"))
        if fence.is_commands
        for step in steps_of(fence)
    ]
    assert len(marked) <= MOST * len(told), f"{len(marked)} of {len(told)}: {marked}"


def test_a_mark_that_excuses_too_much_is_noticed() -> None:
    assert why_not_needed(Marked("docs/x.md", 1, "slow", ("mcptest --version",)))
    unread = "docs/" + 9 * "y" + ".md"  # a name that does not stand here
    assert why_not_needed(Marked(unread, 1, "tests/docs/test_marks.py has it", ()))
    assert why_not_needed(Marked("docs/x.md", 1, "tests/no/such.py has it", ("mcptest run",)))
    assert not why_not_needed(Marked("docs/x.md", 1, "the network", ("pipx install mcptest",)))
