"""`--warm-start`: a launcher is asked once; what it started is started directly from then on."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mcptest.probe.suites.server_start import Shortcut, _shortcut, with_compile_cache
from mcptest.transport.process import Launched, behind
from mcptest.transport.target import Target
from tests.e2e.suite_runs import REPLIER, Site, call

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

LAUNCHER = """\
#!/bin/sh
echo asked >> {log}
export {export}
shift
exec 3<&0  # a job in the background would get an empty input
{program} "$@" <&3 3<&- &
wait
"""
REPLYING = shlex.join(REPLIER)
REAL = ("node", "/lib/server.js", "/tmp/fixture-1", "--deep")
ASKED = ("npx", "-y", "package", "/tmp/fixture-1", "--deep")

SPEAKING = "echo it runs; read x"
PROGRAM = ("sh", "-c", SPEAKING)
LAUNCHING = f"{shlex.join(PROGRAM)} <&3 &\n"


def launched(**members: object) -> Launched:
    values = {"command": REAL, "cwd": "/work", "env": {"A": "b"}} | members
    return Launched(**values)  # type: ignore[arg-type]  # the caller gives what the members are


# -- what is learned -----------------------------------------------------------------------------


def test_the_words_that_the_suite_gave_to_the_server_are_given_to_the_next_one() -> None:
    shortcut = _shortcut(launched(), ASKED, "/tmp/fixture-1")
    assert shortcut == Shortcut(("node", "/lib/server.js"), 2, "/work", {"A": "b"})
    target = Target("stdio", "s", ("npx", "-y", "package", "/tmp/fixture-2", "--deep"))
    direct = shortcut.instead_of(target)
    assert direct.command == ("node", "/lib/server.js", "/tmp/fixture-2", "--deep")
    assert (direct.cwd, direct.env) == ("/work", {"A": "b"})


def test_a_server_without_words_of_its_own_is_started_by_its_command_alone() -> None:
    shortcut = _shortcut(launched(command=REAL[:2]), ("npx", "package"), "")
    assert shortcut is not None
    assert shortcut.instead_of(Target("stdio", "s", ("npx", "package"))).command == REAL[:2]


@pytest.mark.parametrize(
    "seen",
    [
        launched(command=("node", "--root=/tmp/fixture-1", "/tmp/fixture-1", "--deep")),
        launched(cwd="/tmp/fixture-1/inside"),
        launched(env={"ROOT": "/tmp/fixture-1"}),
    ],
    ids=["words", "folder", "environment"],
)
def test_nothing_is_learned_from_a_server_that_has_its_fixture_elsewhere(seen: Launched) -> None:
    assert _shortcut(seen, ASKED, "/tmp/fixture-1") is None


def test_the_compile_cache_that_a_suite_names_is_kept() -> None:
    named = Target("stdio", "s", ("node", "x"), env={"NODE_COMPILE_CACHE": "/mine"})
    assert with_compile_cache(named) == named
    given = with_compile_cache(Target("stdio", "s", ("node", "x")))
    assert Path(given.env["NODE_COMPILE_CACHE"]).name == "node-compile-cache"


@linux_only
@pytest.mark.parametrize(
    ("script", "voices", "found"),
    [(SPEAKING, 1, None), (LAUNCHING + "wait", 1, PROGRAM), (2 * LAUNCHING + "wait", 2, None)],
    ids=["none", "one", "two"],
)
def test_only_one_program_at_the_end_of_our_pipes_is_the_server(
    script: str, voices: int, found: tuple[str, ...] | None
) -> None:
    process = subprocess.Popen(
        ["sh", "-c", "exec 3<&0\n" + script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(voices):  # each program that is to be seen says so through our pipes
            assert process.stdout.readline() == b"it runs\n"
        seen = behind(process.pid)
        process.stdin.close()
    assert (seen and seen.command) == found


# -- through the command -------------------------------------------------------------------------


def launching_site(site: Site, export: str = "LAUNCHED_BY=npx") -> str:
    """A suite whose servers are started by an npx of ours, and look at how they were."""
    npx = site.folder / "npx"
    npx.write_text(LAUNCHER.format(log=site.folder / "asked", export=export, program=REPLYING))
    npx.chmod(0o755)
    (site.folder / "data").mkdir()
    tests = [
        {"name": f"{n} {tool}", "assert": call(tool, {"contains": [expected]}, **arguments)}
        for n in range(2)
        for tool, expected, arguments in (
            ("env", "npx", {"name": "LAUNCHED_BY"}),
            ("argv", "/data\nname=x", {}),
        )
    ]
    words = ["package", "{{fixture}}", "name=x"]
    return site.suite(tests, server={"command": str(npx), "args": words})


def times_asked(site: Site) -> int:
    return len((site.folder / "asked").read_text().splitlines())


@linux_only
def test_a_launcher_is_asked_once_and_the_server_sees_the_same_words_and_variables(
    site: Site,
) -> None:
    suite = launching_site(site)
    options = ["--fixture", "data", "--jobs", "1", "--save-capture", "seen"]
    done = site.run(suite, *options, "--warm-start")
    assert done.code == 0, done.out
    assert "started directly instead of through" in done.out
    captures = [path.read_text() for path in (site.folder / "seen").glob("*argv*")]
    fixtures = [re.findall(r"mcptest-fixture-(\w+)/data\W+nname=x", text) for text in captures]
    assert len(fixtures) == 2
    assert fixtures[0] != fixtures[1], "each server is given its own fixture"
    assert all(fixtures)
    assert "--warm-start" in done.out, "the report says that it was used"
    # The next server is prepared while the first one works, so it may still be launched.
    assert times_asked(site) in (1, 2)
    site.assert_nothing_is_left()


@linux_only
def test_without_the_option_every_server_goes_through_its_launcher(site: Site) -> None:
    done = site.run(launching_site(site), "--fixture", "data", "--jobs", "1")
    assert done.code == 0, done.out
    assert "--warm-start" not in done.out
    assert times_asked(site) == 4 + 1, "one more is asked what the server speaks"


@linux_only
def test_a_launcher_that_puts_the_fixture_elsewhere_is_asked_each_time(site: Site) -> None:
    suite = launching_site(site, export='LAUNCHED_BY=npx ROOT="$2"')
    done = site.run(suite, "--fixture", "data", "--jobs", "1", "--warm-start")
    assert done.code == 0, done.out
    assert "started directly" not in done.out
    assert times_asked(site) == 4 + 1, "one more is asked what the server speaks"
