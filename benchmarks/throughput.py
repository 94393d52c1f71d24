"""Calls per second of our client, with recording on, against PyPI `mcp`'s on the same server.

    python benchmarks/throughput.py                    # every case, 10,000 calls each
    python benchmarks/throughput.py --calls 2000 --only stdio

Each measurement runs in a process of its own and starts after the session is up. The figure that
counts is the ratio of two neighbouring lines: both were taken on one machine in one run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
SERVERS = HERE / "servers"
CASES = [
    # transport, answers, in flight
    ("stdio", "line", 1),
    ("stdio", "line", 256),
    ("http", "json", 1),
    ("http", "json", 16),
    ("http", "sse", 1),
    ("http", "sse", 16),
]
GOALS = {("stdio", 1): 3, ("stdio", 256): 20, ("http", 1): 2, ("http", 16): 5}


def measure_ours(target: str, calls: int, in_flight: int, revision: str) -> float:
    from mcptest.core.revision import parse_revision
    from mcptest.session.client import Client
    from mcptest.transport.recorder import Recorder
    from mcptest.transport.target import Target, transport_for

    way = "http" if target.startswith("http") else "stdio"
    command = () if way == "http" else (sys.executable, "-I", "-S", target)
    server = Target(way=way, label="bench", command=command, url=target if way == "http" else "")
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder(Path(folder) / "capture.jsonl") as recorder,
    ):
        recorder.begin(label="bench", transport=way, peer="bench")
        client = Client(
            transport_for(server, recorder),
            revision=parse_revision(revision),
            before_waiting=recorder.flush,
        )
        with client:
            return _timed_calls(client, calls, in_flight)


def _timed_calls(client, calls: int, in_flight: int) -> float:
    params = {"name": "echo", "arguments": {"text": "hello"}}
    begin = time.perf_counter()
    if in_flight == 1:
        for _ in range(calls):
            assert client.request("tools/call", params).ok
    else:
        asked = (("tools/call", params) for _ in range(calls))
        assert sum(reply.ok for reply in client.many(asked, in_flight)) == calls
    return calls / (time.perf_counter() - begin)


def measure_sdk(target: str, calls: int, in_flight: int, mode: str) -> float:
    import anyio
    from mcp import Client, StdioServerParameters

    async def main() -> float:
        peer = target
        if not target.startswith("http"):
            peer = StdioServerParameters(command=sys.executable, args=["-I", "-S", target])
        async with Client(peer, mode=mode) as client:
            left = calls
            begin = time.perf_counter()

            async def worker() -> None:
                nonlocal left
                while left > 0:
                    left -= 1
                    result = await client.call_tool("echo", {"text": "hello"})
                    assert not result.is_error

            async with anyio.create_task_group() as group:
                for _ in range(in_flight):
                    group.start_soon(worker)
            return calls / (time.perf_counter() - begin)

    return anyio.run(main)


@contextmanager
def http_server(answers: str) -> Iterator[str]:
    command = [sys.executable, "-I", str(SERVERS / "http_echo.py")]
    if answers == "sse":
        command.append("--sse")
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(5)
        server.stdout.close()


def in_own_process(who: str, target: str, calls: int, in_flight: int, version: str) -> float:
    words = [
        sys.executable,
        __file__,
        "--measure",
        who,
        target,
        str(calls),
        str(in_flight),
        version,
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise SystemExit(f"{who} failed:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def run_case(transport: str, answers: str, in_flight: int, calls: int, era: str) -> dict:
    ours_version = "2025-11-25" if era == "handshake" else "2026-07-28"
    sdk_mode = "legacy" if era == "handshake" else "2026-07-28"
    with http_server(answers) if transport == "http" else _stdio_server() as target:
        ours = in_own_process("ours", target, calls, in_flight, ours_version)
        sdk = in_own_process("sdk", target, calls, in_flight, sdk_mode)
    ratio = ours / sdk
    row = {
        "era": era,
        "transport": transport,
        "answers": answers,
        "in_flight": in_flight,
        "ours": round(ours),
        "sdk": round(sdk),
        "ratio": round(ratio, 1),
        "goal": GOALS[(transport, in_flight)],
    }
    print(
        f"{era:<10} {transport:<6} {answers:<5} {in_flight:>4} in flight: "
        f"ours {ours:>9,.0f}/s  sdk {sdk:>7,.0f}/s  ratio {ratio:>6.1f}  (goal {row['goal']})",
        flush=True,
    )
    return row


@contextmanager
def _stdio_server() -> Iterator[str]:
    yield str(SERVERS / "stdio_echo.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--only", choices=("stdio", "http"))
    parser.add_argument("--era", choices=("handshake", "stateless"), action="append")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        who, target, calls, in_flight, version = arguments.measure
        measure = measure_ours if who == "ours" else measure_sdk
        print(measure(target, int(calls), int(in_flight), version))
        return
    rows = [
        run_case(transport, answers, in_flight, arguments.calls, era)
        for era in arguments.era or ["handshake", "stateless"]
        for transport, answers, in_flight in CASES
        if arguments.only in (None, transport)
    ]
    if arguments.json:
        arguments.json.write_text(json.dumps({"cpus": os.cpu_count(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
