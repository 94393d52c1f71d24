"""`mcptest mcp --http`: a server on a port of its own, with a token that the test knows."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.agents.asking import COMMAND
from tests.e2e.driving import BOUND, wait_until

TOKEN = "a-token-for-tests"


@dataclass(frozen=True)
class Listening:
    port: int
    log: Path
    """What it says on stderr."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{TOKEN}/mcp"


@contextmanager
def listening_server(folder: Path, *flags: str, token: str = TOKEN) -> Iterator[Listening]:
    port_file = folder / "port"
    port_file.unlink(missing_ok=True)
    words = [*COMMAND, "--http", "0", "--port-file", str(port_file), *flags]
    log = folder / "stderr"
    with log.open("wb") as said:
        env = {**os.environ, "MCPTEST_MCP_TOKEN": token}
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=said, env=env)
    try:
        wait_until(lambda: port_file.is_file() or process.poll() is not None, "the port")
        assert process.poll() is None, log.read_text()
        yield Listening(int(port_file.read_text()), log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(BOUND)
        finally:
            process.kill()
