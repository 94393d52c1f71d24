"""Every kind of disagreement between our scenario suite and the official one: who is right, why.

The first explanation that fits a disagreement is the one that counts.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

ABSENT = ""


class Explained(NamedTuple):
    title: str
    peers: str
    scenarios: str
    checks: str
    official: frozenset[str]
    ours: frozenset[str]
    right: str
    """`ours`, `both` where the same is told in another row."""
    reason: str

    def fits(self, peer: str, scenario: str, check: str, official: str, ours: str) -> bool:
        return (
            fnmatchcase(peer, self.peers)
            and any(fnmatchcase(scenario, one) for one in self.scenarios.split(","))
            and any(fnmatchcase(check, one) for one in self.checks.split(","))
            and official in self.official
            and ours in self.ours
        )


def _of(*statuses: str) -> frozenset[str]:
    return frozenset(statuses)


_ANY = _of("SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO", ABSENT)

EXPLANATIONS = (
    Explained(
        "A list of tools in pages",
        "server/demo/*",
        "json-schema-2020-12,http-custom-header-server-validation",
        "*",
        _of("FAILURE", ABSENT),
        _of("SUCCESS", ABSENT),
        "ours",
        "The demo lists its tools in pages of ten. The official suite reads the first page and"
        " says that the tool is not there. A server may page any list"
        " (2025-11-25/server/utilities/pagination).",
    ),
    Explained(
        "A server that does not speak the revision",
        "server/everything/2026-07-28",
        "*",
        "*",
        _ANY,
        _of("FAILURE", ABSENT),
        "ours",
        "server-everything has no stateless era: it answers every request of 2026-07-28 with HTTP"
        " 400. The official suite still counts checks as passed that any refusal satisfies, such"
        " as `localhost-host-rebinding-rejected`, `sep-2164-no-empty-contents` or"
        " `sep-2322-validate-input-responses`, and warns about others. Here nothing of the"
        " revision could be observed, so nothing passes.",
    ),
    Explained(
        "Every message is looked at",
        "*",
        "*",
        "wire-schema-valid",
        _of(ABSENT),
        _of("SUCCESS", "FAILURE"),
        "ours",
        "The official suite validates messages in some scenarios only (its hand-written mocks are"
        " not instrumented); here every scenario has this row as soon as the peer said something.",
    ),
    Explained(
        "No row about messages where the peer said none",
        "server/*",
        "*",
        "wire-schema-valid",
        _of("SUCCESS", "FAILURE"),
        _of(ABSENT),
        "ours",
        "The scenario could not be run for want of a fixture, so the server sent no message in"
        " it. The official row is about the harness' own messages.",
    ),
    Explained(
        "One row for the fixture, or one for each check",
        "server/*",
        "*",
        "*-general,*-setup,*-error,sep-2243-server-no-xmcp-tool,incoming-sse-event",
        _of("FAILURE"),
        _of(ABSENT),
        "both",
        "Where the fixture is missing the official suite gives one failure under another id and"
        " leaves the checks out; here, with --strict-fixtures, each check of the scenario fails"
        " under its own id, and without it each is untestable.",
    ),
    Explained(
        "Each check of a scenario whose fixture is missing",
        "server/*",
        "*",
        "*",
        _of(ABSENT),
        _of("FAILURE"),
        "both",
        "The other side of the same: the official suite leaves these rows out.",
    ),
    Explained(
        "Passed without having been tried",
        "server/python-sdk/2026-07-28",
        "server-stateless,input-required-*",
        "*",
        _of("SUCCESS", "WARNING"),
        _of("FAILURE", "WARNING"),
        "ours",
        "The fixture is not there (`test_streaming_elicitation`, `test_logging_tool`,"
        " `test_trigger_tool_change`, `test_input_required_result_*`). The official suite calls it"
        " all the same, the SDK answers with an isError result, and that satisfies the check. What"
        " was not observed does not pass.",
    ),
    Explained(
        "How the client ended",
        "client/*",
        "*",
        "client-exit",
        _of(ABSENT),
        _of("SUCCESS", "FAILURE", "INFO"),
        "ours",
        "The official suite counts exit code and timeout for single scenarios and ignores both in"
        " suites; here they are a row, always.",
    ),
    Explained(
        "The handshake to its end",
        "client/*",
        "initialize",
        "client-initialized-notification",
        _of(ABSENT),
        _of("SUCCESS"),
        "ours",
        "`notifications/initialized` is a MUST (2025-11-25/basic/lifecycle#initialization) that"
        " the official scenario does not look at.",
    ),
    Explained(
        "A row that says what was seen",
        "client/*",
        "http-invalid-tool-headers,auth/*",
        "sep-2243-invalid-tool-tools-list-gate,invalid-bearer-token,prm-priority-order,authorization-server-metadata-wrong-path,client-registration,sep-837-*",
        _of(ABSENT),
        _of("SUCCESS", "SKIPPED"),
        "both",
        "The official suite has this row only where it fails, or where the optional step was"
        " taken; here it is always there and says what was seen.",
    ),
    Explained(
        "A result without resultType",
        "client/*",
        "sep-2322-client-request-state",
        "sep-2322-default-result-type-complete",
        _of("SUCCESS"),
        _of("SKIPPED"),
        "ours",
        "Absent means complete only from a server of an earlier revision (schema of 2026-07-28,"
        " Result). A client may refuse such a result from a server of this one, as both SDKs do;"
        " then nothing was shown, and the official suite says SUCCESS.",
    ),
)


def explanation_of(
    peer: str, scenario: str, check: str, official: str, ours: str
) -> Explained | None:
    return next(
        (one for one in EXPLANATIONS if one.fits(peer, scenario, check, official, ours)), None
    )
