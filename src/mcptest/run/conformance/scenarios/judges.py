"""Short ways for a check of a server to say what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from mcptest.clients.scenario import Row
from mcptest.model.conformance import Reference, Status
from mcptest.model.show import show
from mcptest.rules.declare import SPECIFICATION
from mcptest.run.conformance.scenarios.scenario import Judge
from mcptest.run.conformance.scenarios.scene import Heard, Obj, Scene

Problems: TypeAlias = Callable[[Obj], Iterable[str]]
_EXCERPT = 400


def found(
    problems: Iterable[str], heard: Heard | None = None, name: str = "", *, mild: bool = False
) -> Row:
    """A success without problems; with them a failure, or a warning where it is only advice."""
    said = "; ".join(problems)
    if not said:
        return Row(Status.SUCCESS, "", name, _place(heard))
    status = Status.WARNING if mild else Status.FAILURE
    return Row(status, said, name, _place(heard), excerpt_of(heard))


def can_not_tell(why: str, heard: Heard | None = None, name: str = "") -> Row:
    """Something is missing that the check needs; says what would unlock it."""
    return Row(Status.UNTESTABLE, why, name, _place(heard), excerpt_of(heard))


def not_for_it(why: str, name: str = "") -> Row:
    """About something that the server does not have, and does not need to have."""
    return Row(Status.SKIPPED, why, name)


def told(why: str, heard: Heard | None = None, name: str = "") -> Row:
    return Row(Status.INFO, why, name, _place(heard))


def _place(heard: Heard | None) -> int | None:
    # A capture's first record tells of the peer; the connection's own records follow it.
    return None if heard is None else heard.begins + 1


def excerpt_of(heard: Heard | None) -> str:
    return "" if heard is None or not heard.received else show(heard.received, _EXCERPT)


def result_of(label: str, problems: Problems, *, mild: bool = False) -> Judge:
    """The result of what was asked under a label must be there, and have no problems."""

    def judge(scene: Scene) -> Iterator[Row]:
        heard = scene[label]
        missing = heard.without_result
        yield found([missing] if missing else problems(heard.result), heard, mild=mild)

    return judge


def success_of(label: str, problems: Problems) -> Judge:
    """The tool that was called under a label must have done its work, and without problems."""

    def judge(scene: Scene) -> Iterator[Row]:
        heard = scene[label]
        missing = heard.without_success
        yield found([missing] if missing else problems(heard.result), heard)

    return judge


def reference(name: str, page: str) -> tuple[Reference, ...]:
    """`page` is below the specification's address, with the revision: `2025-11-25/basic`."""
    return (Reference(name, f"{SPECIFICATION}/{page}"),)


def sep(number: int) -> tuple[Reference, ...]:
    """The proposal that brought a requirement in."""
    address = "https://github.com/modelcontextprotocol/modelcontextprotocol/issues"
    return (Reference(f"SEP-{number}", f"{address}/{number}"),)


def listed(value: Any) -> list[Obj]:
    """The objects of a list; empty when it is none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def missing_members(items: Any, what: str, *members: str) -> Iterator[str]:
    """What a list of a result lacks."""
    if not isinstance(items, list):
        yield f"{what}s is no array"
        return
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            yield f"{what} {place} is no object"
            continue
        for member in members:
            if not item.get(member):
                yield f"{what} {place} has no {member}"
