"""What the protected server and its authorization server are like in one scenario, as data.

Without anything said, they are as most are: the metadata of the resource is announced in the
challenge, clients register themselves, are public, and everything is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from mcptest.peer.scripted.script import MCP

AS = "as"
SECOND_AS = "as2"
ROOT_PRM = "/.well-known/oauth-protected-resource"
PATH_PRM = f"{ROOT_PRM}/mcp"
OAUTH_METADATA = "/.well-known/oauth-authorization-server"
OPENID_METADATA = "/.well-known/openid-configuration"
PUBLIC, BASIC, POST = "none", "client_secret_basic", "client_secret_post"
FOREIGN_ISSUER = "https://attacker.example.com"

Redirected: TypeAlias = Literal["right", "left_out", "foreign", "with_slash"]


class AuthPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario's servers. Paths begin with a slash."""

    # The protected server
    prm_path: str | None = PATH_PRM
    """Where its metadata is; None: it has none, as before 2025-06-18."""
    announces_prm: bool = True
    """Whether the challenge says where."""
    resource: str = ""
    """What the metadata calls the resource, where that is not this server."""
    challenge_scope: str = ""
    scopes_supported: tuple[str, ...] | None = None
    needs: Mapping[str, str] = {}
    """The scope that a method needs beyond the first one."""
    never_enough: bool = False
    """Whatever was granted, more is asked for."""
    moves: bool = False
    """After the first request that is served, the second authorization server takes over."""

    # The authorization server
    origins: tuple[str, ...] = (AS,)
    metadata_path: str | None = OAUTH_METADATA
    issuer_path: str = ""
    """What of the issuer comes behind the origin."""
    issuer: str = ""
    """What the metadata calls the issuer, where that is not the true one."""
    endpoints: str = ""
    """What comes before `/authorize`, `/token` and `/register`."""
    offered_scopes: tuple[str, ...] | None = None
    registers: bool = True
    takes_documents: bool | None = None
    """Whether the client's id may be the address of a document; None: not said."""
    method: str = PUBLIC
    """How clients authenticate at the token endpoint."""
    says_s256: bool = True
    announces_iss: bool | None = True
    """None: not said."""
    iss: Redirected = "right"
    """The issuer that the redirect names."""
    changes_state: bool = False
    client_id: str = ""
    client_secret: str = ""
    """Of a client that was registered by hand."""
    registered_with: str = ""
    """The issuer that it was registered with, where that is not this one."""

    @property
    def challenge_path(self) -> str | None:
        return self.prm_path if self.announces_prm else None

    @property
    def all_origins(self) -> tuple[str, ...]:
        return (MCP, *(one for one in self.origins if one != MCP))

    @property
    def is_openid(self) -> bool:
        return self.metadata_path is not None and OPENID_METADATA in self.metadata_path
