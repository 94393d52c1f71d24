"""Scenarios about scopes: which are asked for first, which later, and when it is enough."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.clients.auth import flow, steps
from mcptest.clients.auth.plan import AuthPlan
from mcptest.clients.auth.protected_server import MOST_REFUSALS
from mcptest.clients.auth.scenarios import ONLY_2026_07_28, auth_scenario
from mcptest.clients.auth.steps import AUTHORIZATION, NEW_AUTHORIZATION, STATELESS, check
from mcptest.clients.rows import bad, good, missing, reference, shown, warned
from mcptest.clients.scenario import Check, Row
from mcptest.clients.seen import Seen, Visited
from mcptest.model.conformance import Status

FIRST, MORE, OFFLINE = "mcp:basic", "mcp:write", "offline_access"
_SELECTION = reference("scopes", f"{AUTHORIZATION}#scope-selection-strategy")
_CHALLENGE = reference("scopes", f"{AUTHORIZATION}#scope-challenge-handling")
_UNION = reference("SEP-2350", f"{NEW_AUTHORIZATION}#step-up-authorization-flow")
_REFRESH = reference("SEP-2207", f"{NEW_AUTHORIZATION}#refresh-tokens")
_FORBIDDEN = 403


def _asked_for(wanted: tuple[str, ...], one: Visited) -> Row:
    missing = [scope for scope in wanted if scope not in flow.scopes_of(one)]
    if not missing:
        return good(one)
    return warned(f"scope is {shown(one.query.get('scope'))}; expected {' '.join(wanted)}", one)


# -- the first scopes -----------------------------------------------------------------------------


def _follows_challenge(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        yield _asked_for((FIRST,), one)


def _follows_metadata(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        yield _asked_for(plan.scopes_supported or (), one)


def _asks_for_nothing(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        if flow.scopes_of(one):
            yield warned(f"scope is {shown(one.query['scope'])}, and nobody spoke of scopes", one)
        else:
            yield good(one)


_CHALLENGED = AuthPlan(challenge_scope=FIRST)
_PUBLISHED = AuthPlan(scopes_supported=(FIRST, "mcp:read", MORE))
_UNDEFINED = AuthPlan()

_SUITES = ("sep-835",)

FIRST_SCOPES = (
    auth_scenario(
        "scope-from-www-authenticate",
        "Scopes that the challenge names",
        f"The challenge asks for `{FIRST}`.",
        _CHALLENGED,
        (
            *steps.whole_flow(_CHALLENGED),
            check(
                "scope-from-www-authenticate",
                "ScopeFromChallenge",
                "the scope of the challenge is asked for",
                _follows_challenge,
                _CHALLENGED,
                references=_SELECTION,
            ),
        ),
        suites=_SUITES,
    ),
    auth_scenario(
        "scope-from-scopes-supported",
        "Scopes that the metadata names",
        "The challenge names no scope; the metadata of the resource lists three.",
        _PUBLISHED,
        (
            *steps.whole_flow(_PUBLISHED),
            check(
                "scope-from-scopes-supported",
                "ScopeFromMetadata",
                "all scopes of the metadata are asked for",
                _follows_metadata,
                _PUBLISHED,
                references=_SELECTION,
            ),
        ),
        suites=_SUITES,
    ),
    auth_scenario(
        "scope-omitted-when-undefined",
        "No scopes at all",
        "Neither the challenge nor the metadata names a scope.",
        _UNDEFINED,
        (
            *steps.whole_flow(_UNDEFINED),
            check(
                "scope-omitted-when-undefined",
                "ScopeLeftOut",
                "no scope is asked for",
                _asks_for_nothing,
                _UNDEFINED,
                references=_SELECTION,
            ),
        ),
        suites=_SUITES,
    ),
)


# -- more of them ---------------------------------------------------------------------------------


def _begins_small(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan)[:1]:
        yield _asked_for((FIRST,), one)


def _steps_up(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan)[1:2]:
        yield _asked_for((MORE,), one)


def _keeps_what_it_had(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan)[1:2]:
        yield _asked_for((FIRST,), one)


_STEP_UP = AuthPlan(
    challenge_scope=FIRST, scopes_supported=("mcp:profile",), needs={"tools/call": MORE}
)


def _step_up_check(identifier: str, title: str, description: str, judge: steps.PlanJudge) -> Check:
    return check(identifier, title, description, judge, _STEP_UP, references=_CHALLENGE)


STEP_UP = auth_scenario(
    "scope-step-up",
    "A call that needs more",
    f"The first challenge asks for `{FIRST}`. A tool call is refused with 403 until the token has"
    f" `{MORE}`: the client is expected to be authorized once more, for that as well.",
    _STEP_UP,
    (
        *steps.whole_flow(_STEP_UP),
        _step_up_check(
            "scope-step-up-initial",
            "StepUpInitial",
            "the first authorization is for the scope of the challenge",
            _begins_small,
        ),
        _step_up_check(
            "scope-step-up-escalation",
            "StepUpEscalation",
            "the second one is for the scope that was missing",
            _steps_up,
        ),
        check(
            "sep-2350-scope-union-on-reauth",
            "StepUpUnion",
            "the second one is also for what was granted before",
            _keeps_what_it_had,
            _STEP_UP,
            references=_UNION,
            revisions=STATELESS,
        ),
    ),
    suites=_SUITES,
)


def _knows_when_it_is_enough(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    attempts = flow.authorizations(seen, plan)
    refused = [one for one in flow.to_the_server(seen) if one.status == _FORBIDDEN]
    if not attempts:
        return
    if not refused:
        yield missing("the client did not get there: no request of its was refused with 403")
    elif len(attempts) > MOST_REFUSALS:
        message = f"{len(attempts)} authorizations, expected {MOST_REFUSALS} at most"
        yield bad(message, attempts[MOST_REFUSALS], attempts=len(attempts))
    else:
        yield good(attempts[-1], attempts=len(attempts))


_ENDLESS = AuthPlan(challenge_scope="mcp:admin", scopes_supported=("mcp:admin",), never_enough=True)

RETRY_LIMIT = auth_scenario(
    "scope-retry-limit",
    "More, without end",
    "Whatever is granted, requests are refused with 403. The client is expected to give up after"
    f" {MOST_REFUSALS} authorizations at most.",
    _ENDLESS,
    (
        *steps.discovery(_ENDLESS),
        *steps.registration(_ENDLESS),
        *steps.authorization(_ENDLESS),
        *steps.token(_ENDLESS),
        check(
            "scope-retry-limit",
            "ScopeRetryLimit",
            "the client does not ask its user for ever",
            _knows_when_it_is_enough,
            _ENDLESS,
            references=_CHALLENGE,
        ),
    ),
    suites=_SUITES,
    gives_up=True,
)


# -- refreshing -----------------------------------------------------------------------------------


def _may_ask_for_offline(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        if OFFLINE in flow.scopes_of(one):
            yield good(one)
        else:
            yield Row(Status.INFO, f"the client chose not to ask for {OFFLINE}")


def _registers_for_refreshing(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.registrations(seen, plan):
        kinds = flow.asked(one).get("grant_types")
        if isinstance(kinds, list) and "refresh_token" in kinds:
            yield good(one)
        else:
            yield warned(f"grant_types is {shown(kinds)}, without refresh_token", one)


def _does_not_ask_for_offline(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        if OFFLINE in flow.scopes_of(one):
            yield bad(f"{OFFLINE} is asked for, which the server does not list", one)
        else:
            yield good(one)


_OFFERED = AuthPlan(
    scopes_supported=(FIRST,), offered_scopes=(FIRST, OFFLINE), takes_documents=True
)
_NOT_OFFERED = AuthPlan(scopes_supported=(FIRST, "mcp:read"), offered_scopes=(FIRST, "mcp:read"))

REFRESHING = (
    auth_scenario(
        "offline-access-scope",
        "Refresh tokens are offered",
        f"The authorization server lists `{OFFLINE}`. A client that wants to refresh its tokens may"
        " ask for it, and says so where it registers. It may also name a document as its client"
        " id; what is in that is not looked at.",
        _OFFERED,
        (
            *steps.discovery(_OFFERED),
            *steps.registration(_OFFERED, silence=Status.SKIPPED),
            *steps.authorization(_OFFERED),
            *steps.token(_OFFERED),
            *steps.token_shown(_OFFERED),
            check(
                "sep-2207-offline-access-requested",
                "OfflineAccessRequested",
                f"`{OFFLINE}` may be asked for",
                _may_ask_for_offline,
                _OFFERED,
                references=_REFRESH,
            ),
            check(
                "sep-2207-client-metadata-grant-types",
                "GrantTypesRegistered",
                "a client that registers lists `refresh_token` among its grant types",
                _registers_for_refreshing,
                _OFFERED,
                references=_REFRESH,
                silence=Status.INFO,
            ),
        ),
        revisions=ONLY_2026_07_28,
    ),
    auth_scenario(
        "offline-access-not-supported",
        "Refresh tokens are not offered",
        f"The authorization server does not list `{OFFLINE}`.",
        _NOT_OFFERED,
        (
            *steps.whole_flow(_NOT_OFFERED),
            check(
                "sep-2207-offline-access-not-requested",
                "OfflineAccessNotRequested",
                f"`{OFFLINE}` is not asked for",
                _does_not_ask_for_offline,
                _NOT_OFFERED,
                references=_REFRESH,
            ),
        ),
        revisions=ONLY_2026_07_28,
    ),
)
