"""Scenarios about who answered: the issuer in the authorization response (RFC 9207)."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.clients.auth import flow, steps
from mcptest.clients.auth.plan import FOREIGN_ISSUER, AuthPlan
from mcptest.clients.auth.scenarios import ONLY_2026_07_28, auth_scenario
from mcptest.clients.auth.steps import NEW_AUTHORIZATION, check
from mcptest.clients.rows import bad, good, missing, reference
from mcptest.clients.scenario import Row, Scenario
from mcptest.clients.seen import Seen
from mcptest.model.conformance import Reference

_RFC_9207 = (
    Reference("RFC 9207", "https://www.rfc-editor.org/rfc/rfc9207.html#section-2.4"),
    *reference("SEP-2468", f"{NEW_AUTHORIZATION}#authorization-response-validation"),
)


def goes_on(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    yield from map(good, flow.token_requests(seen, plan))


def stops(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    """A client that never came so far has decided nothing."""
    if plan.metadata_path is not None and not flow.of_the_issuer(seen, plan):
        yield missing("it did not get there: it never read the authorization server's metadata")
        return
    redirects = flow.redirects(seen, plan)
    if not redirects:
        yield missing("the client did not get there: it has no authorization response to look at")
        return
    for one in flow.token_requests(seen, plan):
        yield bad("the code was used, although the response was to be thrown away", one)
    yield good(redirects[-1])


def _accepted(
    name: str, title: str, about: str, identifier: str, short: str, plan: AuthPlan
) -> Scenario:
    decided = check(
        identifier, short, "the client goes on to the token", goes_on, plan, references=_RFC_9207
    )
    checks = (*steps.whole_flow(plan), decided)
    return auth_scenario(name, title, about, plan, checks, revisions=ONLY_2026_07_28)


def _rejected(
    name: str, title: str, about: str, identifier: str, short: str, plan: AuthPlan
) -> Scenario:
    decided = check(
        identifier, short, "the client does not use the code", stops, plan, references=_RFC_9207
    )
    return auth_scenario(
        name,
        title,
        f"{about} The client is expected to throw the response away.",
        plan,
        (*steps.up_to_authorization(plan), decided),
        revisions=ONLY_2026_07_28,
        gives_up=True,
    )


ISSUERS = (
    _accepted(
        "iss-supported",
        "The right issuer",
        "The metadata promises `iss` in the authorization response, and there it is.",
        "sep-2468-client-compare-iss-supported",
        "RightIssuerAccepted",
        AuthPlan(),
    ),
    _accepted(
        "iss-not-advertised",
        "No issuer, and none promised",
        "Neither does the metadata promise `iss`, nor does the authorization response have it.",
        "sep-2468-client-proceed-no-iss",
        "NoIssuerAccepted",
        AuthPlan(announces_iss=None, iss="left_out"),
    ),
    _rejected(
        "iss-supported-missing",
        "No issuer, although promised",
        "The metadata promises `iss`, and the authorization response does not have it.",
        "sep-2468-client-reject-missing-iss",
        "MissingIssuerRejected",
        AuthPlan(iss="left_out"),
    ),
    _rejected(
        "iss-wrong-issuer",
        "Another issuer",
        f"The metadata promises `iss`, and the authorization response names `{FOREIGN_ISSUER}`.",
        "sep-2468-client-compare-iss-supported",
        "OtherIssuerRejected",
        AuthPlan(iss="foreign"),
    ),
    _rejected(
        "iss-unexpected",
        "Another issuer, and none promised",
        "The metadata does not promise `iss`, and the authorization response names"
        f" `{FOREIGN_ISSUER}`.",
        "sep-2468-client-compare-iss-unadvertised",
        "UnpromisedIssuerRejected",
        AuthPlan(announces_iss=None, iss="foreign"),
    ),
    _rejected(
        "iss-normalized",
        "Nearly the right issuer",
        "The authorization response names the issuer with a slash behind it, which is another one:"
        " issuers are compared character by character.",
        "sep-2468-client-no-normalization",
        "SimilarIssuerRejected",
        AuthPlan(iss="with_slash"),
    ),
)
