"""Scenarios about scopes: which are asked for first, which later, and when it is enough."""

from __future__ import annotations

from mcptest.core.scenario_outcome import CheckStatus
from mcptest.probe.conformance.auth.flow import (
    AUTHORIZATION,
    AUTHORIZATION_STEPS,
    DISCOVERY_STEPS,
    NEW_AUTHORIZATION,
    REGISTRATION_STEPS,
    TOKEN_SHOWN,
    TOKEN_STEPS,
    UP_TO_AUTHORIZATION,
    WHOLE_FLOW,
    AuthFlow,
    auth_scenario,
    body_of,
    optional,
    scopes_of,
)
from mcptest.probe.conformance.auth.protected_server import MOST_REFUSALS, AuthPlan
from mcptest.probe.conformance.scenario import (
    ONLY_2026_07_28,
    CheckFinding,
    Findings,
    Judge,
    ScenarioCheck,
    bad,
    check,
    good,
    info,
    missing,
    reference,
    shown,
    verdict,
)

FIRST, MORE, OFFLINE = "mcp:basic", "mcp:write", "offline_access"
_SELECTION = reference("scopes", f"{AUTHORIZATION}#scope-selection-strategy")
_CHALLENGE = reference("scopes", f"{AUTHORIZATION}#scope-challenge-handling")
_UNION = reference("SEP-2350", f"{NEW_AUTHORIZATION}#step-up-authorization-flow")
_REFRESH = reference("SEP-2207", f"{NEW_AUTHORIZATION}#refresh-tokens")
_SUITES = ("sep-835",)
_FORBIDDEN = 403


def _asks_for(*wanted: str, which: slice = slice(None)) -> Judge[AuthFlow]:
    """These authorizations, or all of them, are for these scopes."""

    def judge(auth: AuthFlow) -> Findings:
        for one in auth.authorizations[which]:
            problem = f"scope is {shown(one.query.get('scope'))}; expected {' '.join(wanted)}"
            yield verdict("" if {*wanted} <= {*scopes_of(one)} else problem, one, mild=True)

    return judge


@check(
    "scope-omitted-when-undefined",
    "no scope is asked for",
    title="ScopeLeftOut",
    references=_SELECTION,
)
def _asks_for_nothing(auth: AuthFlow) -> Findings:
    for one in auth.authorizations:
        problem = f"scope is {shown(one.query.get('scope'))}, and nobody spoke of scopes"
        yield verdict(problem if scopes_of(one) else "", one, mild=True)


@check("scope-retry-limit", "the client does not ask its user for ever", references=_CHALLENGE)
def _knows_when_it_is_enough(auth: AuthFlow) -> CheckFinding | None:
    attempts = auth.authorizations
    refused = any(one.status == _FORBIDDEN for one in auth.to_the_server)
    if attempts and not refused:
        return missing("the client did not get there: no request of its was refused with 403")
    if len(attempts) > MOST_REFUSALS:
        message = f"{len(attempts)} authorizations, expected {MOST_REFUSALS} at most"
        return bad(message, attempts[MOST_REFUSALS], attempts=len(attempts))
    if attempts:
        return good(attempts[-1], attempts=len(attempts))
    return None


@check("sep-2207-offline-access-requested", f"`{OFFLINE}` may be asked for", references=_REFRESH)
def _may_ask_for_offline(auth: AuthFlow) -> Findings:
    for one in auth.authorizations:
        chose_not_to = info(f"the client chose not to ask for {OFFLINE}")
        yield good(one) if OFFLINE in scopes_of(one) else chose_not_to


@check(
    "sep-2207-client-metadata-grant-types",
    "a client that registers lists `refresh_token` among its grant types",
    title="GrantTypesRegistered",
    references=_REFRESH,
    silence=CheckStatus.INFO,
)
def _registers_for_refreshing(auth: AuthFlow) -> Findings:
    for one in auth.registrations:
        kinds = body_of(one).get("grant_types")
        fine = isinstance(kinds, list) and "refresh_token" in kinds
        problem = f"grant_types is {shown(kinds)}, without refresh_token"
        yield verdict("" if fine else problem, one, mild=True)


@check(
    "sep-2207-offline-access-not-requested", f"`{OFFLINE}` is not asked for", references=_REFRESH
)
def _does_not_ask_for_offline(auth: AuthFlow) -> Findings:
    for one in auth.authorizations:
        problem = f"{OFFLINE} is asked for, which the server does not list"
        yield verdict(problem if OFFLINE in scopes_of(one) else "", one)


_PUBLISHED = (FIRST, "mcp:read", MORE)

SCENARIOS = (
    auth_scenario(
        "scope-from-www-authenticate",
        "Scopes that the challenge names",
        f"The challenge asks for `{FIRST}`.",
        AuthPlan(challenge_scope=FIRST),
        (
            *WHOLE_FLOW,
            ScenarioCheck(
                "scope-from-www-authenticate",
                "the scope of the challenge is asked for",
                _asks_for(FIRST),
                title="ScopeFromChallenge",
                references=_SELECTION,
            ),
        ),
        suites=_SUITES,
    ),
    auth_scenario(
        "scope-from-scopes-supported",
        "Scopes that the metadata names",
        "The challenge names no scope; the metadata of the resource lists three.",
        AuthPlan(scopes_supported=_PUBLISHED),
        (
            *WHOLE_FLOW,
            ScenarioCheck(
                "scope-from-scopes-supported",
                "all scopes of the metadata are asked for",
                _asks_for(*_PUBLISHED),
                title="ScopeFromMetadata",
                references=_SELECTION,
            ),
        ),
        suites=_SUITES,
    ),
    auth_scenario(
        "scope-omitted-when-undefined",
        "No scopes at all",
        "Neither the challenge nor the metadata names a scope.",
        AuthPlan(),
        (*WHOLE_FLOW, _asks_for_nothing),
        suites=_SUITES,
    ),
    auth_scenario(
        "scope-step-up",
        "A call that needs more",
        f"The first challenge asks for `{FIRST}`. A tool call is refused with 403 until the token"
        f" has `{MORE}`: the client is expected to be authorized once more, for that as well.",
        AuthPlan(
            challenge_scope=FIRST, scopes_supported=("mcp:profile",), needs={"tools/call": MORE}
        ),
        (
            *WHOLE_FLOW,
            ScenarioCheck(
                "scope-step-up-initial",
                "the first authorization is for the scope of the challenge",
                _asks_for(FIRST, which=slice(1)),
                title="StepUpInitial",
                references=_CHALLENGE,
            ),
            ScenarioCheck(
                "scope-step-up-escalation",
                "the second one is for the scope that was missing",
                _asks_for(MORE, which=slice(1, 2)),
                title="StepUpEscalation",
                references=_CHALLENGE,
            ),
            ScenarioCheck(
                "sep-2350-scope-union-on-reauth",
                "the second one is also for what was granted before",
                _asks_for(FIRST, which=slice(1, 2)),
                title="StepUpUnion",
                references=_UNION,
                revisions=ONLY_2026_07_28,
            ),
        ),
        suites=_SUITES,
    ),
    auth_scenario(
        "scope-retry-limit",
        "More, without end",
        "Whatever is granted, requests are refused with 403. The client is expected to give up"
        f" after {MOST_REFUSALS} authorizations at most.",
        AuthPlan(challenge_scope="mcp:admin", scopes_supported=("mcp:admin",), never_enough=True),
        (*UP_TO_AUTHORIZATION, *TOKEN_STEPS, _knows_when_it_is_enough),
        suites=_SUITES,
        gives_up=True,
    ),
    auth_scenario(
        "offline-access-scope",
        "Refresh tokens are offered",
        f"The authorization server lists `{OFFLINE}`. A client that wants to refresh its tokens may"
        " ask for it, and says so where it registers. It may also name a document as its client"
        " id; what is in that is not looked at.",
        AuthPlan(scopes_supported=(FIRST,), offered_scopes=(FIRST, OFFLINE), takes_documents=True),
        (
            *DISCOVERY_STEPS,
            *optional(REGISTRATION_STEPS),
            *AUTHORIZATION_STEPS,
            *TOKEN_STEPS,
            *TOKEN_SHOWN,
            _may_ask_for_offline,
            _registers_for_refreshing,
        ),
        revisions=ONLY_2026_07_28,
    ),
    auth_scenario(
        "offline-access-not-supported",
        "Refresh tokens are not offered",
        f"The authorization server does not list `{OFFLINE}`.",
        AuthPlan(scopes_supported=(FIRST, "mcp:read"), offered_scopes=(FIRST, "mcp:read")),
        (*WHOLE_FLOW, _does_not_ask_for_offline),
        revisions=ONLY_2026_07_28,
    ),
)
