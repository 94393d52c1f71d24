"""A suite of assertions on one URL: mcptest and mcp-assert in turns, with what they sent counted.

    python benchmarks/suite_over_http.py [--rounds 5] [--files 200] [--pause 0.002]

The server speaks the handshake era, gives each session an id and offers no stream of its own. It
waits for `--pause` seconds before it answers a request, as a server does that has something to do.
`fresh` is a session for each assertion, on both sides; `shared` is `--isolation shared` here and
`--reuse-server` there, `one` the first assertion alone. The processor time is that of the client.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

MCPTEST = Path(sys.executable).with_name("mcptest")
SUITE = """\
name: echo {number}
server: {{transport: http, url: "{url}"}}
assert: {{tool: echo, args: {{text: hi}}, expect: {{not_error: true, contains: [hi]}}}}
"""
Sample = tuple[float, float]
"""Wall time and processor time, in seconds."""


class Counting(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    pause = 0.0
    connections = 0
    requests: ClassVar[Counter[str]] = Counter()

    def setup(self) -> None:
        Counting.connections += 1
        super().setup()

    def log_message(self, *words: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.requests["GET"] += 1
        self.reply(405)

    def do_DELETE(self) -> None:
        self.requests["DELETE"] += 1
        self.reply(200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, params = message["method"], message.get("params") or {}
        self.requests[method] += 1
        time.sleep(self.pause)
        if "id" not in message:
            self.reply(202)
            return
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "initialize":
            response["result"] = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "counting", "version": "1"},
            }
        elif method == "tools/list":
            response["result"] = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            text = params["arguments"]["text"]
            response["result"] = {"content": [{"type": "text", "text": text}], "isError": False}
        else:
            response["error"] = {"code": -32601, "message": "Method not found"}
        session = {"Mcp-Session-Id": uuid.uuid4().hex} if method == "initialize" else {}
        self.reply(200, json.dumps(response).encode(), session)

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.pause)
        return
    words = [sys.executable, __file__, "--serve", "0", "--pause", str(options.pause)]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()

        def counts() -> str:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write("\n")
            server.stdin.flush()
            return server.stdout.readline().strip()

        with tempfile.TemporaryDirectory() as folder:
            compare(Path(folder), url, counts, options)
    finally:
        server.stdin.close()
        server.wait()
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def serve(port: int, pause: float) -> None:
    """Until stdin ends; a line asks for what was counted since the last one."""
    Counting.pause = pause
    server = ThreadingHTTPServer(("127.0.0.1", port), Counting)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    for _ in sys.stdin:
        requests = sum(Counting.requests.values())
        print(f"{Counting.connections} connections, {requests} requests", flush=True)
        Counting.connections = 0
        Counting.requests.clear()


def compare(folder: Path, url: str, counts: Any, options: argparse.Namespace) -> None:
    import mcp_assert

    theirs = Path(mcp_assert.__file__).parent / "bin/mcp-assert"
    suite, one = folder / "suite", folder / "one"
    for home, number in ((suite, options.files), (one, 1)):
        home.mkdir()
        for place in range(number):
            (home / f"{place:04}.yaml").write_text(SUITE.format(number=place, url=url))
    lanes = {
        "fresh": ([str(MCPTEST), "run", str(suite)], [str(theirs), "run", "--suite", str(suite)]),
        "shared": (
            [str(MCPTEST), "run", str(suite), "--isolation", "shared"],
            [str(theirs), "run", "--suite", str(suite), "--reuse-server"],
        ),
        "one": ([str(MCPTEST), "run", str(one)], [str(theirs), "run", "--suite", str(one)]),
    }
    for name, commands in lanes.items():
        samples: list[list[Sample]] = [[], []]
        seen = ["", ""]
        for _ in range(options.rounds):
            for side, command in enumerate(commands):
                samples[side].append(measure(command, folder))
                seen[side] = counts()
        wall = [statistics.median(sample[0] for sample in each) for each in samples]
        cpu = [statistics.median(sample[1] for sample in each) for each in samples]
        ratio = statistics.median(b[0] / a[0] for a, b in zip(*samples, strict=True))
        print(f"{name}: mcptest is {ratio:.2f} times as fast as mcp-assert")
        for side, who in enumerate(("mcptest", "mcp-assert")):
            print(f"  {who:<11}{wall[side]:7.3f} s, {cpu[side]:.3f} s of CPU, {seen[side]}")


def measure(command: list[str], folder: Path) -> Sample:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
