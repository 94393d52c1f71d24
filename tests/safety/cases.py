"""The misbehaving peers of the matrix: what each does, which colour and which words it leads to.

The servers are those of `tests/rogues` wherever there is one; `hostile` has those whose lists and
answers are hostile. A stdio server is served over HTTP by `http_twin`, as it is.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.peers.warm_peers import warm_peer
from tests.rogues import gallery, malformed
from tests.safety import hostile, hostile_answers, hostile_client, hostile_offers, http_twin

Way = Literal["stdio", "http"]
Stage = Literal["meeting", "listing", "calling"]
Colour = Literal["healthy", "noted", "told", "unreachable", "red"]
"""What has to become of it.

- healthy: odd, but allowed. The command ends as it does on a healthy server.
- noted: noise beside sound answers. Commands that judge by the rules name it and are red; to the
  others it is noise, which the capture has.
- told: as on a healthy server, but for the commands in `codes`, which say the words.
- unreachable: it never was a server: exit 3, or a failed test.
- red: never green, and the words are said.
"""

BOTH: tuple[Way, ...] = ("stdio", "http")
PYTHON = (sys.executable, "-I", "-S")


@dataclass(frozen=True)
class Case:
    """One misbehaving peer."""

    name: str
    family: str
    does: str
    """For the page: "It …"."""
    program: Literal["rogue", "malformed", "hostile", "offers", "answers", "http", "client"]
    colour: Colour = "red"
    causes: tuple[str, ...] = ()
    """One of these has to be said."""
    http_causes: tuple[str, ...] = ()
    """Over HTTP, where it is said in other words."""
    stage: Stage = "meeting"
    """Commands that never get there are not concerned."""
    ways: tuple[Way, ...] = BOTH
    patient: bool = False
    """It answers in the end, so it gets time enough on a busy machine as well."""
    argument: str = ""
    """What the program calls it, where that is something else."""
    ends: int = 0
    """How its process ends when a client leaves as clients do, by end of input and then SIGTERM."""
    codes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """How a command ends, or COMMAND@WAY, where the colour does not say."""
    not_for: tuple[tuple[str, str], ...] = ()
    """Commands that it does not concern, each with the reason."""

    def command(self) -> list[str]:
        """How it is started, over stdio."""
        words = (self.argument or self.name).split(":")
        script = {
            "rogue": gallery.ROGUE,
            "malformed": Path(malformed.__file__),
            "hostile": Path(hostile.__file__),
            "offers": Path(hostile_offers.__file__),
            "answers": Path(hostile_answers.__file__),
            "client": Path(hostile_client.__file__),
        }[self.program]
        return [*PYTHON, str(script), *words]

    def http_command(self) -> tuple[str, ...]:
        """How a server is started over HTTP, beside the command; its first line is the URL."""
        if self.program in {"malformed", "http"}:
            words = (self.argument or self.name).split(":")
            return warm_peer(sys.executable, "-m", "tests.safety.http_peer", self.program, *words)
        return warm_peer(sys.executable, str(Path(http_twin.__file__)), *self.command())

    def codes_for(self, command: str, way: Way) -> tuple[int, ...] | None:
        known = dict(self.codes)
        return known.get(f"{command}@{way}", known.get(command))

    def said(self, way: Way) -> tuple[str, ...]:
        return self.http_causes or self.causes if way == "http" else self.causes


GONE = (
    "without a response",
    "without a message",
    "the connection broke",
    "closed the connection",
    "did not answer",
)
SILENT = ("did not answer", "got no response", "within", "stopped after")
STDIO: tuple[Way, ...] = ("stdio",)
HTTP: tuple[Way, ...] = ("http",)

TERMINATED, KILLED, SEGFAULT = 143, 137, 139
BOMB = ("references multiply", "can't be checked", "steps")
TOO_MANY = ("can't be checked", "too many parts", "bytes, and the validator")

EACH_CALLED = (("init", "calls each tool that was listed, and each call has its own time"),)


def failed_by(*commands: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, (1,)) for name in commands)


SCHEMA_USERS = ("fuzz", "audit", "lint", "generate", "init", "mcp", "intercept")
"""Commands that say of a schema that it is not used."""
STRICT = failed_by("lint", "intercept")

CASES: tuple[Case, ...] = (
    Case("behaves", "control", "does nothing wrong", "rogue", "healthy", patient=True),
    # It is not there, or goes away
    Case(
        "exits-at-once", "exit", "exits with code 0 before it says a word", "rogue", "unreachable",
        ("exited with code 0",), GONE,
    ),
    Case(
        "exits-at-once-with-code", "exit", "exits with code 3 and a line on stderr", "rogue",
        "unreachable", ("no configuration file",), ways=STDIO,
        ends=3,
    ),
    Case(
        "segfaults-at-once", "exit", "is ended by SIGSEGV at its start", "rogue", "unreachable",
        ("SIGSEGV",), ways=STDIO,
        ends=SEGFAULT,
    ),
    Case(
        "dies-mid-answer", "exit", "exits in the middle of its first answer", "rogue", "red",
        ("in the middle of a line", "exited with code 1"), (*GONE, "unfinished event"),
        ends=1,
    ),
    Case(
        "dies-after-handshake", "exit", "exits with code 7 right after the handshake",
        "rogue", "red", ("out of cheese", "exited with code 7"), GONE,
        ends=7,
    ),
    Case(
        "call-ends-the-server", "exit", "exits with code 7 when a tool is called", "hostile", "red",
        ("exited with code 7", "out of cheese"), GONE, stage="calling",
        ends=7, codes=(("intercept@http", (0,)),),
    ),
    # It is silent
    Case("never-answers", "silence", "reads everything and says nothing", "rogue", "red", SILENT),
    Case(
        "answers-half-a-line", "silence", "writes 20 bytes of its first answer", "rogue", "red",
        ("in the middle of a line",), ("bytes of an unfinished response",),
        ends=TERMINATED,
    ),
    Case(
        "stops-itself", "silence", "stops itself with SIGSTOP", "rogue", "red",
        ("is stopped",), ways=STDIO,
        ends=TERMINATED,
    ),
    Case(
        "list-never-answered", "silence", "does not answer tools/list", "hostile", "red",
        SILENT, stage="listing",
    ),
    Case(
        "call-never-answered", "silence", "does not answer tools/call", "hostile", "red",
        SILENT, stage="calling",
        codes=(("intercept", (0,)),),
    ),
    Case(
        "call-cut-off", "silence", "writes 22 bytes of its answer to a call", "hostile", "red",
        SILENT, stage="calling",
        ends=TERMINATED, codes=(("intercept@stdio", (TERMINATED,)), ("intercept@http", (0,))),
    ),
    Case(
        "late-answer", "silence", "gives a correct answer after we gave up", "hostile", "red",
        SILENT, stage="calling", ways=STDIO,
        codes=(("intercept", (0,)),),
    ),
    # It says what is no message
    Case(
        "banner-on-stdout", "noise", "greets on stdout before it serves", "rogue", "noted",
        ("listening on stdio",), ways=STDIO, patient=True,
    ),
    Case(
        "colours-on-stdout", "noise", "writes control codes and CI commands to stdout", "rogue",
        "noted", ("started", "error"), ways=STDIO, patient=True,
    ),
    Case(
        "utf16", "noise", "answers in UTF-16", "rogue", "red", ("UTF-16",), ways=STDIO,
    ),
    Case(
        "pretty-printed", "noise", "answers with JSON over several lines", "rogue", "red",
        ("JSON over several lines", "over several lines"), ways=STDIO,
    ),
    Case(
        "content-length-framing", "noise", "frames its answers as LSP does", "rogue", "red",
        ("framed by headers", "LSP", "Content-Length"), ways=STDIO,
    ),
    Case(
        "help-text-and-exit", "noise", "prints its usage and exits with code 2", "rogue",
        "unreachable", ("arguments are required: --root", "exited with code 2"), ways=STDIO,
        ends=2,
    ),
    Case(
        "wrong-id", "protocol", "answers with an id that nobody sent", "rogue", "red", ("999",),
    ),
    Case(
        "echoes-the-client", "protocol", "sends back whatever it gets", "rogue", "red",
        (*SILENT, "initialize"),
    ),
    Case(
        "answers-twice", "protocol", "answers every request twice", "rogue", "told",
        patient=True, ways=STDIO,
        codes=(("intercept", (1,)),),
    ),
    # Answers at fault in their form
    Case(
        "nan", "malformed", "answers a call with NaN", "malformed", "red", ("NaN",),
        stage="calling", patient=True,
    ),
    Case(
        "invalid-utf8", "malformed", "answers a call with a byte that is no UTF-8", "malformed",
        "red", ("UTF-8", "0xff"), stage="calling", patient=True,
    ),
    Case(
        "batch", "malformed", "answers a call inside an array", "malformed", "red",
        ("array", "batch"), stage="calling", patient=True,
    ),
    Case(
        "bom", "malformed", "answers a call behind a byte order mark", "malformed", "red",
        ("byte order mark",), stage="calling", patient=True,
    ),
    Case(
        "string-id", "malformed", "answers a call with its id as a string", "malformed", "red",
        ("a string", "id '"), stage="calling",
    ),
    Case(
        "no-id", "malformed", "answers a call without an id", "malformed", "red",
        ("without an id", "no id", "id is missing", "id"), stage="calling",
    ),
    Case(
        "nan-list", "malformed", "answers tools/list with NaN", "malformed", "red", ("NaN",),
        stage="listing", patient=True, argument="nan:tools/list",
    ),
    # It says too much
    Case(
        "endless-line", "flood", "writes a line without end", "rogue", "red",
        ("longer than 16777216 bytes", "in the middle of a line"),
        ("larger than", "bytes of an unfinished response"),
        ends=TERMINATED,
    ),
    Case(
        "endless-notifications", "flood", "sends notifications without end", "rogue", "red",
        ("notifications", "messages came", "flood"),
        ends=TERMINATED,
    ),
    Case(
        "call-flood", "flood", "answers a call with notifications without end", "hostile", "red",
        (*SILENT, "notifications"), stage="calling",
        ends=TERMINATED,
    ),
    Case(
        "call-asks-without-end", "flood", "answers a call with requests without end", "hostile",
        "red", (*SILENT, "requests"), stage="calling",
        ends=TERMINATED,
    ),
    Case(
        "list-is-no-list", "malformed", "answers tools/list with a text for a list", "hostile",
        "red", ("tools/list", "an array", "a list"), stage="listing", patient=True,
    ),
    Case(
        "list-flood", "flood", "answers tools/list with notifications without end", "hostile",
        "red", (*SILENT, "notifications"), stage="listing",
        ends=TERMINATED,
    ),
    Case(
        "call-answer-too-large", "flood", "answers a call with 20 MB", "hostile", "red",
        ("longer than 16777216 bytes", "in the middle of a line"),
        ("larger than", "bytes of an unfinished response"), stage="calling",
    ),
    Case(
        "call-answer-large", "flood", "answers a call with 9 MB", "hostile", "told",
        stage="calling", patient=True,
        codes=(("snapshot", (1,)),),
    ),
    Case(
        "call-answer-deep", "flood", "answers a call with arrays 50,000 deep", "hostile", "red",
        ("deep", "nested", "[[[[[["), stage="calling",
    ),
    Case(
        "server-request-flood", "flood", "asks 10,000 pings before it answers", "rogue", "healthy",
        patient=True, ways=STDIO,
        codes=(("intercept", (1,)),),  # our agent answers no ping
    ),
    Case(
        "stderr-flood", "flood", "writes 100 MB to stderr before it answers", "rogue", "healthy",
        patient=True, ways=STDIO,
    ),
    Case(
        "stderr-endless", "flood", "writes to stderr without end", "rogue", "red",
        ("spam",), ways=STDIO,
        ends=TERMINATED,
    ),
    # The pipes
    Case(
        "stdout-closed-but-alive", "pipes", "closes its stdout and lives on", "rogue", "red",
        ("closed its stdout",), ways=STDIO,
        ends=TERMINATED,
    ),
    Case(
        "stdin-never-read", "pipes", "never reads its stdin", "rogue", "red",
        SILENT, ways=STDIO,
        ends=TERMINATED,
    ),
    # It will not end, or leaves others behind
    Case(
        "ignores-sigterm", "end", "ignores the end of input and SIGTERM", "rogue", "healthy",
        patient=True, ways=STDIO,
        ends=KILLED,
    ),
    Case(
        "floods-when-asked-to-end", "end", "floods when it is asked to end", "rogue", "told",
        patient=True, ways=STDIO,
        ends=KILLED, codes=(("intercept", (1,)),),
    ),
    Case(
        "daemon", "end", "leaves a daemon behind", "rogue", "healthy", patient=True, ways=STDIO,
    ),
    Case(
        "grandchild-goes-on-writing", "end", "exits, and its child writes on without end", "rogue",
        "red", ("exited with code 4",), ways=STDIO,
        ends=4,
    ),
    # What it offers
    Case(
        "schema-bomb", "schema", "has an input schema that takes 2^28 checks", "hostile", "told",
        stage="listing",
        causes=BOMB,
        codes=failed_by("fuzz", "audit", "lint", "generate", "init", "mcp", "intercept"),
    ),
    Case(
        "output-schema-bomb", "schema", "has an output schema that takes 2^28 checks", "hostile",
        "told", stage="listing",
        causes=BOMB, codes=failed_by("audit", "lint", "mcp", "intercept"),
    ),
    Case(
        "pattern-bomb", "schema", "has a pattern that backtracks for ever", "hostile", "told",
        stage="listing",
    ),
    Case(
        "recursive-schema", "schema", "has a schema that refers to itself", "hostile", "told",
        stage="listing", patient=True,
    ),
    Case(
        "remote-schema", "schema", "refers to a schema on the metadata service", "hostile", "told",
        stage="listing", patient=True,
        causes=("169.254.169.254",), codes=failed_by("lint", "intercept"),
    ),
    Case(
        "same-cursor-again", "paging", "gives the same cursor again and again", "hostile", "red",
        ("cursor", "page"), stage="listing",
        codes=(("intercept", (0,)),),  # our agent reads one page
    ),
    Case(
        "cursors-without-end", "paging", "gives a new cursor without end", "hostile", "red",
        ("page", "stopped after"), stage="listing", not_for=EACH_CALLED,
        codes=(("intercept", (0,)),),
    ),
    Case(
        "many-tools", "paging", "lists 2,001 tools at once", "hostile", "told", stage="listing",
        not_for=EACH_CALLED,
        # as far as they come in their time
        causes=("stopped after", "within", "limit"),
        codes=(("audit", (0, 1)), ("fuzz", (0, 1)), ("mcp", (0, 1))),
    ),
    Case(
        "hostile-names", "paging", "has tools named as paths, control codes and scripts",
        "hostile", "told", stage="listing", patient=True,
        causes=("name",), codes=failed_by("lint"),
    ),
    Case(
        "huge-description", "paging", "describes a tool with 5 MB", "hostile", "told",
        stage="listing", patient=True,
    ),
    Case(
        "other-tools-each-time", "paging", "lists other tools each time", "hostile", "told",
        stage="listing", patient=True,
    ),
    Case(
        "long-name", "paging", "has a tool with a name of 1 MB", "hostile", "told",
        stage="listing", patient=True,
    ),
    Case(
        "long-introduction", "paging", "introduces itself with 5 MB", "hostile", "told",
        patient=True,
    ),
    Case(
        "growing-cursors", "paging", "doubles its cursor with each page", "hostile", "red",
        ("cursor of",), stage="listing", patient=True, codes=(("intercept", (0,)),),
    ),
    Case(
        "many-choices", "schema", "has an enum of 100,000 texts", "hostile", "told",
        stage="listing", patient=True,
    ),
    Case(
        "lists-change-without-end", "paging", "says after each list that it has changed",
        "hostile", "told", stage="listing", patient=True,
        causes=("list_changed",), codes=failed_by("intercept"),  # it never declared that
    ),
    Case(
        "asks-in-the-middle", "protocol", "asks the client three things before each answer",
        "hostile", "told", patient=True,
        codes=(("intercept", (1,)),),  # our agent declares none of it
    ),
    Case(
        "asks-with-long-ids", "flood", "sends requests with ids of 1 MB", "hostile", "told",
        stage="calling", patient=True,
    ),
    Case(
        "cancels-everything", "protocol", "cancels every request, and answers it", "hostile",
        "told", patient=True,
        # over HTTP it is heard only if the stream of the answer is still open
        codes=(("intercept@stdio", (1,)), ("intercept@http", (0, 1))),
    ),
    Case(
        "progress-of-nobody", "flood", "reports progress of what nobody asked, without end",
        "hostile", "red", (*SILENT, "notifications"), stage="calling", ends=TERMINATED,
    ),
    Case(
        "call-answer-just-deep-enough", "malformed", "nests an answer 511 deep", "hostile", "told",
        stage="calling", patient=True, codes=(("snapshot", (1,)),),
    ),
    Case(
        "call-answer-just-too-deep", "malformed", "nests an answer 514 deep", "hostile", "red",
        ("deep", "nested"), stage="calling",
    ),
    Case(
        "call-answer-repeats-a-key", "malformed", "has one key 100,000 times in an answer",
        # JSON allows it: those that judge say that rules are broken, the others warn
        "hostile", "told", stage="calling", patient=True, causes=("twice",),
        codes=(("snapshot", (1,)),),
    ),
    Case(
        "call-answer-overlong", "malformed", "writes a slash in two bytes", "hostile", "red",
        ("UTF-8", "0xc0"), stage="calling", patient=True,
    ),
    Case(
        "call-answer-with-nul", "malformed", "writes NUL bytes around an answer", "hostile", "red",
        ("NUL", "\\x00", "not a message", "not JSON"), stage="calling",
    ),
    Case(
        "call-answer-is-a-large-image", "flood", "answers with an image of 12 MB", "hostile",
        "told", stage="calling", patient=True, codes=(("snapshot", (1,)),),
    ),
    Case(
        "call-answer-is-almost-too-large", "flood", "answers a call with 15.6 MB", "hostile",
        "told", stage="calling", patient=True, codes=(("snapshot", (1,)),),
    ),
    Case(
        "call-answer-has-many-values", "flood", "answers a call with 4,000,000 empty objects",
        "hostile", "red", ("too many values",), stage="calling", patient=True,
    ),
    Case(
        "call-answer-steers-terminals", "noise", "answers with 1 MB of control codes", "hostile",
        "told", stage="calling", patient=True, codes=(("snapshot", (1,)),),
    ),
    Case(
        # an answer like any other, but not what a suite wants
        "call-error-is-large", "flood", "answers with an error of 7 MB", "hostile", "told",
        ("-32000", "no no no"), stage="calling", patient=True,
        codes=failed_by(
            "run", "ci", "matrix", "snapshot", "snapshot --update", "watch", "conformance server"
        ),
    ),
    Case(
        "call-drips", "silence", "writes a byte of its answer each tenth of a second", "hostile",
        "red", SILENT, stage="calling",
        ends=TERMINATED, codes=(("intercept@stdio", (TERMINATED,)), ("intercept@http", (0,))),
    ),
    Case(
        # the answer comes, and the process that was started is gone: whoever looks at it says so
        "call-moves-to-a-child", "end", "exits, and its child goes on answering", "hostile",
        "told", stage="calling", ways=STDIO, patient=True, causes=("exited",),
        codes=failed_by("audit", "fuzz", "mcp"),
    ),
    Case(
        "answers-on-stderr", "silence", "answers on stderr", "hostile", "red",
        ("stderr",), ways=STDIO,
    ),
    # What is of another type than it should be, and other small lies
    Case(
        "cursor-is-a-number", "paging", "gives a number as its cursor", "hostile", "red",
        ("cursor", "nextCursor"), stage="listing", patient=True,
    ),
    Case(
        "version-is-a-number", "protocol", "names its version as a number", "hostile", "red",
        ("protocolVersion", "20251125"), patient=True,
    ),
    Case(
        "capabilities-are-a-text", "protocol", "declares its capabilities as a text", "hostile",
        "red", ("capabilities",), patient=True,
    ),
    Case(
        "tool-is-a-number", "paging", "lists a number and a null beside its tool", "hostile",
        "red", ("tool",), stage="listing", patient=True,
    ),
    Case(
        "call-content-is-a-text", "malformed", "answers a call with a text for its content",
        "hostile", "red", ("content",), stage="calling", patient=True,
    ),
    Case(
        "file-schema", "schema", "refers to a file as a schema", "hostile", "told",
        stage="listing", patient=True,
        causes=("file:///etc/passwd",), codes=failed_by("lint", "intercept"),
    ),
    Case(
        "names-turn-around", "paging", "has names with bidirectional controls and links",
        "hostile", "told", stage="listing", patient=True,
        causes=("name",), codes=failed_by("lint"),
    ),
    Case(
        "call-answer-trails", "malformed", "writes more behind an answer on its line", "hostile",
        "red", ("after a message", "done!"), stage="calling",
    ),
    Case(
        "call-answer-has-a-huge-number", "malformed", "answers with a number of 5,000 digits",
        "hostile", "told", ("digits",), stage="calling", patient=True,
        codes=failed_by("snapshot", "intercept"),
    ),
    Case(
        "call-answer-has-half-a-character", "malformed", "answers with half a surrogate pair",
        "hostile", "told", ("surrogate",), stage="calling", patient=True,
        codes=failed_by("snapshot", "intercept"),
    ),
    Case(
        "call-answer-has-many-parts", "flood", "answers with 20,000 contents", "hostile", "told",
        stage="calling", patient=True, codes=(("snapshot", (1,)),),
    ),
    Case(
        "call-answered-before", "protocol", "answers requests that it has not got yet", "hostile",
        "red", ("not asked for", "answered twice", "request twice", "an array"),
        stage="listing", ways=STDIO,
    ),
    Case(
        "stops-reading", "pipes", "never reads again after the handshake", "hostile", "red",
        SILENT, ways=STDIO, ends=TERMINATED,
    ),
    Case(
        "stderr-steers-terminals", "noise", "writes control codes and deep JSON to stderr",
        "hostile", "healthy", patient=True, ways=STDIO,
    ),
    # Schemas that cost in other ways
    Case(
        "unevaluated-bomb", "schema", "asks 24 times what is left over", "offers", "told",
        stage="listing", causes=("multiply", "can't be checked"), codes=failed_by(*SCHEMA_USERS),
    ),
    Case(
        "output-unevaluated-bomb", "schema", "asks 24 times what is left over of an answer",
        "offers", "told", stage="listing", causes=("multiply", "can't be checked"),
        codes=failed_by("audit", "lint", "mcp", "intercept"),
    ),
    Case(
        "dynamic-bomb", "schema", "has dynamic references that take 2^28 checks", "offers",
        "told", stage="listing", causes=BOMB, codes=failed_by(*SCHEMA_USERS),
    ),
    Case(
        "huge-const", "schema", "has a constant of 220,000 texts", "offers", "told",
        stage="listing", causes=TOO_MANY, codes=failed_by(*SCHEMA_USERS),
    ),
    Case(
        "choices-of-objects", "schema", "has an enum of 12,000 objects", "offers", "told",
        stage="listing", causes=TOO_MANY, codes=failed_by(*SCHEMA_USERS),
    ),
    Case(
        "long-property-names", "schema", "has properties with names of 400 kB", "offers", "told",
        stage="listing", patient=True, causes=TOO_MANY, codes=failed_by(*SCHEMA_USERS),
    ),
    Case(
        "choices-in-choices", "schema", "has oneOf in oneOf, eight levels deep", "offers", "told",
        stage="listing", patient=True,
    ),
    Case(
        "pattern-properties-bomb", "schema", "has names of members that backtrack for ever",
        "offers", "told", stage="listing", patient=True,
    ),
    Case(
        "contains-many", "schema", "wants 40,000 items of one kind", "offers", "told",
        stage="listing", patient=True,
    ),
    Case(
        "endless-value", "schema", "wants a value without end", "offers", "told",
        stage="listing", patient=True,
    ),
    Case(
        "definitions-in-a-circle", "schema", "has definitions that refer to each other", "offers",
        "told", stage="listing", patient=True,
    ),
    Case(
        "large-minimums", "schema", "wants a text of a billion characters", "offers", "told",
        stage="listing", patient=True, causes=("parameter",),
        codes=STRICT,
    ),
    Case(
        "nothing-fits", "schema", "has members that no value fits", "offers", "told",
        stage="listing", patient=True, causes=("parameter", "is false, not an object"),
        # `false` is a schema of JSON Schema, and none that the shape of a tool allows
        codes=(*STRICT, *failed_by("conformance server")),
    ),
    Case(
        "foreign-patterns", "schema", "has patterns of other languages, and one of 300 kB",
        "offers", "told", stage="listing", causes=("pattern",), codes=failed_by(*SCHEMA_USERS),
    ),
    Case(
        "schema-of-wrong-types", "schema", "has a schema whose keywords have wrong types",
        "offers", "told", stage="listing", patient=True, causes=("JSON Schema", "schema"),
        codes=failed_by("lint", "intercept", "conformance server"),
    ),
    Case(
        "deep-properties", "schema", "nests its properties 230 levels deep", "offers", "told",
        stage="listing", causes=("deep", "can't be checked"), codes=failed_by(*SCHEMA_USERS),
    ),
    Case(
        "half-characters", "schema", "has half a surrogate pair in each of its texts", "offers",
        "told", stage="listing", patient=True, causes=("surrogate", "name", "schema"),
        codes=STRICT,
    ),
    # Lists and names of other kinds
    Case(
        "cursors-in-a-circle", "paging", "leads from its fifth page back to the third", "offers",
        "red", ("cursor", "page"), stage="listing", codes=(("intercept", (0,)),),
    ),
    Case(
        "large-cursor", "paging", "gives a cursor of 5 MB", "offers", "red", ("cursor of",),
        stage="listing", patient=True, codes=(("intercept", (0,)),),
    ),
    Case(
        "empty-pages", "paging", "gives empty pages without end", "offers", "red",
        ("page", "stopped after"), stage="listing", codes=(("intercept", (0,)),),
    ),
    Case(
        "empty-cursor", "paging", "gives an empty text as its cursor", "offers", "told",
        stage="listing", patient=True,
    ),
    Case(
        "names-for-files", "paging", "has tools with names that are paths, or no names", "offers",
        "red", ("name", "echo"), stage="listing", patient=True,
        codes=(("record", (0,)), ("fuzz", (0,)), ("conformance server", (0, 1)),
               ("coverage", (0, 1)), ("mcp", (0, 1))),
    ),
    Case(
        "words-for-markup", "paging", "describes a tool in HTML, Markdown and control codes",
        "offers", "told", stage="listing", patient=True, causes=("description", "characters"),
        codes=failed_by("lint"),
    ),
    Case(
        "version-of-nobody", "protocol", "speaks a version that there is not", "offers", "red",
        ("9999-99-99",), patient=True,
    ),
    Case(
        "half-a-name", "protocol", "introduces itself with half a surrogate pair", "offers",
        "told", patient=True, causes=("surrogate",), codes=failed_by("intercept"),
    ),
    Case(
        "many-capabilities", "protocol", "declares 50,000 capabilities", "offers", "told",
        patient=True,
    ),
    Case(
        "wide-meta", "protocol", "has 110,000 keys in the _meta of each result", "offers", "told",
        patient=True,
    ),
    Case(
        "wider-meta", "protocol", "has 200,000 keys in the _meta of each result", "offers", "red",
        ("too many values",), patient=True,
    ),
    # Answers and requests of other kinds
    Case(
        "wide-and-shallow", "flood", "answers with 300,000 members", "answers", "red",
        ("too many values",), stage="calling", patient=True,
        codes=(("record --proxy", (0, 130)),),  # on a busy machine it still writes its capture
    ),
    Case(
        "numbers-beyond-floats", "malformed", "answers with 1e400", "answers", "told",
        ("1e400", "number"), stage="calling", patient=True,
        codes=failed_by("snapshot", "intercept"),
    ),
    Case(
        "asks-for-samples-without-end", "flood", "asks for samples without end", "answers", "red",
        (*SILENT, "requests"), stage="calling", ends=TERMINATED,
    ),
    Case(
        "keeps-promising", "silence", "reports progress each tenth of a second, without end",
        # a rule is broken on either way: our agent gave no token
        "answers", "red", SILENT, stage="calling", ends=TERMINATED,
    ),
    # Processes
    Case(
        "exits-well-in-a-call", "exit", "exits with code 0 in a call", "answers", "red",
        ("exited with code 0",), GONE, stage="calling", codes=(("intercept@http", (0,)),),
    ),
    Case(
        "killed-in-a-call", "exit", "is ended by SIGKILL in a call", "answers", "red",
        ("SIGKILL",), GONE, stage="calling", ends=KILLED, codes=(("intercept@http", (0,)),),
    ),
    Case(
        "stopped-in-a-call", "silence", "stops itself in a call", "answers", "red",
        ("is stopped", "did not answer", "got no response"), stage="calling", ways=STDIO,
        ends=TERMINATED,
        codes=(("intercept", (0, TERMINATED)),),
    ),
    Case(
        "closes-stdout-in-a-call", "pipes", "closes its stdout in a call, and lives on",
        "answers", "red", ("closed its stdout",), stage="calling", ways=STDIO, ends=TERMINATED,
        codes=(("intercept", (TERMINATED,)),),
    ),
    Case(
        "error-flag-is-a-text", "malformed", "answers a call with isError as a text", "answers",
        "red", ("isError",), stage="calling", patient=True,
    ),
    Case(
        "ends-its-group", "exit", "ends its process group with SIGTERM in a call", "answers",
        "red", ("SIGTERM",), GONE, stage="calling", ways=STDIO, ends=TERMINATED,
    ),
    Case(
        "stderr-in-utf16", "exit", "says in UTF-16 why it exits with code 9", "answers", "red",
        ("exited with code 9",), stage="calling", ways=STDIO, ends=9,
    ),
    Case(
        "stderr-without-lines", "flood", "writes 20 MB to stderr without a newline", "answers",
        "healthy", stage="calling", ways=STDIO, patient=True,
    ),
    Case(
        "many-daemons", "end", "leaves thirty daemons behind that heed no signal", "answers",
        "told", stage="calling", ways=STDIO, patient=True,
    ),
    # HTTP itself
    Case(
        "byte-by-byte", "http", "sends each byte in a segment of its own", "http", "healthy",
        ways=HTTP, patient=True, argument="byte by byte", codes=(("property@http", (0, 1)),),
    ),
    Case(
        "carriage-returns", "http", "ends the lines of its events with a carriage return",
        "http", "healthy", ways=HTTP, patient=True, argument="carriage returns",
        codes=(("property@http", (0, 1)),),
    ),
    Case(
        "comments-without-end", "http", "sends comments without end", "http", "red", SILENT,
        ways=HTTP, argument="comments without end",
    ),
    Case(
        "two-lengths", "http", "declares two lengths of its body", "http", "red",
        ("Content-Length", "not HTTP"), ways=HTTP, argument="two lengths",
    ),
    Case(
        "length-too-short", "http", "sends more than it has declared", "http", "red",
        ("bytes after the end of the response",), ways=HTTP,
        argument="length too short",
    ),
    Case(
        "length-below-nothing", "http", "declares a length of -1", "http", "red",
        ("Content-Length", "not HTTP"), ways=HTTP, argument="length below nothing",
    ),
    Case(
        "chunk-cut-off", "http", "closes inside a chunk", "http", "red",
        (*GONE, "connection", "closed"), ways=HTTP, argument="chunk cut off",
    ),
    Case(
        "no-head", "http", "answers without a head, as HTTP/0.9", "http", "red", ("not HTTP",),
        ways=HTTP, argument="no head",
    ),
    Case(
        "http2-frames", "http", "answers with frames of HTTP/2", "http", "red", ("not HTTP",),
        ways=HTTP, argument="HTTP/2 frames",
    ),
    Case(
        "tls-alert", "http", "answers with an alert of TLS", "http", "red", ("not HTTP",),
        ways=HTTP, argument="TLS alert",
    ),
    Case(
        "no-content", "http", "answers with 204", "http", "red", ("HTTP 204", "204"),
        ways=HTTP, argument="204",
    ),
    Case(
        "head-in-bytes", "http", "sends its head byte by byte, without end", "http", "red",
        SILENT, ways=HTTP, argument="head in bytes",
    ),
    Case(
        "half-closed", "http", "closes its side of the connection without an answer", "http",
        "red", GONE, ways=HTTP, argument="half closed",
    ),
    Case(
        "wants-itself", "http", "wants a token, and sends to itself for it", "http",
        "unreachable", ("requires authorization", "401"), ways=HTTP, argument="wants itself",
    ),
    Case(
        "chunk-extensions", "http", "sends chunk extensions without end", "http", "red",
        ("chunk", "not HTTP"), ways=HTTP, argument="chunk extensions",
    ),
    Case(
        "trailers", "http", "sends trailers without end", "http", "red",
        ("trailer", "headers", "head of", "larger than"), ways=HTTP,
    ),
    Case(
        "event-id", "http", "sends the id of an event without end", "http", "red",
        ("larger than", "longer than", "event"), ways=HTTP, argument="event id",
    ),
    Case(
        "retry-at-once", "http", "ends each stream and promises more at once", "http", "red",
        ("ended", *GONE, *SILENT), ways=HTTP, argument="retry at once",
    ),
    Case(
        "retry-never", "http", "ends each stream and promises more in 30 years", "http", "red",
        ("ended", *GONE, *SILENT), ways=HTTP, argument="retry never",
    ),
    Case(
        "interim-without-end", "http", "sends 100 Continue without end", "http", "red",
        ("interim", "headers", "head of", "not HTTP"), ways=HTTP,
        argument="interim responses without end",
    ),
    Case(
        "redirect-circle", "http", "redirects in a circle", "http", "red",
        ("redirect",), ways=HTTP, argument="redirect in a circle",
    ),
    Case(
        "refused-401", "http", "requires authorization", "http", "unreachable",
        ("requires authorization", "401"), ways=HTTP, argument="401",
    ),
    Case(
        "html-500", "http", "answers with an error page", "http", "red", ("HTTP 500",), ways=HTTP,
        argument="HTML page with status 500",
    ),
    Case(
        "headers-without-end", "http", "sends headers without end", "http", "red",
        ("headers", "head of"), ways=HTTP, argument="headers without end",
    ),
    Case(
        "body-without-end", "http", "sends a body without end", "http", "red",
        ("larger than",), ways=HTTP, argument="body without end",
    ),
    Case(
        "gzip-bomb", "http", "packs 20 MB into 20 kB", "http", "red",
        ("unpack to more than",), ways=HTTP, argument="gzip bomb",
    ),
    Case(
        "redirect-elsewhere", "http", "redirects to the metadata service", "http", "red",
        ("169.254.169.254",), ways=HTTP, argument="redirect to the metadata service",
    ),
    Case(
        "garbage", "http", "answers with bytes that are no HTTP", "http", "red",
        ("not HTTP",), ways=HTTP, argument="garbage instead of HTTP",
    ),
    Case(
        "slow-body", "http", "stops inside its first body", "http", "red", SILENT, ways=HTTP,
        argument="slow body",
    ),
    Case(
        "reset", "http", "resets the connection inside the body", "http", "red",
        ("connection",), ways=HTTP, argument="reset inside the body",
    ),
    Case(
        "http-1.0", "http", "answers as HTTP/1.0, without a length", "http", "healthy",
        ways=HTTP, patient=True, argument="HTTP/1.0",
        codes=(("property@http", (0, 1)),),
    ),
    Case(
        "small-chunks", "http", "sends each byte in a chunk of its own", "http", "healthy",
        ways=HTTP, patient=True, argument="small chunks",
        codes=(("property@http", (0, 1)),),
    ),
    Case(
        "closes-unsaid", "http", "closes each connection without a word", "http", "healthy",
        ways=HTTP, patient=True, argument="closes unsaid",
        codes=(("property@http", (0, 1)),),
    ),
    Case(
        "many-cookies", "http", "sets 2,000 cookies", "http", "healthy", ways=HTTP, patient=True,
        argument="many cookies",
    ),
    Case(
        "both-lengths", "http", "declares a length and chunks", "http", "red",
        ("Transfer-Encoding", "not HTTP"), ways=HTTP, argument="both lengths",
    ),
    Case(
        "session-of-control-codes", "http", "names its session with control codes", "http",
        "red", ("not a header", "Mcp-Session-Id"), ways=HTTP, argument="session of control codes",
    ),
    Case(
        "keep-alives", "http", "sends a comment each tenth of a second", "http", "red", SILENT,
        ways=HTTP, argument="keep-alives without end",
    ),
    Case(
        "one-byte-a-second", "http", "sends a byte each second", "http", "red", SILENT, ways=HTTP,
        argument="one byte a second",
    ),
    Case(
        "redirects-further", "http", "redirects to another path each time", "http", "red",
        ("redirect",), ways=HTTP, argument="redirects further",
    ),
    Case(
        "forgets-sessions", "http", "forgets each session at once", "http", "red", ("404",),
        ways=HTTP, argument="forgets sessions",
    ),
    Case(
        "keeps-goodbyes", "http", "does not answer the end of a session", "http", "healthy",
        ways=HTTP, argument="keeps goodbyes", patient=True,
    ),
    Case(
        "huge-chunk", "http", "declares a chunk of 2^64 bytes", "http", "red", ("chunk",),
        ways=HTTP, argument="huge chunk",
    ),
    Case(
        "steering-status", "http", "has control codes in its status", "http", "red",
        ("\\x1b[2J",), ways=HTTP, argument="steering status",
    ),
    Case(
        "later", "http", "asks to come back in 30 years", "http", "red", ("429",), ways=HTTP,
    ),
    Case(
        "packed-twice", "http", "packs its answer twice", "http", "red", ("gzip, gzip",),
        ways=HTTP, argument="packed twice",
    ),
    Case(
        "reset-at-once", "http", "resets each connection at once", "http", "red",
        ("connection", "reset", *GONE), ways=HTTP, argument="reset at once",
    ),
)  # fmt: skip


CLIENT_CASES: tuple[Case, ...] = (
    Case(
        "exits-at-once", "client", "exits before it connects", "client", "red",
        ("exited with code 0",),
    ),
    Case(
        "exits-with-code", "client", "exits with code 3 and a line on stderr", "client", "red",
        ("no such", "code 3"),
    ),
    Case(
        "never-connects", "client", "never connects, and ignores SIGTERM", "client", "red",
        ("did not end within",),
    ),
    Case(
        "leaves-a-daemon", "client", "leaves a daemon behind that ignores SIGTERM", "client", "red",
        ("exited with code 0",),
    ),
    Case("floods-stderr", "client", "writes to stderr without end", "client", "red", ("spam",)),
    Case(
        "floods-stdout", "client", "writes to stdout without end", "client", "red",
        ("did not end within",),
    ),
    Case(
        "sends-garbage", "client", "sends bytes that are no message", "client", "red",
        ("not a message",), ("did not end within",),
    ),
    Case(
        "sends-deep-json", "client", "sends arrays 100,000 deep", "client", "red",
        ("not a message", "nested deeper"),
    ),
    Case(
        "sends-without-end", "client", "sends a line, or a body, without end", "client", "red",
        ("longer than", "did not end within"), ("larger than",),
    ),
    Case(
        "asks-without-end", "client", "sends requests without end and reads no answer", "client",
        "red", ("did not end within",),
    ),
    Case(
        "stops-inside-a-request", "client", "stops in the middle of its first request", "client",
        "red", ("did not end within",),
    ),
)  # fmt: skip
