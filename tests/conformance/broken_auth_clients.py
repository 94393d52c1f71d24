"""Clients that go wrong about authorization, in one way each, and exactly what that breaks."""

from __future__ import annotations

from tests.conformance.broken_clients import NEW, OLD, Broken

_EARLY = ("auth/metadata-default", OLD)
_LATE = ("auth/metadata-default", NEW)
_MOVING = ("auth/authorization-server-migration", NEW)

FINDING_OUT = (
    Broken("tries-the-root-first", *_EARLY, ("prm-priority-order",)),
    Broken(
        "tries-the-root-first",
        "auth/metadata-var2",
        NEW,
        ("authorization-server-metadata-wrong-path",),
    ),
    Broken(
        "tries-the-root-first",
        "auth/metadata-var3",
        OLD,
        ("authorization-server-metadata-wrong-path",),
    ),
    Broken("guesses-endpoints", *_EARLY, ("authorization-server-metadata",)),
    Broken("accepts-any-resource", "auth/resource-mismatch", NEW, ("resource-mismatch-rejected",)),
    Broken(
        "accepts-any-issuer",
        "auth/metadata-issuer-mismatch",
        NEW,
        ("sep-2468-client-validate-metadata-issuer",),
    ),
    Broken("knows-only-the-root", "auth/discovery-order", OLD, ("prm-discovery-order",)),
    Broken("prefers-openid", "auth/discovery-order", NEW, ("metadata-discovery-order",)),
    Broken("hopes-for-s256", "auth/pkce-unsupported", OLD, ("pkce-unsupported-rejected",)),
)

ASKING = (
    Broken("registers-with-a-form", *_EARLY, ("client-registration",)),
    Broken("hides-its-application-type", *_LATE, ("sep-837-application-type-present",)),
    Broken("hides-its-application-type", *_EARLY, ()),
    Broken("asks-for-a-token", *_EARLY, ("authorization-request",)),
    Broken(
        "sends-no-challenge",
        *_LATE,
        ("pkce-code-challenge-sent",),
        also=("pkce-verifier-matches-challenge",),
    ),
    Broken("says-plain", "auth/metadata-var1", OLD, ("pkce-s256-method-used",)),
    Broken(
        "sends-no-verifier",
        *_EARLY,
        ("pkce-code-verifier-sent",),
        also=("pkce-verifier-matches-challenge",),
    ),
    Broken(
        "sends-another-verifier", "auth/metadata-var3", NEW, ("pkce-verifier-matches-challenge",)
    ),
    Broken("uses-the-code-twice", *_LATE, ("token-request",)),
    Broken("invents-a-token", *_EARLY, ("invalid-bearer-token",)),
    Broken("names-no-resource-at-first", *_EARLY, ("resource-parameter-in-authorization",)),
    Broken("names-no-resource-in-the-end", *_LATE, ("resource-parameter-in-token",)),
    Broken(
        "adds-a-fragment",
        *_EARLY,
        ("resource-parameter-valid-uri",),
        also=("resource-parameter-matches-prm",),
    ),
    Broken(
        "names-another-resource",
        *_LATE,
        ("resource-parameter-consistency",),
        also=("resource-parameter-matches-prm",),
    ),
    Broken("adds-a-slash", "auth/metadata-var2", OLD, ("resource-parameter-matches-prm",)),
)

SCOPES = (
    Broken(
        "ignores-scopes",
        "auth/scope-from-www-authenticate",
        OLD,
        (),
        warns=("scope-from-www-authenticate",),
    ),
    Broken(
        "ignores-scopes",
        "auth/scope-from-scopes-supported",
        NEW,
        (),
        warns=("scope-from-scopes-supported",),
    ),
    Broken(
        "ignores-scopes",
        "auth/scope-omitted-when-undefined",
        OLD,
        (),
        warns=("scope-omitted-when-undefined",),
    ),
    Broken("ignores-scopes", "auth/scope-step-up", OLD, (), warns=("scope-step-up-initial",)),
    Broken(
        "does-not-step-up",
        "auth/scope-step-up",
        OLD,
        ("scope-step-up-escalation",),
        also=("client-exit",),
    ),
    Broken(
        "does-not-step-up",
        "auth/scope-step-up",
        NEW,
        ("scope-step-up-escalation", "sep-2350-scope-union-on-reauth"),
        also=("client-exit",),
    ),
    Broken(
        "asks-again",
        "auth/scope-step-up",
        OLD,
        (),
        warns=("scope-step-up-escalation",),
        also=("client-exit",),
    ),
    Broken(
        "drops-former-scopes",
        "auth/scope-step-up",
        NEW,
        (),
        warns=("sep-2350-scope-union-on-reauth",),
    ),
    Broken("drops-former-scopes", "auth/scope-step-up", OLD, ()),
    Broken("never-gives-up", "auth/scope-retry-limit", OLD, ("scope-retry-limit",)),
    Broken("never-gives-up", "auth/scope-retry-limit", NEW, ("scope-retry-limit",)),
    Broken("stays-online", "auth/offline-access-scope", NEW, ()),
    Broken(
        "registers-for-codes-only",
        "auth/offline-access-scope",
        NEW,
        (),
        warns=("sep-2207-client-metadata-grant-types",),
    ),
    Broken(
        "always-wants-offline-access",
        "auth/offline-access-not-supported",
        NEW,
        ("sep-2207-offline-access-not-requested",),
    ),
)

IDENTITY = (
    Broken("always-registers", "auth/basic-cimd", OLD, (), warns=("cimd-client-id-used",)),
    Broken(
        "always-a-public-client",
        "auth/token-endpoint-auth-basic",
        OLD,
        ("token-endpoint-auth-method",),
    ),
    Broken(
        "secret-in-the-form", "auth/token-endpoint-auth-basic", NEW, ("token-endpoint-auth-method",)
    ),
    Broken(
        "basic-without-a-colon",
        "auth/token-endpoint-auth-basic",
        OLD,
        ("token-endpoint-auth-method",),
    ),
    Broken("wrong-secret", "auth/token-endpoint-auth-post", OLD, ("token-endpoint-auth-method",)),
    Broken(
        "secret-in-the-header",
        "auth/token-endpoint-auth-post",
        NEW,
        ("token-endpoint-auth-method",),
    ),
    Broken(
        "secret-in-the-header",
        "auth/token-endpoint-auth-none",
        OLD,
        ("token-endpoint-auth-method",),
    ),
    Broken("wrong-secret", "auth/pre-registration", OLD, ("pre-registration-auth",)),
    Broken("secret-in-the-form", "auth/pre-registration", NEW, ("pre-registration-auth",)),
    Broken(
        "keeps-its-client",
        *_MOVING,
        ("sep-2352-reregister-on-as-change", "sep-2352-no-reuse-on-as-change"),
        also=("sep-2352-no-cross-as-credential-reuse",),
    ),
    Broken(
        "keeps-its-client-id",
        *_MOVING,
        ("sep-2352-no-reuse-on-as-change",),
        also=("sep-2352-no-cross-as-credential-reuse",),
    ),
    Broken("keeps-its-secret", *_MOVING, ("sep-2352-no-cross-as-credential-reuse",)),
)

ISSUERS = (
    Broken(
        "shows-its-secret-to-anybody",
        "auth/pre-registration-elsewhere",
        NEW,
        ("credentials-bound-to-issuer",),
    ),
    Broken(
        "ignores-the-issuer",
        "auth/iss-wrong-issuer",
        NEW,
        ("sep-2468-client-compare-iss-supported",),
    ),
    Broken(
        "does-not-miss-the-issuer",
        "auth/iss-supported-missing",
        NEW,
        ("sep-2468-client-reject-missing-iss",),
    ),
    Broken(
        "compares-what-was-promised",
        "auth/iss-unexpected",
        NEW,
        ("sep-2468-client-compare-iss-unadvertised",),
    ),
    Broken(
        "normalizes-the-issuer", "auth/iss-normalized", NEW, ("sep-2468-client-no-normalization",)
    ),
    Broken("normalizes-the-issuer", "auth/iss-wrong-issuer", NEW, ()),
)

TOKENS = (
    Broken("token-in-the-query", "auth/token-handling", OLD, ("token-not-in-query",)),
    Broken("forgets-the-token", "auth/token-handling", NEW, ("token-in-every-request",)),
    Broken("shows-its-token-to-others", "auth/token-handling", NEW, ("token-only-for-its-server",)),
    Broken("registers-another-address", "auth/token-handling", OLD, ("redirect-uri-consistent",)),
    Broken("returns-elsewhere", "auth/token-handling", NEW, ("redirect-uri-consistent",)),
    Broken("returns-in-the-clear", "auth/token-handling", OLD, ("redirect-uri-safe",)),
    Broken("sends-no-state", "auth/token-handling", OLD, (), warns=("state-sent",)),
    Broken("sends-no-state", "auth/state-mismatch", NEW, ()),
    Broken("ignores-the-state", "auth/state-mismatch", NEW, (), warns=("state-mismatch-rejected",)),
)

BROKEN_AUTH_CLIENTS = (*FINDING_OUT, *ASKING, *SCOPES, *IDENTITY, *ISSUERS, *TOKENS)
