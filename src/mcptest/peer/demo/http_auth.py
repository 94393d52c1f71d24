"""The demo as a protected resource: who has no token gets a challenge, or the metadata."""

from __future__ import annotations

from mcptest.peer.demo.protocol import INVALID_REQUEST, Refusal, encode

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from mcptest.peer.demo.http_connection import HttpConnection
    from mcptest.peer.demo.http_requests import Request

METADATA_PATH = "/.well-known/oauth-protected-resource"
AUTHORIZATION_SERVER = "https://auth.demo.example"
SCOPE = "demo"


def is_turned_away(request: Request, connection: HttpConnection, token: str, endpoint: str) -> bool:
    """Answer whoever has no right to more: with the metadata, or with a challenge."""
    if request.path in {METADATA_PATH, METADATA_PATH + endpoint} and request.method == "GET":
        connection.respond(200, encode(_metadata(request, endpoint)))
        return True
    if request.header("authorization") == f"Bearer {token}":
        return False
    place = f"{_origin(request)}{METADATA_PATH}{endpoint}"
    challenge = f'Bearer resource_metadata="{place}", scope="{SCOPE}"'
    connection.refuse(
        401, Refusal(INVALID_REQUEST, "A valid token is required"), WWW_Authenticate=challenge
    )
    return True


def _metadata(request: Request, endpoint: str) -> dict[str, object]:
    return {
        "resource": f"{_origin(request)}{endpoint}",
        "authorization_servers": [AUTHORIZATION_SERVER],
        "scopes_supported": [SCOPE],
        "bearer_methods_supported": ["header"],
    }


def _origin(request: Request) -> str:
    """As the client named us; the name was checked before."""
    return f"http://{request.header('host') or 'localhost'}"
