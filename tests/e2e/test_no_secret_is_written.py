"""Secrets come by every way in, a server tells them all, and nothing that is written holds one.

`telling_server.py` notes which secrets reached it: what a server was not given can't leak, and such
a test would prove nothing.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.agents.asking import Agent
from tests.e2e.driving import BOUND, Done, listening, mcptest
from tests.e2e.telling_server import spellings

MCPTEST = (sys.executable, "-m", "mcptest")
SERVER = Path(__file__).with_name("telling_server.py")
NAME = "NameTok8x7Safe99"
"""Has only letters and digits, so that the server can put it into names and URIs."""
TO_A_PROCESS = {
    "an inherited variable": "Inh/7+a&b<Q>env1",
    "a name": NAME,
    "--env": "Opt/8+c&d<R>env2",
    "an argument": "Arg-9_x.y~key3",
    "an assigned argument": "Asg'9$x!y4",
    "a header among the arguments": "Brr.8x-9y/Token5",
    "a user in a URL": "usr8/Name",
    "a password in a URL": "Pwd/9zz+6",
}
TO_A_URL = {
    "a name": NAME,
    "--header Authorization": "Hdr.9x-8y/Tok7",
    "--header": "Hk/9+z&w<8>",
    "a parameter": "Qry/7+z&w9<k>",
}
REPORTS = tuple(
    word
    for option in ("json-file", "junit", "markdown", "html", "sarif", "code-quality", "tap")
    for word in (f"--{option}", f"report.{option}")
)
SUITE = """
tests:
  - name: looks
    assert: {tool: look, args: {text: a}, expect: {not_error: true}}
  - name: fails
    assert: {tool: look, args: {text: a}, expect: {contains: [never said]}}
  - name: is refused
    assert: {tool: refuse, expect: {not_error: true}}
  - name: reports progress
    assert: {tool: fail, expect: {not_error: true, json_path: {"$.a": 1}}}
"""


class Scene:
    """A folder, a server that tells everything, and how to reach it."""

    def __init__(
        self, folder: Path, seen: Path, reach: Sequence[str], planted: Mapping[str, str]
    ) -> None:
        self.folder = folder
        self.planted = planted
        self.reach = list(reach)
        self.server = reach[1]
        self.env = {
            **os.environ,
            "PLANTED_INHERITED_TOKEN": TO_A_PROCESS["an inherited variable"],
            "PLANTED_NAME_TOKEN": NAME,
            "TELLING_SEEN": str(seen),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "TMPDIR": str(folder),
        }
        self._seen = seen
        self._inputs: set[Path] = set()
        self.give("suite.yaml", SUITE)

    def give(self, name: str, text: str) -> None:
        """A file of the user, who may write secrets wherever he likes."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self._inputs.add(path)

    def run(self, *argv: str) -> Done:
        done = mcptest(*argv, cwd=self.folder, env=self.env, bound=3 * BOUND)
        self.hides(" ".join(argv[:2]), done)
        return done

    def hides(self, what: str, done: Done) -> None:
        """Nothing that was said, no file and no name of one has a secret in any spelling."""
        assert "Traceback" not in done.err, done.err
        texts = {"stdout": done.out, "stderr": done.err}
        for path in self.folder.rglob("*"):
            texts[f"the name {path.name}"] = path.name
            if path.is_file() and path not in self._inputs:
                texts[str(path.relative_to(self.folder))] = path.read_bytes().decode("latin-1")
        leaks = [
            f"{way} as {form} in {place}: …{text[max(0, at - 60) : at + 60]}…"
            for way, secret in self.planted.items()
            for spelled, form in every_spelling(secret).items()
            for place, text in texts.items()
            if (at := text.find(spelled)) >= 0
        ]
        assert not leaks, f"{what}: {len(leaks)} leaks\n" + "\n".join(leaks[:20])

    def saw_everything(self) -> None:
        """The server was given each secret, so each could have leaked."""
        seen = set(map(json.loads, self._seen.read_text().splitlines()))
        assert set(self.planted.values()) <= seen


def every_spelling(secret: str) -> dict[str, str]:
    """Each once, with the last form that has it: many leave letters and digits as they are."""
    forms = {
        **spellings(secret),
        "URL": quote(secret, safe=""),
        "JSON text": json.dumps(secret)[1:-1],
        "HTML text": html.escape(secret),
        "XML text": html.escape(secret, quote=False),
        "Markdown": "".join(one if one.isalnum() else f"\\{one}" for one in secret),
        "UTF-8 as Latin-1": secret.encode().decode("latin-1"),
    }
    return {spelled: form for form, spelled in forms.items()}


def command() -> list[str]:
    user, password = TO_A_PROCESS["a user in a URL"], TO_A_PROCESS["a password in a URL"]
    where = f"postgres://{quote(user, safe='')}:{quote(password, safe='')}@localhost/db"
    return [
        sys.executable,
        str(SERVER),
        "--api-key",
        TO_A_PROCESS["an argument"],
        f"--password={TO_A_PROCESS['an assigned argument']}",
        "-H",
        f"Authorization: Bearer {TO_A_PROCESS['a header among the arguments']}",
        f"--database={where}",
    ]


@pytest.fixture
def stdio(tmp_path: Path) -> Scene:
    folder = tmp_path / "here"
    folder.mkdir()
    option = f"PLANTED_OPTION_API_KEY={TO_A_PROCESS['--env']}"
    reach = ["--server", shlex.join(command()), "--env", option]
    return Scene(folder, tmp_path / "seen", reach, TO_A_PROCESS)


@pytest.fixture
def http(tmp_path: Path) -> Iterator[Scene]:
    with over_http(tmp_path) as scene:
        yield scene


@contextlib.contextmanager
def over_http(tmp_path: Path, *words: str) -> Iterator[Scene]:
    folder = tmp_path / "here"
    folder.mkdir()
    seen, port = tmp_path / "seen", tmp_path / "port"
    server = [sys.executable, str(SERVER), "--port-file", str(port), *words]
    path = "/sse" if "--sse" in words else "/mcp"
    with listening(server, "listening", {"TELLING_SEEN": str(seen)}):
        parameter = quote(TO_A_URL["a parameter"], safe="")
        reach = [
            "--server",
            f"http://127.0.0.1:{port.read_text()}{path}?api_key={parameter}",
            "--header",
            f"Authorization=Bearer {TO_A_URL['--header Authorization']}",
            "--header",
            f"X-Planted-Api-Key={TO_A_URL['--header']}",
            "--header",
            f"X-Planted-Name-Token={NAME}",
        ]
        yield Scene(folder, seen, reach, TO_A_URL)


@pytest.fixture(params=["stdio", "http"])
def scene(request: pytest.FixtureRequest) -> Scene:
    found: Scene = request.getfixturevalue(request.param)
    return found


ASKING = {
    "run": [
        "suite.yaml",
        *REPORTS,
        "--save-capture",
        "wire",
        "--save-baseline",
        "b.json",
        "--verbose",
    ],
    "audit": [*REPORTS, "--output", "starters", "--save-capture", "wire", "--verbose"],
    "lint": [*REPORTS, "--verbose"],
    "fuzz": [*REPORTS, "--runs", "3", "--output", "saved", "--save-capture", "wire", "--seed", "1"],
    "property": [*REPORTS, "--examples", "4", "--output", "found", "--save-capture", "wire"],
    "generate": ["--output", "starters", "--save-capture", "wire", "--verbose"],
    "init": ["first", "--save-capture", "wire", "--verbose"],
    "coverage": ["--suite", "suite.yaml", *REPORTS, "--verbose"],
    "doctor": ["--to", "2026-07-28", *REPORTS[:8], "--save-capture", "wire", "--verbose"],
    "compliance run": [*REPORTS, "--save-capture", "wire", "--save-scorecard", "card.json"],
    "conformance server": [*REPORTS, "--output", "out", "--verbose"],
}


@pytest.mark.parametrize("words", ASKING)
def test_no_command_that_asks_a_server_writes_a_secret(scene: Scene, words: str) -> None:
    scene.run(*words.split(), *ASKING[words], *scene.reach, "--debug")
    scene.saw_everything()


OTHERWISE = ("run", "audit", "fuzz", "compliance run")


@pytest.mark.parametrize("words", OTHERWISE)
@pytest.mark.parametrize("way", ["--sse", "--stateless"])
def test_no_secret_is_written_over_the_oldest_transport_and_in_the_newest_era(
    tmp_path: Path, words: str, way: str
) -> None:
    with over_http(tmp_path, way) as scene:
        done = scene.run(*words.split(), *ASKING[words], *scene.reach, "--debug")
        assert done.code in {0, 1}, done.said
        scene.saw_everything()
        recorded = scene.run("record", "--out", "full.jsonl", *scene.reach, "--verbose")
        met = "HTTP+SSE starts with the handshake" if way == "--sse" else "server/discover lists it"
        assert met in recorded.err


def test_no_secret_of_a_stateless_process_is_written(stdio: Scene) -> None:
    stdio.reach[1] += " --stateless"
    for words in OTHERWISE:
        stdio.run(*words.split(), *ASKING[words], *stdio.reach)
    stdio.saw_everything()


@pytest.mark.parametrize("words", ["run suite.yaml", "audit", "record", "doctor --to draft"])
def test_a_url_with_a_password_is_refused_without_repeating_it(stdio: Scene, words: str) -> None:
    stdio.planted = {"a user": "usr8xName", "a password": "Pwd9x8y+z", "a parameter": "Qry9x8y/z"}
    url = "http://usr8xName:Pwd9x8y%2Bz@127.0.0.1:1/mcp?api_key=Qry9x8y%2Fz"
    out = ["--out", "f"] if words == "record" else []
    done = stdio.run(*words.split(), *out, "--server", url)
    assert done.code, done.said


@pytest.mark.parametrize("form", ["json", "agent", "tap"])
def test_no_form_on_stdout_holds_a_secret(scene: Scene, form: str) -> None:
    done = scene.run("run", "suite.yaml", "--format", form, *scene.reach)
    assert done.code == 1
    if form == "json":
        json.loads(done.out)
    scene.saw_everything()


HALVES = Path(__file__).with_name("cutting_server.py")
LONG = "Zq7Wx9Kp2Lm4Rt6Yv8Bn1Cd3Ef5Gh7Jk9Mn2Pq4S"
HALF = 9
"""Characters of a secret in a row that nobody may see."""
CUTTING = {
    "run": ["suite.yaml", *REPORTS, "--save-capture", "wire", "--timeout", "10s"],
    "audit": [*REPORTS, "--output", "starters", "--save-capture", "wire", "--verbose"],
    "lint": [*REPORTS, "--verbose"],
    "compliance run": [*REPORTS, "--save-capture", "wire", "--max-time", "30s"],
}


@pytest.mark.parametrize("way", ["stderr", "noise", "half", "die"])
@pytest.mark.parametrize("words", CUTTING)
def test_no_half_of_a_secret_is_left_where_a_text_was_cut(
    stdio: Scene, words: str, way: str
) -> None:
    """Whatever is too long is cut somewhere, and that may be within a secret."""
    stdio.env |= {"PLANTED_LONG_TOKEN": LONG}
    parts = {f"from {at}": LONG[at : at + HALF] for at in range(len(LONG) - HALF + 1)}
    stdio.planted = parts
    server = shlex.join([sys.executable, str(HALVES), way])
    stdio.run(*words.split(), *CUTTING[words], "--server", server)


def test_ci_writes_no_secret_into_the_log_or_the_summary(scene: Scene) -> None:
    scene.env |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(scene.folder / "summary")}
    done = scene.run("ci", "suite.yaml", *scene.reach)
    assert "::error" in done.out
    assert (scene.folder / "summary").read_text()
    scene.saw_everything()


def test_golden_answers_are_the_same_again_without_their_secrets(scene: Scene) -> None:
    first = scene.run("snapshot", "suite.yaml", "-k", "looks", "--update", *scene.reach)
    assert first.code == 0, first.said
    again = scene.run("snapshot", "suite.yaml", "-k", "looks", *scene.reach)
    assert again.code == 0, again.said
    scene.saw_everything()


def test_a_matrix_writes_no_secret(stdio: Scene) -> None:
    languages = f"one:{stdio.server}"
    stdio.planted = {way: one for way, one in stdio.planted.items() if way != "--env"}
    stdio.run("matrix", "--suite", "suite.yaml", "--languages", languages, "--junit", "m.xml")
    stdio.saw_everything()


def test_a_recording_and_what_is_made_of_it_hold_no_secret(scene: Scene) -> None:
    scene.run("record", "--out", "full.jsonl", *scene.reach, "--verbose")
    scene.saw_everything()
    scene.run("record", "--out", "short.json", "--form", "exchanges", *scene.reach)
    scene.run("compliance", "invariants", "--capture", "full.jsonl", "--verbose")
    scene.run("report", "--capture", "full.jsonl", "--html", "wire.html")
    scene.run("run", "suite.yaml", "--json-file", "run.json", *scene.reach)
    scene.run("report", "run.json", *REPORTS, "--badge", "badge.json")


def test_suites_and_configurations_may_hold_secrets_which_nothing_else_does(stdio: Scene) -> None:
    words = command()
    server = {
        "command": words[0],
        "args": words[1:],
        "env": {"PLANTED_OPTION_API_KEY": TO_A_PROCESS["--env"]},
    }
    stdio.give("with.yaml", f"server: {json.dumps(server)}\n{SUITE}")
    stdio.run("run", "with.yaml", "--save-capture", "wire", "--html", "page.html", "--verbose")
    stdio.saw_everything()
    stdio.run("run", "with.yaml", "--last-failed")
    stdio.give(".mcp.json", json.dumps({"mcpServers": {"told": server}}))
    stdio.run("audit", "--server", "told", *REPORTS, "--output", "starters")
    stdio.run("fleet", ".mcp.json", *REPORTS, "--save-capture", "all", "--verbose")


def messages() -> bytes:
    """What an agent says to a server in one session."""
    client = {"name": "agent", "version": "1"}
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    said: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": begin},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "look", "arguments": {}}},
        {"id": 4, "method": "tools/call", "params": {"name": "refuse", "arguments": {}}},
    ]
    return b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in said)


PROXIES = {
    "record": ["--proxy", "--out", "wire.jsonl"],
    "intercept": [
        "--trajectory",
        "t.yaml",
        "--save-capture",
        "wire.jsonl",
        *REPORTS[:8],
        "--verbose",
    ],
}


@pytest.mark.parametrize("name", PROXIES)
def test_a_proxy_passes_every_byte_on_and_writes_no_secret(stdio: Scene, name: str) -> None:
    stdio.give(
        "t.yaml", "tests:\n  - name: order\n    trajectory: [{type: order, tools: [never, look]}]\n"
    )
    direct = subprocess.run(
        command(), input=messages(), capture_output=True, env=with_option(stdio), timeout=BOUND
    )
    through = subprocess.run(
        [*MCPTEST, name, *PROXIES[name], *stdio.reach],
        input=messages(),
        capture_output=True,
        env=stdio.env,
        cwd=stdio.folder,
        timeout=BOUND,
    )
    assert through.stdout == direct.stdout
    assert NAME.encode() in through.stdout
    ours = through.stderr.replace(direct.stderr, b"")  # what the server says there is passed on
    stdio.hides(name, Done(through.returncode, "", ours.decode()))
    stdio.saw_everything()
    assert (stdio.folder / "wire.jsonl").is_file()


def with_option(scene: Scene) -> dict[str, str]:
    return {**scene.env, "PLANTED_OPTION_API_KEY": TO_A_PROCESS["--env"]}


def test_a_client_under_test_and_its_output_leave_no_secret(stdio: Scene) -> None:
    loud = "import os,sys; print(os.environ['PLANTED_OPTION_API_KEY'], *sys.argv); sys.exit(3)"
    words = [sys.executable, "-c", loud, *command()[2:]]
    stdio.run(
        *("conformance", "client", "--command", shlex.join(words), *stdio.reach[2:], *REPORTS),
        *("--scenario", "initialize", "--output", "out", "--verbose", "--timeout", "20s"),
    )
    said = [path.read_text() for path in stdio.folder.rglob("stdout.txt")]
    assert said
    assert all("***" in text for text in said), "the client was not heard"


def test_a_watch_writes_no_secret(scene: Scene) -> None:
    process = subprocess.Popen(
        [*MCPTEST, "watch", "suite.yaml", *scene.reach, "--verbose"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=scene.env,
        cwd=scene.folder,
    )
    assert process.stdout is not None
    with contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        head = b""
        while b" failed" not in head:
            line = process.stdout.readline()
            assert line, head
            head += line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=BOUND)
    scene.hides("watch", Done(process.returncode, (head + out).decode(), err.decode()))
    scene.saw_everything()


def test_a_server_of_ours_does_not_tell_the_token_that_it_asks_for(stdio: Scene) -> None:
    token = TO_A_PROCESS["an argument"]
    process = subprocess.Popen(
        [*MCPTEST, "serve", "demo", "--transport", "http", *("--token", token)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=stdio.env,
        cwd=stdio.folder,
    )
    assert process.stderr is not None
    said = process.stderr.readline()
    process.terminate()
    out, err = process.communicate(timeout=BOUND)
    stdio.hides("serve", Done(process.returncode, out.decode(), (said + err).decode()))


def test_an_agent_is_told_no_secret(stdio: Scene) -> None:
    words = command()
    env = {"PLANTED_OPTION_API_KEY": TO_A_PROCESS["--env"], "TELLING_SEEN": "${TELLING_SEEN}"}
    env |= {"PLANTED_INHERITED_TOKEN": "${PLANTED_INHERITED_TOKEN}"}
    env |= {"PLANTED_NAME_TOKEN": "${PLANTED_NAME_TOKEN}"}
    server = {"command": words[0], "args": words[1:], "env": env}
    stdio.give(".mcp.json", json.dumps({"mcpServers": {"told": server}}))
    flags = ("--allow-run", "--allow-server", "told", "--allow-write")
    with Agent(stdio.folder, *flags, env=stdio.env) as agent:
        said = [json.dumps(agent.tools())]
        tools = ("lint_server", "audit_server", "compliance_run", "doctor")
        said += [json.dumps(agent.use(tool, {"server_name": "told"})) for tool in tools]
    stdio.hides("mcp", Done(0, "\n".join(said), ""))
    stdio.saw_everything()


def test_pytest_prints_no_secret(stdio: Scene) -> None:
    words = command()
    server = {
        "command": words[0],
        "args": words[1:],
        "env": {"PLANTED_OPTION_API_KEY": TO_A_PROCESS["--env"]},
    }
    stdio.give("with.yaml", f"server: {json.dumps(server)}\n{SUITE}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--mcptest", "with.yaml", *("--junitxml", "junit.xml")],
        capture_output=True,
        env=stdio.env,
        cwd=stdio.folder,
        timeout=3 * BOUND,
    )
    assert b"3 failed" in done.stdout, done.stdout.decode()
    stdio.hides("pytest", Done(done.returncode, done.stdout.decode(), done.stderr.decode()))
    stdio.saw_everything()


def test_the_command_that_repeats_a_failure_names_a_variable_and_no_secret(stdio: Scene) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--mcptest", "suite.yaml"),
            *("--mcptest-server", stdio.server),
        ],
        capture_output=True,
        env=with_option(stdio),
        cwd=stdio.folder,
        timeout=3 * BOUND,
    )
    said = done.stdout.decode()
    stdio.hides("pytest", Done(done.returncode, said, done.stderr.decode()))
    repeated = [line for line in said.splitlines() if "repeat:" in line]
    assert len(repeated) == 3, said
    for line in repeated:
        assert "$API_KEY" in line
        assert "***" not in line
        assert "Asg" not in line, "in whatever quotes"
