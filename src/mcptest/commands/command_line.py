"""The command line that repeats something: for pasting into a shell, and without secrets.

A secret is written as a variable, `--env API_KEY="$API_KEY"`: the line can be run by whoever has
the variable, and read by anybody.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mcptest.commands.options import given_headers, pairs
from mcptest.core.redaction import (
    is_credential_header,
    secrets_of_command,
    secrets_of_environment,
    secrets_of_headers,
    variable_of,
    variable_of_header,
)

REACHING = ("header", "token_env", "env", "env_file", "clean_env")
"""The options that say how to reach or start a server, by their names."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_OR_URL = re.compile(r"[\w.@-]+|[A-Za-z][A-Za-z0-9+.-]*://.*", re.DOTALL)


def repeat_line(words: Iterable[str], arguments: argparse.Namespace) -> str:
    """The words as a line for a shell; secrets that `arguments` hold become variables."""
    variables = _variables(arguments)
    return " ".join(_quoted(word, variables) or "''" for word in words)


def server_options(arguments: argparse.Namespace) -> Iterator[str]:
    """The options that name the server, as they were given."""
    named = ["server", "transport", "cwd", "mcp_config"]
    if arguments.server_command:
        yield from ("--server", as_one_word(arguments.server_command))
        named.remove("mcp_config")  # which has names, and a command is none
    yield from options_again(arguments, *named, *REACHING)


def options_again(arguments: argparse.Namespace, *names: str) -> Iterator[str]:
    """The options of these names, as they were given; nothing for those that were not."""
    given = vars(arguments)
    for name in names:
        option, value = f"--{name.replace('_', '-')}", given.get(name)
        if name == "header":
            value = [f"{key}={one}" for key, one in given_headers(arguments).items()]
        elif name == "timeout" and not given.get("timeout_given", True):
            continue
        if value is True:
            yield option
        elif value:
            for one in value if isinstance(value, list) else [value]:
                yield from (option, str(one))


def as_one_word(command: Sequence[str]) -> str:
    """What stood behind `--`, for --server, where a name or a URL would be taken for one."""
    line = shlex.join(command)
    return f"'{line}'" if _NAME_OR_URL.fullmatch(line) else line


def _variables(arguments: argparse.Namespace) -> dict[str, str]:
    """Which variable stands for which secret: one that is set before others, a long one first."""
    given = vars(arguments)
    env = pairs([word for word in given.get("env") or () if "=" in word], "--env")
    found = {
        secret: name
        for name, value in env.items()
        for secret in secrets_of_environment({name: value})
    }
    for name, value in (given_headers(arguments) if "header" in given else {}).items():
        if is_credential_header(name):
            found |= dict.fromkeys(secrets_of_headers({name: value}), variable_of_header(name))
    command = given.get("server_command") or _split(given.get("server") or "")
    for secret, name in secrets_of_command(command).items():
        found.setdefault(secret, variable_of(name))
    # Variables that are set were most likely written in the command line.
    held = {value: name for name, value in os.environ.items() if _VARIABLE.fullmatch(name)}
    known = {
        secret: name if os.environ.get(name) == secret else held[secret]
        for secret, name in found.items()
        if secret in held
    }
    named = {secret: known.get(secret, name) for secret, name in found.items()}
    # a command in one word has its own quotes around a secret, and so in the middle of it
    named |= {shlex.quote(secret)[1:-1]: name for secret, name in named.items() if "'" in secret}
    return dict(sorted(named.items(), key=lambda pair: (pair[0] not in known, -len(pair[0]))))


def _split(server: str) -> list[str]:
    try:
        return shlex.split(server)
    except ValueError:
        return []


def _quoted(word: str, variables: Mapping[str, str]) -> str:
    for secret, name in variables.items():
        before, found, after = word.partition(secret)
        if found and secret:
            return f'{_quoted(before, variables)}"${name}"{_quoted(after, variables)}'
    return shlex.quote(word) if word else ""
