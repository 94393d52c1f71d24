"""Record each published server once: `python -m tests.published.record [NAME …]`.

What `mcptest record` sees is kept in `captures`, without a path of this machine, and what the rules
over sessions say about it in `captures.json`. `test_captures` judges them again, without the
servers; after a change of how we judge, `--judge` brings `captures.json` up to date without them.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.driving import mcptest
from tests.published.judge import MCPTEST, NeverListenedError, leave_the_network, started
from tests.published.table import CACHE, HERE, Published, published_servers

CAPTURES = HERE / "captures"
PINNED = HERE / "captures.json"


def main(names: Sequence[str]) -> int:
    if "--judge" in names:
        pin()
        return 0
    leave_the_network("tests.published.record")
    CAPTURES.mkdir(exist_ok=True)
    unreached = []
    for server in published_servers():
        if names and server.name not in names:
            continue
        for transport in server.ways:
            try:
                _record(server, transport)
            except NeverListenedError as error:
                unreached.append(f"{server.name} over {transport}: {error}")
                continue
            print(f"{server.name} over {transport}", flush=True)
    pin()
    print("\n".join(unreached), end="")
    return 1 if unreached else 0


def judged(capture: Path) -> dict[str, Any]:
    """What the rules over sessions say about a capture in `captures`."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "session.jsonl"
        plain.write_bytes(gzip.decompress(capture.read_bytes()))
        done = mcptest("compliance", "invariants", "--capture", str(plain), "--json")
    sessions = json.loads(done.out)["sessions"]
    return {
        "revision": sessions[0]["revision"],
        "failing": sorted(
            one["rule"] for told in sessions for one in told["verdicts"] if one["outcome"] == "fail"
        ),
    }


def pin() -> None:
    found = {path.name: judged(path) for path in sorted(CAPTURES.glob("*.jsonl.gz"))}
    PINNED.write_text(json.dumps(found, indent=1) + "\n")


def _record(server: Published, transport: str) -> None:
    with tempfile.TemporaryDirectory() as folder, started(server, transport, Path(folder)) as named:
        capture = Path(folder) / "session.jsonl"
        done = subprocess.run(
            [*MCPTEST, "record", *named, "--out", str(capture), "--startup-timeout", "60s"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            cwd=Path(folder) / "work",
            check=False,
        )
        if not capture.exists():
            raise NeverListenedError(done.stderr.decode()[-1000:])
        kept = CAPTURES / f"{server.name}-{transport}.jsonl.gz"
        kept.write_bytes(gzip.compress(_portable(capture.read_bytes(), folder), mtime=0))


def _portable(capture: bytes, folder: str) -> bytes:
    """Without the paths of this machine, which differ from one recording to the next."""
    places = {
        folder: "/scratch",
        os.path.realpath(CACHE / "npm"): "/published/npm",
        os.path.realpath(CACHE / "python"): "/published/python",
        str(CACHE): "/published",
        str(HERE.parent.parent): "/mcptest",
        sys.base_prefix: "/python",
    }
    for place, name in places.items():
        capture = capture.replace(place.encode(), name.encode())
    return capture


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
