"""The `server` block of a suite that is written for a target, without its secrets."""

from __future__ import annotations

from typing import Any

from mcptest.model.masking import Masker
from mcptest.model.secrets import (
    is_credential_header,
    secrets_of_command,
    secrets_of_environment,
    secrets_of_url,
    variable_of_header,
)
from mcptest.suite.written import WrittenServer
from mcptest.transport.target import Target


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
        if target.clean_env:
            block["clean_env"] = True
    else:
        block |= {"transport": target.way, "url": target.url}
        if target.headers:
            block["headers"] = {
                name: _header(name, value, needs) for name, value in target.headers.items()
            }
    if docker:
        block["docker"] = docker
    if spec_version != "auto":
        block["spec_version"] = spec_version
    comments = (f"needs in the environment: {', '.join(needs)}",) if needs else ()
    return WrittenServer(block, comments, tuple(needs))


def _would_tell(target: Target) -> bool:
    words = (*target.command, target.url, target.cwd or "")
    found = secrets_of_command(target.command) | secrets_of_url(target.url)
    masker = Masker((*target.referenced, *found))
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


def _header(name: str, value: str, needs: list[str]) -> str:
    if not is_credential_header(name):
        return value.replace("$", "$$")
    needs.append(variable_of_header(name))
    return f"${{{needs[-1]}}}"
