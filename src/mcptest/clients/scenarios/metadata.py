"""What every request of the stateless era carries, and trying again with another version."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.clients.rows import bad, good, reference, shown, skipped, warned, worst_first
from mcptest.clients.scenario import Check, Judge, Row, Scenario
from mcptest.clients.seen import Said, Seen, declared_on
from mcptest.model.revision import Revision
from mcptest.peer.scripted.conforming import Conforming
from mcptest.peer.scripted.request_checks import CAPABILITIES, VERSION
from mcptest.peer.scripted.script import META_PREFIX, Call

CLIENT_INFO = META_PREFIX + "clientInfo"
UNSUPPORTED_VERSION = -32022
_PAGE = "2026-07-28/basic"


class RefusingOnce(Conforming):
    """Says once that it does not speak this version, and offers the one it does."""

    checks_requests = False
    _refused = False

    def request(self, call: Call) -> None:
        if self._refused:
            super().request(call)
            return
        self._refused = True
        self.stage.note("the first request is refused with -32022 on purpose")
        header = call.visit.headers.get("mcp-protocol-version") if call.visit else None
        requested = header or call.meta.get(VERSION) or ""
        call.error(
            UNSUPPORTED_VERSION,
            "this version is not spoken here",
            {"supported": [self.stage.revision.wire_version], "requested": str(requested)},
            status=400,
        )


def _version_header(seen: Seen) -> Iterator[Row]:
    for said in seen.requests():
        header = said.visited.headers.get("mcp-protocol-version") if said.visited else None
        if header is None:
            yield bad(f"{said.method} has no MCP-Protocol-Version header", said)
        else:
            yield good(said, header=header)


def _meta(seen: Seen) -> Iterator[Row]:
    for said in seen.requests():
        problems = []
        if not isinstance(said.meta.get(VERSION), str):
            problems.append("_meta has no protocolVersion")
        if not isinstance(said.meta.get(CAPABILITIES), dict):
            problems.append("_meta has no clientCapabilities")
        yield bad(f"{said.method}: {'; '.join(problems)}", said) if problems else good(said)


def _client_info(seen: Seen) -> Iterator[Row]:
    for said in seen.requests():
        if isinstance(said.meta.get(CLIENT_INFO), dict):
            yield good(said)
        else:
            yield warned(f"{said.method}: _meta has no clientInfo", said)


def _header_equals_meta(seen: Seen) -> Iterator[Row]:
    for said in seen.requests():
        header = said.visited.headers.get("mcp-protocol-version") if said.visited else None
        version = said.meta.get(VERSION)
        if header is None or version is None:
            yield skipped("header or _meta is missing: see the checks about these")
        elif header == version:
            yield good(said)
        else:
            yield bad(f"the header says {shown(header)}, _meta says {shown(version)}", said)


def _retries(seen: Seen) -> Iterator[Row]:
    requests = seen.requests()
    if len(requests) == 1:
        yield warned("the client gave up where it was offered a version that it may speak")
    for said in requests[1:2]:
        wanted = seen.revision.wire_version
        header = said.visited.headers.get("mcp-protocol-version") if said.visited else None
        if said.meta.get(VERSION) == wanted and header in {wanted, None}:
            yield good(said)
        else:
            yield warned(f"the next request does not name the version that was offered, {wanted}")


def _declares(capability: str) -> Judge:
    """What is declared may differ from request to request; one is enough."""

    def judge(seen: Seen) -> Iterator[Row]:
        declaring = [said for said in seen.requests() if capability in declared_on(said)]
        for said in declaring:
            yield _declaration(said, capability)
        for said in [] if declaring else seen.requests()[:1]:
            if seen.mode == "strict":
                yield bad(f"no request declares {capability} (strict)", said)
            else:
                yield skipped(f"{capability} is optional, and not declared")

    return judge


def _declaration(said: Said, capability: str) -> Row:
    value = declared_on(said)[capability]
    if isinstance(value, dict):
        return good(said)
    return bad(f"{capability} is {shown(value)}, not an object", said)


def _worst(judge: Judge) -> Judge:
    return lambda seen: worst_first(judge(seen))


_META_PAGE = reference("SEP-2575", f"{_PAGE}#meta")


def _check(identifier: str, title: str, description: str, judge: Judge, page: str = "") -> Check:
    about = reference("SEP-2575", f"2026-07-28/{page}") if page else _META_PAGE
    return Check(
        id=f"sep-2575-{identifier}",
        title=title,
        description=description,
        judge=_worst(judge),
        references=about,
    )


_HTTP = "basic/transports/streamable-http"

REQUEST_METADATA = Scenario(
    name="request-metadata",
    title="What every request carries",
    description="The server refuses the first request with -32022 and names the version it speaks;"
    " after that it serves. The client is expected to try again with that version, and to send"
    " its version and capabilities with every request, in `_meta` and, over HTTP, in the header.",
    revisions=frozenset({Revision.V2026_07_28}),
    suites=frozenset({"core", "draft"}),
    make=RefusingOnce,
    transports=frozenset({"http"}),
    client_may_fail=True,  # who is refused for its version may say so in place of trying again
    checks=(
        _check(
            "http-client-sends-version-header",
            "ClientSendsVersionHeader",
            "every POST has an MCP-Protocol-Version header",
            _version_header,
            _HTTP,
        ),
        _check(
            "client-populates-meta",
            "ClientPopulatesMeta",
            "every request has protocolVersion and clientCapabilities in _meta",
            _meta,
        ),
        _check(
            "client-sends-client-info",
            "ClientSendsClientInfo",
            "every request says in _meta who the client is",
            _client_info,
        ),
        _check(
            "http-version-header-matches-meta",
            "ClientVersionHeaderMatchesMeta",
            "header and _meta name the same version",
            _header_equals_meta,
            _HTTP,
        ),
        *(
            _check(
                f"client-declares-{capability}-capability",
                f"ClientDeclares{capability.capitalize()}Capability",
                f"{capability}, where it is declared, is an object",
                _declares(capability),
            )
            for capability in ("roots", "sampling", "elicitation")
        ),
        _check(
            "client-retry-supported-version",
            "ClientRetrySupportedVersion",
            "a client that is refused for its version tries the one that was offered",
            _retries,
            "basic/versioning",
        ),
    ),
)

SCENARIOS = (REQUEST_METADATA,)
