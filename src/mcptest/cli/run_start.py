"""What `run` does about its own start: it imports late, and makes the next start an early one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from mcptest.run.settings import Settings
    from mcptest.suite.fingerprint import Fingerprint
    from mcptest.suite.load import LoadedSuite
    from mcptest.suite.model import Test

_OBJECTS_BEFORE_A_COLLECTION = 20_000
# fmt: off
_BEYOND_THE_SUITE = (
    "server", "server_command", "docker", "env", "header", "headers", "cwd", "clean_env",
    "capture",    "baseline", "last_failed", "fix",
)
# fmt: on
"""With one of these it takes more than words and suites to know whether and what to start."""


def import_what_checks() -> None:
    """What checks answers, in the time that the servers take to start."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 10)  # whoever has an answer to read goes first
    try:
        import jsonschema_rs  # noqa: F401 - for the one that compiles output schemas

        from mcptest.schema import json_schema  # noqa: F401 - for the check of structured content
    finally:
        sys.setswitchinterval(usual)


def import_what_tells() -> None:
    """What writes reports and removes fixtures, in the time that the last servers take to leave."""
    from mcptest.report import results_text, write  # noqa: F401 - for `publish`
    from mcptest.run.temporary import live_folders

    if live_folders:
        import shutil  # noqa: F401 - with which they are removed


def collect_from_now_on() -> None:
    """What is there now stays until the end, so the collector need not look at it again."""
    gc.freeze()
    gc.set_threshold(_OBJECTS_BEFORE_A_COLLECTION)


def remember_run(
    arguments: argparse.Namespace,
    loaded: LoadedSuite,
    tests: Sequence[Test],
    settings: Settings,
    fingerprint: Fingerprint,
) -> None:
    """Keep what was started first, where the same words over the same files start the same."""
    given = vars(arguments)
    if loaded.problems or loaded.lanes or any(given[name] for name in _BEYOND_THE_SUITE):
        return
    from mcptest.run.remembering import remember

    remember(tests, settings, arguments.fixture, fingerprint)
