"""`${VAR}`, `${VAR:-default}` and `$VAR` in what a server is given, from the caller's environment.

Pure: the environment is handed in. What was used is told, because it may be secret; what was
missing is told too, because nobody should be given an empty key without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from mcptest.model.show import show
from mcptest.suite.model import ServerSpec

# Compiled when they are needed: most servers are given no variables.
_BRACED = r"\$\{([^}]*)\}"
_REFERENCE = r"\$\$|\$\{([^}]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)"
_NAMED = r"(?s:([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?)"


class Expansion:
    """Fills in variables, and keeps which values were used and which names were not set."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.used: dict[str, str] = {}
        """Variables and their values."""
        self.unset: dict[str, str] = {}
        """Names, each with where it was asked for first."""
        self._environ = environ

    def __call__(self, text: str, where: str = "") -> str:
        """Replace every reference; `$$` is a dollar sign."""
        return text if "$" not in text else re.sub(_REFERENCE, self._value_for(where), text)

    def braced(self, text: str, where: str = "") -> str:
        """Replace only `${…}`, where a bare dollar sign has a meaning of its own, as in URLs."""
        return text if "${" not in text else re.sub(_BRACED, self._value_for(where), text)

    def _value_for(self, where: str) -> Callable[[re.Match[str]], str]:
        def value(reference: re.Match[str]) -> str:
            if reference.group() == "$$":
                return "$"
            written = reference.group(1) if reference.lastindex == 1 else reference.group(2)
            named = re.fullmatch(_NAMED, written or "")
            return reference.group() if named is None else self._look_up(named[1], named[2], where)

        return value

    def _look_up(self, name: str, default: str | None, where: str) -> str:
        value = self._environ.get(name, "")
        if value:
            self.used[name] = value
        elif default is None and name not in self._environ:
            self.unset.setdefault(name, where)
        return value or default or ""


class ResolvedServer(msgspec.Struct, frozen=True):
    """A server as it is started or reached, what must be hidden, and what is missing."""

    server: ServerSpec
    secrets: frozenset[str]
    unset: Mapping[str, str]
    """Variables that are not set, each with where it was asked for first."""


def reference_problem(text: str) -> str | None:
    """What is wrong with the references in a text, or None: for when a suite is loaded."""
    if "${" not in text:
        return None
    for match in re.finditer(_BRACED, text):
        if not re.fullmatch(_NAMED, match.group(1)):
            return f"{show(match.group(), 60)} is neither ${{NAME}} nor ${{NAME:-default}}"
    return None


def resolve(server: ServerSpec, environ: Mapping[str, str]) -> ResolvedServer:
    """Fill in the environment, the headers, the URL and the folder of a server."""
    expand = Expansion(environ)
    env = {name: expand(value, f"server.env.{name}") for name, value in server.env.items()}
    headers = {
        name: expand(value, f"server.headers.{name}") for name, value in server.headers.items()
    }
    resolved = replace(
        server,
        env=env,
        headers=headers,
        url=expand.braced(server.url, "server.url"),
        cwd=None if server.cwd is None else expand.braced(server.cwd, "server.cwd"),
    )
    return ResolvedServer(resolved, _secrets(expand.used, headers), expand.unset)


def _secrets(used: Mapping[str, str], headers: Mapping[str, str]) -> frozenset[str]:
    if not used and not headers:
        return frozenset()
    from mcptest.model.secrets import secrets_of_environment, secrets_of_headers

    return frozenset((*secrets_of_environment(used), *secrets_of_headers(headers)))
