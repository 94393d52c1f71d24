"""What `--fix` found: where a failing test would pass, and the change of its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcptest.model.results import Suggestion
from mcptest.model.show import show


def render_suggestions(found: Sequence[Suggestion]) -> str:
    return "".join(f"{line}\n" for line in _lines(found))


def _lines(found: Sequence[Suggestion]) -> Iterator[str]:
    if not found:
        yield "--fix: no position nearby makes a failing test pass"
        return
    yield "--fix suggestions (no file was changed):"
    for each in found:
        yield ""
        yield f"  {show(f'{each.file}:{each.line}', 500)}: {show(each.name, 300)}"
        yield f"    passes at {_position(each.now)} (it has {_position(each.was)})"
        yield from (f"    {show(line, 500)}" for line in each.patch)


def _position(position: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{show(name, 40)} {value}" for name, value in position)
