"""What the step to 2026-07-28 changes for a server: no handshake, no sessions, no callbacks."""

from __future__ import annotations

from typing import Final

from mcptest.model.revision import Revision
from mcptest.rules.migration_item import MigrationItem

_E: Final = Revision.V2026_07_28

STATELESS_ITEMS: Final = (
    MigrationItem(
        id="discover",
        since=_E,
        title="a session without a handshake",
        change="initialize is gone; server/discover tells versions and capabilities instead",
        looks_for="server/discover on a fresh connection: a result with supportedVersions",
        rules=("PROTO-010", "META-007", "PROTO-001", "PROTO-020"),
        fix="Answer server/discover with supportedVersions, capabilities, resultType, ttlMs and "
        "cacheScope. Keep initialize beside it for as long as older clients are served.",
    ),
    MigrationItem(
        id="request-meta",
        since=_E,
        title="requests that stand on their own",
        change="version and client capabilities come in the _meta of every request, not once",
        looks_for="a list without any handshake is served; the same without _meta gets -32602",
        rules=("PROTO-011", "PROTO-012", "PROTO-013", "PROTO-016", "LIFE-002"),
        fix="Take protocolVersion and clientCapabilities from the _meta of each request, refuse a "
        "request without them with -32602, and remember nothing of earlier ones.",
    ),
    MigrationItem(
        id="version-error",
        since=_E,
        title="an unsupported version",
        change="it was answered with a counter-offer; now with -32022 and the supported versions",
        looks_for="server/discover in the version 1900-01-01: -32022 with data.supported",
        rules=("PROTO-014", "MSG-015", "PROTO-004"),
        fix="Answer a version that you don't speak with -32022, data.supported and data.requested "
        "(over HTTP with the status 400).",
    ),
    MigrationItem(
        id="sessions",
        since=_E,
        title="HTTP sessions",
        change="Mcp-Session-Id is gone: none is given out, and one that comes is ignored",
        looks_for="session ids in responses, and whether a request without one is served",
        rules=("HTTP-015", "HTTP-125", "HTTP-104", "HTTP-105", "HTTP-106", "PROTO-024"),
        fix="Give out no Mcp-Session-Id. Keep state that calls share behind a handle that a tool "
        "returns and later calls name as an argument.",
    ),
    MigrationItem(
        id="ping",
        since=_E,
        title="ping",
        change="it had to be answered; now it is an unknown method, and the server sends none",
        looks_for="ping sent in the new form: -32601",
        rules=("PROTO-021", "LIFE-008"),
        fix="Answer ping with -32601 when the request speaks the new revision, and stop sending "
        "pings: a closed stream tells that the client is gone.",
    ),
    MigrationItem(
        id="logging",
        since=_E,
        title="log levels",
        change="logging/setLevel is gone; a request asks for log messages in its own _meta",
        looks_for="the logging capability, logging/setLevel, and log messages nobody asked for",
        rules=("LOG-106", "LOG-004", "LOG-103", "LOG-104", "LOG-101"),
        fix="Read io.modelcontextprotocol/logLevel from the _meta of each request, send log "
        "messages only for requests that have it, and drop logging/setLevel.",
    ),
    MigrationItem(
        id="subscriptions",
        since=_E,
        title="subscriptions and announcements",
        change="resources/subscribe and unasked announcements are gone; subscriptions/listen "
        "opens the one stream that carries them",
        looks_for="resources.subscribe and listChanged, resources/subscribe, subscriptions/listen",
        rules=("SUBS-001", "SUBS-002", "SUBS-107", "SUBS-104", "SUBS-105"),
        fix="Serve subscriptions/listen: acknowledge first, then send list_changed and updated "
        "notifications on that stream only, tagged with its subscriptionId. Drop "
        "resources/subscribe and resources/unsubscribe.",
    ),
    MigrationItem(
        id="server-requests",
        since=_E,
        title="questions of the server to the client",
        change="sampling, elicitation, roots and ping were requests of the server; now a result "
        "of the type input_required asks, and the client calls again with the answers",
        looks_for="requests from the server while safe tools, prompts and resources are used",
        rules=("META-005", "MRTR-001", "MRTR-002", "MRTR-003", "CAP-002", "PROTO-018"),
        fix="Return resultType input_required with inputRequests (and a requestState of your own) "
        "where you asked the client, and go on when the call comes again with inputResponses.",
    ),
    MigrationItem(
        id="result-type",
        since=_E,
        title="the type of a result",
        change="every result says resultType: complete, or input_required",
        looks_for="resultType in every result that was seen",
        rules=("META-003", "SHAPE-001"),
        fix='Add "resultType": "complete" to every result.',
    ),
    MigrationItem(
        id="cache-hints",
        since=_E,
        title="cache hints",
        change="discovery, lists and resource contents say how long and for whom they are good",
        looks_for="ttlMs and cacheScope in the six results that must have them",
        rules=("META-004", "PAGE-004"),
        fix="Add ttlMs (0 where nothing may be cached) and cacheScope (public or private) to "
        "server/discover, every list and resources/read.",
    ),
    MigrationItem(
        id="missing-resource",
        since=_E,
        title="the error for a missing resource",
        change="-32002 became -32602, and empty contents are no answer",
        looks_for="resources/read of a URI that does not exist: -32602",
        rules=("RES-102", "RES-103"),
        fix="Answer resources/read of an unknown URI with -32602, never with -32002 or with empty "
        "contents.",
    ),
    MigrationItem(
        id="error-codes",
        since=_E,
        title="error codes",
        change="-32020 to -32099 belong to the specification, -32042 and -32002 are gone, "
        "-32000 to -32019 are only a legacy",
        looks_for="the codes of every error that was seen",
        rules=("MSG-013", "MSG-014", "ELICIT-007"),
        fix="Use the standard codes of JSON-RPC and -32020, -32021 and -32022 for what they are "
        "defined for; take your own codes from outside -32768 to -32000.",
    ),
    MigrationItem(
        id="tasks",
        since=_E,
        title="tasks",
        change="the experimental tasks of the core are gone; there is an extension",
        looks_for="the tasks capability, execution.taskSupport of tools, and tasks/list",
        rules=("TASK-101", "TASK-102", "TASK-103", "TASK-104", "TASK-001"),
        fix="Drop the tasks capability, tasks/list and tasks/result. Where tasks are needed, "
        "declare the extension io.modelcontextprotocol/tasks and answer tasks/get inline.",
    ),
    MigrationItem(
        id="stable-lists",
        since=_E,
        title="lists that depend on nothing",
        change="tools, resources and prompts must not depend on the connection or earlier calls",
        looks_for="the same lists on two connections and after the calls",
        rules=("PROTO-019", "TOOLS-002"),
        fix="List the same items on every connection; what a caller may see can follow from its "
        "credentials, not from what was called before.",
    ),
    MigrationItem(
        id="protocol-headers",
        since=_E,
        title="headers that repeat the body",
        change="MCP-Protocol-Version, Mcp-Method and Mcp-Name come with every request and are "
        "compared with the body",
        looks_for="requests whose headers are missing or name something else: 400 with -32020",
        rules=("HTTP-111", "HTTP-112", "HTTP-113", "HTTP-114", "HTTP-115", "HTTP-117"),
        fix="Compare the three headers with the body and refuse a difference with the status 400 "
        "and -32020; let them through your gateways and CORS rules.",
    ),
    MigrationItem(
        id="param-headers",
        since=_E,
        title="arguments that travel as headers",
        change="arguments annotated with x-mcp-header are repeated as Mcp-Param headers",
        looks_for="x-mcp-header in input schemas, and a call without the header: -32020",
        rules=("TOOLS-013", "HTTP-120", "HTTP-121", "HTTP-122", "HTTP-123"),
        fix="Keep annotations to texts, whole numbers and booleans that properties lead to, and "
        "refuse a call whose header is missing or differs with 400 and -32020.",
    ),
    MigrationItem(
        id="http-methods",
        since=_E,
        title="GET and DELETE on the endpoint",
        change="the GET stream, Last-Event-ID and DELETE are gone: both methods get 405",
        looks_for="GET and DELETE in the new version: 405",
        rules=("HTTP-102", "HTTP-103", "HTTP-126", "HTTP-008", "HTTP-009"),
        fix="Answer GET and DELETE with 405 for requests of the new revision; what was pushed on "
        "the GET stream goes to subscriptions/listen.",
    ),
    MigrationItem(
        id="http-status",
        since=_E,
        title="HTTP status of errors",
        change="an unknown method came with 200; now with 404, and refused requests with 400",
        looks_for="an unknown method in the new form: 404 with -32601",
        rules=("HTTP-013", "JSONRPC-001"),
        fix="Send -32601 with the status 404, and -32602, -32020, -32021 and -32022 for refused "
        "requests with 400.",
    ),
    MigrationItem(
        id="exit-on-eof",
        since=_E,
        title="the end of a process",
        change="a server on stdio should exit by itself when its input ends",
        looks_for="whether the process ended once its stdin was closed",
        rules=("STDIO-101",),
        fix="End the process when stdin is at its end.",
    ),
)
