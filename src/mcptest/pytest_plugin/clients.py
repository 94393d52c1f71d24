"""What the fixtures give: a server by its configuration, a recorded client, proof of a failure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from mcptest.model.errors import McptestError
from mcptest.model.results import Proof, Status, TestResult
from mcptest.model.show import show
from mcptest.peer.client import Client
from mcptest.pytest_plugin import words
from mcptest.pytest_plugin.telling import lines_of_proof
from mcptest.run.serving import Served
from mcptest.testing.serving import Server, served_behind

_SHOWN = 600
_LOOKED_AT = 64 * 1024
_NO_SERVER = (
    "mcp_server: no server is named. Set mcptest_server in the configuration of pytest, pass "
    "--mcptest-server, or define a fixture mcp_server that returns a command line or a URL."
)


def configured_server(config: pytest.Config) -> Server:
    name = words.configured_server(config)
    if name is None:
        pytest.fail(_NO_SERVER, pytrace=False)
    server = Server(name, timeout=words.timeout(config))
    # A command is meant from where the configuration is; for a URL there is no such place.
    with failing_without_traceback():
        starts_here = server.target.way == "stdio"
    return server.but(cwd=str(words.base_folder(config))) if starts_here else server


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
        return server.but(timeout=words.timeout(config))
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
            result = TestResult(item.name, Status.FAIL, proof=_proof_of(served))
            text = "\n".join(lines_of_proof(result, full=item.config.get_verbosity() > 0))
            report.sections.append(("MCP session", text))


def _proof_of(served: Served) -> Proof:
    witness = served.witness

    def safe(text: str | bytes) -> str:
        text = text[:_LOOKED_AT]
        words = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
        return show(served.masker.cut_text(words), _SHOWN)

    exited = witness.exited
    how = ""
    if exited is not None:
        how = f"exit code {exited.code}" if exited.signal is None else f"signal {exited.signal}"
    return Proof(
        request=safe(witness.last_request),
        response=safe(witness.last_answer),
        stderr=tuple(safe(line) for line in list(witness.stderr)),
        exit=how,
        capture=str(witness.recorder.path) if witness.recorder is not None else "",
    )
