"""A server that tells everybody the secrets which it was given, in whatever it says.

On stdio, or over HTTP with `--port-file FILE`, with `--sse` over HTTP+SSE. With `--stateless` it
speaks 2026-07-28. Each secret that reached it is appended to the file
that TELLING_SEEN names: what nobody was given can't be told.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.e2e.legacy_sse_server import event, sse_server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
CAPABILITIES: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}
READS = {"readOnlyHint": True}


def spellings(secret: str) -> dict[str, str]:
    """How a secret may be written, as far as it depends on the secret alone."""
    raw = secret.encode()
    coded = {
        f"base64 after {shift} bytes": base64.b64encode(b"x" * shift + raw).decode()[
            -(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6
        ]
        for shift in range(3)
    }
    return {
        "plain": secret,
        "percent": "".join(f"%{byte:02X}" for byte in raw),
        "percent in small letters": "".join(f"%{byte:02x}" for byte in raw),
        "JSON": "".join(f"\\u{ord(one):04x}" for one in secret),
        "HTML": "".join(f"&#{ord(one)};" for one in secret),
        **coded,
        **{f"{name} for URLs": form.translate({43: 45, 47: 95}) for name, form in coded.items()},
    }


def given_to_a_process() -> list[str]:
    """What stands in the environment and behind the options of the command."""
    found = [value for name, value in os.environ.items() if name.startswith("PLANTED_")]
    for word, following in zip(sys.argv, [*sys.argv[1:], ""], strict=True):
        if word == "--api-key":
            found.append(following)
        elif word.startswith("--password="):
            found.append(word.partition("=")[2])
        elif word == "-H":
            found.append(following.rpartition(" ")[2])
        elif "://" in word:
            url = urlsplit(word.rpartition("=")[2])
            found += [unquote(one) for one in (url.username, url.password) if one]
    return found


def given_with_a_request(path: str, headers: Any) -> list[str]:
    found = [unquote(value) for _, value in parse_qsl(urlsplit(path).query)]
    for name, value in headers.items():
        if name.lower().startswith("x-planted") or name.lower() == "authorization":
            found.append(value.rpartition(" ")[2])
        if value.startswith("Basic "):
            found += base64.b64decode(value[6:]).decode().split(":")
    return found


def note(secrets: list[str]) -> None:
    with Path(os.environ["TELLING_SEEN"]).open("a") as file:
        file.writelines(json.dumps(secret) + "\n" for secret in secrets)


def answers(message: dict[str, Any], secrets: list[str]) -> list[dict[str, Any]]:
    """What is said to a message: everything that can be said holds all secrets."""
    told = "; ".join(form for secret in secrets for form in spellings(secret).values())
    name = "-".join(secret for secret in secrets if secret.isalnum())
    method, params = message.get("method", ""), message.get("params") or {}
    if "id" not in message:
        return []
    sent: list[dict[str, Any]] = []
    token = (params.get("_meta") or {}).get("progressToken")
    if method == "tools/call" and token is not None:
        progress = {"progressToken": token, "progress": 1, "message": told}
        sent.append({"method": "notifications/progress", "params": progress})
    if method == "tools/call":
        log = {"level": "error", "logger": name, "data": told}
        sent.append({"method": "notifications/message", "params": log})
    answer = _answer(method, params, told, name)
    if "--stateless" in sys.argv and method in ("initialize", "server/discover"):
        answer = _discovery(method, told)
    if "--stateless" in sys.argv and "result" in answer:
        answer["result"] |= {"resultType": "complete"}
        if method != "tools/call":
            answer["result"] |= {"ttlMs": 0, "cacheScope": "public"}
    return [*sent, {"id": message["id"], **answer}]


def _discovery(method: str, told: str) -> dict[str, Any]:
    if method == "initialize":
        return {"error": {"code": -32601, "message": f"no {method}: {told}"}}
    about = {"name": f"telling {told}", "version": f"1.0 {told}"}
    result = {
        "supportedVersions": ["2026-07-28"],
        "capabilities": CAPABILITIES,
        "instructions": told,
        "_meta": {"io.modelcontextprotocol/serverInfo": about},
    }
    return {"result": result}


def _answer(method: str, params: dict[str, Any], told: str, name: str) -> dict[str, Any]:
    result: dict[str, Any] | None = None
    text = [{"type": "text", "text": told}]
    if method == "initialize":
        asked = params.get("protocolVersion", "")
        known = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
        result = {
            "protocolVersion": asked if asked in known else known[-1],
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": f"telling {told}", "version": f"1.0 {told}"},
            "instructions": told,
        }
    elif method == "tools/list":
        about = {"description": f"Says {told}", "inputSchema": SCHEMA, "annotations": READS}
        names = ("look", "fail", "refuse", f"look-{name}"[:120])
        result = {"tools": [{"name": one, **about} for one in names]}
    elif method == "tools/call":
        if params.get("name") == "refuse":
            return {"error": {"code": -32000, "message": told, "data": {"why": told}}}
        failed = params.get("name") == "fail"
        result = {"content": text, "isError": failed}
    elif method == "prompts/list":
        result = {"prompts": [{"name": f"prompt-{name}", "description": told}]}
    elif method == "prompts/get":
        result = {"messages": [{"role": "user", "content": text[0]}]}
    elif method == "resources/list":
        result = {"resources": [{"uri": f"told://{name}/x", "name": name, "description": told}]}
    elif method == "resources/templates/list":
        result = {"resourceTemplates": [{"uriTemplate": f"told://{name}/{{x}}", "name": name}]}
    elif method == "resources/read":
        result = {"contents": [{"uri": params.get("uri", ""), "text": told}]}
    elif method in ("ping", "logging/setLevel"):
        result = {}
    if result is None:
        return {"error": {"code": -32601, "message": f"no {method}: {told}"}}
    return {"result": result}


def encoded(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def serve_stdio() -> None:
    secrets = given_to_a_process()
    note(secrets)
    sys.stderr.write(f"I know {' '.join(secrets)}\n")
    sys.stderr.flush()
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            told = " ".join(secrets)
            error = {"code": -32700, "message": f"no JSON: {told}"}
            said = [{"id": None, "error": error}]
        else:
            said = answers(message, secrets)
        for one in said:
            sys.stdout.buffer.write(encoded(one) + b"\n")
        sys.stdout.buffer.flush()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._reply(405, b"")

    do_DELETE = do_GET  # noqa: N815 - as the library asks

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        secrets = given_with_a_request(self.path, self.headers)
        note(secrets)
        try:
            message = json.loads(body)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._reply(400, " ".join(secrets).encode())
            return
        said = answers(message, secrets)
        if not said:
            self._reply(202, b"")
        elif len(said) == 1:
            self._reply(200, encoded(said[0]), "application/json")
        else:
            events = b"".join(b"data: " + encoded(one) + b"\n\n" for one in said)
            self._reply(200, events, "text/event-stream")

    def _reply(self, status: int, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is called
        """Nothing."""


def tell_over_sse(path: str, headers: Any, body: bytes) -> bytes:
    secrets = given_with_a_request(path, headers)
    note(secrets)
    said = answers(json.loads(body), secrets) if body else []
    return b"".join(event(encoded(one)) for one in said)


def serve_http(port_file: Path) -> None:
    over_sse = "--sse" in sys.argv
    address = ("127.0.0.1", 0)
    server = sse_server(tell_over_sse) if over_sse else ThreadingHTTPServer(address, Handler)
    port_file.write_text(str(server.server_address[1]))
    print("listening", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if "--port-file" in sys.argv:
        serve_http(Path(sys.argv[sys.argv.index("--port-file") + 1]))
    else:
        serve_stdio()
