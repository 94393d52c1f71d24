"""Who gets which server and which fixture, and what one test can do to another: nothing."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import free_port, listening
from tests.e2e.suite_runs import Site, call, server


def noted(site: Site) -> list[tuple[float, int, str]]:
    """Time, process and event of everything that servers wrote down."""
    lines = (site.folder / "log").read_text().splitlines()
    parts = (line.split(" ", 2) for line in lines)
    return [(float(when), int(pid), what) for when, pid, what in parts]


def logging_server(site: Site, *words: str, **members: Any) -> dict[str, Any]:
    return server(f"log={site.folder / 'log'}", *words, **members)


# -- servers -----------------------------------------------------------------------------------


def test_fresh_gives_each_test_a_server_of_its_own(site: Site) -> None:
    tests = [{"name": f"t{n}", "assert": call("count", {"equals": "1"})} for n in range(5)]
    suite = site.suite(tests, server=logging_server(site))
    assert site.run(suite).code == 0
    assert len({pid for _, pid, what in noted(site) if what.startswith("call")}) == 5
    # One more was asked what it speaks, which is found out once.
    assert len({pid for _, pid, what in noted(site) if what == "start"}) == 5 + 1


def test_a_revision_that_is_asked_for_costs_no_start(site: Site) -> None:
    tests = [{"name": f"t{n}", "assert": call("count", {"equals": "1"})} for n in range(3)]
    suite = site.suite(tests, server=logging_server(site))
    assert site.run(suite, "--spec-version", "2025-11-25").code == 0
    assert len({pid for _, pid, what in noted(site) if what == "start"}) == 3


def break_another_file(site: Site) -> None:
    (site.folder / "suites/more.yaml").write_text("tests: [")


def remove_the_fixture(site: Site) -> None:
    (site.folder / "data").rmdir()


@pytest.mark.parametrize("spoil", [break_another_file, remove_the_fixture])
def test_no_server_is_started_before_all_that_was_named_is_sound(
    site: Site, spoil: Callable[[Site], None]
) -> None:
    """The first server is started early, but not before the suites are read."""
    for name in ("suites", "data"):
        (site.folder / name).mkdir()
    tests = [{"name": "t", "assert": call("count", {"equals": "1"})}]
    site.suite(tests, "suites/a.yaml", server=logging_server(site, "{{fixture}}"))
    assert site.run("suites", "--fixture", "data").code == 0
    before = len(noted(site))
    spoil(site)
    assert site.run("suites", "--fixture", "data").code == 2
    assert len(noted(site)) == before
    assert list(site.temporary.iterdir()) == []


@pytest.mark.parametrize("way", ["suite", "option"])
def test_shared_gives_all_tests_one_server_in_their_order(site: Site, way: str) -> None:
    tests = [{"name": f"t{n}", "assert": call("count", {"equals": str(n + 1)})} for n in range(5)]
    top = {"isolation": "shared"} if way == "suite" else {}
    suite = site.suite(tests, server=logging_server(site), **top)
    options = [] if way == "suite" else ["--isolation", "shared"]
    assert site.run(suite, *options).code == 0
    assert len({pid for _, pid, what in noted(site) if what.startswith("call")}) == 1


def test_tests_that_differ_in_their_server_do_not_share_it(site: Site) -> None:
    tests = [
        {
            "name": f"{name} {n}",
            "server": server(f"name={name}"),
            "assert": call("whoami", {"equals": name}),
        }
        for n in range(2)
        for name in ("ann", "bob")
    ]
    done = site.run(site.suite(tests, isolation="shared"), "--json")
    assert done.code == 0
    assert list(site.results(done)) == ["ann 0", "bob 0", "ann 1", "bob 1"]


def test_a_crash_of_a_shared_server_fails_one_test_and_the_next_gets_a_new_one(site: Site) -> None:
    tests = [
        {"name": "before", "assert": call("count", {"equals": "1"})},
        {"name": "crash", "assert": call("exit", code=9)},
        {"name": "after", "assert": call("count", {"equals": "1"})},
        {"name": "last", "assert": call("count", {"equals": "2"})},
    ]
    done = site.run(site.suite(tests, server=server(), isolation="shared"), "--json")
    results = site.results(done)
    assert [each["status"] for each in results.values()] == ["PASS", "FAIL", "PASS", "PASS"]
    assert "exited with code 9" in results["crash"]["detail"]
    assert "I was told to" in results["crash"]["detail"]


def test_a_timeout_of_a_shared_server_fails_one_test_and_the_next_gets_a_new_one(
    site: Site,
) -> None:
    tests = [
        {"name": "hangs", "assert": call("hang"), "timeout": "1s"},
        {"name": "after", "assert": call("count", {"equals": "1"})},
    ]
    done = site.run(site.suite(tests, server=server(), isolation="shared"), "--json")
    assert {n: r["status"] for n, r in site.results(done).items()} == {
        "hangs": "FAIL",
        "after": "PASS",
    }


def test_a_shared_server_that_never_starts_is_tried_twice_not_for_each_test(site: Site) -> None:
    spec = {
        "command": sys.executable,
        "args": ["-c", f"open({str(site.folder / 'log')!r}, 'a').write('x')"],
    }
    tests = [{"name": f"t{n}", "assert": call()} for n in range(20)]
    done = site.run(site.suite(tests, server=spec, isolation="shared"), "--json")
    results = site.results(done)
    assert {each["status"] for each in results.values()} == {"FAIL"}
    assert len({each["detail"] for each in results.values()}) == 1
    assert len((site.folder / "log").read_text()) <= 4  # a probe of the era may start it once more


def test_calls_in_flight_keep_their_verdicts_and_their_order(site: Site) -> None:
    tests = [
        {
            "name": f"t{n:03d}",
            "assert": call("echo", {"equals": f"v{n}" if n % 7 else "wrong"}, text=f"v{n}"),
        }
        for n in range(200)
    ]
    suite = site.suite(tests, server=server(), isolation="shared")
    done = site.run(suite, "--json", "--in-flight", "32")
    results = site.results(done)
    assert list(results) == [test["name"] for test in tests]
    assert [each["status"] for each in results.values()] == [
        "PASS" if n % 7 else "FAIL" for n in range(200)
    ]


def test_a_crash_with_calls_in_flight_is_blamed_on_the_call_that_caused_it(site: Site) -> None:
    tests = [
        {"name": f"t{n:02d}", "assert": call("exit", code=5) if n == 13 else call(text=f"v{n}")}
        for n in range(30)
    ]
    suite = site.suite(tests, server=server(), isolation="shared")
    done = site.run(suite, "--json", "--in-flight", "8")
    failed = [name for name, each in site.results(done).items() if each["status"] == "FAIL"]
    assert failed == ["t13"]


def test_a_hang_with_calls_in_flight_is_blamed_on_the_call_that_hangs(site: Site) -> None:
    tests = [
        {
            "name": f"t{n:02d}",
            "assert": call("hang") if n == 3 else call(text=f"v{n}"),
            "timeout": "1s",
        }
        for n in range(10)
    ]
    suite = site.suite(tests, server=server(), isolation="shared")
    done = site.run(suite, "--json", "--in-flight", "8", "--json-file", "run.json")
    failed = [name for name, each in site.results(done).items() if each["status"] == "FAIL"]
    assert failed == ["t03"]
    notes = [each.get("note", "") for each in site.saved()["results"]]
    assert "repeated alone" in notes[4]


def test_the_order_of_the_report_is_that_of_the_suite_whoever_finishes_first(site: Site) -> None:
    tests = [
        {"name": f"t{n}", "assert": call("nap", seconds=0.4 if n == 0 else 0.0)} for n in range(6)
    ]
    done = site.run(site.suite(tests, server=server()), "--json", "--jobs", "4")
    assert list(site.results(done)) == [f"t{n}" for n in range(6)]


def test_jobs_bounds_how_many_tests_run_at_a_time(site: Site) -> None:
    tests = [{"name": f"t{n}", "assert": call("nap", seconds=0.2)} for n in range(4)]
    suite = site.suite(tests, server=logging_server(site))
    assert site.run(suite, "--jobs", "1").code == 0
    calls = [when for when, _, what in noted(site) if what.startswith("call")]
    assert all(later - earlier > 0.19 for earlier, later in pairwise(calls))


# -- one at a time -----------------------------------------------------------------------------

ONE_PROCESS = "2025-11-25"
"""A revision that is named needs no second process to find out about."""


def servers_that_overlap(site: Site) -> int:
    """How many servers were started before the one before them had ended."""
    running = overlaps = 0
    for _, _, what in noted(site):
        overlaps += what == "start" and running > 0
        running += {"start": 1, "end": -1}.get(what, 0)
    return overlaps


def single_files(site: Site, count: int = 4, **members: Any) -> str:
    spec = logging_server(site, spec_version=ONE_PROCESS)
    tests = [
        {"name": f"t{n}", "server": spec, "assert": call("nap", seconds=0.05)} for n in range(count)
    ]
    return site.files([{**test, **members} for test in tests])


@pytest.mark.parametrize("options", [(), ("--jobs", "1"), ("--trials", "2"), ("--in-flight", "4")])
def test_tests_that_are_a_file_each_never_have_two_servers_at_once(
    site: Site, options: tuple[str, ...]
) -> None:
    done = site.run(single_files(site), "--json-file", "run.json", *options)
    assert done.code == 0, done.said
    assert servers_that_overlap(site) == 0
    said = [note for note in site.saved().get("notes", []) if note.startswith("one test at a time")]
    assert len(said) == (0 if "--jobs" in options else 1)
    assert done.out.count("one test at a time") == len(said)


@pytest.mark.parametrize("jobs", ["4", "auto"])
def test_jobs_that_are_asked_for_run_single_files_side_by_side(site: Site, jobs: str) -> None:
    done = site.run(single_files(site), "--jobs", jobs)
    assert done.code == 0, done.said
    assert "one test at a time" not in done.said
    if jobs == "4":
        assert servers_that_overlap(site) > 0


def test_a_shared_file_outside_of_the_fixture_is_seen_by_one_test_at_a_time(site: Site) -> None:
    """As with a server that keeps what it learns beside its own program."""
    state = site.folder / "state"
    read = {"tool": "read", "args": {"path": str(state)}, "capture": {"before": "$"}}
    tests = [
        {
            "name": f"t{n}",
            "server": server(),
            "setup": [read, {"tool": "write", "args": {"path": str(state), "text": f"{n}"}}],
            "assert": call("read", {"equals": str(n)}, path=str(state)),
        }
        for n in range(8)
    ]
    state.write_text("")
    done = site.run(site.files(tests), "--json")
    assert [each["status"] for each in site.results(done).values()] == ["PASS"] * 8


def test_the_first_failure_ends_a_line_of_tests(site: Site) -> None:
    suite = single_files(site, **{"assert": call("echo", {"equals": "x"}, text="y")})
    done = site.run(suite, "-x", "--json")
    assert done.code == 1
    assert len(site.results(done)) == 1
    site.assert_nothing_is_left()


def test_a_server_that_cannot_start_costs_one_test_of_a_line(site: Site) -> None:
    tests = [
        {"name": "good", "server": server(), "assert": call()},
        {"name": "bad", "server": {"command": "no-such-program"}, "assert": call()},
        {"name": "fine", "server": server(), "assert": call()},
    ]
    done = site.run(site.files(tests), "--json")
    assert [each["status"] for each in site.results(done).values()] == ["PASS", "FAIL", "PASS"]


# -- a URL -------------------------------------------------------------------------------------


def test_tests_of_a_url_have_a_session_and_a_capture_each(site: Site) -> None:
    port = free_port()
    demo = [
        sys.executable,
        "-m",
        "mcptest.servers.demo",
        "--transport",
        "http",
        "--port",
        str(port),
    ]
    url = f"http://127.0.0.1:{port}/mcp"
    tests = [
        {
            "name": f"t{n}",
            "assert": {"tool": "echo", "args": {"text": "x"}, "expect": {"equals": "x"}},
        }
        for n in range(4)
    ]
    suite = site.suite(tests, server={"transport": "http", "url": url})
    with listening(demo, url):
        done = site.run(suite, "--json", "--save-capture", "captures")
        assert done.code == 0, done.said
        captures = sorted((site.folder / "captures").iterdir())
        assert [path.name for path in captures] == [f"000{n + 1}-t{n}.jsonl" for n in range(4)]
        assert site.run(suite, "--jobs", "4").code == 0
        assert site.run(suite, "--server", url).code == 0


def test_structured_content_is_checked_by_every_one_of_many_tests(site: Site) -> None:
    """The schemas are learned once and looked at by all: none may slip through meanwhile."""
    tests = [
        {"name": f"t{n}", "assert": call("structured", n=1 if n % 2 else "no number")}
        for n in range(12)
    ]
    done = site.run(site.suite(tests, server=server()), "--json", "--jobs", "4")
    statuses = [each["status"] for each in site.results(done).values()]
    assert statuses == ["PASS" if n % 2 else "FAIL" for n in range(12)]


# -- docker ------------------------------------------------------------------------------------


@pytest.fixture
def docker(site: Site) -> Path:
    """A `docker` on the PATH that notes its words and then runs the command behind the image."""
    folder = site.folder / "bin"
    folder.mkdir()
    stub = folder / "docker"
    stub.write_text(
        "#!/bin/sh\n"
        f'for word in "$@"; do printf "%s\\n" "$word"; done >> "{site.folder}/docker-words"\n'
        'while [ "$1" != an/image ]; do shift; done\nshift\nexec "$@"\n'
    )
    stub.chmod(0o755)
    site.env["PATH"] = f"{folder}:{os.environ['PATH']}"
    return site.folder / "docker-words"


def test_docker_wraps_the_command_and_mounts_the_fixture_itself(site: Site, docker: Path) -> None:
    data = site.folder / "data"
    data.mkdir()
    spec = server("{{fixture}}", env={"SPECIAL": "one two"})
    suite = site.suite([{"name": "t", "assert": call("argv", {"equals": str(data)})}], server=spec)
    done = site.run(suite, "--docker", "an/image", "--fixture", "data")
    assert done.code == 0, done.said
    words = docker.read_text().splitlines()
    assert words[:6] == ["run", "--rm", "-i", "-v", f"{data}:{data}", "-e"]
    assert words[6:8] == ["SPECIAL=one two", "an/image"]
    assert words[8] == spec["command"]


@pytest.mark.parametrize("options", [(), ("--jobs", "4"), ("--isolation", "shared")])
def test_tests_on_the_fixture_that_docker_mounts_run_one_after_the_other(
    site: Site, docker: Path, options: tuple[str, ...]
) -> None:
    data = site.folder / "data"
    data.mkdir()
    path = "{{fixture}}/f"
    tests = [
        {
            "name": f"t{n}",
            "server": logging_server(site, f"name={n}", spec_version=ONE_PROCESS),
            "setup": [
                {"tool": "write", "args": {"path": path, "text": f"{n}"}},
                {"tool": "nap", "args": {"seconds": 0.05}},
            ],
            "assert": call("read", {"equals": str(n)}, path=path),
        }
        for n in range(3)
    ]
    done = site.run(
        site.suite(tests),
        *("--docker", "an/image", "--fixture", "data", "--json-file", "run.json", *options),
    )
    assert done.code == 0, done.said
    assert servers_that_overlap(site) == 0
    assert any("use the fixture itself" in note for note in site.saved().get("notes", []))


def test_docker_of_the_suite_wins_and_gets_a_copy_of_the_fixture(site: Site, docker: Path) -> None:
    (site.folder / "data").mkdir()
    suite = site.suite([{"name": "t", "assert": call()}], server=server(docker="an/image"))
    assert site.run(suite, "--fixture", "data").code == 0
    assert str(site.temporary) in docker.read_text().splitlines()[4]
    assert site.run(suite, "--docker", "another").code == 0
    assert "another" not in docker.read_text()
    site.assert_nothing_is_left()


# -- fixtures ----------------------------------------------------------------------------------


def test_each_test_gets_a_fixture_copy_and_the_original_is_never_touched(site: Site) -> None:
    data = site.folder / "data"
    data.mkdir()
    (data / "f").write_text("original")
    path = "{{fixture}}/f"
    tests = [
        {
            "name": f"t{n}",
            "setup": [{"tool": "read", "args": {"path": path}, "capture": {"before": "$"}}],
            "assert": {
                "tool": "write",
                "args": {"path": path, "text": "changed after {{before}}"},
                "expect": {"file_contains": {path: "changed after original"}},
            },
        }
        for n in range(3)
    ]
    done = site.run(site.suite(tests, server=server()), "--fixture", "data")
    assert done.code == 0, done.said
    assert (data / "f").read_text() == "original"
    site.assert_nothing_is_left()


def test_shared_tests_share_one_fixture_copy(site: Site) -> None:
    data = site.folder / "data"
    data.mkdir()
    path = "{{fixture}}/f"
    tests = [
        {"name": "writes", "assert": call("write", path=path, text="by the first")},
        {"name": "reads", "assert": call("read", {"equals": "by the first"}, path=path)},
    ]
    suite = site.suite(tests, server=server(), isolation="shared")
    assert site.run(suite, "--fixture", "data").code == 0
    assert list(data.iterdir()) == []
    site.assert_nothing_is_left()


def test_a_strange_fixture_is_copied_safely_and_what_is_left_out_is_said(site: Site) -> None:
    data = site.folder / "data"
    (data / "inner").mkdir(parents=True)
    (data / "inner" / "f").write_text("inside")
    (data / "to-inside").symlink_to("inner/f")
    (data / "to-outside").symlink_to("/etc/hostname")
    (data / "loop").symlink_to("loop")
    os.mkfifo(data / "pipe")
    (data / "locked").mkdir(mode=0o555)
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(data, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        tests = [
            {
                "name": "inside",
                "assert": call("read", {"equals": "inside"}, path="{{fixture}}/to-inside"),
            },
            {
                "name": "outside",
                "assert": {
                    "tool": "echo",
                    "args": {},
                    "expect": {
                        "file_not_exists": [
                            "{{fixture}}/to-outside",
                            "{{fixture}}/pipe",
                            "{{fixture}}/socket",
                        ]
                    },
                },
            },
        ]
        suite = site.suite(tests, server=server())
        done = site.run(suite, "--fixture", "data", "--timeout", "10s")
    assert done.code == 0, done.said
    for name in ("to-outside", "pipe", "socket"):
        assert name in done.out
    assert "to-inside" not in done.out
    assert stat.S_IMODE((data / "locked").stat().st_mode) == 0o555
    site.assert_nothing_is_left()


def test_a_server_that_locks_or_nests_its_fixture_can_not_keep_it(site: Site) -> None:
    (site.folder / "data").mkdir()
    program = (
        "import os, sys, runpy\n"
        "os.chdir(sys.argv[1])\n"
        "for _ in range(1500):\n"
        "    os.mkdir('d'); os.chdir('d')\n"
        "os.chdir('/')\n"
        "os.mkdir(sys.argv[1] + '/locked'); os.mkdir(sys.argv[1] + '/locked/in')\n"
        "os.chmod(sys.argv[1] + '/locked/in', 0); os.chmod(sys.argv[1] + '/locked', 0)\n"
        "runpy.run_path(sys.argv[2], run_name='__main__')\n"
    )
    script = server()["args"][-1]
    spec = {"command": sys.executable, "args": ["-c", program, "{{fixture}}", script]}
    done = site.run(site.suite([{"name": "t", "assert": call()}], server=spec), "--fixture", "data")
    assert done.code == 0, done.said
    site.assert_nothing_is_left()


def test_a_file_that_can_not_be_read_fails_the_test_instead_of_its_isolation(site: Site) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    data = site.folder / "data"
    data.mkdir()
    (data / "secret").write_text("x")
    (data / "secret").chmod(0)
    suite = site.suite([{"name": "t", "assert": call()}], server=server())
    done = site.run(suite, "--fixture", "data", "--json")
    assert done.code == 1
    assert "can't copy the fixture" in site.results(done)["t"]["detail"]
    site.assert_nothing_is_left()


def test_a_file_expectation_on_a_pipe_does_not_hang(site: Site) -> None:
    data = site.folder / "data"
    data.mkdir()
    program = (
        "import os, sys, runpy\n"
        "os.mkfifo(sys.argv[1] + '/p')\n"
        "runpy.run_path(sys.argv[2], run_name='__main__')\n"
    )
    spec = {"command": sys.executable, "args": ["-c", program, "{{fixture}}", server()["args"][-1]]}
    expect = {"file_contains": {"{{fixture}}/p": "x"}}
    suite = site.suite([{"name": "t", "assert": call(expect=expect)}], server=spec)
    done = site.run(suite, "--fixture", "data", "--json", "--timeout", "5s")
    assert site.results(done)["t"]["status"] == "FAIL"


LINGERS = """
import json, sys, time
from pathlib import Path
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        version = message["params"]["protocolVersion"]
        found = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "l"}}
        answer = {"result": found}
    else:
        answer = {"error": {"code": -32601, "message": "Method not found"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
time.sleep(0.6)
Path(sys.argv[1]).write_text("left by itself")
"""


@pytest.mark.parametrize("quick", [False, True])
def test_a_quick_end_does_not_wait_for_a_server_to_leave_by_itself(site: Site, quick: bool) -> None:
    script, marker = site.folder / "lingers.py", site.folder / "marker"
    script.write_text(LINGERS)
    suite = site.suite(
        [{"name": "t", "assert": {"tool": "x", "expect": {"error_code": -32601}}}],
        server={"command": sys.executable, "args": [str(script), str(marker)]},
    )
    done = site.run(suite, *(["--quick-end"] if quick else []))
    assert done.code == 0
    assert marker.exists() != quick
    assert ("--quick-end" in done.out) == quick, "the report says that it was used"
