"""The fixtures: a server by its configuration, a client for it, the same one for coroutines."""

from __future__ import annotations

import shlex

import pytest

from tests.plugin.folders import Folder, folder_for, quick_server

pytest_plugins = ["pytester"]


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return folder_for(pytester, monkeypatch)


def command(folder: Folder, *words: str) -> str:
    server = quick_server(f"log={folder.log}", *words)
    return shlex.join([server["command"], *server["args"]])


def test_a_client_is_there_for_the_test_and_gone_behind_it(folder: Folder) -> None:
    folder.configure(mcptest_server=command(folder))
    folder.pytester.makepyfile(
        """
        from mcptest.testing import assert_conforms, text_of

        def test_echo(mcp_client):
            reply = mcp_client.call_tool("echo", {"text": "hi"})
            assert text_of(reply) == "hi"
            assert mcp_client.declares("tools")
            assert_conforms(mcp_client)

        def test_tools(mcp_client):
            assert [tool["name"] for tool in mcp_client.list_all("tools/list")]
        """
    )
    folder.run().assert_outcomes(passed=2)
    assert (folder.noted("start"), folder.noted("end")) == (3, 3)  # one was asked what it speaks


@pytest.mark.parametrize(
    "given",
    ["{words!r}", "' '.join({words!r})", "Server(tuple({words!r}), revision='2025-06-18')"],
    ids=["words", "command line", "Server"],
)
def test_a_fixture_of_ones_own_names_the_server(folder: Folder, given: str) -> None:
    words = shlex.split(command(folder, "name=mine"))
    folder.pytester.makepyfile(
        f"""
        import pytest
        from mcptest.testing import Server, text_of

        @pytest.fixture
        def mcp_server():
            return {given.format(words=words)}

        def test_name(mcp_client):
            assert text_of(mcp_client.call_tool("whoami")) == "mine"
        """
    )
    folder.run().assert_outcomes(passed=1)


def test_the_server_makes_as_many_clients_as_one_likes(folder: Folder) -> None:
    folder.configure(mcptest_server=command(folder))
    folder.pytester.makepyfile(
        """
        def test_two(mcp_server):
            old = mcp_server.but(revision="2025-06-18")
            with mcp_server.connect() as one, old.connect() as other:
                assert str(one.revision) == "2025-11-25"
                assert str(other.revision) == "2025-06-18"
        """
    )
    folder.run().assert_outcomes(passed=1)
    assert (folder.noted("start"), folder.noted("end")) == (3, 3)  # one was asked what it speaks


def test_a_client_may_live_as_long_as_a_module(folder: Folder) -> None:
    folder.configure(mcptest_server=command(folder), mcptest_client_scope="module")
    folder.pytester.makepyfile(
        """
        def test_one(mcp_client): mcp_client.call_tool("echo")
        def test_two(mcp_client): mcp_client.call_tool("echo")
        """
    )
    folder.run().assert_outcomes(passed=2)
    assert (folder.noted("start"), folder.noted("end")) == (2, 2)  # one was asked what it speaks


def test_a_client_for_coroutines_is_awaited_in_any_loop(folder: Folder) -> None:
    folder.configure(mcptest_server=command(folder))
    folder.pytester.makepyfile(
        """
        import asyncio
        from mcptest.testing import assert_conforms, text_of

        def test_two_loops(async_mcp_client):
            async def talk(word):
                replies = await asyncio.gather(
                    async_mcp_client.call_tool("echo", {"text": word}),
                    async_mcp_client.request("tools/list"),
                )
                return text_of(replies[0]), len(await async_mcp_client.list_all("tools/list"))
            assert asyncio.run(talk("one")) == ("one", 2)
            assert asyncio.run(talk("two")) == ("two", 2)
            assert_conforms(async_mcp_client)

        def test_the_loop_goes_on_meanwhile(async_mcp_client):
            async def both():
                call = asyncio.ensure_future(
                    async_mcp_client.call_tool("nap", {"seconds": 0.05})
                )
                turns = 0
                while not call.done():
                    turns += 1
                    await asyncio.sleep(0)
                return turns
            assert asyncio.run(both()) > 1
        """
    )
    folder.run().assert_outcomes(passed=2)
    assert (folder.noted("start"), folder.noted("end")) == (3, 3)  # one was asked what it speaks


def test_a_failing_test_shows_what_went_over_the_wire(folder: Folder) -> None:
    folder.pytester.makepyfile(
        f"""
        import pytest
        from mcptest.testing import Server

        @pytest.fixture
        def mcp_server():
            words = {shlex.split(command(folder))!r}
            return Server(tuple(words), env={{"API_TOKEN": "hunter2-hunter2"}})

        def test_secret(mcp_client):
            mcp_client.call_tool("env", {{"name": "API_TOKEN"}})
            mcp_client.call_tool("exit", {{"code": 7}})
        """
    )
    result = folder.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- MCP session -*",
            'request:  *"exit"*',
            "response: *[*][*][*]*",
            "stderr:   I was told to",
            "exit:     exit code 7",
            "capture:  */session.jsonl",
        ]
    )
    assert "hunter2" not in result.stdout.str().partition("- MCP session -")[2]


def test_without_a_server_the_error_says_what_to_do(folder: Folder) -> None:
    folder.pytester.makepyfile("def test_nothing(mcp_client): pass")
    result = folder.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["mcp_server: no server is named. Set mcptest_server *"])


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("no-such-program-here", "*no-such-program-here*"),
        ("demo2://x", "*demo2*"),
        ("http://127.0.0.1:1/mcp", "*127.0.0.1:1*"),
    ],
)
def test_a_server_that_will_not_start_is_told_without_our_own_code(
    folder: Folder, server: str, said: str
) -> None:
    folder.pytester.makepyfile("def test_nothing(mcp_client): pass")
    result = folder.run("--mcptest-server", server)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"mcp_server: {said}"])
    assert "clients.py" not in result.stdout.str()


def test_an_unknown_scope_is_refused(folder: Folder) -> None:
    folder.configure(mcptest_client_scope="forever")
    folder.pytester.makepyfile("def test_nothing(): pass")
    result = folder.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*mcptest_client_scope: expected *"])


def test_an_error_of_ours_shows_the_line_of_the_test_and_no_frame_of_ours(folder: Folder) -> None:
    folder.pytester.makepyfile(
        "from mcptest.testing import assert_conforms\n"
        "def test_it():\n"
        "    assert_conforms('no-such-capture.jsonl')\n"
    )
    shown = folder.run().stdout.str()
    assert "assert_conforms('no-such-capture.jsonl')" in shown
    assert "can't read the capture no-such-capture.jsonl" in shown
    assert "capture_file.py" not in shown
    whole = folder.run("--full-trace").stdout.str()
    assert "capture_file.py" in whole
