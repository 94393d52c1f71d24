"""The manual of the commands that judge by the specification, and of those that tell."""

from __future__ import annotations

from mcptest.cli.manual_page import MET, Page

_REVISIONS = "revisions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28, draft"

PAGES = {
    "compliance": Page(
        about="""\
Judge servers and captures by the specification: every rule with its sentence, the record that
proves it, and what to do about it. Nothing passes that was not seen.""",
        examples=(
            "mcptest compliance run --server demo",
            "mcptest compliance invariants --capture session.jsonl",
            "mcptest compliance diff 2025-11-25 2026-07-28",
        ),
        exits={0: "conforms", 1: "a rule is broken", 2: MET[2], 3: MET[3], 4: "nothing was judged"},
        more="mcptest compliance ACTION --help tells more of each",
        see="docs/compliance/running.md",
        others=("conformance", "doctor", "explain"),
    ),
    "compliance run": Page(
        about="""\
Judge a server by the specification: probe it, capture everything, judge every rule of the
revision's corpus, grade it. Only tools that say they just read are called, unless you allow more.
--spec-version all judges by every revision that the server speaks.""",
        examples=(
            "mcptest compliance run --server demo",
            'mcptest compliance run --server "npx my-server /data" --spec-version all',
            "mcptest compliance run --server http://127.0.0.1:3001/mcp --html report.html",
            "mcptest compliance run --from-suite compliance.yml --junit results.xml",
            "mcptest compliance run --server demo --rule PROTO-002 --verbose",
            "mcptest compliance run --baseline known.yml --min-grade A- -- node server.js",
        ),
        exits={
            0: "conforms",
            1: "a MUST is broken or a gate failed; with --strict also a broken SHOULD",
            2: "could not start",
            3: MET[3],
            4: "nothing was observed",
            130: "interrupted; what was judged by then is reported",
        },
        see="docs/compliance/running.md",
        others=("explain", "doctor", "conformance server"),
    ),
    "compliance invariants": Page(
        about="""\
Judge recorded sessions by the rules that hold for a whole session, and several of them together by
what goes wrong between servers. No server is contacted: the same capture always gives the same
verdicts.""",
        examples=(
            "mcptest compliance invariants --capture session.jsonl",
            "mcptest compliance invariants --capture a.jsonl --capture b.jsonl --json",
            "mcptest compliance invariants --capture session.jsonl --rule INV-003 --verbose",
        ),
        exits={
            0: "nothing that counts is broken",
            1: "a MUST rule is broken, or several servers get in each other's way",
            2: "bad options, or the file can't be read as a capture",
            4: "there was nothing to judge",
        },
        see="docs/capture-format.md",
        others=("record", "explain", "report"),
    ),
    "compliance rules": Page(
        about="""\
List every rule with what it demands, its keyword and the revisions it holds in.
`mcptest explain ID` tells one in full.""",
        examples=(
            "mcptest compliance rules",
            "mcptest compliance rules --spec-version 2025-06-18 --side server --json",
        ),
        exits={0: "listed", 2: MET[2]},
        more=_REVISIONS,
        see="docs/rules/README.md",
        others=("explain", "compliance diff"),
    ),
    "compliance diff": Page(
        about="""\
What moves between two revisions, rule by rule: what was expected, what is expected now, and what to
do about it. With a suite also which of its compliance tests that touches. For what breaks on a live
server see `mcptest doctor`.""",
        examples=(
            "mcptest compliance diff 2025-11-25 2026-07-28",
            "mcptest compliance diff 2025-06-18 draft --format markdown",
            "mcptest compliance diff 2025-06-18 2025-11-25 --rules-from compliance.yml",
        ),
        exits={0: "told", 2: "bad options, or a file that can't be read"},
        more=_REVISIONS,
        see="docs/compliance/upgrade.md",
        others=("doctor", "compliance rules"),
    ),
    "conformance": Page(
        about="""\
The scenario suite: a client meets a scripted server, or a server is asked what an SDK's test server
is expected to do. Each scenario is judged by checks over what went over the wire.""",
        examples=(
            "mcptest conformance driver python-sdk > client.py",
            'mcptest conformance client --command "python client.py"',
            "mcptest conformance server --server http://127.0.0.1:3001/mcp",
            "mcptest conformance list --client",
        ),
        exits={0: "passed", 1: "a check failed", 2: MET[2], 3: "unreachable", 4: "nothing judged"},
        more="mcptest conformance ACTION --help tells more of each",
        see="docs/conformance/README.md",
        others=("compliance", "serve"),
    ),
    "conformance client": Page(
        about="""\
Test a client: we are the server. For each scenario a scripted server is started and then the
client, with the server's URL as its last argument. What the client sent is judged afterwards.

The client learns from its environment what is expected of it, as with the official suite:
MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION and, where there is more to say,
MCP_CONFORMANCE_CONTEXT (JSON). With --transport stdio it gets a command to launch instead of a URL:
as its last arguments, and as a JSON array in MCP_CONFORMANCE_SERVER_COMMAND.

`mcptest conformance driver` prints such a program for your client library.""",
        examples=(
            'mcptest conformance client --command "python my_client.py"',
            'mcptest conformance client --command "node client.js" --suite auth --jobs 4',
            "mcptest conformance client --command ./client --scenario tools_call --verbose",
            (
                "mcptest conformance client --command ./client --requirements 2026-07-28 \\\n"
                "    --expected-failures conformance-baseline.yml"
            ),
            "mcptest conformance client --command ./client --transport stdio --suite core",
        ),
        exits={
            0: "passed",
            1: "a check failed, or the expected failures do not hold",
            2: "bad options or files",
            3: "the client could not be started",
            4: "nothing was judged",
            130: MET[130],
        },
        see="docs/conformance/README.md",
        others=("conformance driver", "conformance judge", "conformance list"),
    ),
    "conformance driver": Page(
        about="""\
Print a program that takes part in every scenario for clients: it connects over HTTP or stdio, lists
the tools and makes the calls that the scenario's context asks for. There is one for each SDK and
framework in the list; change it as you like. The scenarios about authorization need more.""",
        examples=(
            "mcptest conformance driver --list",
            "mcptest conformance driver python-sdk > client.py",
            "mcptest conformance driver typescript-sdk > client.mjs",
        ),
        exits={0: "printed", 2: "there is no such driver"},
        see="docs/conformance/drivers.md",
        others=("conformance client", "conformance list"),
    ),
    "conformance server": Page(
        about="""\
The scenario suite for servers: what an SDK's test server is expected to do. What the server does
not declare or have is untestable, with what would unlock it, and no failure. A server that has its
own tools in place of the official fixtures names them with --fixture.""",
        examples=(
            "mcptest conformance server --server http://127.0.0.1:3001/mcp",
            'mcptest conformance server --server "node server.js" --spec-version 2026-07-28',
            "mcptest conformance server --server demo --requirements 2025-11-25",
            "mcptest conformance server --server ./server --fixture test_simple_text=hello",
        ),
        exits={
            0: "passed",
            1: "a check failed, or the expected failures do not hold",
            2: "bad options or files",
            3: MET[3],
            4: "nothing was judged",
            130: MET[130],
        },
        see="docs/conformance/README.md",
        others=("conformance list", "compliance run"),
    ),
    "conformance list": Page(
        about="""\
List every scenario with the revisions and transports it is for, and those of the official suite
that are not offered, with the reason.""",
        examples=(
            "mcptest conformance list",
            "mcptest conformance list --server --spec-version 2026-07-28 --json",
        ),
        exits={0: "listed", 2: MET[2]},
        see="docs/conformance/README.md",
        others=("conformance client", "conformance server"),
    ),
    "conformance judge": Page(
        about="""\
Judge a kept capture of a client scenario again, by the checks and rules of this version. No client
is started.""",
        examples=(
            "mcptest conformance judge --scenario tools_call --capture tools_call.jsonl",
            "mcptest conformance judge --scenario tools_call --capture kept.jsonl --json",
        ),
        exits={
            0: "passed",
            1: "a check failed",
            2: "bad options, or a file that can't be read",
            4: "nothing was judged",
        },
        see="docs/conformance/README.md",
        others=("conformance client",),
    ),
    "doctor": Page(
        about="""\
What will break when a server moves to another revision. Each thing that changes on the way is tried
on the live server: it breaks, is ready, is not used, or is unknown, with the bytes that prove it
and the fix. Tools are called only if they say that they only read, or are named with
--allow-tool.""",
        examples=(
            'mcptest doctor --server "npx -y my-server /data" --to 2026-07-28',
            "mcptest doctor --server http://127.0.0.1:3001/mcp --to draft --format markdown",
            "mcptest doctor --to 2025-11-25 --from 2025-03-26 -- python my_server.py",
        ),
        exits={
            0: "nothing breaks",
            1: "something does, or not all could be looked at",
            2: "there is no such way",
            3: MET[3],
        },
        see="docs/compliance/doctor.md",
        others=("compliance diff", "compliance run"),
    ),
    "explain": Page(
        about="""\
One rule, or one code of the linter, in full: what must hold and why, the sentence of the
specification it comes from, the revisions it holds in, what breaks it and how to mend that.""",
        examples=(
            "mcptest explain INV-003",
            "mcptest explain PROTO-002 --json",
            "mcptest explain E101",
        ),
        exits={0: "told", 2: "there is no rule of that name"},
        see="docs/rules/README.md",
        others=("compliance rules", "lint"),
    ),
    "report": Page(
        about="""\
Render stored runs and captures again, as HTML or in any other form. Nothing is run and no server is
contacted. FILE is what --json-file wrote. Several files are shards of one run: they are merged, and
there is one verdict.

A capture is shown as a sequence diagram, and the session rules are judged on it, so that each
finding is pinned to its message. Beside stored runs these findings only explain; when captures are
all there is, they are the verdict, as in `mcptest compliance invariants`.""",
        examples=(
            "mcptest report run.json --html report.html",
            "mcptest report shard-1.json shard-2.json --shards 2 --junit results.xml",
            "mcptest report run.json --capture captures/ --html report.html",
            "mcptest report --capture session.jsonl --html session.html",
        ),
        exits={
            0: "what was stored had passed",
            1: "something failed, or a report could not be written",
            2: "a file can't be read",
            3: "a peer was unreachable",
            4: "nothing was run",
            130: "a run was interrupted",
        },
        see="docs/html-report.md",
        others=("run", "ci"),
    ),
    "schema": Page(
        about="""\
Print the JSON Schema (2020-12) of a file format; without a name, which there are. Schemas of what
people write (suite, known-failures, expected-failures) are for editors that complete and check
while one types; the others say what a report holds. Members are only added within a version of a
format.""",
        examples=(
            "mcptest schema",
            "mcptest schema suite --output evals/.mcptest.schema.json",
            "mcptest schema run",
        ),
        exits={0: "printed or written", 2: "no such format, or it could not be written"},
        see="docs/editors.md",
        others=("init", "completion"),
    ),
    "completion": Page(
        about="""\
Print a script that completes commands, options and their values in your shell: revisions and
formats, the ids of rules, the names of servers in .mcp.json, files and folders. It asks mcptest
itself each time, so it need not be made again after an upgrade.""",
        examples=("mcptest completion bash", "mcptest completion fish"),
        exits={0: "printed", 2: "there is no such shell"},
        more="""\
put it where your shell looks:
  bash  ~/.local/share/bash-completion/completions/mcptest
  zsh   ~/.zfunc/_mcptest, with fpath+=~/.zfunc before compinit
  fish  ~/.config/fish/completions/mcptest.fish""",
        see="docs/completion.md",
        others=("schema",),
    ),
}
