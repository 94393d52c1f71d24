"""Every expectation, block and template through the command, in both eras, right and wrong."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mcptest.suite.model import BLOCKS, EXPECT
from tests.e2e.driving import BOUND, listening, mcptest, wait_until

SUITES = Path(__file__).parent / "suites"
FIXTURE = SUITES / "fixtures"
ERAS = ("2025-11-25", "2026-07-28")


def environment() -> dict[str, str]:
    """`python` in a suite is the one that runs the tests."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def results_of(suite: Path, *argv: str) -> tuple[int, dict[str, dict[str, str]]]:
    options = ("--fixture", str(FIXTURE), "--json", *argv)
    done = mcptest("run", str(suite), *options, cwd=suite.parent, env=environment())
    assert done.out, done.err
    return done.code, {result["name"]: result for result in json.loads(done.out)}


@pytest.mark.parametrize("isolation", ["fresh", "shared"])
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("name", ["expectations", "blocks"])
def test_each_test_has_its_verdict_in_every_era(
    name: str, revision: str, isolation: str, tmp_path: Path
) -> None:
    suite = tmp_path / "suite.yaml"
    text = (SUITES / f"{name}.yaml").read_text(encoding="utf-8")
    suite.write_text(text.replace("spec_version: auto", f"spec_version: {revision}"))
    wanted = {
        test["name"]: "FAIL" if "fails" in test.get("tags", ()) else "PASS"
        for test in yaml.safe_load(text)["tests"]
    }

    code, results = results_of(suite, "--isolation", isolation)

    found = {each["name"]: each["status"] for each in results.values()}
    assert found == wanted, [results[name] for name in found if found[name] != wanted[name]]
    assert code == 1
    assert not any("internal error" in each.get("detail", "") for each in results.values())


def test_the_suites_ask_for_everything_there_is() -> None:
    for fails in (True, False):
        blocks, asked = set(), set()
        for name in ("expectations", "blocks"):
            for test in yaml.safe_load((SUITES / f"{name}.yaml").read_text())["tests"]:
                if ("fails" in test.get("tags", ())) is fails:
                    blocks |= set(BLOCKS) & set(test)
                    expect = test.get("assert", {}).get("expect", {})
                    asked |= set(expect) if isinstance(expect, dict) else {"list form"}
        assert blocks == set(BLOCKS)
        assert asked == {field.name for field in EXPECT.fields} | {"list form"}


@pytest.mark.parametrize("around", ["", "subscribe: 'demo://counter', "])
@pytest.mark.parametrize("revision", ERAS)
def test_what_is_unsubscribed_from_is_what_the_test_names(
    around: str, revision: str, tmp_path: Path
) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        f"server: {{command: python, args: [-m, mcptest, serve, demo], spec_version: {revision}}}\n"
        f"assert_resources: {{{around}unsubscribe: 'demo://greeting', "
        "expect: {not_error: true}}\n"
    )
    code, results = results_of(suite, "--save-capture", str(tmp_path / "captures"))
    (captured,) = (tmp_path / "captures").glob("*.jsonl")
    sent = [json.loads(line).get("message") for line in captured.read_text().splitlines()]
    asked = [one["params"] for one in sent if one and one.get("method") == "resources/unsubscribe"]
    assert [params["uri"] for params in asked] == ["demo://greeting"]
    # The stateless era has no such method: there a subscription is ended by itself, or not at all.
    assert code == ERAS.index(revision), results


STRANGE_UPDATES = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    info = {"name": "s", "version": "1"}
    begin = {"protocolVersion": "2025-11-25", "capabilities": {"resources": {}}, "serverInfo": info}
    if "id" in asked:
        result = begin if asked["method"] == "initialize" else {}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    if asked["method"] == "resources/subscribe":
        for params in ([1], "x", None, {"uri": 5}, {"uri": "x://y"}):
            told = {"method": "notifications/resources/updated", "params": params}
            print(json.dumps({"jsonrpc": "2.0", **told}), flush=True)
"""


def test_an_update_without_sound_params_is_not_the_one_that_is_waited_for(tmp_path: Path) -> None:
    suite, server = tmp_path / "suite.yaml", tmp_path / "server.py"
    server.write_text(STRANGE_UPDATES)
    suite.write_text(
        f"server: {{command: python, args: ['{server}'], spec_version: 2025-11-25}}\n"
        "assert_resources: {subscribe: 'x://y', expect_notification: true}\n"
    )
    code, results = results_of(suite)
    assert code == 0, results


# -- a notification that someone else causes -------------------------------------------------


@contextlib.contextmanager
def demo_at(folder: Path) -> Iterator[str]:
    """The demo over HTTP, which several clients share."""
    port_file = folder / "port"
    command = (sys.executable, "-m", "mcptest", "serve", "demo", "--transport", "http")
    with listening((*command, "--port-file", str(port_file)), "http"):
        port = wait_until(lambda: port_file.is_file() and port_file.read_text(), "the port")
        yield f"http://127.0.0.1:{int(port)}/mcp"


def suite_at(url: str, revision: str, path: Path, block: str) -> Path:
    path.write_text(
        f"name: {path.stem}\nserver: {{url: '{url}', spec_version: {revision}}}\n{block}\n"
    )
    return path


@pytest.mark.parametrize("revision", ERAS)
def test_an_update_that_another_client_causes_is_waited_for(revision: str, tmp_path: Path) -> None:
    with demo_at(tmp_path) as url:
        waiting = suite_at(
            url,
            revision,
            tmp_path / "waiting.yaml",
            "assert_resources: {subscribe: 'demo://counter', expect_notification: true}",
        )
        bump = suite_at(
            url,
            revision,
            tmp_path / "bump.yaml",
            "assert: {tool: bump, expect: {contains: [counter]}}",
        )
        arrived = threading.Event()

        def keep_bumping() -> None:
            while not arrived.is_set():
                results_of(bump)

        bumper = threading.Thread(target=keep_bumping)
        bumper.start()
        try:
            code, results = results_of(waiting, "--timeout", "30s")
        finally:
            arrived.set()
            bumper.join(BOUND)

    assert {name: result["status"] for name, result in results.items()} == {"waiting": "PASS"}
    assert code == 0
