"""What `mcptest record --proxy` costs: megabytes a second each way, and delay for each message.

    python benchmarks/proxy.py                     # 256 MB each way, 5,000 messages there and back
    python benchmarks/proxy.py --megabytes 1024    # the same over 1 GB

The same two processes are joined by `cat`, then by the proxy with recording on, three times in
turn; the ratio of the two is what counts. In a further pass both ends hash what they sent and got:
the digests have to be equal. The added delay is what a message there and back takes longer than
on pipes without anything between.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LINE_BYTES = (1_000, 64_000, 1_000_000)
READ = 1024 * 1024


def block_of(line_bytes: int) -> bytes:
    """About a megabyte of messages, of which no two neighbours are the same."""
    lines = []
    for number in range(max(1, 1_000_000 // line_bytes)):
        head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % number
        text = b"What a tool says, f\xc3\xbcr example; " * (1 + line_bytes // 30)
        lines.append(head + text[: line_bytes - len(head) - 6].rstrip(b"\xc3") + b'"}]}}\n')
    return b"".join(lines)


# -- the two ends --------------------------------------------------------------------------


def pour(megabytes: int, line_bytes: int, *, digest: bool, into: int = 1) -> str:
    block = block_of(line_bytes)
    hashed = hashlib.blake2b()
    for _ in range(max(1, megabytes * 1_000_000 // len(block))):
        if digest:
            hashed.update(block)
        rest = memoryview(block)
        while rest:
            rest = rest[os.write(into, rest) :]
    return hashed.hexdigest()


def drain(*, digest: bool, out_of: int = 0) -> tuple[int, str]:
    hashed = hashlib.blake2b()
    size = 0
    while chunk := os.read(out_of, READ):
        size += len(chunk)
        if digest:
            hashed.update(chunk)
    return size, hashed.hexdigest()


def echo() -> None:
    while chunk := os.read(0, READ):
        while chunk:
            chunk = chunk[os.write(1, chunk) :]


def be_an_end(role: str, megabytes: int, line_bytes: int, digest: bool) -> None:
    if role == "echo":
        echo()
    elif role == "drain":  # the server of a client that pours: says what came, on stderr
        size, hashed = drain(digest=digest)
        sys.stderr.write(f"{size} {hashed}\n")
    else:  # the server of a client that drains
        hashed = pour(megabytes, line_bytes, digest=digest)
        sys.stderr.write(f"0 {hashed}\n")


# -- what is between them ------------------------------------------------------------------


def end_command(role: str, megabytes: int, line_bytes: int, *, digest: bool) -> list[str]:
    words = [sys.executable, "-I", "-S", __file__, "--end", role]
    words += ["--megabytes", str(megabytes), "--line-bytes", str(line_bytes)]
    return [*words, "--digest"] if digest else words


@contextmanager
def joined(middle: str, server: list[str], capture: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The server behind `cat`, behind the proxy, or behind nothing at all."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if middle == "cat":
        # One `cat` each way, as the proxy is there for both.
        words = ["sh", "-c", 'cat | "$@" | cat', "sh", *server]
    elif middle == "nothing":
        words = server
    else:
        words = [sys.executable, "-m", "mcptest", "record", "--proxy", "--out", str(capture)]
        words += ["--", *server]
    process = subprocess.Popen(words, **pipes)
    try:
        yield process
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
        capture.unlink(missing_ok=True)


def megabytes_a_second(
    middle: str, way: str, megabytes: int, line_bytes: int, capture: Path, *, digest: bool = False
) -> float:
    role = "drain" if way == "up" else "pour"
    server = end_command(role, megabytes, line_bytes, digest=digest)
    with joined(middle, server, capture) as process:
        begin = time.perf_counter()
        if way == "up":
            ours = pour(megabytes, line_bytes, digest=digest, into=process.stdin.fileno())
            if digest:
                print(f"{way}: the proxy held {peak_megabytes(process.pid):.0f} MB at the most")
            process.stdin.close()
            size, theirs = process.stderr.readline().split()
        else:
            process.stdin.close()
            size, ours = drain(digest=digest, out_of=process.stdout.fileno())
            _, theirs = process.stderr.readline().split()
        seconds = time.perf_counter() - begin
        if digest:
            assert ours == theirs.decode(), f"the bytes differ: {middle}, {way}"
        return int(size) / seconds / 1_000_000


def peak_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def delays(middle: str, count: int, capture: Path) -> list[float]:
    """Milliseconds for one message there and back, sorted."""
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}\n'
    found = []
    with joined(middle, end_command("echo", 0, 0, digest=False), capture) as process:
        there, back = process.stdin.fileno(), process.stdout.fileno()
        for number in range(count + 200):
            begin = time.perf_counter()
            os.write(there, message)
            got = b""
            while not got.endswith(b"\n"):
                got += os.read(back, READ)
            assert got == message
            if number >= 200:
                found.append((time.perf_counter() - begin) * 1_000)
        process.stdin.close()
    return sorted(found)


# -- the report ----------------------------------------------------------------------------


def report_throughput(megabytes: int, rounds: int, capture: Path) -> None:
    print(f"{'way':<5} {'line':>9}  {'cat':>10}  {'proxy':>10}  ratio   (MB/s, median)")
    for way in ("up", "down"):
        for line_bytes in LINE_BYTES:
            taken = {"cat": [], "proxy": []}
            for _ in range(rounds):
                for middle, figures in taken.items():
                    figures.append(megabytes_a_second(middle, way, megabytes, line_bytes, capture))
            cat, proxy = (statistics.median(each) for each in taken.values())
            print(f"{way:<5} {line_bytes:>9}  {cat:>10.0f}  {proxy:>10.0f}  {proxy / cat:.2f}")


def report_identity(megabytes: int, capture: Path) -> None:
    for way in ("up", "down"):
        megabytes_a_second("proxy", way, megabytes, 64_000, capture, digest=True)
        print(f"{way}: {megabytes} MB came through unchanged")


def report_delay(count: int, rounds: int, capture: Path) -> None:
    print(f"{'there and back':<16} {'p50':>8} {'p99':>8} {'worst':>8}   (ms)")
    p99 = {}
    for middle in ("nothing", "proxy"):
        taken = sorted(ms for _ in range(rounds) for ms in delays(middle, count, capture))
        p99[middle] = taken[len(taken) * 99 // 100]
        p50 = taken[len(taken) // 2]
        print(f"{middle:<16} {p50:>8.3f} {p99[middle]:>8.3f} {taken[-1]:>8.3f}")
    print(f"added at p99: {p99['proxy'] - p99['nothing']:.3f} ms (both hops together)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("throughput", "identity", "delay"))
    parser.add_argument("--end", choices=("pour", "drain", "echo"), help=argparse.SUPPRESS)
    parser.add_argument("--line-bytes", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--digest", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.end:
        be_an_end(given.end, given.megabytes, given.line_bytes, given.digest)
        return
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "capture.jsonl"
        if given.only in {None, "throughput"}:
            report_throughput(given.megabytes, given.rounds, capture)
        if given.only in {None, "identity"}:
            report_identity(given.megabytes, capture)
        if given.only in {None, "delay"}:
            report_delay(given.messages, given.rounds, capture)


if __name__ == "__main__":
    main()
