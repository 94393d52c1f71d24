"""Properties in pytest: the fixtures that try them, and what strategies draw against a server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.strategies import conversations, invalid_messages
from mcptest.testing import Player, Server, assert_holds, check_property
from tests.plugin.folders import Folder, folder_for

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return folder_for(pytester, monkeypatch)


def faulty(bug: str, **more: str) -> Server:
    command = (sys.executable, "-m", "tests.properties.faulty", bug)
    return Server(command, cwd=str(ROOT), revision="2025-11-25", **more)  # type: ignore[arg-type]  # texts


# -- without pytest --------------------------------------------------------------------------------


def test_a_property_that_holds_gives_its_report() -> None:
    report = check_property("demo", "same-lists")
    assert [one.name for one in report.properties] == ["same-lists"]
    assert report.examples == 1


def test_a_property_that_is_broken_fails_with_the_smallest_example() -> None:
    with pytest.raises(AssertionError) as caught:
        check_property(faulty("invalid-request-code"), "messages-invalid", examples=60, strict=True)
    told = str(caught.value)
    assert "messages-invalid:" in told
    assert "BROKEN JSONRPC-003" in told
    assert "1. send " in told
    assert '"code":-32602' in told


def test_a_server_about_which_nothing_can_be_said_is_no_success() -> None:
    oldest = Server("demo", revision="2024-11-05")
    with pytest.raises(AssertionError, match="nothing was tried: idempotent: no tool"):
        check_property(oldest, "idempotent")
    assert not check_property(oldest, "idempotent", may_be_skipped=True).examples


def test_a_property_that_does_not_exist_is_said_before_a_server_starts() -> None:
    with pytest.raises(UsageError, match="unknown property conversation"):
        check_property("/no/such/server", "conversation")


EXAMPLE = {
    "format": "mcptest.example/1",
    "property": "messages-invalid",
    "rule": "JSONRPC-003",
    "revision": "2025-11-25",
    "transport": "stdio",
    "steps": [
        {
            "step": "send",
            "text": '{"id":1,"method":"ping","params":{}}',
            "mutation": "jsonrpc-missing",
            "rules": ["JSONRPC-003", "PROTO-008"],
        }
    ],
}


def test_an_example_holds_when_the_server_is_mended() -> None:
    assert_holds(EXAMPLE, "demo")
    with pytest.raises(AssertionError, match=r"^JSONRPC-003: "):
        assert_holds(EXAMPLE, faulty("invalid-request-code"))


# -- what is drawn, played -------------------------------------------------------------------------


def test_what_is_played_is_judged_and_the_next_example_has_a_fresh_server() -> None:
    from hypothesis import given, settings

    broken: list[str] = []
    with Player(faulty("refusal-without-version")) as player:
        assert player.revision.value == "2025-11-25"
        assert {one["name"] for one in player.offer.tools} >= {"add", "echo"}
        assert "bump" not in {one["name"] for one in player.offer.tools}, "it is no reading tool"

        @settings(max_examples=3, deadline=None, database=None)
        @given(invalid_messages(player.revision, only=["jsonrpc-missing"]))
        def rude(message: object) -> None:
            with pytest.raises(AssertionError) as caught:
                player.play(message)  # type: ignore[arg-type]  # a message was drawn
            broken.append(str(caught.value))

        @settings(max_examples=3, deadline=None, database=None)
        @given(conversations(player.revision, player.offer, player.transport, most=3))
        def polite(steps: object) -> None:
            player.play(steps)  # type: ignore[arg-type]  # a conversation was drawn

        rude()
        polite()
    assert broken[0].startswith("MSG-001 ")
    assert " <== here" in broken[0]


# -- fixtures --------------------------------------------------------------------------------------

TESTS = """
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptest.strategies import requests

@pytest.mark.parametrize("name", ["same-lists", "idempotent", "messages-invalid"])
def test_property(mcp_property, name):
    mcp_property(name, examples=5, strict=True)

@settings(max_examples=5, deadline=None, database=None)
@given(data=st.data())
def test_requests(mcp_player, data):
    mcp_player.play(data.draw(requests(mcp_player.revision, mcp_player.offer, methods=["ping"])))
"""
CONFTEST = """
import pytest
from mcptest.testing import Server

@pytest.fixture(scope="session")
def mcp_server():
    command = ({python!r}, "-m", "tests.properties.faulty", "invalid-request-code")
    return Server(command, cwd={root!r}, revision="2024-11-05")
"""


def test_fixtures_try_properties_side_by_side_and_keep_what_was_found(folder: Folder) -> None:
    folder.configure(mcptest_client_scope="module", cache_dir="kept")
    folder.pytester.makepyfile(TESTS)
    folder.pytester.makeconftest(CONFTEST.format(python=sys.executable, root=str(ROOT)))
    words = ("-p", "xdist.plugin", "-n", "2", "-p", "mcptest.pytest_plugin", "-W", "error")
    done = folder.pytester.runpytest_inprocess(*words)
    done.assert_outcomes(passed=2, skipped=1, failed=1)
    done.stdout.fnmatch_lines(["*BROKEN JSONRPC-003*"])
    assert "property_run.py" not in done.stdout.str(), "our own code is nothing to look at"
    kept = [path.name for path in (folder.path / "kept").rglob("messages-invalid-*.json")]
    assert len(kept) == 1
    again = folder.pytester.runpytest_inprocess(
        "-p", "mcptest.pytest_plugin", "-k", "messages-invalid"
    )
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*found before, still not fixed*"])


def test_a_server_that_does_not_start_fails_without_our_traceback(folder: Folder) -> None:
    folder.configure(mcptest_server="/no/such/server")
    folder.pytester.makepyfile("def test_it(mcp_property): mcp_property('same-lists')")
    done = folder.run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*mcp_server: *"])
    assert "engine.py" not in done.stdout.str()
