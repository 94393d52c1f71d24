"""What every test shares: how Hypothesis runs, and one line on peers that are not there."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from mcptest.model.redaction import redaction

# Tests of commands start our programs thousands of times. Where nothing compiled may be kept, as in
# many containers, each of them would compile all of mcptest again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What runs remember of each other is kept out of the user's own cache. The folder is the same for
# all tests of a user: it holds 256 small files at most.
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / f"mcptest-tests-{os.getuid()}")

# A shell ignores these for what it starts in the background, and whatever we start would as well.
for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(each) is signal.SIG_IGN:
        usual = signal.default_int_handler if each is signal.SIGINT else signal.SIG_DFL
        signal.signal(each, usual)

NPM_PEERS = Path(__file__).parent / "peers" / "npm" / "node_modules"

# The same examples on every machine, whatever its speed, and no folder left behind. A search with
# fresh examples is one option away: --hypothesis-profile=search.
settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.register_profile("search", deadline=None, database=None, max_examples=5_000)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def _each_test_has_its_own_secrets() -> Iterator[None]:
    """A process knows the secrets of all servers that it was given, and tests share a process."""
    redaction.forget()
    yield
    redaction.forget()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two for each processor: half of its time a test waits for a process to speak or to end."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: nobody needs to look through it for garbage."""
    gc.collect()
    gc.freeze()


def missing_for_npm() -> str:
    """Why tests with npm peers can't run, or nothing."""
    if shutil.which("node") is None:
        return "Node is not installed"
    return "" if NPM_PEERS.is_dir() else "the npm peers are not installed"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave npm tests out as a whole, so that the summary holds one line on them, not one each."""
    reason = missing_for_npm()
    if not reason:
        return
    kept = [item for item in items if item.get_closest_marker("npm") is None]
    left_out = [item for item in items if item.get_closest_marker("npm") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reason = missing_for_npm()
    if reason:
        terminalreporter.write_line(f"SKIPPED the tests with npm peers: {reason}", yellow=True)
