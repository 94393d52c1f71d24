"""The manual of the commands that explore, record and serve."""

from __future__ import annotations

from mcptest.cli.manual_page import MET, Page

PAGES = {
    "audit": Page(
        about="""\
Zero configuration: discover a server, call every tool, prompt and resource that is safe to call,
classify what comes back, and score it. Use it as the first look at a server that nobody has tested.

Tools that do not say that they only read are skipped and listed; --include-writes calls them too,
and so does --docker IMAGE, which puts the server into a container first. --output writes a starter
test for everything that was found.""",
        examples=(
            'mcptest audit --server "npx -y my-server"',
            "mcptest audit --fixture ./data --include-writes -- node server.js {{fixture}}",
            "mcptest audit --server http://127.0.0.1:3001/mcp --output evals --min-score 90",
        ),
        exits={
            0: "in health",
            1: "something crashed, hung, lied or scored too low",
            2: MET[2],
            3: MET[3],
            4: "there was nothing to test",
            130: MET[130],
        },
        see="docs/exploring.md",
        others=("lint", "fuzz", "compliance run"),
    ),
    "lint": Page(
        about="""\
Can a model use these tools? Reads what a server says about them: names, descriptions, schemas,
hints, and what they cost in tokens. Nothing is called unless --call-tools or
--detect-nondeterminism asks for it, and then only tools that say that they only read.

An error will make a model go wrong, a warning may; a note is what every second published tool
has: it is counted, listed with --verbose, and never fails. --profile mcp-assert has the codes and
severities of that tool.

A code may be given by its beginning: --select E is every error code of mcp-assert, --ignore L all
codes that only mcptest has. `mcptest explain CODE` tells what a code means.""",
        examples=(
            'mcptest lint --server "npx -y my-server"',
            "mcptest lint --server demo --fix",
            "mcptest lint --tools tools.json --strict --ignore W103,W109",
            "mcptest lint --list",
        ),
        exits={
            0: "no errors; with --strict no warnings either",
            1: "errors, or more errors and warnings than --threshold allows",
            2: "bad options, or a file that can't be read",
            3: MET[3],
            4: "there was nothing to lint",
        },
        see="docs/lint.md",
        others=("explain", "audit"),
    ),
    "fuzz": Page(
        about="""\
Send each tool inputs that are almost valid: wrong types, missing and unknown members, extreme
values, strings made to break things. What crashes, hangs, leaks or answers nonsense is made small
and told with the command that repeats it; --output saves it as a test.

The same seed gives the same inputs. Tools that do not say that they only read are skipped and
listed; --include-writes fuzzes them too, and so does --docker IMAGE.

The Markdown report is appended to $GITHUB_STEP_SUMMARY where that is set, as `mcptest ci` does.""",
        examples=(
            'mcptest fuzz --server "npx -y my-server"',
            'mcptest fuzz --server "npx -y my-server" --runs 500 --seed 42 --tool search',
            "mcptest fuzz --fixture ./data --output fuzz -- node server.js {{fixture}}",
        ),
        exits={
            0: "every input was taken well",
            1: "a crash, a hang, a leak, or no answer",
            2: MET[2],
            3: MET[3],
            4: "there was nothing to fuzz",
            130: MET[130],
        },
        see="docs/fuzz.md",
        others=("property", "audit"),
    ),
    "property": Page(
        about="""\
Property tests of the protocol itself: valid and invalid messages and whole conversations are
generated, played on the server and judged by the rules. What breaks a property is made small, kept
in .mcptest/examples and tried first next time; --output DIR writes it as a test as well.

The same seed gives the same examples. Tools that do not say that they only read are not called;
--allow-tool NAME allows one, '*' all of them. It needs the extra: pip install
"mcptest[property]".""",
        examples=(
            'mcptest property --server "npx -y my-server"',
            "mcptest property --server demo --property conversations --examples 1000",
            "mcptest property --server demo --replay conversations-1f0c5a2b9d",
            "mcptest property --list",
        ),
        exits={
            0: "every property holds",
            1: "a counterexample to a MUST; with --strict also to a SHOULD",
            2: MET[2],
            3: MET[3],
            4: "there was nothing to try",
            130: MET[130],
        },
        see="docs/property.md",
        others=("fuzz", "compliance run"),
    ),
    "record": Page(
        about="""\
Record a session as a capture, which can be judged, replayed and looked at later without the server.
Without --proxy the server is asked for everything that is safe: its lists with all pages, a ping,
one tool that says it only reads, a few resources, a prompt.

With --proxy nothing is asked: the bytes of whoever started us go through unchanged, both ways. Give
it to a client as the command of its server. For a server with a URL the proxy listens on this
machine until Ctrl-C, and says where.""",
        examples=(
            "mcptest record --server demo --out session.jsonl",
            'mcptest record --out s.jsonl --call \'add={"a":1,"b":2}\' -- python my_server.py',
            "mcptest record --proxy --out seen.jsonl -- npx my-server /data",
            (
                "mcptest record --proxy --out seen.jsonl --server http://127.0.0.1:3001/mcp \\\n"
                "    --listen 127.0.0.1:8080"
            ),
        ),
        exits={
            0: "recorded; with --proxy that of the server",
            1: "the capture is not whole, or could not be written",
            2: MET[2],
            3: MET[3],
            130: MET[130],
        },
        see="docs/capture-format.md",
        others=("compliance invariants", "report", "intercept"),
    ),
    "intercept": Page(
        about="""\
Sit between an agent and a server, then check what the agent did. Give it to the agent as the
command of the server: everything goes through unchanged, both ways, with nothing of ours on stdout.
When the session is over the tool calls are held against the trajectory, and the session against the
rules that hold for every session.""",
        examples=(
            'mcptest intercept --trajectory calls.yaml --server "npx my-server /data"',
            "mcptest intercept --trajectory calls.yaml --junit c.xml -- python server.py",
            (
                "mcptest intercept --trajectory calls.yaml --server http://127.0.0.1:3001/mcp \\\n"
                "    --listen 127.0.0.1:8080"
            ),
        ),
        exits={
            0: "all held, and the server ended well or the proxy for a URL was stopped",
            1: "a check failed; other codes are the server's own, 128 + n if signal n ended it",
            2: MET[2],
            3: "the server would not start",
            4: "nothing was said",
        },
        see="docs/intercept.md",
        others=("record", "run"),
    ),
    "serve": Page(
        about="""\
Be a server: for trying out clients, and mcptest itself. The demo conforms to every revision and has
some of everything. A mock is YAML with the answers you want; `mcptest schema mock` prints its JSON
Schema. A recording answers over stdio as the recorded server did, and refuses in words what that
was never asked.

With --scenario it is the scripted server of a scenario for clients, as `mcptest conformance client`
starts it, and --capture is the file that keeps what went over the wire.""",
        examples=(
            "mcptest serve demo",
            "mcptest serve demo --transport http --port 3001",
            "mcptest serve --mock weather.yaml",
            "mcptest serve --capture session.jsonl",
            "mcptest serve --scenario tools_call --transport http --port 3002",
        ),
        exits={
            0: "the client has gone",
            2: "bad options, an unsound mock, no capture, or the port is taken",
            130: MET[130],
        },
        see="docs/serve.md",
        others=("record", "conformance client", "mcp"),
    ),
    "fleet": Page(
        about="""\
Judge every server of a client configuration by the specification, audit each of them, and find what
goes wrong between them: in parallel, each in a process of its own, into one report.

CONFIG is the file of a client: .mcp.json, mcp.json, claude_desktop_config.json. Entries that it
says are disabled are skipped and told, unless --server names them. Only tools that say they just
read are called.

With --scheduler the servers are judged by the workers of a Dask cluster (pip install
"mcptest[fleet]"). A server with a command runs on the worker's machine, and what the configuration
gives it, secrets too, travels there.""",
        examples=(
            "mcptest fleet",
            "mcptest fleet claude_desktop_config.json --json-file fleet.json",
            "mcptest fleet mcp.json --server filesystem --server memory --min-grade B",
            "mcptest fleet mcp.json --scheduler tcp://10.0.0.5:8786",
        ),
        exits={
            0: "all passed",
            1: "a server failed or could not be judged, or two of them share a name",
            2: "the configuration or an option can't be used. Nothing was run",
            3: "no server, or no scheduler, could be reached",
            4: "there is no server to judge",
            130: MET[130],
        },
        see="docs/fleet.md",
        others=("compliance run", "audit", "matrix"),
    ),
    "mcp": Page(
        about="""\
mcptest itself as an MCP server, for agents. Without options nothing is started and nothing is
written: the tools read and judge what lies below --root. Tools that are not allowed are not listed.
Over HTTP it listens on 127.0.0.1, at a URL that holds a secret: the token in MCPTEST_MCP_TOKEN, or
a new one, which is told on stderr.""",
        examples=(
            "mcptest mcp",
            'mcptest mcp --root ./evals --allow-run --allow-server "python my_server.py"',
            "mcptest mcp --mcp-config .mcp.json --allow-run --allow-server filesystem",
            "mcptest mcp --http 8765",
        ),
        exits={0: "the client has gone", 2: "bad options, or the port is taken"},
        see="docs/mcp.md",
        others=("serve",),
    ),
}
