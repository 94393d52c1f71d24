"""What the fixtures give: a server by its configuration, a recorded client, proof of a failure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from mcptest.core.errors import McptestError
from mcptest.core.redaction import redaction
from mcptest.core.results import Status, TestResult
from mcptest.probe.suites.attempt import proof_of_tape
from mcptest.pytest_plugin import configuration
from mcptest.report.evidence import BRIEF, FULL, labelled_once, proof_lines
from mcptest.report.property import PropertyReport
from mcptest.session.client import Client
from mcptest.testing.assertions import Player, check_property, why_not
from mcptest.testing.serving import Server, served_behind

_NO_SERVER = (
    "mcp_server: no server is named. Set mcptest_server in the configuration of pytest, pass "
    "--mcptest-server, or define a fixture mcp_server that returns a command line or a URL."
)


def configured_server(config: pytest.Config) -> Server:
    name = configuration.configured_server(config)
    if name is None:
        pytest.fail(_NO_SERVER, pytrace=False)
    server = Server(name, timeout=configuration.timeout(config))
    # A command is meant from where the configuration is; for a URL there is no such place.
    with failing_without_traceback():
        starts_here = server.target.way == "stdio"
    return server.but(cwd=str(configuration.base_folder(config))) if starts_here else server


@contextlib.contextmanager
def connected(
    given: Any, config: pytest.Config, folders: pytest.TempPathFactory
) -> Iterator[Client]:
    """A session with whatever the fixture `mcp_server` gave."""
    place = folders.mktemp("mcp-session") / "session.jsonl"
    with contextlib.ExitStack() as session:
        with failing_without_traceback():
            server = server_of(given, config)
            client = session.enter_context(server.connect(place))
        yield client


def server_of(given: Any, config: pytest.Config) -> Server:
    """What a fixture gave, with the time that is configured where it names none."""
    server = Server.of(given)
    if isinstance(given, str | list | tuple):
        return server.but(timeout=configuration.timeout(config))
    return server


@contextlib.contextmanager
def failing_without_traceback() -> Iterator[None]:
    """Where a server will not start, our own code is nothing to look at."""
    try:
        yield
    except McptestError as error:
        hint = f"\n{error.hint}" if error.hint else ""
        pytest.fail(f"mcp_server: {error.message}{hint}", pytrace=False)


def add_proof(report: pytest.TestReport, item: pytest.Item) -> None:
    client = getattr(item, "funcargs", {}).get("mcp_client")
    if isinstance(client, Client):
        with contextlib.suppress(McptestError):  # a client that someone else made: no proof
            served = served_behind(client)
            proof = proof_of_tape(served.tape, redaction.masker)
            result = TestResult(item.name, Status.FAIL, proof=proof)
            bounds = FULL if item.config.get_verbosity() > 0 else BRIEF
            lines = (
                f"{label:<10}{text}" for label, text in labelled_once(proof_lines(result, bounds))
            )
            report.sections.append(("MCP session", "\n".join(lines)))


_KEPT = "mcptest-examples"


class CheckProperty(Protocol):
    """What `mcp_property` gives."""

    def __call__(
        self,
        *names: str,
        examples: int = 100,
        seed: int = 0,
        max_time: float = 120.0,
        timeout: float = 5.0,
        allow_tools: Sequence[str] = (),
        strict: bool = False,
    ) -> PropertyReport: ...


def checking(given: Any, config: pytest.Config) -> CheckProperty:
    """On whatever the fixture `mcp_server` gave. Counterexamples are kept in pytest's cache."""
    with failing_without_traceback():
        server = server_of(given, config)

    def check(*names: str, **wanted: Any) -> PropertyReport:
        __tracebackhide__ = True
        with failing_without_traceback():
            cache = getattr(config, "cache", None)  # None with `-p no:cacheprovider`
            kept = None if cache is None else Path(cache.mkdir(_KEPT))
            report = check_property(server, *names, **wanted, database=kept, may_be_skipped=True)
        if not report.examples:
            pytest.skip(why_not(report))
        return report

    return check


@contextlib.contextmanager
def playing(given: Any, config: pytest.Config) -> Iterator[Player]:
    with contextlib.ExitStack() as session:
        with failing_without_traceback():
            player = session.enter_context(Player(server_of(given, config)))
        yield player
