"""Clients that are broken in one way each, and exactly what that breaks.

`fails` and `warns` are the checks made for it. `also` are the rows that see the same fault from
their side: the registry's rules about clients, and how the client ended because of it.
"""

from __future__ import annotations

from typing import NamedTuple

OLD, NEW = "2025-11-25", "2026-07-28"


class Broken(NamedTuple):
    way: str
    scenario: str
    version: str
    fails: tuple[str, ...]
    warns: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


BROKEN_CLIENTS = (
    Broken(
        "does-nothing",
        "initialize",
        OLD,
        ("mcp-client-initialization", "client-initialized-notification"),
        also=("client-spoke",),
    ),
    Broken("does-nothing", "tools_call", NEW, ("tool-add-numbers",), also=("client-spoke",)),
    Broken(
        "does-nothing",
        "http-standard-headers",
        NEW,
        ("sep-2243-client-includes-standard-headers",),
        also=("client-spoke",),
    ),
    Broken("ends-with-an-error", "tools_call", OLD, ("client-exit",)),
    Broken(
        "hangs",
        "json-schema-ref-no-deref",
        NEW,
        ("sep-2106-no-network-ref-deref", "client-exit"),
        also=("client-spoke",),
    ),
    Broken("invents-a-version", "initialize", OLD, ("mcp-client-initialization",)),
    Broken("hides-its-name", "initialize", OLD, ("mcp-client-initialization",), also=("LIFE-003",)),
    Broken(
        "forgets-initialized",
        "initialize",
        OLD,
        ("client-initialized-notification",),
        also=("INV-002",),
    ),
    Broken("calls-nothing", "tools_call", OLD, ("tool-add-numbers",)),
    Broken("sends-text", "tools_call", NEW, ("tool-add-numbers",)),
    Broken(
        "leaves-out-jsonrpc",
        "tools_call",
        OLD,
        ("wire-schema-valid",),
        also=("MSG-001", "client-exit"),
    ),
    Broken(
        "leaves-out-field-name",
        "elicitation-sep1034-client-defaults",
        OLD,
        ("client-elicitation-sep1034-string-default",),
    ),
    Broken(
        "leaves-out-field-age",
        "elicitation-sep1034-client-defaults",
        OLD,
        ("client-elicitation-sep1034-integer-default",),
    ),
    Broken(
        "leaves-out-field-score",
        "elicitation-sep1034-client-defaults",
        OLD,
        ("client-elicitation-sep1034-number-default",),
    ),
    Broken(
        "leaves-out-field-status",
        "elicitation-sep1034-client-defaults",
        OLD,
        ("client-elicitation-sep1034-enum-default",),
    ),
    Broken(
        "leaves-out-field-verified",
        "elicitation-sep1034-client-defaults",
        OLD,
        ("client-elicitation-sep1034-boolean-default",),
    ),
    Broken(
        "fills-in-text",
        "elicitation-sep1034-client-defaults",
        OLD,
        ("client-elicitation-sep1034-integer-default",),
    ),
    Broken(
        "does-not-come-back",
        "sse-retry",
        OLD,
        ("client-sse-graceful-reconnect",),
        also=("client-exit",),
    ),
    Broken("ignores-retry", "sse-retry", OLD, ("client-sse-retry-timing",)),
    Broken("forgets-last-event-id", "sse-retry", OLD, (), warns=("client-sse-last-event-id",)),
    Broken(
        "sends-no-version-header",
        "request-metadata",
        NEW,
        ("sep-2575-http-client-sends-version-header",),
        also=("HTTP-010",),
    ),
    Broken(
        "version-header-differs",
        "request-metadata",
        NEW,
        ("sep-2575-http-version-header-matches-meta",),
        also=("HTTP-010", "sep-2575-client-retry-supported-version"),
    ),
    Broken(
        "sends-no-capabilities",
        "request-metadata",
        NEW,
        ("sep-2575-client-populates-meta",),
        also=("META-001",),
    ),
    Broken(
        "hides-its-name",
        "request-metadata",
        NEW,
        (),
        warns=("sep-2575-client-sends-client-info",),
        also=("META-002",),
    ),
    Broken(
        "malformed-roots",
        "request-metadata",
        NEW,
        ("sep-2575-client-declares-roots-capability",),
        also=("SHAPE-005", "wire-schema-valid"),
    ),
    Broken(
        "gives-up-on-its-version",
        "request-metadata",
        NEW,
        (),
        warns=("sep-2575-client-retry-supported-version",),
    ),
    Broken(
        "tampers-with-the-state",
        "sep-2322-client-request-state",
        NEW,
        ("sep-2322-client-request-state-echoed",),
        also=("MRTR-004",),
    ),
    Broken(
        "uses-the-same-id",
        "sep-2322-client-request-state",
        NEW,
        ("sep-2322-client-jsonrpc-id-different",),
        also=("MRTR-004",),
    ),
    Broken(
        "invents-a-state",
        "sep-2322-client-request-state",
        NEW,
        ("sep-2322-client-no-state-omitted",),
        also=("MRTR-004",),
    ),
    Broken(
        "leaks-answers",
        "sep-2322-client-request-state",
        NEW,
        ("sep-2322-client-parallel-isolation",),
        also=("MRTR-004",),
    ),
    Broken(
        "retries-what-is-complete",
        "sep-2322-client-request-state",
        NEW,
        ("sep-2322-default-result-type-complete",),
        also=("MRTR-004",),
    ),
    Broken(
        "sends-no-method-header",
        "http-standard-headers",
        NEW,
        ("sep-2243-client-includes-standard-headers",),
        also=("HTTP-011",),
    ),
    Broken(
        "method-header-in-capitals",
        "http-standard-headers",
        NEW,
        ("sep-2243-client-includes-standard-headers",),
        also=("HTTP-011",),
    ),
    Broken(
        "sends-no-name-header",
        "http-standard-headers",
        NEW,
        ("sep-2243-client-includes-standard-headers",),
        also=("HTTP-012",),
    ),
    Broken(
        "name-header-differs",
        "http-standard-headers",
        NEW,
        ("sep-2243-client-includes-standard-headers",),
        also=("HTTP-012",),
    ),
    Broken(
        "mirrors-everything",
        "http-custom-headers",
        NEW,
        ("sep-2243-client-mirrors-designated-params",),
    ),
    Broken(
        "writes-true-in-capitals", "http-custom-headers", NEW, ("sep-2243-client-encode-values",)
    ),
    Broken(
        "sends-unsafe-values-plain", "http-custom-headers", NEW, ("sep-2243-client-base64-unsafe",)
    ),
    Broken("mirrors-null", "http-custom-headers", NEW, ("sep-2243-client-omit-null",)),
    Broken(
        "calls-every-tool",
        "http-invalid-tool-headers",
        NEW,
        (
            "sep-2243-x-mcp-header-not-empty",
            "sep-2243-x-mcp-header-primitive-only",
            "sep-2243-x-mcp-header-unique",
            "sep-2243-x-mcp-header-charset",
        ),
    ),
    Broken(
        "fetches-references", "json-schema-ref-no-deref", NEW, ("sep-2106-no-network-ref-deref",)
    ),
    Broken(
        "strips-$schema",
        "json-schema-2020-12-preservation",
        NEW,
        ("json-schema-2020-12-client-$schema-preserved",),
    ),
    Broken(
        "strips-if",
        "json-schema-2020-12-preservation",
        NEW,
        ("sep-2106-client-conditional-keywords-preserved",),
    ),
    Broken(
        "strips-allOf",
        "json-schema-2020-12-preservation",
        NEW,
        ("sep-2106-client-composition-keywords-preserved",),
    ),
    Broken("lies-about-roots", "client-capabilities", OLD, ("capability-roots",)),
    Broken("lies-about-roots", "client-capabilities", NEW, ("capability-roots",)),
    Broken("lies-about-sampling", "client-capabilities", OLD, ("capability-sampling",)),
    Broken("lies-about-sampling", "client-capabilities", NEW, ("capability-sampling",)),
    Broken("undeclared-roots", "client-capabilities-undeclared", OLD, ("undeclared-roots",)),
    Broken("undeclared-roots", "client-capabilities-undeclared", NEW, ("undeclared-roots",)),
    Broken("undeclared-sampling", "client-capabilities-undeclared", OLD, ("undeclared-sampling",)),
    Broken("undeclared-sampling", "client-capabilities-undeclared", NEW, ("undeclared-sampling",)),
    Broken(
        "declares-only-once",
        "client-capabilities",
        NEW,
        ("capabilities-on-every-request",),
        also=("META-001",),
    ),
    Broken(
        "malformed-sampling",
        "client-capabilities",
        NEW,
        ("capability-sampling",),
        also=("SHAPE-005", "wire-schema-valid"),
    ),
    Broken(
        "stops-at-the-first-error", "server-error", OLD, ("server-error-survived", "client-exit")
    ),
    Broken("repeats-what-failed", "server-error", NEW, ("server-error-not-repeated",)),
    Broken(
        "refuses-with-a-wrong-code", "server-requests", OLD, ("server-requests-unknown-refused",)
    ),
    Broken(
        "refuses-ping",
        "server-requests",
        OLD,
        ("server-requests-ping-answered",),
        also=("LIFE-008",),
    ),
    Broken("reads-one-page", "tools-paging", NEW, (), warns=("paging-every-page",)),
    Broken(
        "trims-cursors",
        "tools-paging",
        OLD,
        ("paging-cursors-opaque",),
        also=("PAGE-001", "client-exit", "paging-every-page"),
    ),
    Broken("speaks-any-version", "version-unknown", OLD, ("version-unknown-left",)),
    Broken(
        "names-the-version-it-asked-for",
        "version-older",
        OLD,
        ("version-older-header",),
        also=("HTTP-007",),
    ),
    Broken("times-out-quietly", "slow-call", OLD, (), warns=("slow-call-cancelled",)),
    Broken(
        "cancels-another-request", "slow-call", OLD, ("slow-call-cancelled",), also=("CANCEL-001",)
    ),
)
