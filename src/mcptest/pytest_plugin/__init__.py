"""The pytest plugin: suites as test items, and fixtures for tests in Python. See docs/pytest.md.

It is loaded in every pytest run of an environment that mcptest is installed in. So this module
imports nothing of ours, and does nothing until a suite or a fixture is asked for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

if TYPE_CHECKING:
    from mcptest.pytest_plugin.server_fixtures import CheckProperty
    from mcptest.testing import AsyncClient, Client, Player, Server

Scope = Literal["function", "class", "module", "package", "session"]
_SCOPES = ("function", "class", "module", "package", "session")
_SUFFIXES = (".yaml", ".yml")
_SETTINGS = (
    ("mcptest_server", "server for the fixtures, and for suite tests that name none"),
    ("mcptest_fixture", "folder copied for each suite test as {{fixture}}"),
    ("mcptest_timeout", "time limit for a suite test or a request of a fixture (default: 30s)"),
    ("mcptest_isolation", "servers of suites: fresh (one per test) or shared (default: fresh)"),
    (
        "mcptest_client_scope",
        "scope of mcp_client: function, module, session … (default: function)",
    ),
)


class McptestWarning(UserWarning):
    """A problem that fails no test but that the user should know about."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # pytest rewrites the asserts of all that a plugin's package holds. Ours are no tests, and
    # compiling the whole package anew would cost more than reading a suite.
    marked = getattr(pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):  # no part of what pytest promises, so it may be gone one day
        marked -= {"mcptest", __name__}
        getattr(pluginmanager.rewrite_hook, "_marked_for_rewrite_cache", {}).clear()
    group = parser.getgroup("mcptest", "tests of MCP servers")
    group.addoption(
        "--mcptest",
        action="append",
        default=[],
        metavar="PATH",
        help="collect mcptest and mcp-assert suites from this folder or file (repeatable)",
    )
    group.addoption(
        "--mcptest-server",
        metavar="S",
        help="use this server for the fixtures and for every suite test",
    )
    group.addoption(
        "--mcptest-capture", metavar="DIR", help="keep a capture of every suite test in this folder"
    )
    parser.addini("mcptest_suites", "folders and files with suites", type="paths", default=[])
    for name, about in _SETTINGS:
        parser.addini(name, about, default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "mcptest: a test of a YAML suite")
    scope = config.getini("mcptest_client_scope")
    if scope not in ("", *_SCOPES):
        raise pytest.UsageError(
            f"mcptest_client_scope: expected {', '.join(_SCOPES)}, got {scope!r}"
        )
    if config.getoption("mcptest") or config.getini("mcptest_suites"):
        from mcptest.pytest_plugin.configuration import collect_what_was_asked_for

        collect_what_was_asked_for(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix.lower() not in _SUFFIXES:
        return None
    config = parent.config
    if not (config.getoption("mcptest") or config.getini("mcptest_suites")):
        return None
    from mcptest.pytest_plugin.configuration import is_asked_for

    if not is_asked_for(file_path, config):
        return None
    from mcptest.pytest_plugin.suite_items import SuiteFile

    return cast("pytest.Collector", SuiteFile.from_parent(parent, path=file_path))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """A test of a suite may let the server of the next one start meanwhile."""
    if hasattr(item, "following"):
        item.following = nextitem


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, Any, Any]:
    """A test in Python that fails with a client open shows what went over the wire last."""
    if call.excinfo is not None:
        _hide_our_frames(call.excinfo)
    report = yield
    if report.failed and "mcp_client" in getattr(item, "funcargs", ()):
        from mcptest.pytest_plugin.server_fixtures import add_proof

        add_proof(report, item)
    return report


def _hide_our_frames(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """In the modules that the error went through: pytest asks each frame whether to show it."""
    for entry in excinfo.traceback:
        names = entry.frame.f_globals
        if _is_ours(names.get("__name__", "")):
            names["__tracebackhide__"] = _is_for_people


def _is_for_people(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    """An error that we raise tells people what to do: they look for the line of their test."""
    return _is_ours(type(excinfo.value).__module__)


def _is_ours(module: str) -> bool:
    return module == "mcptest" or module.startswith("mcptest.")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Where every test of the suites was skipped, and nothing else ran, nothing is green."""
    if exitstatus == pytest.ExitCode.OK and _nothing_ran(session.config):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if _nothing_ran(config):
        skipped = len(terminalreporter.stats["skipped"])
        terminalreporter.write_line(f"mcptest: nothing was run: all {skipped} tests were skipped")


def _nothing_ran(config: pytest.Config) -> bool:
    """Never in a worker of xdist, which has no reporter: whoever started it decides."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not (config.getoption("mcptest") or config.getini("mcptest_suites")):
        return False
    ran = ("passed", "failed", "error", "xfailed", "xpassed")
    skipped = reporter.stats.get("skipped", ())
    ours = any("mcptest" in report.keywords for report in skipped)
    return ours and not any(reporter.stats.get(how) for how in ran)


def _client_scope(fixture_name: str, config: pytest.Config) -> Scope:
    return cast("Scope", config.getini("mcptest_client_scope") or "function")


@pytest.fixture(scope="session")
def mcp_server(pytestconfig: pytest.Config) -> Server:
    """The server under test: --mcptest-server, or `mcptest_server` of the configuration.

    Define a fixture of this name to give it another way: a command line, a list of words, a URL,
    or `mcptest.testing.Server(…)`.
    """
    from mcptest.pytest_plugin.server_fixtures import configured_server

    return configured_server(pytestconfig)


@pytest.fixture(scope=_client_scope)
def mcp_client(
    mcp_server: Server, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """A session with `mcp_server`, begun and recorded; it is ended behind the test."""
    from mcptest.pytest_plugin.server_fixtures import connected

    with connected(mcp_server, pytestconfig, tmp_path_factory) as client:
        yield client


@pytest.fixture(scope=_client_scope)
def async_mcp_client(mcp_client: Client) -> Iterator[AsyncClient]:
    """`mcp_client` for coroutines: its methods are awaited, in whichever event loop."""
    from mcptest.testing import AsyncClient

    client = AsyncClient(mcp_client)
    try:
        yield client
    finally:
        client.stop()


@pytest.fixture
def mcp_property(mcp_server: Server, pytestconfig: pytest.Config) -> CheckProperty:
    """A function: `mcp_property("messages-invalid", examples=200)` tries it on `mcp_server`.

    A counterexample fails the test, and is tried first in the next run. A property that has
    nothing to say about this server skips it.
    """
    from mcptest.pytest_plugin.server_fixtures import checking

    return checking(mcp_server, pytestconfig)


@pytest.fixture(scope=_client_scope)
def mcp_player(mcp_server: Server, pytestconfig: pytest.Config) -> Iterator[Player]:
    """`mcp_server` for what strategies draw: `play(message)`, `play(conversation)`."""
    from mcptest.pytest_plugin.server_fixtures import playing

    with playing(mcp_server, pytestconfig) as player:
        yield player
