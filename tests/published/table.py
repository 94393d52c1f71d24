"""The published servers as data: what they are, how each is started over each transport.

`servers.yml` is the table. Nothing here starts anything.
"""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".cache" / "published"
"""Where the servers are installed."""

_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: none
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
users: [{name: none, user: {}}]
"""
_TOOLBOX = """\
sources:
  notes: {kind: sqlite, database: notes.db}
tools:
  all-notes:
    kind: sqlite-sql
    source: notes
    description: All notes.
    statement: SELECT id, text FROM notes ORDER BY id
    annotations: {readOnlyHint: true}
  one-note:
    kind: sqlite-sql
    source: notes
    description: The note with this number.
    parameters:
      - {name: id, type: integer, description: Number of the note}
    statement: SELECT id, text FROM notes WHERE id = ?
    annotations: {readOnlyHint: true}
"""
_OPENAPI = """\
{"openapi": "3.1.0", "info": {"title": "Notes", "version": "1"}, "paths": {"/notes/{id}": {"get": {
  "operationId": "getNote", "summary": "The note with this number.",
  "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
  "responses": {"200": {"description": "A note."}}}}}}
"""
_OAUTH_KEYS = """\
{"installed": {"client_id": "none", "client_secret": "none", "redirect_uris": ["http://none"]}}
"""


class Way(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server is started to be spoken to over one transport."""

    command: tuple[str, ...]
    env: Mapping[str, str] = {}
    host: str = "127.0.0.1"
    path: str = ""


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One server that somebody published."""

    name: str
    package: str
    language: str
    sdk: str
    ways: Mapping[str, Way]
    env: Mapping[str, str] = {}
    allowed: tuple[str, ...] = ()
    """Tools that may be called although they do not say that they just read."""
    notes: str = ""
    environment_of: str = msgspec.field(default="", name="environment")
    """Whose Python environment it runs in, where it has none of its own."""

    @property
    def family(self) -> str:
        """The SDK and its major version: what behaves alike."""
        name, _, version = self.sdk.rpartition(" ")
        return f"{name} {version.partition('.')[0]}" if version[:1].isdigit() else self.sdk

    def environment(self, transport: str, places: Mapping[str, str]) -> dict[str, str]:
        both = {**self.env, **self.ways[transport].env}
        return {name: _filled(value, places) for name, value in both.items()}

    def command(self, transport: str, places: Mapping[str, str]) -> list[str]:
        return [_filled(word, places) for word in self.ways[transport].command]


def published_servers() -> list[Published]:
    """The whole table, in its own order."""
    return _table("servers.yml")


def minimal_servers() -> list[Published]:
    """Servers that are nothing but their SDK."""
    return _table("minimal.yml")


def _table(name: str) -> list[Published]:
    return msgspec.convert(yaml.safe_load((HERE / name).read_text()), list[Published])


def places_of(server: Published, work: Path, port: int = 0) -> dict[str, str]:
    """What the placeholders of a command stand for on this machine."""
    return {
        "npm": str(CACHE / "npm" / "node_modules"),
        "bin": str(CACHE / "python" / (server.environment_of or server.name) / "bin"),
        "here": str(HERE),
        "port": str(port),
        "work": str(work),
    }


def furnish(work: Path) -> None:
    """Make the folder in which a server is started: something to read for each of them."""
    (work / "note.txt").write_text("hello\n")
    (work / "kubeconfig").write_text(_KUBECONFIG)
    (work / "tools.yaml").write_text(_TOOLBOX)
    (work / "openapi.json").write_text(_OPENAPI)
    (work / "oauth.json").write_text(_OAUTH_KEYS)
    (work / "claude" / "projects").mkdir(parents=True)
    (work / ".moon").mkdir()
    (work / ".moon" / "workspace.yml").write_text("projects: []\n")
    with sqlite3.connect(work / "notes.db") as database:
        database.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
        database.execute("INSERT INTO notes VALUES (1, 'hello')")
    database.close()
    git = ("git", "-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid")
    for words in (("init", "--quiet"), ("add", "note.txt"), ("commit", "--quiet", "-m", "A note")):
        subprocess.run([*git, *words], cwd=work, check=True)


def _filled(word: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        word = word.replace(f"{{{name}}}", value)
    return word
