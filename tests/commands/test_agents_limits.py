"""What agents are kept from: roots, suites and the words of the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mcptest.commands.mcp import roots as rooted
from mcptest.commands.mcp.roots import Allowed, Roots, allowed_of
from mcptest.commands.mcp.run import suite_guide
from mcptest.commands.mcp.suite_guard import main as guard
from mcptest.commands.mcp.suite_guard import refused
from mcptest.commands.mcp.tool_commands import WorkFolder, environment_for
from mcptest.core import results
from mcptest.core.errors import UsageError
from mcptest.report.codec import as_json
from mcptest.servers.demo.exchange import ToolFailure
from mcptest.suite.load import load_suites
from tests.e2e.driving import mcptest

TEST = """\
tests:
  - name: one
    setup: [{{tool: add, capture: {{name: $.x}}}}]
    assert: {{tool: add, expect: {{{}}}}}
"""


def allowed(*servers: str, config: Path | None = None, run: bool = True) -> Allowed:
    return allowed_of([], run=run, servers=servers, config=config, write=False)


def test_running_needs_both_the_permission_and_the_servers() -> None:
    assert allowed(run=False).servers == ()
    with pytest.raises(UsageError, match="but nothing may"):
        allowed("demo", run=False)
    with pytest.raises(UsageError, match="which servers"):
        allowed()


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 300])
def test_a_server_needs_a_name_that_can_be_shown(name: str) -> None:
    with pytest.raises(UsageError):
        allowed(name)


def test_a_root_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        allowed_of([str(tmp_path / "none")], run=False, servers=[], config=None, write=False)


def config_file(folder: Path, **servers: object) -> Path:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_a_configuration_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES_KEY", "hunter2")
    monkeypatch.setenv("OTHER_KEY", "not for servers")
    entry = {"command": "notes", "args": ["--all"], "env": {"KEY": "${NOTES_KEY}"}}
    path = config_file(tmp_path, notes=entry)
    (server,) = allowed("notes", config=path).servers
    config_file(tmp_path, notes={"command": "sh", "args": ["-c", "evil"]})
    place = WorkFolder(Roots((str(tmp_path),)))
    try:
        words = place.place_server(server)
        kept = Path(place.folder, ".mcp.json")
        assert json.loads(kept.read_text())["mcpServers"]["notes"] == entry
        assert kept.stat().st_mode & 0o077 == 0
        env = environment_for(server, place)
    finally:
        place.close()
    assert words == [f"--cwd={server.folder}"]
    assert env["NOTES_KEY"] == "hunter2"
    assert "OTHER_KEY" not in env
    assert not Path(place.folder).exists()


def test_a_configured_name_that_looks_like_a_command_is_refused(tmp_path: Path) -> None:
    path = config_file(tmp_path, **{"my server": {"command": "notes"}})
    with pytest.raises(UsageError, match="can't be told from a command"):
        allowed("my server", config=path)


def roots_in(folder: Path) -> tuple[Roots, Path]:
    root, target = folder / "root", folder / "copy"
    root.mkdir()
    target.mkdir()
    return Roots((str(root),)), target


def test_a_folder_is_copied_without_links_and_what_is_hidden(tmp_path: Path) -> None:
    roots, target = roots_in(tmp_path)
    root = tmp_path / "root"
    (tmp_path / "secret").write_text("no")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "kept.yaml").write_text("yes")
    (root / "a" / ".env").write_text("no")
    (root / "a" / "link").symlink_to(tmp_path / "secret")
    (root / "a" / "away").symlink_to(tmp_path)
    os.mkfifo(root / "a" / "pipe")
    assert roots.copy("a", str(target)) == "a"
    copied = [str(one.relative_to(target)) for one in sorted(target.rglob("*")) if one.is_file()]
    assert copied == ["a/b/kept.yaml"]


def test_too_much_is_refused_before_it_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots, target = roots_in(tmp_path)
    with (tmp_path / "root" / "large").open("wb") as large:
        large.truncate(10**12)
    with pytest.raises(ToolFailure, match="smaller folder"):
        roots.copy("large", str(target))
    (tmp_path / "root" / "large").unlink()
    monkeypatch.setattr(rooted, "MAX_FILES", 3)
    for number in range(4):
        (tmp_path / "root" / f"{number}").touch()
    with pytest.raises(ToolFailure, match="smaller folder"):
        roots.copy(".", str(tmp_path / "other"))


def test_several_roots_are_looked_through_in_their_order(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(name)
    roots = Roots((str(tmp_path / "one"), str(tmp_path / "two")))
    target = tmp_path / "copy"
    target.mkdir()
    roots.copy("two.txt", str(target))
    roots.copy(str(tmp_path / "one" / "one.txt"), str(target))
    assert sorted(one.name for one in target.iterdir()) == ["one.txt", "two.txt"]


def reasons(folder: Path, text: str) -> list[str]:
    path = folder / "suite.yaml"
    path.write_text(text)
    return list(refused(load_suites([str(path)], fixture=str(folder), server_given=True)))


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "{{fixture}}/../x", "~/x", "{{fixture}}/{{name}}"]
)
def test_a_suite_looks_at_no_file_outside_of_its_fixture(tmp_path: Path, path: str) -> None:
    expect = f'file_contains: {{"{path}": root}}'
    assert reasons(tmp_path, TEST.format(expect))


@pytest.mark.parametrize("expect", ["not_error: true", 'file_contains: {"{{fixture}}/a/b.txt": x}'])
def test_a_plain_suite_is_run(tmp_path: Path, expect: str) -> None:
    assert reasons(tmp_path, TEST.format(expect)) == []


def test_an_audit_log_is_not_read_for_an_agent(tmp_path: Path) -> None:
    text = "name: t\naudit_log: /var/log/x\ntrajectory: [{type: presence, tools: [add]}]\n"
    assert any("audit_log" in one for one in reasons(tmp_path, text))


def test_what_is_no_suite_is_for_the_run_to_refuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.yaml").write_text("nonsense: [")
    assert guard([str(tmp_path / "x.yaml"), ""]) == 0
    assert capsys.readouterr().out == ""


def test_the_example_of_the_guide_is_a_sound_suite(tmp_path: Path) -> None:
    example = suite_guide().partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "guide.yaml").write_text(example)
    loaded = load_suites([str(tmp_path / "guide.yaml")])
    assert len(loaded.suite.tests) == 5


def test_a_command_in_a_stored_report_is_not_handed_on(tmp_path: Path) -> None:
    proof = results.Proof(repeat="mcptest run --server 'rm -rf /'")
    broken = results.TestResult(name="x", status=results.Status.FAIL, detail="no", proof=proof)
    (tmp_path / "run.json").write_bytes(as_json(results.RunReport(results=(broken,))))
    text = mcptest("report", "run.json", "--format", "agent", cwd=tmp_path).out
    assert text.splitlines()[0].startswith("FAIL: 1 failed")
    assert text.splitlines()[1].startswith("mcptest report run.json  # ")
    assert "rm -rf" not in text
