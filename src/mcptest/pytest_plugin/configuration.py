"""What the options and the configuration of pytest say, as values of ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.limits import parse_duration
from mcptest.probe.suites.settings import ServerChoice
from mcptest.suite.load import SKIPPED_FOLDERS, discover
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
        raise pytest.UsageError(f"mcptest_isolation: expected fresh or shared, got {isolation!r}")
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
    if server is None and not (spec is not None and (spec.command or spec.url)):
        server = configured_server(config)
    captures = config.getoption("mcptest_capture")
    base = base_folder(config)
    is_here = base == Path(os.curdir).resolve()
    return ServerChoice(
        server,
        captures=None if captures is None else config.invocation_params.dir / captures,
        cwd=None if is_here or (spec is not None and spec.cwd) else str(base),
    )


_PLACES = pytest.StashKey[tuple[Path, ...]]()
_AVOIDED = pytest.StashKey[Path | None]()


def collect_what_was_asked_for(config: pytest.Config) -> None:
    """Take note of the places, and let pytest look there.

    What --mcptest names is run, unless a path on the command line names a part of it. What the
    configuration names is run where no path is given, or one that leads there.
    """
    # Absolute from here on: workers of xdist are told the option, and may be elsewhere.
    here = config.invocation_params.dir
    config.option.mcptest = [str(_absolute(here / name)) for name in config.option.mcptest]
    given = [Path(name) for name in config.option.mcptest]
    configured = [_absolute(path) for path in config.getini("mcptest_suites")]
    config.stash[_PLACES] = (*given, *configured)
    config.stash[_AVOIDED] = avoided = fixture_folder(config)
    for place in config.stash[_PLACES]:
        # A folder that is not there, or holds nothing, would be green by accident.
        reason = "no suite found"
        for found in discover([str(place)], None if avoided is None else str(avoided)):
            if isinstance(found, str):
                break
            reason = found.message
        else:
            raise pytest.UsageError(f"mcptest: {place}: {reason}")
    chosen = config.args_source is pytest.Config.ArgsSource.ARGS
    looked_at = [_absolute(here / str(word).partition("::")[0]) for word in config.args]
    for place in given if chosen else [*given, *configured]:
        if not any(place.is_relative_to(one) or one.is_relative_to(place) for one in looked_at):
            config.args.append(str(place))
            looked_at.append(place)


def is_asked_for(path: Path, config: pytest.Config) -> bool:
    """As `mcptest run` does: what is hidden, and the data of tests, is never a suite."""
    avoided = config.stash[_AVOIDED]
    if avoided is not None and path.is_relative_to(avoided):
        return False
    return any(_holds(place, path) for place in config.stash[_PLACES])


def was_named_by_option(path: Path, config: pytest.Config) -> list[str]:
    """The values of --mcptest without which this file would not be collected."""
    configured = config.stash[_PLACES][len(config.option.mcptest) :]
    if any(_holds(place, path) for place in configured):
        return []
    return [name for name in config.option.mcptest if _holds(Path(name), path)][:1]


def _holds(place: Path, path: Path) -> bool:
    if path == place:
        return True
    if not path.is_relative_to(place):
        return False
    folders = path.relative_to(place).parts[:-1]
    return not any(name.startswith(".") or name in SKIPPED_FOLDERS for name in folders)


def _absolute(path: Path) -> Path:
    """Without following links, as pytest does."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - `absolute` leaves the dots in
