"""Keeping what the first server of a run was, so that the same run can start it at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from mcptest.model.errors import McptestError
from mcptest.model.redaction import redaction
from mcptest.run.head_start import first_with_a_server
from mcptest.run.same_run import (
    FIXTURE,
    Remembered,
    folder_of_memory,
    former_folder_of_memory,
    key_of,
    place_in,
    this_run,
)
from mcptest.run.settings import Settings
from mcptest.run.starting import understand
from mcptest.suite.fingerprint import Fingerprint
from mcptest.suite.model import ServerSpec, Test


def remember(
    tests: Sequence[Test], settings: Settings, fixture: str | None, fingerprint: Fingerprint
) -> None:
    """Write down what was started first. Where that can't be kept, nothing is lost."""
    _forget_the_former()
    key = key_of(this_run.words) if this_run.words is not None else None
    folder = folder_of_memory()
    digest = fingerprint.digest
    if key is None or folder is None or digest is None or this_run.began_early:
        return
    command = _first_command(tests, settings)
    if command:
        warm = settings.warm_start
        remembered = Remembered(command, fixture, digest, fingerprint.places, warm=warm)
        with contextlib.suppress(OSError):  # a home that can't be written to: every run is a first
            _write(folder, key, remembered.written(key))


def _forget_the_former() -> None:
    """An older version may have kept a command with a secret: nobody reads it, so it goes."""
    former = former_folder_of_memory()
    if former is None or not os.path.isdir(former) or os.path.islink(former):  # noqa: PTH112, PTH114 - a text here
        return
    with contextlib.suppress(OSError):  # not ours
        for entry in list(os.scandir(former)):
            os.unlink(entry.path)  # noqa: PTH108 - a text here
        os.rmdir(former)  # noqa: PTH106 - a text here


def _first_command(tests: Sequence[Test], settings: Settings) -> tuple[str, ...]:
    """Nothing when it depends on more than the words of the suite, or on what may be secret."""
    test = first_with_a_server(tests)
    if test is None or any(each.skip_unless_env for each in tests):
        return ()
    place = FIXTURE if settings.fixture is not None else ""
    try:
        understood = understand(test.server or ServerSpec(), settings.choice, place)
    except McptestError:
        return ()
    target = understood.target
    plain = not (target.env or target.cwd is not None or target.clean_env)
    if target.way != "stdio" or not plain or understood.secrets:
        return ()
    unfit = any("\0" in word or redaction.text(word) != word for word in target.command)
    return () if unfit else target.command


def _write(folder: str, key: str, content: bytes) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - a text here
    place = place_in(folder, key)
    beside = f"{place}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(beside, flags, 0o600)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(content)
        os.replace(beside, place)  # noqa: PTH105 - texts here
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)  # noqa: PTH108 - a text here
        raise
