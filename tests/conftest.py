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

from mcptest.core import limits
from mcptest.core.redaction import redaction
from tests.html.browser import CHROMIUM
from tests.support.scripted import VirtualTime
from tests.support.workers import pytest_cmdline_main, pytest_runtestloop  # noqa: F401 - hooks

# Tests of commands start our programs thousands of times. Where nothing compiled may be kept, as in
# many containers, each of them would compile all of mcptest again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What is kept between runs stays out of the user's own cache.
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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    """The time that deadlines see. It moves only when a scripted transport is waited for."""
    virtual = VirtualTime()
    monkeypatch.setattr(limits, "time", virtual)
    return virtual


def pytest_configure() -> None:
    """What is collected stays to the end: nobody needs to look through it for garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def missing_for_npm() -> str:
    """Why tests with npm peers can't run, or nothing."""
    if shutil.which("node") is None:
        return "Node is not installed"
    return "" if NPM_PEERS.is_dir() else "the npm peers are not installed"


def left_out() -> dict[str, str]:
    """Which tests can't run here, and why: those with npm peers, those with a browser."""
    browser = "" if CHROMIUM else "Chromium is not installed"
    reasons = {"npm peers": missing_for_npm(), "a browser": browser}
    return {what: reason for what, reason in reasons.items() if reason}


def _needs(item: pytest.Item, what: str) -> bool:
    if what == "npm peers":
        return item.get_closest_marker("npm") is not None
    return "the_browser" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave such tests out as a whole, so that the summary holds one line on them, not one each."""
    missing = left_out()
    without = [item for item in items if any(_needs(item, what) for what in missing)]
    if without:
        config.hook.pytest_deselected(items=without)
        gone = set(without)
        items[:] = [item for item in items if item not in gone]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for what, reason in left_out().items():
        terminalreporter.write_line(f"SKIPPED the tests with {what}: {reason}", yellow=True)
