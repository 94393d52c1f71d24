"""The folder in which the commands of one page run, with what a reader of it would have.

Programs that a page names but a test must not run as they are (npx, uvx, docker, make) are small
scripts in `bin`, first on the path: they start the demo, a pinned peer, or what the real one would
start. Addresses of a page lead to a demo that listens here. Files that a page speaks of without
showing them are made when a command names them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.fences import ROOT
from tests.docs.provided import PROVIDED, of_page
from tests.e2e.driving import NPM, free_port, listening

_BIN = Path(sys.executable).parent
_SERVE = f'exec "{sys.executable}" -m mcptest serve demo'
_NODE = shutil.which("node") or "node"
_SHELL_SIGNS = frozenset("();<>|&")
TOKEN = "a-token-for-the-docs"
_FAR = "https://example.com/mcp"
_PORT = re.compile(r"(?:127\.0\.0\.1:|localhost:|--port |--http )(\d{4,5})\b")

SCRIPTS = {
    "npx": f"""while [ "${{1#-}}" != "$1" ]; do shift; done
package="$1"; shift
case "$package" in
  @modelcontextprotocol/server-*)
    name="${{package#@modelcontextprotocol/}}"
    [ "$1" = /data ] && {{ shift; set -- "{{data}}" "$@"; }}
    exec "{_NODE}" "{NPM}/${{name%@*}}/dist/index.js" "$@" ;;
  *) {_SERVE} {{offer}} ;;
esac""",
    "node": f"""case "$1" in
  server.js|dist/index.js|build/index.js) {_SERVE} {{offer}} ;;
  *) exec "{_NODE}" "$@" ;;
esac""",
    "my-server": f"{_SERVE} {{offer}}",
    "uvx": f"""case "$1" in
  mcptest) shift; exec "{sys.executable}" -m mcptest "$@" ;;
  *) exec "{_BIN}/$1" ;;
esac""",
    # The recipe of a target is read from the Makefile itself; setting up is not what is shown.
    "make": f"""PYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.docs.recipe "$@" """,
}

CONFIGURATION = """{
  "mcpServers": {
    "filesystem": {
      "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"]
    },
    "demo": {"command": "mcptest", "args": ["serve", "demo"]}
  }
}
"""


class Workshop:
    """One folder, with the environment of what runs there."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page, self.folder = page, folder / "project"
        self.folder.mkdir()
        self._home = folder / "home"
        self._home.mkdir()
        self._bin = folder / "bin"
        self._bin.mkdir()
        # Pages about scenarios speak of servers that have what scenarios ask for.
        self._offer = ("--offer", "fixtures") if "conformance" in page.parts else ()
        data = folder / "data"
        data.mkdir()
        (data / "hello.txt").write_text("Hello, world!\n")
        self._data = str(data)
        (self.folder / ".mcp.json").write_text(CONFIGURATION)
        for name, text in SCRIPTS.items():
            script = self._bin / name
            lines = text.replace("{data}", self._data).replace("{offer}", " ".join(self._offer))
            script.write_text(f"#!/bin/sh\n{lines}\n")
            script.chmod(0o755)
        self.written: set[str] = set()
        self._ports: dict[str, str] = {}
        self._open = contextlib.ExitStack()

    def close(self) -> None:
        self._open.close()

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in {"CI", "FORCE_COLOR", "CLICOLOR_FORCE", "NODE_PATH"}
            and not name.startswith(("GITHUB_", "GITLAB_", "PYTEST_", "MCP_"))
        }
        path = os.pathsep.join([str(self._bin), str(_BIN), os.environ["PATH"]])
        return {
            **kept,
            "PATH": path,
            "HOME": str(self._home),
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "TOKEN": TOKEN,
            "GITHUB_STEP_SUMMARY": str(self._home / "summary.md"),
        }

    # -- files -----------------------------------------------------------------------------

    def show(self, name: str, text: str) -> str:
        """A file of the page: written, unless a command made it; then what that command wrote."""
        path = self.folder / name
        if name in self.written or not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.rewritten(text))
            self.written.add(name)
            return text
        return path.read_text()

    def provide_for(self, command: str) -> None:
        """Whatever the command names and nobody has made yet."""
        for name, make in {**PROVIDED, **of_page(self.page)}.items():
            if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", command):
                path = self.folder / name
                makes = rf"(?:init|--output|--out|--json-file|--save-\w+) {re.escape(name)}\b"
                if not path.exists() and not re.search(makes, command):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    make(path)

    # -- words -----------------------------------------------------------------------------

    def words_of(self, command: str) -> list[str]:
        """The words of a command that needs no shell, variables and patterns replaced; or none."""
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        if any(word and set(word) <= _SHELL_SIGNS for word in words) or "`" in command:
            return []
        return [found for word in words for found in self._expanded(word)]

    def _expanded(self, word: str) -> list[str]:
        environment = self.environment
        word = re.sub(r"\$([A-Z_]+)", lambda name: environment.get(name[1], name[0]), word)
        found = sorted(self.folder.glob(word)) if "*" in word else []
        return [str(path.relative_to(self.folder)) for path in found] or [word]

    # -- addresses -------------------------------------------------------------------------

    def rewritten(self, text: str) -> str:
        """With addresses that lead somewhere."""
        if _FAR in text:
            text = text.replace(_FAR, "http://127.0.0.1:3001/mcp")
        return _PORT.sub(lambda found: found[0].replace(found[1], self._port(found[1])), text)

    def as_on_the_page(self, text: str) -> str:
        """What was said, with the addresses and places of the page."""
        for documented, actual in self._ports.items():
            text = re.sub(rf"\b{actual}\b", documented, text)
        for place in (str(self.folder.resolve()), str(self.folder)):
            text = text.replace(f"{place}/", "").replace(place, ".")
        text = text.replace(self._data, "/data")
        text = text.replace(f'"{sys.executable}"', "python").replace(sys.executable, "python")
        return text.replace(f"{_BIN}/", "")

    def _port(self, documented: str) -> str:
        if documented in {"3001", "3000"}:
            return self._demo(documented)
        return self._ports.setdefault(documented, str(free_port()))

    def starts_itself(self, documented: str) -> None:
        """The page starts a server at this port: there is none before."""
        self._ports.setdefault(documented, str(free_port()))

    def _demo(self, documented: str) -> str:
        """A demo with all fixtures, for as long as the page is read."""
        if documented not in self._ports:
            port = str(free_port())
            command = (sys.executable, "-m", "mcptest", "serve", "demo", *self._offer)
            at = ("--transport", "http", "--port", port)
            self._open.enter_context(listening((*command, *at), "listening on"))
            self._ports[documented] = port
        return self._ports[documented]


@contextlib.contextmanager
def workshop(page: Path, folder: Path) -> Iterator[Workshop]:
    opened = Workshop(page, folder)
    try:
        yield opened
    finally:
        opened.close()
