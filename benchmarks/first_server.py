"""How much `mcptest run` does before it starts its first server: CPU, wall time and modules.

    python benchmarks/first_server.py [--rounds 25]

Suites are read before anything is started, so their reading counts. What is imported afterwards
costs little: a server takes longer to start than we take to import it. The run is ended in the very
moment in which it would start the server.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

COUNT = 25
TEST = """\
name: test {number}
server: {{command: "{server}", args: ["{{{{fixture}}}}"]}}
assert: {{tool: t, args: {{path: "{{{{fixture}}}}/f"}}, expect: {{not_error: true, contains: [x]}}}}
"""
UNTIL_THE_FIRST_SERVER = """
import os, sys
def end_here(event, arguments):
    if event == "subprocess.Popen":
        os.write(1, str(len(sys.modules)).encode())
        os._exit(0)
sys.addaudithook(end_here)
sys.argv = ["mcptest", *sys.argv[1:]]
from mcptest.__main__ import main
sys.exit(main())
"""


def until_the_first_server(suite: Path) -> tuple[float, float, int]:
    """Milliseconds of wall time and of CPU, and the number of modules."""
    words = ["run", str(suite), "--fixture", str(suite.parent / "data")]
    reading, writing = os.pipe()
    begin = time.perf_counter()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", UNTIL_THE_FIRST_SERVER, *words],
        {"HOME": str(suite.parent), "PATH": os.environ["PATH"], "TMPDIR": str(suite.parent)},
        file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)],
    )
    _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter() - begin
    os.close(writing)
    modules = os.read(reading, 64)
    os.close(reading)
    if status or not modules:
        raise SystemExit("the run did not come to its first server")
    return wall * 1000, (used.ru_utime + used.ru_stime) * 1000, int(modules)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as home:
        suite, data = Path(home) / "suite", Path(home) / "data"
        suite.mkdir()
        data.mkdir()
        for number in range(COUNT):
            (suite / f"{number:02}.yaml").write_text(
                TEST.format(number=number, server=sys.executable)
            )
        until_the_first_server(suite)  # so that what is compiled is compiled
        walls, cpus, modules = zip(
            *(until_the_first_server(suite) for _ in range(rounds)), strict=True
        )
    print(
        f"{modules[0]} modules, CPU {statistics.median(cpus):.1f} ms, best {min(cpus):.1f}, "
        f"wall {statistics.median(walls):.1f} ms, best {min(walls):.1f}"
    )


if __name__ == "__main__":
    main()
