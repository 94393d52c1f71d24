"""The checks about the resource parameter: which server a token is for (RFC 8707)."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from mcptest.clients.auth import flow
from mcptest.clients.auth.plan import AuthPlan
from mcptest.clients.auth.steps import AUTHORIZATION, check
from mcptest.clients.rows import bad, good, reference, shown, skipped, verdict
from mcptest.clients.scenario import Check, Row
from mcptest.clients.seen import Seen, Visited
from mcptest.model.conformance import Reference

_REFERENCES = (
    Reference("RFC 8707", "https://www.rfc-editor.org/rfc/rfc8707.html"),
    *reference("resource", f"{AUTHORIZATION}#resource-parameter-implementation"),
)
_LEFT_OUT = "the resource parameter is missing: see the checks about that"


def _in_authorization(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        yield verdict([] if one.query.get("resource") else ["no resource parameter"], one)


def _in_token(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.token_requests(seen, plan):
        yield verdict([] if one.form.get("resource") else ["no resource parameter"], one)


def _given(seen: Seen, plan: AuthPlan) -> Iterator[tuple[Visited, str]]:
    for one in flow.authorizations(seen, plan):
        yield one, one.query.get("resource", "")
    for one in flow.token_requests(seen, plan):
        yield one, one.form.get("resource", "")


def _is_canonical(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for where, resource in _given(seen, plan):
        if not resource:
            yield skipped(_LEFT_OUT)
            continue
        problem = _problem_of(resource)
        yield verdict([f"{shown(resource)} {problem}"] if problem else [], where)


def _problem_of(resource: str) -> str:
    try:
        parts = urlsplit(resource)
    except ValueError:
        return "is no URI"
    if not parts.scheme or not parts.netloc:
        return "is no absolute URI"
    return "has a fragment" if "#" in resource else ""


def _is_the_same(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for asked, request in flow.by_code(seen, plan):
        first, second = asked.query.get("resource"), request.form.get("resource")
        if not first or not second:
            yield skipped(_LEFT_OUT)
        elif first == second:
            yield good(request)
        else:
            message = f"authorized for {shown(first)}, the token is asked for {shown(second)}"
            yield bad(message, request)


def _is_as_published(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    published = {flow.told(one).get("resource") for one in flow.of_the_resource(seen, plan)}
    for where, resource in _given(seen, plan) if published else ():
        if not resource:
            yield skipped(_LEFT_OUT)
            continue
        expected = " or ".join(shown(one) for one in published)
        problem = f"{shown(resource)} is not the published {expected}, character by character"
        yield verdict([] if resource in published else [problem], where)


def resource_checks(plan: AuthPlan) -> tuple[Check, ...]:
    return (
        check(
            "resource-parameter-in-authorization",
            "ResourceInAuthorization",
            "every request for a code says which server it is for",
            _in_authorization,
            plan,
            references=_REFERENCES,
        ),
        check(
            "resource-parameter-in-token",
            "ResourceInToken",
            "every token request says which server it is for",
            _in_token,
            plan,
            references=_REFERENCES,
        ),
        check(
            "resource-parameter-valid-uri",
            "ResourceValidURI",
            "the resource is an absolute URI without a fragment",
            _is_canonical,
            plan,
            references=_REFERENCES,
        ),
        check(
            "resource-parameter-consistency",
            "ResourceConsistency",
            "the token is asked for the resource that was authorized",
            _is_the_same,
            plan,
            references=_REFERENCES,
        ),
        check(
            "resource-parameter-matches-prm",
            "ResourceMatchesPRM",
            "the resource is named exactly as its metadata names it",
            _is_as_published,
            plan,
            references=_REFERENCES,
        ),
    )
