"""The hooks for pre-commit, run by pre-commit itself in a repository as a user has it.

Only the installation is left out: the hooks run as `system`, with mcptest on the PATH.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pre_commit.clientlib import load_manifest

from tests.e2e.driving import BOUND, Done
from tests.packaging.installing import ROOT

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
SUITE = (ROOT / "examples" / "quickstart.yaml").read_text()
SCHEMA = "evals/.mcptest.schema.json"


def run(*words: str | Path, cwd: Path, home: Path) -> Done:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
        "LANG": "C.UTF-8",
        **{
            f"GIT_{who}_{what}": "x@y.z"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment, capture_output=True, timeout=BOUND
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


class Repository:
    """One that uses the hooks."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder / "project", folder / "home"
        (self.folder / "evals" / "fixtures").mkdir(parents=True)
        self.home.mkdir()
        hooks = [{**hook, "language": "system"} for hook in yaml.safe_load(MANIFEST.read_text())]
        config = {"repos": [{"repo": "local", "hooks": hooks}]}
        self.write(".pre-commit-config.yaml", yaml.safe_dump(config))
        self.git("init", "--quiet")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def git(self, *words: str) -> None:
        assert run("git", *words, cwd=self.folder, home=self.home).code == 0

    def hook(self, name: str) -> Done:
        """On what is about to be committed."""
        self.git("add", "--all")
        words = ("-m", "pre_commit", "run", "--verbose", name)
        return run(sys.executable, *words, cwd=self.folder, home=self.home)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_the_manifest_is_one() -> None:
    hooks = load_manifest(str(MANIFEST))
    assert [hook["id"] for hook in hooks] == ["mcptest-validate", "mcptest-schema"]
    assert {hook["language"] for hook in hooks} == {"python"}
    assert {hook["entry"].split()[0] for hook in hooks} == {"mcptest"}


def test_a_sound_suite_passes_and_nothing_is_started(repository: Repository) -> None:
    server = "server: {command: touch, args: [started]}\n"
    repository.write("evals/quick.yaml", server + SUITE)
    repository.write("evals/fixtures/data.yaml", "no: [suite")
    repository.write("other.yaml", "tests: 3")
    done = repository.hook("mcptest-validate")
    assert done.code == 0, done.said
    assert "evals/quick.yaml:5: the server answers" in done.out
    assert not (repository.folder / "started").exists()


def test_a_broken_suite_stops_the_commit_with_its_place(repository: Repository) -> None:
    repository.write("evals/good.yaml", SUITE)
    repository.write("evals/bad.yaml", SUITE.replace("tool: add", "tol: add"))
    done = repository.hook("mcptest-validate")
    assert done.code == 1
    assert "evals/bad.yaml:14:7: unknown key tol in assert" in done.out
    assert "good.yaml:" not in done.out


def test_only_what_changed_is_looked_at(repository: Repository) -> None:
    repository.write("evals/bad.yaml", "tests: 3")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--no-verify", "--message", "x")
    repository.write("evals/new.yaml", SUITE)
    assert repository.hook("mcptest-validate").code == 0


def test_a_schema_for_editors_is_brought_up_to_date_once(repository: Repository) -> None:
    repository.write(SCHEMA, "{}")
    first = repository.hook("mcptest-schema")
    assert first.code == 1
    assert "files were modified by this hook" in first.out
    assert (repository.folder / SCHEMA).stat().st_size > 10_000
    assert repository.hook("mcptest-schema").code == 0
