"""Whatever a client sends, the scripts of all scenarios stand it: a defect is never its doing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcptest.core.capture import Sse
from mcptest.core.revision import Revision
from mcptest.core.verdict import Side
from mcptest.probe.conformance.scenario_catalogue import scenario_table
from mcptest.servers.demo.jsonrpc import Refusal, kind_of
from mcptest.servers.scripted.script import Obj, Script, ScriptedCall, ScriptStage, Visit
from tests.support.playing import PREFIX, Adder, D, E

ODD: tuple[Any, ...] = (None, 0, -1.5, True, "", "é\x00", [], [None], {}, {"a": {}}, {"x": [1]})
KEYS = ("name", "arguments", "uri", "cursor", "inputResponses", "requestState", "notifications")
METHODS = (
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "no/such",
)
PATHS = ("", "/", "/mcp", "/authorize", "/token", "/register", "/.well-known/openid-configuration")
FORMS = (b"", b"a=1&a=2&%ff", b"[1]", b'{"redirect_uris":5}', b"\xff", b"grant_type=x&code=y")
CASES = [
    (name, revision, transport)
    for name, scenario in scenario_table(Side.CLIENT).items()
    for revision in sorted(scenario.revisions)
    for transport in sorted(scenario.transports)
]


class Pretended(ScriptStage):
    """A stage without a wire. What was to be done later is done when it is asked for."""

    def __init__(self, revision: Revision, transport: str) -> None:
        self.revision = revision
        self.offered = (revision,)
        self.transport = transport
        self.later: list[Callable[[], None]] = []

    def url(self, origin: str = "mcp") -> str:
        assert self.transport == "http", "there are no addresses on stdio"
        return f"http://localhost:{1000 + len(origin)}"

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self.later.append(action)

    def note(self, text: str) -> None:
        pass

    def send(self, message: Obj | bytes) -> bool:
        return True

    def let_time_pass(self) -> None:
        for _ in range(3):  # what is done later may itself want something to be done later
            now, self.later = self.later, []
            for action in now:
                action()


class PretendedVisit(Visit):
    def __init__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        self.origin, self.method, self.path = "mcp", method, path
        self.query = {"redirect_uri": "\r\n", "state": "\xff", "scope": ""}
        self.headers, self.body = headers, body

    def respond(self, status: int, body: bytes | Obj = b"", **more: Any) -> None:
        assert 200 <= status < 600

    def stream(self, headers: Mapping[str, str] | None = None) -> Visit:
        return self

    def message(self, message: Obj | bytes, *, event_id: str | None = None) -> None:
        pass

    def event(self, sse: Sse, data: str = "", comment: str | None = None) -> None:
        pass

    def end(self) -> None:
        pass

    def cut(self) -> None:
        pass


class PretendedCall(ScriptedCall):
    def __init__(self, script: Script, message: Obj, transport: str) -> None:
        self.id, self.method, self.message = message["id"], message["method"], message
        self.params = message.get("params", {})
        named = self.params.get("name", self.params.get("uri"))
        headers = {
            "mcp-method": self.method,
            "mcp-name": named if isinstance(named, str) else "",
            "mcp-protocol-version": script.stage.revision.wire_version,
        }
        self.visit = PretendedVisit("POST", "/mcp", headers, b"{}") if transport == "http" else None
        self.answer_headers = {}
        self._script = script

    def result(self, result: Obj) -> None:
        self.reply({"result": self._script.finish(self, result)})

    def reply(self, message: Obj | bytes, *, status: int = 200) -> None:
        pass

    def send(self, message: Obj | bytes) -> None:
        pass

    def begin_stream(self, priming: Sse | None = None) -> Visit | None:
        return self.visit

    def keep_open(self) -> None:
        pass

    def cut(self) -> None:
        pass


class Client:
    """Says to a script what no client should."""

    def __init__(self, script: Script, stage: Pretended) -> None:
        self.script, self.stage = script, stage
        self.number = 0
        version = stage.revision.wire_version
        self.meta = {f"{PREFIX}protocolVersion": version, f"{PREFIX}clientCapabilities": {}}

    def ask(self, method: str, params: Any) -> None:
        """As the server would pass it on: what it refuses itself never comes to a script."""
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        try:
            kind_of(message)
        except Refusal:
            return
        self.script.request(PretendedCall(self.script, message, self.stage.transport))

    def says_everything(self) -> None:
        if not self.stage.stateless:
            info = {"name": "x", "version": "1"}
            self.ask("initialize", {"protocolVersion": "x", "capabilities": {}, "clientInfo": info})
        tools = getattr(self.script, "tools", ())
        for name in [tool.get("name") for tool in tools] + ["no-such"]:
            for odd in ODD:
                self.ask("tools/call", {"_meta": self.meta, "name": name, "arguments": odd})
                both = {"inputResponses": odd, "requestState": odd}
                self.ask("tools/call", {"_meta": self.meta, "name": name, **both})
                keyed = {"inputResponses": {"x": odd}, "arguments": {"a": odd, "b": odd}}
                self.ask("tools/call", {"_meta": self.meta, "name": name, **keyed})
        for method in METHODS:
            for odd in ODD:
                for key in KEYS:
                    self.ask(method, {"_meta": self.meta, key: odd})
                self.ask(method, {"_meta": odd})
                self.ask(method, odd)

    def answers_and_notifies(self) -> None:
        for identifier in (*ODD, "x"):
            for odd in ODD:
                self.script.answered({"jsonrpc": "2.0", "id": identifier, "result": odd})
                self.script.answered({"jsonrpc": "2.0", "id": identifier, "error": odd})
        for odd in ODD:
            for name in ("initialized", "cancelled", "progress", "roots/list_changed"):
                method = f"notifications/{name}"
                self.script.notified({"jsonrpc": "2.0", "method": method, "params": odd})
        self.script.broken(b"\xff")

    def visits(self) -> None:
        for path in PATHS:
            for method in ("GET", "POST", "DELETE", "OPTIONS"):
                for body in FORMS:
                    headers = {"host": "localhost", "authorization": "Basic \xff", "accept": ""}
                    visit = PretendedVisit(method, path, headers, body)
                    for origin in self.script.origins:
                        visit.origin = origin
                        self.script.visit(visit)
                    self.script.hung_up(visit)


@pytest.mark.parametrize("revision", [D, E])
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_a_script_that_trusts_its_client_would_be_found(revision: Revision, transport: str) -> None:
    script, stage = Adder(), Pretended(revision, transport)
    script.begin(stage)
    with pytest.raises((KeyError, TypeError)):
        Client(script, stage).says_everything()


@pytest.mark.parametrize(("name", "revision", "transport"), CASES)
def test_no_message_is_a_defect_of_a_script(name: str, revision: Revision, transport: str) -> None:
    script = scenario_table(Side.CLIENT)[name].script()
    stage = Pretended(revision, transport)
    script.begin(stage)
    client = Client(script, stage)
    client.says_everything()
    client.answers_and_notifies()
    if transport == "http":
        client.visits()
    stage.let_time_pass()
    script.settled()
