"""The manual of the commands that run and keep suites."""

from __future__ import annotations

from mcptest.cli.manual_page import MET, Page

PAGES = {
    "run": Page(
        about="""\
Run suites: start each server, call it as the tests in YAML say, and check its answers. What the
files declare besides their tests, compliance, invariants and properties, is run too; there is one
report and one exit code. Each test has a server and a copy of the fixture for itself unless you
ask for --isolation shared.

On a terminal you see what runs and what has failed while it goes on. In a pipe, with NO_COLOR, in
CI and with --quiet there are only plain lines.""",
        examples=(
            "mcptest run evals/",
            "mcptest run --suite evals/ --fixture evals/fixtures --junit results.xml",
            'mcptest run evals/ -k "read and not slow" --trials 5',
            "mcptest run evals/ --isolation shared --in-flight 32",
            'mcptest run evals/ --fixture data --server "node server.js {{fixture}}"',
            "mcptest run evals/ --last-failed --verbose -- python my_server.py",
        ),
        exits={
            0: "every test passed",
            1: "a test failed, or a regression was found",
            2: "could not start: bad options, or a suite that can't be read. Nothing was run",
            4: "no test was selected, or all of them were skipped",
            130: "interrupted; what had finished is reported",
        },
        see="docs/suite-format.md",
        others=("ci", "watch", "snapshot"),
    ),
    "ci": Page(
        about="""\
Run suites with the manners of continuous integration. It takes everything that `mcptest run`
takes. It fails when the pass rate, passed / (passed + failed), is below --threshold; a regression
against --baseline is shown, and fails only with --fail-on-regression; a report that can't be
written fails; and when all tests are skipped nothing was run, which is never green.

The Markdown report is appended to $GITHUB_STEP_SUMMARY, and under GitHub Actions each failure
becomes an annotation of the suite's line.""",
        examples=(
            "mcptest ci --suite evals/ --fixture evals/fixtures --junit results.xml",
            "mcptest ci evals/ --threshold 95 --baseline base.json --fail-on-regression",
            "mcptest ci evals/ --shard 1/4 --json-file shard-1.json",
        ),
        exits={
            0: "good enough",
            1: "below the threshold, a regression, or a report that could not be written",
            2: "could not start",
            4: "nothing was run",
            130: "interrupted",
        },
        see="docs/reports.md",
        others=("run", "report"),
    ),
    "matrix": Page(
        about="""\
Run one suite over several servers and show a table with a column for each: the same tool in two
languages, an old and a new version, two transports.

Each server is NAME:SERVER, where SERVER is whatever --server of `mcptest run` takes. {{fixture}} in
it is replaced. A comma within quotes does not end an entry, and a SERVER that is quoted as a whole
loses the quotes: 'node:node server.js,go:"./server -x 1,2"'. The option may also be repeated, once
for each server.""",
        examples=(
            "mcptest matrix evals/ --languages 'js:node server.js,python:python server.py'",
            (
                "mcptest matrix --suite evals/ --languages old:http://127.0.0.1:8001/mcp \\\n"
                "    --languages new:demo --markdown matrix.md"
            ),
        ),
        exits={
            0: "every cell passed",
            1: "a cell failed",
            2: "could not start",
            4: "no test was selected, or all of them were skipped",
            130: "interrupted",
        },
        see="docs/suite-format.md",
        others=("run", "fleet"),
    ),
    "watch": Page(
        about="""\
Run suites again whenever something changes, and show which outcomes flipped. Only what a change
touches is run: a suite, a fixture, or with --also the server's own files. A run in which nothing
flips changes one line at the bottom of the terminal.""",
        examples=(
            "mcptest watch --suite evals",
            "mcptest watch evals --also src --fixture evals/fixtures",
            'mcptest watch evals --server "node dist/index.js" --also dist',
        ),
        exits={
            0: "left with q, and all passed",
            1: "left with q, and not all passed",
            2: "could not start",
            4: "left with q, and there was no test",
            130: "interrupted",
        },
        more="keys: a runs all tests, r what failed, q quits",
        see="docs/watch.md",
        others=("run",),
    ),
    "snapshot": Page(
        about="""\
Golden answers: keep what each test is answered, and see what has changed since. The answer is held
against .snapshots/NAME.snap beside the suite; what the test expects of it is the business of
`mcptest run`. Timestamps, UUIDs, random ids, durations and the place of the fixture stand in golden
files as <timestamp>, <uuid>, <id>, <duration> and <fixture>. Golden files of tests that did not run
are never touched. A .snapshots.json of mcp-assert is read as it is.""",
        examples=(
            'mcptest snapshot --suite evals --server "npx -y my-server" --update',
            'mcptest snapshot --suite evals --server "npx -y my-server"',
            'mcptest snapshot evals --update --mask "build (?P<build>[0-9a-f]+)"',
            'mcptest snapshot evals -k "read and not slow" --junit snapshots.xml',
        ),
        exits={
            0: "all match, or were written",
            1: "something is changed, new or missing, or a server gave no answer",
            2: "could not start",
            4: "nothing was compared",
            130: "interrupted",
        },
        see="docs/snapshot.md",
        others=("run", "init"),
    ),
    "init": Page(
        about="""\
Write a first suite. Without --server it is a small example, on the server that ships with mcptest.
With it each tool that says that it only reads is called, and the tests expect what was seen, so
that they pass at once; the others are marked skip: true. The tests are then run twice to keep their
answers as golden files, for `mcptest snapshot`. Files that exist are never touched.""",
        examples=(
            "mcptest init",
            'mcptest init evals --server "npx -y my-server"',
            'mcptest init evals --server "npx -y my-server {{fixture}}" --fixture ./data',
        ),
        exits={
            0: "written",
            1: "something could not be written down",
            2: "bad options, or files in the way",
            3: MET[3],
            4: "the server offers nothing",
        },
        see="docs/exploring.md",
        others=("generate", "run"),
    ),
    "generate": Page(
        about="""\
Write a starter test for each tool, prompt and resource. Nothing is called: the inputs come from the
schemas. Tools that do not say that they only read are marked skip: true; --include-writes leaves
that out. Files that exist are kept unless you say --overwrite. For tests that know what to expect,
see `mcptest init`.""",
        examples=(
            'mcptest generate --server "npx -y my-server" --output evals',
            "mcptest generate --server demo --output evals --overwrite",
            "mcptest generate --fixture ./data --output evals -- node server.js {{fixture}}",
        ),
        exits={
            0: "written",
            1: "something could not be written down",
            2: MET[2],
            3: MET[3],
            4: "the server offers nothing",
        },
        see="docs/exploring.md",
        others=("init", "coverage"),
    ),
    "coverage": Page(
        about="""\
Which tools, prompts and resources of a live server a suite asserts on, and which it leaves out.
Only what a test asserts on counts: calls in setup steps don't, and neither do tests that are
skipped. The server is asked for its lists; nothing is called.""",
        examples=(
            'mcptest coverage --suite evals --server "npx -y my-server"',
            "mcptest coverage evals --server http://127.0.0.1:3001/mcp --threshold 80",
            "mcptest coverage --suite evals --of tools --json -- python my_server.py",
        ),
        exits={
            0: "counted, and enough",
            1: "below --threshold",
            2: "bad options or suite",
            3: MET[3],
            4: "the server offers nothing to cover",
        },
        see="docs/exploring.md",
        others=("generate", "audit"),
    ),
}
