"""The GitHub action: its metadata is valid, its scripts do what they say, no input is a command."""

from __future__ import annotations

import json
import re
import shutil
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging.installing import ROOT, installed
from tests.packaging.runner import Runner, action
from tests.schemas.validators import problems, read_annotations, read_sarif, validator

VENV = Path(sys.executable).parent
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40}")
WORKFLOWS = sorted((ROOT / "examples" / "ci").glob("github*.yml"))
HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    '"; touch pwned; echo "',
    "'; touch pwned; echo '",
    "a\n; touch pwned\n",
    "${{ github.token }} ${HOME} $HOME",
    "x && touch pwned || true",
    "--debug",
    "-h",
    "\\",
    "*",
)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """With mcptest on its PATH, as after the step that installs it; nothing else of ours is."""
    workspace, temp, programs = tmp_path / "work", tmp_path / "temp", tmp_path / "bin"
    (workspace / "evals").mkdir(parents=True)
    for folder in (temp, programs):
        folder.mkdir()
    (programs / "mcptest").symlink_to(VENV / "mcptest")
    shutil.copy(ROOT / "examples" / "quickstart.yaml", workspace / "evals")
    return Runner(workspace, temp, str(programs))


def failing(runner: Runner) -> None:
    suite = (ROOT / "examples" / "quickstart.yaml").read_text().replace("$.sum: 4", "$.sum: 5")
    (runner.workspace / "evals" / "quickstart.yaml").write_text(suite)


def ready(**given: str) -> dict[str, str]:
    return {"version": "installed", "python_version": "", "html": "false", **given}


# -- what it is ------------------------------------------------------------------------------------


def test_the_metadata_follows_the_schema_of_actions() -> None:
    assert problems(validator("github-actions"), action()) == []


def test_no_script_holds_an_expression() -> None:
    scripts = [step["run"] for step in action()["runs"]["steps"] if "run" in step]
    assert len(scripts) == 3
    assert [script for script in scripts if "${{" in script] == []


def test_every_input_is_used_and_every_variable_of_a_script_is_given() -> None:
    text = (ROOT / "action.yml").read_text()
    assert [name for name in action()["inputs"] if f"inputs.{name} " not in text] == []
    for step in action()["runs"]["steps"]:
        used = set(re.findall(r"\$\{?(MCPTEST_\w+)", step.get("run", "")))
        assert used == set(step.get("env", {})) - {"MCPTEST_NONE"}, step["name"]


def test_other_actions_are_pinned_to_a_commit() -> None:
    used = [step["uses"] for step in action()["runs"]["steps"] if "uses" in step]
    assert [one for one in used if not PINNED.fullmatch(one)] == []


# -- what it does ----------------------------------------------------------------------------------


def test_a_suite_that_passes_is_told_by_outputs_and_reports(runner: Runner) -> None:
    said = runner.use(**ready(path="evals", server="demo", html="true", upload_sarif="true"))
    assert runner.code == 0, runner.log
    counts = {name: said[name] for name in ("verdict", "exit-code", "tests", "passed", "failed")}
    assert counts == dict(zip(counts, ("pass", "0", "3", "3", "0"), strict=True))
    for form in ("json", "junit", "sarif", "markdown", "html"):
        assert Path(said[form]).stat().st_size > 0
    read_sarif(Path(said["sarif"]).read_bytes())
    assert [name.partition("@")[0] for name, _ in runner.used] == [
        "actions/upload-artifact",
        "github/codeql-action/upload-sarif",
    ]
    assert runner.used[0][1]["path"] == said["reports"] == str(runner.workspace / "mcptest-report")


def test_a_suite_that_fails_fails_the_step_after_its_reports(runner: Runner) -> None:
    failing(runner)
    said = runner.use(**ready(path="evals", server="demo"))
    assert (runner.code, said["verdict"], said["failed"], said["passed"]) == (1, "fail", "1", "2")
    assert runner.ran == ["Run mcptest", "Report the verdict"]
    assert len(runner.used) == 1
    commands = read_annotations(runner.log)
    assert commands[0].startswith("::error file=evals/quickstart.yaml,line=12,")
    assert (runner.temp / "summary.md").read_text().count("### mcptest: 2 passed, 1 failed") == 1


@pytest.mark.parametrize(
    ("fail_on", "path", "code", "verdict"),
    [
        ("error", "evals", 0, "fail"),
        ("never", "evals", 0, "fail"),
        ("error", "nowhere", 2, "error"),
        ("never", "nowhere", 0, "error"),
    ],
)
def test_what_fails_the_step_can_be_chosen(
    runner: Runner, fail_on: str, path: str, code: int, verdict: str
) -> None:
    failing(runner)
    said = runner.use(**ready(path=path, server="demo", fail_on=fail_on))
    assert (runner.code, said["verdict"]) == (code, verdict), runner.log


def test_a_threshold_says_what_is_good_enough(runner: Runner) -> None:
    failing(runner)
    said = runner.use(**ready(path="evals", server="demo", threshold="60"))
    assert (runner.code, said["verdict"], said["failed"]) == (0, "pass", "1")


def test_a_command_without_suites_has_a_summary_too(runner: Runner) -> None:
    said = runner.use(**ready(command="lint", server="demo", reports="out/lint", html="true"))
    assert said["verdict"] in {"pass", "fail"}, runner.log
    assert Path(said["json"]) == runner.workspace / "out" / "lint" / "mcptest.json"
    assert json.loads(Path(said["json"]).read_bytes())["format"] == "mcptest.lint/1"
    assert (runner.temp / "summary.md").stat().st_size > 0
    assert "</html>" in Path(said["html"]).read_text()


def test_arguments_are_lines_and_a_server_may_be_its_words(runner: Runner) -> None:
    given = ["-k", "two and two", "--", str(VENV / "mcptest"), "serve", "demo"]
    said = runner.use(**ready(path="evals", args="\n".join(given)))
    assert (runner.code, said["tests"]) == (0, "1"), runner.log


@pytest.mark.parametrize(
    "given",
    [
        {"command": "serve"},
        {"command": "run; touch pwned"},
        {"fail_on": "sometimes"},
        {"reports": ""},
        {"reports": "a\nverdict=pass"},
        {"command": "audit", "path": "evals"},
        {"command": "fuzz", "threshold": "3"},
    ],
)
def test_an_input_that_can_t_be_meant_is_refused(runner: Runner, given: dict[str, str]) -> None:
    said = runner.use(**ready(server="demo", **given))
    assert runner.code == 2
    assert runner.log.startswith("::error title=mcptest::the input ")
    assert len(runner.log.splitlines()) == 1
    assert said["verdict"] == ""


@pytest.fixture
def echoing(runner: Runner) -> Runner:
    """`mcptest` that only keeps the words that it is given."""
    program = Path(runner.path) / "mcptest"
    program.unlink()
    program.write_text('#!/bin/bash\nprintf "%s\\0" "$@" > "$RUNNER_TEMP/words"\n')
    program.chmod(0o755)
    return runner


def words(runner: Runner) -> list[str]:
    return (runner.temp / "words").read_bytes().decode().split("\0")[:-1]


def lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_input_is_ever_a_command(echoing: Runner, text: str) -> None:
    """All of them at once, and each comes out as it went in."""
    folder = lines(text)[0].replace("/", "_")
    given = {"path": text, "server": text, "args": text, "threshold": text, "reports": folder}
    said = echoing.use(**ready(**given))
    assert echoing.code == 0, echoing.log
    reports = echoing.workspace / folder
    assert said["reports"] == str(reports)
    assert words(echoing) == [
        "ci",
        *(f"--suite={line}" for line in lines(text)),
        f"--server={text}",
        f"--fail-under={text}",
        *(
            f"--{form}={reports}/mcptest.{ending}"
            for form, ending in {
                "json-file": "json",
                "junit": "xml",
                "sarif": "sarif",
                "markdown": "md",
            }.items()
        ),
        "--strict-reports",
        *lines(text),
    ]
    assert list(echoing.workspace.parent.rglob("pwned")) == []
    assert echoing.log == ""


def test_what_a_person_gives_is_no_command_to_the_real_one_either(runner: Runner) -> None:
    said = runner.use(**ready(path="evals", server=HOSTILE[0]))
    assert (runner.code, said["verdict"], said["failed"]) == (1, "fail", "3")
    assert list(runner.workspace.parent.rglob("pwned")) == []
    assert all("title=" in line for line in read_annotations(runner.log))


# -- installing ------------------------------------------------------------------------------------


@pytest.fixture
def pretended(echoing: Runner) -> Runner:
    """`python3` that makes no environment, and whose pip only says what it was asked for."""
    fake = Path(echoing.path) / "python3"
    fake.write_text(
        '#!/bin/bash\nmkdir -p "$3/bin"\n'
        'printf \'#!/bin/bash\\nprintf "%%s\\\\n" "$@" >> "$RUNNER_TEMP/asked"\\n\' > '
        '"$3/bin/python"\nchmod +x "$3/bin/python"\n'
    )
    fake.chmod(0o755)
    return echoing


def asked(runner: Runner) -> list[str]:
    return (runner.temp / "asked").read_text().splitlines()


def test_it_installs_the_version_that_it_belongs_to_or_the_one_that_is_named(
    pretended: Runner,
) -> None:
    for given in ({}, {"version": "0.1.0"}, {"command": "property", "extras": "pytest"}):
        pretended.use(server="demo", path="", **given)
    wanted = [line for line in asked(pretended) if "mcptest" in line or line.startswith("/")]
    assert wanted == [str(ROOT), "mcptest==0.1.0", f"{ROOT}[property,pytest]"]
    assert asked(pretended).count("--") == 3
    assert pretended.used[0][0].startswith("actions/setup-python@")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_version_and_no_extra_is_a_command(pretended: Runner, text: str) -> None:
    for given in ({"version": text}, {"extras": text}):
        pretended.use(server="demo", **given)
        assert pretended.code == 2
    assert not (pretended.temp / "asked").exists()
    assert list(pretended.workspace.parent.rglob("pwned")) == []


# -- whose Python ----------------------------------------------------------------------------------

SUITE = """server:
  command: {command}
  args: [{program}]
tests:
  - name: two and two is four
    assert:
      tool: add
      args: {{a: 2, b: 2}}
      expect: {{contains: ["4"]}}
"""
PYTHON_SERVER = """import json, sys
from job_only import add

TOOL = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}
TOOL["annotations"] = {"readOnlyHint": True}
SERVER = {"name": "adder", "version": "1"}
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        version = request["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": SERVER}
    elif request["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif request["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": str(add(**request["params"]["arguments"]))}]}
    else:
        result = None
    if "id" in request:
        unknown = {"error": {"code": -32601, "message": "Method not found"}}
        answer = unknown if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"""
NODE_SERVER = """const lines = require("readline").createInterface({input: process.stdin});
const add = require("job_only");
const tool = {name: "add", description: "Adds.", inputSchema: {type: "object"}};
const results = {
  initialize: ({protocolVersion}) => ({
    protocolVersion, capabilities: {tools: {}}, serverInfo: {name: "adder", version: "1"},
  }),
  "tools/list": () => ({tools: [tool]}),
  "tools/call": ({arguments: {a, b}}) => ({content: [{type: "text", text: `${add(a, b)}`}]}),
};
lines.on("line", (line) => {
  const {id, method, params} = JSON.parse(line);
  if (id === undefined) return;
  const known = results[method];
  const answer = known ? {result: known(params)} : {error: {code: -32601, message: method}};
  console.log(JSON.stringify({jsonrpc: "2.0", id, ...answer}));
});
"""


@pytest.fixture
def job(runner: Runner, wheel: Path, tmp_path: Path) -> Runner:
    """A job that has set up a Python of its own, with a package that no other Python has.

    The action's Python makes an environment that is there already, with our wheel and a pip that
    installs nothing: each step is run as it stands, and none needs the network.
    """
    (Path(runner.path) / "mcptest").unlink()
    (runner.workspace / "evals" / "quickstart.yaml").unlink()
    theirs = tmp_path / "job-python"
    venv.create(theirs, with_pip=False, symlinks=True)
    (packages,) = (theirs / "lib").glob("python*/site-packages")
    (packages / "job_only.py").write_text("def add(a, b):\n    return a + b\n")
    runner.path = str(theirs / "bin")
    ours = installed(wheel, runner.temp / "mcptest")
    (packages,) = (ours.folder / "lib").glob("python*/site-packages")
    (packages / "pip.py").write_text("")
    runner.set_up = tmp_path / "set-up" / "python"
    runner.set_up.parent.mkdir()
    runner.set_up.write_text(f'#!/bin/bash\n[ "$1" = -m ] || exec {sys.executable} "$@"\n')
    runner.set_up.chmod(0o755)
    return runner


def suite_for(job: Runner, command: str, program: str, text: str) -> None:
    (job.workspace / program).write_text(text)
    suite = SUITE.format(command=command, program=program)
    (job.workspace / "evals" / "adder.yaml").write_text(suite)


def test_a_suite_that_says_python_gets_the_python_of_the_job(job: Runner) -> None:
    suite_for(job, "python", "server.py", PYTHON_SERVER)
    said = job.use(path="evals", html="false")
    assert (job.code, said["verdict"], said["passed"]) == (0, "pass", "1"), job.log
    assert job.ran == ["Install mcptest", "Run mcptest", "Report the verdict"]
    assert job.used[0][1] == {"python-version": "3.13", "update-environment": "False"}


def test_a_server_that_is_named_in_the_step_gets_the_python_of_the_job(job: Runner) -> None:
    (job.workspace / "server.py").write_text(PYTHON_SERVER)
    said = job.use(command="audit", server="python server.py", html="false")
    assert said["tests"] == "1", job.log
    assert "ModuleNotFoundError" not in job.log


def test_a_suite_that_says_node_gets_the_node_and_the_packages_of_the_job(
    job: Runner, tmp_path: Path
) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node here")
    programs = tmp_path / "job-node"
    programs.mkdir()
    (programs / "node").symlink_to(node)
    job.path = f"{programs}:{job.path}"
    package = job.workspace / "node_modules" / "job_only"
    package.mkdir(parents=True)
    (package / "index.js").write_text("module.exports = (a, b) => a + b;\n")
    suite_for(job, "node", "server.js", NODE_SERVER)
    said = job.use(path="evals", html="false")
    assert (job.code, said["verdict"], said["passed"]) == (0, "pass", "1"), job.log


def test_the_action_adds_nothing_but_mcptest_to_the_path(job: Runner) -> None:
    suite_for(job, "python", "server.py", PYTHON_SERVER)
    before = job.path
    job.use(path="evals", html="false")
    added, rest = job.path.split(":", 1)
    assert (rest, [path.name for path in Path(added).iterdir()]) == (before, ["mcptest"])


def test_without_a_python_version_the_job_s_own_python_runs_mcptest(pretended: Runner) -> None:
    pretended.use(server="demo", python_version="")
    assert pretended.used == []
    assert asked(pretended)[-1] == str(ROOT)


def test_on_windows_the_action_says_where_it_runs(pretended: Runner) -> None:
    pretended.system = "Windows"
    pretended.use(server="demo")
    assert (pretended.code, pretended.ran) == (2, ["Install mcptest"])
    assert "mcptest runs on Linux and macOS" in pretended.log


# -- examples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_an_example_of_a_workflow_is_one_and_gives_only_inputs_that_exist(path: Path) -> None:
    workflow: dict[Any, Any] = yaml.safe_load(path.read_text())
    workflow["on"] = workflow.pop(True)  # YAML 1.1 takes `on` for true
    assert problems(validator("github-workflows"), workflow) == []
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    ours = [step for step in steps if step.get("uses", "").split("@")[0].endswith("/mcptest")]
    assert [step for step in steps if "${{" in step.get("run", "")] == []
    for step in ours:
        assert set(step["with"]) <= set(action()["inputs"])
    others = [step["uses"] for step in steps if "uses" in step and step not in ours]
    assert [one for one in others if not PINNED.fullmatch(one)] == []


def test_the_example_for_gitlab_follows_its_schema() -> None:
    for path in (ROOT / "examples" / "ci").glob("gitlab*.yml"):
        assert problems(validator("gitlab-ci"), yaml.safe_load(path.read_text())) == []
