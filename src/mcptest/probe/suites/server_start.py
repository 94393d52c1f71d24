"""Which server a test talks to: what the suite says, with what the command line says over it.

On the way to the first start of a server, so it imports little.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

import msgspec
from msgspec.structs import replace

from mcptest.core.errors import McptestError, UsageError
from mcptest.core.limits import Deadline
from mcptest.core.safe_text import show
from mcptest.probe.suites.settings import Numbered, RunOptions, ServerChoice, Settings, skip_reason
from mcptest.session.server_spec import ServerWords, target_of
from mcptest.suite.model import ServerSpec, Test, TrajectoryBlock
from mcptest.suite.reading import Place, SuiteError, SuiteProblem
from mcptest.suite.templates import fill, fill_server, resolve, variables_of
from mcptest.transport.process import Launched, ServerProcess, behind
from mcptest.transport.target import DEMO, Target, in_container, transport_for
from mcptest.transport.temporary import ServerFixture, isolate_fixture


def target_for(spec: ServerSpec, choice: ServerChoice, fixture: str) -> Target:
    """How to reach a server whose templates and environment are filled in. May raise UsageError."""
    if spec.transport != "stdio":
        headers = {**spec.headers, **choice.headers}
        return target_of(ServerWords(server=spec.url, way=spec.transport, headers=headers))
    if choice.is_given:
        target = chosen_target(choice, fixture)
        if target.way != "stdio":
            return replace(target, headers={**target.headers, **choice.headers})
        target = replace(target, env={**target.env, **spec.env}, cwd=spec.cwd or target.cwd)
    elif spec.command:
        command = (spec.command, *spec.args)
        target = target_of(ServerWords(command=command, env=spec.env, cwd=spec.cwd))
    else:
        raise UsageError(f"{spec.place}: the server has no command")
    env, cwd = {**target.env, **choice.env}, choice.cwd or target.cwd
    clean_env = choice.clean_env or spec.clean_env
    target = replace(target, env=env, cwd=cwd, clean_env=clean_env)
    return in_container(target, spec.docker or choice.docker, fixture)


def check_variables(specs: Iterable[ServerSpec | None], choice: ServerChoice) -> None:
    """SuiteError for every variable that is not set, before any server is started."""
    problems: dict[SuiteProblem, None] = {}
    for spec in {id(one): one for one in specs}.values():
        if spec is None:
            continue
        texts = (spec.url, spec.cwd or "", *spec.env.values(), *spec.headers.values())
        if any("$" in text for text in texts):
            resolved = resolve(_without_what_is_given(spec, choice), os.environ)
            problems.update(dict.fromkeys(_unset_variables(spec, resolved.unset)))
    if problems:
        raise SuiteError(list(problems))


def _without_what_is_given(spec: ServerSpec, choice: ServerChoice) -> ServerSpec:
    """What the command line says instead needs no variable."""
    env = {name: value for name, value in spec.env.items() if name not in choice.env}
    headers = {name: value for name, value in spec.headers.items() if name not in choice.headers}
    return replace(spec, env=env, headers=headers)


def _unset_variables(spec: ServerSpec, unset: Mapping[str, str]) -> Iterator[SuiteProblem]:
    for variable, where in unset.items():
        name = show(variable, 60)
        message = f"{show(where, 80)} needs the variable {name}, which is not set"
        hint = f"set it, or write ${{{name}:-}} to allow an empty value"
        yield SuiteProblem(spec.place or Place(""), message, hint)


def chosen_target(choice: ServerChoice, fixture: str = "") -> Target:
    """The server that the command line names. May raise UsageError."""
    known = variables_of(fixture, {})
    named = ServerWords(way=choice.way, config=choice.config)
    if choice.command:
        words = tuple(fill(word, known) for word in choice.command)
        return target_of(replace(named, command=words))
    return target_of(replace(named, server=fill(choice.server or "", known)))


def is_remote(spec: ServerSpec, choice: ServerChoice) -> bool:
    """Whether the server is one that runs elsewhere, for everybody."""
    if spec.transport != "stdio":
        return True
    return choice.is_given and chosen_target(choice).way != "stdio"


def is_demo(spec: ServerSpec, choice: ServerChoice) -> bool:
    """Whether it is our demo, started here: it keeps nothing anywhere."""
    if spec.transport != "stdio":
        return False
    if choice.is_given:
        return chosen_target(choice).command == DEMO.command
    if spec.args[-2:] == DEMO.command[-2:]:  # as `init` writes it
        return True
    name = spec.command.replace("\\", "/").rpartition("/")[2]
    return name.removesuffix(".exe") == "mcptest" and spec.args == ("serve", "demo")


# -- What the server of a test needs before it is started ----------------------------------------


def prepare_ground(source: str | Path | None, choice: ServerChoice) -> ServerFixture:
    """A copy of the fixture, if there is one. May raise FixtureError."""
    if source is None:
        return ServerFixture()
    # a container of its own is isolation enough
    return ServerFixture(str(source)) if choice.docker else isolate_fixture(source)


def understand(spec: ServerSpec, choice: ServerChoice, fixture: str) -> tuple[ServerSpec, Target]:
    """Fill in the environment, then the templates; gives how to reach the server, too.

    The target knows what is secret of what was filled in. UsageError, also for what is not set.
    """
    resolved = resolve(_without_what_is_given(spec, choice), os.environ)
    if resolved.unset:
        raise SuiteError(list(_unset_variables(spec, resolved.unset)))
    filled = fill_server(resolved.server, variables_of(fixture, {}))
    target = target_for(filled, choice, fixture)
    referenced = (*target.referenced, *sorted(resolved.secrets))
    return filled, replace(target, referenced=referenced)


_LEAVING = 1.0


class HeadStart(msgspec.Struct):
    """A server that runs already and waits for the test that it was started for."""

    test: Test | None
    """None when it was taken."""
    ground: ServerFixture
    server: ServerSpec
    target: Target
    process: ServerProcess

    def is_taken_by(self, item: Numbered, attempt: int) -> bool:
        """Whether this is the server for that test; from then on it belongs to whoever asked."""
        mine = item.test is self.test and item.trial == 1 and attempt == 1 and not item.language
        if mine:
            self.test = None
        return mine

    def abandon(self) -> None:
        """End the server if nobody took it."""
        if self.test is None:
            return
        from mcptest.transport.base import discard

        unused = transport_for(self.target, discard, process=self.process)
        unused.open(Deadline.after(_LEAVING))
        unused.close(Deadline.after(_LEAVING))
        self.ground.remove()


@contextlib.contextmanager
def with_a_head_start(
    tests: Sequence[Test], settings: Settings, options: RunOptions
) -> Iterator[Settings]:
    """Start the first server; gives the settings of a run that makes use of it."""
    head_start = None if options.languages else _start_first(tests, settings)
    try:
        yield replace(settings, head_start=head_start)
    finally:
        if head_start is not None:
            head_start.abandon()


def _start_first(tests: Sequence[Test], settings: Settings) -> HeadStart | None:
    with_servers = (test for test in tests if not isinstance(test.block, TrajectoryBlock))
    test = next((test for test in with_servers if skip_reason(test, settings.choice) is None), None)
    if test is None:
        return None
    ground = ServerFixture()
    try:
        ground = prepare_ground(settings.fixture, settings.choice)
        server, target = understand(test.server or ServerSpec(), settings.choice, ground.folder)
        if target.way == "stdio":
            start = with_compile_cache(target) if settings.warm_start else target
            clean = start.clean_env
            process = ServerProcess(start.command, start.env, start.cwd, clean_env=clean)
            return HeadStart(test, ground, server, target, process)
    except McptestError:
        pass  # the regular way meets it again, and says so in the result of the test
    ground.remove()
    return None


# -- Ways to start a fresh server sooner that the server can notice ------------------------------

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
        """The same server, started directly, with all that the launcher passed on."""
        words = target.command[len(target.command) - self.own_words :]
        command = (*self.head, *words)
        return replace(target, command=command, cwd=self.cwd, env=self.env, clean_env=True)


def is_launched(target: Target) -> bool:
    """Whether the command only looks up the program that is the server."""
    return target.way == "stdio" and PurePath(target.command[0]).name in _LAUNCHERS


def with_compile_cache(target: Target) -> Target:
    """Node finds what it compiled the last time. The suite's own word about it is kept.

    Node compares the source before it believes what is there. It is in the user's own cache: a
    suite that came from elsewhere can't bring compiled code.
    """
    cache, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if not cache.startswith("/"):
        cache = f"{home}/.cache" if home.startswith("/") else ""
    if target.way != "stdio" or not cache:
        return target
    kept = {"NODE_COMPILE_CACHE": f"{cache}/mcptest/node-compile-cache"}
    return replace(target, env=kept | dict(target.env))


def learn(pid: int, target: Target, fixture: str) -> Shortcut | None:
    """How to start the server of this process directly; None when that would be a guess."""
    seen = behind(pid)
    return None if seen is None else _shortcut(seen, target.command, fixture)


def _shortcut(seen: Launched, asked: tuple[str, ...], fixture: str) -> Shortcut | None:
    pairs = zip(reversed(asked[1:]), reversed(seen.command[1:]), strict=False)
    own_words = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
    head = seen.command[: len(seen.command) - own_words]
    # The next server has a fixture of its own: the old one may be in no other place than its words.
    rest = (*head, seen.cwd, *seen.env.values())
    if fixture and any(fixture in text for text in rest):
        return None
    return Shortcut(head, own_words, seen.cwd, seen.env)
