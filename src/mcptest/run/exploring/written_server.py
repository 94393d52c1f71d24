"""The `server` block of a suite that is written for a target, without its secrets."""

from __future__ import annotations

import re
from typing import Any

from mcptest.model.masking import Masker, secrets_of_environment
from mcptest.suite.written import WrittenServer
from mcptest.transport.target import Target

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")


def written_server(
    target: Target, *, spec_version: str = "auto", docker: str = ""
) -> WrittenServer:
    """What a suite says of the server; secrets become variables of the environment."""
    if _would_tell(target):
        hint = "the server's command or URL holds a secret: name it with --server when you run this"
        return WrittenServer(comments=(hint,))
    needs: list[str] = []
    block: dict[str, Any] = {}
    if target.way == "stdio":
        block["command"] = target.command[0]
        if len(target.command) > 1:
            block["args"] = list(target.command[1:])
        if target.env:
            block["env"] = _environment(target, needs)
        if target.cwd is not None:
            block["cwd"] = target.cwd
    else:
        block |= {"transport": target.way, "url": target.url}
        if target.headers:
            block["headers"] = {name: _header(name, needs) for name in target.headers}
    if docker:
        block["docker"] = docker
    if spec_version != "auto":
        block["spec_version"] = spec_version
    comments = (f"needs in the environment: {', '.join(needs)}",) if needs else ()
    return WrittenServer(block, comments, tuple(needs))


def _would_tell(target: Target) -> bool:
    words = (*target.command, target.url, target.cwd or "")
    masker = Masker(target.referenced)
    return any(masker.text(word) != word for word in words)


def _environment(target: Target, needs: list[str]) -> dict[str, str]:
    hidden = {*secrets_of_environment(target.env), *target.referenced}
    written = {}
    for name, value in target.env.items():
        if value in hidden:
            needs.append(name)
            written[name] = f"${{{name}}}"
        else:
            written[name] = value.replace("$", "$$")
    return written


def _header(name: str, needs: list[str]) -> str:
    variable = "MCP_" + _NOT_IN_A_NAME.sub("_", name).strip("_").upper()
    needs.append(variable)
    return f"${{{variable}}}"
