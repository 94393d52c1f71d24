"""`mcptest ci`, `mcptest matrix` and `--fix`."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET

import pytest

from tests.e2e.suite_runs import REPLIER, Site, call, server


def suite_with(site: Site, passing: int, failing: int, skipped: int = 0) -> str:
    tests = [{"name": f"pass {n}", "assert": call()} for n in range(passing)]
    tests += [{"name": f"fail {n}", "assert": call("none")} for n in range(failing)]
    tests += [{"name": f"skip {n}", "skip": True, "assert": call()} for n in range(skipped)]
    return site.suite(tests, server=server(), isolation="shared")


# -- ci ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "passing", "failing", "code"),
    [(100, 3, 0, 0), (100, 2, 1, 1), (66, 2, 1, 0), (67, 2, 1, 1), (0, 0, 1, 0), (50, 1, 1, 0)],
)
def test_the_pass_rate_decides(
    site: Site, threshold: int, passing: int, failing: int, code: int
) -> None:
    suite = suite_with(site, passing, failing, skipped=1)
    done = site.run(suite, "--fail-under", str(threshold), command="ci")
    assert done.code == code, done.said
    if code:
        assert f"is below --fail-under {threshold}%" in done.err


def test_when_everything_is_skipped_nothing_was_run(site: Site) -> None:
    done = site.run(suite_with(site, 0, 0, skipped=3), "--fail-under", "0", command="ci")
    assert done.code == 4
    assert "nothing was run: all 3 tests were skipped: skip: true (3)" in done.err


def test_a_run_and_a_matrix_in_which_everything_is_skipped_are_not_green(site: Site) -> None:
    suite = suite_with(site, 0, 0, skipped=2)
    done = site.run(suite)
    assert (done.code, done.err) == (
        4,
        "mcptest: nothing was run: all 2 tests were skipped: skip: true (2)\n",
    )
    done = site.run(suite, "--languages", f"a:{shlex.join(REPLIER)}", command="matrix")
    assert done.code == 4
    assert "all 2 tests were skipped" in done.err


def test_a_run_that_lacks_a_variable_names_it(site: Site) -> None:
    gated = {"name": "gated", "skip_unless_env": "NO_SUCH_KEY", "assert": call()}
    done = site.run(site.suite([gated, {**gated, "name": "too"}], server=server()))
    assert done.code == 4
    assert "all 2 tests were skipped: env var NO_SUCH_KEY not set (2)" in done.err
    done = site.run(site.suite([gated, {"name": "runs", "assert": call()}], server=server()))
    assert done.code == 0
    assert "0%" not in done.said


def test_a_regression_fails_only_when_asked_to(site: Site) -> None:
    suite = suite_with(site, 2, 0)
    site.run(suite, "--save-baseline", "base.json", command="ci")
    tests = [{"name": "pass 0", "assert": call()}, {"name": "pass 1", "assert": call("none")}]
    site.suite(tests, server=server())
    options = (suite, "--baseline", "base.json", "--fail-under", "50")
    done = site.run(*options, command="ci")
    assert done.code == 0
    assert "Regressions detected (1)" in done.out
    done = site.run(*options, "--fail-on-regression", command="ci")
    assert done.code == 1
    assert "1 regression(s) detected" in done.err


def test_what_ci_can_not_use_is_refused(site: Site) -> None:
    suite = suite_with(site, 1, 0)
    for options in (["--fail-on-regression"], ["--fail-under", "101"], ["--fail-under", "x"]):
        assert site.run(suite, *options, command="ci").code == 2


def test_an_unwritten_report_fails_ci(site: Site) -> None:
    suite = suite_with(site, 1, 0)
    assert site.run(suite, "--junit", "/dev/full", command="ci").code == 1
    assert site.run(suite, command="ci", GITHUB_STEP_SUMMARY="/nowhere/summary").code == 1


def test_the_step_summary_is_appended_to_and_failures_are_annotated(site: Site) -> None:
    summary = site.folder / "summary.md"
    summary.write_text("of an earlier step\n")
    suite = suite_with(site, 1, 1)
    env = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true"}
    done = site.run(suite, command="ci", **env)
    assert done.code == 1
    assert summary.read_text().startswith("of an earlier step\n### mcptest: 1 passed, 1 failed")
    assert "::error file=suite.yaml,line=" in done.out
    done = site.run(suite, "--json", command="ci", **env)
    json.loads(done.out)
    assert "::error file=suite.yaml,line=" in done.err
    done = site.run(suite, command="ci", GITHUB_STEP_SUMMARY=str(summary))
    assert "::error" not in done.said


def test_ci_takes_what_run_takes(site: Site) -> None:
    suite = suite_with(site, 2, 0)
    done = site.run(suite, "--trials", "2", "--json", "-k", "pass 1", command="ci")
    assert [each["trial"] for each in json.loads(done.out)] == [1, 2]


# -- matrix ------------------------------------------------------------------------------------


def column(name: str, *words: str) -> str:
    return f"{name}:{shlex.join([*REPLIER, *words])}"


def test_a_matrix_has_a_row_for_each_test_and_a_column_for_each_server(site: Site) -> None:
    tests = [
        {"name": "is ann", "assert": call("whoami", {"equals": "ann"})},
        {"name": "echoes", "assert": call()},
        {"name": "skipped", "skip": True, "assert": call()},
    ]
    suite = site.suite(tests)
    languages = f"{column('first', 'name=ann')},{column('second', 'name=bob')}"
    done = site.run("--suite", suite, "--languages", languages, command="matrix", LC_ALL="C.UTF-8")
    assert done.code == 1
    rows = [line.split() for line in done.out.splitlines()[:5]]
    assert rows == [
        ["first", "second"],
        ["is", "ann", "✓", "✗"],
        ["echoes", "✓", "✓"],
        ["skipped", "○", "○"],
        ["passed", "2/2", "1/2"],
    ]
    assert "is ann [second]" in done.out
    done = site.run(
        "--suite", suite, "--languages", languages, command="matrix", PYTHONIOENCODING="ascii"
    )
    assert ["is", "ann", "ok", "FAIL"] in [line.split() for line in done.out.splitlines()]
    assert done.out.isascii()


def test_a_matrix_without_a_failing_cell_is_green_and_reports_name_the_server(site: Site) -> None:
    suite = site.suite([{"name": "t", "assert": call()}], server=server("name=unused"))
    argv = ["--languages", column("a"), "--languages", column("b"), "--junit", "j.xml"]
    done = site.run(suite, *argv, "--json", command="matrix")
    assert done.code == 0
    assert [each["language"] for each in json.loads(done.out)] == ["a", "b"]
    cases = list(ET.fromstring((site.folder / "j.xml").read_bytes()).iter("testcase"))
    assert sorted({case.get("classname") for case in cases}) == ["a", "b"]


def test_quotes_keep_commas_and_spaces_together(site: Site) -> None:
    suite = site.suite([{"name": "t", "assert": call("whoami", {"equals": "x, y"})}])
    plain = shlex.join(REPLIER)
    languages = f"""a:{plain} "name=x, y",b:{plain} 'name=x, y'"""
    done = site.run(suite, "--languages", languages, command="matrix")
    assert done.code == 0, done.said
    suite = site.suite([{"name": "t", "assert": call("whoami", {"equals": "p,q"})}])
    done = site.run(suite, "--languages", f'a:"{plain} name=p,q"', command="matrix")
    assert done.code == 0, done.said


@pytest.mark.parametrize(
    "languages", [[], [""], ["go"], ["a:"], [":cmd"], ["a:x,a:y"], ["a:x,y"], ["a:'x"], ['a:"\'"']]
)
def test_languages_that_can_not_be_understood_are_refused(site: Site, languages: list[str]) -> None:
    suite = site.suite([{"name": "t", "assert": call()}])
    argv = [word for text in languages for word in ("--languages", text)]
    done = site.run(suite, *argv, command="matrix")
    assert (done.code, done.out) == (2, "")


# -- --fix -------------------------------------------------------------------------------------


def positions(site: Site, text: str) -> str:
    spec = server()
    (site.folder / "p.yaml").write_text(
        f"server: {{command: {spec['command']}, args: {json.dumps(spec['args'])}}}\ntests:\n{text}"
    )
    return "p.yaml"


BLOCK = """\
  - name: finds the symbol
    assert:
      tool: symbol
      args:
        line: {line}
        column: {column}
      expect: {{contains: [found it]}}
"""


def test_fix_finds_the_nearest_position_and_shows_the_change(site: Site) -> None:
    suite = positions(site, BLOCK.format(line=5, column=20))
    before = (site.folder / suite).read_bytes()
    done = site.run(suite, "--fix")
    assert done.code == 1, "a suggestion does not make it pass"
    assert "p.yaml:3: finds the symbol" in done.out
    assert "passes at line 7, column 12 (it has line 5, column 20)" in done.out
    lines = [line.strip() for line in done.out.splitlines()]
    assert "-        line: 5" in lines
    assert "+        line: 7" in lines
    assert "+        column: 12" in lines
    assert (site.folder / suite).read_bytes() == before


def test_fix_changes_numbers_that_share_a_line(site: Site) -> None:
    flow = (
        "  - name: finds\n"
        "    assert: {tool: symbol, args: {line: 7, column: 9}, expect: {contains: [found it]}}\n"
    )
    done = site.run(positions(site, flow), "--fix")
    assert "args: {line: 7, column: 12}" in done.out


def test_fix_says_so_when_nothing_nearby_passes(site: Site) -> None:
    done = site.run(positions(site, BLOCK.format(line=13, column=12)), "--fix")
    assert done.code == 1
    assert "no position nearby" in done.out


def test_fix_leaves_stdout_to_json(site: Site) -> None:
    done = site.run(positions(site, BLOCK.format(line=7, column=11)), "--fix", "--json")
    json.loads(done.out)
    assert "passes at line 7, column 12" in done.err
