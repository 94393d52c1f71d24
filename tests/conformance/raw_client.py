"""A client of the standard library alone, for the scenarios: sound, or broken in one way.

Called as the official suite calls clients: the server's URL is the last argument; over stdio the
server's command is in the environment. `--break NAME` picks what it does wrong; `NAME` is looked
up where the deed is done, so each way is one condition.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

META = "io.modelcontextprotocol/"
HANDSHAKE = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
STATELESS = VERSION >= "2026"
WRONG = sys.argv[2] if sys.argv[1:2] == ["--break"] else ""
"""The way in which this client is broken, or odd although it is sound; empty for a plain one."""
SPEAKS_ONLY = WRONG.removeprefix("speaks-only-") if WRONG.startswith("speaks-only-") else ""
if SPEAKS_ONLY:
    VERSION, STATELESS = SPEAKS_ONLY, SPEAKS_ONLY >= "2026"

Obj = dict[str, Any]


class RefusedError(Exception):
    def __init__(self, error: Obj) -> None:
        super().__init__(str(error))
        self.error = error


class LateError(Exception):
    """No answer came in the time that was given."""


def is_safe(text: str) -> bool:
    return text == text.strip() and all(" " <= one <= "~" for one in text)


def header_value(value: Any) -> str:
    text = json.dumps(value) if not isinstance(value, str) else value
    if is_safe(text) or WRONG == "sends-unsafe-values-plain":
        return "".join(one for one in text if " " <= one <= "~").strip()
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


class Http:
    """Streamable HTTP: one connection for each request, which is slow and simple."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self.host, self.path = parts.netloc, parts.path or "/"
        self.session: str | None = None
        self.version: str | None = None
        self.last_event: str | None = None
        self.retry = 0.0

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, timeout=timeout)

    def headers(self, message: Obj | None) -> dict[str, str]:
        found = {"Accept": "application/json, text/event-stream"}
        if self.session is not None:
            found["Mcp-Session-Id"] = self.session
        if message is not None:
            found["Content-Type"] = "application/json"
        if STATELESS:
            found |= stateless_headers(message or {})
        elif self.version is not None and WRONG != "sends-no-version-header":
            asked_for = WRONG == "names-the-version-it-asked-for"
            found["MCP-Protocol-Version"] = VERSION if asked_for else self.version
        return found

    def exchange(self, message: Obj, extra: dict[str, str], timeout: float) -> Iterator[Obj]:
        connection = self.connect(timeout)
        try:
            body = json.dumps(message).encode()
            connection.request("POST", self.path, body, {**self.headers(message), **extra})
            yield from self.read(connection.getresponse())
        finally:
            connection.close()

    def read(self, response: http.client.HTTPResponse) -> Iterator[Obj]:
        self.session = response.headers.get("Mcp-Session-Id", self.session)
        kind = (response.headers.get("Content-Type") or "").partition(";")[0]
        if kind == "text/event-stream":
            yield from self.events(response)
        else:
            body = response.read()
            if body and kind == "application/json":
                yield json.loads(body)

    def events(self, response: http.client.HTTPResponse) -> Iterator[Obj]:
        data: list[str] = []
        while line := response.readline():
            name, _, value = line.decode().rstrip("\r\n").partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name == "id":
                self.last_event = value
            elif name == "retry":
                self.retry = int(value) / 1000
            elif not name and not value and data:
                text, data = "\n".join(data), []
                if text.strip():
                    try:
                        yield json.loads(text)
                    except ValueError:
                        if WRONG == "dies-of-broken-json":
                            raise

    def resume(self, timeout: float) -> Iterator[Obj]:
        if WRONG != "ignores-retry":
            time.sleep(self.retry)
        headers = {**self.headers(None), "Accept": "text/event-stream"}
        if self.last_event is not None and WRONG != "forgets-last-event-id":
            headers["Last-Event-ID"] = self.last_event
        connection = self.connect(timeout)
        try:
            connection.request("GET", self.path, None, headers)
            yield from self.read(connection.getresponse())
        finally:
            connection.close()

    def listen(self, serve: Callable[[Obj], None]) -> None:
        """What the server sends on its own account comes on a stream that the client opens."""
        connection = self.connect(20.0)
        headers = {**self.headers(None), "Accept": "text/event-stream"}
        connection.request("GET", self.path, None, headers)
        response = connection.getresponse()

        def read() -> None:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                for message in self.read(response):
                    serve(message)

        threading.Thread(target=read, daemon=True).start()

    def tell(self, message: Obj) -> None:
        for _ in self.exchange(message, {}, 20.0):
            pass

    def close(self) -> None:
        if self.session is not None:
            connection = self.connect(5.0)
            connection.request("DELETE", self.path, None, self.headers(None))
            connection.getresponse().read()
            connection.close()


def stateless_headers(message: Obj) -> dict[str, str]:
    method = message.get("method", "")
    found = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method}
    params = message.get("params", {})
    name = params.get("uri") if method == "resources/read" else params.get("name")
    if method in {"tools/call", "prompts/get", "resources/read"} and name is not None:
        found["Mcp-Name"] = name
    if WRONG == "sends-no-version-header":
        del found["MCP-Protocol-Version"]
    if WRONG == "version-header-differs":
        found["MCP-Protocol-Version"] = "2025-11-25"
    if WRONG == "sends-no-method-header":
        del found["Mcp-Method"]
    if WRONG == "method-header-in-capitals":
        found["Mcp-Method"] = method.upper()
    if WRONG == "sends-no-name-header":
        found.pop("Mcp-Name", None)
    if WRONG == "name-header-differs" and "Mcp-Name" in found:
        found["Mcp-Name"] = "another"
    return found


class Stdio:
    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.waiting: dict[Any, list[Obj]] = {}
        self.news = threading.Condition()
        self.ended = False
        self.on_message: Callable[[Obj], None] = lambda message: None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                if WRONG == "dies-of-broken-json":
                    os._exit(1)
                continue
            if "method" in message:
                self.on_message(message)
                continue
            with self.news:
                self.waiting.setdefault(message.get("id"), []).append(message)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def write(self, message: Obj) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def exchange(self, message: Obj, extra: dict[str, str], timeout: float) -> Iterator[Obj]:
        self.write(message)
        with self.news:
            there = self.news.wait_for(lambda: self.ended or message["id"] in self.waiting, timeout)
            if not there or message["id"] not in self.waiting:
                raise TimeoutError
            yield self.waiting.pop(message["id"])[0]

    def tell(self, message: Obj) -> None:
        self.write(message)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


class Client:
    def __init__(self, transport: Http | Stdio) -> None:
        self.transport = transport
        self.ids = 0
        self.requests = 0
        self.schemas: Obj = {}
        if isinstance(transport, Stdio):
            transport.on_message = self.serve

    # Declaring

    def capabilities(self) -> Obj:
        declared: Obj = {}
        if SCENARIO in {"elicitation-sep1034-client-defaults", "sep-2322-client-request-state"}:
            declared = {"elicitation": {"form": {}} if VERSION > "2025-06-18" else {}}
        if SCENARIO in {"client-capabilities", "client-capabilities-undeclared"}:
            declared = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
        for name in ("roots", "sampling", "elicitation"):
            if WRONG in {f"hides-{name}", f"undeclared-{name}", f"cancels-undeclared-{name}"}:
                declared.pop(name, None)
            if f"malformed-{name}" == WRONG:
                declared[name] = True
        if WRONG == "declares-for-some-requests" and self.requests > 1:
            declared = {}
        return declared

    def meta(self) -> Obj:
        found: Obj = {
            META + "protocolVersion": VERSION,
            META + "clientCapabilities": self.capabilities(),
            META + "clientInfo": {"name": "raw", "version": "1"},
        }
        if WRONG == "sends-no-capabilities" or (
            WRONG == "declares-only-once" and self.requests > 1
        ):
            del found[META + "clientCapabilities"]
        if WRONG == "hides-its-name":
            del found[META + "clientInfo"]
        return found

    # Asking

    def request(
        self, method: str, params: Obj | None = None, timeout: float = 20.0, **extra: str
    ) -> Obj:
        self.requests += 1
        if not (WRONG == "uses-the-same-id" and params is not None and "inputResponses" in params):
            self.ids += 1
        params = dict(params or {})
        if STATELESS:
            params["_meta"] = self.meta()
        message = {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}
        if WRONG == "leaves-out-jsonrpc" and method == "tools/call":
            del message["jsonrpc"]
        answer = self.answer_to(message, extra, timeout)
        if "error" in answer:
            raise RefusedError(answer["error"])
        result: Obj = answer["result"]
        return result

    def answer_to(self, message: Obj, extra: dict[str, str], timeout: float) -> Obj:
        try:
            for came in self.transport.exchange(message, extra, timeout):
                if "method" in came:
                    self.serve(came)
                elif came.get("id") == message["id"]:
                    return came
                elif WRONG == "dies-of-unknown-answers" or is_no_answer(came):
                    raise RefusedError(came.get("error", {"message": "not my answer"}))
            if isinstance(self.transport, Http) and self.transport.retry:
                return self.resumed(message, timeout)
        except TimeoutError:
            self.give_up(message)
            raise LateError(message["method"]) from None
        raise LateError(f"no answer to {message['method']}")

    def resumed(self, message: Obj, timeout: float) -> Obj:
        assert isinstance(self.transport, Http)
        if WRONG != "does-not-come-back":
            for came in self.transport.resume(timeout):
                if came.get("id") == message["id"]:
                    return came
        raise LateError("the stream ended")

    def give_up(self, message: Obj) -> None:
        if (STATELESS and isinstance(self.transport, Http)) or WRONG == "times-out-quietly":
            return
        identifier = 4711 if WRONG == "cancels-another-request" else message["id"]
        self.notify("notifications/cancelled", {"requestId": identifier})

    def notify(self, method: str, params: Obj | None = None) -> None:
        params = dict(params or {})
        if STATELESS:
            params["_meta"] = self.meta()
        self.transport.tell({"jsonrpc": "2.0", "method": method, "params": params})

    # Being asked

    def serve(self, message: Obj) -> None:
        if "id" not in message:
            return
        answer = self.answer(message["method"], message.get("params", {}))
        if answer is None:
            refusal = {"code": -32601, "message": "unknown here"}
            if WRONG == "refuses-with-a-wrong-code":
                refusal["code"] = -32600
            reply: Obj = {"jsonrpc": "2.0", "id": message["id"], "error": refusal}
        else:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer}
        self.transport.tell(reply)

    def answer(self, method: str, params: Obj) -> Obj | None:
        """What this client can do, whatever it declares; None for what it can't."""
        if method == "ping":
            return None if WRONG == "refuses-ping" else {}
        capability = {"roots/list": "roots", "sampling/createMessage": "sampling"}.get(
            method, "elicitation"
        )
        lies = f"lies-about-{capability}" == WRONG
        secretly = WRONG in {f"undeclared-{capability}", f"cancels-undeclared-{capability}"}
        if lies or (capability not in self.capabilities() and not secretly):
            return None
        if method == "roots/list":
            return {"roots": [{"uri": "file:///tmp", "name": "tmp"}]}
        if method == "sampling/createMessage":
            text = {"type": "text", "text": "yes"}
            return {"role": "assistant", "content": text, "model": "raw", "stopReason": "endTurn"}
        if method == "elicitation/create":
            return self.elicited(params)
        return None

    def elicited(self, params: Obj) -> Obj:
        if WRONG == "declines":
            return {"action": "decline"}
        if WRONG.startswith("cancels"):
            return {"action": "cancel"}
        if params.get("mode") == "url":
            return {"action": "accept"}
        properties = params.get("requestedSchema", {}).get("properties", {})
        content = {key: about["default"] for key, about in properties.items() if "default" in about}
        if WRONG.startswith("leaves-out-field-"):
            content.pop(WRONG.removeprefix("leaves-out-field-"), None)
        if WRONG == "fills-in-text" and "age" in content:
            content["age"] = "thirty"
        return {"action": "accept", "content": content or {"confirmed": True}}

    # The rounds of the stateless era

    def call(self, name: str, arguments: Obj | None = None, timeout: float = 20.0) -> Obj:
        params: Obj = {"name": name, "arguments": arguments or {}}
        result = self.request("tools/call", params, timeout, **self.mirrored(name, arguments or {}))
        asks = result.get("resultType") == "input_required"
        if WRONG == "retries-what-is-complete" and name == "test_mrtr_no_result_type":
            asks, result = True, {"inputRequests": {}}
        if not asks:
            return result
        responses = {}
        for key, asked in result["inputRequests"].items():
            answer = self.answer(asked["method"], asked.get("params", {}))
            if answer is None:
                raise RefusedError({"message": f"{asked['method']} is not supported"})
            responses[key] = answer
        again: Obj = {**params, "inputResponses": responses}
        if "requestState" in result:
            state = result["requestState"]
            again["requestState"] = state + " " if WRONG == "tampers-with-the-state" else state
        elif WRONG == "invents-a-state":
            again["requestState"] = "made up"
        if WRONG == "leaks-answers" and name == "test_mrtr_echo_state":
            leaked = {"name": "test_mrtr_unrelated", "arguments": {}, "requestState": "x"}
            self.request("tools/call", leaked)
        return self.request("tools/call", again)

    def list_tools(self) -> list[Obj]:
        tools: list[Obj] = []
        cursor: Any = None
        while True:
            page = self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if cursor is None or WRONG == "reads-one-page":
                break
            if WRONG == "trims-cursors":
                cursor = cursor.strip()
        self.schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
        return tools

    def mirrored(self, name: str, arguments: Obj) -> dict[str, str]:
        found = {}
        for key, about in self.schemas.get(name, {}).get("properties", {}).items():
            header, value = about.get("x-mcp-header"), arguments.get(key)
            if WRONG == "mirrors-everything" and header is None:
                header = key
            if (
                WRONG == "mirrors-null"
                and header is not None
                and key in arguments
                and value is None
            ):
                value = "null"
            if header is None or value is None or WRONG == "mirrors-nothing":
                continue
            if WRONG == "writes-true-in-capitals" and isinstance(value, bool):
                value = str(value)
            found[f"Mcp-Param-{header}"] = header_value(value)
        return found if STATELESS else {}


def is_no_answer(message: Obj) -> bool:
    """An error that says no id is about a request that could not be read."""
    return message.get("id") is None and "error" in message


def connect(client: Client) -> None:
    if STATELESS:
        try:
            client.request("server/discover")
        except RefusedError as refused:
            if refused.error.get("code") != -32022 or WRONG == "gives-up-on-its-version":
                raise
            client.request("server/discover")
        return
    if WRONG == "asks-discover-first":
        probe_the_era(client)
    params: Obj = {
        "protocolVersion": "1.0" if WRONG == "invents-a-version" else VERSION,
        "capabilities": client.capabilities(),
        "clientInfo": {"name": "raw", "version": "1"},
    }
    if WRONG == "hides-its-name":
        del params["clientInfo"]["name"]
    result = client.request("initialize", params)
    agreed = result["protocolVersion"]
    spoken = {SPEAKS_ONLY} if SPEAKS_ONLY else HANDSHAKE
    if agreed not in spoken and WRONG != "speaks-any-version":
        raise SystemExit(f"can't speak {agreed}")
    if isinstance(client.transport, Http):
        client.transport.version = agreed
    if WRONG != "forgets-initialized":
        client.notify("notifications/initialized")
    if isinstance(client.transport, Http) and SCENARIO == "elicitation-sep1034-client-defaults":
        client.transport.listen(client.serve)


def probe_the_era(client: Client) -> None:
    """As a client of both eras does: whatever is refused, initialize follows."""
    client.ids += 1
    meta = {**client.meta(), META + "protocolVersion": "2026-07-28"}
    params = {"_meta": meta}
    probe = {"jsonrpc": "2.0", "id": client.ids, "method": "server/discover", "params": params}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}
    for came in client.transport.exchange(probe, headers, 20.0):
        if "error" in came:
            return
    raise SystemExit("the probe was not refused")


def call_all(client: Client, calls: list[Obj]) -> None:
    """Each call is made, whatever became of the one before."""
    for call in calls:
        if call["name"] not in client.schemas:
            continue
        try:
            client.call(call["name"], call["arguments"], call.get("timeoutMs", 20_000) / 1000)
        except (RefusedError, LateError, ConnectionError, http.client.HTTPException, ValueError):
            if WRONG == "stops-at-the-first-error":
                raise
            if WRONG == "repeats-what-failed":
                with contextlib.suppress(RefusedError):
                    client.call(call["name"], call["arguments"])


def add_numbers(client: Client, tools: list[Obj]) -> None:
    if WRONG != "calls-nothing":
        client.call("add_numbers", {"a": "5" if WRONG == "sends-text" else 5, "b": 3})


def use_everything(client: Client, tools: list[Obj]) -> None:
    call_every_tool(client, tools)
    for one in client.request("resources/list")["resources"]:
        client.request("resources/read", {"uri": one["uri"]})
    for one in client.request("prompts/list")["prompts"]:
        client.request("prompts/get", {"name": one["name"]})


def call_usable_tools(client: Client, tools: list[Obj]) -> None:
    if WRONG == "calls-every-tool":
        client.schemas = {}
    for tool in tools:
        if is_usable(tool) or WRONG == "calls-every-tool":
            client.call(tool["name"], dict.fromkeys(tool["inputSchema"]["required"], "x"))


def look_at_references(client: Client, tools: list[Obj]) -> None:
    if WRONG == "fetches-references":
        import urllib.request  # takes an eighth of the time of a start, and only this needs it

        address = tools[0]["inputSchema"]["properties"]["profile"]["$ref"]
        urllib.request.urlopen(address).read()


def echo_schema(client: Client, tools: list[Obj]) -> None:
    schema = dict(client.schemas["json_schema_2020_12_tool"])
    if WRONG.startswith("strips-"):
        schema.pop(WRONG.removeprefix("strips-"))
    client.call("json_schema_echo", {"schema": schema})


def call_every_tool(client: Client, tools: list[Obj]) -> None:
    for tool in tools:
        client.call(tool["name"])


PLAYS = {
    "tools_call": add_numbers,
    "http-standard-headers": use_everything,
    "http-invalid-tool-headers": call_usable_tools,
    "json-schema-ref-no-deref": look_at_references,
    "json-schema-2020-12-preservation": echo_schema,
    "elicitation-sep1034-client-defaults": call_every_tool,
    "sse-retry": call_every_tool,
    "sep-2322-client-request-state": call_every_tool,
}


def play(client: Client) -> None:
    tools = client.list_tools()
    if SCENARIO in PLAYS:
        PLAYS[SCENARIO](client, tools)
    elif "toolCalls" in CONTEXT and WRONG != "calls-nothing":
        call_all(client, CONTEXT["toolCalls"])


def is_usable(tool: Obj) -> bool:
    names = []
    for about in tool["inputSchema"].get("properties", {}).values():
        header = about.get("x-mcp-header")
        if header is None:
            continue
        if about.get("type") not in {"string", "integer", "boolean"}:
            return False
        if not header or not all("!" <= one <= "~" and one != ":" for one in header):
            return False
        names.append(header.lower())
    return len(names) == len(set(names))


def main(arguments: list[str]) -> int:
    if WRONG:
        arguments = arguments[2:]
    if WRONG == "does-nothing":
        return 0
    if WRONG == "hangs":
        threading.Event().wait()
    command = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))
    for _ in range(2 if WRONG == "connects-twice" else 1):
        transport = Stdio(command) if command else Http(arguments[-1])
        client = Client(transport)
        connect(client)
        play(client)
        transport.close()
    return 3 if WRONG == "ends-with-an-error" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
