"""Which files are suites: those in the folders that were named, and no other YAML at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcptest.pytest_plugin.words import fixture_folder
from mcptest.suite.discover import SKIPPED_FOLDERS, discover

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
    config.stash[_AVOIDED] = fixture_folder(config)
    for place in config.stash[_PLACES]:
        _refuse_without_suites(place, config.stash[_AVOIDED])
    chosen = config.args_source is pytest.Config.ArgsSource.ARGS
    _look_there(given if chosen else [*given, *configured], config)


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


def _refuse_without_suites(place: Path, fixture: Path | None) -> None:
    """A folder that is not there, or holds nothing, would be green by accident."""
    reason = "there is no suite"
    for found in discover([str(place)], None if fixture is None else str(fixture)):
        if isinstance(found, str):
            return
        reason = found.message
    raise pytest.UsageError(f"mcptest: {place}: {reason}")


def _holds(place: Path, path: Path) -> bool:
    if path == place:
        return True
    if not path.is_relative_to(place):
        return False
    folders = path.relative_to(place).parts[:-1]
    return not any(name.startswith(".") or name in SKIPPED_FOLDERS for name in folders)


def _look_there(places: list[Path], config: pytest.Config) -> None:
    here = config.invocation_params.dir
    looked_at = [_absolute(here / str(word).partition("::")[0]) for word in config.args]
    for place in places:
        if not any(place.is_relative_to(one) or one.is_relative_to(place) for one in looked_at):
            config.args.append(str(place))
            looked_at.append(place)


def _absolute(path: Path) -> Path:
    """Without following links, as pytest does."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - `absolute` leaves the dots in
