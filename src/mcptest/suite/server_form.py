"""`server` and what belongs to it, from what was read to values."""

from __future__ import annotations

from typing import Any, Literal, get_args

from mcptest.model.errors import UsageError
from mcptest.model.revision import parse_revision
from mcptest.model.show import show
from mcptest.suite.environment import reference_problem
from mcptest.suite.model import ClientCapabilities, ElicitationMock, SamplingMock, ServerSpec
from mcptest.suite.problems import did_you_mean
from mcptest.suite.reading import Reading

_Transport = Literal["stdio", "sse", "http"]
_Action = Literal["accept", "decline", "cancel"]
_STARTED = ("command", "args", "env", "cwd", "clean_env")
ACTIONS: tuple[_Action, ...] = get_args(_Action)


def server_of(read: Reading, *, overridden: bool) -> ServerSpec:
    """`overridden`: --server provides the command, so the file need not."""
    transport = _transport(read, overridden=overridden)
    _check_meaning(read, transport)
    _check_references(read)
    offered = read.get("client_capabilities")
    return ServerSpec(
        command=read.get("command", ""),
        args=read.get("args", ()),
        env=read.get("env", {}),
        cwd=read.get("cwd"),
        clean_env=read.get("clean_env", False),
        transport=transport,
        url=read.get("url", ""),
        headers=read.get("headers", {}),
        docker=read.get("docker", ""),
        client_capabilities=None if offered is None else _capabilities(offered),
        spec_version=_spec_version(read),
        place=read.place,
    )


def _transport(read: Reading, *, overridden: bool) -> _Transport:
    named: _Transport | None = read.get("transport")
    if named is None:
        if "url" in read and "command" in read:
            read.complain(
                "the server has a command and a url", "url", hint="say which by transport"
            )
        return _guess(read.get("url", ""))
    if named != "stdio" and "url" not in read:
        read.complain(f"transport {named} needs a url", "transport")
    if named == "stdio" and "command" not in read and not overridden:
        read.complain("transport stdio needs a command", "transport")
    return named


def _guess(url: str) -> _Transport:
    if not url:
        return "stdio"
    try:
        from urllib.parse import urlsplit

        path = urlsplit(url).path
    except ValueError:
        return "http"
    return "sse" if path.rstrip("/").endswith("/sse") else "http"


def _check_meaning(read: Reading, transport: _Transport) -> None:
    """What would be ignored is said: a docker image that is not used is a false safety."""
    if transport != "stdio" and "docker" in read:
        read.complain("docker is for a server that is started here", "docker")
    foreign = ("url", "headers") if transport == "stdio" else _STARTED
    for name in foreign:
        if read.get(name) and read.sound:
            message = f"{name} has no meaning with transport {transport}"
            read.complain(message, name, warning=True)


def _check_references(read: Reading) -> None:
    for name in ("env", "headers"):
        for key, value in read.get(name, {}).items():
            problem = reference_problem(value)
            if problem is not None:
                read.complain(f"{name}.{show(key, 60)}: {problem}", name)
    for name in ("url", "cwd"):
        problem = reference_problem(read.get(name, ""))
        if problem is not None:
            read.complain(f"{name}: {problem}", name)


def _spec_version(read: Reading) -> str:
    text = str(read.get("spec_version", "auto"))
    if text == "auto":
        return text
    try:
        return parse_revision(text).value
    except UsageError as error:
        read.complain(error.message, "spec_version", hint=f"auto, or {error.hint}")
        return "auto"


def _capabilities(read: Reading) -> ClientCapabilities:
    sampling: Reading | None = read.get("sampling")
    return ClientCapabilities(
        roots=read.get("roots", ()),
        sampling=None if sampling is None else SamplingMock(**sampling.values),
        elicitation=_elicitation(read),
    )


def _elicitation(read: Reading) -> ElicitationMock | None:
    table: dict[str, Any] = dict(read.get("elicitation", {}))
    if not table:
        return None
    action = table.pop("action", "accept")
    if action not in ACTIONS:
        read.complain(
            f"the action of elicitation must be one of {', '.join(ACTIONS)}",
            "elicitation",
            hint=did_you_mean(action, ACTIONS) if isinstance(action, str) else "",
        )
        action = "accept"
    content = table.get("content", table)
    if not isinstance(content, dict):
        read.complain("the content of elicitation must be a mapping", "elicitation")
        content = {}
    return ElicitationMock(action, content)
