"""Which tests run, how often, and what a later run knows of an earlier one."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.e2e.suite_runs import Site, call, server

NAMES = ["read a file", "read a slow file", "write a file", "list and sort", "[odd] *name?"]


def suite_of(site: Site) -> str:
    tests = [
        {"name": name, "tags": ["slow"] if "slow" in name else ["fast"], "assert": call()}
        for name in NAMES
    ]
    return site.suite(tests, server=server())


def listed(site: Site, *argv: str) -> list[str]:
    done = site.run(suite_of(site), "--list", *argv)
    return [line.partition(": ")[2] for line in done.out.splitlines()]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("read", NAMES[:2]),
        ("read and not slow", NAMES[:1]),
        ("write or slow", NAMES[1:3]),
        ("READ*file", NAMES[:2]),
        ("=list and sort", NAMES[3:4]),
        ("=[odd] *name?", NAMES[4:]),
        ("=read", []),
    ],
)
def test_a_pattern_chooses_by_name(site: Site, pattern: str, wanted: list[str]) -> None:
    assert listed(site, "-k", pattern) == wanted


def test_a_tag_chooses(site: Site) -> None:
    assert listed(site, "--tag", "slow") == ["read a slow file"]
    assert listed(site, "--tag", "slow", "--tag", "fast") == NAMES


def test_shards_are_a_partition_of_about_equal_parts(site: Site) -> None:
    for count in (1, 2, 3, 5):
        parts = [listed(site, "--shard", f"{n}/{count}") for n in range(1, count + 1)]
        assert sorted(name for part in parts for name in part) == sorted(NAMES)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_a_shard_that_is_none_is_refused(site: Site, shard: str) -> None:
    assert site.run(suite_of(site), "--shard", shard).code == 2


def test_nothing_selected_is_not_green(site: Site) -> None:
    for argv in (("-k", "nothing like it"), ("--tag", "none"), ("--list", "-k", "nothing")):
        done = site.run(suite_of(site), *argv)
        assert done.code == 4
        assert "no test was selected" in done.err


def test_a_list_as_json_is_json_alone(site: Site) -> None:
    done = site.run(suite_of(site), "--list", "--json")
    assert [each["name"] for each in json.loads(done.out)] == NAMES


def test_last_failed_runs_what_failed_until_it_passes(site: Site) -> None:
    state = site.folder / "state"
    tests = [
        {"name": "good", "assert": call()},
        {"name": "flips", "assert": call("read", path=str(state))},
        {"name": "bad", "assert": call("no such tool")},
    ]
    suite = site.suite(tests, server=server())
    assert site.run(suite).code == 1
    done = site.run(suite, "--last-failed", "--json")
    assert list(site.results(done)) == ["flips", "bad"]
    state.write_text("there now")
    assert site.run(suite, "-k", "flips").code == 0
    # A run of one test does not make the other forgotten.
    done = site.run(suite, "--last-failed", "--json")
    assert list(site.results(done)) == ["bad"]


def test_last_failed_without_an_earlier_run_is_refused(site: Site) -> None:
    done = site.run(suite_of(site), "--last-failed")
    assert (done.code, done.out) == (2, "")
    assert "no earlier run" in done.err


def test_x_stops_after_the_first_failure_and_says_so(site: Site) -> None:
    tests = [{"name": f"t{n}", "assert": call("none" if n == 2 else "echo")} for n in range(40)]
    for options in (["--jobs", "1"], ["--isolation", "shared"]):
        done = site.run(
            site.suite(tests, server=server()), "-x", *options, "--json-file", "run.json"
        )
        assert done.code == 1
        assert [each["name"] for each in site.saved()["results"]] == ["t0", "t1", "t2"]
        assert "stopped after the first failure: 37 tests did not run" in done.out


def test_the_command_that_repeats_a_failure_runs_that_test_alone(site: Site) -> None:
    names = ["bad", "bad and worse", "not bad", "*", "=is", "it's bad"]
    tests = [{"name": name, "assert": call("none")} for name in names]
    suite = site.suite(tests, server=server())
    site.run(suite, "--json-file", "run.json")
    for result in site.saved()["results"]:
        words = shlex.split(result["proof"]["repeat"])
        assert words[:2] == ["mcptest", "run"]
        done = site.run(*words[2:], "--json")
        assert list(site.results(done)) == [result["name"]]


def test_trials_name_a_flaky_test(site: Site) -> None:
    counter = str(site.folder / "counter")
    tests = [
        {"name": "steady", "assert": call()},
        {"name": "moody", "assert": call("sometimes", {"equals": "good"}, file=counter)},
    ]
    suite = site.suite(tests, server=server())
    done = site.run(suite, "--trials", "4", "--jobs", "1")
    assert done.code == 1
    assert "moody (2/4) flaky" in done.out
    assert "steady (4/4)" in done.out
    assert "pass@k: 2/2 capable, pass^k: 1/2 reliable" in done.out
    done = site.run(suite, "--trials", "2", "--json", "--jobs", "1")
    assert [(each["name"], each["trial"]) for each in json.loads(done.out)] == [
        ("steady", 1),
        ("steady", 2),
        ("moody", 1),
        ("moody", 2),
    ]
    # One failing trial is a failure, whatever the last one was.
    assert list(site.results(site.run(suite, "--last-failed", "--json"))) == ["moody"]


@pytest.mark.parametrize(
    "argv",
    [
        ("--trials", "0"),
        ("--in-flight", "0"),
        ("--jobs", "0"),
        ("--jobs", "x"),
        ("--timeout", "soon"),
        ("-k", "and and ("),
        ("--fixture", "nowhere"),
        ("--server", "unclosed 'quote"),
        ("--baseline", "nowhere.json"),
        ("--no-such-option",),
        ("--save-capture", "suite.yaml/x"),
    ],
)
def test_what_can_not_be_done_is_refused_before_anything_starts(
    site: Site, argv: tuple[str, ...]
) -> None:
    tests = [{"name": "t", "assert": call()}]
    suite = site.suite(tests, server=server(env={"ROGUE_PIDS": str(site.pids)}))
    done = site.run(suite, *argv)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("mcptest: ")
    assert site.started() == []


def test_the_command_after_dashes_is_the_server(site: Site) -> None:
    spec = server()
    suite = site.suite([{"name": "t", "assert": call("whoami", {"equals": "a b"})}])
    done = site.run(suite, "--", spec["command"], *spec["args"], "name=a b")
    assert done.code == 0, done.said
    assert site.run(suite, "--server", "demo", "--", "x").code == 2


def test_a_url_among_the_words_of_a_command_does_not_make_it_a_url(site: Site) -> None:
    spec = server()
    words = shlex.join([spec["command"], *spec["args"], "name=http://example.test/x"])
    suite = site.suite([{"name": "t", "assert": call("whoami", {"contains": ["example.test"]})}])
    done = site.run(suite, "--server", words)
    assert done.code == 0, done.said


def test_a_variable_that_env_sets_is_set_for_skip_unless_env(site: Site) -> None:
    tests = [{"name": "one", "skip_unless_env": "MCPTEST_ONLY_HERE", "assert": call()}]
    name = site.suite(tests, server=server())
    assert "1 skipped" in site.run(name).out
    assert "1 passed" in site.run(name, "--env", "MCPTEST_ONLY_HERE=yes").out
    assert "1 skipped" in site.run(name, "--env", "MCPTEST_ONLY_HERE=").out
