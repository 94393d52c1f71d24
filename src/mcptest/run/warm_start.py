"""Ways to start a fresh server sooner that the server can notice: only where they were asked for.

Node keeps the code that it compiled (`NODE_COMPILE_CACHE`, from Node 22.1 on). And a launcher such
as `npx` looks its package up once in a run: what it started for the first test is started directly
for the others, with the same words, folder and environment.
"""

from __future__ import annotations

import itertools
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from mcptest.run.same_run import for_node
from mcptest.transport.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcptest.transport.launched import Launched

_LAUNCHERS = frozenset({"npx", "npm", "pnpx", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx"})


class Shortcut(msgspec.Struct, frozen=True):
    """How a server is started without its launcher."""

    head: tuple[str, ...]
    """The command, but for the last words, which are those of the suite."""
    own_words: int
    """So many words at the end of the suite's command go to the server as they are."""
    cwd: str
    env: Mapping[str, str]

    def instead_of(self, target: Target) -> Target:
        """The same server, started directly."""
        words = target.command[len(target.command) - self.own_words :]
        return replace(
            target,
            command=(*self.head, *words),
            cwd=self.cwd,
            env=self.env,  # all that the launcher passed on
            clean_env=True,
        )


def is_launched(target: Target) -> bool:
    """Whether the command only looks up the program that is the server."""
    return target.way == "stdio" and PurePath(target.command[0]).name in _LAUNCHERS


def with_compile_cache(target: Target) -> Target:
    """Node finds what it compiled the last time. The suite's own word about it is kept.

    Node compares the source before it believes what is there.
    """
    if target.way != "stdio":
        return target
    return replace(target, env=for_node() | dict(target.env))


def learn(pid: int, target: Target, fixture: str) -> Shortcut | None:
    """How to start the server of this process directly; None when that would be a guess."""
    from mcptest.transport.launched import behind

    seen = behind(pid)
    return None if seen is None else _shortcut(seen, target.command, fixture)


def _shortcut(seen: Launched, asked: tuple[str, ...], fixture: str) -> Shortcut | None:
    own_words = _common_end(asked[1:], seen.command[1:])
    head = seen.command[: len(seen.command) - own_words]
    # The next server has a fixture of its own: the old one may be in no other place than its words.
    rest = (*head, seen.cwd, *seen.env.values())
    if fixture and any(fixture in text for text in rest):
        return None
    return Shortcut(head, own_words, seen.cwd, seen.env)


def _common_end(ours: tuple[str, ...], theirs: tuple[str, ...]) -> int:
    pairs = zip(reversed(ours), reversed(theirs), strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
