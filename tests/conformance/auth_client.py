"""A client with OAuth, of the standard library alone: sound, or broken in one way.

Called as the official suite calls clients (the server's URL is the last argument), or from a test.
`--break NAME` picks what it does wrong; `NAME` is looked up where the deed is done.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import secrets
import sys
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

META = "io.modelcontextprotocol/"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
REDIRECT = "http://localhost:3000/callback"
OAUTH, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
PRM = "/.well-known/oauth-protected-resource"
STEP_UPS = 2

Obj = dict[str, Any]


class StoppedError(Exception):
    """The client gives up, and has a reason."""


@dataclass
class Answer:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Obj:
        return json.loads(self.body)


def fetch(method: str, url: str, body: bytes | None = None, headers: Obj | None = None) -> Answer:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20.0)
    target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    try:
        connection.request(method, target, body, headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def challenge_of(answer: Answer) -> dict[str, str]:
    header = answer.headers.get("WWW-Authenticate", "")
    return dict(re.findall(r'([a-z_]+)="([^"]*)"', header))


@dataclass
class Tokens:
    """Everything that this client keeps about its authorization."""

    issuer: str = ""
    metadata: Obj = field(default_factory=dict)
    resource: str = ""
    supported: list[str] | None = None
    client: Obj = field(default_factory=dict)
    former: Obj = field(default_factory=dict)
    scopes: list[str] = field(default_factory=list)
    token: str = ""


class AuthClient:
    def __init__(
        self, url: str, version: str, scenario: str, context: Obj | None = None, wrong: str = ""
    ) -> None:
        self.url = url
        self.version = version
        self.scenario = scenario
        self.context = context or {}
        self.wrong = wrong
        self.has = Tokens()
        clear = wrong == "returns-in-the-clear"
        self.redirect = "http://client.example.com/callback" if clear else REDIRECT
        self.ids = 0
        self.session: str | None = None
        parts = urlsplit(url)
        self.origin, self.path = f"{parts.scheme}://{parts.netloc}", parts.path
        if wrong == "invents-a-token":
            self.has.token = "made-up-by-the-client"

    @property
    def stateless(self) -> bool:
        return self.version >= "2026"

    # Talking to the server

    def play(self) -> None:
        if self.wrong == "does-nothing":
            return
        if not self.stateless:
            params = {
                "protocolVersion": self.version,
                "capabilities": {},
                "clientInfo": {"name": "auth", "version": "1"},
            }
            self.request("initialize", params)
            self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.request("tools/list", {})
        self.request("tools/call", {"name": "test-tool", "arguments": {}})

    def request(self, method: str, params: Obj) -> Obj:
        self.ids += 1
        if self.stateless:
            about = {"name": "auth", "version": "1"}
            named = {"protocolVersion": self.version, "clientCapabilities": {}, "clientInfo": about}
            params = {**params, "_meta": {META + key: value for key, value in named.items()}}
        message = {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}
        answer = self.post(message)
        for attempt in range(7 if self.wrong == "never-gives-up" else STEP_UPS):
            told = challenge_of(answer)
            if answer.status == 401:
                self.authorize(told)
            elif answer.status == 403 and told.get("error") == "insufficient_scope":
                if self.wrong == "does-not-step-up" or (attempt and self.wrong == "asks-again"):
                    break
                self.authorize(told, step_up=True)
            else:
                break
            answer = self.post(message)
        if answer.status >= 400:
            raise StoppedError(f"{method}: {answer.status} {answer.body[:200]!r}")
        return self.result_of(answer)

    def result_of(self, answer: Answer) -> Obj:
        if answer.headers.get("Content-Type", "").startswith("text/event-stream"):
            events = re.findall(rb"^data: ?(.+)$", answer.body, re.MULTILINE)
            return json.loads(events[-1])
        return answer.json

    def post(self, message: Obj) -> Answer:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if self.stateless:
            headers |= {"MCP-Protocol-Version": self.version, "Mcp-Method": message["method"]}
            if message["method"] == "tools/call":
                headers["Mcp-Name"] = message["params"]["name"]
        elif message["method"] != "initialize":
            headers["MCP-Protocol-Version"] = self.version
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        url = self.url
        if self.has.token and self.wrong == "token-in-the-query":
            url += f"?access_token={self.has.token}"
        if self.has.token and not self.forgets(message):
            headers["Authorization"] = f"Bearer {self.has.token}"
        answer = fetch("POST", url, json.dumps(message).encode(), headers)
        self.session = answer.headers.get("Mcp-Session-Id", self.session)
        return answer

    def forgets(self, message: Obj) -> bool:
        once = self.wrong == "forgets-the-token" and message["method"] == "tools/call"
        self.wrong = "" if once else self.wrong
        return once

    # Getting a token

    def authorize(self, told: dict[str, str], *, step_up: bool = False) -> None:
        if not (step_up and self.has.metadata):
            self.discover(told)
        scope = self.chosen_scope(told, step_up=step_up)
        if not self.has.client:
            self.has.client = self.identity()
        verifier = secrets.token_urlsafe(48)
        came = self.ask_user(scope, verifier)
        self.exchange(came, verifier)

    def discover(self, told: dict[str, str]) -> None:
        prm = self.read_resource(told.get("resource_metadata"))
        issuer = prm["authorization_servers"][0] if prm else self.origin
        self.has.resource = prm.get("resource", "")
        self.has.supported = prm.get("scopes_supported")
        allowed = {self.url, self.origin, self.origin + "/"}
        if prm and self.has.resource not in allowed and self.wrong != "accepts-any-resource":
            raise StoppedError(f"{self.has.resource} is not {self.url}")
        if issuer != self.has.issuer:
            if self.wrong == "keeps-its-client":
                self.has.former = {}
            else:
                self.has.former, self.has.client = self.has.client, {}
            self.has.issuer = issuer
        self.has.metadata = self.read_issuer(issuer, legacy=not prm)

    def read_resource(self, announced: str | None) -> Obj:
        places = [self.origin + PRM + self.path, self.origin + PRM]
        if announced is not None:
            places.insert(0, announced)
        if self.wrong == "tries-the-root-first":
            places.insert(0, self.origin + PRM)
        if self.wrong == "knows-only-the-root":
            places = places[-1:]
        for place in places:
            answer = fetch("GET", place)
            if answer.status == 200:
                return answer.json
        return {}

    def read_issuer(self, issuer: str, *, legacy: bool) -> Obj:
        parts = urlsplit(issuer)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        places = [OAUTH + path, OPENID + path, path + OPENID] if path else [OAUTH, OPENID]
        if self.wrong == "tries-the-root-first":
            places.insert(0, OAUTH)
        if self.wrong == "prefers-openid":
            places.sort(reverse=True)
        if legacy:
            places = [OAUTH]
        found: Obj = {}
        for place in places if self.wrong != "guesses-endpoints" else ():
            answer = fetch("GET", origin + place)
            if answer.status == 200:
                found = answer.json
                break
        if not found:
            names = {"authorization": "authorize", "token": "token", "registration": "register"}
            return {f"{key}_endpoint": f"{origin}/{name}" for key, name in names.items()}
        if found["issuer"] != issuer and self.wrong != "accepts-any-issuer":
            raise StoppedError(f"the issuer is {found['issuer']}, not {issuer}")
        said = found.get("code_challenge_methods_supported", [])
        if "S256" not in said and self.wrong != "hopes-for-s256":
            raise StoppedError("the authorization server does not say that it can do S256")
        return found

    def chosen_scope(self, told: dict[str, str], *, step_up: bool) -> list[str]:
        scopes = told["scope"].split() if "scope" in told else list(self.has.supported or ())
        first = not self.has.scopes and not step_up
        if self.wrong == "ignores-scopes" and first:
            scopes = ["something:else"]
        offered = self.has.metadata.get("scopes_supported", [])
        if scopes and "offline_access" in offered and self.wrong != "stays-online":
            scopes.append("offline_access")
        if self.wrong == "always-wants-offline-access":
            scopes.append("offline_access")
        if step_up and self.wrong == "asks-again":
            scopes = list(self.has.scopes)
        if step_up and self.wrong != "drops-former-scopes":
            scopes = list(dict.fromkeys([*self.has.scopes, *scopes]))
        self.has.scopes = scopes
        return scopes

    def identity(self) -> Obj:
        """Who this client is at this authorization server."""
        metadata = self.has.metadata
        if "client_id" in self.context:
            bound = self.context.get("issuer", self.has.issuer)
            if bound != self.has.issuer and self.wrong != "shows-its-secret-to-anybody":
                raise StoppedError(f"the credentials are for {bound}")
            return {**self.context, "token_endpoint_auth_method": "client_secret_basic"}
        documents = metadata.get("client_id_metadata_document_supported", False)
        if documents and self.wrong not in {"always-registers", "registers-for-codes-only"}:
            return {"client_id": DOCUMENT, "token_endpoint_auth_method": "none"}
        wanted: Obj = {
            "client_name": "auth",
            "redirect_uris": [self.redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "application_type": "native",
            "token_endpoint_auth_method": self.method_of(metadata),
        }
        if self.wrong == "hides-its-application-type":
            del wanted["application_type"]
        if self.wrong == "registers-for-codes-only":
            wanted["grant_types"] = ["authorization_code"]
        if self.wrong == "registers-another-address":
            wanted["redirect_uris"] = ["http://localhost:3001/elsewhere"]
        headers = {"Content-Type": "application/json"}
        body = json.dumps(wanted).encode()
        if self.wrong == "registers-with-a-form":
            fetch("POST", metadata["registration_endpoint"], b"client_name=auth", headers)
        registered = fetch("POST", metadata["registration_endpoint"], body, headers).json
        if self.has.former and self.wrong == "keeps-its-client-id":
            return self.has.former
        if self.has.former and self.wrong == "keeps-its-secret":
            return {**registered, "client_secret": self.has.former.get("client_secret")}
        return registered

    def method_of(self, metadata: Obj) -> str:
        offered = metadata.get("token_endpoint_auth_methods_supported", ["none"])
        return str(offered[0])

    def ask_user(self, scopes: list[str], verifier: str) -> Obj:
        """The user agrees at once: the authorization server redirects, and nobody follows."""
        digest = hashlib.sha256(verifier.encode()).digest()
        state = secrets.token_urlsafe(8)
        query = {
            "response_type": "code",
            "client_id": self.has.client["client_id"],
            "redirect_uri": self.redirect,
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "resource": self.resource(),
            "scope": " ".join(scopes),
        }
        if self.wrong == "asks-for-a-token":
            query["response_type"] = "token"
        if self.wrong == "sends-no-challenge":
            query["code_challenge"] = ""
        if self.wrong == "says-plain":
            query["code_challenge_method"] = "plain"
        if self.wrong == "names-no-resource-at-first":
            query["resource"] = ""
        if self.wrong == "sends-no-state":
            query["state"] = ""
        sent = urlencode({key: value for key, value in query.items() if value})
        answer = fetch("GET", f"{self.has.metadata['authorization_endpoint']}?{sent}")
        came = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
        if query["state"] != came.get("state", "") and self.wrong != "ignores-the-state":
            raise StoppedError("the state is not the one that was sent")
        self.compare_issuer(came.get("iss"))
        return came

    def compare_issuer(self, iss: str | None) -> None:
        expected = self.has.metadata.get("issuer")
        promised = self.has.metadata.get("authorization_response_iss_parameter_supported", False)
        if not self.stateless or self.wrong == "ignores-the-issuer":
            return
        if iss is None:
            if promised and self.wrong != "does-not-miss-the-issuer":
                raise StoppedError("an issuer was promised, and is not there")
        elif iss.rstrip("/") == expected and self.wrong == "normalizes-the-issuer":
            return
        elif iss != expected and (promised or self.wrong != "compares-what-was-promised"):
            raise StoppedError(f"the response is of {iss}, not of {expected}")

    def resource(self) -> str:
        resource = self.has.resource
        if self.wrong == "adds-a-slash":
            return resource + "/"
        return resource + "#here" if self.wrong == "adds-a-fragment" else resource

    def exchange(self, came: Obj, verifier: str) -> None:
        form = {
            "grant_type": "authorization_code",
            "code": came["code"],
            "redirect_uri": self.redirect,
            "code_verifier": verifier,
            "resource": self.resource(),
        }
        if self.wrong == "sends-no-verifier":
            form["code_verifier"] = ""
        if self.wrong == "sends-another-verifier":
            form["code_verifier"] = verifier[::-1]
        if self.wrong == "names-no-resource-in-the-end":
            form["resource"] = ""
        if self.wrong == "names-another-resource":
            form["resource"] = self.origin + "/another"
        if self.wrong == "returns-elsewhere":
            form["redirect_uri"] = "http://localhost:3001/elsewhere"
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        self.identify(form, headers)
        body = urlencode({key: value for key, value in form.items() if value}).encode()
        answer = fetch("POST", self.has.metadata["token_endpoint"], body, headers)
        if answer.status != 200:
            raise StoppedError(f"no token: {answer.body[:200]!r}")
        self.has.token = answer.json["access_token"]
        if self.wrong == "uses-the-code-twice":
            fetch("POST", self.has.metadata["token_endpoint"], body, headers)
        if self.wrong == "shows-its-token-to-others":
            shown = {"Authorization": f"Bearer {self.has.token}"}
            fetch("GET", self.has.metadata["issuer"] + "/userinfo", None, shown)

    def identify(self, form: Obj, headers: Obj) -> None:
        client = self.has.client
        client_id, secret = client["client_id"], client.get("client_secret") or ""
        method = client.get("token_endpoint_auth_method") or self.method_of(self.has.metadata)
        if self.wrong == "always-a-public-client":
            method = "none"
        if self.wrong == "secret-in-the-form":
            method = "client_secret_post"
        if self.wrong == "secret-in-the-header":
            method, secret = "client_secret_basic", secret or "made-up"
        if self.wrong == "wrong-secret":
            secret = "made-up"
        if method != "client_secret_basic":
            form["client_id"] = client_id
            form["client_secret"] = secret if method == "client_secret_post" else ""
            return
        pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
        if self.wrong == "basic-without-a-colon":
            pair = pair.replace(":", "")
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()


def main(arguments: list[str]) -> int:
    wrong = arguments[1] if arguments[:1] == ["--break"] else ""
    client = AuthClient(
        arguments[-1],
        os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25"),
        os.environ.get("MCP_CONFORMANCE_SCENARIO", ""),
        json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")),
        wrong,
    )
    try:
        client.play()
    except StoppedError as stopped:
        print(stopped, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
