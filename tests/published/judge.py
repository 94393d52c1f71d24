"""Judge the published servers as they are installed: `python -m tests.published.judge [NAME …]`.

Each is judged over each transport that it has, in the revision that `auto` comes to, or in those of
`--spec-version`. What fails is written to `verdicts.json`, which the tests and the tables read.
`--busy N` keeps N processes busy beside it; `--check` compares with what was written before instead
of writing it: a verdict that depends on the load of the machine is none.

Servers reach nothing but this machine: where Linux allows it, all of this runs in a network of its
own.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.driving import free_port
from tests.published.table import (
    HERE,
    Published,
    furnish,
    minimal_servers,
    places_of,
    published_servers,
)

MCPTEST = (sys.executable, "-m", "mcptest")
_ALONE = "MCPTEST_PUBLISHED_ALONE"
_START = 120.0
"""How long a server may take until its port can be reached, on a busy machine."""


class NeverListenedError(Exception):
    """A server that was to be reached over HTTP did not start; the text is what it said."""


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    leave_the_network("tests.published.judge")
    wanted = [
        (server, transport)
        for server in (minimal_servers() if options.minimal else published_servers())
        if not options.names or server.name in options.names
        for transport in server.ways
        if not options.transport or transport == options.transport
    ]
    with busy_processes(options.busy):
        found = {}
        for server, transport in wanted:
            begun = time.monotonic()
            try:
                verdicts = judge(server, transport, options.spec_version, options.reports)
            except NeverListenedError as why:
                verdicts = {"exit": 3, "said": str(why)}
            _tell(server, transport, verdicts, time.monotonic() - begun)
            found[f"{server.name} {transport}"] = verdicts
    file = HERE / ("minimal.json" if options.minimal else "verdicts.json")
    return _compare(found, file) if options.check else _write(found, file)


def judge(
    server: Published, transport: str, spec_version: str, reports: Path | None
) -> dict[str, Any]:
    """What fails, by revision: `{revision: {rule: severity}}`; or why there is no judgement."""
    with tempfile.TemporaryDirectory() as folder, started(server, transport, Path(folder)) as named:
        report = Path(folder) / "report.json"
        keep: list[str] = []
        if reports is not None:
            place = reports / f"{server.name}-{transport}"
            place.mkdir(parents=True, exist_ok=True)
            report = place / "report.json"
            keep = ["--save-capture", str(place)]
        done = subprocess.run(
            [
                *(*MCPTEST, "compliance", "run", *named, "--spec-version", spec_version),
                *("--json-file", str(report), "--startup-timeout", "60s", *keep),
                *(word for name in server.allowed for word in ("--allow-tool", name)),
            ],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            cwd=Path(folder) / "work",
        )
        if reports is not None:
            (place / "said.txt").write_bytes(done.stdout + done.stderr)
        if not report.exists():
            return {"exit": done.returncode, "said": done.stderr.decode()[-2000:]}
        return _verdicts(json.loads(report.read_bytes()))


def _verdicts(report: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for judgement in report["judgements"]:
        results = judgement["results"]
        found[judgement["revision"]] = {
            "sdk": judgement.get("sdk", ""),
            "failing": {one["id"]: one["severity"] for one in results if one["outcome"] == "fail"},
            **{
                outcome: [one["id"] for one in results if one["outcome"] == outcome]
                for outcome in ("inconclusive", "pass")
            },
        }
    return found


@contextlib.contextmanager
def started(server: Published, transport: str, folder: Path) -> Iterator[list[str]]:
    """How to name the server on our command line, while it can be reached."""
    work = folder / "work"
    work.mkdir()
    furnish(work)
    port = free_port()
    places = places_of(server, work, port)
    command = server.command(transport, places)
    # A home of its own: no settings of whoever runs this, and nothing is left behind.
    env = {"HOME": str(folder), **server.environment(transport, places)}
    if transport == "stdio":
        settings = [word for pair in env.items() for word in ("--env", "=".join(pair))]
        yield [*settings, "--server", shlex.join(command)]
        return
    said = (folder / "said.txt").open("wb")
    process = subprocess.Popen(
        command,
        cwd=work,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=subprocess.STDOUT,
    )
    try:
        _wait_for(server.ways[transport].host, port, process, folder / "said.txt")
        way = server.ways[transport]
        url = f"http://{way.host}:{port}{way.path}"
        yield ["--server", url, "--transport", transport]
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        said.close()


def _wait_for(host: str, port: int, process: subprocess.Popen[bytes], said: Path) -> None:
    limit = time.monotonic() + _START
    while time.monotonic() < limit:
        if process.poll() is not None:
            raise NeverListenedError(f"the server ended: {said.read_text()[-2000:]}")
        with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
            return
        time.sleep(0.05)
    raise NeverListenedError(f"the server never listened on {port}: {said.read_text()[-2000:]}")


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()


def leave_the_network(module: str) -> None:
    """Go on in a network that has nothing but this machine, if there can be one."""
    if _ALONE in os.environ:
        return
    tried = subprocess.run(
        ["unshare", "-rn", "ip", "link", "set", "lo", "up"], capture_output=True, check=False
    )
    if tried.returncode:
        print("no network of its own can be made here: servers may reach further than they should")
        return
    again = [sys.executable, "-m", module, *sys.argv[1:]]
    inside = f"ip link set lo up && exec {shlex.join(again)}"
    os.execvpe("unshare", ["unshare", "-rn", "sh", "-c", inside], {**os.environ, _ALONE: "1"})


def _tell(server: Published, transport: str, found: Mapping[str, Any], seconds: float) -> None:
    print(f"{server.name} over {transport}, {seconds:.0f} s", flush=True)
    if "exit" in found:
        print(f"  not judged: exit {found['exit']}: {found['said']}", flush=True)
        return
    for revision, one in found.items():
        for severity in sorted(set(one["failing"].values())):
            rules = [rule for rule, weight in one["failing"].items() if weight == severity]
            print(f"  {revision} {severity}: {' '.join(sorted(rules))}", flush=True)
        if one["inconclusive"]:
            print(f"  {revision} inconclusive: {' '.join(one['inconclusive'])}", flush=True)


def _compare(found: Mapping[str, Any], file: Path) -> int:
    before = json.loads(file.read_bytes())["configurations"]
    differing = [name for name in found if found[name] != before.get(name)]
    for name in differing:
        print(f"differs: {name}\n  before {before.get(name)}\n  now    {found[name]}")
    print(f"{len(found) - len(differing)} of {len(found)} are judged as before")
    return 1 if differing else 0


def _write(found: Mapping[str, Any], file: Path) -> int:
    before = json.loads(file.read_bytes())["configurations"] if file.exists() else {}
    both = {**before, **found}
    servers = [*published_servers(), *minimal_servers()]
    order = [f"{server.name} {transport}" for server in servers for transport in server.ways]
    kept = {name: both[name] for name in order if name in both}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    file.write_text(json.dumps({"date": today, "configurations": kept}, indent=1) + "\n")
    return 1 if any("exit" in one for one in found.values()) else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these servers")
    parser.add_argument("--minimal", action="store_true", help="servers that are just their SDK")
    parser.add_argument("--transport", choices=("stdio", "http", "sse"))
    parser.add_argument("--spec-version", default="auto", metavar="REV")
    parser.add_argument("--busy", type=int, default=0, metavar="N")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep reports and captures")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
