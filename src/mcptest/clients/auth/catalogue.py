"""The scenarios about authorization, by name."""

from __future__ import annotations

from collections.abc import Mapping

from mcptest.clients.auth.client_identity import (
    CIMD,
    MIGRATION,
    PRE_REGISTRATION,
    TOKEN_ENDPOINT,
)
from mcptest.clients.auth.discovery import (
    BACKCOMPAT,
    ISSUER_MISMATCH,
    METADATA,
    RESOURCE_MISMATCH,
)
from mcptest.clients.auth.issuers import ISSUERS
from mcptest.clients.auth.own_paths import DISCOVERY_ORDER, REGISTERED_ELSEWHERE
from mcptest.clients.auth.scopes import FIRST_SCOPES, REFRESHING, RETRY_LIMIT, STEP_UP
from mcptest.clients.auth.token_handling import PKCE_UNSUPPORTED, STATE_MISMATCH, TOKEN_HANDLING
from mcptest.clients.scenario import Scenario

_IN_ORDER = (
    *METADATA,
    CIMD,
    *FIRST_SCOPES,
    STEP_UP,
    RETRY_LIMIT,
    *TOKEN_ENDPOINT,
    PRE_REGISTRATION,
    *BACKCOMPAT,
    RESOURCE_MISMATCH,
    *REFRESHING,
    MIGRATION,
    *ISSUERS,
    ISSUER_MISMATCH,
    TOKEN_HANDLING,
    STATE_MISMATCH,
    PKCE_UNSUPPORTED,
    DISCOVERY_ORDER,
    REGISTERED_ELSEWHERE,
)

AUTH_SCENARIOS: Mapping[str, Scenario] = {one.name: one for one in _IN_ORDER}
