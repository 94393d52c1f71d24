"""Which server a test talks to: what the suite says, with what the command line says over it.

On the way to the first start of a server, so it imports little.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from mcptest.model.errors import UsageError
from mcptest.model.show import show
from mcptest.run.naming import ServerWords, target_of
from mcptest.suite.environment import ResolvedServer, resolve
from mcptest.suite.model import Place, ServerSpec
from mcptest.suite.problems import Problem, SuiteError
from mcptest.suite.templates import fill_in
from mcptest.transport.target import DEMO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from mcptest.transport.target import Target


class ServerChoice(msgspec.Struct, frozen=True):
    """What the command line says about servers, over what the suite says."""

    server: str | None = None
    command: tuple[str, ...] = ()
    """The words after a bare `--`: they are the command, whatever they look like."""
    docker: str = ""
    captures: Path | None = None
    """The folder in which to keep what went over the wire."""
    env: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    clean_env: bool = False
    spec_version: str = ""
    """Empty: as the suite says."""

    @property
    def is_given(self) -> bool:
        return self.server is not None or bool(self.command)


def target_for(spec: ServerSpec, choice: ServerChoice, fixture: str) -> Target:
    """How to reach a server whose templates and environment are filled in. May raise UsageError."""
    if spec.transport != "stdio":
        headers = {**spec.headers, **dict(choice.headers)}
        return target_of(ServerWords(server=spec.url, way=spec.transport, headers=headers))
    if choice.is_given:
        target = chosen_target(choice, fixture)
        if target.way != "stdio":
            return replace(target, headers={**target.headers, **dict(choice.headers)})
        target = replace(target, env={**target.env, **spec.env}, cwd=spec.cwd or target.cwd)
    elif spec.command:
        command = (spec.command, *spec.args)
        target = target_of(ServerWords(command=command, env=spec.env, cwd=spec.cwd))
    else:
        raise UsageError(f"{spec.place}: the server has no command")
    target = replace(
        target,
        env={**target.env, **dict(choice.env)},
        cwd=choice.cwd or target.cwd,
        clean_env=choice.clean_env or spec.clean_env,
    )
    return _in_docker(target, spec.docker or choice.docker, fixture)


def resolved_server(spec: ServerSpec, choice: ServerChoice) -> ResolvedServer:
    """With the caller's environment filled in. SuiteError when a variable is not set."""
    resolved = resolve(_without_what_is_given(spec, choice), os.environ)
    if resolved.unset:
        raise SuiteError(_unset_variables(spec, resolved.unset))
    return resolved


def check_variables(specs: Iterable[ServerSpec | None], choice: ServerChoice) -> None:
    """SuiteError for every variable that is not set, before any server is started."""
    problems: dict[Problem, None] = {}
    for spec in {id(one): one for one in specs}.values():
        if spec is not None and _may_refer(spec):
            resolved = resolve(_without_what_is_given(spec, choice), os.environ)
            problems.update(dict.fromkeys(_unset_variables(spec, resolved.unset)))
    if problems:
        raise SuiteError(list(problems))


def _may_refer(spec: ServerSpec) -> bool:
    texts = (spec.url, spec.cwd or "", *spec.env.values(), *spec.headers.values())
    return any("$" in text for text in texts)


def _without_what_is_given(spec: ServerSpec, choice: ServerChoice) -> ServerSpec:
    """What the command line says instead needs no variable."""
    env = {name: value for name, value in spec.env.items() if name not in dict(choice.env)}
    given = dict(choice.headers)
    headers = {name: value for name, value in spec.headers.items() if name not in given}
    return replace(spec, env=env, headers=headers)


def _unset_variables(spec: ServerSpec, unset: Mapping[str, str]) -> list[Problem]:
    place = spec.place or Place("")
    return [
        Problem(
            place,
            f"the variable {show(name, 60)} is not set, and {show(where, 80)} needs it",
            hint=f"set it, or write ${{{show(name, 60)}:-}} where nothing will do",
        )
        for name, where in unset.items()
    ]


def chosen_target(choice: ServerChoice, fixture: str = "") -> Target:
    """The server that the command line names. May raise UsageError."""
    if choice.command:
        words = tuple(fill_in(word, fixture, {}) for word in choice.command)
        return target_of(ServerWords(command=words))
    return target_of(ServerWords(server=fill_in(choice.server or "", fixture, {})))


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


def _in_docker(target: Target, image: str, fixture: str) -> Target:
    if not image:
        return target
    mount = ("-v", f"{fixture}:{fixture}") if fixture else ()
    passed = tuple(word for key, value in target.env.items() for word in ("-e", f"{key}={value}"))
    command = ("docker", "run", "--rm", "-i", *mount, *passed, image, *target.command)
    return replace(target, command=command, label=f"{image}: {target.label}")
