"""What a client does first: shake hands, list and call tools, answer a question, reconnect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcptest.core.capture import Sse, StreamEnd
from mcptest.core.message import json_type
from mcptest.core.revision import Revision
from mcptest.probe.conformance.client.seen import SeenSession, declares_forms
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Findings,
    Judge,
    bad,
    good,
    inside,
    missing,
    object_in,
    shown,
    untestable,
    verdict,
    warned,
)
from mcptest.probe.conformance.scenario_catalogue import server_members
from mcptest.servers.scripted.conforming import Conforming
from mcptest.servers.scripted.script import Obj, ScriptedCall
from mcptest.servers.scripted.sites import Visit

_R = Revision
RETRY_MS = 500
EARLY_BY_MS = 50
"""A clock's tolerance: earlier than this before the time that was asked for is too early."""
_CLOSE_AFTER = 0.05


def mcp_client_initialization(seen: SeenSession) -> Findings:
    known = {revision.wire_version for revision in _R}
    for said in seen.requests("initialize")[:1]:
        info = object_in(said.params, "clientInfo")
        version = said.params.get("protocolVersion")
        problems = []
        if not isinstance(version, str) or version not in known:
            problems.append(f"protocolVersion is {shown(version)}, which is not a revision")
        problems += [
            f"clientInfo.{key} is missing"
            for key in ("name", "version")
            if not isinstance(info.get(key), str) or not info[key]
        ]
        yield verdict(problems, said, protocolVersion=version)


def client_initialized_notification(seen: SeenSession) -> Findings:
    for said in seen.sent:
        if said.method == "notifications/initialized":
            yield good(said)
            return


def called_with_numbers(tool: str, *names: str) -> Judge[SeenSession]:
    """The tool was called at least once, each time with these arguments."""

    def judge(seen: SeenSession) -> Findings:
        for call in seen.need_calls(tool):
            arguments = call.params.get("arguments", {})
            if not isinstance(arguments, dict):
                yield bad(f"the arguments are {json_type(arguments)}, not an object", call)
                continue
            yield verdict(
                (
                    f"argument {name} is {shown(arguments.get(name))}"
                    for name in names
                    if not is_number(arguments.get(name))
                ),
                call,
            )

    return judge


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Adding(Conforming):
    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        numbers: list[Any] = [arguments.get(key) for key in ("a", "b")]
        if name != "add_numbers":
            super().call_tool(call, name, arguments)
        elif all(is_number(one) for one in numbers):
            self.text(call, f"{numbers[0]} + {numbers[1]} = {sum(numbers)}")
        else:
            call.result({"content": [{"type": "text", "text": "two numbers"}], "isError": True})


_ASKED = "defaults"
_FIELDS = server_members("elicitation-sep1034-client-defaults")["fields"]


class AskingWithDefaults(Conforming):
    fields: Obj

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        if not declares_forms(self.declared(call)):
            self.text(call, "sends no elicitation to a client that does not declare it")
            return
        schema = {"type": "object", "properties": self.fields, "required": []}
        params = {"message": "Please accept what is filled in", "requestedSchema": schema}
        self.ask_first(call, _ASKED, "elicitation/create", params)


def applies_default(field: str) -> Judge[SeenSession]:
    about = _FIELDS[field]
    fits = _FITS["enum" if "enum" in about else about["type"]]

    def judge(seen: SeenSession) -> Findings:
        if seen.requests("initialize") and not seen.declares(declares_forms):
            yield untestable("the client does not declare elicitation, so it was asked nothing")
        for said in seen.answers(_ASKED)[:1]:
            action = inside(said.value, "result", "action")
            content = object_in(said.value, "result", "content")
            given = f"{field} is {shown(content[field]) if field in content else 'missing'}"
            if action in {"decline", "cancel"}:
                yield untestable(
                    f"the client answered the elicitation with {action}, so it showed no defaults"
                )
            elif action != "accept":
                yield bad("the client did not accept the elicitation", said)
            elif field not in content or not fits(content[field]):
                yield bad(f"{given}; its default is {shown(about['default'])}", said)
            else:
                yield good(said, expected=about["default"], received=content[field])

    return judge


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: is_number(value) and float(value).is_integer(),
    "number": is_number,
    "enum": lambda value: value in _FIELDS["status"]["enum"],
    "boolean": lambda value: isinstance(value, bool),
}


class ClosingEarly(Conforming):
    """Closes the stream of a call before its answer, which is then given to whoever comes back."""

    _owed: Any = None
    _events = 0

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        self._owed = call.id
        stream = call.begin_stream(Sse(id=self._next_id(), retry=RETRY_MS))
        if stream is not None:
            self.stage.after(_CLOSE_AFTER, stream.end)

    def visit(self, visit: Visit) -> bool:
        if visit.method != "GET" or visit.path != self.endpoint:
            return super().visit(visit)
        stream = visit.stream()
        stream.event(Sse(id=self._next_id(), retry=RETRY_MS))
        owed, self._owed = self._owed, None
        if owed is not None:
            result = {"content": [{"type": "text", "text": "here you are again"}]}
            answer = {"jsonrpc": "2.0", "id": owed, "result": result}
            stream.message(answer, event_id=self._next_id())
        return True

    def _next_id(self) -> str:
        self._events += 1
        return f"event-{self._events}"


def _reconnections(seen: SeenSession) -> tuple[float | None, list[Any]]:
    """When the stream of the call ended, and the GET requests after that."""
    ended = None
    for call in seen.calls("test_reconnection")[:1]:
        stream = call.visited.stream if call.visited else None
        for record in seen.records:
            if isinstance(record, StreamEnd) and record.stream == stream:
                ended = record.t
                break
    if ended is None:
        return None, []
    return ended, [one for one in seen.visits if one.method == "GET" and one.t >= ended]


def client_sse_graceful_reconnect(seen: SeenSession) -> CheckFinding:
    ended, visits = _reconnections(seen)
    if ended is None:
        return missing("the client did not call test_reconnection")
    if not visits:
        return bad("the client did not reconnect with a GET after the stream ended")
    return good(visits[0])


def client_sse_retry_timing(seen: SeenSession) -> CheckFinding | None:
    ended, visits = _reconnections(seen)
    if ended is None or not visits:
        return None
    waited = (visits[0].t - ended) * 1000
    problem = f"the client reconnected after {waited:.0f}ms; expected at least {RETRY_MS}ms"
    early = waited < RETRY_MS - EARLY_BY_MS
    return verdict(problem if early else "", visits[0], waited_ms=round(waited))


def client_sse_last_event_id(seen: SeenSession) -> Findings:
    _, visits = _reconnections(seen)
    for visit in visits[:1]:
        if visit.headers.get("last-event-id"):
            yield good(visit)
        else:
            yield warned("the GET has no Last-Event-ID, so the stream cannot be resumed", visit)
