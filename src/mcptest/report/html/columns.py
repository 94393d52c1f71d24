"""Whose column a rule stands in: one for each server that was judged, and for nothing else.

A server names itself, and two that name themselves alike would share a column. Then the name that
the user gave each of them counts, or the file. Rules and tests of one server stand together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mcptest.model.compliance import ComplianceReport
from mcptest.model.results import RunReport
from mcptest.report.html.facts import Source
from mcptest.report.stored import Stored


def told_apart(stored: Sequence[Stored], sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources, with columns that are what they were judged on."""
    tested = {
        column.server
        for one, source in zip(stored, sources, strict=True)
        if isinstance(one.report, RunReport)
        for column in source.columns
    }
    names = [list(_names(one, source)) for one, source in zip(stored, sources, strict=True)]
    return tuple(
        _named(source, _own_name(mine, [one for one in names if one is not mine], tested))
        for mine, source in zip(names, sources, strict=True)
    )


def _names(stored: Stored, source: Source) -> Iterator[str]:
    """What the server of a judgement could be called, the best name first; of others nothing."""
    if isinstance(stored.report, ComplianceReport) and source.columns:
        yield source.columns[0].server
        yield stored.report.server
        yield f"{stored.report.server} ({stored.file})"


def _own_name(mine: Sequence[str], others: Sequence[Sequence[str]], tested: set[str]) -> str:
    """The first that no other judgement has; nothing: as it is."""
    if not mine:
        return ""
    if mine[1] in tested:
        return mine[1]
    taken = [{one[level] for one in others if one} for level in range(len(mine))]
    free = (name for level, name in enumerate(mine) if name not in taken[level])
    return next(free, mine[-1])


def _named(source: Source, name: str) -> Source:
    if not name or name == source.columns[0].server:
        return source
    columns = [replace(one, name=f"{name} {one.revision}", server=name) for one in source.columns]
    renamed = {old.name: new.name for old, new in zip(source.columns, columns, strict=True)}
    entries = (replace(one, column=renamed.get(one.column, one.column)) for one in source.entries)
    return replace(source, columns=tuple(columns), entries=tuple(entries))
