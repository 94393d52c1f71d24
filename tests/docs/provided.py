"""Files that pages name without showing them, and how each is made.

Only what a command of a page names is made, so a page without captures costs none.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from tests.docs.fences import ROOT
from tests.e2e.driving import mcptest

Make = Callable[[Path], object]
SERVER = "from mcptest.servers.demo.__main__ import main\n\nraise SystemExit(main())\n"
CLIENT = """import os, runpy, sys

sys.argv[1:1] = {broken}

kind = "auth" if os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/") else "raw"
runpy.run_path(f"{folder}/{{kind}}_client.py", run_name="__main__")
"""
SOUND = CLIENT.format(folder=ROOT / "tests" / "conformance", broken=[])
BROKEN = CLIENT.format(
    folder=ROOT / "tests" / "conformance", broken=["--break", "lies-about-roots"]
)
GREETING = """name: the greeting comes back
server: { command: mcptest, args: [serve, demo] }
assert:
  tool: echo
  args: { text: "Hello, world!" }
  expect:
    contains: ["Hello, world!"]
"""


@cache
def _kept() -> Path:
    """Where what takes time to make is kept for the other pages."""
    folder = Path(tempfile.mkdtemp(prefix="mcptest-docs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _recorded() -> Path:
    """A session with the demo."""
    out = _kept() / "session.jsonl"
    done = mcptest("record", "--server", "demo", "--out", str(out))
    assert done.code == 0, done.said
    return out


@cache
def _of_a_client() -> Path:
    """The session of a sound client with the server of a scenario."""
    folder = _kept() / "client"
    folder.mkdir()
    (folder / "client.py").write_text(SOUND)
    words = ("--command", "python client.py", "--scenario", "tools_call", "-o", "kept")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = mcptest("conformance", "client", *words, cwd=folder, env={**os.environ, "PATH": path})
    assert done.code == 0, done.said
    (capture,) = folder.rglob("*.jsonl")
    return capture


@cache
def _run() -> Path:
    """A run of the examples in two shards, and as a whole."""
    folder = _kept() / "run"
    folder.mkdir()
    suites = [str(ROOT / "examples" / name) for name in ("quickstart.yaml", "failing.yaml")]
    for name, *more in (
        ("run.json", "--capture", "captures"),
        ("shard-1.json", "--shard", "1/2"),
        ("shard-2.json", "--shard", "2/2"),
    ):
        done = mcptest("run", *suites, "--server", "demo", "--json-file", name, *more, cwd=folder)
        assert done.code in {0, 1}, done.said
    return folder


def _copy_of(source: Callable[[], Path], name: str = "") -> Make:
    def make(path: Path) -> None:
        found = source() / name if name else source()
        (shutil.copytree if found.is_dir() else shutil.copy)(found, path)

    return make


def _text(text: str) -> Make:
    return lambda path: path.write_text(text)


def _link(target: Path) -> Make:
    return lambda path: path.symlink_to(target)


def _fixtures(path: Path) -> None:
    path.mkdir()
    (path / "hello.txt").write_text("Hello, world!\n")


def _evals(path: Path) -> None:
    path.mkdir()
    _fixtures(path / "fixtures")
    (path / "greeting.yaml").write_text(GREETING)


def _unfinished_handshake(path: Path) -> None:
    """A session in the public form whose client forgets notifications/initialized."""
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _NAMED}
    answered = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
    welcome = {"jsonrpc": "2.0", "id": 1, "result": {**answered, "serverInfo": _NAMED}}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    listed = {"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}
    session = {
        "server_label": "stdio://my-server",
        "exchanges": [
            {"request": hello, "response": welcome},
            {"request": listing, "response": listed},
        ],
    }
    path.write_text(json.dumps(session))


_NAMED = {"name": "sample", "version": "1"}

PROVIDED: Mapping[str, Make] = {
    "session.jsonl": _copy_of(_recorded),
    "session.json": _unfinished_handshake,
    "run.json": _copy_of(_run, "run.json"),
    "captures": _copy_of(_run, "captures"),
    "shard-*.json": lambda path: [
        shutil.copy(_run() / name, path.with_name(name))
        for name in ("shard-1.json", "shard-2.json")
    ],
    "quickstart.yaml": _copy_of(partial(Path, ROOT / "examples" / "quickstart.yaml")),
    "failing.yaml": _copy_of(partial(Path, ROOT / "examples" / "failing.yaml")),
    "evals": _evals,
    "evals/fixtures": _fixtures,
    "conformance-baseline.yml": _text("client:\n  - scenario: slow-call\n    flaky: true\n"),
    "tools.json": _copy_of(partial(Path, ROOT / "tests" / "data" / "lint_sample.json")),
    "server.py": _text(SERVER),
    "my_server.py": _text(SERVER),
    "client.py": _text(SOUND),
    "notes.py": _copy_of(partial(Path, ROOT / "examples" / "migration-doctor" / "old_server.py")),
    "tests": _link(ROOT / "tests"),
    "examples": _link(ROOT / "examples"),
    "dist": lambda path: path.mkdir(),
    "src": lambda path: path.mkdir(),
}

_OF_PAGES: Mapping[str, Mapping[str, Make]] = {
    **{
        page: {"session.jsonl": _copy_of(_of_a_client)}
        for page in ("docs/commands/conformance.md", "docs/howto/test-a-client.md")
    },
    "README.md": {"client.py": _text(BROKEN)},
    **{
        f"docs/commands/{command}.md": {"server.py": _link(ROOT / "tests" / "e2e" / "explored.py")}
        for command in ("audit", "generate")
    },
}


def of_page(page: Path) -> Mapping[str, Make]:
    """What a page means by a name, where that is something else than on the others."""
    return _OF_PAGES.get(page.relative_to(ROOT).as_posix(), {})
