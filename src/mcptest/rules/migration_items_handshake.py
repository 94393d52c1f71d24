"""What the steps between the revisions that begin with a handshake change for a server."""

from __future__ import annotations

from typing import Final

from mcptest.model.revision import Revision
from mcptest.rules.migration_item import MigrationItem

_B: Final = Revision.V2025_03_26
_C: Final = Revision.V2025_06_18
_D: Final = Revision.V2025_11_25
_E: Final = Revision.V2026_07_28

HANDSHAKE_ITEMS: Final = (
    MigrationItem(
        id="agreement",
        since=_B,
        until=_E,
        standing=True,
        title="agreeing to the revision",
        change="the revision has to be known to the server before a client can choose it",
        looks_for="initialize that offers the revision: the answer names the same",
        rules=("PROTO-003", "PROTO-005", "LIFE-005"),
        fix="Raise the SDK, or add the revision to those that initialize agrees to once the rest "
        "of this list is done.",
    ),
    MigrationItem(
        id="origin",
        since=_D,
        title="requests of a foreign origin",
        change="a bad Origin had to be refused somehow; now with the status 403",
        looks_for="a request with the Origin of another site: 403",
        rules=("HTTP-101",),
        fix="Compare Origin with the hosts that may use the server and answer others with 403.",
    ),
    MigrationItem(
        id="tool-schemas",
        since=_D,
        title="schemas of tools",
        change="the dialect is JSON Schema 2020-12 unless $schema names another, and must be valid",
        looks_for="every inputSchema and outputSchema, compiled",
        rules=("TOOL-002", "TOOL-003", "TOOLS-016"),
        fix="Make each schema valid in 2020-12, or name its dialect in $schema.",
    ),
    MigrationItem(
        id="tool-names",
        since=_D,
        title="names of tools",
        change="they were free; now 1 to 128 letters, digits, _, - and . are recommended",
        looks_for="the names in tools/list",
        rules=("TOOL-004", "TOOL-005"),
        fix="Rename tools to 1 to 128 characters of A-Z, a-z, 0-9, _, - and ., each name once.",
    ),
    MigrationItem(
        id="argument-errors",
        since=_D,
        title="wrong arguments",
        change="they were protocol errors; now a result with isError, so that a model can react",
        looks_for="a read-only tool called without its required arguments: a result with isError",
        rules=("TOOLS-008", "TOOLS-007"),
        fix="Return a result with isError and a text that says what is wrong with the arguments.",
    ),
    MigrationItem(
        id="batches",
        since=_C,
        title="batches",
        change="2025-03-26 had arrays of messages; since then a message is one object",
        looks_for="an array of two pings: refused or ignored, and the server stays usable",
        rules=("JSONRPC-007", "JSONRPC-006", "MSG-011"),
        fix="Send no arrays, and answer one that comes with -32600 (over HTTP with 400).",
    ),
    MigrationItem(
        id="version-header",
        since=_C,
        until=_E,
        title="the MCP-Protocol-Version header",
        change="every HTTP request after initialize names the version, and a bad one gets 400",
        looks_for="a request with the version 1900-01-01: 400; one without the header: served",
        rules=("HTTP-107", "HTTP-108"),
        fix="Answer an unknown MCP-Protocol-Version with 400, and take a missing one for "
        "2025-03-26.",
    ),
    MigrationItem(
        id="structured-output",
        since=_C,
        title="structured output of tools",
        change="a tool with an outputSchema must return structuredContent that fits it",
        looks_for="results of read-only tools that have an outputSchema",
        rules=("SCHEMA-006", "TOOLS-003"),
        fix="Return structuredContent that fits the outputSchema, and the same as text; or drop "
        "the outputSchema.",
    ),
    MigrationItem(
        id="declared-only",
        since=_C,
        until=_E,
        title="only what was negotiated",
        change="keeping to the capabilities of the client was advice; now it is a must",
        looks_for="requests from the server in a session whose client declares nothing",
        rules=("CAP-002", "SAMPLE-001", "ELICIT-001", "ROOTS-001"),
        fix="Ask for sampling, elicitation or roots only where the client declared them in "
        "initialize.",
    ),
    MigrationItem(
        id="meta-keys",
        since=_C,
        title="keys of _meta",
        change="they were free; now they have a grammar and reserved prefixes",
        looks_for="the keys of every _meta that was seen",
        rules=("MSG-016", "JSONRPC-012"),
        fix="Name your own keys like com.example/name, and leave prefixes with mcp or "
        "modelcontextprotocol to the specification.",
    ),
    MigrationItem(
        id="resource-uris",
        since=_C,
        title="resource URIs",
        change="URIs of an own scheme must follow RFC 3986",
        looks_for="the URIs in resources/list",
        rules=("RES-106",),
        fix="Give each resource a URI with a scheme, and percent-encode what RFC 3986 asks for.",
    ),
    MigrationItem(
        id="titles",
        since=_C,
        title="titles",
        change="tools, resources and prompts may have a title for people beside their name",
        looks_for="the titles in the lists: each is a text",
        rules=("SHAPE-001", "RESTPL-001"),
        fix="Make each title a text; name stays what programs use.",
    ),
    MigrationItem(
        id="transport",
        since=_B,
        standing=True,
        title="the HTTP+SSE transport",
        change="two endpoints with an SSE stream became one endpoint: streamable HTTP",
        looks_for="how the server can be reached",
        rules=("HTTP-130", "SSE-001", "HTTP-002"),
        fix="Serve streamable HTTP: one endpoint that takes POST. Keep the SSE endpoints beside it "
        "for as long as older clients are served.",
    ),
    MigrationItem(
        id="batches-received",
        since=_B,
        until=_C,
        title="batches",
        change="arrays of messages must be understood in this one revision",
        looks_for="an array of two pings: both are answered",
        rules=("JSONRPC-006",),
        fix="Process each message of an array and answer the requests in it; or move on to "
        "2025-06-18, which has no batches any more.",
    ),
    MigrationItem(
        id="completions",
        since=_B,
        title="the completions capability",
        change="completion needed no capability; now it must be declared",
        looks_for="completion/complete of a server that does not declare completions",
        rules=("COMPL-001", "COMPL-002"),
        fix="Declare completions where completion/complete is served.",
    ),
    MigrationItem(
        id="notifications",
        since=_B,
        title="unknown notifications",
        change="that a notification is never answered became a must",
        looks_for="a notification that nobody knows: no answer, and the server stays usable",
        rules=("JSONRPC-005", "MSG-008"),
        fix="Ignore notifications that you don't know.",
    ),
    MigrationItem(
        id="utf-8",
        since=_B,
        title="UTF-8",
        change="that messages are UTF-8 became a must",
        looks_for="the bytes of every message that was seen",
        rules=("MSG-002",),
        fix="Write messages as UTF-8, whatever the locale of the process is.",
    ),
    MigrationItem(
        id="audio",
        since=_B,
        title="audio",
        change="content may be audio: base64 with a MIME type",
        looks_for="audio among the contents that were seen",
        rules=("CONTENT-001", "PROMPT-108"),
        fix="Give audio content data in base64 and a mimeType.",
    ),
)
