"""All pages of a list: the one way in which they are walked, whoever asks for them.

A walk ends where the server says so. One that leads back to a page that was seen, or that goes on
past the limit, has no end: it is told once, and what was listed again and again counts once. All
pages of a list together take no longer than one request may: a page each moment is no excuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Self, TypeVar

import msgspec

from mcptest.core.errors import ErrorKind, PeerError, UsageError, close_matches
from mcptest.core.limits import DEFAULT_LIMITS, Deadline
from mcptest.core.safe_text import show
from mcptest.wire import envelope
from mcptest.wire.json_text import spelled

LIST_MEMBERS: Final = envelope.LIST_MEMBERS
LIST_CAPABILITIES: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
}
"""The capability that declares each list."""
ITEM_NAMES: Final = {
    "tools/list": "name",
    "prompts/list": "name",
    "resources/list": "uri",
    "resources/templates/list": "uriTemplate",
}
"""The member by which an item of each list is known."""

LONGEST_CURSOR = 1024 * 1024
"""Each is remembered, and sent: one that grows from page to page would fill the memory."""

_COMPARED = 1_000
"""More names are not compared with one that is misspelled."""
Answer = TypeVar("Answer")


def named_items(items: Iterable[Any], member: str = "name") -> list[dict[str, Any]]:
    """Those of a list that can be asked for: objects with a text in the member that names them."""
    return [one for one in items if isinstance(one, dict) and isinstance(one.get(member), str)]


def check_tool_names(wanted: Iterable[str], tools: Iterable[Any]) -> None:
    """Every tool that the user names has to be there. Raises UsageError with the nearest name."""
    offered = [one["name"] for one in named_items(tools)]
    for name in wanted:
        if name not in offered and name != "*":
            near = close_matches(name, offered[:_COMPARED], n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {len(offered)} other tools"
            raise UsageError(f"the server has no tool named {name!r}", hint=hint)


def is_declared(path: str, capabilities: Mapping[str, Any]) -> bool:
    """Whether a capability is declared; a dot leads inside: `tools.listChanged`."""
    value: Any = capabilities
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value is not None and value is not False


class Offer(msgspec.Struct, frozen=True):
    """What a server declares and lists, as it came."""

    tools: tuple[Any, ...] = ()
    prompts: tuple[Any, ...] = ()
    resources: tuple[Any, ...] = ()
    templates: tuple[Any, ...] = ()
    capabilities: Mapping[str, Any] = {}
    problems: Mapping[str, str] = {}
    """Lists that could not be read to their end, by their method, with the reason."""

    @classmethod
    def of(cls, lists: Mapping[str, Iterable[Any]], **more: Any) -> Self:
        """With what each list has, by its method."""
        tools, prompts, resources, templates = (
            tuple(lists.get(method, ())) for method in LIST_CAPABILITIES
        )
        return cls(tools, prompts, resources, templates, **more)

    @property
    def lists(self) -> dict[str, tuple[Any, ...]]:
        """What each list has, by its method."""
        parts = (self.tools, self.prompts, self.resources, self.templates)
        return dict(zip(LIST_CAPABILITIES, parts, strict=True))

    def declares(self, path: str) -> bool:
        return is_declared(path, self.capabilities)

    def names(self, part: str, member: str = "name") -> tuple[str, ...]:
        """The usable names in one of the lists."""
        return tuple(one[member] for one in named_items(getattr(self, part), member))


class EndlessPages(PeerError):  # noqa: N818 - a fact about a list
    """The walk through a list was given up. The server is well otherwise."""


def walk_pages(
    method: str,
    ask: Callable[[dict[str, Any] | None], Answer],
    result_of: Callable[[Answer], Any],
    *,
    seconds: float,
    cursor: str | None = None,
    most: int = DEFAULT_LIMITS.pages,
) -> Iterator[Answer]:
    """The answers page by page, from `cursor` on. Raises EndlessPages when they never end.

    `ask` gets the params of a request; `result_of` gives the result in an answer, if there is one.
    `seconds` is how long all of them may take.
    """
    seen = {cursor}
    deadline = Deadline.after(seconds)
    for number in range(most):
        if number and deadline.expired:
            raise EndlessPages(
                ErrorKind.PAGES_EXCEEDED,
                f"{method} did not end within {seconds:g}s, after {number} pages",
                hint="raise --timeout if the list is long",
            )
        answer = ask(None if cursor is None else {"cursor": cursor})
        yield answer
        result = result_of(answer)
        cursor = result.get("nextCursor") if isinstance(result, dict) else None
        if not isinstance(cursor, str):
            return
        if cursor in seen:
            raise EndlessPages(
                ErrorKind.PAGES_REPEATED,
                f"{method} repeats its pages: it sent the cursor {show(cursor, 60)!r} again",
            )
        if len(cursor) > LONGEST_CURSOR:
            raise EndlessPages(
                ErrorKind.PAGES_EXCEEDED,
                f"{method} gives a cursor of {len(cursor)} characters, which is not sent back "
                f"(the limit is {LONGEST_CURSOR})",
            )
        seen.add(cursor)
    raise EndlessPages(ErrorKind.PAGES_EXCEEDED, f"{method} did not end after {most} pages")


class Listed(msgspec.Struct, frozen=True):
    """The items of a list, and why it could not be read to its end."""

    items: list[Any]
    endless: str = ""


def list_items(
    method: str,
    member: str,
    ask: Callable[[dict[str, Any] | None], Answer],
    result_of: Callable[[Answer], Any],
    *,
    seconds: float,
    most: int = DEFAULT_LIMITS.items,
) -> Listed:
    """What all pages of a list name, as far as it can be read."""
    items: list[Any] = []
    try:
        for answer in walk_pages(method, ask, result_of, seconds=seconds):
            result = result_of(answer)
            page = result.get(member) if isinstance(result, dict) else None
            if not isinstance(page, list):
                break
            items += page
            if len(items) > most:
                raise EndlessPages(
                    ErrorKind.PAGES_EXCEEDED, f"{method} names more than {most} items"
                )
    except EndlessPages as error:
        return Listed(distinct(items)[:most], error.message)
    return Listed(items)


def distinct(items: Iterable[Any]) -> list[Any]:
    """Each item once, in the order in which they came."""
    return list({spelled(item): item for item in items}.values())
