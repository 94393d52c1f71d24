"""One browser for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.html.browser import Browser, running_browser


@pytest.fixture(scope="session")
def the_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def browser(the_browser: Browser) -> Browser:
    """As it was at the beginning, whatever a test before did to it."""
    the_browser.size(1200, 800)
    the_browser.media("light")
    return the_browser
