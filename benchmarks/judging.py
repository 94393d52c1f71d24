"""Seconds and peak memory to judge a capture of 200,000 exchanges and 100 MB, in both forms.

python benchmarks/judging.py [--megabytes 100] [--exchanges 200000]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--exchanges", type=int, default=200_000)
    parser.add_argument("--form", choices=("full", "exchanges"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for form in (arguments.form,) if arguments.form else ("full", "exchanges"):
            path = Path(folder) / f"capture-{form}"
            words = ["--form", form, "--exchanges", str(arguments.exchanges)]
            words += ["--megabytes", str(arguments.megabytes)]
            subprocess.run([sys.executable, HERE / "make_capture.py", path, *words], check=True)
            seconds, peak = judged(path)
            size = path.stat().st_size / 1e6
            path.unlink()
            print(f"{form:<10} {size:7.0f} MB  {seconds:6.1f} s  {peak:6.0f} MB peak", flush=True)


def judged(path: Path) -> tuple[float, float]:
    mcptest = Path(sys.executable).with_name("mcptest")
    command = [mcptest, "compliance", "invariants", "--capture", path, "--json"]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


if __name__ == "__main__":
    main()
