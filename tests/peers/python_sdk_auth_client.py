"""A client of the official Python SDK with its OAuth support, in the manner of the official suite.

The user agrees at once: the authorization server redirects, and the client reads where to.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

REDIRECT = "http://localhost:3000/callback"
DOCUMENT = "https://conformance-test.local/client-metadata.json"


class Memory:
    """Where tokens and the registration are kept."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.tokens: OAuthToken | None = None
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class User:
    """Agrees to everything."""

    def __init__(self) -> None:
        self.came: dict[str, str] = {}

    async def go(self, url: str) -> None:
        async with httpx2.AsyncClient(verify=False) as browser:
            answer = await browser.get(url)
        self.came = dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def come_back(self) -> AuthorizationCodeResult:
        came = self.came
        return AuthorizationCodeResult(
            code=came["code"], state=came.get("state"), iss=came.get("iss")
        )


def provider(url: str, context: dict[str, Any]) -> OAuthClientProvider:
    known = None
    if "client_id" in context:
        known = OAuthClientInformationFull(
            client_id=context["client_id"],
            client_secret=context["client_secret"],
            redirect_uris=[AnyUrl(REDIRECT)],
            token_endpoint_auth_method="client_secret_basic",
            issuer=context["issuer"],
        )
    user = User()
    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="python-sdk", redirect_uris=[AnyUrl(REDIRECT)]
        ),
        storage=Memory(known),
        redirect_handler=user.go,
        callback_handler=user.come_back,
        client_metadata_url=DOCUMENT,
    )


async def play(url: str, version: str, context: dict[str, Any]) -> None:
    mode = "legacy" if version < "2026" else version
    auth = provider(url, context)
    async with httpx2.AsyncClient(auth=auth, timeout=20.0, verify=False) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode) as client:
            await client.list_tools()
            await client.call_tool("test-tool", {})


if __name__ == "__main__":
    anyio.run(
        play,
        sys.argv[-1],
        os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"],
        json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")),
    )
