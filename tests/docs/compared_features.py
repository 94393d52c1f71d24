"""What mcptest and its peers can do, row by row; for ours, the test that shows it.

What peers do was found out by running the versions that the page names: `yes`, `no`, or how far.
"""

from __future__ import annotations

import msgspec


class Feature(msgspec.Struct, frozen=True):
    what: str
    mcp_assert: str
    official: str
    ours: str
    shown_by: str
    """A test of ours, from the top of the repository."""


FEATURES = (
    Feature(
        "stdio, streamable HTTP, HTTP+SSE",
        "yes",
        "streamable HTTP only",
        "yes",
        "tests/e2e/test_exploring_transports.py",
    ),
    Feature(
        "revisions",
        "2025 line",
        "2025-03-26 to 2026-07-28",
        "2024-11-05 to 2026-07-28, draft",
        "tests/e2e/test_suite_both_eras.py",
    ),
    Feature("tests servers", "yes", "yes", "yes", "tests/e2e/test_compliance_real_servers.py"),
    Feature(
        "tests clients",
        "the order of their tool calls",
        "over HTTP",
        "over HTTP and stdio",
        "tests/conformance/test_clients.py",
    ),
    Feature(
        "a client that does nothing",
        "",
        "passes `initialize` and `http-standard-headers`",
        "passes nothing",
        "tests/conformance/test_clients.py",
    ),
    Feature(
        "a server without the suite's fixtures",
        "",
        "fails for each one that it lacks",
        "untestable, and what would unlock it",
        "tests/conformance/test_real_servers.py",
    ),
    Feature(
        "own tests in YAML",
        "yes",
        "no",
        "yes, mcp-assert's unchanged",
        "tests/differential/test_verdicts.py",
    ),
    Feature(
        "a misspelt expectation",
        "ignored: the test passes",
        "",
        "refused before anything starts",
        "tests/differential/test_messages.py",
    ),
    Feature(
        "own tests in pytest",
        "a plugin that starts the binary",
        "no",
        "the same engine, with fixtures",
        "tests/plugin/test_plugin_suites.py",
    ),
    Feature(
        "structured output against the tool's schema",
        "no",
        "the message's shape",
        "always",
        "tests/e2e/test_audit_cli.py",
    ),
    Feature(
        "rules over whole sessions, on kept captures",
        "no",
        "no",
        "yes",
        "tests/rules/test_invariants.py",
    ),
    Feature(
        "a grade, with published weights",
        "a share of healthy tools",
        "no",
        "yes",
        "tests/rules/test_grading_docs.py",
    ),
    Feature(
        "each rule proven on a broken server", "no", "no", "yes", "tests/mutants/test_mutants.py"
    ),
    Feature(
        "lint of tools",
        "24 codes, repairs some",
        "no",
        "the same codes and 32 more",
        "tests/differential/test_lint_findings.py",
    ),
    Feature(
        "fuzz", "yes", "no", "yes, minimised, saved as tests", "tests/differential/test_fuzz.py"
    ),
    Feature(
        "property tests with shrinking",
        "no",
        "no",
        "messages, arguments, conversations",
        "tests/e2e/test_property_command.py",
    ),
    Feature("snapshots", "yes", "no", "yes", "tests/differential/test_snapshot.py"),
    Feature("a recording proxy", "stdio", "no", "stdio and HTTP", "tests/e2e/test_proxy_http.py"),
    Feature("what breaks at the next revision", "no", "no", "yes", "tests/e2e/test_doctor.py"),
    Feature(
        "list of expected failures; a stale entry fails",
        "tests that passed before",
        "yes, for each check",
        "yes, and flaky ones by their rate",
        "tests/e2e/test_compliance_finish.py",
    ),
    Feature("JUnit, Markdown, badge", "yes", "no", "yes", "tests/report/test_junit.py"),
    Feature(
        "SARIF, GitLab code quality, TAP", "no", "no", "yes", "tests/e2e/test_report_forms_cli.py"
    ),
    Feature(
        "an HTML report with the session as it went over the wire",
        "no",
        "no",
        "yes",
        "tests/html/test_in_a_browser.py",
    ),
    Feature(
        "starts in (`--version`)",
        "5 ms, a compiled binary",
        "Node",
        "24 ms of processor time",
        "tests/meta/test_import_budget.py",
    ),
)
