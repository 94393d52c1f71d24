"""Input schemas in the hands of a client: kept as they are, and no reason to use the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcptest.core.revision import Revision
from mcptest.probe.conformance.client.client_headers import Anything
from mcptest.probe.conformance.client.seen import SeenMessage, SeenSession
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Findings,
    Judge,
    bad,
    good,
    inside,
    missing,
    shown,
    skipped,
)
from mcptest.probe.conformance.scenario_catalogue import server_members
from mcptest.servers.scripted.script import Obj, ScriptStage
from mcptest.servers.scripted.sites import Visit

CANARY = "/canary/profile-schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ECHO = "json_schema_echo"


class Tempting(Anything):
    """A tool whose schema refers to an address that can be fetched."""

    def begin(self, stage: ScriptStage) -> None:
        super().begin(stage)
        address = f"{stage.url()}{CANARY}" if stage.transport == "http" else "http://127.0.0.1:9/x"
        schema = {
            "$schema": DIALECT,
            "type": "object",
            "$defs": {"userId": {"type": "string", "pattern": "^[a-z0-9-]+$"}},
            "properties": {"id": {"$ref": "#/$defs/userId"}, "profile": {"$ref": address}},
            "required": ["id"],
        }
        about = "Finds the profile of a user"
        self.tools = ({"name": "lookup_user", "description": about, "inputSchema": schema},)

    def visit(self, visit: Visit) -> bool:
        if visit.path != CANARY:
            return super().visit(visit)
        visit.respond(200, {"$schema": DIALECT, "type": "object"})
        return True


def no_network_ref_deref(seen: SeenSession) -> CheckFinding:
    fetched = [one for one in seen.visits if one.path == CANARY]
    listed = seen.requests("tools/list")
    if fetched:
        return bad(f"the client fetched the address in $ref {len(fetched)} times", fetched[0])
    if not listed:
        return missing("the client did not list the tools, so it never received the address")
    return good(listed[0])


SCHEMA = server_members("json-schema-2020-12-preservation")["tools"][0]["inputSchema"]


def _echoed(seen: SeenSession) -> list[tuple[SeenMessage, Obj]]:
    """The first call that gave the schema back, with what it gave."""
    calls = ((call, inside(call.params, "arguments", "schema")) for call in seen.calls(ECHO))
    return [(call, schema) for call, schema in calls if isinstance(schema, dict)][:1]


def json_schema_2020_12_client_echo_completed(seen: SeenSession) -> Findings:
    return (good(call) for call, _ in _echoed(seen))


def survives(
    keywords: Sequence[str] = (),
    path: Sequence[str] = (),
    *,
    names: bool = False,
    since: str = "2025-11-25",
) -> Judge[SeenSession]:
    """These keywords of the schema come back equal, or what is at the path, or the names in that;
    before `since` it is not asked for."""

    def part(schema: Obj) -> Any:
        if not path:
            return {key: schema.get(key) for key in keywords}
        value = inside(schema, *path)
        return list(value or ()) if names else value

    def judge(seen: SeenSession) -> CheckFinding:
        for call, schema in _echoed(seen):
            received, wanted = part(schema), part(SCHEMA)
            if received == wanted:
                return good(call)
            if seen.revision < Revision(since):
                return skipped(f"required only since {since}")
            return bad(f"the client returned {shown(received)}; expected {shown(wanted)}", call)
        return skipped("the client did not return the schema, as another check reports")

    return judge
