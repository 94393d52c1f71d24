"""Signals at random moments of every command that talks to a peer, from its first steps on.

`python -m tests.e2e.random_signals --count 210 --seed 1` sends more of them than the tests do, and
prints a table. What has to hold afterwards is in `problems_of`. With `--kill` they are SIGKILLs of
proxies, whose servers heed neither the end of their input nor SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.driving import BOUND

MARK = "MCPTEST_RANDOM_SIGNAL"
"""A variable that every process below a command inherits: so those that are left are found."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EARLIEST, LATEST = 0.010, 2.5
_OTHERS = 20
RAW_CLIENT = Path(__file__).parent.parent / "conformance" / "raw_client.py"
DEMO = [sys.executable, "-m", "mcptest", "serve", "demo"]
CALL = "assert: {tool: %s, args: {%s}, expect: {not_error: true}}"
SUITE = "\n".join(
    [
        f"server: {{command: {json.dumps(DEMO[0])}, args: {json.dumps(DEMO[1:])}}}",
        "tests:",
        *(f"  - {{name: t{n}, {CALL % ('add', 'a: 1, b: 2')}}}" for n in range(4)),
        *(f"  - {{name: s{n}, {CALL % ('slow', 'seconds: 0.2')}}}" for n in range(4)),
        *(f"  - {{name: u{n}, {CALL % ('add', 'a: 1, b: 2')}}}" for n in range(4)),
    ]
)
TRAJECTORY = "tests: [{name: t, trajectory: [{type: presence, tools: [add]}]}]"
REPORTS = ("--json-file", "report.json", "--junit", "junit.xml")
WORDS: dict[str, tuple[str, ...]] = {
    "run, fresh": ("run", "s.yaml", *REPORTS, "--save-capture", "wire"),
    "run, shared": ("run", "s.yaml", "--isolation", "shared", *REPORTS),
    "run, in flight": ("run", "s.yaml", "--isolation", "shared", "--in-flight", "4", *REPORTS),
    "run, fixture": ("run", "s.yaml", "--fixture", "data", "--jobs", "2", "--html", "page.html"),
    "ci": ("ci", "s.yaml", *REPORTS),
    "matrix": ("matrix", "s.yaml", "--languages", "a:demo,b:demo", *REPORTS),
    "snapshot": ("snapshot", "s.yaml", "--update"),
    "coverage": ("coverage", "--suite", "s.yaml", "--server", "demo"),
    "watch": ("watch", "s.yaml"),
    "audit": ("audit", "--server", "demo", *REPORTS, "--html", "page.html"),
    "lint": ("lint", "--server", "demo", *REPORTS),
    "fuzz": ("fuzz", "--server", "demo", "--runs", "20", "--seed", "1", *REPORTS),
    "property": ("property", "--server", "demo", "--examples", "20", "--seed", "1", *REPORTS),
    "generate": ("generate", "--server", "demo", "--output", "generated"),
    "init": ("init", "begun", "--server", "demo"),
    "record": ("record", "--server", "demo", "--out", "c.jsonl"),
    "compliance run": ("compliance", "run", "--server", "demo", *REPORTS),
    "doctor": ("doctor", "--server", "demo", "--to", "2026-07-28", *REPORTS),
    "fleet": ("fleet", "mcp.json", "--json-file", "report.json"),
    "conformance server": ("conformance", "server", "--server", "demo", *REPORTS),
    "conformance client": (
        *("conformance", "client", "--command", f"{sys.executable} {RAW_CLIENT}"),
        *REPORTS,
    ),
    "record --proxy": ("record", "--proxy", "--server", "demo", "--out", "c.jsonl"),
    "intercept": ("intercept", "--trajectory", "t.yaml", "--server", "demo"),
    "serve": ("serve", "demo"),
    "mcp": ("mcp",),
}
PROXIES: dict[str, tuple[str, ...]] = {
    "record --proxy": ("record", "--proxy", "--out", "c.jsonl"),
    "intercept": ("intercept", "--trajectory", "t.yaml"),
}
STUBBORN = Path(__file__).with_name("stubborn.py")
DEAF = ("deaf-to-eof", "deaf-to-signals", "grandchild")
ENDS_AS_ITS_SERVER = {"record --proxy", "intercept", "serve", "mcp"}
"""They pass signals on, or are servers themselves: their exit code is not 130 in any case."""


@dataclass
class Shot:
    """One signal, and what became of the command."""

    name: str
    number: signal.Signals
    delay: float
    from_our_first_line: bool
    """Whether the delay begins there, or with the start of the process."""
    code: int = 0
    was_ours: bool = True
    """Whether our handler was in place; before that the interpreter itself is ended."""
    seconds_to_end: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = "; ".join(self.problems) or "as it should be"
        return f"{self.name}: {self.number.name} after {self.delay:.3f} s: {self.code}: {said}"


def shots(count: int, seed: int) -> Iterator[Shot]:
    """Every command in turn, early moments as often as late ones."""
    dice = random.Random(seed)
    names = list(WORDS)
    for number in range(count):
        delay = EARLIEST * (LATEST / EARLIEST) ** dice.random()
        from_our_first_line = dice.random() < 0.7
        yield Shot(names[number % len(names)], dice.choice(SIGNALS), delay, from_our_first_line)


def fire(shot: Shot) -> Shot:
    """Start the command, send the signal, and look at what is left. Sooner if it had ended."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix="signals-"))
        try:
            if _fired(shot, folder):
                return shot
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        shot.delay /= 2


def _fired(shot: Shot, folder: Path) -> bool:
    process = start(shot.name, folder)
    try:
        while shot.from_our_first_line and process.poll() is None and not is_ours(process.pid):
            time.sleep(0.001)
        time.sleep(shot.delay)  # the random moment
        if process.poll() is not None:
            return False
        shot.was_ours = is_ours(process.pid)
        process.send_signal(shot.number)
        sent = time.monotonic()
        try:
            out, err = process.communicate(timeout=BOUND)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            shot.problems.append("it did not end")
        shot.seconds_to_end = time.monotonic() - sent
    finally:
        process.kill()
        process.communicate()
    shot.code = process.returncode
    shot.problems += problems_of(shot, folder, out.decode(), err.decode())
    return True


def start(name: str, folder: Path, words: Sequence[str] | None = None) -> subprocess.Popen[bytes]:
    """A command in its own folder, with everything that it is asked to read."""
    home, temporary = folder / "home", folder / "tmp"
    for place in (home / "data", temporary):
        place.mkdir(parents=True, exist_ok=True)
    (home / "s.yaml").write_text(SUITE)
    (home / "t.yaml").write_text(TRAJECTORY)
    server = {"command": DEMO[0], "args": DEMO[1:]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"a": server, "b": server}}))
    reading, writing = os.pipe()  # a client that says nothing, for those that have one
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "mcptest", *(words or WORDS[name])],
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home,
            env={**os.environ, "TMPDIR": str(temporary), "HOME": str(home), MARK: str(folder)},
            start_new_session=True,
        )
    finally:
        os.close(reading)
        held.append(writing)


held: list[int] = []
"""The other ends of standard inputs: nobody closes them before the end."""


def is_ours(pid: int) -> bool:
    """Whether our handlers are in place. For SIGTERM the interpreter has none of its own."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def problems_of(shot: Shot, folder: Path, out: str, err: str) -> Iterator[str]:
    """What does not hold."""
    if shot.code != 130 and shot.was_ours and shot.name not in ENDS_AS_ITS_SERVER:
        if shot.code < 0:
            yield f"it died of the signal: {err[-300:]!r}"
        elif "interrupted" in out + err:
            yield f"it was interrupted, and says {shot.code}"
    if shot.code == 130 and "--json-file" in WORDS[shot.name] and WORDS[shot.name][0] == "run":
        yield from lost_results(folder / "home")
    is_servers = shot.name in ENDS_AS_ITS_SERVER and "mcptest" not in err
    if shot.was_ours and "Traceback" in out + err and not is_servers:
        yield f"a traceback: {err[-1500:]!r}"
    if "internal error" in err:
        yield f"a defect: {err[-500:]!r}"
    for pid in left_processes(folder):
        yield f"the process {pid} is left"
    for place in sorted((folder / "tmp").iterdir()):
        yield f"{place.name} is left in the temporary folder"
    yield from torn_files(folder / "home")


def left_processes(folder: Path) -> list[str]:
    """Processes that were started below the command, a second after its end.

    On a busy machine that is as long as twenty processes take to start and end, one after the
    other: whoever has to go gets as much of the machine as they do.
    """
    limit = time.monotonic() + 1.0
    others = 0
    while (found := _marked(folder)) and (others < _OTHERS or time.monotonic() < limit):
        subprocess.run(["/bin/sh", "-c", "sleep 0.02"], check=True)
        others += 1
    return found


def _marked(folder: Path) -> list[str]:
    wanted = f"{MARK}={folder}".encode()
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal():
            continue
        try:
            if wanted not in (place / "environ").read_bytes().split(b"\0"):
                continue
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it is gone, or is somebody else's
            continue
        found.append(f"{place.name} ({words[:150].strip()})")
    return found


def lost_results(home: Path) -> Iterator[str]:
    """Tests that were finished, as the record says that is written meanwhile, and not reported."""
    record, report = home / ".mcptest" / "last-run.jsonl", home / "report.json"
    entries = record.read_text().splitlines() if record.exists() else []
    finished = {one["test"].partition("::")[2] for one in map(json.loads, entries) if "test" in one}
    found = json.loads(report.read_bytes())["results"] if report.exists() else []
    lost = finished - {one["name"] for one in found}
    if lost:
        yield f"results are lost: {sorted(lost)}"


def kill(name: str, delay: float) -> list[str]:
    """What does not hold when a command was killed, and is given once more in the same place."""
    folder = Path(tempfile.mkdtemp(prefix="signals-"))
    try:
        process = start(name, folder)
        time.sleep(delay)  # the random moment
        process.kill()
        process.communicate()
        left_processes(folder)  # servers see the end of their input
        again = start(name, folder)
        out, err = again.communicate(timeout=BOUND)
        problems = [] if again.returncode == 0 else [f"{again.returncode}: {(out + err)[-500:]!r}"]
        return [*problems, *torn_files(folder / "home")]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def kill_proxy(name: str, delay: float) -> list[str]:
    """What is left of a proxy that was killed. Its server would stay, and so would its child."""
    folder = Path(tempfile.mkdtemp(prefix="signals-"))
    try:
        words = PROXIES[name]
        server = [sys.executable, str(STUBBORN), str(folder / "pids"), *DEAF]
        process = start(name, folder, [*words, "--", *server])
        time.sleep(delay)  # the random moment
        process.kill()
        process.communicate()
        left = left_processes(folder)
        for one in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(one.split()[0]), signal.SIGKILL)
        return [f"{name}, killed after {delay:.3f} s: {one} is left" for one in left]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def kill_proxies(count: int, seed: int, at_once: int = 2) -> list[str]:
    """So many of them, at random moments from their first steps on."""
    dice = random.Random(seed)
    names = itertools.islice(itertools.cycle(PROXIES), count)
    moments = [EARLIEST * (LATEST / EARLIEST) ** dice.random() for _ in range(count)]
    try:
        with ThreadPoolExecutor(at_once) as threads:
            found = threads.map(
                kill_proxy, itertools.islice(itertools.cycle(names), count), moments
            )
            return [problem for problems in found for problem in problems]
    finally:
        while held:
            os.close(held.pop())


def torn_files(home: Path) -> Iterator[str]:
    """Reports are there whole or not at all, and nothing that was begun lies beside them."""
    for path in home.rglob("*"):
        if path.name.startswith((".report", ".junit", ".page")) or path.suffix == ".partial":
            yield f"{path.relative_to(home)} is left"
    report = home / "report.json"
    if report.exists():
        try:
            json.loads(report.read_bytes())
        except ValueError as error:
            yield f"the report is torn: {error}"
    page = home / "page.html"
    if page.exists() and not page.read_text().rstrip().endswith("</html>"):
        yield "the page is torn"


def fire_all(wanted: Sequence[Shot], at_once: int = 2) -> list[Shot]:
    try:
        with ThreadPoolExecutor(at_once) as threads:
            return list(threads.map(fire, wanted))
    finally:
        while held:
            os.close(held.pop())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=210)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=WORDS)
    parser.add_argument("--kill", action="store_true", help="kill proxies instead")
    arguments = parser.parse_args()
    if arguments.kill:
        problems = kill_proxies(arguments.count, arguments.seed)
        print(*problems, f"{arguments.count} proxies killed, {len(problems)} problems", sep="\n")
        return bool(problems)
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            # a shell and nohup do that to what they start in the background, and it is inherited
            signal.signal(number, signal.SIG_DFL)
    wanted = shots(arguments.count, arguments.seed)
    began = time.monotonic()
    fired = fire_all([one for one in wanted if arguments.only in (None, one.name)])
    for shot in fired:
        if shot.problems:
            print(shot)
    codes = Counter(
        ("before our first line" if not shot.was_ours else "", shot.code)
        for shot in fired
        if shot.name not in ENDS_AS_ITS_SERVER
    )
    slowest = max(shot.seconds_to_end for shot in fired)
    wrong = sum(bool(shot.problems) for shot in fired)
    print(f"{len(fired)} signals in {time.monotonic() - began:.0f} s, {wrong} with problems")
    print(f"exit codes: {dict(codes)}; the slowest end took {slowest:.1f} s")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
