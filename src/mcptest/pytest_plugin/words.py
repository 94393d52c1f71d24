"""What the options and the configuration of pytest say, as values of ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcptest.model.deadline import parse_duration
from mcptest.model.errors import UsageError
from mcptest.run.choosing import ServerChoice
from mcptest.suite.model import ServerSpec

_ISOLATIONS = ("", "fresh", "shared")


def timeout(config: pytest.Config) -> float:
    text = config.getini("mcptest_timeout") or "30s"
    try:
        return parse_duration(str(text))
    except UsageError as error:
        raise pytest.UsageError(f"mcptest_timeout: {error.message}") from None


def is_shared(config: pytest.Config) -> bool:
    isolation = config.getini("mcptest_isolation")
    if isolation not in _ISOLATIONS:
        raise pytest.UsageError(f"mcptest_isolation is fresh or shared, not {isolation!r}")
    return bool(isolation == "shared")


def fixture_folder(config: pytest.Config) -> Path | None:
    """Relative to the file that says it."""
    text = config.getini("mcptest_fixture")
    if not text:
        return None
    folder: Path = base_folder(config) / str(text)
    if not folder.is_dir():
        raise pytest.UsageError(f"mcptest_fixture: {folder} is not a folder")
    return folder.resolve()


def base_folder(config: pytest.Config) -> Path:
    """Where the configuration is: commands in it and in suites are meant from there."""
    return config.inipath.parent if config.inipath is not None else config.invocation_params.dir


def server_for_all(config: pytest.Config) -> str | None:
    given = config.getoption("mcptest_server")
    return str(given) if given else None


def configured_server(config: pytest.Config) -> str | None:
    """For whoever names none."""
    return server_for_all(config) or str(config.getini("mcptest_server")) or None


def choice_for(spec: ServerSpec | None, config: pytest.Config) -> ServerChoice:
    """What is said about the server of one test, over what its suite says."""
    server = server_for_all(config)
    if server is None and not _names_one(spec):
        server = configured_server(config)
    captures = config.getoption("mcptest_capture")
    return ServerChoice(
        server,
        captures=None if captures is None else config.invocation_params.dir / captures,
        cwd=None if spec is not None and spec.cwd else _start_folder(config),
    )


def _names_one(spec: ServerSpec | None) -> bool:
    return spec is not None and bool(spec.command or spec.url)


def _start_folder(config: pytest.Config) -> str | None:
    """None: this very folder, as usual."""
    base = base_folder(config)
    return None if base == Path(os.curdir).resolve() else str(base)
